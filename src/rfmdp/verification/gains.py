"""What a bound gains in rows: signs proven by floats rounded outwards, else exactly.

A bound b is looked at from its own side: its *gain* in a row is -side * (T(b) - b), and nature
helps (side and direction differ) or opposes. Signs of gains are proven by floats rounded outwards,
else by which successors are possible, else in fractions.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from rfmdp.types import AnyArray, BoolArray, FloatArray
from rfmdp.verification.batches import Batch
from rfmdp.verification.exact import Undecided
from rfmdp.verification.game import FRACTIONS, Game
from rfmdp.verification.margins import differences, fold

GAIN, HOLD, FAIL, UNKNOWN = 1, 0, -1, -2  # what is proven of the gain of a row
FAR = 2.0**900  # stands for an infinite lower bound, which is more


def signs_of(
    game: Game, bound: FloatArray, side: int, discount: float, asked: BoolArray
) -> AnyArray:
    """Return what is proven of the gain of every row asked for; `UNKNOWN` of the others."""
    found = np.full(game.model.rows, UNKNOWN, dtype=np.int8)
    if not asked.any():
        return found
    level = asked & _level(game, bound, discount)
    found[level] = HOLD
    doubtful = 0
    with np.errstate(all="ignore"):
        for batch in game.rows.batches(asked & ~level):
            step = _Step(game, batch, bound, side, discount)
            found[batch.rows] = signs = step.signs()
            doubts = np.flatnonzero((signs == UNKNOWN) | step.faint(signs))
            doubts = doubts[: FRACTIONS - doubtful]
            doubtful += len(doubts)
            decided = [step.decide(int(i)) for i in doubts]
            found[batch.rows[doubts]] = np.maximum(signs[doubts], decided)
    return found


def _level(game: Game, bound: FloatArray, discount: float) -> BoolArray:
    """Return the rows (R,) that pay nothing and lead to what their states are worth only."""
    free = game.reward == 0.0
    if discount != 1.0 or not free.any():
        return np.zeros(game.model.rows, dtype=np.bool_)
    if bound.min() == bound.max():
        return np.asarray(free & np.isfinite(bound[0]))
    here, ptr = bound[game.rows.state], game.model.successor_ptr
    same = bound[game.model.successors] == np.repeat(here, np.diff(ptr))
    return np.asarray(free & np.isfinite(here) & np.logical_and.reduceat(same, ptr[:-1]))


class _Step:
    """Some rows, and what a bound gains in them."""

    def __init__(
        self, game: Game, batch: Batch, bound: FloatArray, side: int, discount: float
    ) -> None:
        self.rows, self.reward, self.batch = game.rows, game.reward[batch.rows], batch
        self.side, self.discount, self.helps = side, discount, game.nature == -side
        self.here, there = bound[game.rows.state[batch.rows]], bound[batch.successors]
        infinite = np.isinf(there)
        self.infinite = infinite if infinite.any() else None
        # a lower bound that is infinite is proven to be so; an upper one says nothing
        self.there = there if self.infinite is None else np.where(infinite, FAR * (side < 0), there)
        gain, error = differences(self.there, self.here[:, None], self.reward[:, None], discount)
        if self.infinite is not None and side > 0:
            gain, error = np.where(infinite, 0.0, gain), np.where(infinite, 0.0, error)
        self.gain, self.error = -side * gain, error

    def signs(self) -> AnyArray:
        """Return what floats prove of every row."""
        side, batch = 1 if self.helps else -1, self.batch
        values = -side * (self.gain - self.error)  # nature takes their least mean
        least = -side * fold(np.minimum, self.gain - self.error)  # wherever it goes
        doubt = np.flatnonzero(~(side * least < 0.0))
        found = batch.take(doubt).bound(values[doubt], side)
        least[doubt] = (np.fmin if self.helps else np.fmax)(least[doubt], found)
        doubt = np.flatnonzero(~(side * least <= 0.0))
        other = -side * (self.gain[doubt] + self.error[doubt])
        lost = side * batch.take(doubt).bound(other, -side) > 0.0
        if len(batch.orders) > 1:
            aim, cut = np.zeros(len(least)), 2.0**-50 * np.abs(values).max(axis=1)
            self.rows.products.refine(batch, doubt[~lost], values, least, side, aim, cut)
        signs = np.full(len(least), UNKNOWN, dtype=np.int8)
        signs[side * least <= 0.0] = HOLD
        signs[side * least < 0.0] = GAIN
        signs[doubt[lost]] = FAIL
        if self.infinite is not None:
            decide = self._beyond if self.side < 0 else self._vague
            for i in np.flatnonzero(self.infinite.any(axis=1)):
                try:
                    signs[i] = decide(int(batch.rows[i]), self.infinite[i], int(signs[i]))
                except Undecided:
                    signs[i] = UNKNOWN if self.side > 0 or signs[i] == FAIL else signs[i]
        return signs

    def _vague(self, row: int, vague: BoolArray, sign: int) -> int:
        """Return the sign of a row that may lead to an infinite upper bound."""
        if not self.rows.can(row, None, vague):
            return sign
        return UNKNOWN if self.helps and self.rows.can(row, ~vague, None) else FAIL

    def _beyond(self, row: int, far: BoolArray, sign: int) -> int:
        """Return the sign of a row that leads to infinite values, however rarely.

        `FAR` may not be far enough for them. An opposing nature avoids such values if it can.
        """
        if sign == GAIN:
            return GAIN
        if self.helps:
            return GAIN if self.rows.can(row, None, far) else sign
        if not self.rows.can(row, ~far, None):
            return GAIN
        return UNKNOWN if sign == FAIL else sign  # that may be a loss with FAR only

    def faint(self, found: AnyArray) -> BoolArray:
        """Return the rows that hold, and may gain what floats cannot tell from nothing.

        Not where an opposing nature has a choice: it mostly has one that gains nothing.
        """
        if not self.helps and self.batch.orders[0]:
            return np.zeros(len(found), dtype=np.bool_)
        return np.asarray((found == HOLD) & (fold(np.maximum, self.gain) > 0.0))

    def decide(self, i: int) -> int:
        """Return the sign of one row by what is possible, or in fractions."""
        if not np.isfinite(self.here[i]):
            return FAIL  # infinite the wrong way
        row, gain, error = int(self.batch.rows[i]), self.gain[i], self.error[i]
        bad = np.zeros(len(gain), dtype=np.bool_) if self.infinite is None else self.infinite[i]
        vague = bad & (self.side > 0)
        known = (error == 0.0) | (np.abs(gain) > error)
        try:
            if known.all() and (gain <= 0.0).all():
                if self.helps:
                    return HOLD if self.rows.can(row, (gain == 0.0) & ~vague, None) else FAIL
                return FAIL if self.rows.can(row, None, (gain < 0.0) | vague) else HOLD
            values = gains_exactly(self.there[i], self.here[i], self.reward[i], self.discount)
            towards = self.side if self.helps else -self.side
            least = self.rows.exact.minimum(
                self.rows.ids(row), [towards * x for x in values], vague if self.helps else bad
            )
            best = -least if self.helps else least
            return GAIN if best > 0 else HOLD if best == 0 else FAIL
        except Undecided:
            return UNKNOWN


def gains_exactly(there: FloatArray, here: float, reward: float, discount: float) -> list[Fraction]:
    """Return reward + discount * there - here, exactly."""
    least, rate = Fraction(float(reward)) - Fraction(float(here)), Fraction(discount)
    return [least + rate * Fraction(x) for x in there.tolist()]
