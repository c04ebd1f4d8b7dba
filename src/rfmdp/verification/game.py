"""The game behind a claim: who pulls which way, what rows pay, and what they are worth."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import numpy as np

from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.verification.batches import Batch
from rfmdp.verification.exact import Undecided
from rfmdp.verification.margins import UNIT, VAGUE, directed, fold
from rfmdp.verification.reading import Model
from rfmdp.verification.rows import Rows

FRACTIONS = 20_000  # rows of one check that are decided one by one
FEW = 64  # outcomes of a row whose products of vertices are tried wherever there is a doubt


class Game:
    """A model, who pulls which way (+1 maximises), and what rows pay."""

    def __init__(self, model: Model, agent: int, nature: int, reward: FloatArray | None) -> None:
        self.model, self.agent, self.nature = model, agent, nature
        self.rows = Rows(model)
        self.reward = np.zeros(model.rows) if reward is None else reward

    def asked(self, settled: BoolArray, rule: IntArray | None) -> BoolArray:
        """Return the rows (R,) that count: of states that are not settled, those of a rule."""
        asked = ~settled[self.rows.state]
        if rule is None:
            return asked
        taken = np.zeros(self.model.rows, dtype=np.bool_)
        taken[rule] = True
        return asked & taken

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
                part, there, base, top = batch.take(some), there[some], mean[some], top[some]
                found = self._mean(part, there - base[:, None], side)
                mean[some] = np.clip(directed(base, found, side), base, top)
                faint = ((found != 0.0) & (np.abs(found) < VAGUE)) | exact[part.rows]
                faint = np.flatnonzero(faint & np.isfinite(top - base))[: FRACTIONS - decided]
                decided += len(faint)
                for i in faint:
                    known = float(mean[some[i]])
                    mean[some[i]] = self._rounded(int(part.rows[i]), there[i], known, side)
                if discount != 1.0:
                    less = np.nextafter(discount * mean, side * np.inf)
                    mean = np.where(mean == 0.0, 0.0, less)
                q[batch.rows] = directed(self.reward[batch.rows], mean, side)
        return q

    def _mean(self, batch: Batch, values: FloatArray, side: int) -> FloatArray:
        """Return bounds (b,), on a side, of nature's best mean of values (b, K) >= 0.

        The values are rounded once; twice that much is paid.
        """
        flip = -self.nature  # values as nature, who then minimises, sees them
        towards = flip * side
        outer = flip * (1.0 + 2.0 * UNIT * side) * values
        found = batch.bound(outer, towards)
        if len(batch.orders) > 1 and len(found):
            other = batch.bound(flip * (1.0 - 2.0 * UNIT * side) * values, -towards)
            room = 2.0**-46 * fold(np.maximum, values)  # as near as anybody wants it
            wanted = 0.0 if values.shape[1] <= FEW else room
            loose = np.flatnonzero(np.abs(found - other) > wanted)
            cut = found.copy() if towards > 0 else other - room
            aim = other + towards * wanted
            self.rows.products.refine(batch, loose, outer, found, towards, aim, cut)
        found = flip * found
        if side > 0 > self.nature:  # what nature can avoid for sure has no weight at all
            tiny = (found > 0.0) & (found <= 2.0**-40 * fold(np.maximum, values))
            for i in np.flatnonzero(tiny):
                with suppress(Undecided):
                    if self.rows.can(int(batch.rows[i]), values[i] == 0.0, None):
                        found[i] = 0.0
        return found

    def _rounded(self, row: int, values: FloatArray, known: float, side: int) -> float:
        """Return nature's best mean of values (K,) in fractions, rounded to a side, or `known`."""
        try:
            own = [-self.nature * Fraction(x) for x in values.tolist()]
            mean = -self.nature * self.rows.exact.minimum(self.rows.ids(row), own)
        except Undecided:
            return known
        found = float(mean)
        return found if side * (found - mean) >= 0 else float(np.nextafter(found, side * np.inf))
