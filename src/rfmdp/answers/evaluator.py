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

from rfmdp.answers.exact_thresholds import exact_values, read
from rfmdp.answers.property import directions, number, probability, reward
from rfmdp.answers.quantity import FUNCTIONS, Quantity, apply_filter, combine, compare
from rfmdp.errors import NotCertifiedError, PrismWarning
from rfmdp.inner.protocol import Inner
from rfmdp.inner.solvers import Exact
from rfmdp.language import ast as tree
from rfmdp.language.ast import Expr, Label, Literal, Type
from rfmdp.language.check import DTYPE, evaluate_states, model_type
from rfmdp.language.check_properties import CheckedProperty
from rfmdp.language.expressions import fold, nodes, path_operators, type_of, write_expression
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.lattice import AnyModel, LatticeMDP, written
from rfmdp.objective import MAX, Direction, Spec, Temporal, TemporalReward
from rfmdp.outer.problem import BackwardStep, Form, pose
from rfmdp.outer.solution import Solution, Status
from rfmdp.outer.task import Limits, Measure
from rfmdp.solving import solve
from rfmdp.state_sets import NamedStates
from rfmdp.temporal.hoa import HoaAutomaton
from rfmdp.temporal.product import Product, make_product, with_automaton
from rfmdp.types import BoolArray

SHARPER = 1e-12  # precision tried where a bound such as >= 0.5 is not decided


class PropertyEvaluator:
    """Evaluates one property on one model."""

    def __init__(
        self,
        model: AnyModel,
        prop: CheckedProperty,
        inner: Inner | None = None,
        limits: Limits | None = None,
        automaton: HoaAutomaton | None = None,
    ) -> None:
        self.model, self.kind, self.prop = model, model_type(model), prop
        self.source = prop.scope.source
        self.inner, self.limits, self.automaton = inner or Exact(), limits or Limits(), automaton
        self.solutions: list[Solution] = []
        self.natures: list[tuple[Direction, Direction]] = []  # with the agents
        self.bounded: list[Quantity] = []  # what bounds such as >= are about
        self.listed: list[tuple[tree.Filter, Quantity, BoolArray]] = []  # operands, in states
        self.is_solution = False  # whether the last solution says all that the property asks

    def bounds(self) -> tuple[float, float]:
        """Return bounds of the number that the initial truth value is about, if it is just one."""
        outermost = nodes(self.prop.expression, leaves=tree.OPERATORS)
        limits = [getattr(x, "bound", None) for x in outermost if isinstance(x, tree.OPERATORS)]
        one_number = len(limits) == 1 and limits[0] is not None
        if not one_number or len(self.bounded) != 1 or len(self.model.initial) != 1:
            return -np.inf, np.inf
        state = int(self.model.initial[0])
        return float(self.bounded[0].lower[state]), float(self.bounded[0].upper[state])

    def answer(self) -> Quantity:
        """Return the value of a property, the same in all initial states, or whether all hold."""
        initial = self.model.label("init")
        quantity = self.quantity(self.prop.expression, initial)
        ends = [end[initial] for end in (quantity.lower, quantity.upper)]
        one = all((end == end[0]).all() for end in ends)  # a formula over filters, say
        name = "forall" if self.prop.type is Type.BOOL else "first" if one else "state"
        return apply_filter(name, self.model, quantity, initial)

    def quantity(self, expr: Expr, interest: BoolArray) -> Quantity:
        """Return an expression in all states, as precisely as wanted in those of interest."""

        def visit(node: Expr, below: tuple[Quantity | None, ...]) -> Quantity | None:
            if isinstance(node, tree.Probability | tree.Reward):
                return self._number(node, interest)
            if isinstance(node, tree.Filter):
                return self._filter(node)
            if isinstance(node, Label):
                return Quantity.exact(Type.BOOL, self.model.label(node.name))
            if all(quantity is None for quantity in below):
                return None  # an expression over variables only: compiled as a whole, later
            pairs = zip(node.children(), below, strict=True)
            operands = [quantity or self._plain(child, interest) for child, quantity in pairs]
            return combine(node, operands, self.source)

        return fold(expr, visit, leaves=tree.OPERATORS) or self._plain(expr, interest)

    def states(self, expr: Expr) -> NamedStates:
        """Return where a state formula holds, with its text; see `decided`."""
        return NamedStates(write_expression(expr), self.decided(expr))

    def decided(self, expr: Expr) -> BoolArray:
        """Return where a state formula holds, (S,); raise if bounds leave that open somewhere.

        It is decided by the exact method: one that proves a single side rarely could.
        """
        asked, self.inner = self.inner, Exact()
        truth = self.quantity(expr, np.ones(self.model.states, dtype=np.bool_))
        self.inner, method = asked, asked.name
        if method != "exact" and any(isinstance(node, tree.OPERATORS) for node in nodes(expr)):
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

    def _filter(self, node: tree.Filter) -> Quantity:
        where = np.ones(self.model.states, dtype=np.bool_)
        if node.states is not None:
            where = self.decided(node.states)
        operand = self.quantity(node.operand, where)
        result = apply_filter(node.operator, self.model, operand, where)
        if node.operator in tree.LISTS:
            self.listed.append((node, operand, where))
        return result

    def _number(self, node: tree.Probability | tree.Reward, interest: BoolArray) -> Quantity:
        """Return a probability or an expected reward, or where it meets its bound."""
        agent, nature = directions(node, self.kind, self.source)
        if isinstance(node, tree.Reward):
            assert isinstance(node.structure, Literal)  # the static checks made it a number
            name = list(self.model.rewards)[int(node.structure.value) - 1]
            objective, negated = reward(node.path, name, self.states), False
        elif path_operators(node.path):
            objective, negated = probability(node.path, self.states)
        else:
            indicator = Quantity.exact(Type.DOUBLE, self.decided(node.path))
            return indicator if node.bound is None else _compared(indicator, node.bound)
        self.natures.append((agent, nature))
        self.is_solution = node is self.prop.expression and node.bound is None and not negated
        if negated:
            agent, nature = agent.opposite, nature.opposite
        spec = Spec(objective, agent, nature)
        if isinstance(node, tree.Probability):
            spec = with_automaton(spec, self.automaton)
        solution, quantity, verdict = self._solved(self.model, spec, negated, node.bound, interest)
        self.solutions.append(solution)
        if verdict is None:
            return quantity
        self.bounded.append(quantity)
        return verdict

    def _solved(
        self,
        model: AnyModel,
        spec: Spec,
        negated: bool,
        bound: tree.Bound | None,
        interest: BoolArray,
    ) -> tuple[Solution, Quantity, Quantity | None]:
        """Return a solution, the number in every state, and where that meets a bound, if any.

        negated : whether the number is one minus the solution's value
        interest : (S,) where it is found as precisely as wanted, or compared
        """
        request = spec.objective
        if isinstance(request, Temporal | TemporalReward):
            product = make_product(written(model), request, interest)
            spec = replace(spec, objective=product.objective(request))
            begins = product.first(interest)
            solution, quantity, verdict = self._solved(product.model, spec, False, bound, begins)
            met = None if verdict is None else _of_base(verdict, product)
            return replace(solution, product=product), _of_base(quantity, product), met
        find = partial(solve, model, spec, inner=self.inner, states=interest)
        solution = find(limits=self.limits)
        quantity = _with_certainties(_quantity(solution, negated), solution, interest)
        if bound is None:
            return solution, quantity, None
        verdict = _compared(quantity, bound)
        two_sided = solution.lower is not None and solution.upper is not None
        if (~verdict.known & interest).any() and two_sided and solution.status is Status.CERTIFIED:
            sharper = replace(self.limits, precision=SHARPER, measure=Measure.ABSOLUTE)
            solution = find(limits=sharper, warm=solution)
            quantity = _quantity(solution, negated)
            second = _compared(quantity, bound)
            lower, upper = verdict.lower | second.lower, verdict.upper & second.upper
            for state, value in exact_values(solution, (lower < upper) & interest).items():
                lower[state] = upper[state] = FUNCTIONS[bound.operator](value, _threshold(bound))
            verdict = Quantity(Type.BOOL, lower, lower, upper)
        return solution, quantity, verdict

    def _plain(self, expr: Expr, interest: BoolArray) -> Quantity:
        if isinstance(expr, Literal) and expr.type is Type.BOOL:
            return Quantity.exact(expr.type, np.full(self.model.states, expr.value))
        kind = type_of(expr, self.prop.scope.variable_types(), self.source)
        if isinstance(self.model, LatticeMDP):
            formula = partial(evaluate_states, expr, self.prop.scope)
            return Quantity.exact(kind, self.model.evaluate(formula, DTYPE[kind]))
        valuations = self.model.valuations.reshape(self.model.states, len(self.model.variables))
        states = np.flatnonzero(interest)
        values = evaluate_states(expr, self.prop.scope, valuations, states)
        everywhere = np.zeros(self.model.states, dtype=values.dtype)
        everywhere[states] = values
        return Quantity.exact(kind, everywhere)


def _of_base(quantity: Quantity, product: Product) -> Quantity:
    """Return what plays from every state of the base model are worth; open where none begins."""
    truth = quantity.type is Type.BOOL
    unknown = (False, False, True) if truth else (-np.inf, 0.0, np.inf)
    ends = zip((quantity.lower, quantity.value, quantity.upper), unknown, strict=True)
    begins = product.start >= 0
    return Quantity(quantity.type, *(np.where(begins, x[product.start], y) for x, y in ends))


def _quantity(solution: Solution, negated: bool) -> Quantity:
    """Return the bounds of a solution; the value is a proven side, the guaranteed one if it can be.

    Negated is one minus that.
    Nobody has a choice in a chain: there the value is between the bounds, once they are close.
    """
    lower = np.full_like(solution.value, -np.inf) if solution.lower is None else solution.lower
    upper = np.full_like(solution.value, np.inf) if solution.upper is None else solution.upper
    kind = model_type(solution.model)
    if kind is tree.ModelType.DTMC and solution.status is Status.CERTIFIED:
        return Quantity(Type.DOUBLE, lower, solution.value, upper)
    spec = solution.spec
    low = spec.nature is not MAX if kind is tree.ModelType.IDTMC else spec.agent is MAX
    if (solution.lower if low else solution.upper) is None:  # the method proves the other side
        low = not low
    quantity = Quantity(Type.DOUBLE, lower, lower if low else upper, upper)
    return quantity.one_minus() if negated else quantity


def _compared(quantity: Quantity, bound: tree.Bound) -> Quantity:
    value, exact = float(number(bound.value)), _threshold(bound)
    lower = upper = value
    if np.isfinite(value) and exact != read(value):  # no float stands for it
        lower = np.nextafter(value, -np.inf) if value > exact else value
        upper = np.nextafter(value, np.inf) if value < exact else value
    ends = (np.full(len(quantity.value), end) for end in (lower, value, upper))
    return compare(bound.operator, quantity, Quantity(Type.DOUBLE, *ends))


def _threshold(bound: tree.Bound) -> Fraction:
    assert isinstance(bound.value, Literal)  # the static checks evaluated it
    return read(float(bound.value.value)) if bound.value.exact is None else bound.value.exact


def _with_certainties(quantity: Quantity, solution: Solution, interest: BoolArray) -> Quantity:
    """Return a solved quantity with bounds 0 or 1 where a probability over steps must be that.

    Whatever nature does; some states may be missing. The graph is asked only if the bounds leave
    that open in some state of interest.
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
    # the agent reaches 1 if one row has it, and 0 only if all rows have it
    joins = (np.logical_and, np.logical_or)[:: 1 if problem.agent is MAX else -1]
    holds = [problem.start == value for value in (0.0, 1.0)]
    stable: BackwardStep | None = None  # which changes nothing if it is done again
    for step in problem.steps:
        if step is stable:
            continue
        before, holds = holds, []
        for value, join, states in zip((0.0, 1.0), joins, before, strict=True):
            rows = np.logical_and.reduceat(states[model.successors], model.successor_ptr[:-1])
            after = join.reduceat(rows, model.row_ptr[:-1])
            holds.append(np.where(step.fixed, step.given == value, after))
        stable = step if np.array_equal(holds, before) else None
    zero, one = reversed(holds) if problem.flipped else holds
    ends = (quantity.lower, quantity.value, quantity.upper)
    return Quantity(quantity.type, *(np.where(zero, 0.0, np.where(one, 1.0, x)) for x in ends))
