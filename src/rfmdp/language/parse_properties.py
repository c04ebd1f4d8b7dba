"""Text of PRISM properties to their tree.

A property that rfmdp does not support, or cannot read, does not make a file unreadable: it becomes
an `Unreadable` node, and `require_supported` says so when that property is used.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

from lark import Lark, Token

from rfmdp.language import ast, property_ast as props
from rfmdp.language.ast import Expr, Name, nodes
from rfmdp.language.grammar import hinted, make_parser, parse, place_of, unknown_function
from rfmdp.language.parse import ExpressionBuilder, all_of, unquoted
from rfmdp.language.property_ast import Bound, Path, TimeBound
from rfmdp.language.source import BuildError, Position, PrismSourceError, SourceText
from rfmdp.objective import Direction

PLAIN = (ast.Literal, ast.Name, ast.Label, ast.Unary, ast.Binary, ast.Ite, ast.Call)
DEFINITION = re.compile(r"(\s|//.*\n)*(const|label|formula|prob|rate)\b")
PIECES = re.compile(r'"[^"\n]*"|//[^\n]*|\n|[^"/\n]|/|"')  # names, comments and single characters


def parse_property_file(text: str, filename: str = "<properties>") -> props.PropertyFile:
    """Return the tree of a property file; properties end with ';' or where the next begins.

    Single properties that cannot be read, or are not supported, raise when they are checked.

    >>> file = parse_property_file('"a": P=? [ F x=1 ]; Pmaxmin=? [ G !"bad" ]')
    >>> [prop.name for prop in file.properties]
    ['a', None]
    """
    source = SourceText(text.removeprefix("\ufeff"), filename)
    items, unreadable = _readable(source)
    properties = (*all_of(items, props.PropertyDefinition), *unreadable)
    constants, formulas = all_of(items, ast.Constant), all_of(items, ast.Formula)
    labels = all_of(items, ast.LabelDefinition)
    values = [*(c.value for c in constants), *(f.value for f in formulas)]
    for value in (*values, *(label.value for label in labels)):
        _check_definition(value, source)
    in_order = tuple(sorted(properties, key=lambda prop: prop.position))
    return props.PropertyFile(in_order, constants, formulas, labels, source)


def _readable(source: SourceText) -> tuple[list[Any], list[props.PropertyDefinition]]:
    """Return what can be read of a file, and the properties that cannot."""
    text = source.text
    unreadable: list[props.PropertyDefinition] = []
    errors: list[PrismSourceError] = []
    while True:
        try:
            tree = parse(_parser(), SourceText(text, source.filename), "properties")
            for item in tree.children:
                _check_no_call(item, source)
        except PrismSourceError as error:
            begin, end = _statement(text, error)
            statement = text[begin:end]
            if not statement.strip() or DEFINITION.match(statement):
                raise
            errors.append(error)
            unreadable.append(_unreadable(source, begin, statement, error))
            text = text[:begin] + re.sub(r"[^\n]", " ", statement) + text[end:]
            continue
        if len(errors) > 1 and not all_of(tree.children, props.PropertyDefinition):
            raise errors[0]  # this is no file of properties
        return tree.children, unreadable


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
        return props.PropertyDefinition(name and unquoted(name), expression)

    def unary_path(
        self, operator: Token, reward: str | None, time: TimeBound | None, operand: Expr
    ) -> Expr:
        """Make X, F or G."""
        return Path(str(operator), None, operand, _counting(operator, reward, time))

    def binary_path(
        self, left: Expr, operator: Token, reward: str | None, time: TimeBound | None, right: Expr
    ) -> Expr:
        """Make U, W or R."""
        return Path(str(operator), left, right, _counting(operator, reward, time))

    def time(self, sign: Token, bound: Expr, *last: Expr) -> TimeBound:
        """Make a bound on steps."""
        if sign in ("[", "="):
            return TimeBound(bound, last[0] if last else bound)
        strict = len(sign) == 1
        if sign.startswith("<"):
            return TimeBound(None, bound, upper_strict=strict)
        return TimeBound(bound, None, lower_strict=strict)

    def budget(self, _: Token, word: Token, name: str, sign: Token, bound: Expr) -> TimeBound:
        """Make a bound on rewards, `^{rew{"r"}<=k}`."""
        if word != "rew":
            reason = "expected rew{\"...\"}<=... in the braces after '^'"
            raise BuildError(place_of(word), reason)
        return replace(self.time(sign, bound), reward=name, position=place_of(sign))

    def quantifier(self, *words: Token | None) -> str:
        """Join `min max` to `minmax`."""
        return "".join(str(word) for word in words if word is not None)

    def query(self, *bound: Any) -> Bound | None:
        """Make the bound after P or R, None for `=?`."""
        return Bound(str(bound[0]), bound[1]) if bound else None

    def p_head(self, token: Token, quantifier: str | None = None) -> tuple[Token, str]:
        """Split `Pmaxmin` into the letter and the quantifier."""
        return token, token.lstrip("PSLRA") + (quantifier or "")

    def r_head(
        self, token: Token, structure: str | Expr | None, quantifier: str | None = None
    ) -> tuple[Token, str, str | Expr | None]:
        """Split `R{"r"}max` into the letter, the quantifier and the structure."""
        return token, token[1:] + (quantifier or ""), structure

    def reward_name(self, name: Token) -> str:
        """Make the name of a reward structure."""
        return unquoted(name)

    def probability(self, head: tuple[Token, str], bound: Bound | None, path: Expr) -> Expr:
        """Make P, or S: the share of steps in the long run."""
        token, quantifier = head
        place = place_of(token)
        if not token.startswith("P"):
            path = Path("S", None, path, position=place)
        return props.Probability(*_players(quantifier), bound, path, position=place)

    def reward(
        self, head: tuple[Token, str, str | Expr | None], bound: Bound | None, path: Expr
    ) -> Expr:
        """Make R; Storm writes `LRA` for the long run."""
        token, quantifier, structure = head
        if path == Name("LRA"):
            path = props.LongRunReward(position=path.position)
        players = _players(quantifier)
        return props.Reward(structure, *players, bound, path, position=place_of(token))

    def total(
        self, _: Token, word: Token | None, discount: Expr | None, steps: Expr | None
    ) -> Expr:
        """Make C, with steps or without, discounted or not."""
        if word is not None and word != "discount":
            raise BuildError(place_of(word), "expected 'discount=...' in the braces after 'C'")
        return props.CumulativeReward(steps, discount)

    def instantaneous(self, _: Token, step: Expr) -> Expr:
        """Make I=k."""
        return props.InstantaneousReward(step)

    def long_run(self, _: Token) -> Expr:
        """Make the mean reward in the long run."""
        return props.LongRunReward()

    def filter(self, _: Token, operator: Token, operand: Expr, states: Expr | None) -> Expr:
        """Make a filter by its name or alias."""
        name = props.FILTER_ALIASES.get(operator, str(operator))
        if name not in props.FILTERS:
            reason = f"unknown filter '{operator[:40]}'; there are {', '.join(props.FILTERS)}"
            raise BuildError(place_of(operator), reason, words=props.FILTERS)
        return props.Filter(name, operand, states)


def _check_no_call(item: Any, source: SourceText) -> None:
    """Raise if a property is a lone name before a parenthesis, which was meant as a function."""
    expr = item.expression if isinstance(item, props.PropertyDefinition) else None
    if not isinstance(expr, Name):
        return
    line = source.text.split("\n")[expr.position.line - 1]
    if line[expr.position.column - 1 + len(expr.name) :].lstrip().startswith("("):
        error = unknown_function(expr.name, expr.position, source)
        raise hinted(error, source, "properties")


def _check_definition(value: Expr | None, source: SourceText) -> None:
    """Raise if the value of a constant, formula or label has P, R or path operators."""
    for node in nodes(value) if value is not None else ():
        if not isinstance(node, PLAIN):
            reason = "expected an expression without P, R or path operators"
            raise source.error(node.position, reason)


def _counting(operator: Token, reward: str | None, time: TimeBound | None) -> TimeBound | None:
    """Return a bound that counts a reward, if one is named: `F{"r"}<=k`."""
    if reward is None:
        return time
    if time is None:
        reason = f"expected a bound after the reward of '{operator}', as in {operator}{{\"r\"}}<=5"
        raise BuildError(place_of(operator), reason)
    return replace(time, reward=reward)


def _players(quantifier: str) -> tuple[Direction | None, Direction | None]:
    """Return the directions of agent and nature: `maxmin`, `max` or nothing."""
    agent, nature = quantifier[:3].upper(), quantifier[3:].upper()
    return Direction[agent] if agent else None, Direction[nature] if nature else None
