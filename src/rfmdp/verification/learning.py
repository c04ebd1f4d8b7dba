"""Check a learning run again: from counts to sets, from sets to the guarantee, from deltas to beta.

A run says "with probability 1 - beta the policy is worth so much". That rests on

- the ledger: the error probabilities of all events, as many as the confidence sets need, add up;
- the sets: what the learned model keeps of an unknown distribution holds all that the counts of
  some look do not rule out. A bound p of a probability seen x times in n is tested forwards: its
  tail or its likelihood ratio is computed, no quantile is searched for;
- the solution of the learned model, whose bounds are proven like those of any other;
- rollouts: as many trajectories of a frozen policy won as are needed for what is certified;
- assumptions, each of which has to be stated.

Special functions are good to about `ACCURACY`; so far an error probability may be exceeded.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import special

from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.verification.reading import (
    BOX,
    KL,
    L1,
    SINGLETON,
    SUBSETS,
    Claim,
    Fields,
    Sets,
    need,
    read_claim,
)  # fmt: skip

ACCURACY = 1e-7  # relative, of error probabilities
SIZES = (1.0, 8.0, 64.0, 512.0, 4096.0, 32768.0, 262144.0)  # of the priors of the mixture
WEIGHTS = (0.40, 0.16, 0.12, 0.10, 0.08, 0.07, 0.07)
ANYTIME, SINGLE = "anytime", "fixed sample size, single look"

DRAWS = "every sample of a marginal is an independent draw from one fixed distribution"
SUPPORT = "the declared outcomes of a marginal are all its possible outcomes"
FIXED = "the sample size of every marginal was fixed before sampling; bounds are read once"
LEDGER = "the error probabilities were fixed before the samples they are used for"
SHARED = "rows that share an identifier draw from the same distribution"
PRODUCT = "the marginals of a row are drawn independently of each other"
STRUCTURE = "states, actions and successors of outcomes of the model are as declared"
REWARDS = "rewards of the model are as declared"
FROZEN = "the policy and the number of trajectories were fixed before the trajectories were run"
RESTART = "trajectories are independent and start in the initial state"
RECORDED = "every transition of the source was recorded, none was left out because of what followed"
TIES = "tied marginals are the same distribution, as declared"

PRIOR = "marginals lie in the sets of the model"  # with their number before it

Known = tuple[FloatArray, FloatArray]
Rejects = Callable[[FloatArray, FloatArray, FloatArray, FloatArray], BoolArray]
"""Whether x of n rule out all probabilities up to p, which is at most x / n, at error delta."""


class NotChecked(Exception):
    """Something that this checker does not know."""


def clopper_pearson(p: FloatArray, x: FloatArray, n: FloatArray, delta: FloatArray) -> BoolArray:
    """Test by the exact binomial tail, half of the error on this side."""
    tail = special.betainc(np.maximum(x, 1.0), n - x + 1.0, p)
    return np.asarray((x > 0) & (tail <= 0.5 * delta * (1.0 + ACCURACY)))


def hoeffding(p: FloatArray, x: FloatArray, n: FloatArray, delta: FloatArray) -> BoolArray:
    """Test whether 2 exp(-2 n (x/n - p)^2) <= delta."""
    return np.asarray(2.0 * np.exp(-2.0 * n * (x / n - p) ** 2) <= delta * (1.0 + ACCURACY))


def mixture(p: FloatArray, x: FloatArray, n: FloatArray, delta: FloatArray) -> BoolArray:
    """Test whether a mixture of priors around p has 1 / delta times the likelihood of p."""
    q = 1.0 - p
    own = x * np.log(p) + (n - x) * np.log(q)
    terms = [
        math.log(weight)
        + special.betaln(size * p + x, size * q + n - x)
        - special.betaln(size * p, size * q)
        for size, weight in zip(SIZES, WEIGHTS, strict=True)
    ]
    ratio = np.logaddexp.reduce(terms) - own
    return np.asarray(ratio >= -np.log(delta) - _noise(n))


def krichevsky_trofimov(
    p: FloatArray, x: FloatArray, n: FloatArray, delta: FloatArray
) -> BoolArray:
    """Test the same with the one prior Beta(1/2, 1/2)."""
    own = x * np.log(p) + (n - x) * np.log(1.0 - p)
    ratio = special.betaln(x + 0.5, n - x + 0.5) - math.log(math.pi) - own
    return np.asarray(ratio >= -np.log(delta) - _noise(n))


def _noise(n: FloatArray) -> FloatArray:
    """Return what logarithms of likelihoods of n samples may be off."""
    return np.asarray(ACCURACY + 1e-14 * n)


def grid(ratio: float, largest: int | None) -> Rejects:
    """Return the test at sizes ceil(ratio^k) only: the last one before n, and the next."""

    def rejects(p: FloatArray, x: FloatArray, n: FloatArray, delta: FloatArray) -> BoolArray:
        top = int(n.max(initial=1.0)) if largest is None else largest
        need(n.max(initial=0.0) <= top, "looks: more samples than the grid was declared for")
        steps = math.ceil(math.log(max(top, 1)) / math.log(ratio)) + 1
        sizes = np.unique(np.ceil(ratio ** np.arange(steps + 1)).astype(np.int64))
        sizes = sizes[: int(np.searchsorted(sizes, top)) + 1]
        ahead = np.searchsorted(sizes, n)
        behind = ahead - (sizes[ahead] > n)
        found = np.zeros(p.shape, dtype=np.bool_)
        for at, seen in ((ahead, x), (behind, np.maximum(x - (n - sizes[behind]), 0.0))):
            share = len(sizes) if largest is not None else (at + 1.0) * (at + 2.0)
            found |= clopper_pearson(p, seen, sizes[at].astype(np.float64), delta / share)
        return found

    return rejects


class Confidence:
    """A confidence set, as the settings of a run name it."""

    def __init__(self, text: str) -> None:
        self.name, self.options = _parsed(text)
        known = ("BySize", "AllSubsets", "Weissman", "KLDirichlet", *_BERNOULLI)
        if self.name not in known:
            raise NotChecked(f"confidence set {self.name}")
        parts = {k: v for k, v in self.options.items() if k in ("small", "large", "base")}
        self.parts = {name: Confidence(part) for name, part in parts.items()}
        self.single: bool = self.name in ("ClopperPearson", "Hoeffding", "Weissman")
        self.single |= any(part.single for part in self.parts.values())
        self.assumptions = {DRAWS, SUPPORT} | ({FIXED} if self.single else set())
        if self.name == "GridClopperPearson" and self.options.get("largest") is not None:
            most = self.options["largest"]
            self.assumptions.add(f"no marginal is sampled more than {most} times")
        for part in self.parts.values():
            self.assumptions |= part.assumptions

    def of_size(self, size: int) -> Confidence:
        """Return the part that serves sets of a size."""
        if self.name != "BySize":
            return self
        return self.parts["large" if size >= self.options["large_from"] else "small"].of_size(size)

    def events(self, size: int) -> int:
        """Return how many events a set of a size needs."""
        if self.name == "BySize":
            return self.of_size(size).events(size)
        if self.name == "AllSubsets":
            return int(2 ** (size - 1) - 1)
        if self.name in ("Weissman", "KLDirichlet"):
            return min(size - 1, 1)
        return size - 1 if size <= 2 else size

    def rejects(self) -> Rejects:
        """Return the test of a Bernoulli set, or of that which a subset set is made of."""
        if self.name == "AllSubsets":
            return self.parts["base"].rejects()
        if self.name == "GridClopperPearson":
            return grid(float(self.options["ratio"]), self.options["largest"])
        if self.name not in _BERNOULLI:
            raise NotChecked(f"confidence set {self.name} for boxes")
        return _BERNOULLI[self.name]


_BERNOULLI: dict[str, Rejects] = {
    "ClopperPearson": clopper_pearson, "Hoeffding": hoeffding, "Mixture": mixture,
    "KrichevskyTrofimov": krichevsky_trofimov, "GridClopperPearson": clopper_pearson,
}  # fmt: skip


def _parsed(text: str) -> tuple[str, dict[str, Any]]:
    """Return name and options of a text like `AllSubsets(base=Mixture(), most_outcomes=10)`."""
    try:
        call = ast.parse(text, mode="eval").body
    except SyntaxError:
        raise NotChecked(f"confidence set {text!r}") from None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        raise NotChecked(f"confidence set {text!r}")
    options: dict[str, Any] = {}
    for option in call.keywords:
        inner = isinstance(option.value, ast.Call)
        text = ast.unparse(option.value)
        options[str(option.arg)] = text if inner else ast.literal_eval(option.value)
    return call.func.id, options


def check_run(
    header: Mapping[str, Any],
    arrays: Mapping[str, AnyArray],
    note: Callable[[bool, str], None],
    leave_open: Callable[[str], None],
    check_solution: Callable[[Claim, Mapping[str, AnyArray]], None],
) -> None:
    """Check a run; what holds or not is noted, what is not known here is left open."""
    settings = header["settings"]
    words = ("confidence", "support", "rewards", "p_min", "beta", "granularity", "prior")
    need(isinstance(settings, dict) and set(words) <= set(settings), "settings: incomplete")
    need(not header["alarms"], "alarms: nothing is guaranteed")
    if "solution" not in header:
        leave_open("the run has no solution: nothing is guaranteed")
        return
    part = {name[9:]: array for name, array in arrays.items() if name.startswith("solution/")}
    claim = read_claim(header["solution"], part)
    try:
        _known_kind(settings)
        confidence = Confidence(settings["confidence"])
        ledger = Fields(arrays, "ledger/")
        _check_ledger(ledger, settings, claim.model.sets, confidence, note)
        _check_assumptions(header, confidence, note)
        looks = _read_looks(arrays, claim.model.sets, confidence, header["validity"])
        delta = ledger.floats("delta", len(claim.model.sets.kind))
        floors = Fields(arrays).floats("floors", len(delta))  # less where marginals are multiplied
        fits = (floors >= 0.0) & (floors <= _floor(settings))
        need(fits.all(), "floors: must lie between 0 and p_min")
        known = _read_known(header, arrays, claim.model.sets, floors)
        bad = [j for j in range(len(delta)) if not holds(claim.model.sets, j, looks, delta[j],
                                                         confidence, known)]  # fmt: skip
        note(not bad, f"sets from counts{f': marginal {bad[0]}' if bad else ''}")
    except NotChecked as what:
        leave_open(f"{what}: not checked here")
    history = header["history"]
    need(isinstance(history, list) and history, "history: must not be empty")
    _check_rollouts(header, arrays, claim, note, leave_open)
    check_solution(claim, part)
    _check_guarantee(header, arrays, claim, note)


def _known_kind(settings: Mapping[str, str]) -> None:
    """Raise `NotChecked` for what changes the meaning of sets in other ways."""
    for name, plain in (("support", "DeclaredSupport()"), ("rewards", "known")):
        if settings[name] != plain:
            raise NotChecked(f"{name} {settings[name]}")


def _floor(settings: Mapping[str, str]) -> float:
    """Return the probability that every declared outcome was assumed to have at least."""
    floor = float(settings["p_min"])
    need(0.0 <= floor < 1.0, "p_min: must lie in [0, 1)")
    return floor


def _read_known(
    header: Mapping[str, Any], arrays: Mapping[str, AnyArray], sets: Sets, floors: FloatArray
) -> Known:
    """Return the bounds (O,) that were assumed before any data; a prior must be named."""
    least, most = np.repeat(floors, sets.sizes), np.ones(len(sets.nominal))
    stated = any(str(line).endswith(PRIOR) for line in header["assumptions"])
    if header["settings"]["prior"] == "nothing":
        need("prior_lower" not in arrays, "prior: there must be none")
        return least, most
    need(stated, "assumptions: must name what was known before")
    lower, upper = (Fields(arrays).floats(f"prior_{end}", len(most)) for end in ("lower", "upper"))
    need(((lower >= 0.0) & (lower <= upper) & (upper <= 1.0)).all(), "prior: must be bounds")
    return np.maximum(least, lower), np.minimum(most, upper)


def _check_ledger(
    ledger: Fields, settings: Mapping[str, str], sets: Sets, confidence: Confidence,
    note: Callable[[bool, str], None],
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
    needed = np.array([confidence.events(int(size)) for size in sets.sizes])
    spends = delta > 0.0
    note(bool((events >= needed)[spends].all()), "every event is counted")
    spent = sum(
        (int(e) * Fraction(float(d)) for e, d in zip(events[spends], delta[spends], strict=True)),
        Fraction(0),
    )
    note(spent <= Fraction(float(shares[0])), "events within the share of the model")


def _check_assumptions(
    header: Mapping[str, Any], confidence: Confidence, note: Callable[[bool, str], None]
) -> None:
    wanted = confidence.assumptions | {LEDGER, SHARED, PRODUCT, STRUCTURE, REWARDS}
    settings = header["settings"]
    if header["shared"] and settings["granularity"] != "tied":
        wanted = wanted | {TIES}
    if _floor(settings) > 0.0:
        floor = f"p_min: every declared outcome of a marginal has probability >= {_floor(settings)}"
        wanted = wanted | {floor}
    if str(settings.get("source", "")).startswith("recorded"):
        wanted = wanted | {RECORDED}
        need(settings.get("selection", "none") == "none", "selection: must be none")
    note(wanted <= set(header["assumptions"]), "assumptions are complete")
    validity = SINGLE if confidence.single else ANYTIME
    note(header["validity"] == validity, "validity as the sets have it")


def _read_looks(
    arrays: Mapping[str, AnyArray], sets: Sets, confidence: Confidence, validity: str
) -> IntArray:
    """Return counts (looks, O) that grow from look to look and are within those of the run."""
    fields = Fields(arrays)
    looks = fields.integers("looks", len(sets.nominal), ndim=2)
    counts = fields.integers("counts", len(sets.nominal))
    need((looks >= 0).all() and (np.diff(looks, axis=0) >= 0).all(), "looks: must not fall")
    need(not len(looks) or (looks[-1] <= counts).all(), "looks: must be within the counts")
    need(validity == ANYTIME or len(looks) <= 1, "looks: there must be one only")
    return looks


def holds(
    sets: Sets, j: int, looks: IntArray, delta: float, confidence: Confidence, known: Known
) -> bool:
    """Return whether set j has all distributions within known bounds that no look rules out."""
    part = slice(sets.ptr[j], sets.ptr[j + 1])
    size, kind = int(sets.sizes[j]), int(sets.kind[j])
    if size == 1:
        return True
    own = confidence.of_size(size)
    seen = looks[:, part].astype(np.float64)
    seen = seen[seen.sum(axis=1) > 0] if delta > 0.0 else seen[:0]
    least, most = (bound[part] for bound in known)
    narrowed = bool(np.any(least > 0.0) or np.any(most < 1.0))  # maybe to a point
    if np.isnan(sets.exponent[j]) and (kind == BOX or (kind == SINGLETON and narrowed)):
        lower, upper = sets.lower[part], sets.upper[part]
        return _box_holds(lower, upper, seen, delta, own, (least, most))
    if kind == SUBSETS and own.name == "AllSubsets":
        table = sets.corners[sets.corner_ptr[j] : sets.corner_ptr[j + 1]]
        masks = np.arange(1, len(table) - 1)
        bits = ((masks[:, None] >> np.arange(size)) & 1).astype(np.float64)
        return bool(_below(table[1:-1], seen @ bits.T, seen, delta, own).all())
    last = seen[-1] if len(seen) else None
    if last is not None and not np.array_equal(last, looks[-1, part]):
        return False
    if kind == L1 and own.name == "Weissman":
        return _l1_holds(sets.nominal[part], float(sets.radius[j]), last, delta)
    if kind == KL and own.name == "KLDirichlet":
        return _kl_holds(sets.nominal[part], float(sets.radius[j]), last, delta)
    if kind == SINGLETON:
        return False
    raise NotChecked(f"a set of kind {kind} by {own.name}")


def _below(
    p: FloatArray, x: FloatArray, seen: FloatArray, delta: float, own: Confidence
) -> BoolArray:
    """Return which lower bounds p (N,) some look of x (looks, N) proves."""
    proven = p <= 0.0
    rejects = own.rejects()
    for line, total in zip(x, seen.sum(axis=1), strict=True):
        open_ = np.flatnonzero(~proven & (p < line / total))
        n = np.full(len(open_), total)
        proven[open_] = rejects(p[open_], line[open_], n, np.full(len(open_), delta))
    return np.asarray(proven)


def _box_holds(
    lower: FloatArray, upper: FloatArray, seen: FloatArray, delta: float, own: Confidence,
    known: Known,
) -> bool:  # fmt: skip
    """Return whether bounds are known, or of some look, or follow from those of other outcomes."""
    misses = seen.sum(axis=1, keepdims=True) - seen
    low = _below(lower, seen, seen, delta, own) | (lower <= known[0])
    high = _below(1.0 - upper, misses, seen, delta, own) | (upper >= known[1])
    if low.all() and high.all():
        return True
    # only what looks prove, or is assumed, may serve as a reason
    least = np.maximum(_proven(seen, seen, delta, own), np.where(low, lower, known[0]))
    most = np.minimum(1.0 - _proven(misses, seen, delta, own), np.where(high, upper, known[1]))
    for k in range(len(lower)):
        low[k] |= math.fsum([lower[k], -1.0, *most[:k], *most[k + 1 :]]) <= 0.0
        high[k] |= math.fsum([upper[k], -1.0, *least[:k], *least[k + 1 :]]) >= 0.0
    return bool(low.all() and high.all())


def _proven(x: FloatArray, seen: FloatArray, delta: float, own: Confidence) -> FloatArray:
    """Return nearly the largest lower bounds (N,) that some look of x (looks, N) proves."""
    low = np.zeros(x.shape[1])
    high = (x / seen.sum(axis=1, keepdims=True)).max(axis=0, initial=0.0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        proven = _below(middle, x, seen, delta, own)
        low, high = np.where(proven, middle, low), np.where(proven, high, middle)
    return low


def _centred(nominal: FloatArray, counts: FloatArray) -> bool:
    return bool(np.abs(nominal - counts / counts.sum()).max() <= 1e-14)


def _l1_holds(nominal: FloatArray, radius: float, counts: FloatArray | None, delta: float) -> bool:
    if radius >= 2.0 or counts is None:
        return radius >= 2.0
    k, n = len(nominal), counts.sum()
    vertices = k * math.log(2.0) + math.log1p(-(2.0 ** (1.0 - k)))
    needed = math.sqrt(2.0 * (vertices - math.log(delta * (1.0 + ACCURACY))) / n)
    return _centred(nominal, counts) and radius >= needed


def _kl_holds(nominal: FloatArray, radius: float, counts: FloatArray | None, delta: float) -> bool:
    if math.isinf(radius) or counts is None:
        return math.isinf(radius)
    k, n = len(nominal), counts.sum()
    logs = special.xlogy(counts, counts / n).sum()
    prior = special.gammaln(counts + 0.5).sum() - k * special.gammaln(0.5)
    evidence = special.gammaln(n + k / 2) - special.gammaln(k / 2) - prior + logs
    needed = (evidence - math.log(delta) - float(_noise(n))) / n
    return _centred(nominal, counts) and radius >= needed


def _check_rollouts(
    header: Mapping[str, Any], arrays: Mapping[str, AnyArray], claim: Claim,
    note: Callable[[bool, str], None], leave_open: Callable[[str], None],
) -> None:  # fmt: skip
    """Check the certificates of frozen policies by the exact binomial tail, and what they cost."""
    found = header["rollouts"]
    need(isinstance(found, list), "rollouts: must be a list")
    bounds, cost = [], Fraction(0)
    for i, each in enumerate(found):
        won, runs, delta = each["successes"], each["trajectories"], float(each["delta"])
        bounds.append(float(each["bound"]))
        need(type(runs) is int and runs > 0 and 0.0 < delta < 1.0, f"rollouts: {i}, out of range")
        cost += Fraction(delta)
        note({FROZEN, RESTART} <= set(each["assumptions"]), f"assumptions of rollouts {i}")
        if won is None:
            leave_open(f"rollouts {i}: returns are not in the file, not checked here")
            continue
        need(type(won) is int and 0 <= won <= runs, f"rollouts: {i}, successes out of range")
        tail = special.betainc(max(won, 1), runs - won + 1.0, min(max(bounds[-1], 0.0), 1.0))
        fine = bounds[-1] <= 0.0 or (won > 0 and tail <= delta * (1.0 + ACCURACY))
        note(bool(fine and bounds[-1] <= 1.0), f"bound of rollouts {i} from successes")
        wins = claim.agent > 0 and claim.kind in ("Reach", "Until")
        note(wins, f"rollouts {i} count what the objective asks")
    share = Fields(arrays, "ledger/").floats("shares", 4)[2]
    note(cost <= Fraction(float(share)), "rollouts within their share")
    last = float(header["history"][-1]["rollout"])
    note(bool(np.isnan(last) or last <= max(bounds, default=-np.inf)), "best of the rollouts")
    if bounds:
        rows, model = Fields(arrays).integers("rollout_policy", ndim=2), claim.model
        count = rows.shape[1]
        own = count <= model.states and len(rows) > 0
        own = own and bool((rows >= model.row_ptr[:count]).all())
        own = own and bool((rows < model.row_ptr[1 : count + 1]).all())
        need(own, "rollout_policy: must take rows of the state itself")


def _check_guarantee(
    header: Mapping[str, Any], arrays: Mapping[str, AnyArray], claim: Claim,
    note: Callable[[bool, str], None],
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
