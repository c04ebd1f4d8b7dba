"""The checks of one solution, by objective.

Those who pull the value towards proving a bound are "helping" (the agent by its policy alone, on
the side of its guarantee), the others "opposing". Loose sides are upper bounds of reach and total
and lower ones of a reward to a target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.verification.derived import restricted, unfolded
from rfmdp.verification.fields import need
from rfmdp.verification.forcing import Winning, gaining, missing, recurrent
from rfmdp.verification.game import FRACTIONS, GAIN, HOLD, UNKNOWN, Game, long_run
from rfmdp.verification.margins import two_sum
from rfmdp.verification.reading import Claim
from rfmdp.verification.sets import Undecided
from rfmdp.verification.statement import PROBABILITIES

REWARDED = ("ReachReward", "Cumulative", "Discounted", "Total", "LongRunAverage")

Step = tuple[BoolArray, FloatArray]
"""Which states (S,) have a given worth before a step, and these."""


@dataclass(slots=True)
class Verdict:
    """What was checked, what does not hold, and what could not be proven here.

    claims : what the file says, line by line: a word, and what it is
    """

    checked: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)
    claims: list[tuple[str, str]] = field(default_factory=list)

    @property
    def valid(self) -> bool:
        """Whether everything was proven."""
        return bool(self.checked) and not self.failed and not self.unproven

    def note(self, holds: bool, what: str, where: str = "") -> None:
        """Enter a check."""
        self.checked.append(what)
        if not holds:
            self.failed.append(f"{what}: does not hold{where}")

    def states(self, fine: BoolArray, what: str, unknown: BoolArray | None = None) -> None:
        """Enter a check of all states (S,), naming the first that fails or is not known."""
        unknown = np.zeros(len(fine), dtype=np.bool_) if unknown is None else unknown
        self.note(bool((fine | unknown).all()), what, _place(~fine & ~unknown))
        if (unknown & ~fine).any():
            self.unproven.append(f"{what}: not proven{_place(unknown & ~fine)}")

    def __str__(self) -> str:
        if self.valid:
            return f"valid: {', '.join(self.checked)}"
        if self.failed:
            return "INVALID: " + "; ".join([*self.failed, *self.unproven])
        return "NOT PROVEN: " + "; ".join(self.unproven)


class SolutionChecker:
    """One solution in the hands of the verifier; staying is one minus leaving, both ways round."""

    def __init__(self, claim: Claim, verdict: Verdict, progress: Callable[[str], None]) -> None:
        self.claim, self.verdict, self.progress = claim, verdict, progress
        self.kind, self.objective, self.policy = claim.kind, claim.objective, claim.policy
        self.turned = -1 if self.kind == "Globally" else 1
        self.discount = float(self.objective.get("discount", 1.0))
        self.zeros: FloatArray = np.zeros(claim.model.states)
        self.stop, self.pay = self.zeros > 0.0, self.zeros  # where it is over, and worth what

    def run(self) -> None:
        """Make the checks that fit the objective."""
        given = self.objective  # any number of steps: it is compared before it is counted with
        steps = 1 if self.kind == "Next" else given.get("steps", given.get("step"))
        steps = given.get("latest", steps)
        rules = given.get("earliest", given.get("budget", 0)) + 1 if steps is None else steps
        fits = not rules or len(self.policy) == rules
        need(fits, "policy: must have a rule per step or payment, and a last one if for ever")
        self._open()
        if self.kind in ("Reach", "Until", "Globally"):
            self._until()
        elif self.kind in ("Next", "Cumulative", "Instantaneous"):
            self._horizon()
        else:
            self._for_ever()

    def _open(self) -> None:
        """Read who plays, and for what."""
        claim = self.claim
        agent, nature = self.turned * claim.agent, self.turned * claim.nature
        self.game = Game(
            claim.written, agent, nature, claim.paid() if self.kind in REWARDED else None
        )
        if self.kind == "LongRunShare":
            self.game.reward = claim.states["target"][self.game.state].astype(np.float64)

    def _for_ever(self) -> None:
        """Make the checks of what has no last step, but for probabilities of reaching."""
        if self.kind == "Parity":
            self._blocks()
        elif self.kind in ("LongRunAverage", "LongRunShare"):
            self._average()
        elif self.kind == "BudgetUntil":
            inner = unfolded(self.claim)
            for side, bound in self.claim.bounds.items():  # no closer than before any payment
                first = inner.bounds[side][: len(bound)]
                follows = side * bound >= side * first
                self.verdict.states(follows, f"{side_name(side)} bound by payments")
            SolutionChecker(inner, self.verdict, self.progress).run()
        elif self.kind == "Discounted":
            self._inductive(self.claim.bounds, 0)
        else:
            self.stop = self.claim.states.get("target", self.stop)
            if not (self.game.reward < 0.0)[self.game.open_rows(self.stop)].any():
                self._inductive(self.claim.bounds, 1 if self.kind == "ReachReward" else -1)
            else:
                need(self.kind == "ReachReward", "rewards: must not be negative here")
                self._mixed()

    def _until(self) -> None:
        """Probabilities of reaching: unbounded by induction, within steps by steps."""
        sets = self.claim.states
        target = sets["target"] if "target" in sets else ~sets["stay"]
        stay = sets["stay"] if self.kind == "Until" else np.ones_like(target)
        self.stop = target | ~stay
        self.pay = target.astype(np.float64)
        latest = self.objective.get("latest")
        earliest = self.objective.get("earliest", 0)
        before = (~stay, self.zeros)
        if latest is not None:
            steps = [(self.stop, self.pay)] * (latest - earliest) + [before] * earliest
            self._steps(steps, {-1: self.pay, 1: self.pay}, self.policy)
        else:
            self._reached([before] * earliest)

    def _reached(self, before: list[Step]) -> None:
        """Check probabilities of reaching at any time after some steps."""
        proof = dict(self.claim.witness)
        if not proof and not before:  # the claims are their own proof
            proof = {self.turned * side: self._turned(b, self.turned * side)
                     for side, b in self.claim.bounds.items()}  # fmt: skip
        self._inductive(proof, -1)
        proven = {-1: self.zeros, 1: self.zeros + 1.0}
        proven |= {side: np.clip(bound, 0.0, 1.0) for side, bound in proof.items()}
        self._steps(before, proven, self.policy[:-1])

    def _blocks(self) -> None:
        """Prove a parity objective block by block, each with the bounds of those before it.

        A block is won or lost by staying in it for ever; a won one is proven as one minus losing
        it. See docs/soundness.md.
        """
        claim = self.claim
        assert claim.block is not None
        assert claim.path is not None  # a parity objective is that of a product
        need(len(claim.block) == 2, "block: must be one per side and state")
        if not claim.witness:  # bounds of other sets, around Lp balls or inside
            self.verdict.unproven.append("bounds by polytopes around Lp balls")
        game = self.game
        for side, bound in claim.bounds.items() if claim.witness else ():
            need(side in claim.witness, "witness: must be there for every bound")
            block = claim.block[int(side > 0)]
            self.game = self._facing(side, game)
            self.game.allow(self.policy[-1] if claim.fixed or side == -claim.agent else None)
            for number in np.unique(block[block >= 0]).tolist():
                self._block(side, bound, block, number)
            claimed = (block < 0) & (bound > 0.0 if side < 0 else bound < 1.0)
            if claimed.any():
                self._surely(side, bound, claimed)

    def _facing(self, side: int, game: Game) -> Game:
        """Return the game in which a side is proven: if nature helps, she may keep to some sets."""
        fields = self.claim.fields.within("restriction.")
        if self.claim.nature != -side or not fields.has("places"):
            return game
        try:
            model = restricted(self.claim.written, fields)
        except Undecided:
            self.verdict.unproven.append("that nature can keep to the sets of the file")
            return game
        return Game(model, self.claim.agent, self.claim.nature, None)

    def _surely(self, side: int, bound: FloatArray, claimed: BoolArray) -> None:
        """Prove that some states are won, by those whose win a side claims, almost surely.

        Then a lower bound holds up to one, and an upper one down to zero.
        """
        claim = self.claim
        assert claim.path is not None
        self.game.agent, self.game.nature = claim.agent, claim.nature
        winning = Winning(self.game, claim.path.priority, -side)
        won = winning.everywhere() & (side * bound >= min(side, 0))
        unknown = np.full_like(claimed, winning.doubt)
        self.verdict.states((won & ~unknown) | ~claimed, f"{side_name(side)} bound almost surely",
                            unknown)  # fmt: skip

    def _block(self, side: int, bound: FloatArray, block: IntArray, number: int) -> None:
        """Prove one side of one block."""
        claim, won = self.claim, number % 2 == 1
        assert claim.path is not None
        inside, proof = block == number, claim.witness[side]
        later = self.game.touch(block > number) & self.game.open_rows(~inside)
        need(not later.any(), "block: a move leads to a later one")
        if won == (side < 0):
            pure = (claim.path.priority[inside] % 2 == (0 if won else 1)).all()
            if not pure and not Winning(self.game, claim.path.priority, side).nowhere(inside):
                word = "won" if won else "lost"
                self.verdict.unproven.append(f"that a play which stays in block {number} is {word}")
                return
        self.turned = -1 if won else 1
        self.game.agent, self.game.nature = self.turned * claim.agent, self.turned * claim.nature
        self.stop, self.pay = ~inside, self._turned(bound, side)  # for rounding, a little less
        beyond = exceeds(bound, proof, self.turned * side, self.turned)
        self._inductive({self.turned * side: np.where(inside, proof, self.pay)}, -1)
        self.verdict.states(~(beyond & inside), f"{side_name(side)} bound from its proof")

    def _turned(self, bound: FloatArray, side: int) -> FloatArray:
        """Return a bound as the game has it; 1 - bound is rounded away from a side."""
        if self.turned > 0:
            return bound
        exact = (bound == 0.0) | (bound == 1.0)
        return np.where(exact, 1.0 - bound, np.nextafter(1.0 - bound, -side * np.inf))

    def _horizon(self) -> None:
        """Next, cumulative and instantaneous rewards by their steps."""
        start, steps = self.zeros, 1
        if self.kind == "Next":
            start = self.claim.states["target"].astype(np.float64)
        elif self.kind == "Instantaneous":
            start, steps = self.claim.reward[0], self.objective["step"]
        else:
            steps = self.objective["steps"]
        self._steps([(self.stop, self.zeros)] * steps, {-1: start, 1: start}, self.policy)

    def _steps(self, steps: list[Step], proven: dict[int, FloatArray], policy: IntArray) -> None:
        """Compare claims with steps back from proven bounds, the first at the end.

        All steps are made again, rounded outwards. Where floats do not suffice for a claim, they
        are counted in fractions if they are few.
        """
        for place, claim in self.claim.bounds.items():
            side = self.turned * place
            rules = list(policy[: len(steps)][::-1]) if self._by_policy(side) else None
            short = wrong = exceeds(
                claim, self._back(proven[side], side, steps, rules, False), side, self.turned
            )
            if short.any():
                exact = len(steps) * self.game.model.rows <= FRACTIONS
                if exact:
                    value = self._back(proven[side], side, steps, rules, True)
                    short = exceeds(claim, value, side, self.turned)
                other = self._back(proven[-side], -side, steps, rules, exact)
                wrong = exceeds(claim, other, side, self.turned)
            self.verdict.states(~short, f"{side_name(place)} bound by steps", short & ~wrong)

    def _back(
        self, value: FloatArray, side: int, steps: list[Step], rules: list[IntArray] | None,
        exact: bool,
    ) -> FloatArray:  # fmt: skip
        """Return bounds, on a side, of the value all steps earlier, by rules or the best rows."""
        steady = False  # the last step changed nothing
        for k, (fixed, worth) in enumerate(steps):
            rule = None if rules is None else rules[k]
            same = rules is None or np.array_equal(rules[k], rules[k - 1])
            if steady and fixed is steps[k - 1][0] and same:
                continue
            self.progress(f"step {k + 1} of {len(steps)}, {side_name(side)}")
            self.game.allow(rule)
            best = self.game.backup(value, side, self.discount, self.game.open_rows(fixed), exact)
            before, value = value, np.where(fixed, worth, best)
            steady = np.array_equal(before, value)
        return value

    def _by_policy(self, side: int) -> bool:
        """Return whether a side is claimed of the policy alone: its guarantee, or both."""
        return self.claim.fixed or side == -self.turned * self.claim.agent

    def _begin(self, side: int) -> None:
        """Go on to a side: of the policy alone, the agent may take its last rule only."""
        self.progress(f"{side_name(side)} bound")
        self.game.allow(self.policy[-1] if self._by_policy(side) else None)

    def _inductive(self, bounds: dict[int, FloatArray], strict: int) -> None:
        """Check bounds of an unbounded objective; `strict` is the side that must gain."""
        for side, claim in sorted(bounds.items()):
            self._begin(side)
            bound = self._filled(np.where(self.stop, self.pay, claim), side, strict)
            holds = side * claim >= side * bound
            self.verdict.states(holds | ~self.stop, f"{side_name(side)} bound where known")
            if strict and side > 0:
                self.verdict.states(bound >= 0.0, "upper bounds are not negative")
            trivial = self.stop.copy()
            if strict:
                zero = side < 0  # nothing is claimed there
                trivial |= (zero & (bound <= 0.0)) | self._infinite(bound, side)
            signs, fine, doubt = self._signs(bound, side, trivial, HOLD)
            if side == strict and fine.all():
                fine = gaining(self.game, signs, bound, trivial, side)
            self.verdict.states(fine, f"{side_name(side)} bound by induction", doubt)

    def _mixed(self) -> None:
        """Check bounds of a reward of both signs to a target: they must gain in every step.

        From above, those who minimise must be able to force the target as well.
        """
        for side, claim in sorted(self.claim.bounds.items()):
            self._begin(side)
            bound = np.where(self.stop, 0.0, claim)
            self.verdict.states(
                side * claim >= side * bound, f"{side_name(side)} bound where known"
            )
            vague = np.isneginf(bound)
            if side < 0 and (vague | self.stop).all():
                continue  # nothing is claimed
            need(not vague.any(), "lower: must be finite everywhere, or nowhere")
            trivial = self.stop | self._infinite(bound, side)
            _, fine, doubt = self._signs(bound, side, trivial, GAIN)
            if side > 0:
                misses, unknown = missing(self.game, self.stop)
                fine &= trivial | ~(misses | unknown)
                doubt = (doubt & (trivial | ~misses)) | unknown
            self.verdict.states(fine, f"{side_name(side)} bound by gains", doubt)

    def _signs(
        self, bound: FloatArray, side: int, trivial: BoolArray, least: int
    ) -> tuple[AnyArray, BoolArray, BoolArray]:
        """Return the signs of rows, where (S,) they are at least some, and where that is open."""
        rows = self.game.open_rows(trivial)
        signs = self.game.signs(bound, side, self.discount, rows)
        unknown = (signs == UNKNOWN) & rows
        helps, there = self.game.agent == -side, self.game.allowed
        fine = trivial | self.game.enough(signs >= least, helps, there)
        doubt = trivial | self.game.enough((signs >= least) | unknown, helps, there)
        return signs, fine, doubt & bool(unknown.any())

    def _average(self) -> None:
        """Check bounds of a mean in the long run by their witnesses."""
        for side, claim in sorted(self.claim.bounds.items()):
            need(side in self.claim.witness, f"witness: must have the {side_name(side)} side")
            bias = self.claim.witness[side]
            need(np.isfinite(claim).all() and np.isfinite(bias).all(), "bounds: must be finite")
            self._begin(side)
            fine, possible = long_run(self.game, claim, bias, side)
            self.verdict.states(fine, f"{side_name(side)} bound of the mean", possible)

    def _filled(self, bound: FloatArray, side: int, strict: int) -> FloatArray:
        """Return a bound with a true number where it says nothing at all."""
        vague = np.isinf(bound) & (np.sign(bound) == side)
        if strict:  # values are not negative
            end = 0.0 if side < 0 else 1.0 if self.kind in PROBABILITIES else np.inf
        else:
            most = max(float((side * self.game.reward).max()), 0.0)
            end = side * (2.0 * most / (1.0 - self.discount) + 1.0)
        return np.where(vague, end, bound)

    def _infinite(self, bound: FloatArray, side: int) -> BoolArray:
        """Return the states of infinite bound, after checking that lower ones are infinite."""
        claimed = np.isposinf(bound)
        if side < 0 and claimed.any():
            infinite, unknown = np.zeros_like(claimed), False
            if self.kind == "Total":
                infinite, unknown = recurrent(self.game, self.game.reward > 0.0)
            elif self.kind == "ReachReward":
                infinite, unknown = missing(self.game, self.stop)
            infinite = ~claimed | (infinite & (not unknown))
            self.verdict.states(infinite, "infinite where claimed", claimed & unknown)
        return claimed


def exceeds(claim: FloatArray, value: FloatArray, side: int, turned: int) -> BoolArray:
    """Return where claims, or exactly one minus them, are beyond a value as seen from a side."""
    with np.errstate(invalid="ignore", over="ignore"):
        if turned > 0:
            return ~(side * claim >= side * value)  # so is what is no number
        total, error = two_sum(claim, value)
        return ~(side * ((total - 1.0) + np.where(np.isinf(total), 0.0, error)) <= 0.0)


def side_name(side: int) -> str:
    """Return the name of a side."""
    return "upper" if side > 0 else "lower"


def _place(chosen: BoolArray) -> str:
    states = np.flatnonzero(chosen)
    more = f" and {len(states) - 1} more" if len(states) > 1 else ""
    return f" at state {states[0]}{more}" if len(states) else ""
