"""Check a result again, by plain means that share nothing with the solver.

The bounds of a solution are proofs: put into the Bellman operator once, they show that they hold.
Here every row is looked at with *all* products of the vertices of its sets, by one matrix product
per set; a comparison that floats cannot decide is made in extended precision, and then in
fractions. Nothing of `inner`, `outer` or `kernels` is used; a file is read by `rfmdp.files`,
vertices come from `uncertainty`. What is checked, with b the bound, "helping" those who pull the
value towards proving it (the agent by its policy alone, on the side of its guarantee) and
"opposing" the others:

- discounted: b against T(b). Finite horizons: all steps again. Both are complete.
- loose sides (upper of reach and total, lower of reward to a target): b against T(b).
- strict sides: as well, and from every state the helping can make the bound gain, or end, with
  positive probability in some number of steps, whatever the opposing do (a plain fixpoint).
- infinite lower bounds: a nested fixpoint over supports.

Cost: the number of vertex products, of all rows, times the outcomes of one set; each of the seven
domains in seconds to a minute. Rows with more than `PRODUCTS` products are refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rfmdp.errors import FileError
from rfmdp.formats.files import load_record
from rfmdp.formats.records import model_from_record
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.validate import validate
from rfmdp.record import to_record
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.verification.game import Game

Progress = Callable[[str], None]


@dataclass(slots=True)
class Verdict:
    """What was checked, and what failed."""

    checked: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def valid(self) -> bool:
        """Whether everything holds."""
        return not self.failed

    def note(self, holds: bool, what: str, where: str = "") -> None:
        """Enter a check."""
        self.checked.append(what)
        if not holds:
            self.failed.append(f"{what}: does not hold{where}")

    def __str__(self) -> str:
        if self.valid:
            return f"valid: {', '.join(self.checked)}"
        return "INVALID: " + "; ".join(self.failed)


def verify(result: object | str | os.PathLike[str], progress: Progress | None = None) -> Verdict:
    """Check the bounds and the policy of a solution, or of a file that holds one.

    Raises
    ------
    FileError
        If the file is damaged or holds something else.
    UnsupportedError
        If a set has no vertices, or a row too many products of them.
    """
    path = isinstance(result, str | os.PathLike)
    kind, header, arrays = load_record(result) if path else to_record(result)  # type: ignore[arg-type]
    if kind != "solution":
        raise FileError(f"verify: must be a solution, is a {kind}.")
    own = {n[len("model.") :]: a for n, a in arrays.items() if n.startswith("model.")}
    model = model_from_record(header["model"], own)
    verdict = Verdict()
    verdict.note(validate(model).valid, "model")
    if not verdict.valid:
        return verdict
    _Checker(model, header, arrays, verdict, progress or (lambda what: None)).run()
    return verdict


class _Checker:
    """One solution in the hands of the verifier."""

    def __init__(
        self,
        model: FactoredMDP,
        header: Mapping[str, Any],
        arrays: Mapping[str, AnyArray],
        verdict: Verdict,
        progress: Progress,
    ) -> None:
        self.model, self.header, self.arrays = model, header, arrays
        self.verdict, self.progress = verdict, progress
        self.objective = dict(header["objective"])
        self.kind = self.objective["type"]
        self.bounds = {+1: arrays.get("upper"), -1: arrays.get("lower")}
        self.proof = {
            side: arrays.get(f"witness.{_name(side)}") for side in (-1, 1) if header["witness"]
        }
        self.policy = arrays["policy"]
        self.game = Game(model, _sign(header["agent"]), _sign(header["nature"]))
        self.target = self.stop = np.zeros(model.states, dtype=np.bool_)
        self.pay: FloatArray = np.zeros(model.states)

    def run(self) -> None:
        """Make all checks that fit the objective."""
        self._plain_checks()
        if not self.verdict.valid:
            return
        if self.kind == "Globally":
            self._turn_globally()
        if self.kind in ("ReachReward", "Cumulative", "Discounted", "Total"):
            rewards = self.model.reward(self.objective["reward"])
            self.game.reward = rewards.row + rewards.state[self.game.row_state]
        if self.kind in ("Reach", "Until"):
            self._until()
        elif self.kind in ("ReachReward", "Total"):
            if self.kind == "ReachReward":
                self.target = self.stop = self._set("target")
            self._inductive(1 if self.kind == "ReachReward" else -1, self.policy[0])
        elif self.kind == "Discounted":
            self._inductive(0, self.policy[0], self.objective["discount"])
        else:
            self._horizon()

    def _plain_checks(self) -> None:
        model, lower, upper = self.model, self.bounds[-1], self.bounds[1]
        fits = self.policy.ndim == 2 and self.policy.shape[1] == model.states
        if fits:
            first, last = model.row_ptr[:-1], model.row_ptr[1:]
            fits = bool(np.all((self.policy >= first) & (self.policy < last)))
        self.verdict.note(fits, "policy takes own rows")
        fine = all(
            b is None or (b.shape == (model.states,) and self._sensible(b, side))
            for own in (self.bounds, self.proof)
            for side, b in own.items()
        )
        if fine and lower is not None and upper is not None:
            fine = bool(np.all(lower <= upper))
        self.verdict.note(fine, "lower <= upper")
        status, both = self.header["status"], lower is not None and upper is not None
        self.verdict.note(status != "CERTIFIED" or both, "certified only with both sides")

    def _sensible(self, bound: AnyArray, side: int) -> bool:
        """Return whether a bound has numbers only, or infinity where that can be its meaning."""
        never = -np.inf if side > 0 else np.inf
        if side < 0 and self.kind in ("ReachReward", "Total"):
            never = np.nan
        return not (np.isnan(bound) | (bound == never)).any()

    def _set(self, name: str) -> BoolArray:
        """Return a set of states of the objective."""
        given = self.objective.get(name)
        if isinstance(given, str):
            return self.model.label(given)
        return np.asarray(self.arrays[f"states.{name}"], dtype=np.bool_)

    def _turn_globally(self) -> None:
        """Make it the opposite until: one minus the bounds, directions and sides swapped."""
        lower, upper = self.bounds[-1], self.bounds[1]
        one = np.longdouble(1.0)  # 1 - b must not be rounded as b was
        self.bounds = {
            +1: None if lower is None else one - lower,
            -1: None if upper is None else one - upper,
        }
        game = self.game
        game.agent, game.nature, self.kind = -game.agent, -game.nature, "Until"
        bad = ~self._set("stay")
        everywhere = np.ones(self.model.states, dtype=np.bool_)
        self.arrays = {**self.arrays, "states.target": bad, "states.stay": everywhere}
        self.objective = {**self.objective, "target": None, "stay": None}

    def _until(self) -> None:
        """Probabilities of reaching: unbounded by induction, within steps by steps."""
        self.target = self._set("target")
        everywhere = np.ones(self.model.states, dtype=np.bool_)
        stay = self._set("stay") if self.kind == "Until" else everywhere
        self.stop = self.target | ~stay
        self.pay = self.target.astype(np.float64)
        latest, earliest = self.objective.get("latest"), self.objective.get("earliest", 0)
        nothing = np.zeros(self.model.states)
        before = (~stay, nothing)
        if latest is not None:
            inside = (self.stop, self.pay)
            self._steps([inside] * (latest - earliest) + [before] * earliest, self.pay, self.pay)
            return
        if not self.proof:  # the claims are their own proof
            self._inductive(-1, self.policy[-1])
            return
        claimed, self.bounds = self.bounds, self.proof
        self._inductive(-1, self.policy[-1])
        self.bounds = claimed
        low, high = (nothing if self.proof[s] is None else self.proof[s] for s in (-1, 1))
        self._steps([before] * earliest, np.asarray(low), np.asarray(high))

    def _horizon(self) -> None:
        """Next, cumulative and instantaneous rewards by their steps."""
        model = self.model
        nowhere = (np.zeros(model.states, dtype=np.bool_), np.zeros(model.states))
        if self.kind == "Next":
            goal = self._set("target").astype(np.float64)
            self._steps([nowhere], goal, goal)
        elif self.kind == "Instantaneous":
            start = model.reward(self.objective["reward"]).state
            self._steps([nowhere] * self.objective["step"], start, start)
        else:
            zero = np.zeros(model.states)
            steps = [nowhere] * self.objective["steps"]
            self._steps(steps, zero, zero, self.objective["discount"])

    def _steps(
        self,
        steps: list[tuple[BoolArray, FloatArray]],
        low: FloatArray,
        high: FloatArray,
        discount: float = 1.0,
    ) -> None:
        """Step back from proven bounds in extended precision and compare."""
        for side, start in ((-1, low), (1, high)):
            claim = self.bounds[side]
            if claim is None:
                continue
            value: AnyArray = start.astype(np.longdouble)
            error = 0.0
            for number, (fixed, given) in enumerate(steps):
                self.progress(f"step {number + 1} of {len(steps)}, {_name(side)}")
                rule = self.policy[len(steps) - 1 - number] if side == -self.game.agent else None
                q, rounding = self.game.backup(value, discount)
                value = np.where(fixed, given, self.game.pick(q, rule))
                error = discount * error + rounding
            bad = side * (claim - value) < -error - 1e-18 * np.abs(value)
            self._report(~bad, f"{_name(side)} bound by {len(steps)} steps")

    def _inductive(self, strict: int, policy: IntArray, discount: float = 1.0) -> None:
        """Check both bounds of an unbounded objective; `strict` is the side that must gain."""
        for side in (-1, 1):
            claim = self.bounds[side]
            if claim is None:
                continue
            self.progress(f"{_name(side)} bound")
            bound = np.where(self.stop, self.pay, claim)
            known = claim >= bound if side > 0 else claim <= bound
            self._report(known, f"{_name(side)} bound where known")
            rule = policy if side == -self.game.agent else None
            trivial = self.stop | (bound == (np.inf if side > 0 else 0.0 if strict else -np.inf))
            if strict == 1 and side < 0:
                trivial = trivial | self._check_infinite(bound, rule)
            if strict == -1 and side < 0 and np.isinf(bound).any():
                trivial = trivial | self._check_infinite(bound, rule)
            asked = ~trivial[self.game.row_state]
            if rule is not None:
                asked &= np.isin(np.arange(self.model.rows), rule)
            signs = self.game.signs(bound, side, discount, asked)
            if side == strict:
                fine = self.game.gaining(signs, trivial, side, rule)
            else:
                good = [s >= 0 for s in signs]
                fine = trivial | self.game.players(good, side, rule)
            self._report(fine, f"{_name(side)} bound by induction")

    def _check_infinite(self, bound: FloatArray, rule: IntArray | None) -> BoolArray:
        """Return the states of infinite lower bound, after checking that they are infinite."""
        claimed = np.isinf(bound)
        if not claimed.any():
            return claimed
        if self.kind == "Total":
            infinite = self.game.recurrent(self.game.reward > 0.0, rule)
        else:
            infinite = ~self.game.sure(self.target, rule)
        self._report(~claimed | infinite, "infinite where claimed")
        return claimed

    def _report(self, fine: AnyArray, what: str) -> None:
        """Enter a check of all states, naming the first that fails."""
        bad = np.flatnonzero(~np.asarray(fine, dtype=np.bool_))
        where = f" at {self.model.state_name(int(bad[0]))}" if len(bad) else ""
        more = f" and {len(bad) - 1} more states" if len(bad) > 1 else ""
        self.verdict.note(not len(bad), what, where + more)


def _sign(name: str) -> int:
    return 1 if name == "MAX" else -1


def _name(side: int) -> str:
    return "upper" if side > 0 else "lower"
