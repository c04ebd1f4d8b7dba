"""What a learning run is about: everything that was asked for, also in words.

Two runs with the same settings are the same run: one may go on where the other stopped. What is too
large for words (a structure, probabilities, sets of states) stands as a digest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.learning.budget import ASSUMPTION, Ledger, Shares
from rfmdp.learning.confidence import ConfidenceSet
from rfmdp.learning.identifiers import Granularity, Identifiers
from rfmdp.learning.methods import Method
from rfmdp.learning.rewards import SHARE, MixtureReward, RewardFamily
from rfmdp.learning.schedule import LogSpaced, StopWhen
from rfmdp.learning.support import DeclaredSupport, DiscoveredOutcomes, Support
from rfmdp.learning.transition_rewards import TransitionReward
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import SETS, Spec
from rfmdp.outer.problem import where
from rfmdp.outer.settings import Limits
from rfmdp.sets.marginals import Marginals
from rfmdp.sources.recorded import digest_of
from rfmdp.sources.source import Episodes, Records, Source
from rfmdp.sources.structure import informed
from rfmdp.types import FloatArray

PRODUCT = "the marginals of a row are drawn independently of each other"
SHARED = "rows that share an identifier draw from the same distribution"
STRUCTURE = "states, actions and successors of outcomes of the model are as declared"
REWARDS = "rewards of the model are as declared"
TIED = "marginals with equal probabilities in the model are the same unknown distribution"
TIES = "tied marginals are the same distribution, as declared"
START_SHARE = 0.1  # of the error probability of the model, for the distribution of starts
SHORT = 16  # digits of a digest that are kept
DIGEST = re.compile(r"\b[0-9a-f]{16}\b")
DIFFERS = {  # what differs if only the digest of a setting does
    "structure": "other states, actions, successors or labels",
    "probabilities": "others; constants perhaps",
    "objective": "of other states, rewards or initial states",
    "budget": "shared out to other events",
    "identifiers": "of other rows",
    "data": "others",
    "prior": "of other bounds",
}


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
    support: Support
    rewards: RewardFamily | TransitionReward | None  # None: those of the model
    name: str  # of the system, for people

    @property
    def records(self) -> Records | None:
        """The source if it hands over what was recorded; None if it draws."""
        return self.source if hasattr(self.source, "counts") else None  # type: ignore[return-value]

    @property
    def episodes(self) -> Episodes | None:
        """The source if it draws; None if it hands over what was recorded."""
        return self.source if self.records is None else None  # type: ignore[return-value]

    @property
    def confidence(self) -> ConfidenceSet | DiscoveredOutcomes:
        """The confidence sets that the guarantee is made from."""
        base = self.method.confidence
        if isinstance(self.support, DeclaredSupport):
            return base
        if self.p_min > 0.0:
            raise UnsupportedError("p_min: with an unknown support, use FloorSupport(p_min).")
        return DiscoveredOutcomes(base, self.support)  # type: ignore[arg-type]  # checked there

    def floors(self, ids: Identifiers) -> FloatArray:
        """Return the assumed least probability of the outcomes of every identifier, (M,)."""
        least = getattr(self.support, "p_min", self.p_min)
        floors = ids.floors(least)
        sizes = ids.model.marginals.sizes
        if self.p_min > 0.0 and np.any(floors * sizes > 1.0):
            largest = int(np.argmax(floors * sizes))
            raise ModelError(
                f"p_min: outcomes with at least {self.p_min:g} each must sum to 1 at most, but "
                f"{ids.model.marginal_name(largest)} has {sizes[largest]}; take a smaller one."
            )
        return floors

    def shares(self) -> Shares:
        """Return how beta is divided among model, rewards, rollouts and the start.

        `budget` divides the model's share once more, among events.
        """
        rollout = self.beta * self.method.rollout
        rest = self.beta - rollout
        start = START_SHARE * rest if self.random_start else 0.0
        rest -= start
        reward = SHARE * rest if isinstance(self.rewards, MixtureReward) else 0.0
        return Shares(rest - reward, reward, rollout, start)

    @property
    def random_start(self) -> bool:
        """Whether the distribution of starts is learned."""
        return self.episodes is not None and self.episodes.random_start


def settings_of(setup: Setup, ids: Identifiers, ledger: Ledger, rewards: str) -> dict[str, str]:
    """Return what was asked for in words, by name; `ids` are those of the source's structure."""
    method, structure = setup.method, setup.source.structure.model
    return {
        **{name: _short(word) for name, word in setup.source.words.items()},
        "objective": _objective(structure, setup.spec),
        "method": method.name,
        "confidence": repr(method.confidence),
        "support": repr(setup.support),
        "prior": _prior(ids.prior),
        "p_min": repr(setup.p_min),
        "rewards": rewards,
        "beta": repr(setup.beta),
        "budget": f"{ledger.scheme}, {_digest(ledger.events, ledger.delta)}",
        "rollout": repr(method.rollout),
        "granularity": method.granularity.value,
        "ties": "; ".join(" = ".join(names) for names in ids.shared) or "none",
        "identifiers": f"{len(ids.model.marginals)}, {_identifiers(ids.model)}",
        "exploration": repr(method.exploration),
        "schedule": repr(method.schedule),
        "inner": repr(method.inner),
        "precision": f"{setup.limits.precision!r} {setup.limits.measure.value}",
        "points": repr(setup.points),
        "length": str(setup.length),
        "seed": str(setup.seed),
    }


def assumptions_of(setup: Setup, ids: Identifiers) -> tuple[str, ...]:
    """Return everything that a guarantee rests on, in sentences."""
    rewards, source = setup.rewards, setup.source
    found = [*setup.confidence.assumptions, ASSUMPTION, SHARED, PRODUCT, STRUCTURE]
    found += [REWARDS] if rewards is None else rewards.assumptions
    found += [*source.structure.assumptions, *source.assumptions]
    if setup.p_min > 0.0:
        found.append(
            f"p_min: every declared outcome of a marginal has probability >= {setup.p_min!r}"
        )
    if setup.method.granularity is Granularity.TIED:
        found.append(TIED)
    elif ids.shared:
        found.append(TIES)
    return tuple(dict.fromkeys(found))


def require_same(saved: Mapping[str, str], asked: Mapping[str, str], place: str) -> None:
    """Raise ModelError, naming what differs, unless a saved run is the one that is asked for."""
    names = list(dict.fromkeys([*saved, *asked]))
    other = [name for name in names if saved.get(name) != asked.get(name)]
    if other:
        listed = "; ".join(_difference(n, saved.get(n), asked.get(n)) for n in other)
        raise ModelError(
            f"Resume: {place} must be asked for with its own settings, these differ: {listed}. "
            "Ask for the same, or start a run in another file."
        )


def _difference(name: str, saved: str | None, asked: str | None) -> str:
    """Return what differs between two settings of one name, without digests."""
    before, now = (re.sub(DIGEST, "", x or "nothing").strip(" ,") for x in (saved, asked))
    if before != now:
        return f"{name} ({before or 'others'}, now {now or 'others'})"
    return f"{name} ({f'{now}, but ' if now else ''}{DIFFERS.get(name, 'of other numbers')})"


def _objective(model: FactoredMDP, spec: Spec) -> str:
    """Return an objective with the digests of its sets of states and of its rewards."""
    objective, parts = spec.objective, []
    for field in fields(objective):
        content = getattr(objective, field.name)
        if field.name in SETS:
            at = where(model, content)
            name = f'"{content}", ' if isinstance(content, str) else ""
            parts.append(f"{field.name}={name}{int(at.sum())} states {_digest(at)}")
        elif field.name == "reward":
            paid = model.reward(content)
            parts.append(f"reward={content!r} {_digest(paid.state, paid.row)}")
        else:
            parts.append(f"{field.name}={content!r}")
    initial = _digest(np.asarray(model.initial, dtype=np.int64))
    return (
        f"{type(objective).__name__}({', '.join(parts)}) from {initial}, "
        f"agent {spec.agent.name}, nature {spec.nature.name}"
    )


def _prior(sets: Marginals | None) -> str:
    """Return in words what is known before any data: of how many identifiers, and a digest."""
    if sets is None:
        return "nothing"
    return f"{int(informed(sets).sum())} identifiers, {_digest(sets.lower, sets.upper)}"


def _identifiers(model: FactoredMDP) -> str:
    """Return a digest of which rows count for which identifiers, and how."""
    return _digest(
        np.asarray(model.marginal_ptr, dtype=np.int64),
        np.asarray(model.row_marginals, dtype=np.int64),
        np.asarray(model.marginals.outcome_ptr, dtype=np.int64),
        np.asarray(model.successors, dtype=np.int64),
    )


def _digest(*arrays: object) -> str:
    return digest_of(*(np.asarray(array) for array in arrays))[:SHORT]


def _short(word: str) -> str:
    """Return a word; a digest is cut to its first digits."""
    return word[:SHORT] if len(word) == 64 else word
