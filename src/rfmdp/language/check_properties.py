"""Static semantics of properties: names, types and bounds against a checked model.

Each property is resolved on its own, so that a mistake in one does not touch the others, and an
undefined constant matters only to properties that use it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from rfmdp.language import ast as tree
from rfmdp.language.ast import Binary, Definition, Expr, Label, Literal, Name, Type, Unary
from rfmdp.language.check import BUILT_IN_LABELS, CheckedModel, check_unique
from rfmdp.language.evaluate import evaluate, exact_value, simplify
from rfmdp.language.expressions import fold, is_nested, node_type, path_operators, require, rewrite
from rfmdp.language.names import Constants, resolved, with_inputs
from rfmdp.language.source import Position, SourceText, question

FILTER_TYPES: dict[str, tuple[Type, Type | None]] = {  # of an operand, of the result if it differs
    **dict.fromkeys(("min", "max", "sum"), (Type.DOUBLE, None)),
    **dict.fromkeys(("forall", "exists"), (Type.BOOL, Type.BOOL)),
    "avg": (Type.DOUBLE, Type.DOUBLE),
    "count": (Type.BOOL, Type.INT),
}
REWARDS = (tree.CumulativeReward, tree.InstantaneousReward, tree.LongRunReward)
COUNTED = (tree.Path, tree.CumulativeReward, tree.InstantaneousReward)
DEEPEST, DEEPEST_PATH = 50, 100  # operators P, R and filter inside each other, and of a path
SHARE = (0.0, 1.0, "in the range 0..1")
ANY = (-math.inf, math.inf, "a number")


@dataclass(frozen=True, slots=True)
class CheckedProperty:
    """A property ready to be solved.

    Names are variables only; labels are replaced by their conditions, but for "init" and
    "deadlock"; bounds, steps and discounts are `Literal`s; `Reward.structure` is a `Literal`
    number from 1 into `CheckedModel.rewards`.

    type : BOOL for a property that answers yes or no
    scope : the model that its names were resolved against
    """

    expression: Expr
    type: Type
    scope: CheckedModel = field(repr=False, compare=False)


def check_property(
    prop: tree.PropertyDefinition,
    file: tree.PropertyFile,
    model: CheckedModel,
    constants: Constants | None = None,
) -> CheckedProperty:
    """Return a property of a file resolved against a model, with constants that the file needs.

    Or raise; also if the file defines a name twice, or one that the model has.
    """
    named = [(d.kind, d.key, d.position) for d in file.definitions]
    named += [("property", f'"{p.name}"', p.position) for p in file.properties if p.name]
    check_unique(named, file.source)
    names = {*model.variable_types(), *model.constants, *model.formulas}
    names |= {f'"{name}"' for name in model.labels}
    for definition in file.definitions:
        if definition.key in names:
            reason = f"'{definition.name}' must not be defined again, the model has it"
            raise file.source.error(definition.position, reason)
    scope = _Scope(file, model, constants or {})
    expression = scope.resolved(prop.expression)
    require_supported(expression, file.source)
    type_ = fold(expression, scope.type_of)
    return CheckedProperty(simplify(rewrite(expression, scope.settle)), type_, model)


def with_numbers(
    path: Expr, file: tree.PropertyFile, model: CheckedModel, inputs: Constants
) -> Expr:
    """Return a path or reward formula with its steps and discount as numbers.

    Its state formulas stay as they are, so that `model` need only have the constants.
    """
    scope = _Scope(file, model, inputs)

    def change(node: Expr) -> Expr:
        return scope.settle(node) if isinstance(node, COUNTED) else node

    return rewrite(path, change, leaves=tree.OPERATORS)


class _Scope:
    """What names stand for in the properties of a file; types and bounds of these."""

    def __init__(self, file: tree.PropertyFile, model: CheckedModel, inputs: Constants) -> None:
        self.model, self.source = model, file.source
        labels = [*model.labels, *(d.name for d in file.definitions if d.kind == "label")]
        self.labels, self.known = sorted(labels), {*labels, *BUILT_IN_LABELS}
        self.named = {p.name: p for p in file.properties if p.name is not None}
        values = {**{k: Literal(x) for k, x in model.constants.items()}, **model.formulas}
        definitions = [
            *(Definition("formula", name, value) for name, value in values.items()),
            *(Definition("constant", name, None) for name in model.undefined),
            # labels of a built model stand for themselves
            *(Definition("label", k, x) for k, x in model.labels.items() if x != Label(k)),
            *(
                Definition("property", name, prop.expression, position=prop.position)
                for name, prop in self.named.items()
                if name not in self.known
            ),
            *file.definitions,
        ]
        self._definitions = with_inputs(definitions, inputs, file.source)
        types = {d.name: d.type for d in file.definitions if d.type is not None}
        self._types = model.variable_types() | types

    def resolved(self, text: Expr) -> Expr:
        """Return an expression with its names, labels and names of properties replaced."""
        return resolved(text, self._definitions, self._types, self.source)

    def type_of(self, node: Expr, below: tuple[Type, ...]) -> Type:
        """Return the type of a node and check its operands."""
        match node:
            case Name(name) if name not in self._types and self.named:
                listed = f"; properties with a name are {', '.join(self.named)}"
                meant = question(name, [*self._types, *self.named]) or listed
                raise self.source.error(node.position, f"unknown name '{name}'{meant}")
            case Label(name) if name not in self.known:
                listed = ", ".join(f'"{label}"' for label in self.labels)
                hint = f"the labels are {listed}" if listed else "define it"
                meant = question(name, [*self.labels, *self.named])
                reason = f'unknown label or property "{name}"; {hint}{meant}'
                raise self.source.error(node.position, reason)
            case tree.Path():
                operands = node.children()[: 1 if node.left is None else 2]
                for operand, operand_type in zip(operands, below, strict=False):
                    what = f"an operand of '{node.operator}'"
                    require(operand, Type.BOOL, operand_type, what, self.source)
                return Type.BOOL
            case tree.CumulativeReward() | tree.InstantaneousReward() | tree.LongRunReward():
                return Type.DOUBLE
            case tree.Probability() | tree.Reward():
                if isinstance(node, tree.Probability):
                    require(node.path, Type.BOOL, below[-1], "the formula inside P", self.source)
                return Type.DOUBLE if node.bound is None else Type.BOOL
            case tree.Filter(name):
                expected, result = FILTER_TYPES.get(name, (below[0], None))
                require(node.operand, expected, below[0], f"the operand of '{name}'", self.source)
                if node.states is not None:
                    require(node.states, Type.BOOL, below[1], "the states of a filter", self.source)
                return result or below[0]
        return node_type(node, below, self._types, self.source)

    def settle(self, node: Expr) -> Expr:
        """Replace bounds, steps, discounts and reward structures of a node by their values."""
        match node:
            case tree.Path(time=tree.TimeBound() as time):
                return replace(node, time=self._time(time))
            case tree.CumulativeReward(steps, discount):
                steps = None if steps is None else self._steps(steps)
                if discount is not None:
                    discount = self._number(discount, Type.DOUBLE, "a discount factor", *SHARE)
                return replace(node, steps=steps, discount=discount)
            case tree.InstantaneousReward():
                return replace(node, step=self._steps(node.step))
            case tree.Probability(bound=tree.Bound() as bound):
                value = self._number(bound.value, Type.DOUBLE, "the bound of P", *SHARE)
                return replace(node, bound=replace(bound, value=value))
            case tree.Reward(bound=bound):
                if bound is not None:
                    value = self._number(bound.value, Type.DOUBLE, "the bound of R", *ANY)
                    bound = replace(bound, value=value)
                return replace(
                    node, structure=self._structure(node.structure, node.position), bound=bound
                )
        return node

    def _time(self, time: tree.TimeBound) -> tree.TimeBound:
        lower = None if time.lower is None else self._steps(time.lower)
        upper = None if time.upper is None else self._steps(time.upper)
        if lower is not None and upper is not None and lower.value > upper.value:
            reason = f"steps must be [a,b] with a <= b, found [{lower.value},{upper.value}]"
            raise self.source.error(time.position, reason)
        if time.upper_strict and upper is not None and upper.value == 0:
            raise self.source.error(time.position, "steps must be <k with k >= 1, found <0")
        if time.reward is not None:
            self._structure(time.reward, time.position)
        return replace(time, lower=lower, upper=upper)

    def _steps(self, expr: Expr) -> Literal:
        return self._number(expr, Type.INT, "a number of steps", 0, math.inf, ">= 0")

    def _number(
        self, expr: Expr, type_: Type, what: str, least: float, most: float, words: str
    ) -> Literal:
        """Return a constant within limits, which remembers the number as it was written."""
        expr = self.resolved(expr)
        require(expr, type_, fold(expr, self.type_of), what, self.source)
        value = evaluate(expr, {}, self.source)
        value = value if type_ is Type.INT else float(value)
        if not least <= value <= most:
            raise self.source.error(expr.position, f"{what} must be {words}, found {value}")
        return Literal(value, fold(expr, exact_value), position=expr.position)

    def _structure(self, structure: str | Expr | None, position: Position) -> Literal:
        """Return the number, from 1, of the rewards that are measured."""
        names = [rewards.name for rewards in self.model.rewards]
        if not names:
            reason = "R must refer to rewards, found a model without; add 'rewards ... endrewards'"
            raise self.source.error(position, reason)
        if isinstance(structure, Expr):
            what, words = "the number of a reward structure", f"in 1..{len(names)}"
            return self._number(structure, Type.INT, what, 1, len(names), words)
        if structure is not None and structure not in names:
            named = [name for name in names if name is not None]
            listed = ", ".join(f'"{name}"' for name in named) or "unnamed"
            reason = f'unknown rewards "{structure}"; the model has {listed}'
            raise self.source.error(position, reason + question(structure, named))
        number = 1 if structure is None else names.index(structure) + 1
        return Literal(number, position=position)


def require_supported(expr: Expr, source: SourceText) -> None:
    """Raise PrismError unless the property is built of supported parts in the supported way."""
    if fold(expr, lambda x, below: max(below, default=0) + isinstance(x, tree.OPERATORS)) > DEEPEST:
        reason = f"P, R and filters must be nested at most {DEEPEST} deep"
        raise source.error(expr.position, reason)
    if fold(expr, lambda node, below: _is_path(node, below, source)):
        reason = "a path formula must stand inside P or R, for example P=? [ F x=1 ]"
        raise source.error(expr.position, reason)


def _is_path(node: Expr, below: tuple[bool, ...], source: SourceText) -> bool:
    """Return whether a node is a path or reward formula; raise unless its parts fit."""
    match node:
        case tree.Unreadable(_, reason):
            raise source.error(node.position, reason)
        case tree.CumulativeReward() | tree.InstantaneousReward() | tree.LongRunReward():
            return True
        case tree.Path("X", time=tree.TimeBound(position=place)):
            raise source.error(place, "'X' must have no bound on steps")
        case tree.Path(time=tree.TimeBound(upper=None, reward=str(), position=place)):
            reason = 'a lower bound on rewards is not supported; use <= or <, as in F{"r"}<=5'
            raise source.error(place, reason)
        case tree.Path():
            return True
        case Unary("!") | Binary("&" | "|" | "=>" | "<=>") if not any(
            isinstance(child, REWARDS) for child in node.children()
        ):
            return any(below)
        case tree.Probability(path=path):
            if is_nested(path):
                _check_nested(path, source)
            return False
        case tree.Reward(path=path):
            if isinstance(path, REWARDS):
                return False
            if not path_operators(path):
                forms = "R must be over a path formula, C, C<=k, C{discount=d} or I=k"
                raise source.error(path.position, f"{forms}; write F before a state formula")
            _check_nested(path, source)
            return False
    if any(below):
        what = "a filter" if isinstance(node, tree.Filter) else "an operator or function"
        reason = f"the operand of {what} must be a state formula, found a path formula"
        raise source.error(node.children()[0].position, reason)
    return False


def _check_nested(path: Expr, source: SourceText) -> None:
    """Raise if operators inside each other are too deep, or count rewards."""
    depth = fold(path, lambda _, below: max(below, default=0) + 1, leaves=tree.OPERATORS)
    if depth > DEEPEST_PATH:
        reason = f"operators of a path formula must be nested at most {DEEPEST_PATH} deep"
        raise source.error(path.position, reason)
    for node in path_operators(path):
        if node.time is not None and node.time.reward is not None:
            construct = "a bound on a reward inside R, or with other path operators"
            reason = f"{construct} is not supported; count steps instead"
            raise source.error(node.time.position, reason)
