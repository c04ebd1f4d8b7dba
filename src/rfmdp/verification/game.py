"""The game behind a claim: what rows are worth, in which a bound gains, what players can force."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction

import numpy as np

from rfmdp.ragged import entries, starts
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.verification.exact import Undecided
from rfmdp.verification.gains import FAR, GAIN, HOLD, UNKNOWN, Step, gains_exactly
from rfmdp.verification.linear import UNIT, VAGUE, directed
from rfmdp.verification.reading import Model
from rfmdp.verification.rows import Batch, Rows, differences, fold

FRACTIONS = 20_000  # rows of one check that are decided one by one
FEW = 64  # outcomes of a row whose products of vertices are tried wherever there is a doubt


class Game:
    """A model, who pulls which way (+1 maximises), and what rows pay."""

    def __init__(self, model: Model, agent: int, nature: int) -> None:
        self.model, self.agent, self.nature = model, agent, nature
        self.rows = Rows(model)
        self.row_state = self.rows.row_state
        self.reward = np.zeros(model.rows)

    def signs(self, bound: FloatArray, side: int, discount: float, asked: BoolArray) -> AnyArray:
        """Return what is proven of the gain of every row asked for; `UNKNOWN` of the others."""
        found = np.full(self.model.rows, UNKNOWN, dtype=np.int8)
        if not asked.any():
            return found
        level = asked & self._level(bound, discount)
        found[level] = HOLD
        doubtful = 0
        with np.errstate(all="ignore"):
            for batch in self.rows.batches(asked & ~level):
                step = Step(self, batch, bound, side, discount)
                found[batch.rows] = signs = step.signs()
                doubts = np.flatnonzero((signs == UNKNOWN) | step.faint(signs))
                doubts = doubts[: FRACTIONS - doubtful]
                doubtful += len(doubts)
                decided = [step.decide(int(i)) for i in doubts]
                found[batch.rows[doubts]] = np.maximum(signs[doubts], decided)
        return found

    def _level(self, bound: FloatArray, discount: float) -> BoolArray:
        """Return the rows (R,) that pay nothing and lead to what their states are worth only."""
        free = self.reward == 0.0
        if discount != 1.0 or not free.any():
            return np.zeros(self.model.rows, dtype=np.bool_)
        if bound.min() == bound.max():
            return np.asarray(free & np.isfinite(bound[0]))
        here, ptr = bound[self.row_state], self.model.successor_ptr
        same = bound[self.model.successors] == np.repeat(here, np.diff(ptr))
        return np.asarray(free & np.isfinite(here) & np.logical_and.reduceat(same, ptr[:-1]))

    def backup(
        self, value: FloatArray, side: int, discount: float, asked: BoolArray, exact: BoolArray
    ) -> FloatArray:
        """Return (R,) bounds, on a side, of what the rows asked for are worth.

        The means of rows that are wanted exact are counted in fractions and rounded once.
        """
        q, decided = np.full(self.model.rows, side * np.inf), 0
        with np.errstate(all="ignore"):
            for batch in self.rows.batches(asked):
                there = value[batch.successors]
                if batch.possible is not None:  # what cannot happen has no value
                    least = np.where(batch.possible, there, np.inf).min(axis=1)
                    there = np.where(batch.possible, there, least[:, None])
                mean, top = fold(np.minimum, there), fold(np.maximum, there)
                some = np.flatnonzero(mean < top)
                batch_rows, there, base, top = batch.rows, there[some], mean[some], top[some]
                part = batch.take(some)
                found = self._mean(part, there - base[:, None], side)
                mean[some] = np.clip(directed(base, found, side), base, top)
                faint = ((found != 0.0) & (np.abs(found) < VAGUE)) | exact[part.rows]
                faint = np.flatnonzero(faint & np.isfinite(top - base))[: FRACTIONS - decided]
                decided += len(faint)
                mean[some[faint]] = [
                    self._rounded(int(part.rows[i]), there[i], float(mean[some[i]]), side)
                    for i in faint
                ]
                if discount != 1.0:
                    less = np.nextafter(discount * mean, side * np.inf)
                    mean = np.where(mean == 0.0, 0.0, less)
                q[batch_rows] = directed(self.reward[batch_rows], mean, side)
        return q

    def _rounded(self, row: int, values: FloatArray, known: float, side: int) -> float:
        """Return nature's best mean of values (K,) in fractions, rounded to a side, or `known`."""
        try:
            own = [-self.nature * Fraction(x) for x in values.tolist()]
            nothing = np.zeros(len(own), dtype=np.bool_)
            mean = -self.nature * self.rows.exact.minimum(self.rows.ids(row), own, nothing)
        except Undecided:
            return known
        found = float(mean)
        return found if side * (found - mean) >= 0 else float(np.nextafter(found, side * np.inf))

    def _mean(self, batch: Batch, values: FloatArray, side: int) -> FloatArray:
        """Return bounds (b,), on a side, of nature's best mean of values (b, K) >= 0.

        The values are rounded once; twice that much is paid.
        """
        flip, rows = -self.nature, self.rows  # values as nature, who then minimises, sees them
        towards, block = flip * side, batch.block
        outer = flip * (1.0 + 2.0 * UNIT * side) * values
        found = rows.bound(block, batch.axes, outer, towards)
        if len(block.free) > 1 and len(found):
            inner = flip * (1.0 - 2.0 * UNIT * side) * values
            other = rows.bound(block, batch.axes, inner, -towards)
            room = 2.0**-46 * fold(np.maximum, values)  # as near as anybody wants it
            wanted = 0.0 if math.prod(block.shape) <= FEW else room
            loose = np.flatnonzero(np.abs(found - other) > wanted)
            cut = found.copy() if towards > 0 else other - room
            rows.refine(batch, loose, outer, found, towards, other + towards * wanted, cut)
        found = flip * found
        if side > 0 > self.nature:  # what nature can avoid for sure has no weight at all
            tiny = (found > 0.0) & (found <= 2.0**-40 * fold(np.maximum, values))
            for i in np.flatnonzero(tiny):
                with suppress(Undecided):
                    if rows.can(int(batch.rows[i]), values[i] == 0.0, None):
                        found[i] = 0.0
        return found

    def pick(self, q: AnyArray, rule: IntArray | None) -> AnyArray:
        """Return the agent's row of every state: that of a rule, or the best."""
        if rule is not None:
            return q[rule]
        reduce = np.maximum if self.agent > 0 else np.minimum
        return reduce.reduceat(q, self.model.row_ptr[:-1])

    def players(self, good: BoolArray, side: int, rule: IntArray | None) -> BoolArray:
        """Return the states where good rows are enough: a helping agent needs one, else all."""
        if rule is not None:
            return good[rule]
        reduce = np.logical_or if self.agent == -side else np.logical_and
        states: BoolArray = reduce.reduceat(good, self.model.row_ptr[:-1])
        return states

    def gaining(
        self, signs: AnyArray, bound: FloatArray, trivial: BoolArray, side: int,
        rule: IntArray | None,
    ) -> BoolArray:  # fmt: skip
        """Return from where the bound gains or ends, whatever the opposing do.

        The least set of states whose rows gain, or hold and lead into the set.
        """
        if trivial.all():
            return trivial
        helps = self.nature == -side
        worth = np.where(np.isinf(bound), FAR, bound)

        def leads(row: int, inside: BoolArray) -> bool:
            successors, here = self.rows.successors(row), bound[self.row_state[row]]
            there, into = worth[successors], inside[successors]
            gain, error = differences(there, here, self.reward[row], 1.0)
            flat = (gain == 0.0) & (error == 0.0)
            if helps:
                return self.rows.can(row, flat, into)
            if (-side * gain >= error).all():
                return not self.rows.can(row, flat & ~into, None)
            exact = [-side * x for x in gains_exactly(there, here, self.reward[row], 1.0)]
            shifted = [x + int(hit) for x, hit in zip(exact, into.tolist(), strict=True)]
            return self.rows.exact.minimum(self.rows.ids(row), shifted, flat & False) > 0

        return self._attract(trivial, signs == GAIN, signs == HOLD, leads, side, rule)

    def _attract(
        self, start: BoolArray, good: BoolArray, open_: BoolArray,
        leads: Callable[[int, BoolArray], bool], side: int, rule: IntArray | None,
        unknown: bool = False,
    ) -> BoolArray:  # fmt: skip
        """Return the least set: `start`, and states whose rows are good or lead into the set.

        Rows that are open lead into the set if they are rigid and have a successor in it, or if
        `leads` says so.
        """
        if rule is not None:
            taken = np.zeros(self.model.rows, dtype=np.bool_)
            taken[rule] = True
            open_ = open_ & taken
        good, rigid = good.copy(), self.rows.rigid
        edges = _Edges(self.rows, np.flatnonzero(open_ & ~start[self.row_state]))
        inside = start | self.players(good, side, rule)
        new = np.flatnonzero(inside)
        alone = rule is not None or self.agent == -side
        missing = np.add.reduceat((~good).astype(np.int64), self.model.row_ptr[:-1])
        while len(new):
            rows = edges.into(new)
            rows = rows[~good[rows]]
            won = rigid[rows].copy()
            for i in np.flatnonzero(~won):
                try:
                    won[i] = leads(int(rows[i]), inside)
                except Undecided:
                    won[i] = unknown
            rows = rows[won]
            good[rows] = True
            states = self.row_state[rows]
            if not alone:
                np.subtract.at(missing, states, 1)
                states = states[missing[states] == 0]
            new = edges.once(states[~inside[states]])
            inside[new] = True
        return inside

    def sure(self, target: BoolArray, rule: IntArray | None) -> BoolArray:
        """Return where those who minimise reach the target almost surely, or more states."""
        helps = self.nature < 0
        outer = np.ones(self.model.states, dtype=np.bool_)
        none = np.zeros(self.model.rows, dtype=np.bool_)
        while True:
            stays = self._stays(outer, helps, True)

            def leads(row: int, inside: BoolArray, outer: BoolArray = outer) -> bool:
                successors = self.rows.successors(row)
                if helps:
                    return self.rows.can(row, outer[successors], inside[successors])
                return not self.rows.can(row, ~inside[successors], None)

            inner = self._attract(target, none, stays, leads, 1, rule, unknown=True)
            if np.array_equal(inner, outer):
                return outer
            outer = inner

    def recurrent(self, fire: BoolArray, rule: IntArray | None) -> BoolArray:
        """Return where those who maximise are paid for ever with positive probability, or less."""
        won = np.zeros(self.model.states, dtype=np.bool_)
        while True:
            outer = np.ones_like(won)
            while True:
                inner = self._recurrent_step(fire, won, outer, rule)
                if np.array_equal(inner, outer):
                    break
                outer = inner
            if np.array_equal(outer, won):
                return won
            won = outer

    def _recurrent_step(
        self, fire: BoolArray, won: BoolArray, outer: BoolArray, rule: IntArray | None
    ) -> BoolArray:
        """Return the least set of states that lead into `won`, or stay and pay or lead on."""
        helps, can = self.nature > 0, self.rows.can

        def hits(row: int) -> bool:
            past = won[self.rows.successors(row)]
            return can(row, None, past) if helps else not can(row, ~past, None)

        def leads(row: int, inside: BoolArray) -> bool:
            successors = self.rows.successors(row)
            past, at, into = won[successors], outer[successors], inside[successors]
            if helps:
                return can(row, None, past) or can(row, at, None if fire[row] else into)
            if can(row, ~past, ~at):
                return False
            return bool(fire[row]) or not can(row, ~past & ~into, None)

        stays = self._stays(outer, helps, False)
        good = self._each(self.rows.touch(won), hits, False) | (stays & fire)
        return self._attract(won, good, stays | ~self.rows.rigid, leads, -1, rule)

    def _stays(self, states: BoolArray, helps: bool, unknown: bool) -> BoolArray:
        """Return the rows that nature can, or must, keep within the states."""

        def stays(row: int) -> bool:
            at = states[self.rows.successors(row)]
            return self.rows.can(row, at, None) if helps else not self.rows.can(row, None, ~at)

        return self._each(~self.rows.touch(~states), stays, unknown)

    def _each(self, known: BoolArray, test: Callable[[int], bool], unknown: bool) -> BoolArray:
        """Return what is known of rigid rows, and what a test says of the others, (R,)."""
        found = known & self.rows.rigid
        for row in np.flatnonzero(~self.rows.rigid):
            try:
                found[row] = test(int(row))
            except Undecided:
                found[row] = unknown
        return found


class _Edges:
    """Some rows and the successors that they can have, to be followed backwards."""

    def __init__(self, rows: Rows, chosen: IntArray) -> None:
        model = rows.model
        ptr, held = model.successor_ptr, rows.possible(chosen)
        states = model.successors[entries(ptr, chosen)][held]
        order = np.argsort(states, kind="stable")
        self._row = np.repeat(chosen, np.diff(ptr)[chosen])[held][order]
        self._ptr = starts(np.bincount(states, minlength=model.states))
        self._place = np.empty(max(model.rows, model.states), dtype=np.int64)

    def into(self, states: IntArray) -> IntArray:
        """Return the rows that lead to some of the states, each once."""
        return self.once(self._row[entries(self._ptr, states)])

    def once(self, numbers: IntArray) -> IntArray:
        """Return numbers of rows or states, each once, in time that hangs on how many only."""
        at = np.arange(len(numbers))
        self._place[numbers] = at
        return np.asarray(numbers[self._place[numbers] == at])
