"""Properties: a text becomes a `Property`, which says of any model what P and R in it measure.

A path formula is a tree over state formulas (the atoms) with X, U, ! and &, by PRISM's rules:

    F b = true U b        G a = !(true U !a)
    a W b = !((a & !b) U (!a & !b))        a R b = !(!a U !b)

with the same bounds on steps or on a reward. A single operator over state formulas has an objective
of its own. All else, and W, R and a negated U, is for the automata of `rfmdp.temporal`.

`Property.spec` and `check` bring a function that makes a set of states of a formula: one that waits
for its model, or one that is decided already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import rfmdp.objective as objectives
from rfmdp.errors import UnsupportedError
from rfmdp.language import ast as tree
from rfmdp.language.ast import Binary, Expr, Literal, ModelType, Unary
from rfmdp.language.check import Work, model_type, scope
from rfmdp.language.check_properties import (
    CheckedProperty,
    check_property,
    require_supported,
    with_numbers,
)
from rfmdp.language.expressions import is_nested, nodes, path_operators, write_expression
from rfmdp.language.names import Constants, plain_values
from rfmdp.language.parse import parse_property_file
from rfmdp.language.source import Position, SourceText
from rfmdp.model.lattice import AnyModel
from rfmdp.objective import MAX, MIN, Direction, Objective, Spec
from rfmdp.state_sets import PathFormula, StateSet
from rfmdp.types import BoolArray

Sets = Callable[[Expr], StateSet]
Formula = tuple[Any, ...]  # a tree of `rfmdp.temporal.formula`
TRUE = Literal(True)
HALVINGS = 30  # of what is left to come, until a discounted value is as precise as most want


@dataclass(frozen=True, slots=True)
class Property:
    """A property in PRISM's language; `solve` and `check` take it.

    file : where its constants, formulas, labels and references come from
    constants : values of constants that the file leaves open
    """

    parsed: tree.PropertyDefinition = field(repr=False)
    file: tree.PropertyFile = field(repr=False)
    constants: Mapping[str, bool | int | float | str] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str | None:
        """The name before the colon, if there is one."""
        return self.parsed.name

    @property
    def text(self) -> str:
        """The property in PRISM's notation, without its name."""
        return write_expression(self.parsed.expression)

    def __str__(self) -> str:
        return self.text

    def bind(self, model: AnyModel, constants: Constants | None = None) -> CheckedProperty:
        """Return the property with its names resolved against a model."""
        constants = {**self.constants, **plain_values(constants)}
        return check_property(self.parsed, self.file, scope(model, self.file.source), constants)

    def spec(self, model: AnyModel | None = None, *, settled: bool = False) -> Spec:
        """Return the specification of a single P or R; of one with a bound, what it bounds.

        Sets of states are resolved when the specification meets a model. Numbers of steps and
        discounts are needed at once: they may use constants of the property's own text, and those
        of `model`. What is more than a single P or R is refused; use `check`.

        settled : whether nobody's direction matters (a policy and nature's choice are given, say);
            then, and without a model, `P=?` is taken for `Pmax=?`
        """
        node, source = self.parsed.expression, self.file.source
        require_supported(node, source)
        if not isinstance(node, tree.Probability | tree.Reward):
            raise _refuse(f"found '{self.text}'")
        kind = None if model is None or settled else model_type(model)
        agent, nature = directions(node, kind, source)
        path = with_numbers(node.path, self.file, scope(model, source), self.constants)
        if isinstance(node, tree.Probability):
            if not path_operators(path):
                raise _refuse("found a state formula inside P")
            objective, negated = probability(path, self.states)
            if negated:
                raise _refuse("found a negated bound on a reward inside P")
            return Spec(objective, agent, nature)
        if isinstance(node.structure, Expr):
            raise _refuse("found rewards by number")
        return Spec(reward(path, node.structure, self.states), agent, nature)

    def states(self, expr: Expr) -> FormulaStates:
        """Return where a formula over the names of this property holds, in any model."""
        return FormulaStates(expr, self)


@dataclass(frozen=True, slots=True)
class FormulaStates:
    """Where a part of a property holds; an objective takes it as a set of states."""

    expr: Expr
    of: Property = field(repr=False)

    @property
    def text(self) -> str:
        """The formula in PRISM's notation."""
        return write_expression(self.expr)

    @property
    def probabilistic(self) -> bool:
        """Whether probabilities decide where it holds: a P, R or filter is inside."""
        return any(isinstance(node, tree.OPERATORS) for node in nodes(self.expr))

    def holds(self, model: AnyModel) -> BoolArray:
        """Return a (S,) array; raise if bounds of a nested P or R leave it open somewhere."""
        from rfmdp.answers.evaluator import PropertyEvaluator

        definition = tree.PropertyDefinition(None, self.expr, position=self.expr.position)
        bound = Property(definition, self.of.file, self.of.constants).bind(model)
        return PropertyEvaluator(model, bound).decided(bound.expression)


def _refuse(what: str) -> UnsupportedError:
    return UnsupportedError(
        f"A specification is a single P or R over X, F, G, U or a reward; {what}. "
        "Answer it with `rfmdp solve`, in Python `check(model, property)`."
    )


def parse_property(text: str, constants: Constants | None = None) -> Property:
    """Return a property; the text may define constants, labels and formulas before it.

    Raises
    ------
    PrismError
        If the text is not one property that rfmdp supports, with place and caret.

    Examples
    --------
    >>> parse_property('const int k = 3; Pmaxmin=? [ F<=k "goal" ]').text
    'Pmaxmin=? [ F<=k "goal" ]'
    """
    file = parse_property_file(text, "<property>")
    properties = file.properties
    if len(properties) != 1:
        place = properties[1].position if properties else Position(1, 1)
        raise file.source.error(place, f"expected one property, found {len(properties)}")
    require_supported(properties[0].expression, file.source)
    return Property(properties[0], file, plain_values(constants))


def parse_properties(text: str, filename: str = "<properties>") -> list[Property]:
    """Return all properties of a text; those that are not supported say so when they are used."""
    file = parse_property_file(text, filename)
    return [Property(parsed, file) for parsed in file.properties]


def probability(path: Expr, states: Sets) -> tuple[Objective, bool]:
    """Return the objective of a path formula, and whether the answer is one minus its value."""
    if isinstance(path, tree.Path) and path.operator == "S":
        return objectives.LongRunShare(states(path.right)), False
    atoms: list[Expr] = []
    formula = _formula(path, atoms)
    negated = formula[0] == "!"
    match formula[1] if negated else formula:
        case ("X", operand):
            target = _state_formula(operand, atoms)
            if target is not None:
                return objectives.Next(states(_negation(target) if negated else target)), False
        case ("U", left, right, earliest, latest):
            stay, target = _state_formula(left, atoms), _state_formula(right, atoms)
            times = [operator.time for operator in path_operators(path)]
            name = next((time.reward for time in times if time is not None), None)
            if stay is None or target is None:
                pass
            elif name is not None:
                return objectives.BudgetUntil(states(stay), states(target), latest, name), negated
            elif negated and stay == TRUE:
                return objectives.Globally(states(_negation(target)), latest, earliest), False
            elif not negated and stay == TRUE and (earliest, latest) == (0, None):
                return objectives.Reach(states(target)), False
            elif not negated:
                return objectives.Until(states(stay), states(target), latest, earliest), False
    return objectives.Temporal(_path_formula(path, states)), False


def reward(path: Expr, name: str | None, states: Sets) -> Objective:
    """Return the objective of a reward formula."""
    match path:
        case tree.Path("F", right=target, time=None) if not is_nested(path):
            return objectives.ReachReward(states(target), name)
        case tree.LongRunReward():
            return objectives.LongRunAverage(name)
        case tree.InstantaneousReward(step):
            return objectives.Instantaneous(int(number(step)), name)
        case tree.CumulativeReward(steps, discount):
            limit = None if steps is None else int(number(steps))
            factor = 1.0 if discount is None else float(number(discount))
            if factor == 0.0:  # only the first step pays
                return objectives.Cumulative(1 if limit is None else min(limit, 1), name)
            if limit is not None:
                return objectives.Cumulative(limit, name, factor)
            return objectives.Total(name) if factor == 1.0 else objectives.Discounted(factor, name)
    return objectives.TemporalReward(_path_formula(path, states), name)


def number(expr: Expr) -> int | float:
    """Return a number that the static checks evaluated."""
    assert isinstance(expr, Literal)
    return expr.value


def _path_formula(path: Expr, states: Sets) -> PathFormula:
    atoms: list[Expr] = []
    formula = _formula(path, atoms)
    return PathFormula(write_expression(path), formula, tuple(states(atom) for atom in atoms))


def _formula(path: Expr, atoms: list[Expr]) -> Formula:
    """Return a path formula as a tree; state formulas that are new in it are added to the atoms."""
    if path == TRUE:
        return ("true",)
    if not path_operators(path):
        if path not in atoms:
            atoms.append(path)
        return ("atom", atoms.index(path))
    if not isinstance(path, tree.Path):
        left, *rest = (_formula(child, atoms) for child in path.children())
        match path:
            case Unary():
                return _not(left)
            case Binary("=>"):
                return ("|", _not(left), *rest)
            case Binary("<=>"):
                return ("|", ("&", left, *rest), ("&", _not(left), _not(*rest)))
        assert isinstance(path, Binary)
        return (path.operator, left, *rest)
    first = ("true",) if path.left is None else _formula(path.left, atoms)
    right = _formula(path.right, atoms)
    if path.operator == "X":
        return ("X", right)
    times = _steps(path.time)
    match path.operator:
        case "G":
            return _not(("U", first, _not(right), *times))
        case "W":
            return _not(("U", ("&", first, _not(right)), ("&", _not(first), _not(right)), *times))
        case "R":
            return _not(("U", _not(first), _not(right), *times))
    return ("U", first, right, *times)


def _not(formula: Formula) -> Formula:
    negated: Formula = formula[1] if formula[0] == "!" else ("!", formula)
    return negated


def _steps(time: tree.TimeBound | None) -> tuple[int, int | None]:
    """Return the first and last step that count; None for no last one."""
    if time is None:
        return 0, None
    earliest = 0 if time.lower is None else int(number(time.lower)) + time.lower_strict
    latest = None if time.upper is None else int(number(time.upper)) - time.upper_strict
    return earliest, latest


def _state_formula(formula: Formula, atoms: list[Expr]) -> Expr | None:
    """Return what a tree without X and U says about a state; None for others."""
    match formula:
        case ("true",):
            return TRUE
        case ("atom", int(number)):
            return atoms[number]
        case ("!", operand):
            expr = _state_formula(operand, atoms)
            return None if expr is None else _negation(expr)
        case ("&", *operands):
            left, right = (_state_formula(operand, atoms) for operand in operands)
            if left is not None and right is not None:
                return Binary("&", left, right, position=left.position)
    return None


def _negation(expr: Expr) -> Expr:
    if isinstance(expr, Unary):
        return expr.operand
    return Unary("!", expr, position=expr.position)


def directions(
    node: tree.Probability | tree.Reward, kind: ModelType | None, source: SourceText
) -> tuple[Direction, Direction]:
    """Return the directions of (agent, nature), by PRISM's rules.

    A bound such as >= must hold whatever both do. Nature has the agent's direction unless the text
    gives it one (`Pmaxmin`). Where nobody has a choice, the text need not say min or max.

    kind : what the model amounts to, None if that is not known
    """
    if node.agent is not None:
        agent = node.agent
    elif node.bound is not None:
        agent = MIN if node.bound.operator.startswith(">") else MAX
    elif kind in (None, ModelType.DTMC):
        agent = MAX
    else:
        who = "agent" if kind is ModelType.MDP else "nature" if kind is ModelType.IDTMC else "both"
        letter = "P" if isinstance(node, tree.Probability) else "R"
        pair = f", or a pair such as {letter}maxmin=?" if kind is ModelType.IMDP else ""
        reason = (
            f"'{letter}=?' must say min or max on a model with choices (here: {who}); "
            f"use {letter}min=? or {letter}max=?{pair}"
        )
        raise source.error(node.position, reason)
    return agent, node.nature or agent


def backward_steps(questions: Iterable[tuple[Expr, Sets]]) -> Work | None:
    """Return how many steps back from their ends the numbers of checked properties are, at most.

    None: one is about more states than the initial ones, or of a kind that only a model with
    written transitions answers.

    questions : each with what makes sets of states that have the formula as their `expr`
    """
    steps, ends = 0, list[Expr]()
    for expr, states in questions:
        outermost = [x for x in nodes(expr, tree.OPERATORS) if isinstance(x, tree.OPERATORS)]
        if sum(isinstance(x, tree.OPERATORS) for x in nodes(expr)) > len(outermost):
            return None
        for operator in outermost:
            work = _work(operator, states)
            if work is None:
                return None
            steps, ends = max(steps, work.steps), [*ends, *work.ends]
    return Work(steps, tuple(ends))


def _work(operator: Expr, states: Sets) -> Work | None:
    match operator:
        case tree.Probability(path=path):
            if not path_operators(path):
                return Work()
            objective = probability(path, states)[0]
        case tree.Reward(path=path):
            objective = reward(path, None, states)
        case _:
            return None
    earliest, latest = objective.span
    if objective.endless or not objective.plain:
        return None
    if latest is not None:
        return Work(latest)
    if objective.factor < 1.0:
        return Work(int(HALVINGS / (1.0 - objective.factor)) + 1)
    sets: dict[str, Any] = objective.sets
    if earliest or not sets:
        return None
    ends: list[Expr] = [sets["target"].expr] if "target" in sets else []
    ends += [_negation(sets["stay"].expr)] if "stay" in sets else []
    return Work(ends=(reduce(lambda left, right: Binary("|", left, right), ends),))
