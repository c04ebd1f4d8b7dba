"""P and R on a model: from the operator to proven bounds in every state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from rfmdp.answers.certain import certain_states
from rfmdp.answers.quantity import Quantity, compare
from rfmdp.answers.rational import read
from rfmdp.answers.ties import exact_values
from rfmdp.inner.exact import Exact
from rfmdp.inner.protocol import Inner
from rfmdp.inner.radius_sum import RadiusSum
from rfmdp.language import property_ast as tree
from rfmdp.language.ast import Expr, Literal, ModelType, Type
from rfmdp.language.model_scope import is_uncertain, model_type
from rfmdp.language.path_formula import (
    TRUE,
    NextFormula,
    NowFormula,
    UntilFormula,
    directions,
    normal,
)
from rfmdp.language.source import SourceText
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.arrays import Rewards as RewardArrays
from rfmdp.objective import (
    MAX,
    Cumulative,
    Direction,
    Discounted,
    Globally,
    Instantaneous,
    Next,
    Objective,
    ReachReward,
    Spec,
    Total,
    Until,
)
from rfmdp.outer.problem import pose
from rfmdp.outer.settings import Limits, Measure
from rfmdp.outer.solution import Solution, Status
from rfmdp.sets.marginals import Kind
from rfmdp.solving import solve
from rfmdp.types import BoolArray, FloatArray

SHARPER = 1e-12  # precision tried where a bound such as >= 0.5 is not decided

Decide = Callable[[Expr], BoolArray]
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
            known = Quantity.exact(Type.DOUBLE, decide(form.holds))
            return known if node.bound is None else compare_with(known, node.bound)
        objective, negated = self._path(form, decide)
        return self._measure(objective, agent, nature, negated, node.bound, interest)

    def reward(self, node: tree.Reward, decide: Decide, interest: BoolArray) -> Quantity:
        """Return an expected reward, or where it meets its bound."""
        agent, nature = directions(node, self.kind, self.source)
        assert isinstance(node.structure, Literal)  # the static checks made it a number
        name = list(self.model.rewards)[int(node.structure.value) - 1]
        model, objective = self._rewarded(node.path, name, decide)
        return self._measure(objective, agent, nature, False, node.bound, interest, model)

    def _path(self, form: NextFormula | UntilFormula, decide: Decide) -> tuple[Objective, bool]:
        """Return an objective, and whether the answer is one minus its value."""
        target = decide(form.target)
        if isinstance(form, NextFormula):
            return Next(~target if form.negated else target), False
        if form.negated and form.stay == TRUE:
            return Globally(~target, form.latest, form.earliest), False
        return Until(decide(form.stay), target, form.latest, form.earliest), form.negated

    def _rewarded(self, path: Expr, name: str, decide: Decide) -> tuple[FactoredMDP, Objective]:
        """Return a reward formula as an objective, and the model to ask it of."""
        match path:
            case tree.Instantaneous(step):
                return self.model, Instantaneous(int(_number(step)), name)
            case tree.Cumulative(steps, discount):
                horizon = None if steps is None else int(_number(steps))
                return self.model, _cumulated(horizon, _factor(discount), name)
            case tree.Path(right=target, discount=discount):
                reached, factor = decide(target), _factor(discount)
                if factor == 1.0:
                    return self.model, ReachReward(reached, name)
                return stopped(self.model, reached, name), _cumulated(None, factor, name)
        raise self.source.error(path.position, "expected F, C or I inside R")

    def _measure(
        self,
        objective: Objective,
        agent: Direction,
        nature: Direction,
        negated: bool,
        bound: tree.Bound | None,
        interest: BoolArray,
        model: FactoredMDP | None = None,
    ) -> Quantity:
        turned = (agent.opposite, nature.opposite) if negated else (agent, nature)
        spec, asked = Spec(objective, *turned), model or self.model
        self.natures.append((agent, nature))
        solution = solve(asked, spec, inner=self.inner, limits=self.limits, states=interest)
        found = self._quantity(solution, agent, nature, negated)
        if _near_certain(found, interest):
            found = _sharpened(found, certain_states(asked, spec), negated)
        if bound is None:
            self.solutions.append(solution)
            return found
        verdict = _decided(found, bound, asked, spec, solution, negated, interest)
        known = solution.lower is not None and solution.upper is not None
        if (~verdict.known & interest).any() and known and solution.status is Status.CERTIFIED:
            sharper = replace(self.limits, precision=SHARPER, measure=Measure.ABSOLUTE)
            solution = solve(
                asked, spec, inner=self.inner, limits=sharper, states=interest, warm=solution
            )
            found = self._quantity(solution, agent, nature, negated)
            verdict = _combined(verdict, compare_with(found, bound))
        self.solutions.append(solution)
        self.bounded.append(found)
        return verdict

    def _quantity(
        self, solution: Solution, agent: Direction, nature: Direction, negated: bool
    ) -> Quantity:
        """Return the bounds of a solution; the value is the side that is guaranteed."""
        lower, value, upper = solution.lower, solution.value, solution.upper
        found = Quantity(
            Type.DOUBLE,
            np.full_like(value, -np.inf) if lower is None else lower,
            value,
            np.full_like(value, np.inf) if upper is None else upper,
        )
        found = found.one_minus() if negated else found
        if self.kind is ModelType.DTMC:
            return found
        chain = self.kind is ModelType.IDTMC
        low = nature is not MAX if chain else agent is MAX
        side = found.lower if low else found.upper
        # a side that the method never proves says nothing; one that a limit left open says so
        never = (lower, upper)[low == negated] is None
        return found if never else replace(found, value=side)


def _effective(model: FactoredMDP, inner: Inner | None) -> Inner:
    """Return the method to use: where all methods are the same, the one that proves both sides.

    They are where nature has no choice, and where no row has two uncertain marginals, all boxes.
    """
    if inner is None:
        return Exact()
    known = not is_uncertain(model) and model.marginals.stated is None
    boxes = bool(np.all(np.isin(model.marginals.kind, (Kind.SINGLETON, Kind.BOX))))
    single = bool(np.all(np.diff(model.marginal_ptr) <= 1))
    if known or (boxes and single and not isinstance(inner, RadiusSum)):
        return Exact()
    return inner


def _near_certain(found: Quantity, interest: BoolArray) -> bool:
    """Return whether proven bounds leave open in some state whether a probability is 0, or 1."""
    open_ = interest & (found.lower < found.upper)
    open_ &= np.isfinite(found.lower) & np.isfinite(found.upper)
    return bool(np.any(open_ & ((found.lower <= 0.0) | (found.upper >= 1.0))))


def _sharpened(
    found: Quantity, certain: tuple[BoolArray, BoolArray] | None, negated: bool
) -> Quantity:
    """Return a probability with bounds that are 0 or 1 where it is known to be that."""
    if certain is None:
        return found
    zero, one = reversed(certain) if negated else certain
    return Quantity(
        found.type,
        *(
            np.where(zero, 0.0, np.where(one, 1.0, end))
            for end in (found.lower, found.value, found.upper)
        ),
    )


def _decided(
    found: Quantity,
    bound: tree.Bound,
    model: FactoredMDP,
    spec: Spec,
    solution: Solution,
    negated: bool,
    interest: BoolArray,
) -> Quantity:
    """Return where a quantity meets a bound, by its bounds and then by exact values."""
    verdict = compare_with(found, bound)
    open_ = ~verdict.known & interest
    exact = exact_values(pose(model, spec), solution, open_) if open_.any() else None
    if exact is None:
        return verdict
    exact = exact.one_minus() if negated else exact
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
    value = float(_number(bound.value))
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


def _cumulated(steps: int | None, factor: float, name: str) -> Objective:
    if factor == 0.0:  # only the first step pays
        return Cumulative(1 if steps is None else min(steps, 1), name)
    if steps is not None:
        return Cumulative(steps, name, factor)
    return Total(name) if factor == 1.0 else Discounted(factor, name)


def _factor(discount: Expr | None) -> float:
    return 1.0 if discount is None else float(_number(discount))


def _number(expr: Expr) -> int | float:
    assert isinstance(expr, Literal)  # the static checks evaluated it
    return expr.value
