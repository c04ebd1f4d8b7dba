"""Check a learning run again: from counts to sets, from sets to the guarantee, from deltas to beta.

A run says "with probability 1 - beta the policy is worth so much". That rests on

- the ledger: the error probabilities of all events, as many as the confidence sets need, add up;
- the sets: what the learned model keeps of an unknown distribution holds all that the counts of
  some look do not rule out (`confidence`), outcomes that were never seen included (`supports`);
- what rows pay, if that is not simply declared (`rewards`);
- the solution of the learned model, whose bounds are proven like those of any other;
- rollouts: a frozen policy won or earned as much as is needed for what is certified (`rollouts`);
- assumptions, each of which has to be stated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from rfmdp.types import AnyArray, FloatArray, IntArray
from rfmdp.verification.confidence import SUPPORT, Confidence, Known, NotChecked, sets_hold
from rfmdp.verification.fields import Fields, need
from rfmdp.verification.reading import Claim, read_claim
from rfmdp.verification.rewards import read_payments
from rfmdp.verification.rollouts import check_rollouts
from rfmdp.verification.supports import Support, discovered, expects_the_worst

ANYTIME, SINGLE = "anytime", "fixed sample size, single look"

LEDGER = "the error probabilities were fixed before the samples they are used for"
SHARED = "rows that share an identifier draw from the same distribution"
PRODUCT = "the marginals of a row are drawn independently of each other"
STRUCTURE = "states, actions and successors of outcomes of the model are as declared"
RECORDED = "every transition of the source was recorded, none was left out because of what followed"
RESET = "resets of the environment are independent of what happened before"
MARKOV = "the observation of the environment is its state: what follows depends on nothing else"
TIES = "tied marginals are the same distribution, as declared"
TIED = "marginals with equal probabilities in the model are the same unknown distribution"
PRIOR = "marginals lie in the sets of the model"  # with their number before it

Note = Callable[[bool, str], None]


def check_run(
    header: Mapping[str, Any],
    arrays: Mapping[str, AnyArray],
    note: Note,
    leave_open: Callable[[str], None],
    check_solution: Callable[[Claim], None],
) -> None:
    """Check a run; what holds or not is noted, what is not known here is left open."""
    settings = header["settings"]
    words = ("confidence", "support", "rewards", "p_min", "beta", "granularity", "prior", "length")
    need(isinstance(settings, dict) and set(words) <= set(settings), "settings: incomplete")
    need(not header["alarms"], "alarms: nothing is guaranteed")
    if "solution" not in header:
        leave_open("the run has no solution: nothing is guaranteed")
        return
    history = header["history"]
    need(isinstance(history, list) and history, "history: must not be empty")
    part = {name[9:]: array for name, array in arrays.items() if name.startswith("solution/")}
    claim = read_claim(header["solution"], part)
    try:
        _LearnedModelCheck(header, Fields(arrays), claim, note).check()
    except NotChecked as what:
        leave_open(f"{what}: not checked here")
    check_rollouts(header, Fields(arrays), claim, note)
    check_solution(claim)
    _check_guarantee(header, Fields(arrays), claim, note)


class _LearnedModelCheck:
    """Checks that the learned model follows from what was seen, at the stated errors."""

    def __init__(self, header: Mapping[str, Any], fields: Fields, claim: Claim, note: Note) -> None:
        self.header, self.fields, self.claim, self.note = header, fields, claim, note
        self.settings, self.sets = header["settings"], claim.model.sets
        self.confidence = Confidence(self.settings["confidence"])
        self.support = Support(self.settings["support"], self.settings["p_min"], self.confidence)
        self.payments = read_payments(self.settings["rewards"])

    def check(self) -> None:
        """Check ledger, assumptions, sets and rewards."""
        delta, share = self._check_ledger()
        self._check_assumptions()
        sets = self.sets
        looks = self._looks()
        evidence = self.fields.within("evidence/")
        floors = self.fields.floats("floors", len(delta))  # less where marginals are multiplied
        fits = (floors >= 0.0) & (floors <= self.support.floor)
        need(fits.all(), "floors: must lie between 0 and p_min")
        known = self._known(floors)
        if self.support.declared:
            fine = sets_hold(sets, looks, delta, self.confidence, known)
        else:
            first = evidence.integers("first", len(sets.nominal))
            fine = discovered(sets, looks, first, delta, floors, self.confidence, known)
        bad = np.flatnonzero(~fine)
        self.note(not len(bad), f"sets from counts{f': marginal {bad[0]}' if len(bad) else ''}")
        if not self.support.listed:
            self.note(expects_the_worst(self.claim), "unseen outcomes lead to the worst")
        steps = [int(point["steps"]) for point in self.header["history"]]
        payments, listed = self.payments, self.support.listed
        wrong = payments.fails(self.claim, evidence, looks, steps, share, listed)
        if payments.name != "known":
            self.note(not wrong, f"rewards of the learned model{f': {wrong}' if wrong else ''}")

    def _check_ledger(self) -> tuple[FloatArray, float]:
        """Return the error probabilities of an event of every set, and that of all rewards.

        All events are counted and cost no more than their share, and shares no more than beta.
        """
        ledger = self.fields.within("ledger/")
        sets = self.sets
        shares = ledger.floats("shares", 4)
        delta = ledger.floats("delta", len(sets.kind))
        for name, numbers in (("shares", shares), ("delta", delta)):
            inside = (numbers >= 0.0) & (numbers < 1.0)
            need(inside.all(), f"ledger/{name}: must lie in [0, 1)")
        events = ledger.integers("events", len(delta))
        granted = sum(map(Fraction, shares.tolist()))
        beta = float(self.settings["beta"])
        within = 0 < granted < 1 and float(granted) <= beta * (1.0 + 2.0**-50)
        self.note(within, "shares within beta")
        needed = [self.support.events(self.confidence, size) for size in sets.sizes.tolist()]
        spends = delta > 0.0
        self.note(bool((events >= needed)[spends].all()), "every event is counted")
        costs = zip(events[spends].tolist(), delta[spends].tolist(), strict=True)
        spent = sum(count * Fraction(each) for count, each in costs)
        self.note(spent <= Fraction(float(shares[0])), "events within the share of the model")
        return delta, float(shares[1])

    def _check_assumptions(self) -> None:
        """Check that every sentence that the chain rests on is there."""
        settings, single = self.settings, self.confidence.single
        source = str(settings.get("source", ""))
        wanted = {LEDGER, SHARED, PRODUCT, STRUCTURE} | (self.confidence.assumptions - {SUPPORT})
        wanted |= self.support.assumptions | self.payments.assumptions
        if settings["granularity"] == "tied":
            wanted |= {TIED}
        elif self.header["shared"]:
            wanted |= {TIES}
        if source.startswith("recorded"):
            wanted |= {RECORDED}
            need(settings.get("selection", "none") == "none", "selection: must be none")
        if source.startswith("environment"):
            wanted |= {MARKOV, RESET}
        self.note(wanted <= set(self.header["assumptions"]), "assumptions are complete")
        validity = SINGLE if single else ANYTIME
        self.note(self.header["validity"] == validity, "validity as the sets have it")

    def _looks(self) -> IntArray:
        """Return counts (looks, O) that grow from look to look and are within those of the run."""
        looks = self.fields.integers("looks", len(self.sets.nominal), ndim=2)
        counts = self.fields.integers("counts", len(self.sets.nominal))
        need((looks >= 0).all() and (np.diff(looks, axis=0) >= 0).all(), "looks: must not fall")
        need(not len(looks) or (looks[-1] <= counts).all(), "looks: must be within the counts")
        many = self.header["validity"] == ANYTIME
        need(many or len(looks) <= 1, "looks: there must be one only")
        return looks

    def _known(self, floors: FloatArray) -> Known:
        """Return the bounds (O,) that were assumed before any data; a prior must be named."""
        if not self.support.declared:
            floors = np.zeros(len(floors))  # they are of what is possible, not of what is listed
        prior = self.settings["prior"]
        least = np.repeat(floors, self.sets.sizes)
        most = np.ones(len(self.sets.nominal))
        if prior == "nothing":
            need(not self.fields.has("prior_lower"), "prior: there must be none")
            return least, most
        stated = any(str(line).endswith(PRIOR) for line in self.header["assumptions"])
        need(stated, "assumptions: must name what was known before")
        lower, upper = (self.fields.floats(f"prior_{end}", len(most)) for end in ("lower", "upper"))
        need(((lower >= 0.0) & (lower <= upper) & (upper <= 1.0)).all(), "prior: must be bounds")
        listed = np.ones(len(most), dtype=np.bool_)
        listed[self.sets.ptr[1:] - 1] = self.support.listed
        digest = hashlib.sha256(lower[listed].tobytes() + upper[listed].tobytes()).hexdigest()[:16]
        self.note(prior.endswith(f", {digest}"), "prior knowledge as declared")
        lower, upper = np.where(listed, lower, 0.0), np.where(listed, upper, 1.0)
        return np.maximum(least, lower), np.minimum(most, upper)


def _check_guarantee(header: Mapping[str, Any], fields: Fields, claim: Claim, note: Note) -> None:
    """Check that the last guarantee is that of the solution, against nature, with its policy."""
    need(header["agent"] == ("MAX" if claim.agent > 0 else "MIN"), "agent: not the solution's")
    note(claim.nature == -claim.agent, "nature is against the agent")
    numbers = {k: float(v) for k, v in header["history"][-1].items()}
    guarantee, optimistic = numbers["guarantee"], numbers["optimistic"]
    need(-claim.agent in claim.bounds, "solution: must prove the side of the guarantee")
    at = claim.agent * claim.bounds[-claim.agent][claim.model.initial]
    note(bool(claim.agent * guarantee <= at.min()), "guarantee is the solution's")
    note(not claim.agent * guarantee > claim.agent * optimistic, "guarantee within the optimistic")
    rows = fields.integers("policy", ndim=2)
    same = rows.shape[0] == len(claim.policy) and rows.shape[1] <= claim.model.states
    same = same and np.array_equal(rows, claim.policy[:, : rows.shape[1]])
    note(bool(same), "policy is the solution's")
