"""Words of `rfmdp learn` for the parts of a method and for what is assumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rfmdp.errors import ModelError
from rfmdp.learning.confidence import (
    AllSubsets,
    BySize,
    ClopperPearson,
    ConfidenceSet,
    GridClopperPearson,
    Hoeffding,
    KLDirichlet,
    KrichevskyTrofimov,
    Mixture,
    Weissman,
)
from rfmdp.learning.explore import Exploration, GapDirected, Optimistic, RobustGreedy, UniformRandom
from rfmdp.learning.identifiers import Granularity
from rfmdp.learning.rewards import DeterministicReward, MixtureReward, RewardFamily, RewardRange
from rfmdp.learning.schedule import Doubling, Geometric, Schedule
from rfmdp.learning.support import (
    DeclaredSupport,
    DomainSupport,
    FloorSupport,
    SparseSupport,
    Support,
)

CONFIDENCE: Mapping[str, Callable[[], ConfidenceSet]] = {
    "mixture": Mixture,
    "kt": KrichevskyTrofimov,
    "grid": GridClopperPearson,
    "clopper-pearson": ClopperPearson,
    "hoeffding": Hoeffding,
    "weissman": Weissman,
    "kl": KLDirichlet,
    "subsets": lambda: AllSubsets(Mixture()),
    "by-size": BySize,
}
EXPLORATION: Mapping[str, Callable[..., Exploration]] = {
    "optimistic": Optimistic,
    "uniform": UniformRandom,
    "greedy": RobustGreedy,
    "gap": GapDirected,
}
SCHEDULES: Mapping[str, Callable[..., Schedule]] = {"doubling": Doubling, "geometric": Geometric}
GRANULARITIES = {"tied": Granularity.TIED, "effect": Granularity.EFFECT}
GRANULARITIES |= {"local": Granularity.LOCAL, "flat": Granularity.FLAT}
SUPPORTS: Mapping[str, Callable[..., Support]] = {
    "declared": DeclaredSupport,
    "domain": DomainSupport,
    "pmin": FloorSupport,
    "sparse": SparseSupport,
}
REWARDS: Mapping[str, Callable[..., RewardFamily | None]] = {
    "known": lambda: None,
    "fixed": lambda low, high: DeterministicReward(RewardRange(low, high)),
    "random": lambda low, high: MixtureReward(RewardRange(low, high)),
}
USAGE = {
    "--confidence": ", ".join(CONFIDENCE),
    "--explore": "optimistic[:OTHER], uniform, greedy[:OTHER], gap",
    "--schedule": "doubling[:SHARE], geometric[:FACTOR]",
    "--granularity": ", ".join(GRANULARITIES),
    "--support": "declared, domain, pmin:P, sparse[:P]",
    "--rewards": "known, fixed:LOW:HIGH, random:LOW:HIGH",
}


def part(option: str, table: Mapping[str, Any], text: str | None) -> Any:
    """Return what a word names, with the numbers behind its colons; None for no word.

    >>> part("--schedule", SCHEDULES, "geometric:1.2")
    Geometric(factor=1.2, first=10)
    """
    if text is None:
        return None
    word, *numbers = text.split(":")
    try:
        made = table[word]
        return made(*(float(n) for n in numbers)) if callable(made) else made
    except (KeyError, ValueError, TypeError) as error:
        if isinstance(error, ModelError):
            raise ModelError(f"{option} {text}: {error}") from None
        raise ModelError(f"{option} must be one of {USAGE[option]}; got '{text}'.") from None


def tie(text: str) -> list[int | str]:
    """Return the marginals of `NAME=NAME=...`, numbers as numbers.

    >>> tie("own: [up]=3")
    ['own: [up]', 3]
    """
    names = [name.strip() for name in text.split("=")]
    if len(names) < 2 or not all(names):
        raise ModelError(f"--tie must be NAME=NAME, marginals of the model; got '{text}'.")
    return [int(name) if name.isdecimal() else name for name in names]
