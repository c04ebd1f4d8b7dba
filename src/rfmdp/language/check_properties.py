"""Static semantics of properties: names, types and bounds against a checked model.

Each property is resolved on its own, so that a mistake in one does not touch the others, and an
undefined constant matters only to properties that use it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from rfmdp.language.ast import (
    Binary,
    Expr,
    Formula,
    Label,
    Literal,
    Name,
    Type,
    Unary,
    fold,
    nodes,
    rewrite,
)
from rfmdp.language.check import check_labels, check_unique, expand_labels
from rfmdp.language.checked import BUILT_IN_LABELS, CheckedModel
from rfmdp.language.constants import Constants, constant_values, constants_hint, needed
from rfmdp.language.evaluate import Value, evaluate, exact_value, simplify
from rfmdp.language.expand import (
    dependencies,
    expand,
    expand_formulas,
    literals,
    references,
    substitute,
)
from rfmdp.language.property_ast import (
    Bound,
    CumulativeReward,
    Filter,
    InstantaneousReward,
    LongRunReward,
    Path,
    Probability,
    PropertyDefinition,
    PropertyFile,
    Reward,
    TimeBound,
    path_operators,
    require_supported,
)
from rfmdp.language.source import Position, SourceText, nearest, question
from rfmdp.language.types import node_type, require, type_of

NUMERIC_FILTERS = frozenset({"min", "max", "avg", "sum", "range"})
BOOLEAN_FILTERS = frozenset({"count", "forall", "exists"})
FILTER_TYPES = {
    "avg": Type.DOUBLE,
    "range": Type.DOUBLE,
    "count": Type.INT,
    "forall": Type.BOOL,
    "exists": Type.BOOL,
}


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
    prop: PropertyDefinition,
    file: PropertyFile,
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
    source = file.source
    check_file(file, model)
    _refuse_misspelt(prop, file, model)
    expression = _inline(prop, file, model)
    require_supported(expression, source)
    formulas = _formulas(file, model)
    expression = substitute(expression, formulas)
    labels = {x.name: replace(x, value=substitute(x.value, formulas)) for x in file.labels}
    used = dependencies(
        references(expression, Label) & labels.keys(),
        lambda name: references(labels[name].value, Label) & labels.keys(),
    )
    texts = [expression, *(labels[name].value for name in used)]
    _refuse_undefined(texts, model, source)
    numbers = literals(_constants(texts, formulas, file, model, constants or {}))
    conditions = {label.name: label.value for label in model.labels}
    of_file = expand_labels([labels[name] for name in used], numbers, source)
    conditions |= {name: substitute(x, conditions, Label) for name, x in of_file.items()}
    named = [p.name for p in file.properties if p.name is not None]
    expression = rewrite(
        substitute(expression, numbers), lambda node: _label(node, conditions, named, source)
    )
    scope = _Scope(model.variable_types(), model, source)
    type_ = fold(expression, scope.type_of)
    expression = simplify(rewrite(expression, scope.settle))
    return CheckedProperty(expression, type_, model)


def with_numbers(path: Expr, file: PropertyFile, model: CheckedModel, inputs: Constants) -> Expr:
    """Return a path or reward formula with its steps and discount as numbers.

    Its state formulas stay as they are, so that `model` need only have the constants.
    """
    if isinstance(path, Unary | Binary) and path_operators(path):
        below = [with_numbers(child, file, model, inputs) for child in path.children()]
        return path.rebuilt(below)
    if not isinstance(path, Path | CumulativeReward | InstantaneousReward):
        return path
    children = list(path.children())
    begin = (1 if path.left is None else 2) if isinstance(path, Path) else 0
    children[:begin] = [with_numbers(child, file, model, inputs) for child in children[:begin]]
    formulas = _formulas(file, model)
    numbers = [substitute(child, formulas) for child in children[begin:]]
    constants = literals(_constants(numbers, formulas, file, model, inputs))
    rest = [substitute(number, constants) for number in numbers]
    scope = _Scope(model.variable_types(), model, file.source)
    return scope.settle(path.rebuilt([*children[:begin], *rest]))


def _refuse_misspelt(prop: PropertyDefinition, file: PropertyFile, model: CheckedModel) -> None:
    """Raise if a property is a single unknown name, and others have names that may be meant."""
    expr = prop.expression
    if not isinstance(expr, Name):
        return
    names = {*model.variable_types(), *model.constants, *model.formulas}
    names |= {c.name for c in file.constants} | {f.name for f in file.formulas}
    named = [p.name for p in file.properties if p.name is not None]
    if expr.name in names or not named:
        return
    meant = nearest(expr.name, named)
    hint = f"did you mean the property '{meant}'?"
    if meant is None:
        hint = f"properties with a name are {', '.join(named)}"
    raise file.source.error(expr.position, f"unknown name '{expr.name}'; {hint}")


def _refuse_undefined(texts: Iterable[Expr], model: CheckedModel, source: SourceText) -> None:
    """Raise if a property uses a constant of the model that has no value."""
    for node in (node for text in texts for node in nodes(text)) if model.undefined else ():
        if isinstance(node, Name) and node.name in model.undefined:
            reason = f"constant '{node.name}' of the model has no value; give "
            reason += constants_hint([node.name])
            raise source.error(node.position, reason)


def check_file(file: PropertyFile, model: CheckedModel) -> None:
    """Raise if a property file defines a name twice, or one that the model has."""
    source = file.source
    definitions = [(c.name, "constant", c.position) for c in file.constants]
    definitions += [(f.name, "formula", f.position) for f in file.formulas]
    check_unique(iter(definitions), source)
    for name, _, position in definitions:
        if name in model.variable_types() or name in model.constants or name in model.formulas:
            raise source.error(position, f"'{name}' must not be defined again, the model has it")
    named = [(p.name, "property", p.position) for p in file.properties if p.name is not None]
    named += [(label.name, "label", label.position) for label in file.labels]
    check_unique(iter(named), source)
    check_labels(file.labels, [label.name for label in model.labels], source)


@dataclass(frozen=True, slots=True)
class _Scope:
    """Types and bounds of one property."""

    types: Mapping[str, Type]
    model: CheckedModel
    source: SourceText

    def type_of(self, node: Expr, below: tuple[Type, ...]) -> Type:
        """Return the type of a node and check its operands."""
        match node:
            case Path():
                operands = node.children()[: 1 if node.left is None else 2]
                for operand, operand_type in zip(operands, below, strict=False):
                    what = f"an operand of '{node.operator}'"
                    require(operand, Type.BOOL, operand_type, what, self.source)
                return Type.BOOL
            case CumulativeReward() | InstantaneousReward() | LongRunReward():
                return Type.DOUBLE
            case Probability():
                require(node.path, Type.BOOL, below[-1], "the formula inside P", self.source)
                return Type.DOUBLE if node.bound is None else Type.BOOL
            case Reward():
                return Type.DOUBLE if node.bound is None else Type.BOOL
            case Filter():
                return self._filter(node, below)
        return node_type(node, below, self.types, self.source)

    def _filter(self, node: Filter, below: tuple[Type, ...]) -> Type:
        name, operand = node.operator, below[0]
        if name in NUMERIC_FILTERS:
            require(node.operand, Type.DOUBLE, operand, f"the operand of '{name}'", self.source)
        if name in BOOLEAN_FILTERS:
            require(node.operand, Type.BOOL, operand, f"the operand of '{name}'", self.source)
        if node.states is not None:
            require(node.states, Type.BOOL, below[1], "the states of a filter", self.source)
        return FILTER_TYPES.get(name, operand)

    def settle(self, node: Expr) -> Expr:
        """Replace bounds, steps, discounts and reward structures of a node by their values."""
        match node:
            case Path(time=TimeBound() as time):
                return replace(node, time=self._time(time))
            case CumulativeReward(steps, discount):
                steps = None if steps is None else self._steps(steps)
                if discount is not None:
                    discount = self._number(discount, Type.DOUBLE, "a discount factor", *SHARE)
                return replace(node, steps=steps, discount=discount)
            case InstantaneousReward():
                return replace(node, step=self._steps(node.step))
            case Probability(bound=Bound() as bound):
                value = self._number(bound.value, Type.DOUBLE, "the bound of P", *SHARE)
                return replace(node, bound=replace(bound, value=value))
            case Reward(bound=bound):
                if bound is not None:
                    value = self._number(bound.value, Type.DOUBLE, "the bound of R", *ANY)
                    bound = replace(bound, value=value)
                return replace(node, structure=self._structure(node), bound=bound)
        return node

    def _time(self, time: TimeBound) -> TimeBound:
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
        require(expr, type_, type_of(expr, self.types, self.source), what, self.source)
        value = evaluate(expr, {}, self.source)
        value = value if type_ is Type.INT else float(value)
        if not least <= value <= most:
            raise self.source.error(expr.position, f"{what} must be {words}, found {value}")
        return Literal(value, exact_value(expr), position=expr.position)

    def _structure(self, node: Reward) -> Literal:
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


def _inline(prop: PropertyDefinition, file: PropertyFile, model: CheckedModel) -> Expr:
    """Replace references to other properties by what they stand for."""
    labels = {label.name for label in chain(file.labels, model.labels)} | set(BUILT_IN_LABELS)
    named = {p.name: p for p in file.properties if p.name is not None and p.name not in labels}

    def inner(expr: Expr) -> set[str]:
        return references(expr, Label) & named.keys()

    graph = dependencies(inner(prop.expression), lambda name: inner(named[name].expression))
    texts = {name: named[name].expression for name in graph}
    places = {name: named[name].position for name in graph}
    return substitute(prop.expression, expand(texts, "property", places, file.source, Label), Label)


def _formulas(file: PropertyFile, model: CheckedModel) -> Mapping[str, Expr]:
    """Return the expanded formulas of a model, which are so already, and of a file."""
    if not file.formulas:
        return model.formulas
    of_model = [Formula(name, value) for name, value in model.formulas.items()]
    return expand_formulas([*of_model, *file.formulas], file.source)


def _constants(
    texts: Iterable[Expr],
    formulas: Mapping[str, Expr],
    file: PropertyFile,
    model: CheckedModel,
    inputs: Constants,
) -> dict[str, Value]:
    """Return the values of the constants that some texts need, and all those of the model."""
    used = needed(texts, file.constants, formulas)
    constants = [constant for constant in file.constants if constant.name in used]
    types = model.variable_types() | {c.name: c.type for c in file.constants}
    types |= {name: Literal(value).type for name, value in model.constants.items()}
    inputs = {name: value for name, value in inputs.items() if name in used}
    of_file = constant_values(constants, inputs, types, formulas, file.source, model.constants)
    return {**model.constants, **of_file}


def _label(
    node: Expr, labels: Mapping[str, Expr], properties: Sequence[str], source: SourceText
) -> Expr:
    if not isinstance(node, Label) or node.name in BUILT_IN_LABELS:
        return node
    if node.name not in labels:
        listed = ", ".join(f'"{name}"' for name in sorted(labels))
        hint = f"the labels are {listed}" if listed else "define it"
        meant = question(node.name, [*labels, *properties])
        reason = f'unknown label or property "{node.name}"; {hint}{meant}'
        raise source.error(node.position, reason)
    return labels[node.name]
