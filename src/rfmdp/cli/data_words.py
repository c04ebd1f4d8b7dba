"""The words of `rfmdp learn` about recorded data, and what is said about them in the end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import rfmdp
from rfmdp.cli.output import PLAIN

if TYPE_CHECKING:
    from rfmdp.learning.coverage import Coverage
    from rfmdp.learning.run import Run
    from rfmdp.policies.collect import Worth
    from rfmdp.sources.checks import Check
    from rfmdp.sources.source import Source

SAVED = ".rfmdp"


@dataclass(frozen=True, slots=True)
class DataWords:
    """What was said about data, as it was said."""

    files: tuple[str, ...]
    manifest: str | None
    selection: str | None
    columns: tuple[str, ...]
    bad: str

    def source(self, model: rfmdp.FactoredMDP) -> Source:
        """Return the data, read and checked."""
        from rfmdp.sources.log.manifest import Manifest
        from rfmdp.sources.log.source import Bad, read_log
        from rfmdp.sources.recorded import KIND
        from rfmdp.sources.source import Recorded

        if any(file.endswith(SAVED) for file in self.files):
            if len(self.files) > 1 or self.manifest or self.selection or self.columns:
                raise rfmdp.ModelError(
                    f"--data: a {SAVED} file has everything in it; give it alone, without "
                    "--manifest, --selection and --column."
                )
            return Recorded(model, rfmdp.load(self.files[0], KIND))
        if self.bad not in [b.value for b in Bad]:
            raise rfmdp.ModelError(f"--bad must be refuse or omit, got '{self.bad}'.")
        said = Manifest() if self.manifest is None else Manifest.read(self.manifest)
        if self.selection is not None:
            said = replace(said, selection=self.selection)  # type: ignore[arg-type]
        said = replace(said, columns={**said.columns, **dict(map(_column, self.columns))})
        return read_log(model, *self.files, manifest=said, bad=Bad(self.bad), progress=_Teller())


def _column(text: str) -> tuple[str, str | None]:
    name, equals, column = text.partition("=")
    if not equals or not name:
        raise rfmdp.ModelError(f"--column must be NAME=COLUMN, got '{text}'.")
    return name, column or None


class _Teller:
    """Tells on standard error how many rows were read: at a terminal at once, else now and then."""

    def __init__(self) -> None:
        self._last = 0.0

    def __call__(self, rows: int, seconds: float) -> None:
        terminal = sys.stderr.isatty()
        if not terminal and seconds - self._last < PLAIN:
            return
        self._last = seconds
        text = f"reading data: {rows} rows, {rows / max(seconds, 1e-9):.3g} rows/s"
        print(f"{text:<79}", end="\r" if terminal else "\n", file=sys.stderr)


@dataclass(frozen=True, slots=True)
class AboutData:
    """What data cover, what they say about the assumptions, and what to collect next."""

    steps: int
    checks: tuple[Check, ...]
    coverage: Coverage
    next: list[Worth]

    def lines(self) -> Iterator[str]:
        """Yield it for people."""
        yield f"Checks of the assumptions by {self.steps} transitions:"
        yield from (f"  - {check}" for check in self.checks)
        yield str(self.coverage)
        helpful = [worth for worth in self.next if worth.gain > 0.0]
        if helpful:
            yield "Collect these next: the guarantee would improve by so much if one were known."
            yield f"{'gain':>10} {'samples':>10}  identifier"
            yield from (str(worth) for worth in helpful)

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "steps": self.steps,
            "checks": [asdict(check) | {"alarm": check.alarm} for check in self.checks],
            "coverage": [asdict(c) for c in self.coverage.identifiers],
            "collect_next": [asdict(worth) for worth in self.next],
        }


def about_data(source: Any, run: Run) -> AboutData:
    """Return what is to be said about data that a run was learned from."""
    from rfmdp.learning.coverage import coverage
    from rfmdp.policies.collect import collect_next

    worth = [] if run.alarms else collect_next(run)
    return AboutData(source.steps, source.check(run.model), coverage(run), worth)
