"""Claims about a model that is kept by its factors, by backward steps of their own.

A value without a last step is proven in one of three ways:

clock        Its levels are as many steps, in each of which the states of one level are settled.
contraction  Let q < 1 be the largest probability that a play lasts longer than K steps, of a
             discount q itself for one step. Then K steps contract by q, and what a step moves by at
             most r is within K r / (1 - q) of its worth.
induction    A play may last for ever, and no number of steps from zero comes above the value. From
             above T(U) <= U, or T(U) < U for rewards. See docs/soundness.md.
"""

from __future__ import annotations

import numpy as np

from rfmdp.types import BoolArray, FloatArray, IntArray
from rfmdp.verification.checker import REWARDED, SolutionChecker, Step, exceeds, side_name
from rfmdp.verification.fields import need
from rfmdp.verification.lattice_model import FORBIDDEN, Lattice
from rfmdp.verification.lattice_steps import Contraction, Rows, Sides
from rfmdp.verification.margins import UNIT
from rfmdp.verification.statement import PROBABILITIES

LASTING = 0.5  # probability that a play lasts, up to which steps count
LONGEST = 1 << 14  # steps that are tried


class LatticeChecker(SolutionChecker):
    """One solution of a lattice in the hands of the verifier."""

    def _open(self) -> None:
        claim, model = self.claim, self.claim.model
        assert isinstance(model, Lattice)
        agent, nature = self.turned * claim.agent, self.turned * claim.nature
        paid = claim.reward if self.kind in REWARDED else None
        self.model, self.probability = model, self.kind in PROBABILITIES
        self.steps = Contraction(model, agent, nature, paid, self.discount)

    def _for_ever(self) -> None:
        known = self.kind in ("Discounted", "ReachReward")
        need(known, f"objective: {self.kind} must have a bound of steps for factors")
        self.stop = self.claim.states.get("target", self.stop)
        self._reached([])

    def _steps(self, steps: list[Step], proven: Sides, policy: IntArray) -> None:
        values = proven
        for done, (fixed, given) in enumerate(steps):
            self.progress(f"step {done + 1} of {len(steps)}")
            values = self.steps.back(values, policy[len(steps) - 1 - done], self._by_policy)
            for bound in values.values():  # not clipped: a step takes all to be as wide as one
                np.copyto(bound, given, where=fixed)
        self._compare(values, "by steps", self._range(proven[1]))

    def _range(self, start: FloatArray) -> tuple[float, float]:
        """Return what values can be; no less than 0 if nothing below it is ever paid."""
        if self.probability:
            return 0.0, 1.0
        pays = self.steps.pays
        paid = pays[:-1], pays[-1, self.model.stuck], start
        least = min(float(amounts.min(initial=0.0)) for amounts in paid)
        return (-np.inf if least < 0.0 else 0.0), np.inf

    def _compare(self, values: Sides, how: str, ends: tuple[float, float]) -> None:
        """Compare claims with bounds of what they are about."""
        values = {side: np.clip(bound, *ends) for side, bound in values.items()}
        for side in (-1, 1):
            claim = self.claim.bounds.get(self.turned * side)
            if claim is not None:
                short, wrong = (
                    exceeds(claim, values[end], side, self.turned) for end in (side, -side)
                )
                what = f"{side_name(self.turned * side)} bound {how}"
                self.verdict.states(~short, what, short & ~wrong)

    def _reached(self, before: list[Step]) -> None:
        """Check bounds around a value without a last step."""
        need(not before, "objective: must count from the first step")
        levels = self.model.levels
        if self.discount < 1.0:
            far: float | None = 1.0 / (1.0 - self.discount)
        elif levels is not None and self.stop[self.model.stuck | self.model.level_states(0)].all():
            self._level_by_level(int(levels.max()))
            return
        else:
            if self.probability:  # a play has also ended where it can never come to the target
                self.stop = self.stop | self._hopeless(self.pay > 0.0, self.stop)
            if self.claim.witness:
                self._by_induction()
                return
            far = self._endurance()
        self._by_contraction(far)

    def _level_by_level(self, last: int) -> None:
        """Step back once per level of the clock, whose states lead to lower levels only."""
        values: Sides = {-1: self.pay, 1: self.pay}
        for level in range(1, last + 1):
            self.progress(f"level {level} of {last}")
            before = self.steps.back(values, self.policy[0], self._by_policy, level)
            here = self.model.level_states(level) & ~self.stop
            values = {side: np.where(here, before[side], values[side]) for side in (-1, 1)}
        self._compare(values, "level by level", self._range(self.pay))

    def _by_contraction(self, far: float | None) -> None:
        """Check bounds around a fixed point that is so many moves away; None: nobody knows."""
        ends = self._range(self.pay)
        if far is None:
            low, high = (self.claim.bounds.get(side, side * np.inf) for side in (-1, 1))
            trivial = np.zeros_like(self.stop) | ((low <= ends[0]) & (high >= ends[1]))
            self.verdict.states(trivial, "plays end, whatever the players do", ~trivial)
            return
        value = self.claim.value if self.turned > 0 else 1.0 - self.claim.value
        need(np.isfinite(value).all(), "value: must be numbers")
        self.progress("one step")
        values = self._after(value)
        for side, after in values.items():
            np.copyto(after, self.pay, where=self.stop)
            moved = max(float((side * (after - value)).max()), 0.0)
            bound = value + side * far * moved * (1.0 + 16.0 * UNIT)
            values[side] = bound + side * 2.0 * UNIT * np.abs(bound)
        self._compare(values, "by contraction", ends)

    def _after(self, value: FloatArray, game: Contraction | None = None) -> Sides:
        """Return bounds before a step, by the policy where it counts."""
        return (game or self.steps).back({-1: value, 1: value}, self.policy[0], self._by_policy)

    def _endurance(self) -> float | None:
        """Return K / (1 - q); None: no such K was found."""
        game = Contraction(self.model, 1, 1)
        lasts = (~self.stop).astype(np.float64)
        steps = 0
        while lasts.max() > LASTING and steps < LONGEST:
            self.progress(f"how long plays last: step {steps + 1}")
            after = game.back({-1: lasts, 1: lasts}, self.policy[0], lambda side: False)[1]
            np.clip(after, 0.0, 1.0, out=after)
            after[self.stop] = 0.0
            steps += 1
            if lasts.max() == 1.0 and np.array_equal(lasts == 1.0, after == 1.0):
                break
            lasts = after
        if lasts.max() > LASTING:
            return None
        return max(steps, 1) / (1.0 - float(lasts.max()))

    def _by_induction(self) -> None:
        """Check inductive bounds, and that the claims say no more than these."""
        claim, probability, over = self.claim, self.probability, self.stop
        need(set(claim.witness) == {-1, 1}, "witness: must have both sides")
        lower, upper = claim.witness[-1], claim.witness[1]
        # below 0, T(U) <= U proves nothing
        fine = (lower >= 0.0) & (upper >= 0.0) & np.isfinite(lower)
        need((fine & ((upper <= 1.0) | (not probability))).all(), "witness: must be in its range")
        need(self._range(self.pay)[0] == 0.0, "rewards: must not be negative")
        self.progress("one step")
        above = self._kept(upper) if probability else self._paid_for(upper)
        infinite = np.zeros_like(over) if probability else self._missed()
        begin, settled = np.where(infinite, lower, self.pay), over | infinite
        if not probability and (np.where(settled, begin, self._after(lower)[-1]) >= lower).all():
            below = np.ones_like(over)  # as endless plays are worth infinity
        else:
            below = self._climbed(lower, begin, settled, self.steps)
        lower = np.where(infinite, np.inf, lower)
        proven = {1: above & ~(over & (upper < self.pay)), -1: below & ~(over & (lower > self.pay))}
        for side, bound in ((1, upper), (-1, lower)):
            bounds = claim.bounds.get(self.turned * side)
            if bounds is not None:
                what = f"{side_name(self.turned * side)} bound"
                self.verdict.states(proven[side], f"{what} by induction", ~proven[side])
                beyond = exceeds(bounds, bound, side, self.turned)
                self.verdict.states(~beyond, f"{what} from its proof", beyond)

    def _kept(self, bound: FloatArray) -> BoolArray:
        """Return where (S,) T(bound) <= bound is proven; where a play is over nothing is asked.

        Where a step is not enough, rows are written out. One is proven if none of its successors
        has a larger bound, whatever their probabilities, or if its mean is less by more than
        rounding. All rows count unless a minimising agent has a rule.
        """
        game, model = self.steps, self.model
        proven = self.stop | (bound >= 1.0) | (self._after(bound)[1] <= bound)
        states = np.flatnonzero(~proven)
        able = np.logical_and.reduce([table != FORBIDDEN for table in model.moves_of(states)])
        if self._by_policy(1):
            able &= self.policy[0, states][:, None] == np.arange(able.shape[1])
        at, actions = np.nonzero(able)
        unknown = np.full(len(at), np.inf)
        proven[states] = True
        values = bound if game.nature < 0 else -bound
        for rows in game.alike(Rows(states[at], actions, -unknown, unknown)):
            _, successors = model.rows(rows.states, int(rows.actions[0]))
            better = game.repaired(rows, values)
            mean = better.high if game.nature < 0 else -better.low
            here = bound[rows.states]
            short = (bound[successors].max(axis=1) > here) & ~(mean + 4.0 * UNIT <= here)
            proven[rows.states[short]] = False
        return proven

    def _paid_for(self, bound: FloatArray) -> BoolArray:
        """Return where (S,) a bound of rewards is infinite, or T(bound) < bound is proven."""
        infinite = np.isinf(bound)
        finite = np.where(infinite, np.max(bound[~infinite], initial=0.0), bound)
        leads = self.steps.may_lead(infinite, self.policy[0] if self._by_policy(1) else None)
        return self.stop | infinite | ((self._after(finite)[1] < finite) & ~leads)

    def _missed(self) -> BoolArray:
        """Return where (S,) plays are led with some probability to where the target is hopeless."""
        claimed = np.isinf(self.claim.bounds.get(-1, self.zeros))
        if not claimed.any():
            return claimed
        rule = self.policy[0] if self._by_policy(-1) else None
        hopeless = self._hopeless(self.stop, self.stop, rule)
        least = np.where(claimed, np.finfo(np.float64).tiny, 0.0)
        game = Contraction(self.model, self.steps.agent, self.steps.nature)
        begin = hopeless.astype(np.float64)
        return claimed & self._climbed(least, begin, self.stop | hopeless, game)

    def _climbed(
        self, claim: FloatArray, value: FloatArray, settled: BoolArray, game: Contraction
    ) -> BoolArray:
        """Return where (S,) steps from values below the truth come up to a claim."""
        for step in range(LONGEST):
            if (claim <= value).all():
                break
            self.progress(f"from below: step {step + 1}")
            after = self._after(value, game)[-1]
            higher = (after > value) & ~settled
            if not higher.any():
                break
            value = np.where(higher, after, value)
        return claim <= value

    def _hopeless(
        self, target: BoolArray, over: BoolArray, rule: IntArray | None = None
    ) -> BoolArray:
        """Return the states from which no choice, or no member by a rule, leads to the target."""
        friends, hopeful = Contraction(self.model, 1, 1), target.copy()
        while (more := friends.may_lead(hopeful, rule) & ~over & ~hopeful).any():
            hopeful |= more
            self.progress(f"where the target is possible: {hopeful.sum()} states")
        return ~hopeful
