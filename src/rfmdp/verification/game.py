"""The game behind a claim: what rows are worth, and what a bound gains in them.

A bound b is looked at from its own side: its *gain* in a row is -side * (T(b) - b), and nature
helps (side and direction differ) or opposes. Signs of gains are proven by floats rounded outwards,
else by which successors are possible, else in fractions.
"""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction

import numpy as np

from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.verification.exact import Numbers, Undecided
from rfmdp.verification.margins import UNIT, VAGUE, differences, directed
from rfmdp.verification.products import Batch
from rfmdp.verification.reading import Model
from rfmdp.verification.rows import Rows

GAIN, HOLD, FAIL, UNKNOWN = 1, 0, -1, -2  # what is proven of the gain of a row
FRACTIONS = 20_000  # rows of one check that are decided one by one
FAR = 2.0**980  # a gain that stands for an infinite one: more than others that floats handle
FEW = 64  # outcomes of a row whose products of vertices are tried wherever there is a doubt


class Game:
    """A model, who pulls which way (+1 maximises), and what rows pay.

    A row pays `reward` and `rest`, which is less than a unit in the last place of `reward`.
    """

    def __init__(
        self, model: Model, agent: int, nature: int, paid: tuple[FloatArray, FloatArray] | None
    ) -> None:
        self.model, self.agent, self.nature = model, agent, nature
        self.rows = Rows(model)
        nothing = np.zeros(model.rows)
        self.reward, self.rest = (nothing, nothing) if paid is None else paid

    def open_rows(self, settled: BoolArray, rule: IntArray | None) -> BoolArray:
        """Return the rows (R,) that count: of states that are not settled, those of a rule."""
        rows = ~settled[self.rows.state]
        if rule is None:
            return rows
        taken = np.zeros(self.model.rows, dtype=np.bool_)
        taken[rule] = True
        return rows & taken

    def pick(self, q: AnyArray, rule: IntArray | None) -> AnyArray:
        """Return the agent's row of every state: that of a rule, or the best."""
        if rule is not None:
            return q[rule]
        reduce = np.maximum if self.agent > 0 else np.minimum
        return reduce.reduceat(q, self.model.row_ptr[:-1])

    def enough(self, good: BoolArray, side: int, rule: IntArray | None) -> BoolArray:
        """Return the states where good rows are enough: a helping agent needs one, else all."""
        if rule is not None:
            return good[rule]
        reduce = np.logical_or if self.agent == -side else np.logical_and
        states: BoolArray = reduce.reduceat(good, self.model.row_ptr[:-1])
        return states

    def backup(
        self, value: FloatArray, side: int, discount: float, rows: BoolArray, exact: BoolArray
    ) -> FloatArray:
        """Return (R,) bounds, on a side, of what the rows asked for are worth.

        The means of rows that are wanted exact are counted in fractions and rounded once.
        """
        q = np.full(self.model.rows, side * np.inf)
        decided = 0
        with np.errstate(all="ignore"):
            for batch in self.rows.batches(rows):
                there = value[batch.successors]
                if batch.possible is not None:  # what cannot happen has no value
                    least = np.where(batch.possible, there, np.inf).min(axis=1)
                    there = np.where(batch.possible, there, least[:, None])
                mean, top = there.min(axis=1), there.max(axis=1)
                some = np.flatnonzero(mean < top)
                uneven = batch.take(some)
                there, base, top = there[some], mean[some], top[some]
                drift = self._mean(uneven, there - base[:, None], side)
                mean[some] = np.clip(directed(base, drift, side), base, top)
                faint = ((drift != 0.0) & (np.abs(drift) < VAGUE)) | exact[uneven.rows]
                faint = np.flatnonzero(faint & np.isfinite(top - base))[: FRACTIONS - decided]
                decided += len(faint)
                for i in faint:
                    bound = float(mean[some[i]])
                    mean[some[i]] = self._rounded(int(uneven.rows[i]), there[i], bound, side)
                if discount != 1.0:
                    less = np.nextafter(discount * mean, side * np.inf)
                    mean = np.where(mean == 0.0, 0.0, less)
                paid = directed(self.reward[batch.rows], self.rest[batch.rows], side)
                q[batch.rows] = directed(paid, mean, side)
        return q

    def _mean(self, batch: Batch, values: FloatArray, side: int) -> FloatArray:
        """Return bounds (b,), on a side, of nature's best mean of values (b, K) >= 0.

        The values are rounded once; twice that much is paid.
        """
        flip = -self.nature  # values as nature, who then minimises, sees them
        towards = flip * side
        outer = flip * (1.0 + 2.0 * UNIT * side) * values
        mean = batch.bound(outer, towards)
        if len(batch.orders) > 1 and len(mean):
            other = batch.bound(flip * (1.0 - 2.0 * UNIT * side) * values, -towards)
            room = 2.0**-46 * values.max(axis=1)  # as near as anybody wants it
            aim_ = 0.0 if values.shape[1] <= FEW else room
            loose = np.flatnonzero(np.abs(mean - other) > aim_)
            cut = mean.copy() if towards > 0 else other - room
            aim = other + towards * aim_
            batch.refine(loose, outer, mean, towards, aim, cut)
        mean = flip * mean
        if side > 0 > self.nature:  # what nature can avoid for sure has no weight at all
            tiny = (mean > 0.0) & (mean <= 2.0**-40 * values.max(axis=1))
            for i in np.flatnonzero(tiny):
                with suppress(Undecided):
                    if self.rows.can(int(batch.rows[i]), values[i] == 0.0, None):
                        mean[i] = 0.0
        return mean

    def _rounded(self, row: int, values: FloatArray, bound: float, side: int) -> float:
        """Return nature's best mean of values (K,) in fractions, rounded to a side, or `bound`."""
        try:
            values_ = [(-self.nature * Fraction(x),) for x in values.tolist()]
            mean = -self.nature * self.rows.exact.minimum(self.rows.ids(row), values_)[0]
        except Undecided:
            return bound
        number = float(mean)
        return number if side * (number - mean) >= 0 else float(np.nextafter(number, side * np.inf))


def signs_of(
    game: Game, bound: FloatArray, side: int, discount: float, rows: BoolArray
) -> AnyArray:
    """Return what is proven of the gain of every row asked for; `UNKNOWN` of the others."""
    result = np.full(game.model.rows, UNKNOWN, dtype=np.int8)
    if not rows.any():
        return result
    doubtful = 0
    with np.errstate(all="ignore"):
        for batch in game.rows.batches(rows):
            gains = _Gains(game, batch, bound, side, discount)
            result[batch.rows] = signs = gains.signs()
            doubts = np.flatnonzero((signs == UNKNOWN) | gains.faint(signs))
            doubts = doubts[: FRACTIONS - doubtful]
            doubtful += len(doubts)
            decided = [gains.decide(int(i)) for i in doubts]
            result[batch.rows[doubts]] = np.maximum(signs[doubts], decided)
    return result


class _Gains:
    """What a bound gains in some rows."""

    def __init__(
        self, game: Game, batch: Batch, bound: FloatArray, side: int, discount: float
    ) -> None:
        self.rows, self.batch = game.rows, batch
        self.paid = game.reward[batch.rows], game.rest[batch.rows]
        self.side, self.discount, self.helps = side, discount, game.nature == -side
        self.here, self.there = bound[game.rows.state[batch.rows]], bound[batch.successors]
        gain, self.error = differences(
            self.there, self.here[:, None], self.paid[0][:, None], self.paid[1][:, None], discount
        )
        self.gain = -side * gain

    def signs(self) -> AnyArray:
        """Return what floats prove of every row."""
        side = 1 if self.helps else -1
        batch = self.batch
        infinite = np.isinf(self.there)
        # infinite lower bounds are proven to be so; upper ones say nothing: see `_beyond`
        gain = np.where(infinite, FAR if self.side < 0 else 0.0, self.gain)
        values = -side * (gain - self.error)  # nature takes their least mean
        least = -side * (gain - self.error).min(axis=1)  # wherever it goes
        doubt = np.flatnonzero(~(side * least < 0.0))
        bounds = batch.take(doubt).bound(values[doubt], side)
        least[doubt] = (np.fmin if self.helps else np.fmax)(least[doubt], bounds)
        doubt = np.flatnonzero(~(side * least <= 0.0))
        other = -side * (gain[doubt] + self.error[doubt])
        lost = side * batch.take(doubt).bound(other, -side) > 0.0
        if len(batch.orders) > 1:
            aim = np.zeros(len(least))
            cut = 2.0**-50 * np.abs(values).max(axis=1)
            batch.refine(doubt[~lost], values, least, side, aim, cut)
        signs = np.full(len(least), UNKNOWN, dtype=np.int8)
        signs[side * least <= 0.0] = HOLD
        signs[side * least < 0.0] = GAIN
        signs[doubt[lost]] = FAIL
        for i in np.flatnonzero(infinite.any(axis=1)):
            try:
                signs[i] = self._beyond(int(batch.rows[i]), infinite[i], int(signs[i]))
            except Undecided:
                signs[i] = UNKNOWN if self.side > 0 or signs[i] == FAIL else signs[i]
        return signs

    def _beyond(self, row: int, infinite: BoolArray, sign: int) -> int:
        """Return the sign of a row that leads to infinite bounds, however rarely.

        That is a gain of lower bounds and a failure of upper ones. What stood for them was finite:
        it shows no more than gains of lower bounds.
        """
        goes = self.helps == (self.side < 0)  # nature goes there if it can, or if it must
        if self.rows.can(row, None, infinite) if goes else not self.rows.can(row, ~infinite, None):
            return GAIN if self.side < 0 else FAIL
        if goes or not self.rows.can(row, None, infinite):
            return sign
        return UNKNOWN if self.side > 0 or sign == FAIL else sign

    def faint(self, signs: AnyArray) -> BoolArray:
        """Return the rows that hold, and may gain what floats cannot tell from nothing.

        Not where an opposing nature has a choice: it mostly has one that gains nothing.
        """
        if not self.helps and self.batch.orders[0]:
            return np.zeros(len(signs), dtype=np.bool_)
        return np.asarray((signs == HOLD) & (self.gain.max(axis=1) > 0.0))

    def decide(self, i: int) -> int:
        """Return the sign of one row by what is possible, or in fractions."""
        if not np.isfinite(self.here[i]):
            return FAIL  # infinite the wrong way
        row = int(self.batch.rows[i])
        gain, error = self.gain[i], self.error[i]
        sharp = (error == 0.0) | (np.abs(gain) > error)
        try:
            if sharp.all() and (gain <= 0.0).all():
                if self.helps:
                    return HOLD if self.rows.can(row, gain == 0.0, None) else FAIL
                return FAIL if self.rows.can(row, None, gain < 0.0) else HOLD
            paid = self.paid[0][i], self.paid[1][i]
            gains = gains_exactly(self.there[i], self.here[i], paid, self.discount, self.side)
            return best_exactly(self.rows, row, gains, self.helps)
        except Undecided:
            return UNKNOWN


def gains_exactly(
    there: FloatArray, here: float, paid: tuple[float, float], discount: float, side: int
) -> list[Numbers]:
    """Return -side * (both paid + discount * there - here): times infinity, and what is left."""
    least = sum(Fraction(float(each)) for each in paid) - Fraction(float(here))
    rate = Fraction(discount)
    zero = Fraction(0)
    return [
        (zero, -side * (least + rate * Fraction(x)))
        if math.isfinite(x)
        else (Fraction(-side if x > 0.0 else side), zero)
        for x in there.tolist()
    ]


def best_exactly(rows: Rows, row: int, gains: list[Numbers], helps: bool) -> int:
    """Return the sign of the gain that nature, which helps or not, makes of some (K,) in a row."""
    sign = -1 if helps else 1
    minimum = rows.exact.minimum(rows.ids(row), [tuple(sign * x for x in gain) for gain in gains])
    best = next((sign * x for x in minimum if x), Fraction(0))
    return GAIN if best > 0 else FAIL if best < 0 else HOLD
