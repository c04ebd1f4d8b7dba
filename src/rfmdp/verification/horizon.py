"""Claims over steps: finitely many, or the mean of all.

Of finitely many, all steps are made again, from proven bounds, rounding outwards. Where floats do
not suffice for a claim, the rows that it depends on are counted exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

import numpy as np

from rfmdp.ragged import entries
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.verification.game import FRACTIONS, GAIN, HOLD, UNKNOWN, Game, signs_of
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
        nothing = [np.zeros(self.game.model.rows, dtype=np.bool_)] * len(self.steps)
        short = exceeds(claim, self._back(proven[side], side, nothing), side, turned)
        if not short.any():
            return short, short
        cone = self._cone(short)
        if cone is not None:
            short = exceeds(claim, self._back(proven[side], side, cone), side, turned)
        other = self._back(proven[-side], -side, cone or nothing) if short.any() else claim
        return short, short & exceeds(claim, other, side, turned)

    def _rule(self, done: int) -> IntArray | None:
        """Return the rule of the next step back."""
        return None if self.rules is None else self.rules[len(self.steps) - 1 - done]

    def _back(self, value: FloatArray, side: int, exact: list[BoolArray]) -> FloatArray:
        """Return bounds, on a side, of the value all steps earlier; `exact` are rows per step."""
        game, done = self.game, 0
        while done < len(self.steps):
            (fixed, given), rule = self.steps[done], self._rule(done)
            end = "upper" if side > 0 else "lower"
            self.progress(f"step {done + 1} of {len(self.steps)}, {end}")
            rows = game.open_rows(fixed, rule)
            q = game.backup(value, side, self.discount, rows, exact[done] & rows)
            before, value = value, np.where(fixed, given, game.pick(q, rule))
            done = done + 1
            still = np.array_equal(before, value)
            while still and self._same(done):
                done += 1
        return value

    def _same(self, done: int) -> bool:
        """Return whether there is a next step back, and it is like the last."""
        if done >= len(self.steps) or self.steps[done][0] is not self.steps[done - 1][0]:
            return False
        rule = self._rule(done)
        last = self._rule(done - 1)
        return rule is last or np.array_equal(rule, last)  # type: ignore[arg-type]

    def _cone(self, states: BoolArray) -> list[BoolArray] | None:
        """Return the rows of every step that some states hang on; None if these are many."""
        cone, count, model = [], 0, self.game.model
        for done in reversed(range(len(self.steps))):
            rows = self.game.open_rows(self.steps[done][0], self._rule(done))
            rows &= states[self.game.rows.state]
            count += int(np.count_nonzero(rows))
            if count > FRACTIONS:
                return None
            cone.append(rows)
            states = np.zeros(model.states, dtype=np.bool_)
            states[model.successors[entries(model.successor_ptr, rows.nonzero()[0])]] = True
        return cone[::-1]


def exceeds(claim: FloatArray, value: FloatArray, side: int, turned: bool) -> BoolArray:
    """Return where claims, or exactly one minus them, are beyond a value as seen from a side."""
    with np.errstate(invalid="ignore", over="ignore"):
        if not turned:
            return side * claim < side * value
        total, error = two_sum(claim, value)
        return side * ((total - 1.0) + np.where(np.isinf(total), 0.0, error)) > 0.0


def long_run(
    game: Game, bound: FloatArray, bias: FloatArray, side: int, rule: IntArray | None
) -> tuple[BoolArray, BoolArray]:
    """Return the states (S,) where a bound of a mean is proven, and where it may yet be one.

    Seen from an upper bound u (lower ones are turned round first) with its witness h, every row
    that counts must

        climb  the mean of u over its successors is less than u here, or
        keep   that mean is at most u here, and reward + mean of h <= u + h here

    in the worst case if nature opposes the bound. If it helps, one member has to do: for `keep`,
    one that leads only to states whose u is at most u here. As u is bounded and falls on average,
    climbs are finitely many on average; what all other steps pay is at most the sum of u over the
    states seen, up to a constant. So the mean of n rewards is at most u of the first state, plus a
    constant / n.
    """
    turned = copy(game)
    turned.agent, turned.nature = side * game.agent, side * game.nature
    u, h = side * bound, side * bias
    nowhere = np.zeros(game.model.states, dtype=np.bool_)
    rows = game.open_rows(nowhere, rule)
    turned.reward = turned.rest = np.zeros(game.model.rows)
    climbs = signs_of(turned, u, UPPER, 1.0, rows)
    todo = rows & (climbs != GAIN)
    # what a row pays beyond u, exactly or more
    first, error = two_sum(side * game.reward, -u[game.rows.state])
    turned.reward, turned.rest = first, directed(error, side * game.rest, 1.0)
    keeps = signs_of(turned, h, UPPER, 1.0, todo)
    if turned.nature == -UPPER:
        _among_lower(turned, u, h, todo, keeps)
    else:
        keeps = np.minimum(keeps, climbs)
    good = (climbs == GAIN) | (keeps >= HOLD)
    open_ = good | (climbs == UNKNOWN) | (keeps == UNKNOWN)
    return turned.enough(good, UPPER, rule), turned.enough(open_, UPPER, rule)


def _among_lower(
    game: Game, u: FloatArray, h: FloatArray, todo: BoolArray, keeps: AnyArray
) -> None:
    """Prove rows again that may lead to states with a larger u, without these, in place."""
    model, rows = game.model, game.rows
    levels, level = np.unique(u, return_inverse=True)
    most = np.maximum.reduceat(level[model.successors], model.successor_ptr[:-1])
    again = todo & (most > level[rows.state])
    for number in np.unique(level[rows.state[again]]):
        chosen = again & (level[rows.state] == number)
        keeps[chosen] = signs_of(game, np.where(u > levels[number], np.inf, h), UPPER, 1.0, chosen)[
            chosen
        ]
