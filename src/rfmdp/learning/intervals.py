"""Confidence intervals of one Bernoulli probability, for whole arrays of counts.

Every function maps (x, n, delta), broadcast against each other, to `(lower, upper)`: x successes
in n trials, 0 <= x <= n, and the error probability of both sides together, 0 < delta < 1. All are
mirror images: upper(x, n) = 1 - lower(n - x, n), so that the two outcomes of a coin are one event.
Ends are rounded outwards: float error can only widen an interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rfmdp.errors import ModelError
from rfmdp.kernels.statistical import mixture_lower
from rfmdp.rounding import EPS
from rfmdp.types import FloatArray, IntArray

Bounds = tuple[FloatArray, FloatArray]
LowerEnd = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]

#: Prior sizes and weights of the mixture sequence: small sizes serve small n, large ones large n.
MIXTURE_SIZES = (1.0, 8.0, 64.0, 512.0, 4096.0, 32768.0, 262144.0)
MIXTURE_WEIGHTS = (0.40, 0.16, 0.12, 0.10, 0.08, 0.07, 0.07)


def clopper_pearson(x: ArrayLike, n: ArrayLike, delta: ArrayLike) -> Bounds:
    """Return the exact binomial interval [ClopperPearson1934]; fixed sample size, single look.

    lower = B(delta/2; x, n-x+1) and upper = B(1-delta/2; x+1, n-x), quantiles of Beta.
    """
    return _interval(lambda x, n, delta: _beta_quantile(x, n, 0.5 * delta), x, n, delta)


def mixture(x: ArrayLike, n: ArrayLike, delta: ArrayLike) -> Bounds:
    """Return the scale-mixture confidence sequence at n; anytime valid, two-sided in one delta.

    C_n = {p : ln M_n(p) < ln(1/delta)} with M_n(p) the mixture over m, with weights w_m, of
        B(kappa_m p + x, kappa_m (1-p) + n-x) / B(kappa_m p, kappa_m (1-p)) / (p^x (1-p)^(n-x)).
    M_n(p) is a martingale of mean 1 under p, so by Ville's inequality p leaves C_n at some n with
    probability at most delta. ln M_n is convex in p, hence C_n is an interval.

    The lower end is 0 up to x = 1, whatever n: the priors move with p, and one success fits any
    small p. At x = 0 the upper end is below Clopper-Pearson's, which spends half of delta there.
    x may be a sum of observations in [0, 1] with mean p (then M_n is a supermartingale).
    """
    return _interval(_mixture_lower, x, n, delta)


def _checked(
    x: ArrayLike, n: ArrayLike, delta: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Broadcast to float64 and check once; kernels check nothing."""
    arrays = [np.asarray(a, dtype=np.float64) for a in (x, n, delta)]
    successes, trials, error = np.broadcast_arrays(*arrays)
    bad = ~((successes >= 0) & (successes <= trials) & np.isfinite(trials))
    bad |= ~((error > 0) & (error < 1))
    if np.any(bad):
        first = int(np.argmax(bad))
        raise ModelError(
            "Counts and error probability: 0 <= x <= n and 0 < delta < 1 must hold, found "
            f"x={successes.flat[first]:g}, n={trials.flat[first]:g}, delta={error.flat[first]:g}."
        )
    return successes, trials, error


def _interval(lower_end: LowerEnd, x: ArrayLike, n: ArrayLike, delta: ArrayLike) -> Bounds:
    """Both ends by mirroring, each distinct (x, n, delta) computed once."""
    successes, trials, error = _checked(x, n, delta)
    shape, size = trials.shape, trials.size
    columns = np.stack([
        np.concatenate([successes.ravel(), (trials - successes).ravel()]),
        np.concatenate([trials.ravel()] * 2),
        np.concatenate([error.ravel()] * 2),
    ])  # fmt: skip
    different, inverse = np.unique(columns, axis=1, return_inverse=True)
    lower = np.zeros(different.shape[1])
    seen = different[1] > 0
    lower[seen] = lower_end(*np.ascontiguousarray(different[:, seen]))
    ends = lower[inverse.reshape(-1)]
    # one ulp upwards, so that rounding keeps the mirrored end an outer bound
    upper = np.minimum(np.nextafter(1.0 - ends[size:], 2.0), 1.0)
    return ends[:size].reshape(shape), upper.reshape(shape)


def _beta_quantile(x: FloatArray, n: FloatArray, alpha: FloatArray) -> FloatArray:
    """Return a p with I_p(x, n-x+1) <= alpha, nearly equal; 0 where x = 0.

    The inverse is only a guess: it is verified by the forward function and moved outwards, in
    doubling steps, until the inequality holds.
    """
    lower = np.zeros(np.shape(n))
    rows = np.flatnonzero(np.asarray(x).ravel() > 0)
    a = np.ravel(x)[rows]
    b = np.ravel(n - x)[rows] + 1.0
    # room for the forward function's own error, which grows with its exponents
    target = np.ravel(alpha)[rows] * (1.0 - 1e-12 - np.minimum(2.0 * EPS * (a + b), 0.5))
    p = special.betaincinv(a, b, target)
    p = np.where(np.isfinite(p), p, a / (a + b))
    step = 2.0 * EPS
    open_rows = np.flatnonzero(special.betainc(a, b, p) > target)
    while len(open_rows):
        p[open_rows] *= max(1.0 - step, 0.0)
        step *= 2.0
        excess = special.betainc(a[open_rows], b[open_rows], p[open_rows]) > target[open_rows]
        open_rows = open_rows[excess]
    lower.ravel()[rows] = p
    return lower


def _mixture_lower(x: FloatArray, n: FloatArray, delta: FloatArray) -> FloatArray:
    """Run the root search of the mixture sequence over flat arrays."""
    sizes = np.array(MIXTURE_SIZES)
    lower = np.empty(len(n))
    # one ulp on the threshold pays for the rounding of the logarithm
    threshold = -np.log(delta) * (1.0 + 2.0 * EPS)
    mixture_lower(x, n, threshold, sizes, np.log(MIXTURE_WEIGHTS), np.empty(len(sizes)), lower)
    return lower


def least_mean(values: FloatArray, counts: IntArray, delta: float) -> float:
    """Return a lower bound of the mean of some values under the distribution that was sampled.

    It is for random starts: the distribution of starts is the source's, and is learned from what
    resets gave, with one interval of the mixture sequence per initial state.

    For all q within bounds l, u that sum to 1, and every number c,
        sum q v  >=  c + sum min(l (v - c), u (v - c)),
    with equality at the least mean if c is the value at which the mass of 1 is used up. Rounding
    is subtracted.

    values, counts : (I,) of the initial states, and episodes that began in each
    delta : error probability of each interval
    """
    lower, upper = mixture(counts, counts.sum(), delta)
    values, lower, upper = (a[upper > 0.0] for a in (values, lower, upper))
    if np.min(values) == -math.inf or np.min(values) == math.inf:
        return float(np.min(values))
    values = np.minimum(values, np.max(values[np.isfinite(values)]))  # less than infinite
    order = np.argsort(values, kind="stable")
    mass = 1.0 - float(lower.sum())
    used = np.cumsum((upper - lower)[order])
    c = float(values[order[min(int(np.searchsorted(used, mass)), len(order) - 1)]])
    terms = np.minimum(lower * (values - c), upper * (values - c))
    size = abs(c) + math.fsum(np.abs(terms)) + float(np.max(np.abs(values)))
    return max(c + math.fsum(terms) - 8.0 * EPS * size, float(np.min(values)))
