"""The game behind a claim: what rows are worth, and what a bound gains in them.

A bound b is looked at from its own side: its *gain* in a row is -side * (T(b) - b), and nature
helps (side and direction differ) or opposes. Signs of gains are proven by floats rounded outwards,
else by which successors are possible, else in fractions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction

import numpy as np

from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.verification.exact import Numbers, Undecided
from rfmdp.verification.margins import UNIT, directed, scaled
from rfmdp.verification.products import Batch
from rfmdp.verification.reading import Model
from rfmdp.verification.rows import Rows

GAIN, HOLD, FAIL, UNKNOWN = 1, 0, -1, -2  # what is proven of the gain of a row
FRACTIONS = 20_000  # rows of one check that are decided one by one
FAR = 2.0**980  # stands for an infinite lower bound: more than others that floats handle


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
        self.allowed: BoolArray = np.ones(model.rows, dtype=np.bool_)  # what the agent may take

    def allow(self, rule: IntArray | None) -> None:
        """Let the agent take the rows of a rule only, or all."""
        self.allowed[:] = rule is None
        if rule is not None:
            self.allowed[rule] = True

    def open_rows(self, settled: BoolArray) -> BoolArray:
        """Return the rows (R,) that the agent may take in states that are not settled."""
        return self.allowed & ~settled[self.rows.state]

    def enough(self, good: BoolArray, helps: bool, there: BoolArray) -> BoolArray:
        """Return the states (S,) with good rows among those that are there: all, or one if enough.

        A helping agent takes a good one; one that opposes must not have any other.
        """
        some = np.logical_or.reduceat(good & there, self.model.row_ptr[:-1])
        bad = np.logical_or.reduceat(there & ~good, self.model.row_ptr[:-1])
        return np.asarray(some if helps else some & ~bad)

    def backup(
        self, value: FloatArray, side: int, discount: float, rows: BoolArray, exact: bool
    ) -> FloatArray:
        """Return bounds (S,), on a side, of what the agent's best of the rows asked for is worth.

        If `exact`, means are counted in fractions and rounded once.
        """
        q = np.full(self.model.rows, -self.agent * np.inf)
        with np.errstate(all="ignore"):
            for batch in self.rows.batches(rows):
                there = _possible(batch, value)
                base = there.min(axis=1)
                wide, mean = self._mean(batch, there - base[:, None], side)
                if len(batch.free) > 1:
                    room = 2.0**-46 * np.abs(wide).max(axis=1)  # as near as anybody wants it
                    towards = -self.nature * side
                    other = -self.nature * self._mean(batch, there - base[:, None], -side)[1]
                    cut = mean.copy() if towards > 0 else other - room
                    some = np.arange(len(mean))
                    batch.refine(some, wide, mean, towards, other + towards * room, cut)
                avoided = (mean > 0.0) & (mean <= 2.0**-40 * np.abs(wide).max(axis=1)) & (side > 0)
                mean = directed(base, -self.nature * mean, side)
                mean = np.clip(mean, base, there.max(axis=1))
                for i in np.flatnonzero(avoided | exact)[:FRACTIONS]:
                    mean[i] = self._rounded(int(batch.rows[i]), there[i], float(mean[i]), side)
                paid = directed(self.reward[batch.rows], self.rest[batch.rows], side)
                q[batch.rows] = directed(paid, scaled(discount, mean, side), side)
        best = np.maximum if self.agent > 0 else np.minimum
        return best.reduceat(q, self.model.row_ptr[:-1])

    def _mean(self, batch: Batch, values: FloatArray, side: int) -> tuple[FloatArray, FloatArray]:
        """Return values as a nature who minimises sees them, and bounds of their least mean.

        The values are rounded once; twice that much is paid, towards the side.
        """
        wide = -self.nature * (values + 2.0 * UNIT * side * np.abs(values))
        return wide, batch.bound(wide, -self.nature * side)

    def _rounded(self, row: int, values: FloatArray, bound: float, side: int) -> float:
        """Return nature's best mean of values (K,) in fractions, rounded to a side, or `bound`."""
        with suppress(Undecided, OverflowError, ValueError):
            best = float((self.nature * values).max() * self.nature)
            if self.rows.can(row, values == best, None):
                return best
            numbers = [(-self.nature * Fraction(x),) for x in values.tolist()]
            mean = -self.nature * self.rows.exact.minimum(self.rows.ids(row), numbers)[0]
            number = float(mean)
            fits = side * Fraction(number) >= side * mean
            return number if fits else math.nextafter(number, side * math.inf)
        return bound

    def signs(self, bound: FloatArray, side: int, discount: float, rows: BoolArray) -> AnyArray:
        """Return what is proven of the gain of every row asked for; `UNKNOWN` of the others."""
        result = np.full(self.model.rows, UNKNOWN, dtype=np.int8)
        left = FRACTIONS
        with np.errstate(all="ignore"):
            for batch in self.rows.batches(rows):
                result[batch.rows], faint = self._by_floats(batch, bound, side, discount)
                doubts = batch.rows[(result[batch.rows] == UNKNOWN) | faint][:left]
                left -= len(doubts)
                for row in doubts.tolist():
                    gains = self.gains(row, bound, side, discount)
                    with suppress(Undecided):
                        result[row] = max(result[row], self.decide(row, gains, side))
        return result

    def _by_floats(
        self, batch: Batch, bound: FloatArray, side: int, discount: float
    ) -> tuple[AnyArray, BoolArray]:
        """Return signs (b,), and which may be gains that floats cannot tell from nothing."""
        rows, there = batch.rows, _possible(batch, bound)
        here = bound[self.rows.state[rows]]
        infinite = np.isposinf(there)
        near = np.where(infinite & (side < 0), FAR, there) - here[:, None]

        def rest(side: int) -> FloatArray:
            """Return what a row pays, less what the bound here loses by discounting."""
            paid = directed(self.reward[rows], self.rest[rows], side)
            lost = directed(scaled(discount, here, side), -here, side)
            return directed(paid, lost, side)

        def excess(mean: FloatArray, rest: FloatArray, side: int) -> FloatArray:
            return directed(rest, scaled(discount, -self.nature * mean, side), side)

        wide, mean = self._mean(batch, near, side)
        beyond = rest(side)
        doubt = np.flatnonzero(~(side * excess(mean, beyond, side) <= 0.0))
        other = self._mean(batch.take(doubt), near[doubt], -side)[1]
        fails = side * excess(other, rest(-side)[doubt], -side) > 0.0
        fails &= ~infinite[doubt].any(axis=1)
        aim = self.nature * beyond / discount
        cut = aim + 2.0**-50 * np.abs(wide).max(axis=1)
        batch.refine(doubt[~fails], wide, mean, -self.nature * side, aim, cut)
        beyond = side * excess(mean, beyond, side)
        signs = np.full(len(rows), UNKNOWN, dtype=np.int8)
        signs[beyond <= 0.0] = HOLD
        signs[beyond < 0.0] = GAIN
        signs[doubt[fails]] = FAIL
        signs[~np.isfinite(here)] = FAIL
        # where an opposing nature has a choice, it mostly has one that gains nothing
        able = self.nature == -side or not batch.free
        return signs, (signs == HOLD) & able & (near != 0.0).any(axis=1)

    def gains(self, row: int, bound: FloatArray, side: int, discount: float) -> list[Numbers]:
        """Return the gain of each successor: how many times infinity, and what is left of it."""
        here, rate = Fraction(float(bound[self.rows.state[row]])), Fraction(discount)
        paid = Fraction(float(self.reward[row])) + Fraction(float(self.rest[row])) - here
        return [
            (Fraction(0), -side * (paid + rate * Fraction(x)))
            if math.isfinite(x)
            else (Fraction(-side if x > 0.0 else side), Fraction(0))
            for x in bound[self.rows.successors(row)].tolist()
        ]

    def decide(self, row: int, gains: Sequence[Numbers], side: int) -> int:
        """Return the sign of the gain that nature makes of those of all successors.

        By which successors are possible, if that tells, else by fractions.
        """
        can, helps = self.rows.can, self.nature == -side
        signs = np.array([next((1 if x > 0 else -1 for x in gain if x), 0) for gain in gains])
        if helps and can(row, signs >= 0, signs > 0):
            return GAIN
        if not helps and not can(row, None, signs < 0):
            return HOLD if can(row, signs == 0, None) else GAIN
        if not (signs > 0).any():
            return HOLD if helps and can(row, signs == 0, None) else FAIL
        turn = -1 if helps else 1
        numbers = [tuple(turn * x for x in gain) for gain in gains]
        least = self.rows.exact.minimum(self.rows.ids(row), numbers)
        best = next((turn * x for x in least if x), Fraction(0))
        return GAIN if best > 0 else FAIL if best < 0 else HOLD


def _possible(batch: Batch, values: FloatArray) -> FloatArray:
    """Return values (b, K) of successors; what cannot happen has the least of the others."""
    there = values[batch.successors]
    if batch.possible is None or batch.possible.all():
        return there
    least = np.where(batch.possible, there, np.inf).min(axis=1)
    return np.where(batch.possible, there, least[:, None])
