"""What every action of a state is worth, why a policy takes one, which uncertainty costs most.

The value of an action is what it pays plus nature's expectation of the values that follow, once
with the proven lower bounds and once with the upper ones: so it is bounded from both sides too.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rfmdp import objective as goals
from rfmdp.errors import ModelError
from rfmdp.inner.solvers import Exact
from rfmdp.learning.run import Run
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.derived import reached
from rfmdp.objective import MAX, Spec
from rfmdp.outer.nature import finite
from rfmdp.outer.problem import Form, Problem, pose
from rfmdp.outer.solution import Bounds, Policy, Solution, written
from rfmdp.outer.task import Limits
from rfmdp.policies.induced import without_budget
from rfmdp.ragged import entries, segment, segment_lengths, segment_sum, starts
from rfmdp.rounding import reward_margin
from rfmdp.sets.families import Singleton
from rfmdp.sets.marginals import Marginals
from rfmdp.solving import evaluate, solve
from rfmdp.types import BoolArray, FloatArray, IntArray

NEXT = 8  # likeliest successors that are listed
SECONDS = 20.0  # for all gains together
TRIED = 40  # identifiers, at most


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """All rows of some states with their values and nature's answers, in the model's order."""

    model: FactoredMDP
    states: IntArray  # (N,)
    row_ptr: IntArray  # (N + 1,) into `rows`
    rows: IntArray  # (Q,) rows of the model
    lower: FloatArray  # (Q,) proven bounds of the value of taking the row
    upper: FloatArray  # (Q,)
    chosen: IntArray  # (N,) the policy's rows
    value: tuple[FloatArray, FloatArray]  # (N,) each: proven bounds of the value of the states
    outcome_ptr: IntArray  # (Q + 1,) into `nature`: all marginals of a row, one after the other
    nature: FloatArray  # nature's probabilities of all outcomes of all marginals

    def marginals(self, place: int) -> list[tuple[int, FloatArray]]:
        """Return (marginal, nature's distribution (X,)) for the row at a place of `rows`."""
        model, row = self.model, self.rows[place]
        ids = model.row_marginals[segment(model.marginal_ptr, row)]
        answer = self.nature[segment(self.outcome_ptr, place)]
        points = np.split(answer, np.cumsum(model.marginals.sizes[ids])[:-1])
        return [(int(j), point) for j, point in zip(ids, points, strict=False)]

    def successors(self, place: int) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return successors of the row at a place, with nominal and nature's probabilities (K,)."""
        sets = self.model.marginals
        joint = np.ones((2, 1))
        for j, answer in self.marginals(place):
            both = np.stack([sets.nominal[segment(sets.outcome_ptr, j)], answer])
            joint = (joint[:, :, None] * both[:, None, :]).reshape(2, -1)
        after = self.model.successors[segment(self.model.successor_ptr, self.rows[place])]
        states, meets = np.unique(after.astype(np.int64), return_inverse=True)
        nominal, worst = (np.bincount(meets, p).astype(np.float64) for p in joint)
        return states, nominal, worst


def decisions(solution: Solution, states: IntArray, step: int = 0) -> Decisions:
    """Return every row of some states (N,), with its bounds and nature's answer to it.

    step : for finite horizons, how many steps are gone
    """
    model, spec = solution.explicit_model, solution.spec
    if isinstance(spec.objective, goals.Parity):  # nothing is paid, and no state is an end
        spec = replace(spec, objective=goals.Reach(np.zeros(model.states, dtype=np.bool_)))
    problem = pose(model, spec)
    if problem.form is Form.AVERAGE:  # what one step pays does not count in the long run
        problem = replace(problem, reward=np.zeros(model.rows))
    rows = entries(model.row_ptr, states)
    nature = Exact().prepare(model, solution.spec.nature)
    after = values_after(solution, step + 1)
    low, high = finite(*after)
    below, above, unused = np.empty((3, model.rows))
    nature.backup(low, rows, below, unused)
    nature.backup(high, rows, unused, above)
    lower = _paid(problem, rows, below[rows], -1.0)
    upper = _paid(problem, rows, above[rows], 1.0)
    if not problem.probability:  # numbers stood for infinite ones
        lower[_leads(model, rows, after[0] == -np.inf, np.logical_or)] = -np.inf
        upper[_leads(model, rows, after[1] == np.inf, np.logical_or)] = np.inf
        lower[_leads(model, rows, after[0] == np.inf, np.logical_and)] = np.inf
    counts = segment_lengths(model.row_ptr)[states]
    number = len(problem.steps) - 1 - step
    known = problem.steps[number].fixed if number >= 0 else problem.terminal
    over = np.repeat(known[states], counts)  # whatever is done there
    now = values_after(solution, step)
    for bound, fixed in zip((lower, upper), now, strict=True):
        bound[over] = np.repeat(fixed[states], counts)[over]
    if problem.probability:  # margins for rounding may leave [0, 1]
        lower, upper = np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
    chosen = solution.policy.rows[min(step, len(solution.policy.rows) - 1)][states]
    chosen_places = starts(counts)[:-1] + chosen - model.row_ptr[states]
    # the value is at least that of the policy's row: its bound may be the better one
    if solution.spec.agent is MAX:
        value = (np.maximum(now[0][states], lower[chosen_places]), now[1][states])
    else:
        value = (now[0][states], np.minimum(now[1][states], upper[chosen_places]))
    sizes = model.marginals.sizes[model.row_marginals].astype(np.float64)
    outcomes = segment_sum(sizes, model.marginal_ptr)[rows]
    return Decisions(
        model, states, starts(counts), rows, lower, upper, chosen, value, starts(outcomes),
        nature.marginals(high, rows),
    )  # fmt: skip


def _paid(problem: Problem, rows: IntArray, rest: FloatArray, side: float) -> FloatArray:
    """Return bounds (Q,) of what rows pay and what follows, rounded to a side."""
    reward = problem.reward[rows]
    rest = problem.discount * rest
    exact = (reward == 0.0) & (problem.discount == 1.0)
    return reward + rest + side * np.where(exact, 0.0, reward_margin(reward, rest))


def _leads(model: FactoredMDP, rows: IntArray, where: BoolArray, join: np.ufunc) -> BoolArray:
    """Return which rows (Q,) lead to some or all of a set of states (S,)."""
    places = entries(model.successor_ptr, rows)
    inside: BoolArray = join.reduceat(
        where[model.successors[places]], starts(segment_lengths(model.successor_ptr)[rows])[:-1]
    )
    return inside


def values_after(solution: Solution, steps: int) -> tuple[FloatArray, FloatArray]:
    """Return bounds (S,) of the values when some steps are gone; infinite where none is proven.

    Without a horizon they are the bounds of the solution, whatever the number of steps; under a
    budget `steps` is what was paid.
    """
    size, rules = solution.model.states, solution.policy.rows
    later = remaining(solution.spec, steps)
    if solution.spec.objective.layers > 1 and solution.witness is not None:
        place = slice(min(steps, len(rules) - 1) * size, min(steps + 1, len(rules)) * size)
        lower, upper = (None if side is None else side[place] for side in solution.witness)
    elif later is solution.spec:
        lower, upper = solution.lower, solution.upper
    elif isinstance(later, Spec):
        rest = Policy(rules[min(steps, len(rules) - 1) :])  # the last one repeats
        everywhere = np.ones(size, dtype=np.bool_)
        found = evaluate(solution.explicit_model, rest, later, states=everywhere)
        lower, upper = found.lower, found.upper
    else:
        problem = pose(solution.explicit_model, solution.spec)
        lower = upper = 1.0 - problem.start if problem.flipped else problem.start
    nothing = np.full(size, np.inf)
    return -nothing if lower is None else lower, nothing if upper is None else upper


def remaining(spec: Spec, steps: int) -> Spec | None:
    """Return what is left of a specification after some steps; None if nothing is."""
    most = spec.objective.span[1]
    steps_left = None if most is None else most - steps
    if steps_left is not None and steps_left <= 0:
        return None
    match spec.objective:
        case goals.Until(earliest=first) | goals.Globally(earliest=first) if steps_left or first:
            rest: dict[str, Any] = {"latest": steps_left, "earliest": max(first - steps, 0)}
        case goals.Cumulative():
            rest = {"steps": steps_left}
        case goals.Instantaneous():
            rest = {"step": steps_left}
        case _:
            return spec
    return replace(spec, objective=replace(spec.objective, **rest))


@dataclass(frozen=True, slots=True)
class ActionValue:
    """An action of a state, with proven bounds of what taking it is worth."""

    action: str
    value: Bounds
    chosen: bool


@dataclass(frozen=True, slots=True)
class OutcomeShift:
    """One outcome of a marginal: its set, its nominal probability, and nature's."""

    effect: str
    lower: float
    upper: float
    nominal: float
    nature: float


@dataclass(frozen=True, slots=True)
class MarginalShift:
    """Nature's answer to the policy's action, in one marginal."""

    marginal: str
    outcomes: tuple[OutcomeShift, ...]


@dataclass(frozen=True, slots=True)
class NextState:
    """Where the policy's action may lead."""

    state: str
    nominal: float
    nature: float
    value: Bounds


@dataclass(frozen=True, slots=True)
class Explanation:
    """A decision and its reasons; `str` says it in words."""

    property: str
    state: str
    side: str  # of the guarantee: "at least" or "at most"; empty if nature helps the agent
    value: Bounds
    choices: tuple[ActionValue, ...]
    nature: tuple[MarginalShift, ...]
    successors: tuple[NextState, ...]  # the likeliest ones

    def __str__(self) -> str:
        width = max(len(c.action) for c in self.choices)
        lines = [f"Property {self.property}", f"In {self.state} {self._promise()}.", "Actions:"]
        for c in self.choices:
            lines.append(f"  {'>' if c.chosen else ' '} {c.action:{width}}  {_shown(c.value)}")
        for answer in self.nature:
            lines.append(f"Nature in {answer.marginal}:")
            width = max(len(o.effect) for o in answer.outcomes)
            for o in answer.outcomes:
                change = "" if abs(o.nature - o.nominal) < 1e-9 else f" -> {o.nature:.6g}"
                numbers = f"{o.nominal:.6g}{change}  of [{o.lower:.6g}, {o.upper:.6g}]"
                lines.append(f"    {o.effect:{width}}  {numbers}")
        if not self.nature:
            lines.append("Nature has no choice here.")
        lines.append("Next, with nature's probability (nominal), and the value there:")
        for s in self.successors:
            lines.append(f"    {s.nature:.6g} ({s.nominal:.6g})  {s.state}  {_shown(s.value)}")
        return "\n".join(lines)

    def _promise(self) -> str:
        """Return what the policy is worth, and in which sense."""
        if not self.side:
            helping = ", with a nature that helps" if self.nature else ""
            return f"the value {_shown(self.value)}{helping}"
        below = self.side == "at least"
        sure = self.value.lower if below else self.value.upper
        if not math.isfinite(sure):
            return f"the policy guarantees nothing: the value {_shown(self.value)}"
        bound = written(sure, -1.0 if below else 1.0)
        return f"the policy guarantees a value of {self.side} {bound}"


def _shown(bounds: Bounds) -> str:
    low, high = f"{bounds.lower:.6g}", f"{bounds.upper:.6g}"
    return f"is {low}" if low == high else f"is in {bounds}"


def explain(solution: Solution, state: int, *, step: int = 0) -> Explanation:
    """Return why the policy of a solution decides as it does in a state.

    Parameters
    ----------
    state : Its number; `model.find(x=1, y=2)` tells it.
    step : For finite horizons: how many steps are gone; under a budget what was paid of it.
    """
    budget = isinstance(solution.spec.objective, goals.BudgetUntil)
    most = solution.spec.objective.layers if budget else solution.spec.objective.span[1]
    last = math.inf if most is None else max(most - 1, 0)
    if not (0 <= state < solution.model.states and 0 <= step <= last):
        raise ModelError(
            f"explain: the state must be in 0..{solution.model.states - 1} (`model.find(x=1, y=2)` "
            f"tells it), the step must be in 0..{last}; got {state!r} and {step}."
        )
    if budget:
        first = step * solution.model.states
        reasons = explain(without_budget(solution), first + state)
        return replace(reasons, property=str(solution.spec))
    options = decisions(solution, np.array([state]), step)
    model, chosen, sets = options.model, options.chosen[0], options.model.marginals
    rows = zip(options.rows.tolist(), options.lower.tolist(), options.upper.tolist(), strict=True)
    choices = [
        ActionValue(model.choice_name(row), Bounds(*ends), bool(row == chosen))
        for row, *ends in rows
    ]
    place = int(np.flatnonzero(options.rows == chosen)[0])
    answers = []
    for j, answer in options.marginals(place):
        inside = segment(sets.outcome_ptr, j)
        names = model.outcome_names[inside] or [f"outcome {o + 1}" for o in range(len(answer))]
        columns = (sets.lower[inside], sets.upper[inside], sets.nominal[inside], answer)
        numbers = np.stack(columns, axis=1).tolist()
        shifts = (OutcomeShift(name, *row) for name, row in zip(names, numbers, strict=True))
        answers.append(MarginalShift(model.marginal_name(j), tuple(shifts)))
    states, nominal, worst = options.successors(place)
    likeliest = np.argsort(-worst, kind="stable")[:NEXT]
    ends = (side[states] for side in values_after(solution, step + 1))
    after = np.stack([nominal, worst, *ends], axis=1)[likeliest].tolist()
    successors = [
        NextState(model.state_name(s), usual, bad, Bounds(low, high))
        for s, (usual, bad, low, high) in zip(states[likeliest].tolist(), after, strict=True)
    ]
    lower, upper = options.value
    side = "at least" if solution.spec.agent is MAX else "at most"
    return Explanation(
        str(solution.spec), solution.model.state_name(state), side if solution.spec.robust else "",
        Bounds(float(lower[0]), float(upper[0])), tuple(choices), tuple(answers), tuple(successors),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class IdentifierGain:
    """An identifier, and how much the guarantee would improve if it were known."""

    identifier: str
    gain: float
    samples: int
    width: float  # of the widest interval that is left; 1: nothing is known

    def __str__(self) -> str:
        return f"{self.gain:10.4g} {self.samples:10d} {self.width:9.3g}  {self.identifier}"


def collect_next(result: Run | Solution, *, seconds: float = SECONDS) -> list[IdentifierGain]:
    """Return identifiers, those first of which samples would help the guarantee most.

    A gain is how much the guarantee of the initial state improves if an identifier is known to be
    its nominal distribution (what its samples suggest), while all others stay as uncertain as they
    are; the agent may change its policy for it. Gains come from proven bounds on both sides, so
    they are at least what is said. Each is a solve of its own: those with the fewest samples are
    tried first, and as many as there is time for. A run that proves nothing has none.
    """
    solution = result.solution if isinstance(result, Run) else result
    if solution is None:
        return []
    model, sign = solution.explicit_model, solution.spec.agent.sign
    sets, start = model.marginals, int(model.initial[0])
    counts = result.counts if isinstance(result, Run) else np.zeros(len(sets.nominal))
    samples = np.add.reduceat(counts, sets.outcome_ptr[:-1])
    widths = np.maximum.reduceat(sets.upper - sets.lower, sets.outcome_ptr[:-1])
    friendly = solve(
        model, replace(solution.spec, nature=solution.spec.agent),
        limits=Limits(precision=1e-2, seconds=5.0),
    )  # fmt: skip
    met: set[int] = set()  # by the policy, or by that for a friendly nature
    for found in (solution, friendly):
        states = reached(model, found.policy.rows, model.initial)
        rows = np.unique(found.policy.rows[:, states])
        met.update(model.row_marginals[entries(model.marginal_ptr, rows)].tolist())
    candidates = [j for j in met if widths[j] > 0.0]
    worst = solution.at(start).upper if sign > 0 else solution.at(start).lower
    deadline = time.monotonic() + seconds
    worth: list[IdentifierGain] = []
    for j in sorted(candidates, key=lambda j: (samples[j], -widths[j], j))[:TRIED]:
        remaining = deadline - time.monotonic()
        if remaining <= 0.0 and worth:
            break
        known = list(sets)
        known[j] = Singleton(sets.nominal[segment(sets.outcome_ptr, j)])
        settled = model.with_marginals(Marginals.from_sets(known))
        limits = Limits(seconds=max(remaining, 0.1))
        better = solve(settled, solution.spec, limits=limits, warm=solution).at(start)
        gain = max(sign * ((better.lower if sign > 0 else better.upper) - worst), 0.0)
        name = model.marginal_name(j)
        worth.append(IdentifierGain(name, gain, int(samples[j]), float(widths[j])))
    return sorted(worth, key=lambda one: (-one.gain, one.samples))
