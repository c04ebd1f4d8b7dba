"""Where something stands in a PRISM text, and errors that show the place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rfmdp.errors import PrismError

MAX_SHOWN = 200  # characters of a source line that an error message repeats


class Position(NamedTuple):
    """A place in a text; line and column count from 1, (0, 0) is no place at all."""

    line: int
    column: int


NOWHERE = Position(0, 0)


class PrismSourceError(PrismError):
    """A `PrismError` that knows its place.

    Attributes
    ----------
    filename, line, column
        Where it is; line and column count from 1.
    reason
        The message without place, source line and caret.
    """

    def __init__(self, text: str, filename: str, position: Position, reason: str) -> None:
        super().__init__(text)
        self.filename = filename
        self.line, self.column = position
        self.reason = reason


class PrismUnsupportedError(PrismSourceError):
    """A construct that belongs to PRISM's language, and that rfmdp does not support."""


class BuildError(Exception):
    """Raised while a tree is made, where the text is not known; `parse` adds the source line."""

    def __init__(
        self,
        position: Position,
        reason: str,
        supported: bool = True,
        words: Sequence[str] = (),  # what may stand there, if a word is wrong
    ) -> None:
        super().__init__(reason)
        self.position = position
        self.reason = reason
        self.supported = supported
        self.words = words


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text with the name under which errors mention it."""

    text: str = field(repr=False)
    filename: str = "<text>"

    def error(self, position: Position, reason: str) -> PrismSourceError:
        r"""Return (not raise) the error for `position`: place, reason, source line, caret.

        >>> print(SourceText("dtmc\nmodul x", "a.prism").error(Position(2, 1), "no such thing"))
        a.prism:2:1: no such thing
        modul x
        ^
        """
        return PrismSourceError(self._show(position, reason), self.filename, position, reason)

    def unsupported(self, position: Position, construct: str, hint: str = "") -> PrismSourceError:
        """Return the error that names a construct as not supported."""
        reason = f"{construct} is not supported" + (f"; {hint}" if hint else "")
        text = self._show(position, reason)
        return PrismUnsupportedError(text, self.filename, position, reason)

    def _show(self, position: Position, reason: str) -> str:
        if position == NOWHERE:
            return f"{self.filename}: {reason}"
        head = f"{self.filename}:{position.line}:{position.column}: {reason}"
        # not splitlines(): only '\n' ends a line here, as in the lexer
        lines = self.text.split("\n")
        if not 1 <= position.line <= len(lines):
            return head
        line = lines[position.line - 1].rstrip("\r")
        start = max(0, position.column - MAX_SHOWN // 2)
        shown = line[start : start + MAX_SHOWN]
        before = line[start : position.column - 1]
        caret = "".join("\t" if c == "\t" else " " for c in before) + "^"
        return f"{head}\n{shown}\n{caret}"
