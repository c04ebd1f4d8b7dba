"""Static semantics of properties: names, types and bounds against a checked model.

Each property is resolved on its own, so that a mistake in one does not touch the others, and an
undefined constant matters only to properties that use it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rfmdp.language import ast as tree
from rfmdp.language.ast import is_nested, path_operators
from rfmdp.language.check import check_unique
from rfmdp.language.checked import BUILT_IN_LABELS, CheckedModel
from rfmdp.language.constants import (
    Constants,
    Definition,
    constant_definitions,
    definitions,
    meanings,
    require_values,
)
from rfmdp.language.evaluate import evaluate, exact_value, simplify
from rfmdp.language.expand import references, substitute
from rfmdp.language.expressions import (
    Binary,
    Expr,
    Label,
    Literal,
    Name,
    Type,
    Unary,
    fold,
    rewrite,
)
from rfmdp.language.source import NOWHERE, Position, SourceText, question
from rfmdp.language.types import node_type, require, type_of

NUMERIC_FILTERS = frozenset({"min", "max", "avg", "sum"})
BOOLEAN_FILTERS = frozenset({"count", "forall", "exists"})
FILTER_TYPES = {
    "avg": Type.DOUBLE,
    "count": Type.INT,
    "forall": Type.BOOL,
    "exists": Type.BOOL,
}
REWARDS = (tree.CumulativeReward, tree.InstantaneousReward, tree.LongRunReward)
DEEPEST = 100  # operators of a path formula inside each other
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
    """Return a property of a file resolved against a model.

    constants : values of constants that the file leaves open

    >>> from rfmdp.language.check import check_model
    >>> from rfmdp.language.parse import parse_model
    >>> from rfmdp.language.parse_properties import parse_property_file
    >>> model = check_model(parse_model("module m x : [0..2]; [] true -> (x'=1); endmodule"))
    >>> file = parse_property_file("const int k = 2; P=? [ F<=2*k x=k ]")
    >>> check_property(file.properties[0], file, model).expression.path.time.upper
    Literal(value=4)
    """
    check_file(file, model)
    _refuse_misspelt(prop, file, model)
    scope = _Scope(file, model, constants or {})
    (expression,) = scope.resolved([prop.expression])
    require_supported(expression, file.source)
    type_ = fold(expression, scope.type_of)
    return CheckedProperty(simplify(rewrite(expression, scope.settle)), type_, model)


def _refuse_misspelt(
    prop: tree.PropertyDefinition, file: tree.PropertyFile, model: CheckedModel
) -> None:
    """Raise if a property is a single unknown name, and others have names that may be meant."""
    expr = prop.expression
    names = {*model.variable_types(), *model.constants, *model.formulas}
    names |= {x.name for x in file.constants} | {x.name for x in file.formulas}
    named = [p.name for p in file.properties if p.name is not None]
    if isinstance(expr, Name) and expr.name not in names and named:
        hint = question(expr.name, named) or f"; properties with a name are {', '.join(named)}"
        raise file.source.error(expr.position, f"unknown name '{expr.name}'{hint}")


def with_numbers(
    path: Expr, file: tree.PropertyFile, model: CheckedModel, inputs: Constants
) -> Expr:
    """Return a path or reward formula with its steps and discount as numbers.

    Its state formulas stay as they are, so that `model` need only have the constants.
    """
    if isinstance(path, Unary | Binary) and path_operators(path):
        below = [with_numbers(child, file, model, inputs) for child in path.children()]
        return path.rebuilt(below)
    if not isinstance(path, tree.Path | tree.CumulativeReward | tree.InstantaneousReward):
        return path
    children = list(path.children())
    begin = (1 if path.left is None else 2) if isinstance(path, tree.Path) else 0
    children[:begin] = [with_numbers(child, file, model, inputs) for child in children[:begin]]
    scope = _Scope(file, model, inputs)
    return scope.settle(path.rebuilt([*children[:begin], *scope.resolved(children[begin:])]))


def check_file(file: tree.PropertyFile, model: CheckedModel) -> None:
    """Raise if a property file defines a name twice, or one that the model has."""
    check_unique({"constant": file.constants, "formula": file.formulas}, file.source)
    check_unique({"property": file.properties, "label": file.labels}, file.source)
    names = {*model.variable_types(), *model.constants, *model.formulas}
    labels = {label.name for label in model.labels}
    values: list[tree.Constant | tree.Formula] = [*file.constants, *file.formulas]
    again = [node for node in values if node.name in names]
    for node in (*again, *(label for label in file.labels if label.name in labels)):
        reason = f"'{node.name}' must not be defined again, the model has it"
        raise file.source.error(node.position, reason)


class _Scope:
    """What names stand for in the properties of a file; types and bounds of these."""

    def __init__(self, file: tree.PropertyFile, model: CheckedModel, inputs: Constants) -> None:
        self.model, self.source = model, file.source
        labels = {x.name: x for x in (*model.labels, *file.labels)}
        self.labels, self.known = sorted(labels), {*labels, *BUILT_IN_LABELS}
        named = {p.name: p for p in file.properties if p.name is not None}
        self.names = [*labels, *named]
        numbers = {name: Literal(value) for name, value in model.constants.items()}
        properties = {
            f'"{name}"': Definition("property", prop.expression, prop.position)
            for name, prop in named.items()
            if name not in self.known
        }
        self._definitions = (
            {
                k: Definition("formula", x, NOWHERE)
                for k, x in (numbers | {**model.formulas}).items()
            }
            | constant_definitions(file.constants, inputs, file.source)
            | definitions("formula", file.formulas)
            # labels of a built model stand for themselves
            | definitions("label", (x for x in labels.values() if x.value != Label(x.name)))
            | properties
        )
        self._types = model.variable_types() | {c.name: c.type for c in file.constants}

    def resolved(self, texts: Sequence[Expr]) -> list[Expr]:
        """Return texts with their names, labels and names of properties replaced."""
        first = [name for text in texts for name in references(text)]
        values = meanings(self._definitions, self._types, self.source, first)
        texts = [substitute(text, values) for text in texts]
        open_ = {k: d.position for k, d in self._definitions.items() if d.value is None}
        open_ |= dict.fromkeys(self.model.undefined, NOWHERE)
        require_values(texts, open_, self.source)
        return texts

    def type_of(self, node: Expr, below: tuple[Type, ...]) -> Type:
        """Return the type of a node and check its operands."""
        match node:
            case Label(name) if name not in self.known:
                listed = ", ".join(f'"{label}"' for label in self.labels)
                hint = f"the labels are {listed}" if listed else "define it"
                meant = question(name, self.names)
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
            case tree.Probability():
                require(node.path, Type.BOOL, below[-1], "the formula inside P", self.source)
                return Type.DOUBLE if node.bound is None else Type.BOOL
            case tree.Reward():
                return Type.DOUBLE if node.bound is None else Type.BOOL
            case tree.Filter():
                return self._filter(node, below)
        return node_type(node, below, self._types, self.source)

    def _filter(self, node: tree.Filter, below: tuple[Type, ...]) -> Type:
        name, operand = node.operator, below[0]
        if name in NUMERIC_FILTERS | BOOLEAN_FILTERS:
            expected = Type.DOUBLE if name in NUMERIC_FILTERS else Type.BOOL
            require(node.operand, expected, operand, f"the operand of '{name}'", self.source)
        if node.states is not None:
            require(node.states, Type.BOOL, below[1], "the states of a filter", self.source)
        return FILTER_TYPES.get(name, operand)

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
                return replace(node, structure=self._structure(node), bound=bound)
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
            self._number_of(time.reward, time.position)
        return replace(time, lower=lower, upper=upper)

    def _steps(self, expr: Expr) -> Literal:
        return self._number(expr, Type.INT, "a number of steps", 0, math.inf, ">= 0")

    def _number(
        self, expr: Expr, type_: Type, what: str, least: float, most: float, words: str
    ) -> Literal:
        """Return a constant within limits, which remembers the number as it was written."""
        require(expr, type_, type_of(expr, self._types, self.source), what, self.source)
        value = evaluate(expr, {}, self.source)
        value = value if type_ is Type.INT else float(value)
        if not least <= value <= most:
            raise self.source.error(expr.position, f"{what} must be {words}, found {value}")
        return Literal(value, exact_value(expr), position=expr.position)

    def _structure(self, node: tree.Reward) -> Literal:
        """Return the number, from 1, of the rewards that are measured."""
        if not self.model.rewards:
            reason = "R must refer to rewards, found a model without; add 'rewards ... endrewards'"
            raise self.source.error(node.position, reason)
        if isinstance(node.structure, Expr):
            most = len(self.model.rewards)
            what = "the number of a reward structure"
            return self._number(node.structure, Type.INT, what, 1, most, f"in 1..{most}")
        number = 1 if node.structure is None else self._number_of(node.structure, node.position)
        return Literal(number, position=node.position)

    def _number_of(self, structure: str, position: Position) -> int:
        """Return the number, from 1, of the rewards of a name."""
        names = [rewards.name for rewards in self.model.rewards]
        if structure in names:
            return names.index(structure) + 1
        named = [name for name in names if name is not None]
        listed = ", ".join(f'"{name}"' for name in named) or ("unnamed" if names else "none")
        meant = question(structure, named)
        reason = f'unknown rewards "{structure}"; the model has {listed}{meant}'
        raise self.source.error(position, reason)


def require_supported(expr: Expr, source: SourceText) -> None:
    """Raise PrismError unless the property is built of supported parts in the supported way."""
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
            hint = 'use <= or <, as in F{"r"}<=5'
            raise source.unsupported(place, "a lower bound on rewards", hint)
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

    def depth(node: Expr, below: tuple[int, ...]) -> int:
        return max(below, default=0) + 1

    if fold(path, depth, leaves=tree.OPERATORS) > DEEPEST:
        reason = f"operators of a path formula must be nested at most {DEEPEST} deep"
        raise source.error(path.position, reason)
    for node in path_operators(path):
        if node.time is not None and node.time.reward is not None:
            construct = "a bound on a reward inside R, or with other path operators"
            raise source.unsupported(node.time.position, construct, "count steps instead")
