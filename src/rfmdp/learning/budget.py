"""The ledger: which error probability is spent where, adding up to at most beta.

A guarantee with probability 1 - beta is a union bound over *events* such as "this interval misses
its probability", whose error probabilities stand in the ledger before any sample is seen.
`Setup.shares` divides beta among model, rewards and starts; a `Budget` divides the share of the
model among the events of all identifiers. All sums are rounded against us.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from enum import Enum
from fractions import Fraction

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.learning.confidence import ConfidenceSet
from rfmdp.learning.identifiers import Identifiers
from rfmdp.record import Assumption
from rfmdp.types import AnyArray, FloatArray, IntArray, frozen

# each share is shortened by this factor, far above the rounding of a million products
_SAFETY = 1.0 - 2.0**-40

ASSUMPTION = Assumption("ledger")


@dataclass(frozen=True, slots=True)
class Shares:
    """beta = model + reward + start: one error probability per part of the guarantee."""

    model: float
    reward: float = 0.0
    start: float = 0.0  # of the distribution of starts

    def __post_init__(self) -> None:
        parts = astuple(self)
        if not all(x >= 0.0 for x in parts) or not 0 < sum(map(Fraction, parts)) < 1:
            raise ModelError(
                f"Shares: all must be at least 0 and their sum in (0, 1), found {parts}."
            )

    @property
    def beta(self) -> float:
        """The whole error probability, rounded upwards."""
        total = sum(map(Fraction, astuple(self)))
        nearest = float(total)
        return nearest if Fraction(nearest) >= total else math.nextafter(nearest, 1.0)


def divided(share: float, events: int) -> float:
    """Return the error probability of each of that many events."""
    return share * _SAFETY / max(events, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Ledger:
    """Error probabilities of all events of the marginals, and the shares of the other parts."""

    scheme: str
    shares: Shares
    events: IntArray  # (M,) events of marginal j
    delta: FloatArray  # (M,) error probability of each of them; 0: the marginal stays unknown

    def __post_init__(self) -> None:
        inside = (self.delta >= 0) & (self.delta < 1) & (self.events >= 0)
        if self.events.shape != self.delta.shape or not np.all(inside):
            raise ModelError("Ledger: every event must have a delta in [0, 1).")
        object.__setattr__(self, "events", frozen(self.events))
        object.__setattr__(self, "delta", frozen(self.delta))
        if self.spent_on_model() > self.shares.model:
            raise ModelError(
                f"Ledger: events must cost at most the model share {self.shares.model:g}, "
                f"found {self.spent_on_model():g}; lower the weights."
            )

    def spent_on_model(self) -> float:
        """Return an upper bound of sum_j events_j delta_j: products and sum rounded upwards."""
        cost = self.events * self.delta
        total = math.fsum(np.nextafter(cost[cost > 0], np.inf))
        return math.nextafter(total, math.inf) if total > 0 else 0.0

    def to_arrays(self) -> dict[str, AnyArray]:
        """Return plain arrays that `from_arrays` reads back."""
        named = {"scheme": np.array(self.scheme), "shares": np.array(astuple(self.shares))}
        return named | {"events": self.events, "delta": self.delta}

    @staticmethod
    def from_arrays(arrays: Mapping[str, AnyArray]) -> Ledger:
        """Read a ledger back; it is checked like a new one."""
        events = arrays["events"].astype(np.int64, casting="safe")
        shares = Shares(*map(float, arrays["shares"]))
        return Ledger(str(arrays["scheme"]), shares, events, np.asarray(arrays["delta"], float))


class Budget(Enum):
    """By what the share of the model is divided, before the first sample.

    An identifier gets as much of the share as it counts, and its events divide that.
    """

    EVENTS = "equal events"  # an identifier counts as often as it has events
    PROBABILITIES = "beta/U"  # by its outcomes, as in the paper; those of certain moves count, too
    COMPONENTS = "beta/|Q|"  # once, as the paper's L1 balls do; certain moves count, too

    def ledger(self, shares: Shares, confidence: ConfidenceSet, ids: Identifiers) -> Ledger:
        """Return the error probability of every event."""
        sizes = ids.model.marginals.sizes
        counts = events = confidence.events(sizes)
        total = int(events.sum())
        if self is Budget.PROBABILITIES:
            counts, total = sizes, max(int(ids.counted.sum()), int(sizes.sum()))
        elif self is Budget.COMPONENTS:
            counts, total = np.ones_like(sizes), max(len(ids.counted), len(sizes))
        each = counts / np.maximum(np.maximum(counts, events), 1)
        delta = divided(shares.model, total) * each
        return Ledger(f"{self.value} of {total}", shares, events, delta)
