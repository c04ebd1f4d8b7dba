"""Unbounded objectives: robust modified policy iteration, then bounds that are proven.

Components are solved in topological order. Within one, a full robust sweep picks rows and
nature's answers; cheap sweeps evaluate that chain; and again, until the residual is small. The
number so found is *no* bound. `certify` turns it into bounds by inductive checks.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from rfmdp.inner.interval import IntervalArithmetic
from rfmdp.inner.protocol import PreparedInner, successor_starts
from rfmdp.kernels import sweep as kernels
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MIN
from rfmdp.outer.operator import Operator, rows_of
from rfmdp.outer.problem import Problem
from rfmdp.outer.region import Region
from rfmdp.outer.settings import Clock, LimitReached
from rfmdp.outer.solution import Stats
from rfmdp.types import FloatArray, IntArray

DIRECT = 3000  # components up to this size whose chain mixes slowly are solved by elimination
STALLED = 8  # sweeps without a smaller residual before another way is tried
PATIENCE = 3000  # robust sweeps of one cyclic level per attempt
CHEAP = 40  # sweeps of one chain at most: early policies are not worth more
FIRST = 30  # sweeps of the first chain, which is nobody's best
AT_ONCE = 20_000_000  # transitions of cheap sweeps between two looks at the clock
BARRIER = 1e6  # infinite states count this many times the largest finite value while iterating


@dataclass(slots=True, eq=False)
class Iterate:
    """The current guess: value and policy, changed in place."""

    value: FloatArray  # (S,)
    choice: IntArray  # (S,)


class Solver:
    """Finds the value of an unbounded problem to a small residual."""

    def __init__(self, problem: Problem, region: Region, operator: Operator, clock: Clock) -> None:
        self.problem, self.region = problem, region
        self.operator, self.clock = operator, clock
        operator.allowed = region.allowed
        self._infinite = np.flatnonzero(np.isinf(region.known))
        self._levels = self._split_levels()

    def start(self, warm: FloatArray | None) -> Iterate:
        """Return a first guess: a warm start, or the value of a first policy and nominal nature."""
        region = self.region
        value = np.where(region.open, 0.0, np.where(np.isinf(region.known), 0.0, region.known))
        guess = Iterate(value, region.choice.copy())
        if warm is not None:
            value[region.open] = warm[region.open]
            value[~np.isfinite(value)] = 0.0
        elif region.cyclic:
            with suppress(LimitReached):  # a guess need not be a good one
                self._follow_nominal(guess)
        self._raise_barrier(guess)
        return guess

    def _follow_nominal(self, guess: Iterate) -> None:
        """Evaluate the first policy under nominal nature, roughly."""
        nature = nominal_nature(self.problem)
        for states, cyclic in self._levels:
            self._raise_barrier(guess)
            answers = nature.respond(guess.value, guess.choice[states])
            self._evaluate(guess, states, answers, self.problem.reward, FIRST if cyclic else 1)

    def improve(self, guess: Iterate, residual: float) -> float:
        """Iterate all levels until their residual is at most `residual` times the value's scale.

        Returns the largest residual that is left, relative to that scale.
        """
        worst = 0.0
        for states, cyclic in self._levels:
            self._raise_barrier(guess)
            if cyclic:
                worst = max(worst, self._cycle(guess, states, residual))
            else:
                self._sweep(guess, states)
        return worst

    def _split_levels(self) -> list[tuple[IntArray, bool]]:
        """Return (states, cyclic) in the order to solve them; acyclic neighbours are not merged."""
        parts = self.region.components
        out: list[tuple[IntArray, bool]] = []
        trivial_state = np.repeat(parts.trivial, np.diff(parts.component_ptr))
        for level in range(len(parts.level_ptr) - 1):
            first, last = parts.component_ptr[parts.level_ptr[level : level + 2]]
            states, plain = parts.states[first:last], trivial_state[first:last]
            if plain.any():
                out.append((states[plain], False))
            if not plain.all():
                out.append((states[~plain], True))
        return out

    def _cycle(self, guess: Iterate, states: IntArray, residual: float) -> float:
        """Iterate one cyclic level; returns its last residual, relative to the largest value.

        Agent and nature change their minds at once, which is fast but may go round in circles. If
        the residual does not fall, nature's best answer to the policy is found first; if even that
        does not help, plain sweeps remain.
        """
        least, stalled, scale = np.inf, 0, 0.0
        for sweep in range(PATIENCE):
            change = self._sweep(guess, states)
            scale = float(np.max(np.abs(guess.value[states]), initial=0.0))
            self.clock.tick("solve", change)
            floor = 64 * 2.0**-53 * scale
            if change <= max(residual * scale, floor):
                return change / max(scale, 1e-300)
            stalled = 0 if change < 0.9 * least else stalled + 1
            least = min(least, change)
            target = max(1e-3 * change, 0.1 * residual * scale, floor)
            if stalled == STALLED and self.problem.agent is MIN:
                # perhaps a policy that pays little for ever; the first one ends
                guess.choice[states] = self.region.choice[states]
            if stalled < STALLED:
                self._follow(guess, states, target)
            elif stalled < 3 * STALLED:
                self._answer(guess, states, target)
            elif sweep > 200 and change <= 1e3 * floor:
                break
        return least / max(scale, 1e-300)

    def _follow(self, guess: Iterate, states: IntArray, target: float) -> None:
        """Evaluate the chain of policy and nature's answers."""
        answers = self.operator.inner.respond(guess.value, guess.choice[states])
        self._evaluate(guess, states, answers, self.problem.reward, CHEAP, target)

    def _answer(self, guess: Iterate, states: IntArray, target: float) -> None:
        """Evaluate the policy against nature's best answer to it."""
        rows = guess.choice[states]
        for _ in range(STALLED):
            self._follow(guess, states, target)
            self.operator.backup(guess.value, rows)
            q = self.operator.middle(rows)[rows]
            change = float(np.max(np.abs(q - guess.value[states]), initial=0.0))
            if change <= target:
                return

    def _sweep(self, guess: Iterate, states: IntArray) -> float:
        """One robust backup of the states; returns the largest change of a value."""
        rows = rows_of(self.problem.model.row_ptr, states)
        self.operator.backup(guess.value, rows)
        q = self.operator.middle(rows)
        old = guess.value[states]
        scale = float(np.max(np.abs(old), initial=1e-300))
        self._choose(q, guess, states, 1e-13 * scale)
        self.operator.stats.robust_sweeps += 1
        return float(np.max(np.abs(guess.value[states] - old), initial=0.0))

    def _choose(self, q: FloatArray, guess: Iterate, states: IntArray, slack: float) -> None:
        sign = self.operator.sign
        kernels.choose(
            q, self.problem.model.row_ptr, states, sign, slack, guess.choice, guess.value
        )
        region = self.region
        if len(region.members):
            kernels.share_group(
                region.group_ptr, region.members, q, sign, guess.choice, guess.value
            )

    def _evaluate(
        self,
        guess: Iterate,
        states: IntArray,
        answers: FloatArray,
        reward: FloatArray,
        sweeps: int,
        target: float = 0.0,
    ) -> None:
        """Cheap sweeps of the chain that policy and answers define, in place."""
        model = self.problem.model
        begin = successor_starts(model, guess.choice[states])
        settled = sweep_chain(
            self.clock, self.operator.stats, sweeps, model, states, guess.choice, begin,
            answers, reward, self.problem.discount, guess.value, np.full(len(states), target),
        )  # fmt: skip
        if not settled and target > 0.0 and len(states) <= DIRECT:
            solved = chain_solution(
                model, guess.value, guess.choice, states, begin, answers, reward,
                self.problem.discount,
            )  # fmt: skip
            # without a solution the sweeps go on without help
            if solved is not None and np.isfinite(solved).all():
                guess.value[states] = solved

    def _raise_barrier(self, guess: Iterate) -> None:
        """Keep infinite states far above all finite ones, so that nobody goes there."""
        if len(self._infinite):
            finite = guess.value.copy()
            finite[self._infinite] = 0.0
            guess.value[self._infinite] = BARRIER * (1.0 + float(finite.max()))


def sweep_chain(
    clock: Clock,
    stats: Stats,
    sweeps: int,
    model: FactoredMDP,
    states: IntArray,
    choice: IntArray,
    begin: IntArray,
    answers: FloatArray,
    reward: FloatArray,
    discount: float,
    value: FloatArray,
    target: FloatArray,
) -> bool:
    """Evaluate a chain by cheap sweeps in place, with an eye on the clock; see the kernel.

    Returns whether no value changed by more than its `target` in the last sweep.
    """
    ptr = np.empty(len(states) + 1, dtype=np.int64)
    targets = np.empty(len(answers), dtype=model.successors.dtype)
    weights, constants = np.empty(len(answers)), np.empty(len(states))
    kernels.pack_chain(
        states, choice, model.successor_ptr, model.successors, begin, answers, reward, discount,
        ptr, targets, weights, constants,
    )  # fmt: skip
    at_once = max(1, AT_ONCE // max(len(answers), 1))
    settled = False
    while sweeps > 0 and not settled:
        done, settled = kernels.evaluate_chain(
            states, ptr, targets, weights, constants, value, min(sweeps, at_once), target
        )
        stats.cheap_sweeps += done
        sweeps -= at_once
        clock.check()
    return settled


def chain_solution(
    model: FactoredMDP,
    value: FloatArray,
    choice: IntArray,
    states: IntArray,
    begin: IntArray,
    answers: FloatArray,
    reward: FloatArray,
    discount: float,
) -> FloatArray | None:
    """Solve x = reward + discount * P x on the states by sparse elimination; None if singular.

    Other states keep their `value`.
    """
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    rows = choice[states]
    sizes = np.diff(begin)
    within = np.arange(begin[-1]) - np.repeat(begin[:-1], sizes)
    successors = model.successors[np.repeat(model.successor_ptr[rows], sizes) + within]
    place = np.full(model.states, -1, dtype=np.int64)
    place[states] = np.arange(len(states))
    source, target = np.repeat(np.arange(len(states)), sizes), place[successors]
    inside, own = target >= 0, np.arange(len(states))
    moves = np.concatenate([np.ones(len(states)), -discount * answers[inside]])
    places = np.concatenate([own, target[inside]]), np.concatenate([own, source[inside]])
    turned = csc_array((moves, places), shape=(len(states), len(states)))
    leaving = np.where(inside, 0.0, answers * value[successors])
    right = reward[rows] + discount * np.bincount(source, leaving, minlength=len(states))
    try:
        solved: FloatArray = splu(turned, diag_pivot_thresh=0.0).solve(right, "T")
    except RuntimeError:  # singular: a trap of this chain
        return None
    return solved


def nominal_nature(problem: Problem) -> PreparedInner:
    """Return an inner solver that answers with the nominal distributions."""
    return IntervalArithmetic().prepare(problem.model.nominal(), problem.nature)
