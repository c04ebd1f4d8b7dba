"""What every action of a state is worth, and what nature answers to it.

The value of an action is what it pays plus nature's expectation of the values that follow, once
with the proven lower bounds and once with the upper ones: so it is bounded from both sides too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rfmdp.inner.exact import Exact
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, Cumulative, Globally, Instantaneous, Parity, Reach, Spec, Until
from rfmdp.outer.nature import finite
from rfmdp.outer.problem import Form, Problem, pose
from rfmdp.outer.solution import Policy, Solution
from rfmdp.ragged import entries, segment, segment_lengths, segment_sum, starts
from rfmdp.rounding import reward_margin
from rfmdp.solving import evaluate
from rfmdp.types import BoolArray, FloatArray, IntArray


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
    if isinstance(spec.objective, Parity):  # nothing is paid, and no state is an end
        spec = replace(spec, objective=Reach(np.zeros(model.states, dtype=np.bool_)))
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


def reached(solution: Solution, most: int, successors: int) -> IntArray:
    """Return the states (N,) that the policy may reach, the nearest first.

    most : states to return at the most; what is left out is farther than what is in
    successors : entries that their chosen rows may have together
    """
    model, rules = solution.explicit_model, solution.policy.rows
    seen = np.zeros(model.states, dtype=np.bool_)
    seen[model.initial] = True
    frontier = np.array(model.initial)
    layers = [np.array(model.initial)]
    size = step = 0
    while len(frontier) and sum(map(len, layers)) < most and size < successors:
        places = entries(model.successor_ptr, rules[min(step, len(rules) - 1)][frontier])
        after = np.unique(model.successors[places]).astype(np.int64)
        fresh = after[~seen[after]]
        size += len(places) if len(fresh) else 0
        seen[fresh] = True
        layers.append(fresh)
        step += 1
        frontier = after if step < len(rules) else fresh  # a later rule may leave a state otherwise
    return np.concatenate(layers)[:most].astype(np.int64)


def values_after(solution: Solution, steps: int) -> tuple[FloatArray, FloatArray]:
    """Return bounds (S,) of the values when some steps are gone; infinite where none is proven.

    Without a horizon they are the bounds of the solution, whatever the number of steps; under a
    budget `steps` is what was paid.
    """
    if solution.spec.objective.layers > 1 and solution.witness is not None:
        size = solution.model.states
        first = min(steps, len(solution.policy.rows) - 1) * size
        low, high = solution.witness
        return (
            np.full(size, -np.inf) if low is None else low[first : first + size],
            np.full(size, np.inf) if high is None else high[first : first + size],
        )
    later = remaining(solution.spec, steps)
    if later is solution.spec:
        rest_of = solution
    elif isinstance(later, Spec):
        rules = solution.policy.rows
        rest = Policy(rules[min(steps, len(rules) - 1) :])  # the last one repeats
        everywhere = np.ones(solution.model.states, dtype=np.bool_)
        rest_of = evaluate(solution.explicit_model, rest, later, states=everywhere)
    else:
        problem = pose(solution.explicit_model, solution.spec)
        end = 1.0 - problem.start if problem.flipped else problem.start
        return end, end
    nothing = np.full(solution.model.states, np.inf)
    lower = -nothing if rest_of.lower is None else rest_of.lower
    return lower, nothing if rest_of.upper is None else rest_of.upper


def remaining(spec: Spec, steps: int) -> Spec | None:
    """Return what is left of a specification after some steps; None if nothing is.

    >>> remaining(Spec(Until("safe", "goal", latest=5)), 2).objective.latest
    3
    """
    most = spec.objective.span[1]
    steps_left = None if most is None else most - steps
    if steps_left is not None and steps_left <= 0:
        return None
    match spec.objective:
        case Until(earliest=earliest) | Globally(earliest=earliest) if steps_left or earliest:
            rest: dict[str, Any] = {"latest": steps_left, "earliest": max(earliest - steps, 0)}
        case Cumulative():
            rest = {"steps": steps_left}
        case Instantaneous():
            rest = {"step": steps_left}
        case _:
            return spec
    return replace(spec, objective=replace(spec.objective, **rest))
