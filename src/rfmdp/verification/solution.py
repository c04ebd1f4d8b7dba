"""Check a result again, by plain means that share nothing with the solver.

The bounds of a solution are proofs: put into the Bellman operator once, they show that they hold.
Nothing of `inner`, `outer`, `kernels` or `sets` is used: a file is unpacked by `formats.archive`
and looked at by `reading`. Only what is proven here is accepted, state by state. With b the bound,
"helping" those who pull the value towards proving it (the agent by its policy alone, on the side of
its guarantee) and "opposing" the others:

- discounted: b against T(b). Finite horizons: all steps again.
- loose sides (upper of reach and total, lower of reward to a target): b against T(b).
- strict sides: as well, and from every state the helping can make the bound gain, or end, with
  positive probability in some number of steps, whatever the opposing do (a plain fixpoint).
- infinite lower bounds: a nested fixpoint over what is possible.

What these means cannot decide, too many products of sets without vertices for instance, is said to
be not proven, and the verdict is not "valid".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rfmdp.errors import FileError
from rfmdp.formats.archive import read_archive
from rfmdp.ragged import entries
from rfmdp.record import Record, to_record
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.verification.gains import FAIL, HOLD, UNKNOWN
from rfmdp.verification.game import FRACTIONS, Game
from rfmdp.verification.linear import two_sum
from rfmdp.verification.reading import Claim, Fault, need, read_claim, states_of

Progress = Callable[[str], None]
RESOLUTION = 2.0**-40  # of the largest value: a width that counts as closed at every precision
ROUNDING = 2.0**-50  # of a probability that was turned round


@dataclass(slots=True)
class Verdict:
    """What was checked, what does not hold, and what could not be proven here."""

    checked: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)

    @property
    def valid(self) -> bool:
        """Whether everything was proven."""
        return bool(self.checked) and not self.failed and not self.unproven

    def note(self, holds: bool, what: str, where: str = "") -> None:
        """Enter a check."""
        self.checked.append(what)
        if not holds:
            self.failed.append(f"{what}: does not hold{where}")

    def __str__(self) -> str:
        if self.valid:
            return f"valid: {', '.join(self.checked)}"
        if self.failed:
            return "INVALID: " + "; ".join([*self.failed, *self.unproven])
        return "NOT PROVEN: " + "; ".join(self.unproven)


def verify(result: object | str | os.PathLike[str], progress: Progress | None = None) -> Verdict:
    """Check the claims of a solution or a learning run, or of a file that holds one.

    Raises
    ------
    FileError
        If the file is damaged or holds something else.
    """
    kind, header, arrays = _record(result)
    if kind not in ("solution", "learning run"):
        place = result if isinstance(result, str | os.PathLike) else "verify"
        raise FileError(
            f"{place}: must hold a solution or a learning run, holds a {kind}; give a file that "
            "`rfmdp solve -o` or `rfmdp learn -o` wrote."
        )
    verdict = Verdict()

    def check_solution(claim: Claim, own: Mapping[str, AnyArray]) -> None:
        verdict.note(True, "fields")
        _Checker(claim, own, verdict, progress or (lambda what: None)).run()

    try:
        if kind == "solution":
            check_solution(read_claim(header, arrays), arrays)
        else:
            # here, because it loads SciPy, which solutions do not need
            from rfmdp.verification.learning import check_run

            check_run(header, arrays, verdict.note, verdict.unproven.append, check_solution)
    except Fault as fault:
        verdict.failed.append(str(fault))
    except KeyError as missing:
        verdict.failed.append(f"{missing.args[0]}: is missing")
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        verdict.failed.append(f"fields: must be of other types ({error})")
    return verdict


def _record(result: object | str | os.PathLike[str]) -> Record:
    """Return what is in a file, or would be in that of a result."""
    if isinstance(result, str | os.PathLike):
        place = Path(result)
        try:
            with place.open("rb") as file:
                return read_archive(place, file)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise FileError(f"{place}: cannot be read ({reason}); check the name.") from error
    import rfmdp.formats.files  # noqa: F401  registers what can be written

    return to_record(result)


class _Checker:
    """One solution in the hands of the verifier."""

    def __init__(
        self, claim: Claim, arrays: Mapping[str, AnyArray], verdict: Verdict, progress: Progress
    ) -> None:
        self.claim, self.arrays, self.verdict, self.progress = claim, arrays, verdict, progress
        self.model, self.kind, self.objective = claim.model, claim.kind, claim.objective
        self.bounds, self.policy = dict(claim.bounds), claim.policy
        turned = -1 if self.kind == "Globally" else 1
        self.game = Game(claim.model, turned * claim.agent, turned * claim.nature)
        self.nowhere = np.zeros(self.model.states, dtype=np.bool_)
        self.stop = self.nowhere
        self.pay: FloatArray = np.zeros(self.model.states)

    def run(self) -> None:
        """Make all checks that fit the objective."""
        self._plain_checks()
        if self.verdict.failed:
            return
        if self.kind in ("ReachReward", "Cumulative", "Discounted", "Total"):
            state, row = self.model.reward(self.objective.get("reward"))
            with np.errstate(over="ignore"):
                self.game.reward = row + state[self.game.row_state]
            need(np.isfinite(self.game.reward).all(), "rewards: must be finite together")
        if self.kind in ("ReachReward", "Total"):
            need((self.game.reward >= 0.0).all(), "rewards: must not be negative here")
        if self.kind in ("Reach", "Until", "Globally"):
            self._until()
        elif self.kind in ("ReachReward", "Total"):
            if self.kind == "ReachReward":
                self.stop = states_of(self.claim, self.arrays, "target")
            self._stationary()
            self._inductive(self.bounds, 1 if self.kind == "ReachReward" else -1)
        elif self.kind == "Discounted":
            self._stationary()
            self._inductive(self.bounds, 0, float(self.objective["discount"]))
        else:
            self._horizon()

    def _plain_checks(self) -> None:
        """Look at what can be told from the numbers alone."""
        claim = self.claim
        lower, upper = claim.bounds.get(-1), claim.bounds.get(1)
        if lower is not None:
            finite = self.kind not in ("ReachReward", "Total")
            self._report((lower < np.inf) | (not finite), "lower bounds may be infinite there")
            self._report(lower <= claim.value, "lower <= value")
        if upper is not None:
            self._report(upper > -np.inf, "upper bounds are above minus infinity")
            self._report(claim.value <= upper, "value <= upper")
        if lower is not None and upper is not None:
            self._report(lower <= upper, "lower <= upper")
        if claim.status == "CERTIFIED":
            both = lower is not None and upper is not None
            self.verdict.note(both, "certified only with both sides")
            if lower is not None and upper is not None:
                self._closed(lower, upper)

    def _closed(self, lower: FloatArray, upper: FloatArray) -> None:
        """Check the width where it counts: precision times the value, or 2^-40 of the largest.

        The probability of staying for ever is solved as that of leaving, to the same precision.
        """
        claim, slack = self.claim, 0.0
        if self.kind == "Globally":
            lower, upper, slack = 1.0 - upper, 1.0 - lower, ROUNDING
        both = np.isfinite(lower) & np.isfinite(upper)
        size = np.where(both, np.maximum(np.abs(lower), np.abs(upper)), 0.0)
        scale = float(size.max(initial=1.0 if self._probability() else 0.0))
        wanted = claim.precision * (1.0 if claim.absolute else size)
        with np.errstate(invalid="ignore"):
            width = np.where(lower == upper, 0.0, upper - lower)
        fine = width <= np.maximum(wanted, RESOLUTION * scale) * (1.0 + ROUNDING) + slack
        self._report(fine | ~claim.interest, "bounds as close as certified")

    def _probability(self) -> bool:
        """Return whether values are probabilities."""
        if self.kind == "Instantaneous":
            state, _ = self.model.reward(self.objective.get("reward"))
            return bool(np.all((state >= 0.0) & (state <= 1.0)))
        if self.kind == "Cumulative":
            state, row = self.model.reward(self.objective.get("reward"))
            return not state.any() and not row.any()
        return self.kind in ("Reach", "Until", "Globally", "Next")

    def _stationary(self) -> None:
        need(len(self.policy) == 1, "policy: must be one rule")

    def _until(self) -> None:
        """Probabilities of reaching: unbounded by induction, within steps by steps.

        Staying is one minus leaving, with directions and sides turned.
        """
        everywhere = ~self.nowhere
        if self.kind == "Globally":
            target, stay = ~states_of(self.claim, self.arrays, "stay"), everywhere
        else:
            target = states_of(self.claim, self.arrays, "target")
            until = self.kind == "Until"
            stay = states_of(self.claim, self.arrays, "stay") if until else everywhere
        self.stop = target | ~stay
        self.pay = target.astype(np.float64)
        latest, earliest = self.objective.get("latest"), self.objective.get("earliest", 0)
        before = (~stay, np.zeros(self.model.states))
        if latest is not None:
            self._rule_per_step(latest)
            inside = (self.stop, self.pay)
            steps = [inside] * (latest - earliest) + [before] * earliest
            self._steps(steps, {-1: self.pay, 1: self.pay}, self.policy)
            return
        proof = dict(self.claim.witness)
        if not proof and self.kind != "Globally" and not earliest:
            proof = self.bounds  # the claims are their own proof
        elif not proof and not earliest:
            proof = {-side: self._turned(b, -side) for side, b in self.bounds.items()}
        need(len(self.policy) == earliest + 1, "policy: must have a rule per step and a last one")
        self._inductive(proof, -1)
        known = {-1: np.zeros(self.model.states), 1: np.ones(self.model.states)}
        for side, bound in proof.items():
            known[side] = np.clip(bound, 0.0, 1.0)
        self._steps([before] * earliest, known, self.policy[:-1])

    def _rule_per_step(self, steps: int) -> None:
        """Compare before a number of steps, which may be any, is counted with."""
        need(not steps or len(self.policy) == steps, "policy: must have a rule per step")

    def _turned(self, bound: FloatArray, side: int) -> FloatArray:
        """Return 1 - bound, rounded so that it claims no less."""
        turned = 1.0 - bound
        exact = (bound == 0.0) | (bound == 1.0)
        return np.where(exact, turned, np.nextafter(turned, -side * np.inf))

    def _horizon(self) -> None:
        """Next, cumulative and instantaneous rewards by their steps."""
        nothing = (self.nowhere, np.zeros(self.model.states))
        start, steps, discount = np.zeros(self.model.states), 1, 1.0
        if self.kind == "Next":
            start = states_of(self.claim, self.arrays, "target").astype(np.float64)
        elif self.kind == "Instantaneous":
            start, _ = self.model.reward(self.objective.get("reward"))
            steps = self.objective["step"]
        else:
            steps, discount = self.objective["steps"], float(self.objective.get("discount", 1.0))
        self._rule_per_step(steps)
        self._steps([nothing] * steps, {-1: start, 1: start}, self.policy, discount)

    def _steps(
        self,
        steps: list[tuple[BoolArray, FloatArray]],
        known: dict[int, FloatArray],
        policy: IntArray,
        discount: float = 1.0,
    ) -> None:
        """Step back from proven bounds, rounding outwards, and compare.

        Where floats do not suffice for a claim, the rows that it hangs on are counted exactly.
        """
        turned = -1 if self.kind == "Globally" else 1
        nothing = [np.zeros(self.model.rows, dtype=np.bool_)] * len(steps)
        for side in (-1, 1):
            claim = self.bounds.get(turned * side)
            if claim is None:
                continue
            rules = policy if self._by_policy(side) else None
            what = f"{_name(side * turned)} bound by steps"
            value = self._walk(steps, known[side], rules, side, discount, nothing)
            short = _beyond(claim, value, side, turned) > 0.0
            cone = self._cone(steps, rules, short) if short.any() else None
            if cone is not None:
                value = self._walk(steps, known[side], rules, side, discount, cone)
                short = _beyond(claim, value, side, turned) > 0.0
            wrong = short
            if short.any():  # by how much nobody can do better says the other side
                other = self._walk(steps, known[-side], rules, -side, discount, cone or nothing)
                wrong = short & (_beyond(claim, other, side, turned) > 0.0)
            self._report(~wrong, what)
            self._leave_open(short & ~wrong, what)

    def _walk(
        self,
        steps: list[tuple[BoolArray, FloatArray]],
        value: FloatArray,
        rules: IntArray | None,
        side: int,
        discount: float,
        exact: list[BoolArray],
    ) -> FloatArray:
        """Return bounds, on a side, of the value some steps earlier; `exact` are rows per step.

        Rows all of whose successors are worth what they were a step before are worth the same.
        """
        done, before = 0, value
        q, known = np.full(self.model.rows, side * np.inf), np.zeros(self.model.rows, np.bool_)
        while done < len(steps):
            fixed, given = steps[done]
            self.progress(f"step {done + 1} of {len(steps)}, {_name(side)}")
            rule = None if rules is None else rules[len(steps) - 1 - done]
            asked = self._asked(fixed, rule)
            changed = value != before
            if 4 * np.count_nonzero(changed) < len(changed):
                known &= ~self.game.rows.touch(changed)
            else:  # finding the others would take as long
                known[:] = False
            todo = asked & (~known | exact[done])
            q[todo] = self.game.backup(value, side, discount, todo, exact[done] & asked)[todo]
            known, before = known | asked, value
            after = np.where(fixed, given, self.game.pick(q, rule))
            same = np.array_equal(after, value)
            value, done = after, done + 1
            while (
                same
                and done < len(steps)
                and steps[done][0] is fixed
                and (
                    rules is None
                    or np.array_equal(rules[len(steps) - 1 - done], rules[len(steps) - done])
                )
            ):
                done += 1
        return value

    def _cone(
        self, steps: list[tuple[BoolArray, FloatArray]], rules: IntArray | None, states: BoolArray
    ) -> list[BoolArray] | None:
        """Return the rows of every step that some states hang on; None if these are many."""
        cone, count = [], 0
        for done in reversed(range(len(steps))):
            rule = None if rules is None else rules[len(steps) - 1 - done]
            rows = self._asked(steps[done][0], rule) & states[self.game.row_state]
            count += int(np.count_nonzero(rows))
            if count > FRACTIONS:
                return None
            cone.append(rows)
            states = np.zeros(self.model.states, dtype=np.bool_)
            states[self.model.successors[entries(self.model.successor_ptr, rows.nonzero()[0])]] = 1
        return cone[::-1]

    def _asked(self, fixed: BoolArray, rule: IntArray | None) -> BoolArray:
        """Return the rows (R,) that count: of states that are not fixed, those of a rule."""
        asked = ~fixed[self.game.row_state]
        return asked if rule is None else asked & self._taken(rule)

    def _by_policy(self, side: int) -> bool:
        """Return whether a side is claimed of the policy alone: its guarantee, or both."""
        return self.claim.fixed or side == -self.game.agent

    def _taken(self, rule: IntArray) -> BoolArray:
        taken = np.zeros(self.model.rows, dtype=np.bool_)
        taken[rule] = True
        return taken

    def _inductive(self, bounds: dict[int, FloatArray], strict: int, discount: float = 1.0) -> None:
        """Check bounds of an unbounded objective; `strict` is the side that must gain."""
        for side, claim in sorted(bounds.items()):
            self.progress(f"{_name(side)} bound")
            what = f"{_name(side)} bound by induction"
            bound = self._filled(np.where(self.stop, self.pay, claim), side, strict, discount)
            known = claim >= bound if side > 0 else claim <= bound
            self._report(known | ~self.stop, f"{_name(side)} bound where known")
            if strict and side > 0:
                self._report(bound >= 0.0, "upper bounds are not negative")
            rule = self.policy[-1] if self._by_policy(side) else None
            trivial = self.stop.copy()
            if strict:
                trivial |= np.isposinf(bound) if side > 0 else bound <= 0.0
                if side < 0:
                    trivial |= self._infinite(bound, rule)
            asked = self._asked(trivial, rule)
            signs = self.game.signs(bound, side, discount, asked)
            fine = trivial | self.game.players(signs >= HOLD, side, rule)
            if side == strict and fine.all():
                fine = self.game.gaining(signs, bound, trivial, side, rule)
            open_ = (signs == UNKNOWN) & asked
            possible = trivial | self.game.players((signs > FAIL) | open_, side, rule)
            self._report(fine | (possible & bool(open_.any())), what)
            self._leave_open(~fine & possible & bool(open_.any()), what)

    def _filled(self, bound: FloatArray, side: int, strict: int, discount: float) -> FloatArray:
        """Return a bound with a true number where it says nothing at all."""
        vague = np.isinf(bound) & (np.sign(bound) == side)
        if strict:  # values are not negative
            ends = (0.0, 1.0 if self.kind in ("Reach", "Until", "Globally") else np.inf)
        else:
            reward = self.game.reward
            least, most = float(reward.min()), float(reward.max())
            ends = (2.0 * min(least, 0.0) / (1.0 - discount) - 1.0,
                    2.0 * max(most, 0.0) / (1.0 - discount) + 1.0)  # fmt: skip
        return np.where(vague, ends[side > 0], bound)

    def _infinite(self, bound: FloatArray, rule: IntArray | None) -> BoolArray:
        """Return the states of infinite lower bound, after checking that they are infinite."""
        claimed = np.isposinf(bound)
        if not claimed.any():
            return claimed
        if self.kind == "Total":
            infinite = self.game.recurrent(self.game.reward > 0.0, rule)
        elif self.kind == "ReachReward":
            infinite = ~self.game.sure(self.stop, rule)
        else:
            infinite = self.nowhere
        self._report(~claimed | infinite, "infinite where claimed")
        return claimed

    def _report(self, fine: AnyArray, what: str) -> None:
        """Enter a check of all states, naming the first that fails."""
        bad = np.flatnonzero(~np.asarray(fine, dtype=np.bool_))
        self.verdict.note(not len(bad), what, self._where(bad))

    def _leave_open(self, open_: AnyArray, what: str) -> None:
        """Enter the states of which nothing was proven."""
        left = np.flatnonzero(open_)
        if len(left):
            self.verdict.unproven.append(f"{what}: not proven{self._where(left)}")

    def _where(self, states: IntArray) -> str:
        more = f" and {len(states) - 1} more" if len(states) > 1 else ""
        return f" at state {states[0]}{more}" if len(states) else ""


def _beyond(claim: FloatArray, value: FloatArray, side: int, turned: int) -> FloatArray:
    """Return by how much claims, perhaps one minus them, exceed what is proven, or less than 0."""
    with np.errstate(invalid="ignore", over="ignore"):
        if turned > 0:
            return np.where(claim == value, 0.0, side * (value - claim))
        total, error = two_sum(claim, value)  # exactly: 1 - claim against value
        return np.asarray(side * ((total - 1.0) + np.where(np.isinf(total), 0.0, error)))


def _name(side: int) -> str:
    return "upper" if side > 0 else "lower"
