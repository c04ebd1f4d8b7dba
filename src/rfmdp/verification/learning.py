"""Check a learning run again: from counts to sets, from sets to the guarantee, from deltas to beta.

A run says "with probability 1 - beta the policy is worth so much". That rests on

- the ledger: the error probabilities of all events, as many as the confidence sets need, add up;
- the sets: what the learned model keeps of an unknown distribution holds all that the counts of
  some look do not rule out (`confidence`);
- what rows pay, if that is not simply declared (`Payments`);
- the solution of the learned model, whose bounds are proven like those of any other;
- starts: how often episodes began in each initial state, behind a mean over them;
- assumptions, each of which has to be stated.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from rfmdp.ragged import segment_lengths
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.verification.confidence import (
    Bounds,
    Confidence,
    NotChecked,
    Trials,
    kind_of,
    mixture,
    sets_hold,
)
from rfmdp.verification.fields import Fields, field, is_number, need, number
from rfmdp.verification.reading import Claim, read_claim

SOURCES = ("simulation", "environment", "log")
ALWAYS = ("draws", "support", "ledger", "shared", "product", "structure")
PAYMENTS: dict[str, tuple[str, ...]] = {  # the fields of each kind
    "declared": (), "mixture": ("low", "high"),
}  # fmt: skip
EPS = 2.0**-52

Note = Callable[[bool, str], None]


def check_run(
    header: Mapping[str, Any],
    arrays: Mapping[str, AnyArray],
    note: Note,
    leave_open: Callable[[str], None],
    check_solution: Callable[[Claim], None],
) -> None:
    """Check a run; what holds or not is noted, what is not known here is left open."""
    alarms = field(header, "alarms", list)
    need(all(isinstance(alarm, str) for alarm in alarms), "alarms: must be texts")
    need(not alarms, f"void, nothing is guaranteed: {' '.join(alarms)[:300]!r}")
    if "solution" not in header:
        leave_open("the run has no solution: nothing is guaranteed")
        return
    inside = {name[9:]: array for name, array in arrays.items() if name.startswith("solution/")}
    claim = read_claim(field(header, "solution", dict), inside)
    run = _Run(header, Fields(arrays), claim, note)
    try:
        run.check_model()
    except NotChecked as what:
        leave_open(f"{what}: not checked here")
    check_solution(claim)
    run.check_guarantee()
    run.check_mean()


class _Run:
    """A run whose solution is read, and the checks of the way to it."""

    def __init__(self, header: Mapping[str, Any], fields: Fields, claim: Claim, note: Note) -> None:
        self.header, self.fields, self.claim, self.note = header, fields, claim, note
        self.settings: dict[str, Any] = field(header, "settings", dict)
        self.sets = claim.written.sets
        self.history: list[Any] = field(header, "history", list)
        need(self.history, "history: must not be empty")
        self.stated: list[Any] = field(header, "assumptions", list)
        self.shares = fields.floats("ledger/shares", 3)
        self.beta = float(field(self.settings, "beta", int, float))
        need(0.0 < self.beta < 1.0, "beta: must lie in (0, 1)")

    def check_model(self) -> None:
        """Check that the learned model follows from what was seen, at the stated errors."""
        settings, sets = self.settings, self.sets
        confidence = Confidence(field(settings, "confidence", dict))
        floor = field(settings, "p_min", int, float)
        need(0.0 <= floor < 1.0, "p_min: must lie in [0, 1)")
        payments = Payments(field(settings, "rewards", dict))
        delta = self._check_ledger(confidence)
        self._check_assumptions(confidence, floor, payments)
        looks = self._looks(confidence)
        evidence = self.fields.within("evidence/")
        floors = self.fields.floats("floors", len(delta))  # less where marginals are multiplied
        fits = (floors >= 0.0) & (floors <= floor)
        need(fits.all(), "floors: must lie between 0 and p_min")
        bad = np.flatnonzero(~sets_hold(sets, looks, delta, confidence, self._prior(floors)))
        self.note(not len(bad), f"sets from counts{f': marginal {bad[0]}' if len(bad) else ''}")
        if payments.kind != "declared":
            steps = [field(point, "steps", int) for point in self.history]
            share = float(self.shares[1])
            wrong = payments.fails(self.claim, evidence, looks, steps, share)
            self.note(not wrong, f"rewards of the learned model{f': {wrong}' if wrong else ''}")

    def _check_ledger(self, confidence: Confidence) -> FloatArray:
        """Return the error probabilities (M,) of an event of every set.

        All events are counted and cost no more than their share, and shares no more than beta.
        """
        delta = self.fields.floats("ledger/delta", len(self.sets.kind))
        for name, numbers in (("shares", self.shares), ("delta", delta)):
            inside = (numbers >= 0.0) & (numbers < 1.0)
            need(inside.all(), f"ledger/{name}: must lie in [0, 1)")
        events = self.fields.integers("ledger/events", len(delta))
        granted = sum(map(Fraction, self.shares.tolist()))
        within = 0 < granted < 1 and float(granted) <= self.beta * (1.0 + 2.0**-50)
        self.note(within, "shares within beta")
        needed = [confidence.events(size) for size in self.sets.sizes.tolist()]
        spends = delta > 0.0
        self.note(bool((events >= needed)[spends].all()), "every event is counted")
        costs = zip(events[spends].tolist(), delta[spends].tolist(), strict=True)
        spent = sum(count * Fraction(each) for count, each in costs)
        self.note(spent <= Fraction(float(self.shares[0])), "events within the share of the model")
        return delta

    def _check_assumptions(self, confidence: Confidence, floor: float, payments: Payments) -> None:
        """Check that every word that the chain rests on is there."""
        words: list[dict[str, Any]] = [{"kind": kind} for kind in ALWAYS]
        words += payments.assumptions
        words += [{"kind": "declared-floor", "p_min": floor}] if floor > 0.0 else []
        words += [{"kind": "fixed-size"}] if confidence.single else []
        if field(self.settings, "granularity", str) == "tied":
            words.append({"kind": "tied"})
        elif field(self.header, "shared", list):
            words.append({"kind": "ties"})
        settings = field(self.settings, "source", dict)
        source = kind_of(settings, "source", SOURCES)
        if source == "log":
            words.append({"kind": "recorded"})
            need(settings.get("selection", "none") == "none", "selection: must be none")
        if source == "environment":
            words += [{"kind": "markov"}, {"kind": "resets"}]
        self.note(all(word in self.stated for word in words), "assumptions are complete")
        validity = "SINGLE_LOOK" if confidence.single else "ANYTIME"
        named = field(self.header, "validity", str)
        self.note(named == validity, "validity as the sets have it")

    def _looks(self, confidence: Confidence) -> IntArray:
        """Return counts (looks, O) that grow from look to look and are within those of the run."""
        looks = self.fields.integers("looks", len(self.sets.nominal), ndim=2)
        counts = self.fields.integers("counts", len(self.sets.nominal))
        need((looks >= 0).all() and (np.diff(looks, axis=0) >= 0).all(), "looks: must not fall")
        need(not len(looks) or (looks[-1] <= counts).all(), "looks: must be within the counts")
        need(not confidence.single or len(looks) <= 1, "looks: there must be one only")
        return looks

    def _prior(self, floors: FloatArray) -> Bounds:
        """Return the bounds (O,) that were assumed before any data; a prior must be named."""
        least = np.repeat(floors, self.sets.sizes)
        most = np.ones(len(self.sets.nominal))
        need("prior" in self.settings, "prior: is missing")
        if self.settings["prior"] is None:
            need(not self.fields.has("prior_lower"), "prior: there must be none")
            return least, most
        stated = any(isinstance(a, Mapping) and a.get("kind") == "prior" for a in self.stated)
        need(stated, "assumptions: must name what was known before")
        lower, upper = (self.fields.floats(f"prior_{end}", len(most)) for end in ("lower", "upper"))
        need(((lower >= 0.0) & (lower <= upper) & (upper <= 1.0)).all(), "prior: must be bounds")
        digest = hashlib.sha256(lower.tobytes() + upper.tobytes()).hexdigest()[:16]
        same = field(self.settings["prior"], "digest", str) == digest
        self.note(same, "prior knowledge as declared")
        return np.maximum(least, lower), np.minimum(most, upper)

    def check_guarantee(self) -> None:
        """Check that the last guarantee is the solution's, against nature, with its policy."""
        claim, agent, last = self.claim, self.claim.agent, self.history[-1]
        named = field(self.header, "agent", str)
        need(named == ("MAX" if agent > 0 else "MIN"), "agent: not the solution's")
        self.note(claim.nature == -agent, "nature is against the agent")
        guarantee, optimistic = number(last, "guarantee"), number(last, "optimistic")
        need(-agent in claim.bounds, "solution: must prove the side of the guarantee")
        at = agent * claim.bounds[-agent][claim.written.initial]
        self.note(bool(agent * guarantee <= at.min()), "guarantee is the solution's")
        self.note(not agent * guarantee > agent * optimistic, "guarantee within the optimistic")
        rows = self.fields.integers("policy", ndim=2)
        self.note(np.array_equal(rows, claim.policy), "policy is the solution's")

    def check_mean(self) -> None:
        """Check the mean over random starts, by a test of every initial state and greedily."""
        mean, claim = number(self.header, "mean_guarantee"), self.claim
        counts = self.fields.integers("starts").astype(np.float64)
        if not len(counts):
            need(math.isnan(mean), "mean_guarantee: there must be none without starts")
            return
        states = claim.written.initial
        need(len(counts) == len(states), f"starts: must have {len(states)} entries")
        need((counts >= 0.0).all(), "starts: must not be negative")
        values = claim.agent * claim.bounds[-claim.agent][states]
        delta = np.full(len(counts), self.shares[2] / len(counts))
        total = np.full_like(counts, counts.sum())
        begun = Trials(counts[None], total[None] * (delta > 0.0), delta, mixture)
        least = least_mean(values, begun.least(), 1.0 - begun.misses.least())
        self.note(claim.agent * mean <= least, "mean over starts from their counts")


def least_mean(values: FloatArray, lower: FloatArray, upper: FloatArray) -> float | Fraction:
    """Return the least mean of values (N,) under distributions within bounds (N,), in fractions.

    What is left of the mass goes to the least values first. A value of infinity counts as the
    largest finite one, which is less.
    """
    finite = values[np.isfinite(values)]
    if np.min(values) == -math.inf or not len(finite):
        return float(np.min(values))
    left = 1 - sum(map(Fraction, lower.tolist()))
    mean = Fraction(0)
    for i in np.argsort(values, kind="stable"):
        more = min(left, Fraction(upper[i]) - Fraction(lower[i]))
        left -= more
        mean += (Fraction(lower[i]) + more) * Fraction(min(values[i], finite.max()))
    return mean


class Payments:
    """How rewards of a learned model are known: declared, or learned.

    A row must pay no more (for an agent that minimises: no less) than the bound of its mean reward
    that the sum of what visits paid proves, by the mixture sequence.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.kind = kind_of(settings, "rewards", PAYMENTS)
        expected = {"kind", *PAYMENTS[self.kind]}
        need(set(settings) == expected, f"rewards: {self.kind} has other fields")
        self.low, self.high = settings.get("low", 0.0), settings.get("high", 1.0)
        fits = is_number(self.low) and is_number(self.high)
        need(fits and -np.inf < self.low < self.high < np.inf, "rewards: need a range")

    @property
    def assumptions(self) -> list[dict[str, Any]]:
        """What must be stated."""
        word = {"declared": "rewards", "mixture": "mean-rewards"}
        within = {"kind": "reward-range", "low": self.low, "high": self.high}
        return [{"kind": word[self.kind]}, *([within] if PAYMENTS[self.kind] else [])]

    def fails(
        self, claim: Claim, evidence: Fields, looks: AnyArray, steps: list[int], share: float
    ) -> str:
        """Return what is wrong with the rewards that were learned, or nothing.

        Evidence is what was paid, looks are counts, steps those of all evaluations; the share is
        the error probability of all rewards together.
        """
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
        span = high - low
        # as much is lost by adding n rewards
        slack = 4.0 * EPS * n * (1.0 + (abs(low) + abs(high)) / span)
        x = (paid - n * low) / span - slack
        p = (row - low) / span * (1.0 + 4.0 * EPS)
        at = np.flatnonzero(~fine & (x <= n) & (p * n < x) & (delta > 0.0))
        fine[at] = mixture(p[at], x[at], n[at], np.full(len(at), delta))
        return np.asarray(fine)
