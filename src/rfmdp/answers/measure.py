"""P and R on a model: from the operator to proven bounds in every state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from rfmdp.answers.certain import with_certainties
from rfmdp.answers.quantity import Quantity, compare
from rfmdp.answers.rational import read
from rfmdp.answers.specification import (
    NowFormula,
    directions,
    is_discounted,
    normal,
    number,
    probability,
    reward,
)
from rfmdp.answers.ties import exact_values
from rfmdp.inner.exact import Exact
from rfmdp.inner.protocol import Inner
from rfmdp.inner.radius_sum import RadiusSum
from rfmdp.language import property_ast as tree
from rfmdp.language.ast import Expr, Literal, ModelType, Type
from rfmdp.language.model_scope import is_uncertain, model_type
from rfmdp.language.source import SourceText
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.arrays import Rewards as RewardArrays
from rfmdp.objective import MAX, Direction, NamedStates, Spec
from rfmdp.outer.settings import Limits, Measure
from rfmdp.outer.solution import Solution, Status
from rfmdp.sets.marginals import Kind
from rfmdp.solving import solve
from rfmdp.types import BoolArray, FloatArray

SHARPER = 1e-12  # precision tried where a bound such as >= 0.5 is not decided

Decide = Callable[[Expr], NamedStates]
"""Returns where a state formula holds, or raises if that is not proven somewhere."""


@dataclass(slots=True)
class OperatorSolver:
    """Solves P and R operators on one model with one method; keeps all solutions."""

    model: FactoredMDP
    inner: Inner | None
    limits: Limits
    source: SourceText
    solutions: list[Solution] = field(default_factory=list)
    natures: list[tuple[Direction, Direction]] = field(default_factory=list)
    bounded: list[Quantity] = field(default_factory=list)
    kind: ModelType = field(init=False)

    def __post_init__(self) -> None:
        self.kind = model_type(self.model)
        self.inner = _effective(self.model, self.inner)

    def exact(self) -> OperatorSolver:
        """Return a solver with the exact method that adds to the same lists."""
        return replace(self, inner=None)

    def probability(self, node: tree.Probability, decide: Decide, interest: BoolArray) -> Quantity:
        """Return a probability, or where it meets its bound."""
        agent, nature = directions(node, self.kind, self.source)
        form = normal(node.path)
        if isinstance(form, NowFormula):
            known = Quantity.exact(Type.DOUBLE, decide(form.holds).states)
            return known if node.bound is None else compare_with(known, node.bound)
        objective, negated = probability(form, decide)
        self.natures.append((agent, nature))
        if not negated:
            spec = Spec(objective, agent, nature)
            return self._measure(self.model, spec, node.bound, interest)
        spec = Spec(objective, agent.opposite, nature.opposite)
        if node.bound is None:
            return self._measure(self.model, spec, None, interest).one_minus()
        met = self._measure(self.model, spec, _turned(node.bound), interest)
        self.bounded.append(self.bounded.pop().one_minus())
        return met

    def reward(self, node: tree.Reward, decide: Decide, interest: BoolArray) -> Quantity:
        """Return an expected reward, or where it meets its bound."""
        agent, nature = directions(node, self.kind, self.source)
        assert isinstance(node.structure, Literal)  # the static checks made it a number
        name = list(self.model.rewards)[int(node.structure.value) - 1]
        path, model = node.path, self.model
        if isinstance(path, tree.Path) and is_discounted(path):
            model = stopped(model, decide(path.right).states, name)
            path = tree.CumulativeReward(None, path.discount)
        spec = Spec(reward(path, name, decide), agent, nature)
        self.natures.append((agent, nature))
        return self._measure(model, spec, node.bound, interest)

    def _measure(
        self, model: FactoredMDP, spec: Spec, bound: tree.Bound | None, interest: BoolArray
    ) -> Quantity:
        """Return the value of a specification, or where it meets a bound."""
        solution = solve(model, spec, inner=self.inner, limits=self.limits, states=interest)
        found = self._quantity(solution)
        found = with_certainties(found, solution, interest)
        if bound is None:
            self.solutions.append(solution)
            return found
        verdict = _decided(found, bound, solution, interest)
        known = solution.lower is not None and solution.upper is not None
        if (~verdict.known & interest).any() and known and solution.status is Status.CERTIFIED:
            sharper = replace(self.limits, precision=SHARPER, measure=Measure.ABSOLUTE)
            solution = solve(
                model, spec, inner=self.inner, limits=sharper, states=interest, warm=solution
            )
            found = self._quantity(solution)
            verdict = _combined(verdict, compare_with(found, bound))
        self.solutions.append(solution)
        self.bounded.append(found)
        return verdict

    def _quantity(self, solution: Solution) -> Quantity:
        """Return the bounds of a solution; the value is the side that is guaranteed."""
        lower, value, upper = solution.lower, solution.value, solution.upper
        found = Quantity(
            Type.DOUBLE,
            np.full_like(value, -np.inf) if lower is None else lower,
            value,
            np.full_like(value, np.inf) if upper is None else upper,
        )
        if self.kind is ModelType.DTMC:
            return found
        chain, spec = self.kind is ModelType.IDTMC, solution.spec
        low = spec.nature is not MAX if chain else spec.agent is MAX
        # a side that the method never proves says nothing; one that a limit left open says so
        never = (lower if low else upper) is None
        return found if never else replace(found, value=found.lower if low else found.upper)


def _effective(model: FactoredMDP, inner: Inner | None) -> Inner:
    """Return the method to use: the exact one where it gives what the method would give.

    That is so where nature has no choice, and where all sets are boxes and no row has two of them.
    """
    if inner is None:
        return Exact()
    known = not is_uncertain(model) and model.marginals.stated is None
    boxes = bool(np.all(np.isin(model.marginals.kind, (Kind.SINGLETON, Kind.BOX))))
    single = bool(np.all(np.diff(model.marginal_ptr) <= 1))
    if known or (boxes and single and not isinstance(inner, RadiusSum)):
        return Exact()
    return inner


def _decided(
    found: Quantity, bound: tree.Bound, solution: Solution, interest: BoolArray
) -> Quantity:
    """Return where a quantity meets a bound, by its bounds and then by exact values."""
    verdict = compare_with(found, bound)
    open_ = ~verdict.known & interest
    exact = exact_values(solution, open_) if open_.any() else None
    if exact is None:
        return verdict
    threshold = _threshold(bound)
    lower, value, upper = verdict.lower.copy(), verdict.value.copy(), verdict.upper.copy()
    for state in np.flatnonzero(open_).tolist():
        met = exact.decide(bound.operator, threshold, state)
        if met is not None:
            lower[state] = value[state] = upper[state] = met
    return Quantity(Type.BOOL, lower, value, upper)


def _combined(first: Quantity, second: Quantity) -> Quantity:
    """Return what two comparisons decide together."""
    ends = (first.lower, first.value, first.upper), (second.lower, second.value, second.upper)
    parts = [np.where(first.known, a, b) for a, b in zip(*ends, strict=True)]
    return Quantity(Type.BOOL, *parts)


def compare_with(found: Quantity, bound: tree.Bound) -> Quantity:
    """Return where a quantity meets a bound."""
    value = float(number(bound.value))
    lower = upper = value
    if np.isfinite(value) and _threshold(bound) != read(value):  # no float stands for it
        lower = np.nextafter(value, -np.inf) if value > _threshold(bound) else value
        upper = np.nextafter(value, np.inf) if value < _threshold(bound) else value
    ends = (np.full(len(found.value), end) for end in (lower, value, upper))
    return compare(bound.operator, found, Quantity(Type.DOUBLE, *ends))


def _threshold(bound: tree.Bound) -> Fraction:
    """Return the number that a bound was written as."""
    assert isinstance(bound.value, Literal)  # the static checks evaluated it
    return read(float(bound.value.value)) if bound.value.exact is None else bound.value.exact


def _turned(bound: tree.Bound) -> tree.Bound:
    """Return the bound that x meets where 1 - x meets the given one."""
    threshold = 1 - _threshold(bound)
    sign = bound.operator.translate(str.maketrans("<>", "><"))
    return replace(bound, operator=sign, value=Literal(float(threshold), threshold))


def stopped(model: FactoredMDP, where: BoolArray, name: str) -> FactoredMDP:
    """Return a model in which some states stay for ever and pay nothing."""
    rows = np.repeat(where, np.diff(model.row_ptr))
    entries = np.repeat(rows, np.diff(model.successor_ptr))
    own = np.repeat(model.row_states, np.diff(model.successor_ptr)).astype(np.int32)
    paid = model.rewards[name]
    rewards: FloatArray = np.where(rows, 0.0, paid.row)
    return replace(
        model,
        successors=np.where(entries, own, model.successors),
        rewards={name: RewardArrays(np.where(where, 0.0, paid.state), rewards)},
    )
