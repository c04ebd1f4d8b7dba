"""Check a learning run again: from counts to sets, from sets to the guarantee, from deltas to beta.

A run says "with probability 1 - beta the policy is worth so much". That rests on

- the ledger: the error probabilities of all events, as many as the confidence sets need, add up;
- the sets: what the learned model keeps of an unknown distribution holds all that the counts of
  some look do not rule out. A bound p of a probability is tested forwards: its tail or its
  likelihood ratio is computed, no quantile is searched for;
- what rows pay, if that is not simply declared;
- the solution of the learned model, whose bounds are proven like those of any other;
- starts: how often episodes began in each initial state, behind a mean over them;
- assumptions, each of which has to be stated.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import special

from rfmdp.ragged import entries, segment, segment_lengths
from rfmdp.record import inside
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.verification.checker import Verdict
from rfmdp.verification.fields import Fields, field, is_number, need, number
from rfmdp.verification.reading import Claim, read_claim
from rfmdp.verification.sets import BOX, L1, SINGLETON, Sets, Undecided

SOURCES = {  # what has to be stated of each
    "simulation": (), "environment": ("markov", "resets"), "log": ("recorded",),
}  # fmt: skip
ALWAYS = ("draws", "support", "ledger", "shared", "product", "structure")
PAYMENTS = {  # how rewards are known, and what has to be stated
    "declared": "rewards", "mixture": "mean-rewards",
}  # fmt: skip
EPS = 2.0**-52

ACCURACY = 1e-7  # relative, of error probabilities
BATCH = 1 << 19  # counts handled at a time
SIZES = 8.0 ** np.arange(7)  # of the priors of the mixture
WEIGHTS = np.array([0.40, 0.16, 0.12, 0.10, 0.08, 0.07, 0.07])

Bounds = tuple[FloatArray, FloatArray]
Rejects = Callable[[FloatArray, FloatArray, FloatArray, FloatArray], BoolArray]
"""Whether x of n rule out all probabilities up to p, which is at most x / n, at error delta."""


def check_run(
    header: Mapping[str, Any], arrays: Mapping[str, AnyArray], verdict: Verdict,
    check_solution: Callable[[Claim], None],
) -> None:  # fmt: skip
    """Check a run; what is not known here is not proven."""
    alarms = field(header, "alarms", list)
    need(all(isinstance(alarm, str) for alarm in alarms), "alarms: must be texts")
    need(not alarms, f"void, nothing is guaranteed: {' '.join(alarms)[:300]!r}")
    if "solution" not in header:
        verdict.unproven.append("the run has no solution: nothing is guaranteed")
        return
    claim = read_claim(field(header, "solution", dict), inside("solution/", arrays))
    run = _Run(header, Fields(arrays), claim, verdict)
    try:
        run.check_model()
    except Undecided as what:
        verdict.unproven.append(f"{what}: not checked here")
    check_solution(claim)
    run.check_guarantee()


class _Run:
    """A run whose solution is read, and the checks of the way to it."""

    def __init__(
        self, header: Mapping[str, Any], fields: Fields, claim: Claim, verdict: Verdict
    ) -> None:
        self.header, self.fields, self.claim, self.note = header, fields, claim, verdict.note
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
        fields, settings, sets = self.fields, self.settings, self.sets
        self.test = kind_of(settings, "confidence", TESTS)
        self.single = self.test != "mixture"
        self.floor = field(settings, "p_min", int, float)
        need(0.0 <= self.floor < 1.0, "p_min: must lie in [0, 1)")
        self.payments = kind_of(settings, "rewards", PAYMENTS)
        known, rewards = {"kind"}, settings["rewards"]
        if self.payments != "declared":
            known |= {"low", "high"}
            fits = is_number(rewards.get("low")) and is_number(rewards.get("high"))
            need(fits and -np.inf < rewards["low"] < rewards["high"] < np.inf,
                 "rewards: need a range")  # fmt: skip
        need(set(rewards) == known, f"rewards: {self.payments} has other fields")
        delta = self._check_ledger()
        self._check_assumptions()
        looks = fields.integers("looks", len(sets.nominal), ndim=2)
        counts = fields.integers("counts", len(sets.nominal))
        need((looks >= 0).all() and (np.diff(looks, axis=0) >= 0).all(), "looks: must not fall")
        need(not len(looks) or (looks[-1] <= counts).all(), "looks: must be within the counts")
        need(not self.single or len(looks) <= 1, "looks: there must be one only")
        floors = fields.floats("floors", len(delta))  # less where marginals are multiplied
        fits = (floors >= 0.0) & (floors <= self.floor)
        need(fits.all(), "floors: must lie between 0 and p_min")
        bad = np.flatnonzero(~sets_hold(sets, looks, delta, self.test, self._prior(floors)))
        self.note(not len(bad), f"sets from counts{f': marginal {bad[0]}' if len(bad) else ''}")
        if self.payments != "declared":
            wrong = self._unpaid(looks)
            self.note(not wrong, f"rewards of the learned model{f': {wrong}' if wrong else ''}")

    def _check_ledger(self) -> FloatArray:
        """Return the error probabilities (M,) of an event of every set; all of them within beta."""
        sizes = self.sets.sizes
        delta = self.fields.floats("ledger/delta", len(sizes))
        for name, numbers in (("shares", self.shares), ("delta", delta)):
            inside = (numbers >= 0.0) & (numbers < 1.0)
            need(inside.all(), f"ledger/{name}: must lie in [0, 1)")
        events = self.fields.integers("ledger/events", len(delta))
        granted = sum(map(Fraction, self.shares.tolist()))
        within = 0 < granted < 1 and float(granted) <= self.beta * (1.0 + 2.0**-50)
        self.note(within, "shares within beta")
        one = (sizes <= 2) | (self.test == "weissman")
        needed = np.where(one, np.minimum(sizes - 1, 1), sizes)
        spends = delta > 0.0
        self.note(bool((events >= needed)[spends].all()), "every event is counted")
        costs = zip(events[spends].tolist(), delta[spends].tolist(), strict=True)
        spent = sum(count * Fraction(each) for count, each in costs)
        self.note(spent <= Fraction(float(self.shares[0])), "events within the share of the model")
        return delta

    def _check_assumptions(self) -> None:
        """Check that every word that the chain rests on is there."""
        source = kind_of(self.settings, "source", SOURCES)
        tied = field(self.settings, "granularity", str) == "tied"
        kinds = [*ALWAYS, PAYMENTS[self.payments], *SOURCES[source]]
        kinds += ["fixed-size"] if self.single else []
        kinds += ["tied"] if tied else ["ties"] if field(self.header, "shared", list) else []
        words: list[dict[str, Any]] = [{"kind": kind} for kind in kinds]
        if self.payments != "declared":
            words.append({**self.settings["rewards"], "kind": "reward-range"})
        words += [{"kind": "declared-floor", "p_min": self.floor}] if self.floor > 0.0 else []
        selection = self.settings["source"].get("selection", "none")
        need(source != "log" or selection == "none", "selection: must be none")
        self.note(all(word in self.stated for word in words), "assumptions are complete")
        validity = "SINGLE_LOOK" if self.single else "ANYTIME"
        self.note(field(self.header, "validity", str) == validity, "validity as the sets have it")

    def _unpaid(self, looks: IntArray) -> str:
        """Return what is wrong with learned rewards, which may err by a share, or nothing.

        A row must pay no more (for an agent that minimises: no less) than the bound of its mean
        reward that the sum of what visits paid proves, by the mixture sequence.
        """
        claim, evidence = self.claim, self.fields.within("evidence/")
        state, row = claim.reward
        if claim.kind not in ("ReachReward", "Cumulative", "Discounted", "Total") or state.any():
            return "must be those of rows, collected by the objective"
        model = claim.written
        visits = evidence.integers("visits", model.rows)
        paid = evidence.floats("paid", model.rows)
        slots = np.repeat(visits, segment_lengths(model.marginal_ptr))
        drawn = np.bincount(model.row_marginals, slots, minlength=len(model.sets.kind))
        last = looks[-1] if len(looks) else np.zeros(len(model.sets.nominal))
        steps = [field(point, "steps", int) for point in self.history]
        if (visits < 0).any() or int(visits.sum()) not in steps:
            return "visits must be all steps of an evaluation"
        if not np.array_equal(drawn, np.add.reduceat(last, model.sets.ptr[:-1])):
            return "visits must be those of the counts"
        ends = claim.states.get("target", np.zeros(model.states, dtype=np.bool_))
        counted = np.repeat(~ends, segment_lengths(model.row_ptr))
        delta = float(self.shares[1]) / max(int(np.count_nonzero(counted)), 1)
        # as the agent sees it
        low, high = (float(self.settings["rewards"][end]) for end in ("low", "high"))
        low, high = (low, high) if claim.agent > 0 else (-high, -low)
        row, paid, n = claim.agent * row, claim.agent * paid, visits.astype(np.float64)
        proven = row <= low
        span = high - low
        # as much is lost by adding n rewards
        slack = 4.0 * EPS * n * (1.0 + (abs(low) + abs(high)) / span)
        x = (paid - n * low) / span - slack
        p = (row - low) / span * (1.0 + 4.0 * EPS)
        at = np.flatnonzero(~proven & (x <= n) & (p * n < x) & (delta > 0.0))
        proven[at] = mixture(p[at], x[at], n[at], np.full(len(at), delta))
        wrong = np.flatnonzero(counted & ~proven)
        return f"row {wrong[0]}" if len(wrong) else ""

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
        """Check that the last guarantee is the solution's, against nature, with its policy.

        A mean over random starts is less, by a test of every initial state and greedily.
        """
        claim, agent, last = self.claim, self.claim.agent, self.history[-1]
        named = field(self.header, "agent", str)
        need(named == ("MAX" if agent > 0 else "MIN"), "agent: not the solution's")
        self.note(claim.nature == -agent, "nature is against the agent")
        guarantee, optimistic = number(last, "guarantee"), number(last, "optimistic")
        need(-agent in claim.bounds, "solution: must prove the side of the guarantee")
        values = agent * claim.bounds[-agent][claim.written.initial]
        self.note(bool(agent * guarantee <= values.min()), "guarantee is the solution's")
        self.note(not agent * guarantee > agent * optimistic, "guarantee within the optimistic")
        rows = self.fields.integers("policy", ndim=2)
        self.note(np.array_equal(rows, claim.policy), "policy is the solution's")
        mean = number(self.header, "mean_guarantee")
        counts = self.fields.integers("starts").astype(np.float64)
        if not len(counts):
            need(math.isnan(mean), "mean_guarantee: there must be none without starts")
            return
        need(len(counts) == len(values), f"starts: must have {len(values)} entries")
        need((counts >= 0.0).all(), "starts: must not be negative")
        delta = np.full(len(counts), self.shares[2] / len(counts))
        total = np.full_like(counts, counts.sum())
        begun = Trials(counts[None], total[None] * (delta > 0.0), delta, mixture)
        least = least_mean(values, begun.least(), 1.0 - begun.misses.least())
        self.note(agent * mean <= least, "mean over starts from their counts")


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


def clopper_pearson(p: FloatArray, x: FloatArray, n: FloatArray, delta: FloatArray) -> BoolArray:
    """Test by the exact binomial tail, half of the error on this side."""
    tail = special.betainc(np.maximum(x, 1.0), n - x + 1.0, p)
    return np.asarray((x > 0) & (tail <= 0.5 * delta * (1.0 + ACCURACY)))


def mixture(p: FloatArray, x: FloatArray, n: FloatArray, delta: FloatArray) -> BoolArray:
    """Test whether a mixture of priors around p has 1 / delta times the likelihood of p."""
    q = 1.0 - p
    likelihood = x * np.log(p) + (n - x) * np.log(q)
    size, weight = SIZES[:, None], WEIGHTS[:, None]
    after = special.betaln(size * p + x, size * q + n - x)
    terms = np.log(weight) + after - special.betaln(size * p, size * q)
    ratio = np.logaddexp.reduce(terms, axis=0) - likelihood
    # logarithms of likelihoods of n samples may be off by as much
    return np.asarray(ratio >= -np.log(delta) - (ACCURACY + 1e-14 * n))


TESTS: dict[str, Rejects | None] = {  # of the intervals of every confidence set, if it has any
    "clopper-pearson": clopper_pearson, "mixture": mixture, "weissman": None,
}  # fmt: skip


def kind_of(settings: Mapping[str, Any], name: str, kinds: Collection[str]) -> str:
    """Return the kind of a setting, which must be one of those that this checker knows."""
    kind: str = field(field(settings, name, dict), "kind", str)
    if kind not in kinds:
        raise Undecided(f"{name} {kind!r:.40}")
    return kind


@dataclass(slots=True, eq=False)
class Trials:
    """How often each of N things was seen (x) in so many samples (n), look by look."""

    x: FloatArray  # (looks, N)
    n: FloatArray  # (looks, N)
    delta: FloatArray  # (N,) error probabilities
    rejects: Rejects

    @property
    def misses(self) -> Trials:
        """The same of the opposites."""
        return Trials(self.n - self.x, self.n, self.delta, self.rejects)

    def take(self, some: IntArray) -> Trials:
        """Return some of them."""
        return Trials(self.x[:, some], self.n[:, some], self.delta[some], self.rejects)

    def below(self, p: FloatArray) -> BoolArray:
        """Return which lower bounds p (N,) some look proves."""
        proven = p <= 0.0
        for looks in (slice(-1, None), slice(None, -1)):  # the last one proves most of them
            x, n = self.x[looks], self.n[looks]
            look, at = np.nonzero(~proven & (n > 0.0) & (p < x / np.maximum(n, 1.0)))
            rejected = self.rejects(p[at], x[look, at], n[look, at], self.delta[at])
            proven[at[rejected]] = True
        return np.asarray(proven)

    def least(self) -> FloatArray:
        """Return nearly the largest lower bounds (N,) that some look proves."""
        low = np.zeros(self.x.shape[1])
        high = (self.x / np.maximum(self.n, 1.0)).max(axis=0, initial=0.0)
        for _ in range(60):
            middle = 0.5 * (low + high)
            proven = self.below(middle)
            low, high = np.where(proven, middle, low), np.where(proven, high, middle)
        return low


def sets_hold(
    sets: Sets, looks: IntArray, delta: FloatArray, test: str, prior: Bounds
) -> BoolArray:
    """Return which sets (M,) have all distributions within known bounds that no look rules out."""
    fine = sets.sizes == 1
    plain = np.isnan(sets.exponent) & (segment_lengths(sets.corner_ptr) == 0)
    box = plain & ((sets.kind == BOX) | (sets.kind == SINGLETON))  # given by their bounds alone
    for size in np.unique(sets.sizes[~fine]).tolist():
        alike = np.flatnonzero(box & (sets.sizes == size))
        step = max(1, BATCH // (size * max(len(looks), 1)))
        for ids in (alike[i : i + step] for i in range(0, len(alike), step)):
            at = entries(sets.ptr, ids)
            seen = looks[:, at].astype(np.float64)
            spent = np.repeat(delta[ids], size)
            samples = np.repeat(seen.reshape(len(looks), len(ids), size).sum(axis=2), size, axis=1)
            rejects = TESTS[test]
            if rejects is None:
                raise Undecided(f"confidence set {test} for boxes")
            trials = Trials(seen, samples * (spent > 0.0), spent, rejects)
            bounds = sets.lower[at], sets.upper[at]
            fine[ids] = _boxes_hold(bounds, trials, (prior[0][at], prior[1][at]), size)
        for j in np.flatnonzero(~box & (sets.sizes == size)):
            fine[j] = _ball_holds(sets, int(j), looks, float(delta[j]), test)
    return np.asarray(fine)


def _boxes_hold(bounds: Bounds, trials: Trials, prior: Bounds, size: int) -> BoolArray:
    """Return whether bounds (N,) of boxes are assumed, of some look, or follow from others."""
    (lower, upper), (least, most), misses = bounds, prior, trials.misses
    low = trials.below(lower) | (lower <= least)
    high = misses.below(1.0 - upper) | (upper >= most)
    open_ = np.flatnonzero(~(low & high).reshape(-1, size).all(axis=1))
    some = (open_[:, None] * size + np.arange(size)).ravel()
    # only what looks prove, or is assumed, may serve as a reason
    least[some] = np.maximum(trials.take(some).least(), np.where(low, lower, least)[some])
    most[some] = np.minimum(1.0 - misses.take(some).least(), np.where(high, upper, most)[some])
    for k in some:
        first = k - k % size
        others = [o for o in range(first, first + size) if o != k]
        low[k] |= math.fsum([lower[k], -1.0, *most[others]]) <= 0.0
        high[k] |= math.fsum([upper[k], -1.0, *least[others]]) >= 0.0
    return np.asarray((low & high).reshape(-1, size).all(axis=1))


def _ball_holds(sets: Sets, j: int, looks: IntArray, delta: float, test: str) -> bool:
    """Return the same of a set that is no box: around the frequencies, as Weissman's bound says."""
    if sets.kind[j] == SINGLETON:
        return False
    if sets.kind[j] != L1 or test != "weissman":
        raise Undecided(f"a set of kind {sets.kind[j]} by {test}")
    nominal, radius = sets.nominal[segment(sets.ptr, j)], float(sets.radius[j])
    counts = looks[-1:, segment(sets.ptr, j)].sum(axis=0)
    n = int(counts.sum())
    if radius >= 2.0 or not n or delta <= 0.0:
        return radius >= 2.0
    k = len(nominal)
    vertices = k * math.log(2.0) + math.log1p(-(2.0 ** (1.0 - k)))
    needed = math.sqrt(2.0 * (vertices - math.log(delta * (1.0 + ACCURACY))) / n)
    return bool(np.abs(nominal - counts / n).max() <= 1e-14) and radius >= needed
