"""What the words of `rfmdp learn` mean: parts of a method, what is assumed, recorded data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce
from importlib import import_module
from typing import Any

from rfmdp.cli.options import PARTS
from rfmdp.cli.output import ProgressLines
from rfmdp.errors import ModelError
from rfmdp.learning.rewards import RewardRange
from rfmdp.model.arrays import FactoredMDP
from rfmdp.sources.log.manifest import Manifest
from rfmdp.sources.log.source import Log, read_log


def part(option: str, text: str | None) -> Any:
    """Return what the word of an option names, with the numbers behind its colons; None for none.

    >>> part("--schedule", "geometric:1.2")
    Geometric(factor=1.2, first=10)
    """
    if text is None:
        return None
    word, *numbers = text.split(":")
    places = {re.split(r"[\[:]", usage)[0]: place for usage, place in PARTS[option].items()}
    try:
        if not places[word]:
            return None
        module, *names = places[word].split(".")
        made: Any = reduce(getattr, names, import_module(f"rfmdp.learning.{module}"))
        values = [float(number) for number in numbers]
        if option == "--rewards":
            return made(RewardRange(*values))
        return made(*values) if callable(made) else made
    except (KeyError, ValueError, TypeError) as error:
        if isinstance(error, ModelError):
            raise ModelError(f"{option} {text}: {error}") from None
        words = ", ".join(PARTS[option])
        raise ModelError(f"{option} must be one of {words}; got '{text}'.") from None


def tie(text: str) -> list[int | str]:
    """Return the marginals of `NAME=NAME=...`, numbers as numbers.

    >>> tie("own: [up]=3")
    ['own: [up]', 3]
    """
    names = [name.strip() for name in text.split("=")]
    if len(names) < 2 or not all(names):
        raise ModelError(f"--tie must be NAME=NAME, marginals of the model; got '{text}'.")
    return [int(name) if name.isdecimal() else name for name in names]


def read_data(
    model: FactoredMDP,
    files: Sequence[str],
    manifest: str | None,
    selection: str | None,
    columns: Sequence[str],
) -> Log:
    """Return recorded data, read and checked."""
    said = Manifest() if manifest is None else Manifest.read(manifest)
    if selection is not None:
        said = replace(said, selection=selection)  # type: ignore[arg-type]
    said = replace(said, columns={**said.columns, **dict(map(_column, columns))})
    progress = partial(_print_progress, ProgressLines())
    return read_log(model, *files, manifest=said, progress=progress)


def _column(text: str) -> tuple[str, str | None]:
    name, equals, column = text.partition("=")
    if not equals or not name:
        raise ModelError(f"--column must be NAME=COLUMN, got '{text}'.")
    return name, column or None


def _print_progress(lines: ProgressLines, rows: int, seconds: float) -> None:
    text = f"reading data: {rows} rows, {rows / max(seconds, 1e-9):.3g} rows/s"
    lines.show(text, seconds, passing=True)
