"""Text of PRISM properties to their tree.

A construct that rfmdp does not support does not make a file unreadable: it becomes an
`Unsupported` node, and `require_supported` names it when that property is used.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from lark import Lark, Token

from rfmdp.language import ast
from rfmdp.language import property_ast as props
from rfmdp.language.ast import Binary, Expr, Name, nodes
from rfmdp.language.grammar import (
    BuildError,
    hinted,
    make_parser,
    parse,
    position_of,
    unknown_function,
)
from rfmdp.language.parse import ExpressionBuilder, all_of, unquoted
from rfmdp.language.property_ast import (
    Bound,
    CumulativeReward,
    Optimum,
    Path,
    TimeBound,
    Unsupported,
)
from rfmdp.language.source import SourceText
from rfmdp.language.write import write_expression

PLAIN = (ast.Literal, ast.Name, ast.Label, ast.Unary, ast.Binary, ast.Ite, ast.Call)
STEADY = "the steady-state operator 'S'"


def parse_property_file(text: str, filename: str = "<properties>") -> props.PropertyFile:
    """Return the tree of a property file; properties end with ';' or where the next begins.

    Raises
    ------
    PrismError
        If the text is not in the language. Properties that are, but that rfmdp does not support,
        raise when they are checked.

    Examples
    --------
    >>> file = parse_property_file('"a": P=? [ F x=1 ]; Pmaxmin=? [ G !"bad" ]')
    >>> [prop.name for prop in file.properties]
    ['a', None]
    """
    source = SourceText(text.removeprefix("\ufeff"), filename)
    items: list[Any] = parse(_parser(), source, "properties")
    for item in items:
        _check_no_call(item, source)
    return props.PropertyFile(
        all_of(items, props.PropertyDefinition),
        all_of(items, ast.Constant),
        all_of(items, ast.Formula),
        all_of(items, ast.LabelDefinition),
        source,
    )


@cache
def _parser() -> Lark:
    return make_parser(["properties"], PropertyBuilder())


class PropertyBuilder(ExpressionBuilder):
    """Makes properties; each method has the name of a rule of the grammar."""

    def properties(self, parts: list[Any]) -> list[Any]:
        """Hand all items on to `parse_property_file`, which knows the source."""
        return parts

    def property(self, parts: list[Any]) -> props.PropertyDefinition:
        """Make a property with its name."""
        name, expression = parts
        if name is None:
            return props.PropertyDefinition(None, expression, position=expression.position)
        return props.PropertyDefinition(unquoted(name), expression, position=position_of(name))

    def constant(self, parts: list[Any]) -> ast.Constant:
        """Make a constant, after a look at its value."""
        return ExpressionBuilder.constant(self, [*parts[:-1], _plain(parts[-1])])

    def formula(self, parts: list[Any]) -> ast.Formula:
        """Make a formula, after a look at its value."""
        return ExpressionBuilder.formula(self, [parts[0], _plain(parts[1])])

    def label(self, parts: list[Any]) -> ast.LabelDefinition:
        """Make a label, after a look at its value."""
        return ExpressionBuilder.label(self, [parts[0], _plain(parts[1])])

    def call(self, parts: list[Any]) -> Expr:
        """Make a function call; the multi-objective one is not supported."""
        function, *arguments = parts
        if function != "multi":
            return ExpressionBuilder.call(self, parts)
        text = f"multi({', '.join(write_expression(argument) for argument in arguments)})"
        construct = "the multi-objective 'multi(...)'"
        return Unsupported(construct, text, position=position_of(function))

    def unary_path(self, parts: list[Any]) -> Expr:
        """Make X, F or G."""
        operator, brace, time, operand = parts
        discount = None if brace is None else _discount(brace)
        if brace is not None and discount is None:
            reason = f"expected 'discount=...' in the braces after '{operator}'"
            raise BuildError(brace.position, reason)
        position = position_of(operator)
        return Path(str(operator), None, operand, time, discount, position=position)

    def binary_path(self, parts: list[Any]) -> Expr:
        """Make U, W or R."""
        left, operator, time, right = parts
        return Path(str(operator), left, right, time, position=left.position)

    def time(self, parts: list[Any]) -> TimeBound:
        """Make a bound on steps."""
        sign, *bounds = parts
        first, position = _plain(bounds[0]), position_of(sign)
        if sign == "[":
            return TimeBound(first, _plain(bounds[1]), position=position)
        if sign == "=":
            return TimeBound(first, first, position=position)
        strict = len(sign) == 1
        if sign.startswith("<"):
            return TimeBound(None, first, upper_strict=strict, position=position)
        return TimeBound(first, None, lower_strict=strict, position=position)

    def brace(self, parts: list[Expr]) -> Expr:
        """Hand on what is in braces: a discount, or the states of an old filter."""
        return parts[0]

    def old_filter(self, parts: list[Any]) -> Any:
        """Hand on one of the braces at the end of P or R."""
        return parts[0]

    def quantifier(self, parts: list[Any]) -> str:
        """Join `min max` to `minmax`."""
        return "".join(str(part) for part in parts if part is not None)

    def query(self, parts: list[Any]) -> Bound | None:
        """Make the bound after P or R, None for `=?`."""
        if not parts:
            return None
        sign, value = parts
        return Bound(str(sign), _plain(value), position=position_of(sign))

    def p_head(self, parts: list[Any]) -> tuple[Token, str]:
        """Split `Pmaxmin` into the place and the quantifier."""
        token, *rest = parts
        return token, str(token)[1:] + (rest[0] if rest and rest[0] else "")

    def r_head(self, parts: list[Any]) -> tuple[Token, str, str | Expr | None]:
        """Split `R{"r"}max` into the place, the quantifier and the structure."""
        token, structure, *rest = parts
        return token, str(token)[1:] + (rest[0] if rest and rest[0] else ""), structure

    def reward_index(self, parts: list[Any]) -> str | Expr:
        """Make the name or number of a reward structure."""
        return unquoted(parts[0]) if isinstance(parts[0], Token) else _plain(parts[0])

    def probability(self, parts: list[Any]) -> Expr:
        """Make P."""
        (token, quantifier), bound, path, *filters = parts
        agent, nature = _optima(quantifier)
        position = position_of(token)
        operator = props.Probability(agent, nature, bound, path, position=position)
        return _filtered(operator, bound, filters)

    def reward(self, parts: list[Any]) -> Expr:
        """Make R."""
        (token, quantifier, structure), bound, path, *filters = parts
        agent, nature = _optima(quantifier)
        if isinstance(path, tuple):  # 'C {states}': the braces were no discount
            path, states = path
            filters = [states, *filters]
        path = _storm_discount(path)
        position = position_of(token)
        operator = props.Reward(structure, agent, nature, bound, path, position=position)
        return _filtered(operator, bound, filters)

    def total(self, parts: list[Any]) -> Expr | tuple[Expr, Expr]:
        """Make C, with steps or without, and with the discount of PRISM or of Storm."""
        token, brace, (steps, word, storm) = parts[0], parts[1], parts[2] or (None, None, None)
        position = position_of(token)
        discount = None if brace is None else _discount(brace)
        if word is not None:
            if word != "discount" or discount is not None:
                reason = f"expected ']', found '{word[:40]}'"
                raise BuildError(position_of(word), reason)
            discount = _plain(storm)
        steps = None if steps is None else _plain(steps)
        result = CumulativeReward(steps, discount, position=position)
        if brace is None or discount is not None:
            return result
        if steps is not None:
            raise BuildError(brace.position, "expected 'discount=...' in the braces after 'C'")
        return result, brace

    def steps(self, parts: list[Any]) -> tuple[Any, ...]:
        """Hand on the steps of C and Storm's discount after them."""
        return tuple(parts)

    def instantaneous(self, parts: list[Any]) -> Expr:
        """Make I=k."""
        return props.InstantaneousReward(_plain(parts[1]), position=position_of(parts[0]))

    def long_run(self, parts: list[Token]) -> Expr:
        """Make the long-run average reward, which is not supported."""
        construct = "the long-run average reward 'R [ S ]'"
        return Unsupported(construct, "S", position=position_of(parts[0]))

    def steady(self, parts: list[Any]) -> Expr:
        """Make the steady-state operator, which is not supported."""
        token, bound, path, *_ = parts
        query = "=?" if bound is None else bound.operator + write_expression(bound.value)
        text = f"S{query} [ {write_expression(path)} ]"
        return Unsupported(STEADY, text, position=position_of(token))

    def ctl(self, parts: list[Any]) -> Expr:
        """Make E or A."""
        token, path = parts
        return props.Quantified(token == "A", path, position=position_of(token))

    def coalition(self, parts: list[Any]) -> Expr:
        """Make a game operator, which is not supported."""
        token, *players, operand = parts
        opened, closed = str(token), ">>" if token == "<<" else "]]"
        listed = ",".join(str(player) for player in players)
        text = f"{opened}{listed}{closed} ({write_expression(operand)})"
        construct = f"the game operator '{opened}...{closed}'"
        return Unsupported(construct, text, position=position_of(token))

    def automaton(self, parts: list[Any]) -> Expr:
        """Make an automaton from a file, which is not supported."""
        token, file, *rest = parts
        named = zip(rest[::4], rest[3::4], strict=True)
        texts = [str(file), *(f"{label} <- {write_expression(value)}" for label, value in named)]
        text = f"HOA: {{{', '.join(texts)}}}"
        return Unsupported("an automaton ('HOA: {...}')", text, position=position_of(token))

    def filter(self, parts: list[Any]) -> Expr:
        """Make a filter by its name or alias."""
        token, operator, operand, states = parts
        name = props.FILTER_ALIASES.get(operator, str(operator))
        if name not in props.FILTERS:
            known = ", ".join(props.FILTERS)
            reason = f"unknown filter '{operator[:40]}'; there are {known}"
            raise BuildError(position_of(operator), reason)
        return props.Filter(name, operand, states, position=position_of(token))


def _check_no_call(item: Any, source: SourceText) -> None:
    """Raise if a property is a lone name before a parenthesis, which was meant as a function."""
    expr = item.expression if isinstance(item, props.PropertyDefinition) else None
    if not isinstance(expr, Name):
        return
    line = source.text.split("\n")[expr.position.line - 1]
    if line[expr.position.column - 1 + len(expr.name) :].lstrip().startswith("("):
        error = unknown_function(expr.name, expr.position, source)
        raise hinted(error, source, "properties")


def _plain(expr: Any) -> Any:
    """Return an expression that has no P, R or path operators, or raise."""
    for node in [] if expr is None else nodes(expr):
        if not isinstance(node, PLAIN):
            reason = "expected an expression without P, R or path operators"
            raise BuildError(node.position, reason)
    return expr


def _discount(brace: Any) -> Expr | None:
    """Return the value of `discount=value` in braces, None if it says something else."""
    if isinstance(brace, Binary) and brace.operator == "=" and brace.left == Name("discount"):
        value: Expr = _plain(brace.right)
        return value
    return None


def _storm_discount(path: Expr) -> Expr:
    """Read Storm's `Cdiscount=value`, which looks like a comparison."""
    if isinstance(path, Binary) and path.operator == "=" and path.left == Name("Cdiscount"):
        return CumulativeReward(None, _plain(path.right), position=path.position)
    return path


def _optima(quantifier: str) -> tuple[Optimum | None, Optimum | None]:
    words = [quantifier[k : k + 3] for k in range(0, len(quantifier), 3)]
    optima = [Optimum(word) for word in words]
    return (*optima, None, None)[0], (*optima, None, None)[1]


def _filtered(operator: Expr, bound: Bound | None, filters: list[Any]) -> Expr:
    """Wrap P or R in the filter that braces after its path formula ask for (PRISM 3's form)."""
    if not filters:
        return operator
    states, *words = filters
    if isinstance(states, Token) or any(not isinstance(word, Token) for word in words):
        position = position_of(states) if isinstance(states, Token) else states.position
        raise BuildError(position, "expected {states}, then at most {min} and {max}")
    asked = {str(word) for word in words}
    name = "state" if not asked else "range" if len(asked) == 2 else asked.pop()
    name = "forall" if bound is not None else name
    return props.Filter(name, operator, states, position=operator.position)
