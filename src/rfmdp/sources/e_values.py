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
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln

from rfmdp.ragged import entries, owners, segment_lengths, segment_sum, starts
from rfmdp.types import AnyArray, FloatArray, IntArray

SPREADS = (4.0, 32.0, 256.0, 2048.0)  # k of M(p)
HALVINGS = 40
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

    ln M is convex in p: its slope tells on which side of p it is least, and its tangent bounds it
    in the interval that is left. Groups without evidence have -inf.

    x, n : (cells,) times the outcome, and draws, in every context
    ptr : (G + 1,) contexts of the groups
    """
    total, draws = segment_sum(x, ptr), segment_sum(n, ptr)
    logs = np.where((total == 0.0) | (total == draws), 0.0, -np.inf)  # always, or never: M = 1
    groups = np.flatnonzero((total > 0.0) & (total < draws))
    evidence = _Cells(x, n, ptr, groups).log_martingale(total[groups] / draws[groups]) > 0.0
    groups = groups[evidence]  # elsewhere the least is no more than 1
    cells, low, high = _Cells(x, n, ptr, groups), np.zeros(len(groups)), np.ones(len(groups))
    for _ in range(HALVINGS):
        p = 0.5 * (low + high)
        falls = cells.slope(p) < 0.0
        low, high = np.where(falls, p, low), np.where(falls, high, p)
    p = 0.5 * (low + high)
    logs[groups] = cells.log_martingale(p) - np.abs(cells.slope(p)) * (high - low) - SLACK
    return logs


class _Cells:
    """Contexts of some groups, made ready to evaluate ln M(p)."""

    def __init__(self, x: FloatArray, n: FloatArray, ptr: IntArray, groups: IntArray) -> None:
        at = entries(ptr, groups)
        self._ptr = starts(segment_lengths(ptr)[groups])
        self._x, self._n, self._owner = x[at], n[at], owners(self._ptr)
        self._total, self._draws = (segment_sum(a, self._ptr) for a in (self._x, self._n))
        whole = (gammaln(k + self._n) - gammaln(k) for k in SPREADS)
        self._whole = [segment_sum(each, self._ptr) for each in whole]

    def _sums(
        self, p: FloatArray, k: float, function: Callable[[AnyArray], AnyArray], sign: float
    ) -> FloatArray:
        """Return the sums of function(k p + x) + sign function(k (1-p) + n-x), less x = n = 0."""
        a, b, at = k * p, k * (1.0 - p), self._owner
        cells = function(a[at] + self._x) + sign * function(b[at] + self._n - self._x)
        alone = segment_lengths(self._ptr) * (function(a) + sign * function(b))
        return segment_sum(cells, self._ptr) - alone

    def _terms(self, p: FloatArray) -> FloatArray:
        """Return the logarithms of the numerators of M(p), (spreads, G)."""
        pairs = zip(SPREADS, self._whole, strict=True)
        return np.array([self._sums(p, k, gammaln, 1.0) - each for k, each in pairs])

    def log_martingale(self, p: FloatArray) -> FloatArray:
        """Return ln M(p) of every group, (G,)."""
        mixed: FloatArray = np.logaddexp.reduce(self._terms(p)) - math.log(len(SPREADS))
        null = self._total * np.log(p) + (self._draws - self._total) * np.log1p(-p)
        return np.asarray(mixed - null)

    def slope(self, p: FloatArray) -> FloatArray:
        """Return the derivative of ln M(p), (G,)."""
        terms = self._terms(p)
        weights = np.exp(terms - np.logaddexp.reduce(terms))
        rises = np.array([k * self._sums(p, k, digamma, -1.0) for k in SPREADS])
        null = self._total / p - (self._draws - self._total) / (1.0 - p)
        return np.asarray(np.sum(weights * rises, axis=0) - null)
