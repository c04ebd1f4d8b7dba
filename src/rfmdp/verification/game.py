"""The game behind a claim: what rows are worth, in which a bound gains, what players can force."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from rfmdp.ragged import entries, owners, starts
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.verification.exact import Undecided
from rfmdp.verification.gains import FAR, GAIN, HOLD, UNKNOWN, Step, gains_exactly
from rfmdp.verification.linear import VAGUE, directed, two_sum
from rfmdp.verification.reading import Model
from rfmdp.verification.rows import Batch, Rows, alike, differences, fold

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
        doubtful = 0
        with np.errstate(all="ignore"):
            for batch in self.rows.batches(asked):
                step = Step(self, batch, bound, side, discount)
                found[step.rows] = signs = step.signs()
                doubts = np.flatnonzero((signs == UNKNOWN) | step.faint(signs))
                doubts = doubts[: FRACTIONS - doubtful]
                doubtful += len(doubts)
                decided = [step.decide(int(i)) for i in doubts]
                found[step.rows[doubts]] = np.maximum(signs[doubts], decided)
        return found

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
                if not batch.possible.all():  # what cannot happen has no value
                    least = np.where(batch.possible, there, np.inf).min(axis=1)
                    there = np.where(batch.possible, there, least[:, None])
                mean, top = fold(np.minimum, there), fold(np.maximum, there)
                some = np.flatnonzero(mean < top)
                rows, there, base, top = batch.rows[some], there[some], mean[some], top[some]
                rest, error = two_sum(there, -base[:, None])
                found = self._mean(batch.take(some), rest, np.abs(error), side)
                mean[some] = np.clip(directed(base, found, side), base, top)
                faint = ((found != 0.0) & (np.abs(found) < VAGUE)) | exact[rows]
                faint = np.flatnonzero(faint & np.isfinite(top - base))[: FRACTIONS - decided]
                decided += len(faint)
                mean[some[faint]] = [
                    self._rounded(int(rows[i]), there[i], float(mean[some[i]]), side) for i in faint
                ]
                if discount != 1.0:
                    less = np.nextafter(discount * mean, side * np.inf)
                    mean = np.where(mean == 0.0, 0.0, less)
                q[batch.rows] = directed(self.reward[batch.rows], mean, side)
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

    def _mean(self, batch: Batch, values: FloatArray, error: FloatArray, side: int) -> FloatArray:
        """Return bounds (b,), on a side, of nature's best mean of values (b, K) >= 0."""
        if not len(values):
            return np.empty(0)
        flip = -self.nature  # values as nature, who then minimises, sees them
        block, place, axes, own = batch.block, batch.place, batch.axes, flip * values
        outer, inner = (own - error, own + error) if flip * side < 0 else (own + error, own - error)
        bound, other = (self.rows.below, self.rows.above)[:: 1 if flip * side < 0 else -1]
        found = bound(block, axes, outer)
        if len(block.free) > 1:
            gap = np.abs(found - other(block, axes, inner))
            few, room = math.prod(block.shape) <= FEW, 2.0**-46 * fold(np.maximum, values)
            loose = np.flatnonzero(gap > (0.0 if few else room))
            target = found + gap - room  # as near as anybody wants it
            better = np.fmax if flip * side < 0 else np.fmin
            taken = [a.take(loose) for a in axes]
            for turned in block.turned if len(loose) else ():
                found[loose] = better(found[loose], bound(turned, taken, outer[loose]))
            for some, ids in alike(block, place[loose]):
                pick = loose[some]
                taken = [a.take(pick) for a in axes]
                bounds = self.rows.products(ids, taken, outer[pick], target[pick])
                if bounds is not None:
                    found[pick] = better(found[pick], bounds[0 if flip * side < 0 else 1])
        found = flip * found
        if side > 0:  # what nature can avoid for sure has no weight at all
            tiny = (found > 0.0) & (found <= 2.0**-40 * fold(np.maximum, values))
            for i in np.flatnonzero(tiny & (self.nature < 0)):
                if self._certain(block.rows[place[i]], values[i] == 0.0, False):
                    found[i] = 0.0
        return found

    def _certain(self, row: int, allowed: BoolArray, unknown: bool) -> bool:
        try:
            return self.rows.can(int(row), allowed, np.ones(len(allowed), dtype=np.bool_))
        except Undecided:
            return unknown

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
        helps = self.nature == -side
        worth = np.where(np.isinf(bound), FAR, bound)

        def leads(row: int, inside: BoolArray) -> bool:
            part = slice(*self.model.successor_ptr[row : row + 2])
            successors = self.model.successors[part]
            state = self.row_state[row]
            there = worth[successors]
            gain, error = differences(there, bound[state], self.reward[row], 1.0)
            flat, into = (gain == 0.0) & (error == 0.0), inside[successors]
            everything = np.ones(len(flat), dtype=np.bool_)
            if helps:
                return self.rows.can(row, flat, into)
            if (-side * gain >= error).all():
                return not self.rows.can(row, flat & ~into, everything)
            exact = [-side * x for x in gains_exactly(there, bound[state], self.reward[row], 1.0)]
            shifted = [x + int(hit) for x, hit in zip(exact, into.tolist(), strict=True)]
            return self.rows.exact.minimum(self.rows.ids(row), shifted, ~everything) > 0

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
            new = np.unique(states[~inside[states]])
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
                part = slice(*self.model.successor_ptr[row : row + 2])
                at, into = outer[self.model.successors[part]], inside[self.model.successors[part]]
                if helps:
                    return self.rows.can(row, at, into)
                return not self.rows.can(row, ~into, np.ones(len(at), dtype=np.bool_))

            inner = self._attract(target, none, stays, leads, 1, rule, unknown=True)
            if np.array_equal(inner, outer):
                return outer
            outer = inner

    def recurrent(self, fire: BoolArray, rule: IntArray | None) -> BoolArray:
        """Return where those who maximise are paid for ever with positive probability, or less."""
        helps = self.nature > 0
        won = np.zeros(self.model.states, dtype=np.bool_)
        while True:
            outer = np.ones_like(won)
            while True:
                inner = self._recurrent_step(fire, won, outer, helps, rule)
                if np.array_equal(inner, outer):
                    break
                outer = inner
            if np.array_equal(outer, won):
                return won
            won = outer

    def _recurrent_step(
        self, fire: BoolArray, won: BoolArray, outer: BoolArray, helps: bool, rule: IntArray | None
    ) -> BoolArray:
        """Return the least set of states that lead into `won`, or stay and pay or lead on."""
        hits = self._hits(won, helps)
        stays = self._stays(outer, helps, False)
        everything = np.ones(self.model.rows, dtype=np.bool_)

        def leads(row: int, inside: BoolArray) -> bool:
            part = slice(*self.model.successor_ptr[row : row + 2])
            successors = self.model.successors[part]
            past, at, into = won[successors], outer[successors], inside[successors]
            full = np.ones(len(past), dtype=np.bool_)
            if helps:
                return self.rows.can(row, full, past) or self.rows.can(
                    row, at, full if fire[row] else into
                )
            if self.rows.can(row, ~past, ~at):
                return False
            return bool(fire[row]) or not self.rows.can(row, ~past & ~into, full)

        good = hits | (stays & fire)
        open_ = stays | (everything & ~self.rows.rigid)
        return self._attract(won, good, open_, leads, -1, rule)

    def _hits(self, states: BoolArray, helps: bool) -> BoolArray:
        """Return the rows that have some of the states, for some or for every nature, or fewer."""
        full = np.ones(self.model.rows, dtype=np.bool_)
        each = _Edges(self.rows, np.flatnonzero(full)).touch(states) & self.rows.rigid
        for row in np.flatnonzero(~self.rows.rigid):
            part = slice(*self.model.successor_ptr[row : row + 2])
            at = states[self.model.successors[part]]
            everything = np.ones(len(at), dtype=np.bool_)
            try:
                if helps:
                    each[row] = self.rows.can(int(row), everything, at)
                else:
                    each[row] = not self.rows.can(int(row), ~at, everything)
            except Undecided:
                each[row] = False
        return each

    def _stays(self, states: BoolArray, helps: bool, unknown: bool) -> BoolArray:
        """Return the rows that nature can, or must, keep within the states."""
        full = np.ones(self.model.rows, dtype=np.bool_)
        stays = ~_Edges(self.rows, np.flatnonzero(full)).touch(~states)
        for row in np.flatnonzero(~self.rows.rigid):
            part = slice(*self.model.successor_ptr[row : row + 2])
            at = states[self.model.successors[part]]
            everything = np.ones(len(at), dtype=np.bool_)
            try:
                if helps:
                    stays[row] = self.rows.can(int(row), at, everything)
                else:
                    stays[row] = not self.rows.can(int(row), everything, ~at)
            except Undecided:
                stays[row] = unknown
        return stays


class _Edges:
    """Rows and the successors that they can have, to be followed backwards."""

    def __init__(self, rows: Rows, chosen: IntArray) -> None:
        model = rows.model
        self.count = model.rows
        ptr = starts(np.diff(model.successor_ptr)[chosen])
        at = entries(model.successor_ptr, chosen)
        held = rows.possible(chosen)
        self.row = chosen[owners(ptr)][held]
        self.state = model.successors[at][held]
        self._ptr: IntArray | None = None
        self._states = model.states

    def touch(self, states: BoolArray) -> BoolArray:
        """Return the rows (R,) with an edge to some of the states."""
        found = np.zeros(self.count, dtype=np.bool_)
        found[self.row[states[self.state]]] = True
        return found

    def into(self, states: IntArray) -> IntArray:
        """Return the rows that lead to some of the states, each once."""
        if self._ptr is None:
            order = np.argsort(self.state, kind="stable")
            self.row, self.state = self.row[order], self.state[order]
            self._ptr = starts(np.bincount(self.state, minlength=self._states))
        return np.unique(self.row[entries(self._ptr, states)])
