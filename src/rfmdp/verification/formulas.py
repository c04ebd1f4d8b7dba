"""Which states a text means: labels, variables, constants and formulas of the file, compared.

What a property calls a set of states is only a text unless it is evaluated here. Texts with other
things in them (nested properties, functions, products) are not evaluated; then nobody knows more
than the list of states.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rfmdp.types import AnyArray, BoolArray
from rfmdp.verification.lattice_model import Lattice
from rfmdp.verification.reading import Model

TOKEN = re.compile(
    r'\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?)|("[^"]*")|(\w+)|(<=>|=>|<=|>=|!=|[-+&|!=<>()]))'
)
LEVELS: list[dict[str, Callable[[Any, Any], Any]]] = [  # from the loosest to the tightest
    {"=>": lambda a, b: ~a | b}, {"<=>": operator.eq}, {"|": operator.or_}, {"&": operator.and_},
    {},  # "!"
    {"=": operator.eq, "!=": operator.ne},
    {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge},
    {"+": operator.add, "-": operator.sub},
]  # fmt: skip
NOT = 4  # the level of "!"
LOGICAL = ("=>", "<=>", "|", "&", "!")
LONGEST = 2_000  # characters of a text that is evaluated
DEEPEST = 40  # parentheses, signs, and formulas within formulas


class NotEvaluated(Exception):
    """A text with more in it than is known here."""


def meaning(model: Model | Lattice, text: str) -> BoolArray | None:
    """Return where (S,) a text holds; None if it is not evaluated here.

    Raises
    ------
    Fault
        If it names a label that the model does not have.
    """
    try:
        value = _Reader(model, text, 0).whole()
    except NotEvaluated:
        return None
    return value if value.dtype == np.bool_ else None


class _Reader:
    """A text that is read from left to right."""

    def __init__(self, model: Model | Lattice, text: str, depth: int) -> None:
        self.model, self.depth = model, depth
        self.tokens: list[str] = []
        place = 0
        text = text.rstrip()
        _known(len(text) <= LONGEST and depth <= DEEPEST)
        while place < len(text):
            match = TOKEN.match(text, place)
            _known(match is not None)
            assert match is not None
            self.tokens.append(match.group().strip())
            place = match.end()

    def whole(self) -> AnyArray:
        value = self._level(0)
        _known(not self.tokens)
        return value

    def _level(self, level: int) -> AnyArray:
        if level == len(LEVELS):
            return self._atom()
        if level == NOT and self._take("!"):
            self._deeper()
            return ~_logical(self._level(NOT))
        value = self._level(level + 1)
        while self.tokens and self.tokens[0] in LEVELS[level]:
            word = self.tokens.pop(0)
            other = self._level(level + 1)
            if word in LOGICAL:
                value, other = _logical(value), _logical(other)
            _known((value.dtype == np.bool_) == (other.dtype == np.bool_))
            value = LEVELS[level][word](value, other)
            if word in ("=>", "<", "<=", ">", ">=", "=", "!="):
                break  # these are not chained
        return value

    def _atom(self) -> AnyArray:
        _known(self.tokens)
        token = self.tokens.pop(0)
        if token in ("(", "-"):
            self._deeper()
            value = self._level(0) if token == "(" else self._atom()
            _known(self._take(")") if token == "(" else value.dtype != np.bool_)
            return value if token == "(" else -value
        if token.startswith('"'):
            return self.model.label(token[1:-1])
        return np.full(self.model.states, self._named(token))

    def _named(self, token: str) -> Any:
        if token in ("true", "false"):
            return token == "true"
        if token[0].isdigit():
            _known(len(token) <= 15 or not token.isdigit())
            return int(token) if token.isdigit() else float(token)
        if token in self.model.variables:
            return self.model.variables[token]
        value = self.model.formulas.get(token)
        if isinstance(value, Mapping):
            return _Reader(self.model, str(value.get("expression")), self.depth + 1).whole()
        _known(isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < 2**53))
        return value

    def _deeper(self) -> None:
        self.depth += 1
        _known(self.depth <= DEEPEST)

    def _take(self, token: str) -> bool:
        if self.tokens[:1] != [token]:
            return False
        self.tokens.pop(0)
        return True


def _known(holds: object) -> None:
    if not holds:
        raise NotEvaluated


def _logical(value: AnyArray) -> AnyArray:
    _known(value.dtype == np.bool_)
    return value
