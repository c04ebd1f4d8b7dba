"""Robust modified policy iteration: a value with a small residual, and its policy.

Components are solved in topological order. Within one, a full robust sweep picks rows and
nature's answers; cheap sweeps evaluate that chain; and again, until the residual is small. The
number so found is *no* bound: `proofs.certify` (or a discount) proves bounds around it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rfmdp.inner.protocol import PreparedInner
from rfmdp.inner.relaxations import IntervalArithmetic
from rfmdp.kernels.sweep import share_group
from rfmdp.objective import MIN
from rfmdp.outer.chain import Chain, Nodes
from rfmdp.outer.graph.region import Region
from rfmdp.outer.settings import LimitReached
from rfmdp.outer.task import Task
from rfmdp.ragged import entries
from rfmdp.types import FloatArray, IntArray

STALLED = 8  # sweeps without a smaller residual before another way is tried
PATIENCE = 3000  # robust sweeps of one cyclic level per attempt
CHEAP = 40  # sweeps of one chain at most: early policies are not worth more
FIRST = 30  # sweeps of the first chain, which is nobody's best
FAR = 1e6  # infinite states count this many times the largest finite value


@dataclass(slots=True, eq=False)
class Guess:
    """The current guess: value and policy, changed in place."""

    value: FloatArray  # (S,)
    choice: IntArray  # (S,)


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """States that are solved at once, after all that they lead to."""

    states: IntArray  # (N,)
    rows: IntArray  # all rows of these states
    nodes: Nodes  # the same states; those of a group are one
    cyclic: bool


class Barrier:
    """Keeps infinite states far above all finite ones, so that nobody goes there.

    That is far on the scale of values and rewards: next to a number that dwarfs them, inner solvers
    could not tell them apart.
    """

    def __init__(self, region: Region) -> None:
        self._infinite = np.flatnonzero(np.isinf(region.known))
        paying = region.finite_rows & region.open[region.graph.edges.row_state]
        self._paid = float(np.max(region.problem.reward, where=paying, initial=0.0))

    def put(self, value: FloatArray) -> None:
        """Give infinite states a number, in place; seldom another one, for it moves all others."""
        if len(self._infinite):
            finite = value.copy()
            finite[self._infinite] = 0.0
            barrier = FAR * (self._paid + float(finite.max()))
            if not 0.5 * barrier <= value[self._infinite[0]] <= 2.0 * barrier:
                value[self._infinite] = barrier


class PolicyIteration:
    """Finds the value of the open part of a problem to a small residual."""

    def __init__(self, task: Task, region: Region) -> None:
        self.problem, self.region = task.problem, region
        self.operator, self.clock = task.operator, task.clock
        self._allowed = region.allowed
        self._barrier = Barrier(region)
        self._dodging = self.problem.nature is MIN and bool(np.isinf(region.known).any())
        self._members = region.groups.members
        self._levels = self._split_levels()
        self._place = np.full(self.problem.model.states, -1, dtype=np.int64)

    @cached_property
    def _nominal(self) -> PreparedInner:
        """Nature without a choice."""
        problem = self.problem
        return IntervalArithmetic().prepare(problem.model.nominal(), problem.nature)

    def start(self, warm: FloatArray | None) -> Guess:
        """Return a first guess: a warm start, or the value of a first policy and nominal nature.

        A nature that has to dodge infinite states is not the nominal one, which meets them. Values
        begin with 0 then: seen from below, nobody goes where it is infinite.
        """
        region = self.region
        value = np.where(region.open, 0.0, np.where(np.isinf(region.known), 0.0, region.known))
        guess = Guess(value, region.choice.copy())
        if warm is not None:
            value[region.open] = np.where(np.isfinite(warm), warm, 0.0)[region.open]
        elif region.cyclic and not self._dodging:
            with suppress(LimitReached):  # a guess need not be a good one
                self._follow_nominal(guess)
        self._barrier.put(guess.value)
        return guess

    def _follow_nominal(self, guess: Guess) -> None:
        """Evaluate the first policy under nominal nature, roughly."""
        for level in self._levels:
            self._barrier.put(guess.value)
            answers = self._nominal.respond(guess.value, guess.choice[level.nodes.states])
            self._evaluate(guess, level, answers, FIRST if level.cyclic else 1)

    def improve(self, guess: Guess, residual: float) -> float:
        """Guess all levels until their residual is at most `residual` times the value's scale.

        Returns the largest residual that is left, relative to that scale.
        """
        worst = 0.0
        for level in self._levels:
            self.clock.check()
            self._barrier.put(guess.value)
            if level.cyclic:
                worst = max(worst, self._cycle(guess, level, residual))
            else:
                self._sweep(guess, level)
        return worst

    def _split_levels(self) -> list[Level]:
        """Return the levels in the order to solve them; acyclic neighbours are not merged."""
        parts, label = self.region.components, self.region.groups.label
        out: list[Level] = []
        for level in parts.levels():
            trivial = parts.trivial[parts.component[level]]
            for cyclic in (False, True):
                states = level[trivial != cyclic]
                if len(states):
                    rows = entries(self.problem.model.row_ptr, states)
                    out.append(Level(states, rows, Nodes.joined(states, label), cyclic))
        return out

    def _cycle(self, guess: Guess, level: Level, residual: float) -> float:
        """Guess one cyclic level; return its last residual, relative to the largest value.

        Agent and nature change their minds at once, which is fast but may go round in circles. If
        the residual does not fall, nature's best answer to the policy is found first; if even that
        does not help, plain sweeps remain.
        """
        least, stalled, scale, states = np.inf, 0, 0.0, level.states
        for sweep in range(PATIENCE):
            change = self._sweep(guess, level)
            scale = float(np.max(np.abs(guess.value[states]), initial=0.0))
            self.clock.tick("solve", change)
            floor = 64 * 2.0**-53 * scale
            if change <= max(residual * scale, floor):
                return change / max(scale, 1e-300)
            stalled = 0 if change < 0.9 * least else stalled + 1
            least = min(least, change)
            target = max(1e-3 * change, 0.1 * residual * scale, floor)
            if stalled == STALLED:
                self._restart(guess, level, target)
            if stalled < STALLED:
                self._follow(guess, level, target)
            elif stalled < 3 * STALLED:
                self._answer(guess, level, target)
            elif sweep > 200 and change <= 1e3 * floor:
                break
        return least / max(scale, 1e-300)

    def _restart(self, guess: Guess, level: Level, target: float) -> None:
        """Begin again where those who minimise come to an end.

        Perhaps they found something that pays little for ever, or seems to as long as values are
        too low. The first policy ends, and so does nominal nature; what they are worth is no less
        than what the best are worth, and from there on others end as well.
        """
        if self.problem.agent is MIN:
            guess.choice[level.states] = self.region.choice[level.states]
        if self.problem.nature is MIN and not self._dodging:
            answers = self._nominal.respond(guess.value, guess.choice[level.nodes.states])
            self._evaluate(guess, level, answers, CHEAP, target)

    def _follow(self, guess: Guess, level: Level, target: float) -> None:
        """Evaluate the chain of policy and nature's answers."""
        answers = self.operator.inner.respond(guess.value, guess.choice[level.nodes.states])
        self._evaluate(guess, level, answers, CHEAP, target)

    def _answer(self, guess: Guess, level: Level, target: float) -> None:
        """Evaluate the policy against nature's best answer to it."""
        states = level.nodes.states
        rows = guess.choice[states]
        for _ in range(STALLED):
            self._follow(guess, level, target)
            self.operator.backup(guess.value, rows)
            q = self.operator.middle(rows, self._allowed)[rows]
            change = float(np.max(np.abs(q - guess.value[states]), initial=0.0))
            if change <= target:
                return

    def _sweep(self, guess: Guess, level: Level) -> float:
        """One robust backup of the states; return the largest change of a value."""
        states, rows, operator = level.states, level.rows, self.operator
        operator.backup(guess.value, rows[self._allowed[rows]])
        q = operator.middle(rows, self._allowed)
        old = guess.value[states]
        scale = float(np.max(np.abs(old), initial=1e-300))
        operator.choose(q, states, guess.choice, guess.value, 1e-13 * scale)
        if len(self._members[1]):
            share_group(*self._members, q, operator.sign, guess.choice, guess.value)
        operator.stats.robust_sweeps += 1
        return float(np.max(np.abs(guess.value[states] - old), initial=0.0))

    def _evaluate(
        self, guess: Guess, level: Level, answers: FloatArray, sweeps: int, target: float = 0.0
    ) -> None:
        """Give the states the value of the chain that policy and answers define, roughly."""
        chain = Chain(
            self.problem.model, level.nodes, guess.choice, answers, guess.value,
            self.problem.reward, self.problem.discount, self._place,
        )  # fmt: skip
        accuracy = np.full(len(chain.x), target)
        settled = chain.settle(self.clock, self.operator.stats, sweeps, accuracy)
        if not settled and target > 0.0 and chain.direct:
            chain.solve()  # without a solution the sweeps go on without help
        chain.put(guess.value)
