"""One backward step of a lattice with proven errors, by `kernels.contraction`.

The kernel returns for every row a number that is not above its value (nature minimising) and a loss
that the value exceeds it by at most. Rows with a loss that matters are written out and solved by
`Exact`, one by one. Errors of a step are the same in all states, so that values need one array.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.inner.packing import corners_of, pack_sets
from rfmdp.inner.solvers import Exact
from rfmdp.kernels.contraction import (
    LANES,
    MIXED,
    QUEUES,
    ROWS,
    TOLERANCE,
    UNDER,
    WORST,
    step_back,
)
from rfmdp.model.lattice import Formula, FormulaRewards, LatticeMDP, written_rows
from rfmdp.model.lattice_order import Clock
from rfmdp.objective import MIN, Direction
from rfmdp.outer.lattice.trie import Trie, TrieMaker, parted, restricted
from rfmdp.rounding import TERM, TINY, UNIT
from rfmdp.threads import side_by_side, threads
from rfmdp.types import AnyArray, FloatArray, IntArray

MOST_MIXED = 1 << 20  # rows of a step that are solved one by one; beyond them the loss is an error
PARALLEL = 1 << 14  # states that are worth threads


@dataclass(frozen=True, slots=True)
class Errors:
    """How far a value (S,) may be above the true one, and how far below."""

    above: float = 0.0
    below: float = 0.0

    def after(self, discount: float, more: Errors) -> Errors:
        """Return the errors after a step that adds its own; T does not expand."""
        grown = 1.0 + 4.0 * UNIT
        return Errors(
            (discount * self.above + more.above) * grown,
            (discount * self.below + more.below) * grown,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Payments:
    """What actions pay in all states; actions that pay alike are a class."""

    actions: IntArray  # (C,) bits
    pays: FloatArray  # (C, S)
    idle: FloatArray  # (K,) what states without a choice pay

    @staticmethod
    def nothing(model: LatticeMDP) -> Payments:
        """Return that no action pays."""
        return Payments(np.array([-1]), np.zeros((1, model.states)), np.zeros(1))

    @staticmethod
    def of(model: LatticeMDP, rewards: FormulaRewards) -> Payments:
        """Evaluate rewards in all states."""
        formulas: list[Formula | None] = []
        bits: list[int] = []
        for action, formula in enumerate(rewards.actions):
            if formula not in formulas:
                formulas.append(formula)
                bits.append(0)
            bits[formulas.index(formula)] |= 1 << action
        pays = np.zeros((len(formulas), model.states))
        for row, formula in zip(pays, formulas, strict=True):
            if formula is not None:
                row[:] = model.evaluate(formula)
        idle = np.zeros(1)
        if rewards.state is not None:
            of_states = model.evaluate(rewards.state)
            pays += of_states
            if model.deadlocks is not None:
                idle = of_states[model.deadlocks]
        if not np.isfinite(pays).all():
            state = int(np.flatnonzero(~np.isfinite(pays).all(axis=0))[0])
            raise ModelError(f"State {model.state_name(state)}: rewards must be finite numbers.")
        return Payments(np.array(bits, dtype=np.int64), pays, idle)

    def negated(self) -> Payments:
        """Return the same with the other sign, in the same arrays."""
        np.negative(self.pays, out=self.pays)
        return Payments(self.actions, self.pays, -self.idle)

    @property
    def most(self) -> float:
        """The most that an action pays, or takes."""
        return float(max(np.max(self.pays), -np.min(self.pays)))


@dataclass(slots=True, eq=False)
class _Slot:
    """What one thread works with."""

    work: FloatArray
    stack: tuple[Any, ...]
    mixed: tuple[AnyArray, ...]  # states, actions, lows and losses of rows to be written out
    totals: FloatArray = field(default_factory=lambda: np.zeros(5))


class Sweep:
    """The Bellman operator of a lattice: all states at once, against nature who minimises."""

    def __init__(
        self, model: LatticeMDP, agent: Direction, payments: Payments, discount: float = 1.0,
        most_mixed: int = MOST_MIXED,
    ) -> None:  # fmt: skip
        self.model, self.agent = model, agent
        self.payments, self.discount = payments, discount
        self._maker = maker = TrieMaker(model)
        self._trie, self._moves = maker.trie(), maker.moves
        self._program = maker.program(payments.actions)
        self._sets = pack_sets(model.marginals, corners_of(model))
        slots = threads() if model.states >= PARALLEL else 1
        room = int(self._trie.begins[-1] + self._trie.inner[-1])
        self._room = most = min(most_mixed, 64 * model.states)
        kinds = (np.int64, np.int64, np.float64, np.float64)
        self._slots = [
            _Slot(
                np.empty(room),
                _stack(maker, len(payments.actions)),
                tuple(np.empty(most, kind) for kind in kinds),
            )
            for _ in range(slots)
        ]
        sizes = np.append(np.diff(model.moves.target_ptr), 1)  # FORBIDDEN is the last one
        self._terms = float(sum(sizes[factor.moves].max() for factor in model.factors))
        self.rows = 0  # of the last step
        self.mixed = 0  # of these, rows that were written out

    def level(self, clock: Clock, level: int) -> Trie:
        """Return the trie of the states of a level of a clock, which is the first factor."""
        return restricted(self._trie, self._maker.branches_of(clock.level == level))

    def back(
        self, value: FloatArray, trie: Trie | None = None
    ) -> tuple[FloatArray, AnyArray, Errors]:
        """Return values before a step, the actions that are best, and the errors of this step.

        With a part of the trie only some states have one.
        """
        agent, states = self.agent.sign, self.model.states
        span = float(value.max() - value.min())
        size = float(np.max(np.abs(value)))
        out = np.full(states, -agent * np.inf)
        choice = np.zeros(states, dtype=np.uint8)
        tolerance = TERM * self._terms * span
        tries = parted(self._trie if trie is None else trie, len(self._slots))

        def work(k: int) -> None:
            slot = self._slots[k]
            slot.totals[:] = 0.0
            slot.totals[TOLERANCE] = tolerance
            step_back(
                tuple(tries[k]), self._program, self._moves, self._sets,
                (self.payments.actions, self.payments.pays), (agent, self.discount),
                value, slot.work, (out, choice, *slot.mixed), slot.totals, slot.stack,
            )  # fmt: skip

        side_by_side(len(tries), work)
        slots = self._slots[: len(tries)]
        totals = np.array([slot.totals for slot in slots])
        counts = totals[:, MIXED].astype(np.int64)
        self.rows, self.mixed = int(totals[:, ROWS].sum()), int(counts.sum())
        losses = np.where(counts <= self._room, totals[:, UNDER], totals[:, WORST])
        loss = self.discount * float(losses.max())
        depths = len(self.model.factors)
        rounding = TERM * self._terms * span + 2.0 * UNIT * (depths + 4) * size
        # adding two rewards was off, and adding them to a value is
        rounding = self.discount * rounding + 8.0 * UNIT * self.payments.most + TINY * self._terms
        errors = Errors(rounding, rounding + loss)
        stuck = self.model.deadlocks
        if stuck is not None:  # they stay where they are
            out[stuck] = self.payments.idle + self.discount * value[stuck]
        if self.mixed:
            listed = [
                [part[:count] for part in slot.mixed]
                for slot, count in zip(slots, counts.tolist(), strict=True)
            ]
            mixed = [np.concatenate(parts) for parts in zip(*listed, strict=True)]
            width = self._repair(value, out, choice, mixed)
            errors = Errors(errors.above + width, errors.below + width)
        return out, choice, errors

    def _repair(
        self, value: FloatArray, out: FloatArray, choice: AnyArray, mixed: list[AnyArray]
    ) -> float:
        """Take rows that passed a mixed node into account; return the width of their bounds."""
        states, actions, low, loss = mixed
        sign = self.agent.sign
        best = low + loss if sign > 0.0 else low
        matters = np.flatnonzero(sign * (best - out[states]) > 0.0)
        width = 0.0
        for model, at, chosen in written_rows(self.model, states[matters], actions[matters]):
            below, above = np.empty((2, len(at)))
            Exact().prepare(model, MIN).backup(value, np.arange(len(at)), below, above)
            middle = 0.5 * (below + above)
            width = max(width, self.discount * float(np.max(above - below)))
            q = self._pays(at, chosen) + self.discount * middle
            order = np.argsort(sign * q, kind="stable")  # the best comes last and stays
            s = at[order]
            better = sign * (q[order] - out[s]) > 0.0
            out[s[better]] = q[order][better]
            choice[s[better]] = chosen[order][better]
        return width

    def _pays(self, states: IntArray, actions: IntArray) -> FloatArray:
        pays = np.zeros(len(states))
        for bits, amounts in zip(self.payments.actions, self.payments.pays, strict=True):
            members = (bits >> actions) & 1 == 1
            pays[members] = amounts[states[members]]
        return pays


def _stack(maker: TrieMaker, classes: int) -> tuple[Any, ...]:
    """Return room for a walk; see the kernel."""
    depths, slots = maker.bottom + 1, maker.slots + 1
    widest = max(2, int(np.max(np.diff(maker.moves[1]), initial=0)))
    entries = int(maker.later[maker.bottom])
    waiting = (
        np.zeros((QUEUES, LANES), np.int64), np.zeros((QUEUES, LANES)),
        np.zeros((QUEUES, LANES), np.int64), np.zeros((QUEUES, entries * LANES)),
        np.zeros((QUEUES, 3), np.int64),
    )  # fmt: skip
    rooms = (
        np.zeros(maker.room * LANES), np.zeros((slots, LANES)), np.zeros(slots, np.bool_),
        (np.zeros((5, widest)), np.zeros(widest, np.int64)), np.zeros(LANES, np.int64),
        np.zeros((classes, maker.ends * LANES)), np.zeros((classes, maker.ends * LANES), np.int64),
    )  # fmt: skip
    integers, bits = np.zeros((7, depths), np.int64), np.zeros(depths, np.int64)
    return integers, np.zeros(depths), np.zeros((depths, 1)), bits, waiting, rooms
