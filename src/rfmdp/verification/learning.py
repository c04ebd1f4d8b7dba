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
from rfmdp.verification.rewards import Payments
from rfmdp.verification.rollouts import check_rollouts
from rfmdp.verification.sets import Sets
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
        _check_learned(header, arrays, claim, note)
    except NotChecked as what:
        leave_open(f"{what}: not checked here")
    check_rollouts(header, arrays, claim, note)
    check_solution(claim)
    _check_guarantee(header, arrays, claim, note)


def _check_learned(
    header: Mapping[str, Any], arrays: Mapping[str, AnyArray], claim: Claim, note: Note
) -> None:
    """Check that the learned model follows from what was seen, at the stated errors."""
    settings, sets, ledger = header["settings"], claim.model.sets, Fields(arrays, "ledger/")
    evidence = Fields(arrays, "evidence/")
    confidence = Confidence(settings["confidence"])
    support = Support(settings["support"], settings["p_min"], confidence)
    payments = Payments(settings["rewards"])
    _check_ledger(ledger, settings, sets, confidence, support, note)
    _check_assumptions(header, confidence, support, payments, note)
    looks = _read_looks(arrays, sets, header["validity"])
    delta = ledger.floats("delta", len(sets.kind))
    floors = Fields(arrays).floats("floors", len(delta))  # less where marginals are multiplied
    fits = (floors >= 0.0) & (floors <= support.floor)
    need(fits.all(), "floors: must lie between 0 and p_min")
    known = _read_known(header, arrays, sets, floors, support, note)
    if support.declared:
        fine = sets_hold(sets, looks, delta, confidence, known)
    else:
        first = evidence.integers("first", len(sets.nominal))
        fine = discovered(sets, looks, first, delta, floors, confidence, known)
    bad = np.flatnonzero(~fine)
    note(not len(bad), f"sets from counts{f': marginal {bad[0]}' if len(bad) else ''}")
    if not support.listed:
        note(expects_the_worst(claim), "unseen outcomes lead to the worst")
    steps = [int(point["steps"]) for point in header["history"]]
    share = float(ledger.floats("shares", 4)[1])
    wrong = payments.fails(claim, evidence, looks, steps, share, support.listed)
    if payments.name != "known":
        note(not wrong, f"rewards of the learned model{f': {wrong}' if wrong else ''}")


def _read_known(
    header: Mapping[str, Any], arrays: Mapping[str, AnyArray], sets: Sets, floors: FloatArray,
    support: Support, note: Note,
) -> Known:  # fmt: skip
    """Return the bounds (O,) that were assumed before any data; a prior must be named."""
    if not support.declared:
        floors = np.zeros(len(floors))  # they are of what is possible, not of what is listed
    least, most = np.repeat(floors, sets.sizes), np.ones(len(sets.nominal))
    stated = any(str(line).endswith(PRIOR) for line in header["assumptions"])
    if header["settings"]["prior"] == "nothing":
        need("prior_lower" not in arrays, "prior: there must be none")
        return least, most
    need(stated, "assumptions: must name what was known before")
    lower, upper = (Fields(arrays).floats(f"prior_{end}", len(most)) for end in ("lower", "upper"))
    need(((lower >= 0.0) & (lower <= upper) & (upper <= 1.0)).all(), "prior: must be bounds")
    listed = np.ones(len(most), dtype=np.bool_)
    listed[sets.ptr[1:] - 1] = support.listed
    digest = hashlib.sha256(lower[listed].tobytes() + upper[listed].tobytes()).hexdigest()[:16]
    note(header["settings"]["prior"].endswith(f", {digest}"), "prior knowledge as declared")
    lower, upper = np.where(listed, lower, 0.0), np.where(listed, upper, 1.0)
    return np.maximum(least, lower), np.minimum(most, upper)


def _check_ledger(
    ledger: Fields, settings: Mapping[str, str], sets: Sets, confidence: Confidence,
    support: Support, note: Note,
) -> None:  # fmt: skip
    """Check that all events are counted and cost no more than their share, and shares than beta."""
    shares = ledger.floats("shares", 4)
    need(((shares >= 0.0) & (shares < 1.0)).all(), "ledger/shares: must lie in [0, 1)")
    delta, events = ledger.floats("delta", len(sets.kind)), ledger.integers("events")
    need(((delta >= 0.0) & (delta < 1.0)).all(), "ledger/delta: must lie in [0, 1)")
    need(len(events) == len(delta), "ledger/events: must have one per marginal")
    beta = float(settings["beta"])
    granted = sum(map(Fraction, shares.tolist()), Fraction(0))
    note(0 < granted < 1 and float(granted) <= beta * (1.0 + 2.0**-50), "shares within beta")
    needed = np.array([support.events(confidence, int(size)) for size in sets.sizes])
    spends = delta > 0.0
    note(bool((events >= needed)[spends].all()), "every event is counted")
    spent = sum(
        (int(e) * Fraction(float(d)) for e, d in zip(events[spends], delta[spends], strict=True)),
        Fraction(0),
    )
    note(spent <= Fraction(float(shares[0])), "events within the share of the model")


def _check_assumptions(
    header: Mapping[str, Any], confidence: Confidence, support: Support, payments: Payments,
    note: Note,
) -> None:  # fmt: skip
    """Check that every sentence that the chain rests on is there."""
    settings = header["settings"]
    source = str(settings.get("source", ""))
    wanted = (confidence.assumptions - {SUPPORT}) | support.assumptions | payments.assumptions
    wanted |= {LEDGER, SHARED, PRODUCT, STRUCTURE}
    if settings["granularity"] == "tied":
        wanted |= {TIED}
    elif header["shared"]:
        wanted |= {TIES}
    if source.startswith("recorded"):
        wanted |= {RECORDED}
        need(settings.get("selection", "none") == "none", "selection: must be none")
    if source.startswith("environment"):
        wanted |= {MARKOV, RESET}
    note(wanted <= set(header["assumptions"]), "assumptions are complete")
    validity = SINGLE if confidence.single else ANYTIME
    note(header["validity"] == validity, "validity as the sets have it")


def _read_looks(arrays: Mapping[str, AnyArray], sets: Sets, validity: str) -> IntArray:
    """Return counts (looks, O) that grow from look to look and are within those of the run."""
    fields = Fields(arrays)
    looks = fields.integers("looks", len(sets.nominal), ndim=2)
    counts = fields.integers("counts", len(sets.nominal))
    need((looks >= 0).all() and (np.diff(looks, axis=0) >= 0).all(), "looks: must not fall")
    need(not len(looks) or (looks[-1] <= counts).all(), "looks: must be within the counts")
    need(validity == ANYTIME or len(looks) <= 1, "looks: there must be one only")
    return looks


def _check_guarantee(
    header: Mapping[str, Any], arrays: Mapping[str, AnyArray], claim: Claim,
    note: Note,
) -> None:  # fmt: skip
    """Check that the last guarantee is that of the solution, against nature, with its policy."""
    need(header["agent"] == ("MAX" if claim.agent > 0 else "MIN"), "agent: not the solution's")
    note(claim.nature == -claim.agent, "nature is against the agent")
    numbers = {k: float(v) for k, v in header["history"][-1].items()}
    guarantee, optimistic = numbers["guarantee"], numbers["optimistic"]
    proven = claim.bounds.get(-claim.agent)
    need(proven is not None, "solution: must prove the side of the guarantee")
    assert proven is not None
    at = claim.agent * proven[claim.model.initial]
    note(bool(claim.agent * guarantee <= at.min()), "guarantee is the solution's")
    note(not claim.agent * guarantee > claim.agent * optimistic, "guarantee within the optimistic")
    rows = Fields(arrays).integers("policy", ndim=2)
    same = rows.shape[0] == len(claim.policy) and rows.shape[1] <= claim.model.states
    same = same and np.array_equal(rows, claim.policy[:, : rows.shape[1]])
    note(bool(same), "policy is the solution's")
