"""The value of a property in all states of a model, with proven bounds.

A property is a tree of ordinary operators over P, R and filters. Each of these is evaluated for
all states with its bounds; nested ones first, because a formula inside P must be decided by
proven bounds in every state.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from rfmdp.answers.exact_thresholds import TURNED, decided, read
from rfmdp.answers.property import Property
from rfmdp.answers.quantity import Quantity, apply_filter, combine, compare
from rfmdp.answers.specification import directions, number, probability, reward
from rfmdp.errors import NotCertifiedError, PrismWarning
from rfmdp.inner.exact import Exact
from rfmdp.inner.protocol import Inner
from rfmdp.language import ast as tree
from rfmdp.language.ast import OPERATORS, ModelType
from rfmdp.language.check_properties import CheckedProperty
from rfmdp.language.checked import model_type
from rfmdp.language.expressions import Expr, Label, Literal, Type, fold, nodes
from rfmdp.language.states import DTYPE, evaluate_states
from rfmdp.language.types import type_of
from rfmdp.language.write import write_expression
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.lattice import AnyModel, LatticeMDP, written
from rfmdp.objective import MAX, Direction, Spec, Temporal, TemporalReward
from rfmdp.outer.problem import BackwardStep, Form, Problem, pose
from rfmdp.outer.settings import Limits, Measure
from rfmdp.outer.solution import Solution, Status
from rfmdp.solving import solve
from rfmdp.state_sets import NamedStates
from rfmdp.temporal.hoa import HoaAutomaton
from rfmdp.temporal.product import Product, make_product, with_automaton
from rfmdp.types import BoolArray

DEEPEST = 50  # operators P, R and filter inside each other
LISTS = ("print", "printall")
SHARPER = 1e-12  # precision tried where a bound such as >= 0.5 is not decided


def states_where(model: AnyModel, prop: Property) -> BoolArray:
    """Return where a state formula holds, (S,)."""
    bound = prop.bind(model)
    return PropertyEvaluator(model, bound, None, Limits()).decided(bound.expression)


class PropertyEvaluator:
    """Evaluates one property on one model."""

    def __init__(
        self,
        model: AnyModel,
        prop: CheckedProperty,
        inner: Inner | None,
        limits: Limits,
        automaton: HoaAutomaton | None = None,
    ) -> None:
        self.model, self.prop, self.names = model, prop, prop.scope
        self.source = prop.scope.source
        self.kind = model_type(model)
        self.inner = Exact() if inner is None else inner
        self.limits, self.automaton = limits, automaton
        self.solutions: list[Solution] = []
        self.natures: list[tuple[Direction, Direction]] = []  # with the agents
        self.bounded: list[Quantity] = []  # what bounds such as >= are about
        self.listed: tuple[Quantity, BoolArray, str] | None = None
        self.is_solution = False  # whether the last solution says all that the property asks
        self._check_depth()

    @property
    def about_one_number(self) -> bool:
        """Whether the property compares just one P or R with a number, outside of any filter."""
        outermost = nodes(self.prop.expression, leaves=OPERATORS)
        operators = [node for node in outermost if isinstance(node, OPERATORS)]
        operator = operators[0] if len(operators) == 1 else None
        return isinstance(operator, tree.Probability | tree.Reward) and operator.bound is not None

    def answer(self) -> tuple[Quantity, Quantity]:
        """Return the least and the largest value of a property, by PRISM's rules.

        They differ only over several initial states.
        """
        initial = self.model.label("init")
        top = self.prop.expression
        if isinstance(top, tree.Filter) and top.operator not in LISTS:
            return self._filter(top)
        quantity = self.quantity(top, initial)
        if self.prop.type is Type.BOOL:
            return apply_filter("forall", self.model, quantity, initial)
        name = "range" if np.count_nonzero(initial) > 1 else "state"
        return apply_filter(name, self.model, quantity, initial)

    def quantity(self, expr: Expr, interest: BoolArray) -> Quantity:
        """Return an expression in all states, as precisely as wanted in those of interest."""

        def visit(node: Expr, below: tuple[Quantity | None, ...]) -> Quantity | None:
            if isinstance(node, OPERATORS):
                return self._operator(node, interest)
            if isinstance(node, Label):
                return Quantity.exact(Type.BOOL, self.model.label(node.name))
            if all(quantity is None for quantity in below):
                return None  # an expression over variables only: compiled as a whole, later
            pairs = zip(node.children(), below, strict=True)
            operands = [quantity or self._plain(child, interest) for child, quantity in pairs]
            return combine(node, operands, self.source)

        return fold(expr, visit, leaves=OPERATORS) or self._plain(expr, interest)

    def states(self, expr: Expr) -> NamedStates:
        """Return where a state formula holds, with its text; see `decided`."""
        return NamedStates(write_expression(expr), self.decided(expr))

    def decided(self, expr: Expr) -> BoolArray:
        """Return where a state formula holds, (S,); raise if bounds leave that open somewhere.

        It is decided by the exact method: one that proves a single side rarely could.
        """
        everywhere = np.ones(self.model.states, dtype=np.bool_)
        outer = self.inner
        self.inner = Exact()
        try:
            truth = self.quantity(expr, everywhere)
        finally:
            self.inner = outer
        method = outer.name
        if method != "exact" and any(isinstance(node, OPERATORS) for node in nodes(expr)):
            warnings.warn(
                "A formula inside another is decided by the exact method, not by "
                f"{method}: the value can differ from one by {method} alone.",
                PrismWarning,
                stacklevel=2,
            )
        open_ = np.flatnonzero(~truth.known)
        if open_.size:
            state = self.model.state_name(int(open_[0]))
            raise NotCertifiedError(
                "A formula inside P or R must be decided in every state; the bounds of "
                f"'{write_expression(expr)}' leave {open_.size} open, the first is {state}. Try "
                "another threshold, a smaller precision, or the exact method."
            )
        return np.asarray(truth.lower, dtype=np.bool_)

    def _operator(self, node: Expr, interest: BoolArray) -> Quantity:
        if isinstance(node, tree.Probability | tree.Reward):
            return self._number(node, interest)
        assert isinstance(node, tree.Filter)  # the last of `OPERATORS`
        least, most = self._filter(node)
        if least is not most:
            reason = "filter(range, ...) must stand alone: it has two values"
            raise self.source.error(node.position, reason)
        return most

    def _number(self, node: tree.Probability | tree.Reward, interest: BoolArray) -> Quantity:
        """Return a probability or an expected reward, or where it meets its bound."""
        agent, nature = directions(node, self.kind, self.source)
        if isinstance(node, tree.Reward):
            assert isinstance(node.structure, Literal)  # the static checks made it a number
            name = list(self.model.rewards)[int(node.structure.value) - 1]
            objective, negated = reward(node.path, name, self.states), False
        elif tree.path_operators(node.path):
            objective, negated = probability(node.path, self.states)
        else:
            indicator = Quantity.exact(Type.DOUBLE, self.decided(node.path))
            return indicator if node.bound is None else _compared(indicator, node.bound)
        self.natures.append((agent, nature))
        if not negated:
            self.is_solution = node is self.prop.expression and node.bound is None
            spec = Spec(objective, agent, nature)
            if isinstance(node, tree.Probability):
                spec = with_automaton(spec, self.automaton)
            return self._measure(spec, node.bound, interest)
        spec = Spec(objective, agent.opposite, nature.opposite)
        if node.bound is None:
            return self._measure(spec, None, interest).one_minus()
        met = self._measure(spec, _turned(node.bound), interest)
        self.bounded.append(self.bounded.pop().one_minus())
        return met

    def _measure(self, spec: Spec, bound: tree.Bound | None, interest: BoolArray) -> Quantity:
        """Return the value of a specification, or where it meets a bound; remember how."""
        solution, quantity, verdict = measure(
            self.model, spec, bound, inner=self.inner, limits=self.limits, interest=interest
        )
        self.solutions.append(solution)
        if verdict is None:
            return quantity
        self.bounded.append(quantity)
        return verdict

    def _filter(self, node: tree.Filter) -> tuple[Quantity, Quantity]:
        where = np.ones(self.model.states, dtype=np.bool_)
        if node.states is not None:
            where = self.decided(node.states)
        operand = self.quantity(node.operand, where)
        ends = apply_filter(node.operator, self.model, operand, where)
        if node.operator in LISTS:
            self.listed = (ends[1], where, node.operator)
        return ends

    def _plain(self, expr: Expr, interest: BoolArray) -> Quantity:
        if isinstance(expr, Literal) and expr.type is Type.BOOL:
            return Quantity.exact(expr.type, np.full(self.model.states, expr.value))
        kind = type_of(expr, self.names.variable_types(), self.source)
        if isinstance(self.model, LatticeMDP):
            formula = partial(evaluate_states, expr, self.names)
            return Quantity.exact(kind, self.model.evaluate(formula, DTYPE[kind]))
        valuations = self.model.valuations.reshape(self.model.states, len(self.model.variables))
        states = np.flatnonzero(interest)
        values = evaluate_states(expr, self.names, valuations, states)
        everywhere = np.zeros(self.model.states, dtype=values.dtype)
        everywhere[states] = values
        return Quantity.exact(kind, everywhere)

    def _check_depth(self) -> None:
        def depth(node: Expr, below: tuple[int, ...]) -> int:
            return max(below, default=0) + isinstance(node, OPERATORS)

        expr = self.prop.expression
        if fold(expr, depth) > DEEPEST:
            reason = f"P, R and filters must be nested at most {DEEPEST} deep"
            raise self.source.error(expr.position, reason)


def measure(
    model: AnyModel,
    spec: Spec,
    bound: tree.Bound | None,
    *,
    inner: Inner,
    limits: Limits,
    interest: BoolArray,
) -> tuple[Solution, Quantity, Quantity | None]:
    """Return a solution, its value in every state, and where that meets a bound if there is one.

    interest : (S,) where the value is found as precisely as wanted, or compared
    """
    request = spec.objective
    if isinstance(request, Temporal | TemporalReward):
        product = make_product(written(model), request, interest)
        solution, quantity, verdict = measure(
            product.model, replace(spec, objective=product.objective(request)), bound,
            inner=inner, limits=limits, interest=product.first(interest),
        )  # fmt: skip
        met = None if verdict is None else _of_base(verdict, product)
        return replace(solution, product=product), _of_base(quantity, product), met
    solution = solve(model, spec, inner=inner, limits=limits, states=interest)
    quantity = _with_certainties(_quantity(solution), solution, interest)
    if bound is None:
        return solution, quantity, None
    verdict = _decided(quantity, bound, solution, interest)
    two_sided = solution.lower is not None and solution.upper is not None
    if (~verdict.known & interest).any() and two_sided and solution.status is Status.CERTIFIED:
        sharper = replace(limits, precision=SHARPER, measure=Measure.ABSOLUTE)
        solution = solve(model, spec, inner=inner, limits=sharper, states=interest, warm=solution)
        quantity = _quantity(solution)
        second = _compared(quantity, bound)
        sure, possible = verdict.lower | second.lower, verdict.upper & second.upper
        verdict = Quantity(Type.BOOL, sure, sure, possible)
    return solution, quantity, verdict


def _of_base(quantity: Quantity, product: Product) -> Quantity:
    """Return what plays from every state of the base model are worth; open where none begins."""
    truth = quantity.type is Type.BOOL
    unknown = (False, False, True) if truth else (-np.inf, 0.0, np.inf)
    ends = zip((quantity.lower, quantity.value, quantity.upper), unknown, strict=True)
    begins = product.start >= 0
    return Quantity(quantity.type, *(np.where(begins, x[product.start], y) for x, y in ends))


def _quantity(solution: Solution) -> Quantity:
    """Return the bounds of a solution; the value is a proven side, the guaranteed one if it can be.

    Nobody has a choice in a chain: there the value is between the bounds, once they are close.
    """
    lower = np.full_like(solution.value, -np.inf) if solution.lower is None else solution.lower
    upper = np.full_like(solution.value, np.inf) if solution.upper is None else solution.upper
    kind = model_type(solution.model)
    if kind is ModelType.DTMC and solution.status is Status.CERTIFIED:
        return Quantity(Type.DOUBLE, lower, solution.value, upper)
    spec = solution.spec
    low = spec.nature is not MAX if kind is ModelType.IDTMC else spec.agent is MAX
    if (solution.lower if low else solution.upper) is None:  # the method proves the other side
        low = not low
    return Quantity(Type.DOUBLE, lower, lower if low else upper, upper)


def _decided(
    quantity: Quantity, bound: tree.Bound, solution: Solution, interest: BoolArray
) -> Quantity:
    """Return where a quantity meets a bound, by its bounds and then by exact values."""
    verdict = _compared(quantity, bound)
    open_ = ~verdict.known & interest
    if not open_.any():
        return verdict
    lower, upper = verdict.lower.copy(), verdict.upper.copy()
    for state, met in decided(solution, bound.operator, _threshold(bound), open_).items():
        lower[state] = upper[state] = met
    return Quantity(Type.BOOL, lower, lower, upper)


def _compared(quantity: Quantity, bound: tree.Bound) -> Quantity:
    """Return where a quantity meets a bound."""
    value = float(number(bound.value))
    lower = upper = value
    if np.isfinite(value) and _threshold(bound) != read(value):  # no float stands for it
        lower = np.nextafter(value, -np.inf) if value > _threshold(bound) else value
        upper = np.nextafter(value, np.inf) if value < _threshold(bound) else value
    ends = (np.full(len(quantity.value), end) for end in (lower, value, upper))
    return compare(bound.operator, quantity, Quantity(Type.DOUBLE, *ends))


def _threshold(bound: tree.Bound) -> Fraction:
    """Return the number that a bound was written as."""
    assert isinstance(bound.value, Literal)  # the static checks evaluated it
    return read(float(bound.value.value)) if bound.value.exact is None else bound.value.exact


def _turned(bound: tree.Bound) -> tree.Bound:
    """Return the bound that x meets where 1 - x meets the given one."""
    threshold = 1 - _threshold(bound)
    return replace(
        bound, operator=bound.operator.translate(TURNED), value=Literal(float(threshold), threshold)
    )


def _with_certainties(quantity: Quantity, solution: Solution, interest: BoolArray) -> Quantity:
    """Return a solved quantity with bounds 0 or 1 where a probability over steps must be that.

    The graph is asked only if the bounds leave that open in some state of interest.
    """
    model, objective = solution.model, solution.spec.objective
    open_ = interest & (quantity.lower < quantity.upper)
    open_ &= np.isfinite(quantity.lower) & np.isfinite(quantity.upper)
    if not np.any(open_ & ((quantity.lower <= 0.0) | (quantity.upper >= 1.0))):
        return quantity
    if not isinstance(model, FactoredMDP) or not objective.plain or objective.endless:
        return quantity
    problem = pose(model, solution.spec)
    if problem.form is not Form.STEPS or not problem.probability:
        return quantity
    zero, one = (_certain_states(problem, value) for value in (0.0, 1.0))
    if problem.flipped:
        zero, one = one, zero
    ends = (quantity.lower, quantity.value, quantity.upper)
    return Quantity(quantity.type, *(np.where(zero, 0.0, np.where(one, 1.0, x)) for x in ends))


def _certain_states(problem: Problem, value: float) -> BoolArray:
    """Return states (S,) that have value 0, or 1, whatever nature does; some may be missing."""
    model = problem.model
    # the agent reaches this value if one row has it, or only if all rows have it
    one_is_enough = (problem.agent is MAX) == (value == 1.0)
    join = np.logical_or if one_is_enough else np.logical_and
    holds: BoolArray = problem.start == value
    last: tuple[BackwardStep, BoolArray] | None = None
    for step in problem.steps:
        if last is not None and last[0] is step and np.array_equal(last[1], holds):
            continue  # the same step again changes nothing
        last = step, holds
        rows = np.logical_and.reduceat(holds[model.successors], model.successor_ptr[:-1])
        holds = join.reduceat(rows, model.row_ptr[:-1])
        holds = np.where(step.fixed, step.given == value, holds)
    return holds
