"""Types of expressions: int, double and bool, with int accepted where double is expected."""

from __future__ import annotations

from collections.abc import Mapping

from rfmdp.language.expressions import (
    Binary,
    Call,
    Expr,
    Ite,
    Label,
    Literal,
    Name,
    Type,
    Unary,
    fold,
)
from rfmdp.language.source import SourceText, question

# what operators and functions need, and what they give; None: int or double, as their operands
SIGNATURES: dict[str, tuple[Type, Type | None]] = {
    **dict.fromkeys(("&", "|", "=>", "<=>", "!"), (Type.BOOL, Type.BOOL)),
    **dict.fromkeys(("<", "<=", ">", ">="), (Type.DOUBLE, Type.BOOL)),
    **dict.fromkeys(("+", "-", "*", "^", "min", "max", "pow"), (Type.DOUBLE, None)),
    **dict.fromkeys(("floor", "ceil", "round"), (Type.DOUBLE, Type.INT)),
    **dict.fromkeys(("/", "log"), (Type.DOUBLE, Type.DOUBLE)),
    "mod": (Type.INT, Type.INT),
}
ARITY = {"min": None, "max": None, "floor": 1, "ceil": 1, "round": 1, "pow": 2, "mod": 2, "log": 2}


def type_of(expr: Expr, names: Mapping[str, Type], source: SourceText) -> Type:
    """Return the type of an expression, or raise its first mistake.

    names : the type of every constant and variable that may appear

    >>> from rfmdp.language.expressions import Literal
    >>> type_of(Binary("/", Literal(4), Literal(2)), {}, SourceText("4/2")).value
    'double'
    """
    return fold(expr, lambda node, below: node_type(node, below, names, source))


def can_assign(target: Type, value: Type) -> bool:
    """Return whether a value of one type may stand where another is expected."""
    return target is value or (target is Type.DOUBLE and value is Type.INT)


def require(expr: Expr, expected: Type, type_: Type, what: str, source: SourceText) -> None:
    """Raise unless a type fits the one expected."""
    if not can_assign(expected, type_):
        expected_text = "int or double" if expected is Type.DOUBLE else expected.value
        raise source.error(
            expr.position, f"{what} must be of type {expected_text}, found {type_.value}"
        )


def node_type(
    node: Expr, below: tuple[Type, ...], names: Mapping[str, Type], source: SourceText
) -> Type:
    """Return the type of one node, given the types of its children."""
    match node:
        case Literal():
            return node.type
        case Name(name):
            if name not in names:
                raise source.error(
                    node.position,
                    f"unknown name '{name}'; it must be a constant, formula or variable"
                    + question(name, names),
                )
            return names[name]
        case Label():
            return Type.BOOL
        case Binary("=" | "!=") | Ite():
            return _common_type(node, below, source)
        case Unary(word):
            what = "the operand"
        case Binary(word):
            what = "an operand"
        case Call(word):
            _check_call(node, source)
            what = "an argument"
        case _:
            reason = "expected an expression without P, R or path operators"
            raise source.error(node.position, reason)
    expected, result = SIGNATURES[word]
    for child, type_ in zip(node.children(), below, strict=True):
        require(child, expected, type_, f"{what} of '{word}'", source)
    return result or (Type.DOUBLE if Type.DOUBLE in below else Type.INT)


def _common_type(node: Expr, below: tuple[Type, ...], source: SourceText) -> Type:
    """Return the type of a comparison or choice, both sides of which must be of one type."""
    place, what, result = node.position, "", Type.BOOL
    first, second = below[-2:]
    if isinstance(node, Binary):
        what = f"both sides of '{node.operator}'"
    elif isinstance(node, Ite):
        require(node.condition, Type.BOOL, below[0], "the condition of '?'", source)
        place, what = node.then.position, "both results of '?'"
        result = first if first is second else Type.DOUBLE
    if (first is Type.BOOL) != (second is Type.BOOL):
        types = f"{first.value} and {second.value}"
        raise source.error(place, f"{what} must be of one type, found {types}")
    return result


def _check_call(node: Call, source: SourceText) -> None:
    if node.function not in ARITY:
        listed = ", ".join(ARITY)
        reason = f"unknown function '{node.function}'; there are {listed}"
        raise source.error(node.position, reason)
    expected, count = ARITY[node.function], len(node.arguments)
    if expected not in (None, count):
        reason = f"'{node.function}' must have {expected} argument(s), found {count}"
        raise source.error(node.position, reason)
