"""Probabilities to reach a target where a play may last for ever.

They are the least fixed point of T, of which two things are known whatever the graph looks like:

from below  T^k(0) is never above it. A rule that changes only where a step raises the value is
            worth what was raised. Else a play could stay for ever in a class of states, which all
            have one value above 0; but the first of them to get it would have got it from states
            that did not have it yet.
from above  T(U) <= U proves U, and rules that are greedy for U keep it if the agent minimises.

U is searched for upwards from below, on a grid: a step is rounded up to it, so that the search
ends. Who lingers among states of one value must find T(U) = U, where no margin for rounding is
left. So rows of states in doubt are written out: one is proven, whatever its probabilities, if none
of its successors has a larger U.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rfmdp.inner.exact import Exact
from rfmdp.model.lattice import LatticeMDP
from rfmdp.model.lattice_rows import written_out
from rfmdp.objective import MIN
from rfmdp.outer.lattice.sweep import AT_ONCE, MOST_MIXED, Errors
from rfmdp.outer.settings import Clock
from rfmdp.rounding import RESOLUTION, UNIT
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray

FINER = 2.0**-6  # from one grid to the next
MOST_RAISED = 32  # times that states in doubt are raised by a step of the grid
PATIENCE = 256  # sweeps that a search upwards may take beyond twice those before it


@dataclass(slots=True, eq=False)
class Lingering:
    """Bounds of the probabilities, proven so far, and the rule that keeps the agent's side."""

    model: LatticeMDP
    step: Callable[[FloatArray], tuple[FloatArray, AnyArray, Errors]]  # T, nature minimising
    negated: bool  # nature maximises, so `step` has all numbers with the other sign
    maximises: bool  # the agent
    ends: BoolArray  # (S,)
    lower: FloatArray  # (S,) before any step: what plays that have ended are worth
    upper: FloatArray
    rule: AnyArray
    watch: Clock

    def run(self, close: Callable[[FloatArray, FloatArray], bool]) -> None:
        """Raise the lower bounds, search for upper ones, until they are close or nothing helps."""
        wanted = self.watch.limits.precision * FINER
        grain = max(2.0 ** math.floor(math.log2(min(wanted, FINER))), RESOLUTION)
        while True:
            self._raise_lower(grain / 8.0)
            self._search_upper(grain)
            if close(self.claimed, self.upper) or grain == RESOLUTION:
                return
            grain = max(grain * FINER, RESOLUTION)

    @property
    def claimed(self) -> FloatArray:
        """The lower bounds and a little less, which a checker reaches in finitely many steps."""
        share = min(self.watch.limits.precision, 1.0) / 8.0
        less = np.maximum(self.lower * (1.0 - share) - RESOLUTION / 8.0, 0.0)
        return np.where(self.ends, self.lower, less)

    def _back(self, value: FloatArray) -> tuple[FloatArray, AnyArray, float, float]:
        """Return T(value) with the rule, and how far it may be above the true one and below."""
        after, choice, errors = self.step(-value if self.negated else value)
        slack = 8.0 * UNIT
        if self.negated:
            return -after, choice, errors.below + slack, errors.above + slack
        return after, choice, errors.above + slack, errors.below + slack

    def _raise_lower(self, least: float) -> None:
        """Step until no state rises by more than some least amount."""
        moved = np.inf
        while moved > least:
            after, choice, above, _ = self._back(self.lower)
            after -= above
            higher = (after > self.lower) & ~self.ends
            moved = float(np.max((after - self.lower)[higher], initial=0.0))
            rule = np.where(higher, choice, self.rule) if self.maximises else self.rule
            self.lower, self.rule = np.where(higher, after, self.lower), rule
            self.watch.tick("to the target, from below", moved)

    def _search_upper(self, grain: float) -> None:
        """Raise a guess to the next inductive bound on a grid, unless that takes too long."""
        guess = np.where(self.ends, self.lower, _rounded_up(self.lower, grain))
        raised = 0
        for _ in range(PATIENCE + 2 * self.watch.sweeps):
            after, choice, above, below = self._back(guess)
            error = 2.0 * (above + below)
            if 2.0 * error > grain:
                return
            higher = _rounded_up(after - error, grain)
            rises = (higher > guess) & ~self.ends
            if not rises.any():
                doubtful = (after + error > guess) & (guess < 1.0) & ~self.ends
                rises = self._unproven(np.flatnonzero(doubtful), guess, choice, error)
                if not rises.any():
                    rule = self.rule if self.maximises else choice
                    self.upper, self.rule = guess, rule
                    return
                higher = guess + grain
                raised += 1
            if raised > MOST_RAISED:
                return
            guess = np.where(rises, higher, guess)
            self.watch.tick("to the target, from above", float(rises.sum()))

    def _unproven(
        self, states: IntArray, guess: FloatArray, choice: AnyArray, error: float
    ) -> BoolArray:
        """Return where (S,) a step from a guess may lead above it, by rows that are written out.

        All rows of an agent who maximises count, else those that were chosen.
        """
        possible = self.model.possible(self.model.state_values(states))
        if not self.maximises:
            possible &= np.int64(1) << choice[states].astype(np.int64)
        at, actions = np.nonzero((possible[:, None] >> np.arange(len(self.model.actions))) & 1)
        unproven = np.zeros(self.model.states, dtype=np.bool_)
        if len(at) > MOST_MIXED:
            unproven[states] = True
            return unproven
        for rows in written_out(self.model, states[at], actions, AT_ONCE):
            self.watch.check()
            here, ptr = guess[rows.states], rows.model.successor_ptr
            most = np.maximum.reduceat(guess[rows.model.successors], ptr[:-1])
            inner = Exact().prepare(rows.model, MIN)
            below, above = np.empty(len(here)), np.empty(len(here))
            inner.backup(-guess if self.negated else guess, np.arange(len(here)), below, above)
            worth = -below if self.negated else above
            unproven[rows.states[(most > here) & (worth + error > here)]] = True
        return unproven


def _rounded_up(value: FloatArray, grain: float) -> FloatArray:
    """Return the next numbers of a grid, a power of two, in [0, 1]."""
    return np.clip(np.ceil(value / grain) * grain, 0.0, 1.0)
