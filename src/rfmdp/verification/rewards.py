"""What rows of a learned model pay, if that was learned too.

A row must pay no more (for an agent that minimises: no less) than

- the bound of its mean reward that the sum of what visits paid proves, by the mixture sequence;
- what its first visit paid, if a row always pays the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rfmdp.ragged import segment_lengths
from rfmdp.types import AnyArray, BoolArray, FloatArray
from rfmdp.verification.confidence import kind_of, mixture
from rfmdp.verification.fields import Fields, is_number, need
from rfmdp.verification.reading import Claim

FIELDS: dict[str, tuple[str, ...]] = {
    "declared": (), "constant": ("low", "high"), "mixture": ("low", "high"),
}  # fmt: skip
EPS = float(np.finfo(np.float64).eps)


class Payments:
    """How rewards of a learned model are known: declared, or learned.

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
        self.low, self.high = settings.get("low", 0.0), settings.get("high", 1.0)
        fits = is_number(self.low) and is_number(self.high)
        need(fits and -np.inf < self.low < self.high < np.inf, "rewards: need a range")

    @property
    def assumptions(self) -> list[dict[str, Any]]:
        """What must be stated."""
        word = {"declared": "rewards", "constant": "constant-rewards", "mixture": "mean-rewards"}
        within = {"kind": "reward-range", "low": self.low, "high": self.high}
        return [{"kind": word[self.kind]}, *([within] if FIELDS[self.kind] else [])]

    def fails(
        self, claim: Claim, evidence: Fields, looks: AnyArray, steps: list[int], share: float
    ) -> str:
        """Return what is wrong with the rewards of a learned model, or nothing.

        Parameters
        ----------
        claim
            The solution of the learned model.
        evidence, looks, steps
            What was paid, the counts of all looks, and the steps of all evaluations.
        share
            The error probability of all rewards together.
        """
        if self.kind == "declared":
            return ""
        state, row = claim.reward
        if claim.kind not in ("ReachReward", "Cumulative", "Discounted", "Total") or state.any():
            return "must be those of rows, collected by the objective"
        model = claim.written
        visits = evidence.integers("visits", model.rows)
        paid = evidence.floats("paid", model.rows)
        slots = np.repeat(visits, segment_lengths(model.marginal_ptr))
        drawn = np.bincount(model.row_marginals, slots, minlength=len(model.sets.kind))
        last = looks[-1] if len(looks) else np.zeros(len(model.sets.nominal))
        if (visits < 0).any() or int(visits.sum()) not in steps:
            return "visits must be all steps of an evaluation"
        if not np.array_equal(drawn, np.add.reduceat(last, model.sets.ptr[:-1])):
            return "visits must be those of the counts"
        ends = claim.states.get("target", np.zeros(model.states, dtype=np.bool_))
        counted = np.repeat(~ends, segment_lengths(model.row_ptr))
        each = share / max(int(np.count_nonzero(counted)), 1)
        fine = self._proven(row, visits, paid, each, claim.agent)
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
