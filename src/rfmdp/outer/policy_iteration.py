"""Robust modified policy iteration: a value with a small residual, and its policy.

Components are solved in topological order. Within one, a full robust sweep picks rows and
nature's answers; the chain that remains when both are fixed is evaluated; and again, until the
residual is small. The number so found is *no* bound: `certify` (or a discount) proves bounds
around it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from rfmdp.inner.protocol import PreparedInner, successor_starts
from rfmdp.inner.solvers import IntervalArithmetic
from rfmdp.kernels import sweep as kernels
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MIN
from rfmdp.outer.region import Region
from rfmdp.outer.solution import Stats
from rfmdp.outer.task import Clock, LimitReached, Task
from rfmdp.ragged import entries, owners
from rfmdp.types import AnyArray, FloatArray, IntArray

Solve: TypeAlias = Callable[[FloatArray], FloatArray | None]

DIRECT = 3000  # states of a chain that is solved by elimination if it mixes slowly
BAND = 1e9  # steps of an elimination that larger chains are worth
EFFORT = 100_000  # entries that are swept between two looks at the clock
STALLED = 8  # sweeps without a smaller residual before another way is tried
PATIENCE = 3000  # robust sweeps of one cyclic level per attempt
CHEAP = 40  # sweeps of one chain at most: early policies are not worth more
FIRST = 30  # sweeps of the first chain, which is nobody's best
FAR = 1e6  # infinite states count this many times the largest finite value


@dataclass(frozen=True, slots=True, eq=False)
class Nodes:
    """States that move on their own, and followers, each worth as much as its leader."""

    states: IntArray  # (n,) that move on their own
    followers: IntArray  # (m,)
    leaders: IntArray  # (m,) the leader of every follower, one of `states`

    @classmethod
    def alone(cls, states: IntArray) -> Nodes:
        """Return states that all move on their own."""
        none = np.empty(0, dtype=np.int64)
        return cls(states, none, none)

    @classmethod
    def joined(cls, states: IntArray, label: IntArray) -> Nodes:
        """Return states of which the first one of a group leads it; label (S,), -1: in none."""
        grouped = states[label[states] >= 0]
        if not len(grouped):
            return cls.alone(states)
        first = np.empty(int(label[grouped].max()) + 1, dtype=np.int64)
        first[label[grouped][::-1]] = grouped[::-1]  # the last one written is the first
        leaders = first[label[grouped]]
        follows = leaders != grouped
        moves = label[states] < 0
        moves[np.flatnonzero(~moves)[~follows]] = True
        return cls(states[moves], grouped[follows], leaders[follows])


class Chain:
    """x = reward + discount P x on the states of some nodes; every state takes one row.

    `choice` is the row (S,) of every state; nature's `answers` to those of the nodes come one after
    another; `value` (S,) is that of all other states, and where `x` begins for the nodes. `place`
    is memory (S,), all of it -1, and left so; for small chains of large models.
    """

    def __init__(
        self,
        model: FactoredMDP,
        nodes: Nodes,
        choice: IntArray,
        answers: FloatArray,
        value: FloatArray,
        reward: FloatArray,
        discount: float = 1.0,
        place: IntArray | None = None,
    ) -> None:
        states = nodes.states
        self.nodes = nodes
        self._factors: Solve | None = None
        self._packed = (
            np.empty(len(states) + 1, dtype=np.int64),
            np.empty(len(answers), dtype=np.int32),
            np.empty(len(answers)),
            np.empty(len(states)),
        )
        begin = successor_starts(model, choice[states])
        self._rows = model, choice, begin, answers, discount
        self._place = np.full(model.states, -1, dtype=np.int64) if place is None else place
        self.pay(value, reward)

    def pay(self, value: FloatArray, reward: FloatArray) -> None:
        """Take other values (S,) and rewards (R,); the chain moves as before."""
        (model, choice, begin, answers, discount), place = self._rows, self._place
        states, nodes = self.nodes.states, self.nodes
        self.x = value[states]
        place[states] = np.arange(len(states))
        place[nodes.followers] = place[nodes.leaders]
        moves = model.successor_ptr, model.successors, begin, answers
        kernels.pack_chain((states, choice, place), moves, value, reward, discount, self._packed)
        place[states], place[nodes.followers] = -1, -1

    def put(self, value: FloatArray) -> None:
        """Write the values of the nodes to `value` (S,)."""
        value[self.nodes.states] = self.x
        value[self.nodes.followers] = value[self.nodes.leaders]

    def sweep(self, sweeps: int, accuracy: FloatArray) -> tuple[int, bool]:
        """Sweep until no value changes by more than its accuracy (n,).

        Return the number of sweeps, at most `sweeps`, and whether that was reached.
        """
        done, settled = kernels.sweep_chain(self._packed, self.x, sweeps, accuracy)
        return int(done), bool(settled)

    def settle(self, clock: Clock, stats: Stats, sweeps: int, accuracy: FloatArray) -> bool:
        """Sweep as `sweep` does with an eye on the clock; return whether the values settled."""
        burst = 1 + EFFORT // max(int(self._packed[0][-1]), 1)
        while sweeps > 0:
            done, settled = self.sweep(min(burst, sweeps), accuracy)
            stats.cheap_sweeps += done
            sweeps -= done
            clock.check()
            if settled:
                return True
        return False

    @property
    def direct(self) -> bool:
        """Whether to solve it if it mixes slowly: it is small, or moves to near numbers."""
        if len(self.x) <= DIRECT:
            return True
        ptr, targets = self._packed[:2]
        numbers = self.nodes.states
        distance = np.abs(numbers[owners(ptr)] - numbers[targets[: ptr[-1]]])
        return len(self.x) * float(np.max(distance, initial=1)) ** 2 <= BAND

    def solve(self) -> bool:
        """Solve by sparse elimination; return False for a chain with a trap, or nearly.

        Where nothing is below 0, values below it come from a pivot that rounding has turned.
        """
        ptr, targets, weights, constants = self._packed
        if self._factors is None:
            count, end = len(self.x), int(ptr[-1])
            columns = np.insert(targets[:end], ptr[:-1], np.arange(count))
            entry = np.insert(-weights[:end], ptr[:-1], 1.0)
            self._factors = elimination(ptr + np.arange(count + 1), columns, entry)
        x = None if self._factors is None else self._factors(constants)
        if x is None or (np.min(x, initial=0.0) < 0.0 and not np.any(constants < 0.0)):
            return False
        self.x = x
        return True


def elimination(
    ptr: AnyArray, columns: AnyArray, entry: FloatArray, panel: int | None = None
) -> Solve | None:
    """Return a function from b (n,) to x with A x = b; None for a chain with a trap.

    A is given by rows: pointers (n + 1,), columns and entries. The function returns None if x is
    not finite. `panel` is how many columns are taken at once: 1 is best for very short ones.
    """
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    count = len(ptr) - 1
    turned = csc_array((entry, columns, ptr), shape=(count, count))  # rows are columns to SciPy
    try:
        # diagonals dominate, so all are pivots
        factors = splu(turned, diag_pivot_thresh=0.0, relax=panel, panel_size=panel)
    except RuntimeError:  # singular
        return None

    def solve(right: FloatArray) -> FloatArray | None:
        x: FloatArray = factors.solve(right, "T")
        return x if np.isfinite(x).all() else None

    return solve


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


class PolicyIteration:
    """Finds the value of the open part of a problem to a small residual."""

    def __init__(self, task: Task, region: Region) -> None:
        self.task, self.problem, self.region = task, task.problem, region
        self._allowed = region.allowed
        self._infinite = np.flatnonzero(np.isinf(region.known))
        paying = region.finite_rows & region.open[region.graph.edges.row_state]
        self._paid = float(np.max(region.problem.reward, where=paying, initial=0.0))
        self._dodging = self.problem.nature is MIN and len(self._infinite) > 0
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
                for level in self._levels:
                    self._put_barrier(value)
                    rows = guess.choice[level.nodes.states]
                    answers = self._nominal.respond(value, rows)
                    self._evaluate(guess, level, answers, FIRST if level.cyclic else 1)
        self._put_barrier(guess.value)
        return guess

    def _put_barrier(self, value: FloatArray) -> None:
        """Give infinite states a number, in place; seldom another one, for it moves all others.

        It is far above all finite ones, so that nobody goes there; but on the scale of values and
        rewards: next to one that dwarfs them, inner solvers could not tell them apart.
        """
        if len(self._infinite):
            finite = value.copy()
            finite[self._infinite] = 0.0
            barrier = FAR * (self._paid + float(finite.max()))
            if not 0.5 * barrier <= value[self._infinite[0]] <= 2.0 * barrier:
                value[self._infinite] = barrier

    def improve(self, guess: Guess, residual: float) -> float:
        """Guess all levels until their residual is at most `residual` times the value's scale.

        Returns the largest residual that is left, relative to that scale.
        """
        worst = 0.0
        for level in self._levels:
            self.task.clock.check()
            self._put_barrier(guess.value)
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
            self.task.clock.tick("solve", change)
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
        answers = self.task.inner.respond(guess.value, guess.choice[level.nodes.states])
        self._evaluate(guess, level, answers, CHEAP, target)

    def _answer(self, guess: Guess, level: Level, target: float) -> None:
        """Evaluate the policy against nature's best answer to it."""
        states = level.nodes.states
        rows = guess.choice[states]
        for _ in range(STALLED):
            self._follow(guess, level, target)
            self.task.backup(guess.value, rows)
            q = self.task.middle(rows, self._allowed)[rows]
            change = float(np.max(np.abs(q - guess.value[states]), initial=0.0))
            if change <= target:
                return

    def _sweep(self, guess: Guess, level: Level) -> float:
        """One robust backup of the states; return the largest change of a value."""
        states, rows, task = level.states, level.rows, self.task
        task.backup(guess.value, rows[self._allowed[rows]])
        q = task.middle(rows, self._allowed)
        old = guess.value[states]
        scale = float(np.max(np.abs(old), initial=1e-300))
        task.choose(q, states, guess.choice, guess.value, 1e-13 * scale)
        if len(self._members[1]):
            kernels.share_group(*self._members, q, task.sign, guess.choice, guess.value)
        task.stats.robust_sweeps += 1
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
        settled = chain.settle(self.task.clock, self.task.stats, sweeps, accuracy)
        if not settled and target > 0.0 and chain.direct:
            chain.solve()  # without a solution the sweeps go on without help
        chain.put(guess.value)
