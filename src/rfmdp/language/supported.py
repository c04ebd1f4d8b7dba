"""Which properties rfmdp supports, decided by their form alone."""

from __future__ import annotations

from enum import Enum

from rfmdp.language.ast import Binary, Expr, Ite, Unary, fold
from rfmdp.language.property_ast import (
    CumulativeReward,
    Filter,
    InstantaneousReward,
    Path,
    Probability,
    Quantified,
    Reward,
    Unreadable,
    Unsupported,
)
from rfmdp.language.source import SourceText

LTL = "an LTL formula"
LTL_HINT = "use one of X, F, G, U, W, R over state formulas"


class FormulaKind(Enum):
    """What kind of formula an expression is."""

    STATE = "a state formula"
    PATH = "a path formula"
    REWARD = "a reward formula"


def require_supported(expr: Expr, source: SourceText) -> None:
    """Raise unless the property is built of supported parts in the supported way.

    Raises
    ------
    PrismError
        That names the construct (LTL, S, multi, games) and its place.
    """
    form = fold(expr, lambda node, below: _form(node, below, source))
    if form is not FormulaKind.STATE:
        reason = "a path formula must stand inside P or R, for example P=? [ F x=1 ]"
        raise source.error(expr.position, reason)


def _form(node: Expr, below: tuple[FormulaKind, ...], source: SourceText) -> FormulaKind:
    match node:
        case Unsupported(construct):
            raise source.unsupported(node.position, construct)
        case Unreadable(_, reason):
            raise source.error(node.position, reason)
        case CumulativeReward() | InstantaneousReward():
            return FormulaKind.REWARD
        case Path():
            _check_path(node, below, source)
            return FormulaKind.PATH
        case Unary("!"):
            return below[0]
        case Probability():
            _check_probability(node, source)
            return FormulaKind.STATE
        case Reward():
            _check_reward(node, source)
            return FormulaKind.STATE
        case Quantified():
            _check_quantified(node, source)
            return FormulaKind.STATE
    if all(form is FormulaKind.STATE for form in below):
        return FormulaKind.STATE
    if isinstance(node, Binary | Ite):
        raise source.unsupported(node.position, LTL + " (operators over path formulas)", LTL_HINT)
    what = "a filter" if isinstance(node, Filter) else "an operator or function"
    reason = f"the operand of {what} must be a state formula, found a path formula"
    raise source.error(node.children()[0].position, reason)


def _check_path(node: Path, below: tuple[FormulaKind, ...], source: SourceText) -> None:
    if any(form is not FormulaKind.STATE for form in below):
        raise source.unsupported(node.position, LTL + " (nested path operators)", LTL_HINT)
    if node.operator == "X" and node.time is not None:
        raise source.error(node.time.position, "'X' must have no bound on steps")
    if node.discount is not None and node.operator != "F":
        reason = f"'{node.operator}' must have no discount; only C and F inside R have one"
        raise source.error(node.discount.position, reason)


def _without_not(path: Expr) -> Expr:
    while isinstance(path, Unary):
        path = path.operand
    return path


def _check_probability(node: Probability, source: SourceText) -> None:
    path = _without_not(node.path)
    if isinstance(path, Path) and path.discount is not None:
        reason = "a path formula inside P must have no discount; only C and F inside R have one"
        raise source.error(path.discount.position, reason)


def _check_quantified(node: Quantified, source: SourceText) -> None:
    path = _without_not(node.path)
    if isinstance(path, Path) and (path.time is not None or path.discount is not None):
        letter = "A" if node.every else "E"
        construct = f"a bound on steps inside '{letter}'"
        raise source.unsupported(path.position, construct, "use P>=1 or P>0 instead")


def _check_reward(node: Reward, source: SourceText) -> None:
    path = node.path
    if isinstance(path, CumulativeReward | InstantaneousReward):
        return
    if not isinstance(path, Path) or path.operator != "F" or path.time is not None:
        construct = "a reward over a co-safe LTL formula"
        raise source.unsupported(path.position, construct, "use F, C<=k, C or I=k inside R")
