"""E-values of contexts that must not matter.

The assumption says: whatever the context was, an outcome of an identifier has the same probability
p. If it holds,

    M(p) = mean over k of  product over contexts of  B(k p + x, k (1-p) + n-x) / B(k p, k (1-p))
           divided by p^x (1-p)^(n-x),      x times the outcome in n draws of a context,

is a martingale of mean 1: contexts with probabilities of their own, spread around p as Beta(k p,
k (1-p)), against the same p for all. p is not known, so the e-value is the least M(p). It exceeds
1 / level with probability at most `level`, whatever decided how much was sampled, and at all times
together; so do averages of e-values. Identifiers are drawn independently of each other. So the
product over J identifiers of 1 + (e - 1) / J is such a value, too: evidence in many of them adds
up, and one of them is enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rfmdp.ragged import entries, owners, segment_lengths, segment_sum, starts
from rfmdp.types import FloatArray, IntArray

SPREADS = (4.0, 32.0, 256.0, 2048.0)  # k of M(p)
SLACK = 1e-6  # of logarithms: rounding


@dataclass(frozen=True, slots=True, eq=False)
class Contexts:
    """What may matter for identifiers, and must not: draws by context.

    Entry i says that in context code[i] identifier ids[i] had outcome outcomes[i], times[i] times.
    """

    name: str
    ids: IntArray  # (N,)
    code: IntArray  # (N,)
    outcomes: IntArray  # (N,)
    times: FloatArray  # (N,)
    sizes: IntArray  # (M,) outcomes of all identifiers
    tested: int  # identifiers for which there can be several contexts


def e_values(contexts: Contexts) -> tuple[IntArray, FloatArray]:
    """Return the identifiers that were seen, and logarithms of their e-values.

    Every outcome has one, against all others; that of an identifier is their average. Of two
    outcomes one is enough.
    """
    if not len(contexts.ids):
        return np.empty(0, dtype=np.int64), np.empty(0)
    ids, number = np.unique(contexts.ids, return_inverse=True)
    number = number.reshape(-1)
    span = int(contexts.code.max()) + 1
    arms, arm = np.unique(number * span + contexts.code, return_inverse=True)
    arm = arm.reshape(-1)
    owner = arms // span  # of an arm: which identifier in which context
    sizes = contexts.sizes[ids % len(contexts.sizes)]
    ptr = starts(sizes[owner])
    x = np.bincount(ptr[arm] + contexts.outcomes, contexts.times, minlength=int(ptr[-1]))
    n = np.repeat(segment_sum(x.astype(np.float64), ptr), segment_lengths(ptr))
    arm_of = owners(ptr)
    outcome = np.arange(int(ptr[-1])) - ptr[arm_of]
    first = starts(np.where(sizes == 2, 1, sizes))
    kept = np.flatnonzero((sizes[owner[arm_of]] > 2) | (outcome == 0))
    group = (first[owner[arm_of]] + outcome)[kept]
    order = np.argsort(group, kind="stable")
    cells = kept[order]
    group_ptr = starts(np.bincount(group, minlength=int(first[-1])))
    logs = log_e_values(x[cells].astype(np.float64), n[cells], group_ptr)
    means = np.logaddexp.reduceat(logs, first[:-1]) - np.log(segment_lengths(first))
    return ids, means


def joined(log_e: FloatArray, tested: int) -> float:
    """Return the logarithm of the product of 1 + (e - 1) / tested; e-values that miss are 1."""
    rest = math.log1p(-1.0 / tested) if tested > 1 else -math.inf
    return float(np.logaddexp(rest, log_e - math.log(tested)).sum())


def log_e_values(x: FloatArray, n: FloatArray, ptr: IntArray) -> FloatArray:
    """Return the least ln M(p) of every group of contexts, or less, (G,).

    ln M is convex in p. So where it is larger on both sides of a place, its least value there is
    bounded by the straight lines through its neighbours. Groups without evidence, and those whose
    least value was not found between neighbours, have -inf.

    Parameters
    ----------
    x, n : (cells,) times the outcome, and draws, in every context
    ptr : (G + 1,) contexts of the groups
    """
    total, draws = segment_sum(x, ptr), segment_sum(n, ptr)
    logs = np.where((total == 0.0) | (total == draws), 0.0, -np.inf)  # always, or never: M = 1
    open_ = np.flatnonzero((total > 0.0) & (total < draws))
    p = total[open_] / draws[open_]
    at = _Cells(x, n, ptr, open_)
    worth = at.log_martingale(p) > 0.0  # the least is no more
    open_, p, at = open_[worth], p[worth], _Cells(x, n, ptr, open_[worth])
    width = np.sqrt(p * (1.0 - p) / draws[open_])
    for share in (1.5, 0.75, 0.3):
        step = np.minimum(share * width, np.minimum(p, 1.0 - p) / 4.0)
        places = p + step * np.arange(-3, 4)[:, None]  # (7, G)
        values = np.array([at.log_martingale(q) for q in places])
        least = np.argmin(values, axis=0)
        middle = np.clip(least, 2, 4)
        every = np.arange(len(p))
        p = places[least, every]
        value = _between_lines(values, middle, every)
        bound = np.where(least == middle, value, -np.inf)
        logs[open_] = np.maximum(logs[open_], bound - SLACK)
    return logs


def _between_lines(values: FloatArray, middle: IntArray, every: IntArray) -> FloatArray:
    """Return lower bounds near the least of convex functions at seven equidistant places."""
    a, b, c, d, e = (values[middle + i, every] for i in (-2, -1, 0, 1, 2))
    left, right = b - a, e - d  # slopes of the lines through the two places on each side
    # between b and c, and between c and d: above both lines, that of its side and of the other
    return np.minimum(c, np.minimum(_crossing(b, left, c, d - c), _crossing(d, -right, c, b - c)))


def _crossing(
    edge: FloatArray, out: FloatArray, middle: FloatArray, back: FloatArray
) -> FloatArray:
    """Return where two lines meet within one step.

    One goes through `edge` with slope `out` per step towards the middle, the other comes from the
    other side of the middle, `middle` at distance 1 with slope `back` per step away from the edge.
    """
    gap = middle - back - edge  # height of the second line above the first, at the edge
    t = np.clip(gap / np.where(out == back, 1.0, out - back), 0.0, 1.0)
    return np.minimum(edge + out * t, middle - back * (1.0 - t))


class _Cells:
    """Contexts of some groups, made ready to evaluate ln M(p)."""

    def __init__(self, x: FloatArray, n: FloatArray, ptr: IntArray, groups: IntArray) -> None:
        from scipy.special import gammaln

        self._ln_gamma = gammaln
        at = entries(ptr, groups)
        self._ptr = starts(segment_lengths(ptr)[groups])
        self._x, self._n = x[at], n[at]
        self._owner = owners(self._ptr)
        self._total = segment_sum(self._x, self._ptr)
        self._draws = segment_sum(self._n, self._ptr)
        self._whole = [gammaln(k + self._n) - gammaln(k) for k in SPREADS]

    def log_martingale(self, p: FloatArray) -> FloatArray:
        """Return ln M(p) of every group, (G,)."""
        ln_gamma, owner = self._ln_gamma, self._owner
        terms = []
        for k, whole in zip(SPREADS, self._whole, strict=True):
            a, b = k * p, k * (1.0 - p)
            cells = ln_gamma(a[owner] + self._x) + ln_gamma(b[owner] + self._n - self._x) - whole
            alone = (ln_gamma(a) + ln_gamma(b)) * segment_lengths(self._ptr)
            terms.append(segment_sum(cells, self._ptr) - alone)
        mixed: FloatArray = np.logaddexp.reduce(terms) - math.log(len(SPREADS))
        null = self._total * np.log(p) + (self._draws - self._total) * np.log1p(-p)
        return np.asarray(mixed - null)
