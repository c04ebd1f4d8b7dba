"""What every construct of `grammar.lark` becomes in the tree.

The parser calls the function of a rule (`RULES`) whenever it has read a construct, bottom-up and
without recursion, so that neither long nor deep texts can overflow the stack.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from lark import Token

from rfmdp.language import ast
from rfmdp.language.ast import Expr, ModelType, Node, TimeBound
from rfmdp.language.expressions import BINARY, RIGHT, UNARY
from rfmdp.language.source import Position, question
from rfmdp.objective import Direction

Players = tuple[Direction | None, Direction | None]  # agent and nature

MAX_INT = 2**31 - 1
MAX_WRITTEN = 1000  # digits of a double that is kept as it was written
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
MODEL_TYPES = {kind.value: kind for kind in ModelType}
MODEL_TYPES |= {"probabilistic": ModelType.DTMC, "nondeterministic": ModelType.MDP}
# Words that are no keywords of PRISM itself, hence possible names, but that begin other models.
OTHER_MODEL_TYPES = {"ipomdp", "ictmc", "smg", "csg", "stpg", "lts", "ma"}
CONSTANT_TYPES = {kind.value: kind for kind in ast.Type}
CONSTANT_TYPES |= dict.fromkeys(("rate", "prob"), ast.Type.DOUBLE)
MODEL_TYPE, INITIAL = "model type", "'init ... endinit'"  # what a model has once


class BuildError(Exception):
    """A mistake whose text is not known; `final`: the reason needs no hint at other words."""

    def __init__(self, position: Position, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.position, self.reason, self.final = position, reason, final


def place_of(item: Token | Node) -> Position:
    """Return where a token or a node starts."""
    if isinstance(item, Token):
        return Position(item.line or 1, item.column or 1)
    return item.position


def _model(*items: Any) -> ast.ModelFile:
    parts = _all_of(items, ast.Definition)
    (types, inits) = ([x for x in parts if x.kind == kind] for kind in (MODEL_TYPE, INITIAL))
    for part in (*types[1:], *inits[1:]):
        raise BuildError(part.position, f"a model must have only one {part.kind}, found a second")
    return ast.ModelFile(
        type=MODEL_TYPES[types[0].name] if types else None,
        definitions=tuple(part for part in parts if part.kind not in (MODEL_TYPE, INITIAL)),
        globals=_all_of(items, ast.VariableDeclaration),
        modules=_all_of(items, ast.Module, ast.RenamedModule),
        rewards=_all_of(items, ast.RewardStructure),
        init=inits[0].value if inits else None,
    )


def _model_type(token: Token) -> ast.Definition:
    if token in OTHER_MODEL_TYPES:
        raise BuildError(place_of(token), f"model type '{token}' is not supported", final=True)
    if token not in MODEL_TYPES:
        expected = "a model type, 'const', 'formula', 'global', 'init', 'label', 'module'"
        reason = f"expected {expected} or 'rewards', found '{token[:40]}'"
        raise BuildError(place_of(token), reason)
    return ast.Definition(MODEL_TYPE, str(token), None)


def _integer(token: Token) -> Expr:
    """Make an int; PRISM's have 32 bits."""
    if len(token) > len(str(MAX_INT)) or int(token) > MAX_INT:
        reason = f"an integer must be at most {MAX_INT}; write {token[:20]}.0 for a double"
        raise BuildError(place_of(token), reason)
    return ast.Literal(int(token))


def _double(token: Token) -> Expr:
    """Make a double, which remembers the number as it was written."""
    power = token.lower().partition("e")[2]
    short = len(token) <= MAX_WRITTEN and abs(int(power or 0)) <= MAX_WRITTEN
    return ast.Literal(float(token), Fraction(str(token)) if short else None)


def _unlimited(name: Token, kind: Token, _: Expr | None) -> None:
    reason = f"an int must have a range, which may be wide; write {name} : [0..1000000]"
    raise BuildError(place_of(kind), reason)


def _update(probability: Expr | ast.ProbabilityInterval, *assignments: Any) -> ast.Update:
    """Make an update; its assignments may be the word `true`, which assigns nothing."""
    return ast.Update(probability, _all_of(assignments, ast.Assignment))


def _rewards(keyword: Token, name: Token | None, *items: ast.RewardItem) -> ast.RewardStructure:
    title = None if name is None else _unquoted(name)
    return ast.RewardStructure(title, items, position=place_of(name or keyword))


def _time(sign: Token, bound: Expr, *last: Expr) -> TimeBound:
    if sign in ("[", "="):
        return TimeBound(bound, last[0] if last else bound)
    strict = len(sign) == 1
    if sign.startswith("<"):
        return TimeBound(None, bound, upper_strict=strict)
    return TimeBound(bound, None, lower_strict=strict)


def _budget(_: Token, word: Token, name: str, sign: Token, bound: Expr) -> TimeBound:
    """Make a bound on rewards, `^{rew{"r"}<=k}`."""
    if word != "rew":
        raise BuildError(place_of(word), "expected rew{\"...\"}<=... in the braces after '^'")
    return replace(_time(sign, bound), reward=name, position=place_of(sign))


def _path(
    left: Expr | None, operator: Token, reward: str | None, time: TimeBound | None, right: Expr
) -> Expr:
    """Make X, F, G, U, W or R; `F{"r"}<=k` counts a reward."""
    if reward is not None:
        if time is None:
            reason = f"expected a bound after the reward of '{operator}', as in "
            raise BuildError(place_of(operator), f'{reason}{operator}{{"r"}}<=5')
        time = replace(time, reward=reward)
    return ast.Path(str(operator), left, right, time)


def _players(quantifier: str) -> Players:
    """Return the directions of agent and nature: `maxmin`, `max` or nothing."""
    agent, nature = quantifier[:3].upper(), quantifier[3:].upper()
    return Direction[agent] if agent else None, Direction[nature] if nature else None


def _probability(head: tuple[Token, Players], bound: ast.Bound | None, path: Expr) -> Expr:
    """Make P, or S: the share of steps in the long run."""
    place = place_of(head[0])
    if not head[0].startswith("P"):
        path = ast.Path("S", None, path, position=place)
    return ast.Probability(*head[1], bound, path, position=place)


def _reward(
    head: tuple[Token, Players, str | Expr | None], bound: ast.Bound | None, path: Expr
) -> Expr:
    """Make R; Storm writes `LRA` for the long run."""
    token, players, structure = head
    if path == ast.Name("LRA"):
        path = ast.LongRunReward(position=path.position)
    return ast.Reward(structure, *players, bound, path, position=place_of(token))


def _total(_: Token, word: Token | None, discount: Expr | None, steps: Expr | None) -> Expr:
    if word is not None and word != "discount":
        raise BuildError(place_of(word), "expected 'discount=...' in the braces after 'C'")
    return ast.CumulativeReward(steps, discount)


def _filter(_: Token, operator: Token, operand: Expr, states: Expr | None) -> Expr:
    name = ast.FILTER_ALIASES.get(operator, str(operator))
    if name not in ast.FILTERS:
        reason = f"unknown filter '{operator[:40]}'; there are {', '.join(ast.FILTERS)}"
        reason += question(operator, ast.FILTERS)
        raise BuildError(place_of(operator), reason, final=True)
    return ast.Filter(name, operand, states)


def _operator_tree(*chain: Token | Expr) -> Expr:
    """Build the tree of operands, prefix and infix operators in the order of the text.

    As in PRISM, `!` must not be the operand of a tighter operator: `a = !b`.
    """
    operands: list[Expr] = []
    waiting: list[tuple[int, int, Token]] = []  # precedence, number of operands, operator
    prefix = True
    for item in chain:
        if isinstance(item, Expr):
            operands.append(item)
            prefix = False
        elif prefix:
            precedence = UNARY[item]
            if waiting and waiting[-1][0] > precedence:
                reason = "expected an operand, found '!'; write the negation in parentheses"
                raise BuildError(place_of(item), reason)
            waiting.append((precedence, 1, item))
        else:
            precedence = BINARY[item]
            while waiting and waiting[-1][0] >= precedence + (item in RIGHT):
                _apply(operands, *waiting.pop()[1:])
            waiting.append((precedence, 2, item))
            prefix = True
    while waiting:
        _apply(operands, *waiting.pop()[1:])
    return operands[0]


def _apply(operands: list[Expr], arity: int, sign: Token) -> None:
    right = operands.pop()
    if arity == 1:
        operands.append(ast.Unary(str(sign), right, position=place_of(sign)))
    else:
        left = operands.pop()
        operands.append(ast.Binary(str(sign), left, right, position=left.position))


def _unquoted(token: Token) -> str:
    name = str(token)[1:-1].strip(" \t")
    if not IDENTIFIER.match(name):
        reason = f"expected a name of letters, digits and '_' in the quotes, found {token[:40]}"
        raise BuildError(place_of(token), reason)
    return name


def _all_of(items: Sequence[Any], *kinds: type[Node]) -> tuple[Any, ...]:
    return tuple(item for item in items if isinstance(item, kinds))


RULES: dict[str, Callable[..., Any]] = {  # of `grammar.lark`; what its parts make
    # expressions, and definitions of names
    "integer": _integer,
    "double": _double,
    "true": lambda _: ast.Literal(True),
    "false": lambda _: ast.Literal(False),
    "name": lambda token: ast.Name(str(token)),
    "quoted": lambda token: ast.Label(_unquoted(token)),
    "chain": _operator_tree,
    "choice": ast.Ite,
    "call": lambda function, *arguments: ast.Call(str(function), arguments),
    "constant": lambda kind, name, value: ast.Definition(
        "constant", str(name), value, CONSTANT_TYPES[kind or "int"], position=place_of(name)
    ),
    "formula": lambda name, value: ast.Definition("formula", str(name), value),
    "label": lambda name, value: ast.Definition("label", _unquoted(name), value),
    # models
    "model": _model,
    "model_type": _model_type,
    "initial": lambda _, condition: ast.Definition(INITIAL, "", condition),
    "module": lambda name, *items: ast.Module(
        str(name), _all_of(items, ast.VariableDeclaration), _all_of(items, ast.Command)
    ),
    "variable": lambda name, ends, init: ast.VariableDeclaration(str(name), ends[0], ends[1], init),
    "unlimited": _unlimited,
    "range": lambda lower, upper: (lower, upper),
    "boolean": lambda: (None, None),
    "command": lambda _, action, guard, *updates: ast.Command(
        action and str(action), guard, updates
    ),
    "certain": lambda *assignments: _update(ast.Literal(1.0), *assignments),
    "update": _update,
    "interval": lambda _, lower, upper: ast.ProbabilityInterval(lower, upper),
    "assignment": lambda name, value: ast.Assignment(str(name)[:-1], value, value),
    "renamed_module": lambda name, base, *new: ast.RenamedModule(str(name), str(base), new),
    "renaming": lambda old, new: ast.Renaming(str(old), str(new)),
    "rewards": _rewards,
    "reward_item": lambda bracket, action, guard, value: ast.RewardItem(
        None if bracket is None else str(action or ""), guard, value
    ),
    # properties
    "properties": lambda *items: items,
    "property": lambda name, expr: ast.PropertyDefinition(name and _unquoted(name), expr),
    "unary_path": lambda *parts: _path(None, *parts),
    "binary_path": _path,
    "time": _time,
    "budget": _budget,
    "quantifier": lambda *words: "".join(str(word) for word in words if word is not None),
    "query": lambda *bound: ast.Bound(str(bound[0]), bound[1]) if bound else None,
    "p_head": lambda token, more=None: (token, _players(token.lstrip("PSLRA") + (more or ""))),
    "r_head": lambda token, name, more=None: (token, _players(token[1:] + (more or "")), name),
    "reward_name": _unquoted,
    "probability": _probability,
    "reward": _reward,
    "total": _total,
    "instantaneous": lambda _, step: ast.InstantaneousReward(step),
    "long_run": lambda _: ast.LongRunReward(),
    "filter": _filter,
}
