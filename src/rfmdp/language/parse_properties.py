"""Text of PRISM properties to their tree.

A property that rfmdp does not support, or cannot read, does not make a file unreadable: it becomes
an `Unsupported` or `Unreadable` node, and `require_supported` says so when that property is used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from lark import Lark, Token

from rfmdp.language import ast, property_ast as props
from rfmdp.language.ast import Binary, Expr, Name, nodes
from rfmdp.language.grammar import (
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
    Path,
    TimeBound,
    Unsupported,
)
from rfmdp.language.source import BuildError, Position, PrismSourceError, SourceText
from rfmdp.language.write import write_expression
from rfmdp.objective import Direction

PLAIN = (ast.Literal, ast.Name, ast.Label, ast.Unary, ast.Binary, ast.Ite, ast.Call)
DEFINITION = re.compile(r"(\s|//.*\n)*(const|label|formula|prob|rate)\b")
PIECES = re.compile(r'"[^"\n]*"|//[^\n]*|\n|[^"/\n]|/|"')  # names, comments and single characters


def parse_property_file(text: str, filename: str = "<properties>") -> props.PropertyFile:
    """Return the tree of a property file; properties end with ';' or where the next begins.

    Raises
    ------
    PrismError
        If a definition cannot be read, or none of several properties. Single properties that are
        not in the language, or that rfmdp does not support, raise when they are checked.

    Examples
    --------
    >>> file = parse_property_file('"a": P=? [ F x=1 ]; Pmaxmin=? [ G !"bad" ]')
    >>> [prop.name for prop in file.properties]
    ['a', None]
    """
    source = SourceText(text.removeprefix("\ufeff"), filename)
    items, unreadable = _readable(source)
    definitions = all_of(items, props.PropertyDefinition)
    return props.PropertyFile(
        tuple(sorted((*definitions, *unreadable), key=lambda prop: prop.position)),
        all_of(items, ast.Constant),
        all_of(items, ast.Formula),
        all_of(items, ast.LabelDefinition),
        source,
    )


def _readable(source: SourceText) -> tuple[list[Any], list[props.PropertyDefinition]]:
    """Return what can be read of a file, and the properties that cannot."""
    text = source.text
    unreadable: list[props.PropertyDefinition] = []
    first: PrismSourceError | None = None
    while True:
        try:
            items: list[Any] = parse(
                _parser(), SourceText(text, source.filename), "properties"
            ).children
            for item in items:
                _check_no_call(item, source)
        except PrismSourceError as error:
            begin, end = _statement(text, error)
            statement = source.text[begin:end]
            if not statement.strip() or DEFINITION.match(statement):
                raise
            first = first or error
            unreadable.append(_unreadable(source, begin, statement, error))
            text = text[:begin] + re.sub(r"[^\n]", " ", statement) + text[end:]
            continue
        if (
            first is not None
            and len(unreadable) > 1
            and not all_of(items, props.PropertyDefinition)
        ):
            raise first  # this is no file of properties
        return items, unreadable


def _statement(text: str, error: PrismSourceError) -> tuple[int, int]:
    """Return where the statement begins and ends that an error is in, or that it follows.

    A statement ends with a semicolon, or at the end of a line outside of all brackets.
    """
    before = text.split("\n")[: error.line - 1]
    place = sum(len(line) + 1 for line in before) + error.column - 1
    begin = end = depth = 0
    span = (0, 0)
    for piece in PIECES.finditer(text):
        end = piece.end()
        sign = piece[0]
        depth = max(depth + (sign in "([{") - (sign in ")]}"), 0)
        if sign == ";" or (sign == "\n" and depth == 0):
            span = (begin, end) if text[begin:end].strip() else span
            begin = end
            depth = 0
            if end > place and span[1] > span[0]:
                return span
    return (begin, len(text)) if text[begin:].strip() else span


def _unreadable(
    source: SourceText, begin: int, statement: str, error: PrismSourceError
) -> props.PropertyDefinition:
    """Return a property that cannot be read, with its name if it has one."""
    lines = [line.partition("//")[0].strip() for line in statement.split("\n")]
    words = " ".join(line for line in lines if line).removesuffix(";").strip()
    named = re.match(r'"([^"]*)"\s*:\s*', words)
    name, rest = (named[1], words[named.end() :]) if named else (None, words)
    begin += len(statement) - len(statement.lstrip())
    above = source.text[:begin].split("\n")
    place = Position(error.line, error.column)
    return props.PropertyDefinition(
        name,
        props.Unreadable(rest, error.reason, position=place),
        position=Position(len(above), len(above[-1]) + 1),
    )


@cache
def _parser() -> Lark:
    return make_parser(["properties"], PropertyBuilder())


class PropertyBuilder(ExpressionBuilder):
    """Makes properties."""

    def property(self, name: Token | None, expression: Expr) -> props.PropertyDefinition:
        """Make a property with its name."""
        if name is None:
            return props.PropertyDefinition(None, expression, position=expression.position)
        return props.PropertyDefinition(unquoted(name), expression, position=position_of(name))

    def constant(self, kind: Token | None, name: Token, value: Expr | None) -> ast.Constant:
        """Make a constant, after a look at its value."""
        return ExpressionBuilder.constant(self, kind, name, value and _plain(value))

    def formula(self, name: Token, value: Expr) -> ast.Formula:
        """Make a formula, after a look at its value."""
        return ExpressionBuilder.formula(self, name, _plain(value))

    def label(self, name: Token, value: Expr) -> ast.LabelDefinition:
        """Make a label, after a look at its value."""
        return ExpressionBuilder.label(self, name, _plain(value))

    def call(self, function: Token, *arguments: Expr) -> Expr:
        """Make a function call; the multi-objective one is not supported."""
        if function != "multi":
            return ExpressionBuilder.call(self, function, *arguments)
        text = f"multi({', '.join(write_expression(argument) for argument in arguments)})"
        construct = "the multi-objective 'multi(...)'"
        return Unsupported(construct, text, position=position_of(function))

    def unary_path(
        self, operator: Token, brace: Expr | None, time: TimeBound | None, operand: Expr
    ) -> Expr:
        """Make X, F or G."""
        discount, time = _braced(operator, brace, time)
        position = position_of(operator)
        return Path(str(operator), None, operand, time, discount, position=position)

    def binary_path(
        self,
        left: Expr,
        operator: Token,
        brace: Expr | None,
        time: TimeBound | None,
        right: Expr,
    ) -> Expr:
        """Make U, W or R."""
        discount, time = _braced(operator, brace, time)
        return Path(str(operator), left, right, time, discount, position=left.position)

    def time(self, sign: Token, bound: Expr, *last: Expr) -> TimeBound:
        """Make a bound on steps."""
        first, position = _plain(bound), position_of(sign)
        if sign == "[":
            return TimeBound(first, _plain(last[0]), position=position)
        if sign == "=":
            return TimeBound(first, first, position=position)
        strict = len(sign) == 1
        if sign.startswith("<"):
            return TimeBound(None, first, upper_strict=strict, position=position)
        return TimeBound(first, None, lower_strict=strict, position=position)

    def budget(
        self, _: Token, word: Token, name: str | Expr, sign: Token, bound: Expr
    ) -> TimeBound:
        """Make a bound on rewards, `^{rew{"r"}<=k}`."""
        if word != "rew" or not isinstance(name, str):
            raise BuildError(
                position_of(word), "expected rew{\"...\"}<=... in the braces after '^'"
            )
        return replace(self.time(sign, bound), reward=name)

    def quantifier(self, *words: Token | None) -> str:
        """Join `min max` to `minmax`."""
        return "".join(str(word) for word in words if word is not None)

    def query(self, *bound: Any) -> Bound | None:
        """Make the bound after P or R, None for `=?`."""
        if not bound:
            return None
        sign, value = bound
        return Bound(str(sign), _plain(value), position=position_of(sign))

    def p_head(self, token: Token, quantifier: str | None = None) -> tuple[Token, str]:
        """Split `Pmaxmin` into the place and the quantifier."""
        return token, str(token)[1:] + (quantifier or "")

    def r_head(
        self, token: Token, structure: str | Expr | None, quantifier: str | None = None
    ) -> tuple[Token, str, str | Expr | None]:
        """Split `R{"r"}max` into the place, the quantifier and the structure."""
        return token, str(token)[1:] + (quantifier or ""), structure

    def reward_index(self, index: Token | Expr) -> str | Expr:
        """Make the name or number of a reward structure."""
        return unquoted(index) if isinstance(index, Token) else _plain(index)

    def probability(
        self, head: tuple[Token, str], bound: Bound | None, path: Expr, *filters: Token | Expr
    ) -> Expr:
        """Make P."""
        token, quantifier = head
        agent, nature = _players(quantifier)
        position = position_of(token)
        operator = props.Probability(agent, nature, bound, path, position=position)
        return _filtered(operator, bound, filters)

    def reward(
        self,
        head: tuple[Token, str, str | Expr | None],
        bound: Bound | None,
        path: Expr | tuple[Expr, Expr],
        *filters: Token | Expr,
    ) -> Expr:
        """Make R."""
        token, quantifier, structure = head
        agent, nature = _players(quantifier)
        if isinstance(path, tuple):  # 'C {states}': the braces were no discount
            path, states = path
            filters = (states, *filters)
        path = _storm_path(path)
        position = position_of(token)
        operator = props.Reward(structure, agent, nature, bound, path, position=position)
        return _filtered(operator, bound, filters)

    def total(
        self,
        token: Token,
        brace: Expr | None,
        steps: Expr | None,
        word: Token | None,
        storm: Expr | None,
    ) -> Expr | tuple[Expr, Expr]:
        """Make C, with steps or without, and with the discount of PRISM or of Storm."""
        discount = _discount(brace)
        if word is not None and storm is not None:
            if word != "discount" or discount is not None:
                reason = f"expected ']', found '{word[:40]}'"
                raise BuildError(position_of(word), reason)
            discount = _plain(storm)
        result = CumulativeReward(steps and _plain(steps), discount, position=position_of(token))
        if brace is None or discount is not None:
            return result
        if steps is not None:
            raise BuildError(brace.position, "expected 'discount=...' in the braces after 'C'")
        return result, brace

    def instantaneous(self, token: Token, step: Expr) -> Expr:
        """Make I=k."""
        return props.InstantaneousReward(_plain(step), position=position_of(token))

    def long_run(self, token: Token) -> Expr:
        """Make the mean reward in the long run."""
        return props.LongRunReward(position=position_of(token))

    def s_head(self, token: Token, quantifier: str | None = None) -> tuple[Token, str]:
        """Split `Smaxmin` into the place and the quantifier."""
        return token, str(token).removeprefix("LRA").removeprefix("S") + (quantifier or "")

    def steady(
        self, head: tuple[Token, str], bound: Bound | None, path: Expr, *filters: Token | Expr
    ) -> Expr:
        """Make the steady-state operator."""
        share = Path("S", None, path, position=position_of(head[0]))
        return self.probability(head, bound, share, *filters)

    def ctl(self, token: Token, path: Expr) -> Expr:
        """Make E or A."""
        return props.Quantified(token == "A", path, position=position_of(token))

    def coalition(self, token: Token, *parts: Any) -> Expr:
        """Make a game operator, which is not supported."""
        *players, operand = parts
        opened = str(token)
        closed = ">>" if token == "<<" else "]]"
        listed = ",".join(str(player) for player in players)
        text = f"{opened}{listed}{closed} ({write_expression(operand)})"
        construct = f"the game operator '{opened}...{closed}'"
        return Unsupported(construct, text, position=position_of(token))

    def automaton(self, token: Token, file: Token, *rest: Any) -> Expr:
        """Make an automaton from a file, which is not supported."""
        named = zip(rest[::4], rest[3::4], strict=True)
        texts = [str(file), *(f"{label} <- {write_expression(value)}" for label, value in named)]
        text = f"HOA: {{{', '.join(texts)}}}"
        return Unsupported("an automaton ('HOA: {...}')", text, position=position_of(token))

    def filter(self, token: Token, operator: Token, operand: Expr, states: Expr | None) -> Expr:
        """Make a filter by its name or alias."""
        name = props.FILTER_ALIASES.get(operator, str(operator))
        if name not in props.FILTERS:
            known = ", ".join(props.FILTERS)
            reason = f"unknown filter '{operator[:40]}'; there are {known}"
            raise BuildError(position_of(operator), reason, words=props.FILTERS)
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


def _plain(expr: Expr) -> Expr:
    """Return an expression that has no P, R or path operators, or raise."""
    for node in nodes(expr):
        if not isinstance(node, PLAIN):
            reason = "expected an expression without P, R or path operators"
            raise BuildError(node.position, reason)
    return expr


def _discount(brace: Expr | None) -> Expr | None:
    """Return the value of `discount=value` in braces, None if they say something else."""
    if isinstance(brace, Binary) and brace.operator == "=" and brace.left == Name("discount"):
        return _plain(brace.right)
    return None


def _braced(
    operator: Token, brace: Expr | None, time: TimeBound | None
) -> tuple[Expr | None, TimeBound | None]:
    """Return the discount and the bound of a path operator with braces: `{discount=d}`, `{"r"}`."""
    discount = _discount(brace)
    if isinstance(brace, ast.Label) and time is not None:
        return None, replace(time, reward=brace.name)
    if brace is not None and discount is None:
        reason = f"expected 'discount=...' in the braces after '{operator}'"
        raise BuildError(brace.position, reason)
    return discount, time


def _storm_path(path: Expr) -> Expr:
    """Read what Storm writes inside R and looks like a state formula: `Cdiscount=value`, `LRA`."""
    if isinstance(path, Binary) and path.operator == "=" and path.left == Name("Cdiscount"):
        return CumulativeReward(None, _plain(path.right), position=path.position)
    if path == Name("LRA"):
        return props.LongRunReward(position=path.position)
    return path


def _players(quantifier: str) -> tuple[Direction | None, Direction | None]:
    """Return the directions of agent and nature: `maxmin`, `max` or nothing."""
    agent, nature = quantifier[:3].upper(), quantifier[3:].upper()
    return Direction[agent] if agent else None, Direction[nature] if nature else None


def _filtered(operator: Expr, bound: Bound | None, filters: Sequence[Token | Expr]) -> Expr:
    """Wrap P or R in the filter that braces after its path formula ask for (PRISM 3's form)."""
    if not filters:
        return operator
    states, *words = filters
    if isinstance(states, Token) or any(not isinstance(word, Token) for word in words):
        position = position_of(states) if isinstance(states, Token) else states.position
        raise BuildError(position, "expected {states}, then at most {min} and {max}")
    names = {str(word) for word in words}
    name = "state" if not names else "range" if len(names) == 2 else names.pop()
    name = "forall" if bound is not None else name
    return props.Filter(name, operator, states, position=operator.position)
