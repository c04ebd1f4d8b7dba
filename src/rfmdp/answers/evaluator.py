"""The value of a property in all states of a model, with proven bounds.

A property is a tree of ordinary operators over P, R and filters. Each of these is evaluated for
all states with its bounds; nested ones first, because a formula inside P must be decided by
proven bounds in every state.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np

from rfmdp.answers.measure import compare_with, measure, turned
from rfmdp.answers.property import Property
from rfmdp.answers.quantity import Quantity, apply_filter, combine
from rfmdp.answers.specification import directions, probability, reward
from rfmdp.errors import NotCertifiedError, PrismWarning
from rfmdp.inner.exact import Exact
from rfmdp.inner.protocol import Inner
from rfmdp.language import property_ast as tree
from rfmdp.language.ast import Expr, Label, Literal, Type, fold, nodes
from rfmdp.language.check_properties import CheckedProperty
from rfmdp.language.checked import model_type
from rfmdp.language.property_ast import OPERATORS
from rfmdp.language.states import DTYPE, evaluate_states
from rfmdp.language.types import type_of
from rfmdp.language.write import write_expression
from rfmdp.model.lattice import AnyModel, LatticeMDP
from rfmdp.objective import Direction, Spec
from rfmdp.outer.settings import Limits
from rfmdp.outer.solution import Solution
from rfmdp.state_sets import NamedStates
from rfmdp.temporal.hoa import HoaAutomaton
from rfmdp.temporal.solve import with_automaton
from rfmdp.types import BoolArray

DEEPEST = 50  # operators P, R and filter inside each other
LISTS = ("print", "printall")


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
            return indicator if node.bound is None else compare_with(indicator, node.bound)
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
        met = self._measure(spec, turned(node.bound), interest)
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
