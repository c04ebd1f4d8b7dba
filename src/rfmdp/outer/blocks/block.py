"""What one block does in a round, before blocks exchange values: a step, some sweeps, a check.

`values` (C, n) are those of a block; the operator sees them with those of `outside` behind. Which
columns there are depends on the form:

form                              values
finite horizon                    one value; its error is counted by whoever adds up the widths
discounted                        one value
reach, reward to target, total    lower, a proven bound; upper, one as soon as it is inductive

Lower bounds begin at 0 and rise: T(L) <= V if L <= V, in whatever order, and from however old
values of other blocks. A state keeps the row that raised it last. The policy of these rows is
worth L: where it were worth least compared with L, all successors would have been raised for the
last time before the state itself, so that there is no first one.

`upper` is iterated from below as well, by T + push, the push being paid in every step. As soon as
T(U) <= U holds everywhere, rounding included, U is a bound of the least fixed point. In a limit of
T + push that holds with the push to spare, and it holds long before the limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.inner.protocol import Inner, Side
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.blocked import Block, BlockedMDP, Change, PackedBlock, changed, pack, unpack
from rfmdp.objective import MAX, Spec
from rfmdp.outer.horizon import spreads
from rfmdp.outer.problem import Form, pose
from rfmdp.outer.solution import Stats
from rfmdp.outer.task import Operator
from rfmdp.ragged import segment_all
from rfmdp.types import BoolArray, FloatArray, Int32Array, IntArray

PIECES = 8  # of a block that a sweep goes through, each with the values of those before
WORTH_PIECES = 1 << 12  # states


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The values of a block after some rounds."""

    values: FloatArray  # (C, n)
    choice: Int32Array  # (n,) rows of the block
    rules: tuple[Int32Array, ...] = ()  # (n,) of every backward step, last step first
    spreads: tuple[tuple[float, float], ...] = ()  # of every backward step, see `horizon`
    moves: tuple[float, float] = (np.inf, np.inf)  # of a check: most that T falls and rises
    rows: int = 0  # of the block
    least: float = 0.0  # that it pays, if below 0


@dataclass(frozen=True, slots=True, eq=False)
class BlockTask:
    """What is asked of a block; all sets of states are arrays."""

    spec: Spec
    inner: Inner
    changes: tuple[Change, ...]
    keep: bool  # blocks stay unpacked, ready to use


def ready_bytes(model: FactoredMDP | BlockedMDP) -> float:
    """Return about how many bytes a block takes that is ready to use, or all blocks of a model."""
    return 16.0 * model.transitions + 120.0 * model.rows + 40.0 * model.states


class BlockOperator:
    """The Bellman operator of a block; it travels packed."""

    def __init__(self, block: Block | PackedBlock, task: BlockTask) -> None:
        self.block, self.task = unpack(block), task
        self.outside = self.block.outside
        model = changed(self.block.model, task.changes)
        self.problem = problem = pose(model, task.spec)
        if problem.form in (Form.MIXED, Form.AVERAGE) or (
            problem.steps and problem.form is not Form.STEPS
        ):
            raise UnsupportedError(
                "A model in blocks is solved for horizons, discounts, targets and total rewards, "
                f"not for a {problem.form.value}; use a model that fits into one memory, without a "
                "cluster."
            )
        rows = task.inner.prepare(model, problem.nature)
        if rows.proves != Side.BOTH:
            raise UnsupportedError(
                f"A model in blocks needs a method that proves both sides, not {task.inner.name}; "
                "leave the method out."
            )
        self.operator = Operator(problem, rows, Stats())
        self.states, self.rows = np.arange(model.states), np.arange(model.rows)
        self._every_row = np.ones(model.rows, dtype=np.bool_)
        self.fixed = problem.terminal
        self.given = (problem.target & problem.probability).astype(np.float64)

    def __reduce__(self) -> tuple[type[BlockOperator], tuple[PackedBlock, BlockTask]]:
        return BlockOperator, (pack(self.block), self.task)

    def __sizeof__(self) -> int:
        """Return its bytes, by which a cluster sees what it costs to move it to another worker."""
        return int(ready_bytes(self.block.model))

    def begin(self) -> Outcome:
        """Return the values that the form begins with."""
        problem = self.problem
        first_rows = problem.model.row_ptr[:-1].astype(np.int32)
        columns = 1 if problem.form in (Form.STEPS, Form.DISCOUNTED) else 2
        value = problem.start if problem.form is Form.STEPS else self.given
        values = np.tile(value, (columns, 1))
        least = float(np.append(problem.reward, problem.start).min(initial=0.0))
        return Outcome(values, first_rows, rows=problem.model.rows, least=least)

    def sweeps(
        self, before: Outcome, outside: FloatArray, count: int, push: float = 0.0
    ) -> Outcome:
        """Sweep some times within the block; without a push the upper column stays."""
        values = np.concatenate([before.values, outside], axis=1)
        choice = before.choice.astype(np.int64)
        for k in range(count):
            self._sweep(values, choice, push, backwards=k % 2 == 1)
        inside = values[:, : len(self.states)].copy()
        return replace(before, values=inside, choice=choice.astype(np.int32))

    def step(self, before: Outcome, outside: FloatArray, number: int) -> Outcome:
        """Take a step back of a finite horizon; the operations are those of `horizon.Backward`."""
        operator, step = self.operator, self.problem.steps[number]
        operator.backup(np.concatenate([before.values[0], outside[0]]), self.rows)
        q = operator.middle(self.rows, self._every_row)
        spread = spreads(operator, self.rows, q)
        after, choice = self._best(q, self.states)
        after = np.where(step.fixed, step.given, after)
        return replace(
            before, values=after[None], rules=(*before.rules, choice.astype(np.int32)),
            spreads=(*before.spreads, spread),
        )  # fmt: skip

    def _sweep(self, values: FloatArray, choice: IntArray, push: float, *, backwards: bool) -> None:
        """Sweep over the pieces of a block, in place."""
        count = PIECES if len(self.states) >= WORTH_PIECES else 1
        pieces = np.array_split(self.states, count)
        row_ptr = self.problem.model.row_ptr
        for states in reversed(pieces) if backwards else pieces:
            if not len(states):
                continue
            rows = self.rows[row_ptr[states[0]] : row_ptr[states[-1] + 1]]
            if self.problem.form is Form.DISCOUNTED:
                self.operator.backup(values[0], rows)
                q = self.operator.middle(rows, self._every_row)
                self.operator.choose(q, states, choice, values[0])
                continue
            self._raise_lower(values[0], choice, states, rows)
            if push > 0.0:
                self._raise_upper(values, push, states, rows)

    def _raise_lower(
        self, value: FloatArray, choice: IntArray, states: IntArray, rows: IntArray
    ) -> None:
        """Raise the lower bounds of some states, and note the rows that do."""
        self.operator.backup(value, rows)
        image, best = self._best(self.operator.below, states)
        image = self._within(image, states)
        better = image > value[states]
        value[states[better]] = image[better]
        choice[states[better]] = best[better]

    def _raise_upper(
        self, values: FloatArray, push: float, states: IntArray, rows: IntArray
    ) -> None:
        """Move upper values of some states; states whose lower bound is 0 are not pushed."""
        self.operator.backup(values[1], rows)
        q = self.operator.above
        if self.problem.form is Form.TO_TARGET:
            q[rows] += push
        else:
            moves = values[0][self.problem.model.row_states[rows]] > 0.0
            q[rows] += np.where(moves & ~self._still[rows], push, 0.0)
        values[1][states] = self._within(self._best(q, states)[0], states)

    def _best(self, q: FloatArray, states: IntArray) -> tuple[FloatArray, IntArray]:
        """Return the best numbers of q (R,) for the agent in some states (N,), and their rows."""
        image, rows = np.empty(len(self.states)), self.problem.model.row_ptr[:-1].copy()
        self.operator.choose(q, states, rows, image)
        return image[states], rows[states]

    def _within(self, image: FloatArray, states: IntArray) -> FloatArray:
        """Return the image of some states, as far as it may be their value."""
        if self.problem.probability:
            image = np.clip(image, 0.0, 1.0)
        return np.where(self.fixed[states], self.given[states], image)

    def check(self, before: Outcome, outside: FloatArray) -> Outcome:
        """Return how far T moves each side, and the rows of the guarantee; no value changes."""
        values = np.concatenate([before.values, outside], axis=1)
        problem, operator, choice = self.problem, self.operator, before.choice.astype(np.int64)
        size, free = len(self.states), np.flatnonzero(~self.fixed)
        images = []
        for column, side in ((0, operator.below), (-1, operator.above)):
            operator.backup(values[column], self.rows)
            image, rows = self._best(side, self.states)
            images.append(np.clip(image, 0.0, 1.0) if problem.probability else image)
            # rows that raised a lower bound are kept; they prove it
            guarantee = (column == 0) == (problem.agent is MAX)
            if guarantee and (column == -1 or problem.form is Form.DISCOUNTED):
                choice = rows
        low, high = values[0, :size], values[-1, :size]
        fall = float(np.max((low - images[0])[free], initial=-np.inf))
        rise = float(np.max((images[1] - high)[free], initial=-np.inf))
        return replace(before, choice=choice.astype(np.int32), moves=(fall, rise))

    @cached_property
    def _still(self) -> BoolArray:
        """Rows (R,) that stay where they are and pay nothing."""
        model = self.problem.model
        own = np.repeat(model.row_states, np.diff(model.successor_ptr))
        stays = segment_all(model.successors == own, model.successor_ptr)
        still: BoolArray = stays & (self.problem.reward == 0.0)
        return still


Command: TypeAlias = Callable[[BlockOperator, Outcome, FloatArray], Outcome]
"""What a block does in a round, given values (C, H) of its outside states: a method from above."""
