"""What a bound gains in rows: signs proven by floats rounded outwards, else exactly.

A bound b is looked at from its own side: its *gain* in a row is -side * (T(b) - b), and nature
helps (side and direction differ) or opposes. Signs of gains are proven by floats rounded outwards,
else by which successors are possible, else in fractions.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.verification.exact import Undecided
from rfmdp.verification.rows import Batch, Block, alike, differences

if TYPE_CHECKING:
    from rfmdp.verification.game import Game

GAIN, HOLD, FAIL, UNKNOWN = 1, 0, -1, -2  # what is proven of the gain of a row
FAR = 2.0**900  # stands for an infinite lower bound, which is more


class Step:
    """Some rows of a block, and what a bound gains in them."""

    def __init__(
        self, game: Game, batch: Batch, bound: FloatArray, side: int, discount: float
    ) -> None:
        self.game, self.block, self.place, self.side = game, batch.block, batch.place, side
        self.rows, self.axes, self.discount = batch.rows, batch.axes, discount
        self.here, there = bound[game.row_state[self.rows]], bound[batch.successors]
        self.bad = np.isinf(there)
        self.far = self.bad & (side < 0)  # proven to be infinite, which is more than any number
        if side < 0:
            self.bad = self.far & False
            there = np.where(self.far, FAR, there)
        self.there = np.where(self.bad, 0.0, there)
        gain, self.error = differences(
            self.there, self.here[:, None], game.reward[self.rows][:, None], discount
        )
        self.gain = -side * np.where(self.bad, 0.0, gain)
        self.error = np.where(self.bad, 0.0, self.error)
        self.helps = game.nature == -side

    def signs(self) -> AnyArray:
        """Return what floats prove of every row."""
        found = np.full(len(self.rows), UNKNOWN, dtype=np.int8)
        found[(self.gain >= self.error).all(axis=1)] = HOLD  # nothing is lost wherever it goes
        found[(self.gain > self.error).all(axis=1)] = GAIN
        self._enter(found, np.arange(len(found)), self.block)
        doubt = np.flatnonzero(found == UNKNOWN)
        if len(doubt):
            self._other_side(found, doubt)
        for block in self.block.turned:
            self._enter(found, np.flatnonzero(found == UNKNOWN), block)
        if len(self.block.free) > 1:
            self._by_products(found)
        if self.bad.any():
            self._spoil(found)
        if self.far.any():
            self._lift(found)
        return found

    def _enter(self, found: AnyArray, some: IntArray, block: Block) -> None:
        """Enter what contracting the sets of some rows one by one proves, in place."""
        if not len(some):
            return
        rows, axes = self.game.rows, [a.take(some) for a in self.axes]
        if len(some) == len(found):
            axes = self.axes
        gain, error = self.gain[some], self.error[some]
        if self.helps:
            best = -rows.above(block, axes, error - gain)
        else:
            best = rows.below(block, axes, gain - error)
        found[some[(best >= 0.0) & (found[some] != GAIN)]] = HOLD
        found[some[best > 0.0]] = GAIN

    def _other_side(self, found: AnyArray, doubt: IntArray) -> None:
        """Enter where a loss is proven, in place."""
        rows, axes = self.game.rows, [a.take(doubt) for a in self.axes]
        gain, error = self.gain[doubt], self.error[doubt]
        if self.helps:
            lost = rows.below(self.block, axes, -gain - error) > 0.0
        else:
            lost = rows.above(self.block, axes, gain + error) < 0.0
        found[doubt[lost]] = FAIL

    def _by_products(self, found: AnyArray) -> None:
        """Decide doubts by products of vertices, in place; also whether what holds gains."""
        doubt = np.flatnonzero(found == UNKNOWN)
        for some, ids in alike(self.block, self.place[doubt]):
            pick = doubt[some]
            axes = [a.take(pick) for a in self.axes]
            gain, error = self.gain[pick], self.error[pick]
            own = error - gain if self.helps else gain - error
            bounds = self.game.rows.products(ids, axes, own, 2.0**-50 * np.abs(own).max(axis=1))
            if bounds is None:
                continue
            low, high = bounds
            best = -high if self.helps else low
            found[pick[best >= 0.0]] = HOLD
            found[pick[best > 0.0]] = GAIN

    def _spoil(self, found: AnyArray) -> None:
        """Take back what is said of rows that may lead to an infinite bound, in place."""
        for i in np.flatnonzero(self.bad.any(axis=1)):
            row, bad = int(self.rows[i]), self.bad[i]
            full = np.ones(len(bad), dtype=np.bool_)
            try:
                reached = self.game.rows.can(row, full, bad)
                if self.helps and reached:
                    avoidable = self.game.rows.can(row, ~bad, full)
                    found[i] = UNKNOWN if avoidable else FAIL
                elif reached:
                    found[i] = FAIL
            except Undecided:
                found[i] = UNKNOWN

    def _lift(self, found: AnyArray) -> None:
        """Enter the rows that lead to infinite values, however rarely, in place.

        `FAR` may not be far enough for them. An opposing nature avoids such values if it can.
        """
        for i in np.flatnonzero(self.far.any(axis=1) & (found != GAIN)):
            row, far = int(self.rows[i]), self.far[i]
            full = np.ones(len(far), dtype=np.bool_)
            try:
                if (self.helps and self.game.rows.can(row, full, far)) or (
                    not self.helps and not self.game.rows.can(row, ~far, full)
                ):
                    found[i] = GAIN
                elif not self.helps and found[i] == FAIL:
                    found[i] = UNKNOWN  # that may be a loss with FAR only
            except Undecided:
                found[i] = UNKNOWN if found[i] == FAIL else found[i]

    def faint(self, found: AnyArray) -> BoolArray:
        """Return the rows that hold, and may gain what floats cannot tell from nothing.

        Not where an opposing nature has a choice: it mostly has one that gains nothing.
        """
        somewhere: BoolArray = (found == HOLD) & (self.gain > 0.0).any(axis=1)
        return somewhere & (self.helps or not len(self.block.free))

    def decide(self, i: int) -> int:
        """Return the sign of one row by what is possible, or in fractions."""
        if not np.isfinite(self.here[i]):
            return FAIL  # infinite the wrong way
        row, gain, exact = int(self.rows[i]), self.gain[i], self.error[i] == 0.0
        bad, can = self.bad[i], self.game.rows.can
        full = np.ones(len(gain), dtype=np.bool_)
        known = exact | (np.abs(gain) > self.error[i])
        try:
            if known.all() and (gain <= 0.0).all():
                if self.helps:
                    return HOLD if can(row, (gain == 0.0) & ~bad, full) else FAIL
                return FAIL if can(row, full, (gain < 0.0) | bad) else HOLD
            values = gains_exactly(
                self.there[i], self.here[i], self.game.reward[row], self.discount
            )
            towards = self.side if self.helps else -self.side
            ids = self.game.rows.ids(row)
            avoided = bad | (self.far[i] & (not self.helps))
            least = self.game.rows.exact.minimum(ids, [towards * x for x in values], avoided)
            best = -least if self.helps else least
            return GAIN if best > 0 else HOLD if best == 0 else FAIL
        except Undecided:
            return UNKNOWN


def gains_exactly(there: FloatArray, here: float, reward: float, discount: float) -> list[Fraction]:
    """Return reward + discount * there - here, exactly."""
    least, rate = Fraction(float(reward)) - Fraction(float(here)), Fraction(discount)
    return [least + rate * Fraction(x) for x in there.tolist()]
