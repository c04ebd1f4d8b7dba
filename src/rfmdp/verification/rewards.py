"""What rows of a learned model pay, if that was learned too, or depends on the successor.

A row must pay no more (for an agent that minimises: no less) than

- the bound of its mean reward that the sum of what visits paid proves, by the mixture sequence;
- what its first visit paid, if a row always pays the same;
- nature's least mean of what its transitions pay, if these are known: an inner problem like that of
  a value, so it is proven like one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rfmdp.ragged import segment_lengths
from rfmdp.types import AnyArray, BoolArray, FloatArray
from rfmdp.verification.confidence import NotChecked, kind_of, mixture
from rfmdp.verification.fields import Fields, is_number, need
from rfmdp.verification.game import HOLD, UNKNOWN, Game, signs_of
from rfmdp.verification.reading import Claim

FIELDS: dict[str, tuple[str, ...]] = {
    "declared": (), "transitions": ("digest",), "constant": ("low", "high"),
    "mixture": ("low", "high"),
}  # fmt: skip
EPS = float(np.finfo(np.float64).eps)


class Payments:
    """How rewards of a learned model are known: declared, by transition, or learned.

    Raises
    ------
    NotChecked
        If this checker does not know the kind.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.kind = kind_of(settings, "rewards", FIELDS)
        need(
            set(settings) == {"kind", *FIELDS[self.kind]}, f"rewards: {self.kind} has other fields"
        )
        self.digest = settings.get("digest")
        self.low, self.high = settings.get("low", 0.0), settings.get("high", 1.0)
        fits = is_number(self.low) and is_number(self.high)
        need(fits and -np.inf < self.low < self.high < np.inf, "rewards: need a range")

    @property
    def assumptions(self) -> list[dict[str, Any]]:
        """What must be stated."""
        word = {"declared": "rewards", "transitions": "transition-rewards",
                "constant": "constant-rewards", "mixture": "mean-rewards"}[self.kind]  # fmt: skip
        within = {"kind": "reward-range", "low": self.low, "high": self.high}
        return [{"kind": word}, *([within] if FIELDS[self.kind] == ("low", "high") else [])]

    def fails(
        self, claim: Claim, evidence: Fields, looks: AnyArray, steps: list[int], share: float,
        listed: bool,
    ) -> str:  # fmt: skip
        """Return what is wrong with the rewards of a learned model, or nothing.

        Parameters
        ----------
        claim
            The solution of the learned model.
        evidence, looks, steps
            What was paid, the counts of all looks, and the steps of all evaluations.
        share
            The error probability of all rewards together.
        listed
            Whether the model lists all outcomes; if not, its last row stands for the others.
        """
        if self.kind == "declared":
            return ""
        state, row = claim.reward
        if claim.kind not in ("ReachReward", "Cumulative", "Discounted", "Total") or state.any():
            return "must be those of rows, collected by the objective"
        if self.kind == "transitions":
            return self._by_transition(claim, evidence, row)
        model = claim.model
        extra = 0 if listed else 1
        visits = evidence.integers("visits", model.rows - extra)
        paid = evidence.floats("paid", model.rows - extra)
        counts = np.append(visits, [0] * extra)
        slots = np.repeat(counts, segment_lengths(model.marginal_ptr))
        drawn = np.bincount(model.row_marginals, slots, minlength=len(model.sets.kind))
        last = looks[-1] if len(looks) else np.zeros(len(model.sets.nominal))
        if (visits < 0).any() or int(visits.sum()) not in steps:
            return "visits must be all steps of an evaluation"
        if not np.array_equal(drawn, np.add.reduceat(last, model.sets.ptr[:-1])):
            return "visits must be those of the counts"
        ends = claim.states.get("target", np.zeros(model.states, dtype=np.bool_))
        counted = np.repeat(~ends, segment_lengths(model.row_ptr))
        asked = int(np.count_nonzero(counted[: len(visits)]))
        fine = self._proven(row, counts, np.append(paid, [0.0] * extra), share / max(asked, 1),
                            claim.agent)  # fmt: skip
        wrong = np.flatnonzero(counted & ~fine)
        return f"row {wrong[0]}" if len(wrong) else ""

    def _proven(
        self, row: FloatArray, visits: AnyArray, paid: FloatArray, delta: float, agent: int
    ) -> BoolArray:
        """Return which rows pay no more than what is proven, as the agent sees it."""
        low, high = (self.low, self.high) if agent > 0 else (-self.high, -self.low)
        row = agent * row
        paid = agent * paid
        n = visits.astype(np.float64)
        fine = row <= low
        if self.kind == "constant":
            inside = (paid >= low) & (paid <= high)
            return np.asarray(fine | ((n > 0.0) & inside & (row <= paid)))
        span = high - low
        # as much is lost by adding n rewards
        slack = 4.0 * EPS * n * (1.0 + (abs(low) + abs(high)) / span)
        x = (paid - n * low) / span - slack
        p = (row - low) / span * (1.0 + 4.0 * EPS)
        at = np.flatnonzero(~fine & (x <= n) & (p * n < x) & (delta > 0.0))
        fine[at] = mixture(p[at], x[at], n[at], np.full(len(at), delta))
        return np.asarray(fine)

    def _by_transition(self, claim: Claim, evidence: Fields, row: FloatArray) -> str:
        """Return which row pays more than nature's least mean, if any.

        Transitions lead to what they pay, and rows pay what they claim less: no loss, no fault.
        """
        model = claim.model
        paid = evidence.floats("transitions", len(model.successors))
        digest = hashlib.sha256(paid.tobytes()).hexdigest()[:16]
        if self.digest != digest:
            return "what transitions pay is not what was declared"
        amounts, place = np.unique(paid, return_inverse=True)
        changed = replace(model, successors=model.states + place)
        game = Game(changed, claim.agent, claim.nature, (-row, np.zeros(model.rows)))
        worth = np.append(np.zeros(model.states), amounts)
        signs = signs_of(game, worth, -claim.agent, 1.0, np.ones(model.rows, dtype=np.bool_))
        wrong = np.flatnonzero(signs < HOLD)
        if len(wrong) and (signs[wrong] == UNKNOWN).all():
            raise NotChecked(f"what row {wrong[0]} pays")
        return f"row {wrong[0]}" if len(wrong) else ""
