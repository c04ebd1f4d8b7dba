"""Where something stands in a PRISM text, and errors that show the place."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import NamedTuple

from rfmdp.errors import PrismError

MAX_SHOWN = 200  # characters of a source line that an error message repeats
QUANTIFIERS = ("min", "max", "minmin", "minmax", "maxmin", "maxmax")
FUNCTIONS = ("min", "max", "floor", "ceil", "round", "pow", "mod", "log")
PROPERTY_WORDS = (
    *(letter + quantifier for letter in "PR" for quantifier in QUANTIFIERS),
    *QUANTIFIERS,
    *FUNCTIONS,
    *("filter", "state", "avg", "sum", "count", "forall", "exists", "first", "print", "printall"),
    *("range", "const", "formula", "label", "true", "false"),
)
MODEL_WORDS = (
    *("dtmc", "mdp", "idtmc", "imdp", "const", "int", "double", "bool", "formula", "label"),
    *("global", "module", "endmodule", "init", "endinit", "rewards", "endrewards"),
    *("true", "false"),
    *FUNCTIONS,
)
ALIKE = 0.74  # likeness of words, from 0 to 1; "Pmix" and "Pmin" have 0.75
WORD = re.compile(r"[A-Za-z_]\w*")
OTHER_LANGUAGES = (
    ("a JANI model", r"\s*\{[^}]*\"jani-version\""),
    ("PPDDL or another language of parentheses", r"\s*\(\s*(define|model|defdomain)\b"),
    (
        "a DRN file (stormpy.build_model_from_drn reads it, rf.from_stormpy takes it)",
        r"(\s*//.*\n)*\s*@type\s*:",
    ),
    ("an explicit .tra file (give it the suffix .tra)", r"\s*(dtmc|mdp)?\s*\d+ \d+( \d+)?\s*\n"),
    ("a POMDP file in Cassandra's format", r"(\s*#.*\n|\s)*(discount|values|states)\s*:"),
    ("PEPA", r"(?s).*?\(\s*\w+\s*,\s*[\w.]+\s*\)\s*\.\s*\w+|%"),
    ("properties, not a model", r"(\s*//.*\n|\s)*(P|R)((min|max){0,2}\s*(=\?|[<>])|\{)"),
)
OTHER_SIGNS = (  # what other tools write in formulas, and what it is here
    (r"\|\|", "'or' is written |, and conditional probabilities are not supported"),
    (r"&&", "'and' is written &"),
    (r"==", "'equal' is written ="),
)
OTHER_PROPERTIES = (
    (r"\bT\s*(min|max)*\s*(=\?|[<>])",
     'expected times (T) are rewards here: R{"steps"}=? [ F ... ] with rewards "steps" true : 1'),
    (r"\bF\s*\{\s*discount", "only C has a discount; let the target pay nothing and stay"),
    (r"\bC.*[^{]\bdiscount\s*=", "a discount is written C{discount=0.9}"),
    (r"\}\s*(\{(min|max)\}\s*)*\]", "choose states by filter(min, P=? [ ... ], states)"),
)  # fmt: skip
READ = "models in the PRISM language (dtmc, mdp, idtmc, imdp), .tra, .umb and .rfmdp are read"


class Position(NamedTuple):
    """A place in a text; line and column count from 1, (0, 0) is no place at all."""

    line: int
    column: int


NOWHERE = Position(0, 0)


class PrismSourceError(PrismError):
    """A `PrismError` that knows its place; `reason` is the message without it."""

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


def nearest(word: str, words: Collection[str]) -> str | None:
    """Return which of some words another one was probably meant to be.

    >>> nearest("fiter", PROPERTY_WORDS), nearest("queue", PROPERTY_WORDS)
    ('filter', None)
    """
    if word in words:
        return None
    matches = get_close_matches(word, [k for k in words if k[:1] == word[:1]], 1, ALIKE)
    return matches[0] if matches else None


def question(word: str, words: Collection[str]) -> str:
    """Return a question about a word that is not among some words, or nothing if none is near."""
    meant = nearest(word, words)
    return "" if meant is None else f"; did you mean '{meant}'?"


def misspelt(source: SourceText, position: Position, words: Collection[str]) -> str:
    """Return a question about the last misspelt word of a line up to a place, or nothing."""
    line = source.text.split("\n")[position.line - 1 : position.line]
    for word in reversed(list(WORD.finditer(line[0]) if line else [])):
        meant = nearest(word[0], words) if word.start() < position.column else None
        if meant is not None:
            return f"; did you mean '{meant}' instead of '{word[0]}'?"
    return ""


def other_tool(source: SourceText, position: Position, start: str) -> str:
    """Return what a line would be here that looks like one of another tool, or nothing."""
    line = source.text.split("\n")[position.line - 1 : position.line]
    for pattern, hint in (*(OTHER_PROPERTIES if start == "properties" else ()), *OTHER_SIGNS):
        if any(re.search(pattern, text) for text in line):
            return f"; {hint}"
    return ""


def other_language(source: SourceText) -> str:
    """Return what language a text looks like that is no PRISM model, or nothing."""
    for name, pattern in OTHER_LANGUAGES:
        if re.match(pattern, source.text):
            return f"; this looks like {name}: {READ}"
    return ""
