"""PRISM files and texts to models."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from rfmdp.errors import FileError
from rfmdp.language.build import build_model
from rfmdp.language.check import check_model
from rfmdp.language.constants import Constants
from rfmdp.language.parse import parse_model
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.frontier import Progress


def load_prism(
    path: str | PathLike[str],
    constants: Constants | None = None,
    *,
    progress: Progress | None = None,
) -> FactoredMDP:
    """Return the model of a PRISM file; states without choice get a self-loop, with a warning.

    Parameters
    ----------
    path
        A model file in the PRISM language: dtmc, mdp, idtmc or imdp.
    constants
        Values of constants that the file leaves open; a string is read as an expression.
    progress
        Called now and then as progress(states, transitions): how many so far.

    Raises
    ------
    FileError
        If the file cannot be read.
    PrismError
        For a mistake in the text, with file, line, column, source line and caret.
    """
    return parse_prism(read_text(path), constants, filename=str(path), progress=progress)


def parse_prism(
    text: str,
    constants: Constants | None = None,
    *,
    filename: str = "<model>",
    progress: Progress | None = None,
) -> FactoredMDP:
    """Return the model of a text in the PRISM language; see `load_prism`.

    Examples
    --------
    >>> model = parse_prism("mdp module m x : [0..3]; [] true -> (x'=mod(x+1,4)); endmodule")
    >>> model.states, model.transitions
    (4, 4)
    """
    return build_model(check_model(parse_model(text, filename), constants), progress)


def read_text(path: str | PathLike[str]) -> str:
    """Return the text of a file in UTF-8, or raise FileError."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise FileError(f"{path}: the file cannot be read: {reason}.") from None
    except ValueError as error:
        raise FileError(f"{path!r}: this is no file name: {error}.") from None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileError(
            f"{path}: the file must be text in UTF-8, found byte 0x{data[error.start]:02x} "
            f"in line {line}."
        ) from None
