"""Nature's optimal marginals against the policy of a solution: the worst case as an object.

Nature answers the bound on its own side: `lower` if it maximises, `upper` if it minimises. There
the inductive checks of `certify` prove that its answers attain what is claimed, so that the chain
of policy and answers has its value within the bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.inner.solvers import Exact
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.derived import restrict
from rfmdp.objective import MAX, MIN
from rfmdp.outer.backups import Faces
from rfmdp.outer.horizon import solve_steps
from rfmdp.outer.problem import Form, Problem, pose
from rfmdp.outer.region import analyse
from rfmdp.outer.solution import Solution
from rfmdp.outer.task import Limits, Task, prepare
from rfmdp.outer.unbounded import solve_unbounded
from rfmdp.ragged import entries, owners, segment, segment_lengths, starts
from rfmdp.rounding import UNIT
from rfmdp.sets.marginals import Marginals
from rfmdp.sets.supports import outcome_flags
from rfmdp.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class MarginalAnswer:
    """Nature's distribution of one marginal in one row."""

    marginal: str
    outcomes: tuple[str, ...]
    probabilities: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Nature:
    """Nature's marginals for one rule of a policy."""

    model: FactoredMDP
    rows: IntArray  # (S,) the rule
    begin: IntArray  # (S + 1,) where the marginals of every row start
    probabilities: FloatArray  # of all outcomes of all marginals of `rows`, in the model's order

    def of(self, state: int) -> tuple[MarginalAnswer, ...]:
        """Return nature's distributions in the row chosen in a state."""
        model, place, answers = self.model, int(self.begin[state]), []
        for j in model.row_marginals[segment(model.marginal_ptr, self.rows[state])].tolist():
            size = int(model.marginals.sizes[j])
            part = self.probabilities[place : place + size]
            outcomes = model.outcome_names[segment(model.marginals.outcome_ptr, j)]
            names = outcomes or tuple(map(str, range(size)))
            answers.append(
                MarginalAnswer(model.marginal_name(j), tuple(names), tuple(part.tolist()))
            )
            place += size
        return tuple(answers)

    def chain(self) -> FactoredMDP:
        """Return the Markov chain of rule and answers: one row per state, no uncertainty."""
        fixed = restrict(self.model, self.rows)
        sizes = self.model.marginals.sizes[fixed.row_marginals]
        ends = starts(sizes)
        kept = fixed.row_marginals
        points = Marginals.from_points(ends, _exact_sums(self.probabilities, ends))
        home = np.arange(len(kept), dtype=np.int32)
        effects = entries(self.model.marginals.outcome_ptr, kept) if fixed.outcome_names else ()
        outcomes = tuple(self.model.outcome_names[int(e)] for e in effects)
        return replace(
            fixed, row_marginals=home, marginals=points, marginal_names=(), outcome_names=outcomes
        )


def worst_case(solution: Solution, step: int = 0) -> Nature:
    """Return nature's optimal marginals against the policy of a solution with some steps gone.

    Where the value is infinite, any members are given.
    """
    model, spec, nature = solution.explicit_model, solution.spec, solution.spec.nature
    problem = pose(model, spec)
    rules = solution.policy.rows
    if not 0 <= step < len(rules):
        raise ModelError(f"step must be within 0..{len(rules) - 1}, got {step}.")
    rows = rules[step]
    prepared = Exact().prepare(model, nature)
    stepping = step < len(problem.steps)
    if stepping:
        value = _ahead(solution, problem, step)
    else:  # nature's own side
        sides = solution.witness if spec.objective.endless else None
        side = (sides or (solution.lower, solution.upper))[0 if nature is MAX else 1]
        value = solution.value if side is None else side
    answers = prepared.marginals(finite(value)[0], rows)
    ends = starts(model.marginals.sizes[model.row_marginals])[model.marginal_ptr]
    begin = starts(segment_lengths(ends)[rows])
    if problem.form in (Form.REACH, Form.TO_TARGET, Form.TOTAL) and not stepping:
        _arrive(problem, rows, begin, answers)
    _empty_rounded(model, rows, answers)
    return Nature(model, rows, begin, answers)


def _empty_rounded(model: FactoredMDP, rows: IntArray, answers: FloatArray) -> None:
    """Set answers to 0, in place, where only rounding keeps nature from emptying an outcome."""
    ids = model.row_marginals[entries(model.marginal_ptr, rows)]
    ends = model.marginals.outcome_ptr
    _, required = outcome_flags(model.marginals)
    rounded = np.repeat(2.0 * UNIT * segment_lengths(ends)[ids], segment_lengths(ends)[ids])
    answers[(answers <= rounded) & ~required[entries(ends, ids)]] = 0.0


def _ahead(solution: Solution, problem: Problem, step: int) -> FloatArray:
    """Return the value with step + 1 steps gone, by steps back from the end."""
    count = len(problem.steps)
    if problem.form is not Form.STEPS:  # what follows the steps is where a finite horizon starts
        unbounded = replace(problem, steps=())
        result = solve_unbounded(_exactly(unbounded, Limits(solution.precision)))
        after = np.clip(result.lower if problem.nature is MAX else result.upper, 0.0, 1.0)
        problem = replace(problem, form=Form.STEPS, start=after)
    left = replace(problem, steps=problem.steps[: count - 1 - step])
    value = solve_steps(_exactly(left, Limits()), solution.policy.rows[step + 1 : count]).value
    return 1.0 - value if problem.flipped else value


def _exactly(problem: Problem, limits: Limits) -> Task:
    """Return the task to solve a problem in all states, rows exactly."""
    return prepare(problem, Exact(), limits, np.ones(problem.model.states, dtype=np.bool_))


def _arrive(problem: Problem, rows: IntArray, begin: IntArray, answers: FloatArray) -> None:
    """Let nature take its part in ending the play, in place, among states of one value.

    Every member that stays among these states is optimal in one step, but not for ever.
    """
    region = analyse(problem)
    label = np.full(problem.model.states, -1, dtype=np.int64)
    ends = problem.target.copy()
    if problem.form is Form.REACH and problem.nature is MAX:
        label[~region.open & (region.known == 1.0)] = 0
    if problem.form is Form.TO_TARGET and problem.nature is MIN:
        label[~region.open & (region.known == 0.0)] = 0
    if problem.nature is problem.agent:
        groups = region.groups
        label = np.where(groups.label >= 0, groups.label + 1, label)
        ends |= (groups.label >= 0) & ~groups.rows[rows]
    flexible = region.graph.flexible[rows]
    faces = Faces(problem.model, rows[(label >= 0) & ~ends & flexible])
    if not len(faces):
        return
    state = problem.model.row_states[faces.rows]
    rigid = region.graph.with_rows(np.where(flexible, -1, rows))
    stays = faces.staying(label, label[state])
    while True:
        ends = rigid.positive(ends, label >= 0, agent=MAX, nature=MAX)
        share = faces.expectations(ends.astype(np.float64))[0]
        _, chosen = faces.best(share, stays & (share > 0.0) & ~ends[state][faces.owner], 1.0)
        result = np.flatnonzero(chosen >= 0)
        if not len(result):
            return
        for i in result:
            _put(problem.model, faces, int(i), int(chosen[i]), int(begin[state[i]]), answers)
        ends[state[result]] = True


def _put(
    model: FactoredMDP, faces: Faces, row: int, vertex: int, place: int, answers: FloatArray
) -> None:
    """Write the marginals of a vertex into the answers."""
    r = faces.rows[row]
    ids = model.row_marginals[segment(model.marginal_ptr, r)]
    sizes = model.marginals.sizes[ids].tolist()
    joint = faces.distribution(vertex).reshape(sizes)
    for axis, size in enumerate(sizes):
        others = tuple(a for a in range(len(sizes)) if a != axis)
        answers[place : place + size] = joint.sum(axis=others)
        place += size


def finite(*values: FloatArray) -> list[FloatArray]:
    """Return values with infinite ones far above or below all others: kernels take numbers."""
    sizes = np.abs(np.concatenate(values))
    far = 1e6 * (1.0 + float(np.max(sizes[np.isfinite(sizes)], initial=0.0)))
    return [np.clip(value, -far, far) for value in values]


def _exact_sums(probability: FloatArray, ptr: IntArray) -> FloatArray:
    """Return probabilities whose float sums are one to the last bits, as models demand."""
    if not len(probability):
        return probability
    clipped: FloatArray = np.clip(probability, 0.0, 1.0)
    exact: FloatArray = clipped / np.add.reduceat(clipped, ptr[:-1])[owners(ptr)]
    return exact
