"""A specification on a model: proven bounds in every state, and where they meet a threshold."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from rfmdp.answers.exact_thresholds import TURNED, decided, read
from rfmdp.answers.quantity import Quantity, compare
from rfmdp.answers.specification import number
from rfmdp.inner.protocol import Inner
from rfmdp.language import property_ast as tree
from rfmdp.language.ast import Literal, ModelType, Type
from rfmdp.language.checked import model_type
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.lattice import AnyModel, written
from rfmdp.objective import MAX, Spec, Temporal, TemporalReward
from rfmdp.outer.problem import BackwardStep, Form, Problem, pose
from rfmdp.outer.settings import Limits, Measure
from rfmdp.outer.solution import Solution, Status
from rfmdp.solving import solve
from rfmdp.temporal.product import Product, make_product
from rfmdp.temporal.solve import first_states
from rfmdp.types import BoolArray

SHARPER = 1e-12  # precision tried where a bound such as >= 0.5 is not decided


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
            inner=inner, limits=limits, interest=first_states(product, interest),
        )  # fmt: skip
        met = None if verdict is None else _of_base(verdict, product)
        return replace(solution, product=product), _of_base(quantity, product), met
    solution = solve(model, spec, inner=inner, limits=limits, states=interest)
    quantity = with_certainties(_quantity(solution), solution, interest)
    if bound is None:
        return solution, quantity, None
    verdict = _decided(quantity, bound, solution, interest)
    two_sided = solution.lower is not None and solution.upper is not None
    if (~verdict.known & interest).any() and two_sided and solution.status is Status.CERTIFIED:
        sharper = replace(limits, precision=SHARPER, measure=Measure.ABSOLUTE)
        solution = solve(model, spec, inner=inner, limits=sharper, states=interest, warm=solution)
        quantity = _quantity(solution)
        second = compare_with(quantity, bound)
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
    verdict = compare_with(quantity, bound)
    open_ = ~verdict.known & interest
    if not open_.any():
        return verdict
    lower, upper = verdict.lower.copy(), verdict.upper.copy()
    for state, met in decided(solution, bound.operator, _threshold(bound), open_).items():
        lower[state] = upper[state] = met
    return Quantity(Type.BOOL, lower, lower, upper)


def compare_with(quantity: Quantity, bound: tree.Bound) -> Quantity:
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


def turned(bound: tree.Bound) -> tree.Bound:
    """Return the bound that x meets where 1 - x meets the given one."""
    threshold = 1 - _threshold(bound)
    return replace(
        bound, operator=bound.operator.translate(TURNED), value=Literal(float(threshold), threshold)
    )


def with_certainties(quantity: Quantity, solution: Solution, interest: BoolArray) -> Quantity:
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
