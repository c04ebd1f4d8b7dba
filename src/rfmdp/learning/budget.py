"""The ledger: which error probability is spent where, adding up to at most beta.

A guarantee with probability 1 - beta is a union bound over *events*, "this interval misses its
probability" and the like. The ledger lists, before any sample is seen, the error probability of
every event. Any fixed weights are valid; weights chosen from the samples they are used for are not.

    ledger = weighted(Shares(model=0.5e-4, rollout=0.5e-4), sets.events(sizes))
    ledger.delta                  # (M,) error probability of each event of marginal j

All sums are rounded against us: `spent()` is at least what the events can cost, at most beta.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray, frozen

# each share is shortened by this factor, far above the rounding of a million products
_SAFETY = 1.0 - 2.0**-40

ASSUMPTION = "the error probabilities were fixed before the samples they are used for"


@dataclass(frozen=True, slots=True)
class Shares:
    """beta = model + reward + rollout + tests: one error probability per part of the guarantee."""

    model: float
    reward: float = 0.0
    rollout: float = 0.0
    tests: float = 0.0

    def __post_init__(self) -> None:
        parts = (self.model, self.reward, self.rollout, self.tests)
        if not all(0.0 <= part < 1.0 for part in parts) or not 0 < sum(map(Fraction, parts)) < 1:
            raise ModelError(
                "Shares: every share must lie in [0, 1) and their sum in (0, 1), found "
                f"model={self.model:g}, reward={self.reward:g}, rollout={self.rollout:g}, "
                f"tests={self.tests:g}."
            )

    @property
    def beta(self) -> float:
        """The whole error probability, rounded upwards."""
        total = sum(map(Fraction, (self.model, self.reward, self.rollout, self.tests)))
        nearest = float(total)
        return nearest if Fraction(nearest) >= total else math.nextafter(nearest, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Ledger:
    """Error probabilities of all events of the marginals, and the shares of the other parts."""

    scheme: str
    shares: Shares
    events: IntArray  # (M,) events of marginal j
    delta: FloatArray  # (M,) error probability of each of them; 0: the marginal stays unknown

    def __post_init__(self) -> None:
        if self.events.shape != self.delta.shape or self.delta.ndim != 1:
            raise ModelError(
                "Ledger: events and delta must be flat and of one length, found shapes "
                f"{self.events.shape} and {self.delta.shape}."
            )
        if np.any(self.events < 0) or not np.all((self.delta >= 0) & (self.delta < 1)):
            raise ModelError("Ledger: events must be >= 0 and every delta in [0, 1).")
        object.__setattr__(self, "events", frozen(self.events))
        object.__setattr__(self, "delta", frozen(self.delta))
        if self.spent_on_model() > self.shares.model:
            raise ModelError(
                f"Ledger: events must cost at most the model share {self.shares.model:g}, "
                f"found {self.spent_on_model():g}; lower the weights."
            )

    @property
    def beta(self) -> float:
        """The whole error probability that was granted."""
        return self.shares.beta

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must be true for the sum to mean anything."""
        return (ASSUMPTION,)

    def spent_on_model(self) -> float:
        """Return an upper bound of sum_j events_j delta_j: products and sum rounded upwards."""
        cost = self.events * self.delta
        total = math.fsum(np.nextafter(cost[cost > 0], np.inf))
        return math.nextafter(total, math.inf) if total > 0 else 0.0

    def spent(self) -> float:
        """Return an upper bound of what all parts can cost together; at most `beta`."""
        shares = self.shares
        others = (shares.reward, shares.rollout, shares.tests)
        total = sum(map(Fraction, others), Fraction(self.spent_on_model()))
        nearest = float(total)
        return nearest if Fraction(nearest) >= total else math.nextafter(nearest, 1.0)

    def reward_delta(self, identifiers: int) -> float:
        """Return the error probability of each of that many reward identifiers."""
        return self.shares.reward * _SAFETY / max(identifiers, 1)

    def to_arrays(self) -> dict[str, AnyArray]:
        """Return plain arrays that `from_arrays` reads back."""
        shares = self.shares
        return {
            "scheme": np.array(self.scheme),
            "shares": np.array([shares.model, shares.reward, shares.rollout, shares.tests]),
            "events": self.events,
            "delta": self.delta,
        }

    @staticmethod
    def from_arrays(arrays: Mapping[str, AnyArray]) -> Ledger:
        """Read a ledger back; it is checked like a new one."""
        return Ledger(
            scheme=str(arrays["scheme"]),
            shares=Shares(*(float(share) for share in arrays["shares"])),
            events=np.asarray(arrays["events"], dtype=np.int64),
            delta=np.asarray(arrays["delta"], dtype=np.float64),
        )


def paper_box(beta: float, outcomes: IntArray) -> Ledger:
    """Return delta = beta / U for each of the U = sum_j k_j probabilities, as in the paper.

    Its intervals count every outcome as an event, also those of one- and two-outcome marginals.
    """
    events = np.asarray(outcomes, dtype=np.int64)
    return _even(f"paper, beta/U, U={int(events.sum())}", beta, events)


def paper_l1(beta: float, outcomes: IntArray) -> Ledger:
    """Return delta = beta / |Q| for each of the |Q| marginals, as in the paper."""
    events = np.ones(len(outcomes), dtype=np.int64)
    return _even(f"paper, beta/|Q|, |Q|={len(events)}", beta, events)


def weighted(shares: Shares, events: IntArray, weights: FloatArray | None = None) -> Ledger:
    """Return delta_j = model w_j / e_j for fixed weights w (scaled to sum 1; events if None).

    The default gives every event the same error probability. Marginals with no event or weight
    0 get delta 0 and stay unknown (a marginal of one outcome is known without any event).

    Parameters
    ----------
    shares : Shares
        The model share is divided here.
    events : IntArray
        (M,) events of every marginal, from `ConfidenceSet.events`.
    weights : FloatArray, optional
        (M,) at least 0, chosen before the samples; see `relevance_weights`.
    """
    events = np.asarray(events, dtype=np.int64)
    weight = np.asarray(events if weights is None else weights, dtype=np.float64)
    if weight.shape != events.shape or not np.all((weight >= 0) & np.isfinite(weight)):
        raise ModelError(
            f"Weights: {len(events)} finite numbers >= 0 must be given, found shape "
            f"{weight.shape} with minimum {np.min(weight, initial=0.0):g}."
        )
    weight = np.where(events > 0, weight, 0.0)
    scale = math.fsum(weight)
    delta = np.zeros(len(events))
    used = weight > 0
    delta[used] = shares.model * _SAFETY * (weight[used] / scale) / events[used]
    scheme = "equal events" if weights is None else "fixed weights"
    return Ledger(f"{scheme}, {int(events[used].sum())} events", shares, events, delta)


def relevance_weights(
    events: IntArray, relevance: FloatArray | None = None, reachable: BoolArray | None = None
) -> FloatArray:
    """Return w = 1/2 uniform over events + 1/2 proportional to a prior relevance.

    Relevance is anything known before sampling: occupancies under a prior model, say. Marginals
    that the *declared* graph cannot reach from the initial state get weight 0; a guarantee with
    such weights is one for the initial state (and what it reaches).

    Parameters
    ----------
    events, relevance, reachable : arrays
        (M,) each; relevance at least 0.

    Returns
    -------
    FloatArray
        (M,) weights that sum to 1 (all 0 if no event is reachable).
    """
    within = np.asarray(events, dtype=np.float64)
    if reachable is not None:
        within = np.where(reachable, within, 0.0)
    uniform: FloatArray = within / max(float(within.sum()), 1.0)
    if relevance is None:
        return uniform
    if not np.all((relevance >= 0) & np.isfinite(relevance)):
        raise ModelError("Relevance: must be finite and at least 0 for every marginal.")
    prior = np.where(uniform > 0, relevance, 0.0)
    if not prior.sum() > 0:
        return uniform
    return np.asarray(0.5 * uniform + 0.5 * prior / prior.sum())


def epoch_delta(beta: float, epoch: int) -> float:
    """Return beta / (i (i+1)) for the i-th epoch, i >= 1; all epochs together cost beta."""
    if epoch < 1:
        raise ModelError(f"Epoch: must be at least 1, found {epoch}.")
    return beta * _SAFETY / (epoch * (epoch + 1))


def _even(scheme: str, beta: float, events: IntArray) -> Ledger:
    """Give every event the same error probability."""
    delta = np.full(len(events), beta * _SAFETY / max(int(events.sum()), 1))
    return Ledger(scheme, Shares(model=beta), events, delta)
