"""What is fixed before the first sample: all that was asked for, and the ledger of beta.

A guarantee with probability 1 - beta is a union bound over *events* such as "this interval misses
its probability". `Setup.shares` divides beta among model, rewards and starts; a `Budget` divides
the share of the model among the events of all identifiers. All sums are rounded against us.

Of two runs with the same settings (see `docs/formats.md`) one may go on where the other stopped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.learning.confidence import ClopperPearson, ConfidenceSet, Mixture, Weissman
from rfmdp.learning.identifiers import Granularity, Identifiers
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Spec
from rfmdp.outer.problem import where
from rfmdp.outer.task import Limits
from rfmdp.record import Assumption, described
from rfmdp.sources.log.source import Log
from rfmdp.sources.source import Source, digest_of, informed
from rfmdp.types import AnyArray, FloatArray, IntArray, frozen

if TYPE_CHECKING:
    from rfmdp.learning.methods import LogSpaced, Method, RewardRange, StopWhen

# each share is shortened by this factor, far above the rounding of a million products
_SAFETY = 1.0 - 2.0**-40

ASSUMPTION = Assumption("ledger")

START_SHARE = 0.1  # of the error probability, for the distribution of starts
REWARD_SHARE = 0.5  # of the rest, for rewards that are learned
SHORT = 16  # digits of a digest that are kept
CONFIDENCE = {ClopperPearson: "clopper-pearson", Mixture: "mixture", Weissman: "weissman"}
DIGESTS = ("structure", "probabilities", "data")  # settings that are digests


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


@dataclass(frozen=True, slots=True)
class Setup:
    """Everything that `learn` was asked for."""

    source: Source
    spec: Spec
    method: Method
    beta: float
    stop: StopWhen
    points: LogSpaced
    length: int
    seed: int
    limits: Limits
    p_min: float  # least probability of declared outcomes; 0: none is assumed
    rewards: RewardRange | None  # None: those of the model
    name: str  # of the system, for people

    @property
    def records(self) -> Log | None:
        """The source if it hands over what was recorded; None if it draws."""
        return self.source if isinstance(self.source, Log) else None

    def shares(self) -> Shares:
        """Return how beta is divided among model, rewards and the start."""
        start = START_SHARE * self.beta if self.source.random_start else 0.0
        rest = self.beta - start
        reward = REWARD_SHARE * rest if self.rewards is not None else 0.0
        return Shares(rest - reward, reward, start)


def settings_of(setup: Setup, ids: Identifiers, ledger: Ledger) -> dict[str, Any]:
    """Return what was asked for, by name; `ids` are those of the source's structure."""
    method, structure, limits = setup.method, setup.source.structure.model, setup.limits
    words = setup.source.words.items()
    source = {name: word[:SHORT] if len(word) == 64 else word for name, word in words}
    known, counted, prior = ids.prior, ids.model, None
    if known is not None:
        digest = _digest(known.lower, known.upper)
        prior = {"informed": int(informed(known).sum()), "digest": digest}
    parts = counted.marginal_ptr, counted.row_marginals, counted.marginals.outcome_ptr
    identifiers = _digest(*(np.asarray(p, dtype=np.int64) for p in (*parts, counted.successors)))
    return {
        "source": {"kind": source.pop("source", "other"), **source},
        "objective": _objective(structure, setup.spec),
        "method": method.name,
        "confidence": described(method.confidence, CONFIDENCE.get(type(method.confidence))),
        "prior": prior,
        "p_min": float(setup.p_min),
        "rewards": described(setup.rewards, "mixture") or {"kind": "declared"},
        "beta": float(setup.beta),
        "budget": {"kind": ledger.scheme, "digest": _digest(ledger.events, ledger.delta)},
        "granularity": method.granularity.value,
        "ties": [list(names) for names in ids.shared],
        "identifiers": {"count": len(counted.marginals), "digest": identifiers},
        "exploration": described(method.exploration),
        "schedule": described(method.schedule),
        "inner": described(method.inner),
        "precision": {"kind": limits.measure.value, "width": limits.precision},
        "points": described(setup.points),
        "length": int(setup.length),
        "seed": int(setup.seed),
    }


def assumptions_of(setup: Setup, ids: Identifiers) -> tuple[str, ...]:
    """Return everything that a guarantee rests on, in sentences."""
    rewards, source = setup.rewards, setup.source
    always = (ASSUMPTION, *map(Assumption, ("shared", "product", "structure")))
    sentences = [*setup.method.confidence.assumptions, *always]
    sentences += [Assumption("rewards")] if rewards is None else rewards.assumptions
    sentences += [*source.structure.assumptions, *source.assumptions]
    if setup.p_min > 0.0:
        sentences.append(Assumption("declared-floor", p_min=float(setup.p_min)))
    if setup.method.granularity is Granularity.TIED:
        sentences.append(Assumption("tied"))
    elif ids.shared:
        sentences.append(Assumption("ties"))
    return tuple(dict.fromkeys(sentences))


def require_same(saved: Mapping[str, Any], request: Mapping[str, Any], place: str) -> None:
    """Raise ModelError, naming what differs, unless a saved run is the one that is asked for."""
    before, now = (
        {**settings, **settings["source"], "source": settings["source"]["kind"], "kind": None}
        for settings in (saved, request)
    )
    differ = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if "source" in differ:
        differ = ["source"]
    listed = []
    for name in differ:
        words = in_words(before.get(name)), in_words(now.get(name))
        others = name in DIGESTS or words[0] == words[1]
        listed.append(f"{name} ({'others' if others else ', now '.join(words)})")
    if listed:
        raise ModelError(
            f"Resume: {place} must be continued with the same settings; these differ: "
            f"{'; '.join(listed)}. Use the same ones, or start a run in another file."
        )


def in_words(setting: Any) -> str:
    """Return a setting for people, without digests."""
    if isinstance(setting, list):
        return ", ".join(map(in_words, setting)) or "none"
    if not isinstance(setting, Mapping):
        return "nothing" if setting is None else str(setting)
    kind = str(setting.get("kind", ""))
    numbers = (f"{k}={in_words(x)}" for k, x in setting.items() if k not in ("kind", "digest"))
    inside = ", ".join(numbers)
    return f"{kind}({inside})" if inside else kind


def _objective(model: FactoredMDP, spec: Spec) -> dict[str, Any]:
    """Return an objective with a digest of its sets of states, its rewards and the start."""
    objective = spec.objective
    arrays: list[AnyArray] = [np.asarray(model.initial, dtype=np.int64)]
    arrays += [where(model, states) for states in objective.sets.values()]
    if objective.rewarded:
        paid = model.reward(objective.reward_name)
        arrays += [paid.state, paid.row]
    plain = replace(objective, **dict.fromkeys(objective.sets, "states"))
    pull = {"agent": spec.agent.name, "nature": spec.nature.name}
    return {**described(plain), **pull, "digest": _digest(*arrays)}


def _digest(*arrays: object) -> str:
    return digest_of(*(np.asarray(array) for array in arrays))[:SHORT]
