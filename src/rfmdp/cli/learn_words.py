"""What the words of `rfmdp learn` mean: parts of a method, what is assumed, recorded data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rfmdp.cli.output import ProgressLines
from rfmdp.errors import ModelError
from rfmdp.formats.files import SAVED, load
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
from rfmdp.model.arrays import FactoredMDP
from rfmdp.sources.log.manifest import Manifest
from rfmdp.sources.log.source import Bad, read_log
from rfmdp.sources.recorded import KIND
from rfmdp.sources.source import Recorded, Source

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


@dataclass(frozen=True, slots=True)
class DataWords:
    """What was said about data, as it was said."""

    files: tuple[str, ...]
    manifest: str | None
    selection: str | None
    columns: tuple[str, ...]
    bad: str

    def source(self, model: FactoredMDP) -> Source:
        """Return the data, read and checked."""
        if any(file.endswith(SAVED) for file in self.files):
            if len(self.files) > 1 or self.manifest or self.selection or self.columns:
                raise ModelError(
                    f"--data: a {SAVED} file has everything in it; give it alone, without "
                    "--manifest, --selection and --column."
                )
            return Recorded(model, load(self.files[0], KIND))
        if self.bad not in [b.value for b in Bad]:
            raise ModelError(f"--bad must be refuse or omit, got '{self.bad}'.")
        said = Manifest() if self.manifest is None else Manifest.read(self.manifest)
        if self.selection is not None:
            said = replace(said, selection=self.selection)  # type: ignore[arg-type]
        said = replace(said, columns={**said.columns, **dict(map(_column, self.columns))})
        return read_log(model, *self.files, manifest=said, bad=Bad(self.bad), progress=_Reading())


def _column(text: str) -> tuple[str, str | None]:
    name, equals, column = text.partition("=")
    if not equals or not name:
        raise ModelError(f"--column must be NAME=COLUMN, got '{text}'.")
    return name, column or None


class _Reading:
    """Prints how many rows of data are read."""

    def __init__(self) -> None:
        self._lines = ProgressLines()

    def __call__(self, rows: int, seconds: float) -> None:
        rate = rows / max(seconds, 1e-9)
        text = f"reading data: {rows} rows, {rate:.3g} rows/s"
        self._lines.show(text, seconds, passing=True)
