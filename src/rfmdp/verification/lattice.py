"""Claims about a model that is kept by its factors: all backward steps again, factor by factor.

The numbers W of what follows are indexed by the next local states of the factors that are left, and
by the current values that were read so far. Contracting a factor takes nature's choice in its set:

from below  she chooses for every fibre (what the other factors do) by itself, which is more than
            she may: W is no more than the least mean
from above  she has one member for all fibres, so that W is attained

Everything is done for nature who minimises; for one who maximises values change their sign. Rows in
which the two sides differ are written out and bounded by `products`, as far as they are not too
many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rfmdp.types import BoolArray, FloatArray, IntArray
from rfmdp.verification.exact import ExactRows
from rfmdp.verification.fields import need
from rfmdp.verification.horizon import Step, exceeds
from rfmdp.verification.lattice_model import FORBIDDEN, Lattice
from rfmdp.verification.margins import TINY, UNIT
from rfmdp.verification.means import RoundedSets
from rfmdp.verification.products import Batch
from rfmdp.verification.reading import Claim
from rfmdp.verification.sets import SINGLETON
from rfmdp.verification.statement import PROBABILITIES

AT_ONCE = 1 << 19  # numbers of W that are contracted together, or a line more
LASTING = 0.5  # probability that a play lasts, up to which steps count
LONGEST = 1 << 14  # steps that are tried
WRITTEN = 1 << 24  # successors of rows that are written out in a step

Sides = dict[int, FloatArray]
"""Bounds (S,): -1 from below, +1 from above."""


@dataclass(slots=True, eq=False)
class _Part:
    """Some rows on their way through the factors: a line per values that were read so far."""

    low: FloatArray  # (N, states of the factors left)
    high: FloatArray
    states: IntArray  # (N,) what the values add to the number of a state
    codes: list[IntArray]  # (N,) what they add to the context of the next factor and of later ones
    actions: IntArray  # whose moves were the same so far


class Contraction:
    """Backward steps of a lattice, rounded outwards."""

    def __init__(
        self, model: Lattice, agent: int, nature: int, pays: FloatArray, classes: IntArray,
        discount: float,
    ) -> None:  # fmt: skip
        self.model, self.agent, self.nature = model, agent, nature
        self.pays, self.classes, self.discount = pays, classes, discount
        self.rounded = RoundedSets(model.sets, ExactRows(model.sets))
        sizes = np.diff(model.target_ptr)
        widths = [max(sizes[np.unique(f.moves[f.moves >= 0])], default=1) for f in model.factors]
        self._rounding = UNIT * sum(5.0 * float(w) + 4.0 for w in widths if w > 1)  # of the span
        self._written = 0

    def back(self, after: Sides, rule: IntArray, by_policy: Callable[[int], bool]) -> Sides:
        """Return bounds before a step; by the rule's actions only on sides that ask for it."""
        sign, model = -self.nature, self.model
        low, high = (after[-1], after[1]) if sign > 0 else (-after[1], -after[-1])
        size = max(float(np.abs(low).max()), float(np.abs(high).max()))
        middle = 0.5 * (low + high)
        half = max(float((high - middle).max()), float((middle - low).max()))
        margin = self._rounding * float(middle.max() - middle.min())
        margin += (len(model.factors) + 4.0) * UNIT * size + TINY * (size > 0.0)
        # a step does not widen bounds around the middle, so that alone is contracted
        before: Sides = {side: np.full(model.states, -self.agent * np.inf) for side in (-1, 1)}
        best = np.maximum if self.agent > 0 else np.minimum
        self._written = 0
        for part in self._leaves(middle):
            for action in part.actions.tolist():
                ends = self._repaired(part, action, middle, margin)
                ends = {side: end + side * half for side, end in ends.items()}
                for side in (-1, 1):
                    mean = sign * ends[sign * side] + side * margin
                    some = np.arange(len(mean))
                    if by_policy(side):
                        some = np.flatnonzero(rule[part.states] == action)
                    at = part.states[some]
                    worth = self._paid(self.pays[self.classes[action], at], mean[some], side)
                    before[side][at] = best(before[side][at], worth)
        stuck = model.stuck
        for side in (-1, 1):
            before[side][stuck] = self._paid(self.pays[-1, stuck], after[side][stuck], side)
            finite = np.isfinite(before[side]).all()  # else the rule has no possible action there
            need(finite, "policy: must take actions that are possible")
        return before

    def _paid(self, pays: FloatArray, mean: FloatArray, side: int) -> FloatArray:
        """Return what rows pay and what follows, rounded to a side."""
        later = self.discount * mean
        error = 4.0 * UNIT * (np.abs(pays) + np.abs(later)) + TINY * (self.discount != 1.0)
        exact = ((pays == 0.0) & (self.discount == 1.0)) | (mean == 0.0)
        return np.asarray(pays + later + side * np.where(exact, 0.0, error))

    def _leaves(self, values: FloatArray) -> Iterator[_Part]:
        """Yield what is left after all factors: a number per state and action."""
        zero = np.zeros(1, dtype=np.int64)
        everyone = np.arange(self.model.actions)
        codes = [zero] * len(self.model.factors)
        yield from self._deeper(0, _Part(values[None], values[None], zero, codes, everyone))

    def _deeper(self, depth: int, part: _Part) -> Iterator[_Part]:
        if depth == len(self.model.factors):
            yield part
            return
        table = self.model.factors[depth].moves[:, part.actions]
        group = np.unique(table, axis=1, return_inverse=True)[1].reshape(-1)
        for k in range(int(group.max()) + 1):
            for after in self._contracted(depth, part, part.actions[group == k]):
                yield from self._deeper(depth + 1, after)

    def _contracted(self, depth: int, part: _Part, actions: IntArray) -> Iterator[_Part]:
        """Yield a part after one more factor, for actions that move it alike, piece by piece."""
        model, factor, fresh = self.model, self.model.factors[depth], self.model.fresh[depth]
        inner, count = part.low.shape[1] // factor.size, len(fresh.states)
        step = max(1, AT_ONCE // (inner * count))
        for first in range(0, len(part.states), step):
            lines = np.arange(first, min(first + step, len(part.states)))
            line, branch = np.repeat(lines, count), np.tile(np.arange(count), len(lines))
            moves = factor.moves[part.codes[0][line] + fresh.codes[0][branch], actions[0]]
            able = np.flatnonzero(moves != FORBIDDEN)
            line, branch, moves = line[able], branch[able], moves[able]
            low, high = np.empty((len(line), inner)), np.empty((len(line), inner))
            for move in np.unique(moves).tolist():
                at = np.flatnonzero(moves == move)
                targets = model.move_targets(move)
                picked = [
                    side.reshape(-1, factor.size, inner)[line[at][:, None], targets]
                    for side in (part.low, part.high)
                ]
                low[at], high[at] = self._means(int(model.move_sets[move]), *picked)
            codes = [
                own[line] + more[branch]
                for own, more in zip(part.codes[1:], fresh.codes[1:], strict=True)
            ]
            yield _Part(low, high, part.states[line] + fresh.states[branch], codes, actions)

    def _means(self, j: int, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return W (N, fibres) from values (N, outcomes, fibres) by a set; -1: a certain move.

        Rounding is not added here: `back` does that once for all factors.
        """
        if j < 0:
            return low[:, 0], high[:, 0]
        sets = self.model.sets
        own = slice(sets.ptr[j], sets.ptr[j + 1])
        if sets.kind[j] == SINGLETON:
            p = (sets.nominal[own] / math.fsum(sets.nominal[own]))[None, :, None]
            return _mean(p, low), _mean(p, high)
        if sets.sizes[j] == 2:
            return self._between(int(sets.ptr[j]), low, high)
        ends = sets.lower[own], sets.upper[own]
        together = high.sum(axis=2, keepdims=True)
        return _mean(_worst(*ends, low), low), _mean(_worst(*ends, together), high)

    def _between(
        self, first: int, low: FloatArray, high: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the same for a box with two outcomes, by the probability of the first."""
        lower, upper = self.model.sets.lower, self.model.sets.upper
        least = max(lower[first], 1.0 - upper[first + 1])
        most = min(upper[first], 1.0 - lower[first + 1])
        gap = low[:, 0] - low[:, 1]
        below = low[:, 1] + np.where(gap > 0.0, least, most) * gap
        gap = high[:, 0] - high[:, 1]
        p = np.where(gap.sum(axis=1) > 0.0, least, most)
        return below, high[:, 1] + p[:, None] * gap

    def _repaired(self, part: _Part, action: int, values: FloatArray, margin: float) -> Sides:
        """Return bounds of rows (N,), better ones where one answer does not fit all fibres."""
        ends = {-1: part.low[:, 0], 1: part.high[:, 0]}
        wide = np.flatnonzero(ends[1] - ends[-1] > margin)
        if len(wide):
            ends = {side: end.copy() for side, end in ends.items()}
        for place in wide.tolist():
            ids, successors = self.model.row(int(part.states[place]), action)
            self._written += len(successors)
            if self._written > WRITTEN:
                break
            below, above = self._least(ids, values[successors][None])
            ends[-1][place] = max(ends[-1][place], below)
            ends[1][place] = min(ends[1][place], above)
        return ends

    def _least(self, ids: list[int], values: FloatArray) -> tuple[float, float]:
        """Return bounds of nature's least mean over a product of sets, for values (1, K)."""
        alone = np.array([0])
        axes = [self.rounded.axis(np.array([j])) for j in ids]
        batch = Batch(alone, axes, np.empty((1, 0), dtype=np.int64), None)
        base = values.min()  # so that errors are relative to the span; `back` covers this rounding
        values = values - base
        ends = []
        for side in (-1, 1):
            least, aim = batch.bound(values, side), batch.bound(values, -side)
            if len(ids) > 1:
                batch.refine(alone, values, least, side, aim, np.full(1, np.inf))
            ends.append(float(least[0] + base))
        return ends[0], ends[1]


def _worst(lower: FloatArray, upper: FloatArray, values: FloatArray) -> FloatArray:
    """Return the member of a box (N, outcomes, fibres) with the least mean of values, each fibre.

    What is free goes to the outcomes with the least values. Its numbers are off by no more than
    some roundings of one.
    """
    order = np.argsort(values, axis=1, kind="stable")
    room = (upper - lower)[order]
    free = 1.0 - math.fsum(lower)
    before = np.cumsum(room, axis=1) - room
    filled = lower[order] + np.clip(free - before, 0.0, room)
    member = np.empty_like(filled)
    np.put_along_axis(member, order, filled, axis=1)
    return member


def _mean(p: FloatArray, values: FloatArray) -> FloatArray:
    """Return means (N, fibres), as the least value plus what the others add."""
    least = values.min(axis=1)
    return np.asarray(least + (p * (values - least[:, None])).sum(axis=1))


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
        if self.claim.kind in ("Cumulative", "Discounted", "ReachReward"):
            of_states, classes, of_classes = self._rewards()
            pays = np.concatenate([of_classes + of_states, of_states[None]])
        return Contraction(model, self.agent, self.nature, pays, classes, discount)

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
            for bound in values.values():
                if self.claim.kind in PROBABILITIES:
                    np.clip(bound, 0.0, 1.0, out=bound)
                np.copyto(bound, given, where=fixed)
        for side in (-1, 1):
            claim = self.claim.bounds.get(self.turned * side)
            if claim is not None:
                short, wrong = (
                    exceeds(claim, values[end], side, self.turned < 0) for end in (side, -side)
                )
                self._note(short, wrong, side * self.turned, "by steps")

    def _inductive(self, game: Contraction) -> None:
        """Check bounds b by T(b), which for a discount is enough."""
        for side, claim in sorted(self.claim.bounds.items()):
            need(np.isfinite(claim).all(), "bounds: must be numbers")
            values = game.back({-1: claim, 1: claim}, self.claim.policy[0], self._by_policy)
            short, wrong = (side * claim < side * values[end] for end in (side, -side))
            self._note(short, wrong, side, "by induction")

    def _only_fixed_point(self) -> None:
        """Check bounds around a value: if all plays end, it is near the only fixed point.

        Let q < 1 be the largest probability that a play lasts longer than K steps. Then K steps
        contract by q, and what a step moves by at most r is within K r / (1 - q) of its worth.
        """
        sets = self.claim.states
        target = sets["target"] if "target" in sets else ~sets["stay"]
        over = target | (~sets["stay"] if self.claim.kind == "Until" else False)
        pay = target.astype(np.float64) * (self.claim.kind != "ReachReward")
        far = self._endurance(over)
        if far is None:
            nowhere = np.zeros_like(over)
            self.note(nowhere, "plays end, whatever the players do", ~nowhere)
            return
        value = self.claim.value if self.turned > 0 else 1.0 - self.claim.value
        need(np.isfinite(value).all(), "value: must be numbers")
        self.progress("one step")
        after = self._contraction(1.0).back({-1: value, 1: value}, self.claim.policy[0],
                                            self._by_policy)  # fmt: skip
        for side in (-1, 1):
            np.copyto(after[side], pay, where=over)
            moved = max(float((side * (after[side] - value)).max()), 0.0)
            bound = value + side * far * moved * (1.0 + 8.0 * UNIT)
            bound += side * 2.0 * UNIT * np.abs(bound)
            if self.claim.kind in PROBABILITIES:
                np.clip(bound, 0.0, 1.0, out=bound)
            claim = self.claim.bounds.get(self.turned * side)
            if claim is not None:
                short = exceeds(claim, bound, side, self.turned < 0)
                self._note(short, np.zeros_like(short), side * self.turned, "by contraction")

    def _endurance(self, over: BoolArray) -> float | None:
        """Return K / (1 - q), see `_only_fixed_point`; None: no such K was found."""
        model = self.model
        nothing, classes = np.zeros((1, model.states)), np.zeros(model.actions, dtype=np.int64)
        game = Contraction(model, 1, 1, nothing, classes, 1.0)
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
