"""Precedences of PRISM's operators, and the tree of a flat chain of operands.

Loosest first: `=>` (right), `<=>`, `|`, `&`, `!`, `= !=`, `< <= > >=`, `+ -`, `* /`, `^` (right),
unary minus. Unary minus binds tighter than `^`, so `-a^b` is `(-a)^b`; `!` binds looser than
comparisons, so `!a=b` is `!(a=b)`. Looser than all of them is `?:`, which the grammar knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rfmdp.language.ast import Binary, Expr, Unary
from rfmdp.language.source import BuildError, Position

BINARY = {
    "=>": 1,
    "<=>": 2,
    "|": 3,
    "&": 4,
    "=": 6,
    "!=": 6,
    "<": 7,
    "<=": 7,
    ">": 7,
    ">=": 7,
    "+": 8,
    "-": 8,
    "*": 9,
    "/": 9,
    "^": 10,
}
UNARY = {"!": 5, "-": 11}
RIGHT = frozenset({"=>", "^"})
LOOSEST = 0  # of ?: and of temporal operators
TIGHTEST = 12  # of atoms


class OperatorSign(NamedTuple):
    """An operator sign with its place."""

    sign: str
    position: Position


def tree(chain: Sequence[OperatorSign | Expr]) -> Expr:
    """Build the tree of operands, prefix and infix operators in the order of the text.

    >>> from rfmdp.language.ast import Name
    >>> plus, times = OperatorSign("+", Position(1, 2)), OperatorSign("*", Position(1, 4))
    >>> tree([Name("a"), plus, Name("b"), times, Name("c")]).operator
    '+'

    Raises
    ------
    BuildError
        If `!` is the operand of a tighter operator as in `a = !b`, which PRISM does not allow.
    """
    operands: list[Expr] = []
    waiting: list[tuple[int, int, OperatorSign]] = []  # precedence, number of operands, operator
    prefix = True
    for part in chain:
        if isinstance(part, Expr):
            operands.append(part)
            prefix = False
        elif prefix:
            precedence = UNARY[part.sign]
            if waiting and waiting[-1][0] > precedence:
                reason = "expected an operand, found '!'; write the negation in parentheses"
                raise BuildError(part.position, reason)
            waiting.append((precedence, 1, part))
        else:
            precedence = BINARY[part.sign]
            while waiting and _goes_first(waiting[-1], precedence, part.sign):
                _apply(operands, waiting.pop())
            waiting.append((precedence, 2, part))
            prefix = True
    while waiting:
        _apply(operands, waiting.pop())
    return operands[0]


def _goes_first(top: tuple[int, int, OperatorSign], precedence: int, sign: str) -> bool:
    return top[0] > precedence or (top[0] == precedence and sign not in RIGHT)


def _apply(operands: list[Expr], entry: tuple[int, int, OperatorSign]) -> None:
    _, arity, operator = entry
    right = operands.pop()
    if arity == 1:
        operands.append(Unary(operator.sign, right, position=operator.position))
    else:
        left = operands.pop()
        operands.append(Binary(operator.sign, left, right, position=left.position))
