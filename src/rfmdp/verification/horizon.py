"""Claims over steps: finitely many, or the mean of all.

Of finitely many, all steps are made again, from proven bounds, rounding outwards. Where floats do
not suffice for a claim, the steps are counted in fractions if they are few.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from rfmdp.types import BoolArray, FloatArray, IntArray
from rfmdp.verification.game import FRACTIONS, GAIN, HOLD, UNKNOWN, Game
from rfmdp.verification.margins import directed, two_sum

Step = tuple[BoolArray, FloatArray]
"""Which states (S,) have a given worth before a step, and these."""
UPPER = 1


@dataclass(slots=True, eq=False)
class Horizon:
    """Steps back from the end, the first at the end; rules (steps, S) or the agent's best."""

    game: Game
    steps: list[Step]
    discount: float
    rules: IntArray | None
    progress: Callable[[str], None]

    def beyond(
        self, claim: FloatArray, proven: dict[int, FloatArray], side: int, turned: bool
    ) -> tuple[BoolArray, BoolArray]:
        """Return where (S,) claims go beyond what is proven on a side, and beyond all that is true.

        The claims, or one minus them if turned, are of what is proven (by sides) after all steps.
        """
        short = exceeds(claim, self._back(proven[side], side, False), side, turned)
        if not short.any():
            return short, short
        exact = len(self.steps) * self.game.model.rows <= FRACTIONS
        if exact:
            short = exceeds(claim, self._back(proven[side], side, True), side, turned)
        other = self._back(proven[-side], -side, exact)
        return short, short & exceeds(claim, other, side, turned)

    def _back(self, value: FloatArray, side: int, exact: bool) -> FloatArray:
        """Return bounds, on a side, of the value all steps earlier."""
        game, count = self.game, len(self.steps)
        rules: list[Any] = [None] * count if self.rules is None else list(self.rules[:count][::-1])
        steady = False  # the last step changed nothing
        for k, ((fixed, worth), rule) in enumerate(zip(self.steps, rules, strict=True)):
            if steady and fixed is self.steps[k - 1][0] and np.array_equal(rule, rules[k - 1]):
                continue
            self.progress(f"step {k + 1} of {count}, {'upper' if side > 0 else 'lower'}")
            game.allow(rule)
            best = game.backup(value, side, self.discount, game.open_rows(fixed), exact)
            before, value = value, np.where(fixed, worth, best)
            steady = np.array_equal(before, value)
        return value


def exceeds(claim: FloatArray, value: FloatArray, side: int, turned: bool) -> BoolArray:
    """Return where claims, or exactly one minus them, are beyond a value as seen from a side."""
    with np.errstate(invalid="ignore", over="ignore"):
        if not turned:
            return ~(side * claim >= side * value)  # so is what is no number
        total, error = two_sum(claim, value)
        return ~(side * ((total - 1.0) + np.where(np.isinf(total), 0.0, error)) <= 0.0)


def long_run(
    game: Game, bound: FloatArray, bias: FloatArray, side: int
) -> tuple[BoolArray, BoolArray]:
    """Return the states (S,) where a bound of a mean is proven, and where it may yet be one.

    Seen from an upper bound u (lower ones are turned round first) with its witness h, every row
    that counts must

        climb  the mean of u over its successors is less than u here, or
        keep   that mean is at most u here, and reward + mean of h <= u + h here

    in the worst case if nature opposes the bound. If it helps, one member has to do: for `keep`,
    one that leads only to states whose u is at most u here. See docs/soundness.md.
    """
    turned = copy(game)
    turned.agent, turned.nature = side * game.agent, side * game.nature
    u, h = side * bound, side * bias
    model, state = game.model, game.rows.state
    turned.reward = turned.rest = np.zeros(model.rows)
    climbs = turned.signs(u, UPPER, 1.0, game.allowed)
    todo = game.allowed & (climbs != GAIN)
    # what a row pays beyond u, exactly or more
    first, error = two_sum(side * game.reward, -u[state])
    turned.reward, turned.rest = first, directed(error, side * game.rest, 1.0)
    keeps = turned.signs(h, UPPER, 1.0, todo)
    if turned.nature == UPPER:
        keeps = np.minimum(keeps, climbs)
    else:  # prove rows again that may lead to states with a larger u, without these
        most = np.maximum.reduceat(u[model.successors], model.successor_ptr[:-1])
        again = todo & (most > u[state])
        for level in np.unique(u[state[again]]):
            chosen = again & (u[state] == level)
            keeps[chosen] = turned.signs(np.where(u > level, np.inf, h), UPPER, 1.0, chosen)[chosen]
    good = (climbs == GAIN) | (keeps >= HOLD)
    open_ = good | (climbs == UNKNOWN) | (keeps == UNKNOWN)
    helps = turned.agent == -UPPER
    return turned.enough(good, helps, game.allowed), turned.enough(open_, helps, game.allowed)
