"""Least fixed points where a play may last for ever: T(U) <= U proves U, whatever the graph is.

probability   T^k(0) is never above it. A rule that changes only where a step raises the value is
              worth what was raised. U with T(U) <= U is searched for upwards from below, on a
              grid: a step is rounded up to it, so that the search ends. Who lingers among states of
              one value must find T(U) = U, where no margin for rounding is left. So rows of states
              in doubt are written out: one is proven if none of its successors has a larger U.
rewards >= 0  A play that misses the target is worth infinity. So neither T^k(0) nor any bounded
              L <= T(L) is ever above the value. T(U) < U where U is finite proves U, if no row of
              it may lead to a state of infinite U. U is a limit of T + push.

The proofs are in docs/soundness.md, "Networks kept by their factors". Rules that
are greedy for U keep it if the agent minimises.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rfmdp.inner.solvers import Exact
from rfmdp.model.lattice import LatticeMDP, written_rows
from rfmdp.objective import MIN
from rfmdp.outer.lattice.sweep import MOST_MIXED, Errors, Payments, Sweep
from rfmdp.outer.task import Clock, largest
from rfmdp.ragged import segment_sum
from rfmdp.rounding import RESOLUTION, UNIT
from rfmdp.sets.marginals import Kind
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray

FINER = 2.0**-6  # from one grid to the next
MOST_RAISED = 32  # times that states in doubt are raised by a step of the grid
PATIENCE = 256  # sweeps that a search upwards may take beyond twice those before it
FAINT = 1e-12  # probabilities below which a sum of floats may not show that they are there
LEAST = 1e-290  # the least product of probabilities that floats still show
OFTEN = 2.0**30  # what missing a target counts where others avoid it
FINER_PUSH, FARTHER = 16.0, 4.0  # from one search for upper bounds to the next
FAR = 16.0  # times the largest finite value: what stands for infinity at first
LONG = 1 << 12  # sweeps after which values may be found to grow without end
STEADY = 0.9  # values that still move by this share of what they moved before grow without end

Step = Callable[[FloatArray], tuple[FloatArray, AnyArray, Errors]]  # T, nature minimising


class Ways:
    """Where a step may lead if all players help, by a step back of zeros and ones.

    Floats show every way, unless probabilities are so small that all states count as led to. No row
    is solved by itself: of the best one for every fibre, the sign is what counts.
    """

    def __init__(self, model: LatticeMDP) -> None:
        marginals = model.marginals
        upper, lower = marginals.upper, marginals.lower
        total, room = (segment_sum(x, marginals.outcome_ptr) for x in (lower, upper - lower))
        free = 1.0 - total[(marginals.kind == Kind.BOX) & (room > 0.0)]
        faintest = float(np.min(np.concatenate([upper[upper > 0.0], free]), initial=1.0))
        self._faint = faintest < FAINT or faintest ** len(model.factors) < LEAST
        # both maximise, so all signs are turned
        self._sweep = Sweep(model, MIN, Payments.nothing(model), most_mixed=0)

    def into(self, states: BoolArray) -> BoolArray:
        """Return where (S,) some action may lead into some states."""
        if self._faint or not states.any():
            return np.full(len(states), bool(states.any()))
        return np.asarray(self._sweep.back(-states.astype(np.float64))[0] < 0.0)

    def hopeless(self, target: BoolArray, ends: BoolArray, watch: Clock) -> BoolArray:
        """Return the states (S,) from which nobody can lead a play to the target."""
        hopeful = target
        while (more := self.into(hopeful) & ~ends & ~hopeful).any():
            hopeful = hopeful | more
            watch.tick("where the target is possible", float(more.sum()))
        return ~hopeful


@dataclass(slots=True, eq=False)
class Lingering:
    """Bounds of the probabilities, proven so far, and the rule that keeps the agent's side."""

    model: LatticeMDP
    step: Step
    negated: bool  # nature maximises, so `step` has all numbers with the other sign
    maximises: bool  # the agent
    ends: BoolArray  # (S,)
    lower: FloatArray  # (S,) before any step: what plays that have ended are worth
    upper: FloatArray
    rule: AnyArray
    watch: Clock

    def run(self, excess: Callable[[FloatArray, FloatArray], float]) -> None:
        """Raise the lower bounds, search for upper ones, until they are close or nothing helps."""
        wanted = self.watch.limits.precision * FINER
        grain = max(2.0 ** math.floor(math.log2(min(wanted, FINER))), RESOLUTION)
        while True:
            self._raise_lower(grain / 8.0)
            self._search_upper(grain)
            if excess(self.claimed, self.upper) <= 1.0 or grain == RESOLUTION:
                return
            grain = max(grain * FINER, RESOLUTION)

    @property
    def claimed(self) -> FloatArray:
        """The lower bounds and a little less, which a checker reaches in finitely many steps."""
        share = min(self.watch.limits.precision, 1.0) / 8.0
        tiny = RESOLUTION / 8.0 * float(np.max(self.lower))
        less = np.maximum(self.lower * (1.0 - share) - tiny, 0.0)
        return np.where(self.ends, self.lower, less)

    @property
    def claimed_value(self) -> FloatArray:
        """What `claimed` says of the value."""
        return self.claimed

    def _back(
        self, value: FloatArray, step: Step | None = None
    ) -> tuple[FloatArray, AnyArray, float, float]:
        """Return T(value) with the rule, and how far it may be above the true one and below."""
        after, choice, errors = (step or self.step)(-value if self.negated else value)
        slack = 8.0 * UNIT * float(np.max(np.abs(after)))  # of a checker's own roundings
        if self.negated:
            return -after, choice, errors.below + slack, errors.above + slack
        return after, choice, errors.above + slack, errors.below + slack

    def _raise_lower(self, least: float, apart: BoolArray | None = None) -> None:
        """Step until no state rises by more than some least amount, but for some states apart."""
        moved, earlier, count = np.inf, np.inf, 0
        while moved > least:
            after, choice, above, _ = self._back(self.lower)
            after -= above
            higher = (after > self.lower) & ~self.ends
            counted = higher if apart is None else higher & ~apart
            moved = float(np.max((after - self.lower)[counted], initial=0.0))
            rule = np.where(higher, choice, self.rule) if self.maximises else self.rule
            self.lower, self.rule = np.where(higher, after, self.lower), rule
            self.watch.tick("to the target, from below", moved)
            count += 1
            if count > LONG and count.bit_count() == 1:  # at powers of two
                if moved > STEADY * earlier:
                    return
                earlier = moved

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
        for model, some, _ in written_rows(self.model, states[at], actions):
            self.watch.check()
            here = guess[some]
            most = np.maximum.reduceat(guess[model.successors], model.successor_ptr[:-1])
            below, above = np.empty((2, len(here)))
            value = -guess if self.negated else guess
            Exact().prepare(model, MIN).backup(value, np.arange(len(here)), below, above)
            worth = -below if self.negated else above
            unproven[some[(most > here) & (worth + error > here)]] = True
        return unproven


@dataclass(slots=True, eq=False)
class LingeringRewards(Lingering):
    """Bounds of rewards to a target, none of them below 0, proven so far."""

    unpaid: Step = field(kw_only=True)  # T if nothing were paid
    most: float = field(kw_only=True)  # what a step pays
    target: BoolArray = field(init=False)
    lost: BoolArray = field(init=False)  # (S,) the value is proven to be infinite

    def run(self, excess: Callable[[FloatArray, FloatArray], float]) -> None:
        """Raise the lower bounds, search for upper ones, until they are close or nothing helps."""
        self.target, self.lost = self.ends, np.zeros_like(self.ends)
        ways = Ways(self.model)
        hopeless = ways.hopeless(self.target, self.target, self.watch)
        if self.model.deadlocks is not None:
            hopeless |= self.model.deadlocks & ~self.target
        self._lose(hopeless | self._staying(hopeless) if self.maximises else hopeless)
        missing = self._missing()
        scale = self.most or 1.0
        push, far, best = self.watch.limits.precision / 8.0 * scale, FAR, np.inf
        while best > 1.0 and push > RESOLUTION * RESOLUTION * scale:
            far_away = 0.0  # what stands for infinity
            while far_away < 0.5 * far * (high := max(scale, largest(self.lower[~missing]))):
                far_away = far * high
                self.lower[self.lost] = np.maximum(self.lower[self.lost], far_away)
                self._raise_lower(push / 8.0, missing)
            upper, rule = self._upper(push, far_away, missing, ways)
            if upper is None:
                return
            if (width := excess(self.claimed_value, upper)) <= best:
                rule = self.rule if self.maximises else rule
                best, self.upper, self.rule = width, upper, rule  # an interrupt finds all of them
            push, far = push / FINER_PUSH, far * FARTHER

    @property
    def claimed_value(self) -> FloatArray:
        """The lower bounds; `claimed` has numbers in place of infinity."""
        return np.where(self.lost, np.inf, self.claimed)

    def _lose(self, hopeless: BoolArray) -> None:
        """Note where the players lead to hopeless states with some probability; infinity there."""
        chance = hopeless.astype(np.float64)
        while True:
            after, choice, above, _ = self._back(chance, self.unpaid)
            more = (after > above) & (chance == 0.0) & ~self.target
            chance = np.where(more, after - above, chance)
            self.rule = np.where(more & self.maximises, choice, self.rule)
            self.lost = chance > 0.0
            self.ends = self.target | self.lost
            if not more.any():
                return
            self.watch.tick("where the target is missed", float(more.sum()))

    def _missing(self) -> BoolArray:
        """Return where (S,) plays seem to miss the target: U is not searched for there.

        Those who maximise can make a play last for ever, or lead where that is so: such states
        count many times, so that the others avoid them.
        """
        missing, more = self.lost, self._endless(self.lost)[0]
        while not np.array_equal(missing, more):
            missing, more = more, self._endless(more)[0]
        return missing

    def _endless(self, missing: BoolArray) -> tuple[BoolArray, AnyArray]:
        """Return where (S,) plays last for ever or lead to missing states too often; and how."""
        lasts = np.where(missing, OFTEN, ~self.target)
        endless = lasts > 0.0
        while True:
            after, choice, _, _ = self._back(lasts, self.unpaid)
            after = np.minimum(after, lasts)
            after[self.target], after[missing] = 0.0, OFTEN
            before, endless = endless, after >= 1.0 - FAINT
            if np.array_equal(endless, before):
                return endless, choice
            lasts = after
            self.watch.tick("how long plays last", float(endless.sum()))

    def _staying(self, hopeless: BoolArray) -> BoolArray:
        """Return where (S,) one who maximises stays for ever, whatever nature does, by the rule."""
        endless, choice = self._endless(hopeless)
        leaving = staying = endless & ~hopeless
        while leaving.any():
            leaving = staying.copy()
            self._keep_leading(leaving, choice, ~staying & ~hopeless)
            staying = staying & ~leaving
        self.rule = np.where(staying, choice, self.rule)
        return staying

    def _upper(
        self, push: float, far_away: float, missing: BoolArray, ways: Ways
    ) -> tuple[FloatArray | None, AnyArray]:
        """Return the next inductive bound, by T + push from below, with its rule; or None."""
        value = np.where(missing, far_away, self.lower)
        patience = PATIENCE + 2 * self.watch.sweeps
        while True:
            after, choice, above, below = self._back(value)
            error = 2.0 * (above + below)
            if 4.0 * error > push:
                return None, choice
            rises = (after + error + 0.5 * push > value) & ~self.target & ~missing
            patience -= 1
            if not rises.any() or patience < 0:
                break
            value = np.where(rises, after + error + push, value)
            self.watch.tick("to the target, from above", float(rises.sum()))
        infinite = missing | rises
        while True:
            more = ways.into(infinite) & ~infinite & ~self.target
            if not self.maximises:
                self._keep_leading(more, choice, infinite)
            if not more.any():
                return np.where(infinite, np.inf, value), choice
            infinite = infinite | more

    def _keep_leading(self, some: BoolArray, choice: AnyArray, infinite: BoolArray) -> None:
        """Keep only those states (S,) whose chosen rows may lead to infinite ones."""
        states = np.flatnonzero(some)
        if len(states) <= MOST_MIXED:
            for model, at, _ in written_rows(self.model, states, choice[states].astype(np.int64)):
                leads = infinite[model.successors]
                some[at] = np.logical_or.reduceat(leads, model.successor_ptr[:-1])


def _rounded_up(value: FloatArray, grain: float) -> FloatArray:
    """Return the next numbers of a grid, a power of two, in [0, 1]."""
    return np.clip(np.ceil(value / grain) * grain, 0.0, 1.0)
