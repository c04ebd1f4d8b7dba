"""Types of expressions: int, double and bool, with int accepted where double is expected."""

from __future__ import annotations

from collections.abc import Mapping

from rfmdp.language.ast import Binary, Call, Expr, Ite, Label, Literal, Name, Type, Unary, fold
from rfmdp.language.source import SourceText, question

BOOLEAN_OPERATORS = frozenset({"&", "|", "=>", "<=>"})
ORDER_OPERATORS = frozenset({"<", "<=", ">", ">="})
EQUALITY_OPERATORS = frozenset({"=", "!="})
ARITY: dict[str, tuple[int, int | None]] = {  # smallest and largest number of arguments
    "min": (1, None),
    "max": (1, None),
    "floor": (1, 1),
    "ceil": (1, 1),
    "round": (1, 1),
    "pow": (2, 2),
    "mod": (2, 2),
    "log": (2, 2),
}
ROUNDING = frozenset({"floor", "ceil", "round"})


def type_of(expr: Expr, names: Mapping[str, Type], source: SourceText) -> Type:
    """Return the type of an expression, or raise its first mistake.

    names : the type of every constant and variable that may appear

    >>> from rfmdp.language.ast import Literal
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
        case Unary(operator):
            expected = Type.BOOL if operator == "!" else Type.DOUBLE
            require(node.operand, expected, below[0], f"the operand of '{operator}'", source)
            return below[0]
        case Binary():
            return _binary_type(node, below, source)
        case Ite():
            return _choice_type(node, below, source)
        case Call():
            return _call_type(node, below, source)
    raise source.error(node.position, "expected an expression without P, R or path operators")


def _binary_type(node: Binary, below: tuple[Type, ...], source: SourceText) -> Type:
    operator = node.operator
    if operator in EQUALITY_OPERATORS:
        if (below[0] is Type.BOOL) != (below[1] is Type.BOOL):
            types = f"{below[0].value} and {below[1].value}"
            raise source.error(
                node.position, f"both sides of '{operator}' must be of one type, found {types}"
            )
        return Type.BOOL
    expected = Type.BOOL if operator in BOOLEAN_OPERATORS else Type.DOUBLE
    for child, type_ in zip(node.children(), below, strict=True):
        require(child, expected, type_, f"an operand of '{operator}'", source)
    if expected is Type.BOOL or operator in ORDER_OPERATORS:
        return Type.BOOL
    return Type.DOUBLE if operator == "/" else _joined(below)


def _choice_type(node: Ite, below: tuple[Type, ...], source: SourceText) -> Type:
    condition, then, otherwise = below
    require(node.condition, Type.BOOL, condition, "the condition of '?'", source)
    if (then is Type.BOOL) != (otherwise is Type.BOOL):
        types = f"{then.value} and {otherwise.value}"
        raise source.error(
            node.then.position, f"both results of '?' must be of one type, found {types}"
        )
    return then if then is otherwise else Type.DOUBLE


def _call_type(node: Call, below: tuple[Type, ...], source: SourceText) -> Type:
    function = node.function
    count = len(below)
    if function not in ARITY:
        listed = ", ".join(ARITY)
        raise source.error(node.position, f"unknown function '{function}'; there are {listed}")
    smallest, largest = ARITY[function]
    if count < smallest or (largest is not None and count > largest):
        expected = "at least 1 argument" if largest is None else f"{smallest} argument(s)"
        raise source.error(node.position, f"'{function}' must have {expected}, found {count}")
    required = Type.INT if function == "mod" else Type.DOUBLE
    for child, type_ in zip(node.arguments, below, strict=True):
        require(child, required, type_, f"an argument of '{function}'", source)
    if function == "log":
        return Type.DOUBLE
    return Type.INT if function in ROUNDING else _joined(below)


def _joined(types: tuple[Type, ...]) -> Type:
    return Type.DOUBLE if Type.DOUBLE in types else Type.INT
