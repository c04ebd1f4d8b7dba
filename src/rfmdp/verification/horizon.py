"""Claims over finitely many steps: all steps again, from proven bounds, rounding outwards.

Where floats do not suffice for a claim, the rows that it depends on are counted exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rfmdp.ragged import entries
from rfmdp.types import BoolArray, FloatArray, IntArray
from rfmdp.verification.game import FRACTIONS, Game
from rfmdp.verification.margins import two_sum

Step = tuple[BoolArray, FloatArray]
"""Which states (S,) have a given worth before a step, and these."""


@dataclass(slots=True, eq=False)
class Horizon:
    """Steps back from the end, the first at the end; rules (steps, S) or the agent's best."""

    game: Game
    steps: list[Step]
    discount: float
    rules: IntArray | None
    progress: Callable[[str], None]

    def beyond(
        self, claim: FloatArray, known: dict[int, FloatArray], side: int, turned: bool
    ) -> tuple[BoolArray, BoolArray]:
        """Return where (S,) claims go beyond what is proven on a side, and beyond all that is true.

        The claims, or one minus them if turned, are of what is known (by sides) after all steps.
        """
        nothing = [np.zeros(self.game.model.rows, dtype=np.bool_)] * len(self.steps)
        short = exceeds(claim, self._back(known[side], side, nothing), side, turned)
        if not short.any():
            return short, short
        cone = self._cone(short)
        if cone is not None:
            short = exceeds(claim, self._back(known[side], side, cone), side, turned)
        other = self._back(known[-side], -side, cone or nothing) if short.any() else claim
        return short, short & exceeds(claim, other, side, turned)

    def _rule(self, done: int) -> IntArray | None:
        """Return the rule of the next step back."""
        return None if self.rules is None else self.rules[len(self.steps) - 1 - done]

    def _back(self, value: FloatArray, side: int, exact: list[BoolArray]) -> FloatArray:
        """Return bounds, on a side, of the value all steps earlier; `exact` are rows per step.

        Rows all of whose successors are worth what they were a step before are worth the same.
        """
        game, done, before = self.game, 0, value
        q = np.full(game.model.rows, side * np.inf)
        known = np.zeros(game.model.rows, np.bool_)
        while done < len(self.steps):
            (fixed, given), rule = self.steps[done], self._rule(done)
            end = "upper" if side > 0 else "lower"
            self.progress(f"step {done + 1} of {len(self.steps)}, {end}")
            rows = game.open_rows(fixed, rule)
            changed = value != before
            if 4 * np.count_nonzero(changed) < len(changed):
                known &= ~game.rows.touch(changed)
            else:  # finding the others would take as long
                known[:] = False
            todo = rows & (~known | exact[done])
            q[todo] = game.backup(value, side, self.discount, todo, exact[done] & rows)[todo]
            known, before = known | rows, value
            value = np.where(fixed, given, game.pick(q, rule))
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
