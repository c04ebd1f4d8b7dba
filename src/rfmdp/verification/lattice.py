"""Claims about a model that is kept by its factors: all backward steps again, or an induction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rfmdp.types import BoolArray, FloatArray, IntArray
from rfmdp.verification.fields import need
from rfmdp.verification.horizon import Step, exceeds
from rfmdp.verification.lattice_lingering import kept, paid_for, reached
from rfmdp.verification.lattice_model import Lattice
from rfmdp.verification.lattice_steps import Contraction, Sides
from rfmdp.verification.margins import UNIT, two_sum
from rfmdp.verification.reading import Claim
from rfmdp.verification.statement import PROBABILITIES

LASTING = 0.5  # probability that a play lasts, up to which steps count
LONGEST = 1 << 14  # steps that are tried


class LatticeChecker:
    """One solution of a lattice in the hands of the verifier."""

    def __init__(self, claim: Claim, note: Callable[..., None], progress: Callable[[str], None]):
        self.claim, self.note, self.progress = claim, note, progress
        self.model: Lattice = claim.model  # type: ignore[assignment]
        self.turned = -1 if claim.kind == "Globally" else 1
        self.agent, self.nature = self.turned * claim.agent, self.turned * claim.nature

    def run(self) -> None:
        """Make the checks that fit the objective."""
        objective: dict[str, Any] = self.claim.objective
        discount = float(objective.get("discount", 1.0))
        zero = np.zeros(self.model.states)
        nothing = (zero > 0.0, zero)
        start, steps = zero, [nothing]
        match self.claim.kind:
            case "Cumulative":
                steps *= objective["steps"]
            case "Instantaneous":
                start, steps = self._rewards()[0], steps * objective["step"]
            case "Next":
                start = self.claim.states["target"].astype(np.float64)
            case "Until" | "Globally" if objective.get("latest") is not None:
                start, steps = self._until()
            case "Discounted":
                need(len(self.claim.policy) == 1, "policy: must be one rule")
                self._inductive(self._contraction(discount))
                return
            case "Reach" | "Until" | "Globally" | "ReachReward":
                need(not objective.get("earliest"), "objective: must count from the first step")
                need(len(self.claim.policy) == 1, "policy: must be one rule")
                self._only_fixed_point()
                return
            case kind:
                need(False, f"objective: {kind} must have a bound of steps for factors")
        need(not steps or len(self.claim.policy) == len(steps), "policy: must have a rule per step")
        self._steps(self._contraction(discount), start, steps)

    def _contraction(self, discount: float) -> Contraction:
        """Return the steps of the game; what stuck states pay stands last."""
        model = self.model
        pays, classes = np.zeros((1, model.states)), np.zeros(model.actions, dtype=np.int64)
        rounded = False
        if self.claim.kind in ("Cumulative", "Discounted", "ReachReward"):
            of_states, classes, of_classes = self._rewards()
            total, lost = two_sum(of_classes, of_states)
            pays, rounded = np.concatenate([total, of_states[None]]), bool(lost.any())
        return Contraction(model, self.agent, self.nature, pays, classes, discount, rounded)

    def _rewards(self) -> tuple[FloatArray, IntArray, FloatArray]:
        name = self.claim.objective.get("reward")
        rewards = self.model.rewards
        name = next(iter(rewards), None) if name is None else name
        need(name in rewards, f"objective: there is no reward {name!r}")
        return rewards[str(name)]

    def _until(self) -> tuple[FloatArray, list[Step]]:
        """Return where it starts, and which states are decided before each step."""
        sets, objective = self.claim.states, self.claim.objective
        target = sets["target"] if "target" in sets else ~sets["stay"]
        stay = sets["stay"] if self.claim.kind == "Until" else np.ones_like(target)
        goal = target.astype(np.float64)
        earliest, latest = objective.get("earliest", 0), objective["latest"]
        inside, before = (target | ~stay, goal), (~stay, np.zeros(len(target)))
        return goal, [inside] * (latest - earliest) + [before] * earliest

    def _by_policy(self, side: int) -> bool:
        """Return whether a side is claimed of the policy alone: its guarantee, or both."""
        return self.claim.fixed or side == -self.agent

    def _steps(self, game: Contraction, start: FloatArray, steps: list[Step]) -> None:
        """Step back from the start and compare."""
        values: Sides = {-1: start, 1: start}
        for done, (fixed, given) in enumerate(steps):
            self.progress(f"step {done + 1} of {len(steps)}")
            rule = self.claim.policy[len(steps) - 1 - done]
            values = game.back(values, rule, self._by_policy)
            for bound in values.values():  # not clipped: a step takes all to be as wide as one
                np.copyto(bound, given, where=fixed)
        self._compare(values, "by steps", self._range(game, start))

    def _range(self, game: Contraction, start: FloatArray) -> tuple[float, float]:
        """Return what values can be; no less than 0 if nothing below it is ever paid."""
        if self.claim.kind in PROBABILITIES:
            return 0.0, 1.0
        paid = game.pays[:-1], game.pays[-1, self.model.stuck], start
        least = min(float(amounts.min(initial=0.0)) for amounts in paid)
        return (-np.inf if least < 0.0 else 0.0), np.inf

    def _compare(self, values: Sides, how: str, ends: tuple[float, float]) -> None:
        """Compare claims with bounds of what they are about."""
        values = {side: np.clip(bound, *ends) for side, bound in values.items()}
        for side in (-1, 1):
            claim = self.claim.bounds.get(self.turned * side)
            if claim is not None:
                short, wrong = (
                    exceeds(claim, values[end], side, self.turned < 0) for end in (side, -side)
                )
                self._note(short, wrong, side * self.turned, how)

    def _inductive(self, game: Contraction) -> None:
        """Check bounds b by T(b), which for a discount is enough."""
        least, _ = self._range(game, np.zeros(1))
        for side, claim in sorted(self.claim.bounds.items()):
            need(np.isfinite(claim).all(), "bounds: must be numbers")
            values = game.back({-1: claim, 1: claim}, self.claim.policy[0], self._by_policy)
            values = {end: np.maximum(bound, least) for end, bound in values.items()}
            short, wrong = (side * claim < side * values[end] for end in (side, -side))
            self._note(short, wrong, side, "by induction")

    def _only_fixed_point(self) -> None:
        """Check bounds around a value: if all plays end, it is near the only fixed point.

        Let q < 1 be the largest probability that a play lasts longer than K steps. Then K steps
        contract by q, and what a step moves by at most r is within K r / (1 - q) of its worth.
        A play has also ended where it can never come to the target.
        """
        sets = self.claim.states
        target = sets["target"] if "target" in sets else ~sets["stay"]
        over = target | (~sets["stay"] if self.claim.kind == "Until" else False)
        pay = target.astype(np.float64) * (self.claim.kind != "ReachReward")
        levels = self.model.levels
        lasting = self.model.stuck | self.model.level_states(0)
        if levels is not None and over[lasting].all():
            self._level_by_level(over, pay)
            return
        if self.claim.kind in PROBABILITIES:
            over |= self._hopeless(target, over)
        if self.claim.witness:
            self._least_fixed_point(over, pay)
            return
        game = self._contraction(1.0)
        far, ends = self._endurance(over), self._range(game, pay)
        if far is None:
            low, high = (self.claim.bounds.get(side, side * np.inf) for side in (-1, 1))
            trivial = np.zeros_like(over) | ((low <= ends[0]) & (high >= ends[1]))
            self.note(trivial, "plays end, whatever the players do", ~trivial)
            return
        value = self.claim.value if self.turned > 0 else 1.0 - self.claim.value
        need(np.isfinite(value).all(), "value: must be numbers")
        self.progress("one step")
        after = game.back({-1: value, 1: value}, self.claim.policy[0], self._by_policy)
        for side in (-1, 1):
            np.copyto(after[side], pay, where=over)
            moved = max(float((side * (after[side] - value)).max()), 0.0)
            bound = value + side * far * moved * (1.0 + 8.0 * UNIT)
            bound += side * 2.0 * UNIT * np.abs(bound)
            np.clip(bound, *ends, out=bound)
            claim = self.claim.bounds.get(self.turned * side)
            if claim is not None:
                short = exceeds(claim, bound, side, self.turned < 0)
                self._note(short, np.zeros_like(short), side * self.turned, "by contraction")

    def _least_fixed_point(self, over: BoolArray, pay: FloatArray) -> None:
        """Check inductive bounds, and that the claims say no more than these."""
        claim, rule, game = self.claim, self.claim.policy[0], self._contraction(1.0)
        need(set(claim.witness) == {-1, 1}, "witness: must have both sides")
        lower, upper = claim.witness[-1], claim.witness[1]
        # below 0, T(U) <= U proves nothing
        fine = (lower >= 0.0) & (upper >= 0.0) & np.isfinite(lower)
        ends = over & (upper < pay), over & (lower > pay)
        probability = claim.kind in PROBABILITIES
        need((fine & ((upper <= 1.0) | (not probability))).all(), "witness: must be in its range")
        nowhere = np.zeros_like(over)
        self.progress("one step")
        if probability:
            above, infinite = kept(game, upper, over, rule, self._by_policy), nowhere
        else:
            need(self._range(game, pay)[0] == 0.0, "rewards: must not be negative")
            above = paid_for(game, upper, over, rule, self._by_policy)
            infinite = self._infinite(over, rule)
        begin, over = np.where(infinite, lower, pay), over | infinite
        below = reached(
            game, lower, begin, over, rule, self._by_policy, LONGEST, self.progress,
            endless=not probability,
        )  # fmt: skip
        lower = np.where(infinite, np.inf, lower)
        for side, bound, proven in ((1, upper, above & ~ends[0]), (-1, lower, below & ~ends[1])):
            bounds = claim.bounds.get(self.turned * side)
            if bounds is not None:
                self._note(~proven, nowhere, side * self.turned, "by induction")
                beyond = exceeds(bounds, bound, side, self.turned < 0)
                self._note(beyond, nowhere, side * self.turned, "from its proof")

    def _infinite(self, target: BoolArray, rule: IntArray) -> BoolArray:
        """Return where (S,) plays are led with some probability to where the target is hopeless."""
        claimed = np.isinf(self.claim.bounds.get(-1, np.zeros(len(target))))
        if not claimed.any():
            return claimed
        hopeless = self._hopeless(target, target, rule if self._by_policy(-1) else None)
        least = np.where(claimed, np.finfo(np.float64).tiny, 0.0)
        game = self._unpaid(self.agent, self.nature)
        return claimed & reached(
            game, least, hopeless.astype(np.float64), target | hopeless, rule, self._by_policy,
            LONGEST, self.progress,
        )  # fmt: skip

    def _level_by_level(self, over: BoolArray, pay: FloatArray) -> None:
        """Step back once per level of the clock, whose states lead to lower levels only."""
        game, model = self._contraction(1.0), self.model
        values: Sides = {-1: pay.copy(), 1: pay.copy()}
        assert model.levels is not None
        for level in range(1, int(model.levels.max()) + 1):
            self.progress(f"level {level} of {model.levels.max()}")
            before = game.back(values, self.claim.policy[0], self._by_policy, level)
            here = model.level_states(level) & ~over
            for side, bound in before.items():
                values[side][here] = bound[here]
        self._compare(values, "level by level", self._range(game, pay))

    def _unpaid(self, agent: int, nature: int) -> Contraction:
        """Return steps in which nothing is paid."""
        states, actions = self.model.states, self.model.actions
        nothing, classes = np.zeros((1, states)), np.zeros(actions, dtype=np.int64)
        return Contraction(self.model, agent, nature, nothing, classes, 1.0)

    def _hopeless(
        self, target: BoolArray, over: BoolArray, rule: IntArray | None = None
    ) -> BoolArray:
        """Return the states from which no choice, or no member by a rule, leads to the target."""
        friends, hopeful = self._unpaid(1, 1), target.copy()
        while (more := friends.may_lead(hopeful, rule) & ~over & ~hopeful).any():
            hopeful |= more
            self.progress(f"where the target is possible: {hopeful.sum()} states")
        return ~hopeful

    def _endurance(self, over: BoolArray) -> float | None:
        """Return K / (1 - q), see `_only_fixed_point`; None: no such K was found."""
        model, game = self.model, self._unpaid(1, 1)
        lasts = (~over).astype(np.float64)
        steps = 0
        while lasts.max() > LASTING and steps < LONGEST:
            self.progress(f"how long plays last: step {steps + 1}")
            after = game.back({-1: lasts, 1: lasts}, np.zeros(model.states, dtype=np.int64),
                              lambda side: False)[1]  # fmt: skip
            np.clip(after, 0.0, 1.0, out=after)
            after[over] = 0.0
            steps += 1
            if lasts.max() == 1.0 and np.array_equal(lasts == 1.0, after == 1.0):
                break
            lasts = after
        if lasts.max() > LASTING:
            return None
        return max(steps, 1) / (1.0 - float(lasts.max())) * (1.0 + 8.0 * UNIT)

    def _note(self, short: BoolArray, wrong: BoolArray, side: int, how: str) -> None:
        name = "upper" if side > 0 else "lower"
        self.note(~short, f"{name} bound {how}", short & ~wrong)
