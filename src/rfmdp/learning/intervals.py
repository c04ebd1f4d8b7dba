"""Confidence intervals of one Bernoulli probability, for whole arrays of counts.

Every function maps (x, n, delta), broadcast against each other, to `(lower, upper)`: x successes
in n trials, 0 <= x <= n, and the error probability of both sides together, 0 < delta < 1. All are
mirror images: upper(x, n) = 1 - lower(n - x, n), so that the two outcomes of a coin are one event.
No observation (n = 0) gives [0, 1]. Two kinds of promise:

- *fixed sample size, single look*: P(p in C_n) >= 1 - delta for an n that was fixed in advance
  (`clopper_pearson`, `hoeffding`);
- *anytime*: P(p in C_n for all n) >= 1 - delta, under any stopping rule and any number of looks
  (`mixture`, `krichevsky_trofimov`, `grid_clopper_pearson`).

Ends are rounded outwards: float error can only widen an interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rfmdp.errors import ModelError
from rfmdp.kernels.statistical import (
    KRICHEVSKY_TROFIMOV,
    MIXTURE,
    betting_rejects,
    sequence_lower,
)
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

    Examples
    --------
    >>> low, high = clopper_pearson(7, 10, 0.01)
    >>> print(f"{low:.6f} {high:.6f}")
    0.264886 0.962993
    """
    return _interval(lambda x, n, delta: _beta_quantile(x, n, 0.5 * delta), x, n, delta)


def clopper_pearson_lower(x: ArrayLike, n: ArrayLike, delta: ArrayLike) -> FloatArray:
    """Return the exact one-sided lower bound B(delta; x, n-x+1); fixed sample size, single look.

    All of `delta` is spent on this side: P(p < lower) <= delta.
    """
    return _beta_quantile(*_checked(x, n, delta))


def hoeffding(x: ArrayLike, n: ArrayLike, delta: ArrayLike) -> Bounds:
    """Return x/n -+ sqrt(ln(2/delta) / (2 n)) within [0, 1]; fixed sample size, single look."""
    return _interval(_hoeffding_lower, x, n, delta)


def mixture(x: ArrayLike, n: ArrayLike, delta: ArrayLike) -> Bounds:
    """Return the scale-mixture confidence sequence at n; anytime valid, two-sided in one delta.

    C_n = {p : ln M_n(p) < ln(1/delta)} with M_n(p) the mixture over m, with weights w_m, of
        B(kappa_m p + x, kappa_m (1-p) + n-x) / B(kappa_m p, kappa_m (1-p)) / (p^x (1-p)^(n-x)).
    M_n(p) is a martingale of mean 1 under p, so by Ville's inequality p leaves C_n at some n with
    probability at most delta. ln M_n is convex in p, hence C_n is an interval.

    The lower end is 0 up to x = 1, whatever n: the priors move with p, and one success fits any
    small p. At x = 0 the upper end is below Clopper-Pearson's, which spends half of delta there.
    x may be a sum of observations in [0, 1] with mean p (then M_n is a supermartingale).

    Examples
    --------
    >>> low, high = mixture(300, 1000, 1e-8)
    >>> print(f"{low:.6f} {high:.6f}")
    0.210479 0.400728
    """
    return _interval(partial(_sequence_lower, MIXTURE), x, n, delta)


def krichevsky_trofimov(x: ArrayLike, n: ArrayLike, delta: ArrayLike) -> Bounds:
    """Return {p : n kl(x/n, p) <= ln(1/delta) + c_n}, prior Beta(1/2, 1/2); anytime valid.

    c_n = -ln B(x+1/2, n-x+1/2) + ln pi - n H(x/n). Narrower than `mixture` for n up to about 300,
    wider beyond. x may be a sum of observations in [0, 1].
    """
    return _interval(partial(_sequence_lower, KRICHEVSKY_TROFIMOV), x, n, delta)


def grid_clopper_pearson(
    x: ArrayLike,
    n: ArrayLike,
    delta: ArrayLike,
    *,
    ratio: float = 1.1,
    largest: int | None = 2**24,
) -> Bounds:
    """Return Clopper-Pearson read only at grid sizes m_k = ceil(ratio**k); anytime valid.

    Level delta/K if the sample size never exceeds `largest` (K grid sizes up to there), or
    delta/((k+1)(k+2)) at the k-th if `largest` is None. Between grid sizes m <= n < m' the
    promises at both are used with what is known about them, x_m >= x - (n-m) and x_m' >= x:
        lower = max(CP(x - (n-m), m), CP(x, m')),   upper mirrored.

    Raises
    ------
    ModelError
        If some n exceeds `largest`, which is declared before sampling starts.
    """
    return _interval(partial(_grid_lower, ratio, largest), x, n, delta)


def grid_sizes(ratio: float, largest: int) -> IntArray:
    """Return the distinct sizes ceil(ratio**k), the last one the first that is >= `largest`.

    Examples
    --------
    >>> grid_sizes(2.0, 20)
    array([ 1,  2,  4,  8, 16, 32])
    """
    if not ratio > 1.0:
        raise ModelError(f"Grid: ratio must be greater than 1, found {ratio}; try 1.1.")
    steps = math.ceil(math.log(max(largest, 1)) / math.log(ratio)) + 1
    sizes = np.unique(np.ceil(ratio ** np.arange(steps + 1)).astype(np.int64))
    return sizes[: int(np.searchsorted(sizes, largest)) + 1]


def _checked(
    x: ArrayLike, n: ArrayLike, delta: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Broadcast to float64 and check once; kernels check nothing."""
    arrays = [np.asarray(a, dtype=np.float64) for a in (x, n, delta)]
    successes, trials, error = np.broadcast_arrays(*arrays)
    bad = ~((successes >= 0) & (successes <= trials) & np.isfinite(trials))
    if np.any(bad):
        i = np.unravel_index(int(np.argmax(bad)), bad.shape)
        raise ModelError(
            f"Counts: 0 <= x <= n must hold, found x={successes[i]:g}, n={trials[i]:g} "
            f"at index {tuple(int(j) for j in i)}; count every visit, not only successes."
        )
    bad = ~((error > 0) & (error < 1))
    if np.any(bad):
        raise ModelError(
            f"Error probability: 0 < delta < 1 must hold, found {error[bad].flat[0]:g}; "
            "take it from a Ledger, and leave out marginals without budget."
        )
    return successes, trials, error


def _interval(lower_end: LowerEnd, x: ArrayLike, n: ArrayLike, delta: ArrayLike) -> Bounds:
    """Both ends by mirroring, each distinct (x, n, delta) computed once."""
    successes, trials, error = _checked(x, n, delta)
    shape, size = trials.shape, trials.size
    columns = [
        np.concatenate([successes.ravel(), (trials - successes).ravel()]),
        np.concatenate([trials.ravel()] * 2),
        np.concatenate([error.ravel()] * 2),
    ]
    first, inverse = _distinct(columns)
    lower = np.zeros(len(first))
    seen = columns[1][first] > 0
    rows = first[seen]
    lower[seen] = lower_end(columns[0][rows], columns[1][rows], columns[2][rows])
    ends = lower[inverse]
    # one ulp upwards, so that rounding keeps the mirrored end an outer bound
    upper = np.minimum(np.nextafter(1.0 - ends[size:], 2.0), 1.0)
    return ends[:size].reshape(shape), upper.reshape(shape)


def _distinct(columns: list[FloatArray]) -> tuple[IntArray, IntArray]:
    """Return indices of the distinct rows, and for every row its place among them."""
    order = np.lexsort(columns)
    fresh = np.zeros(len(order), dtype=bool)
    fresh[:1] = True
    for column in columns:
        ordered = column[order]
        fresh[1:] |= ordered[1:] != ordered[:-1]
    inverse = np.empty(len(order), dtype=np.int64)
    inverse[order] = np.cumsum(fresh) - 1
    return order[fresh], inverse


def _hoeffding_lower(x: FloatArray, n: FloatArray, delta: FloatArray) -> FloatArray:
    radius = np.sqrt(np.log(2.0 / delta) / (2.0 * n)) * (1.0 + 4.0 * EPS)
    return np.asarray(np.maximum(x / n - radius - 2.0 * EPS, 0.0))


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


def _sequence_lower(kind: int, x: FloatArray, n: FloatArray, delta: FloatArray) -> FloatArray:
    """Run the root search of the confidence sequences over flat arrays."""
    sizes = np.array(MIXTURE_SIZES)
    lower = np.empty(len(n))
    # one ulp on the threshold pays for the rounding of the logarithm
    threshold = -np.log(delta) * (1.0 + 2.0 * EPS)
    sequence_lower(
        kind, x, n, threshold, sizes, np.log(MIXTURE_WEIGHTS), np.empty(len(sizes)), lower
    )
    return lower


def _grid_lower(
    ratio: float, largest: int | None, x: FloatArray, n: FloatArray, delta: FloatArray
) -> FloatArray:
    """Lower end of grid Clopper-Pearson from the grid sizes around n."""
    top = float(np.max(n, initial=1.0))
    if largest is not None and top > largest:
        raise ModelError(
            f"Grid Clopper-Pearson: sample sizes up to {largest} were declared, found {top:g}; "
            "declare a larger one before sampling starts, or use largest=None."
        )
    sizes = grid_sizes(ratio, math.ceil(top) if largest is None else largest)
    ahead = np.searchsorted(sizes, n)  # the first size >= n
    behind = ahead - (sizes[ahead] > n)  # the last one <= n
    earlier = np.maximum(x - (n - sizes[behind]), 0.0)
    lower = []
    for successes, index in ((x, ahead), (earlier, behind)):
        share = len(sizes) if largest is not None else (index + 1.0) * (index + 2.0)
        level = 0.5 * (delta / share)
        lower.append(_beta_quantile(successes, sizes[index].astype(float), level))
    return np.maximum(*lower)


def betting_lower(samples: FloatArray, delta: float, horizon: int | None = None) -> float:
    """Return a lower bound of the mean of samples in [0, 1], error probability `delta`.

    A mean is rejected once betting on larger samples would have multiplied a stake by 1/delta:
        sup_t prod_{s<=t} (1 + lambda_s (X_s - mean)) >= 1/delta,
        lambda_t = min(sqrt(2 ln(1/delta) / (variance_{t-1} T)), 3/(4 mean)),
    with T = t ln(1+t), or T = `horizon` to do best after a number of samples fixed in advance
    [WaudbySmithRamdas2024]. Rejected means form an interval from 0; the result is a rejected one,
    so the bound is proven whatever the precision of the bisection. Valid at all times together.

    Examples
    --------
    >>> print(f"{betting_lower(np.full(1000, 0.5), 1e-8):.3f}")
    0.488
    """
    if not 0.0 < delta < 1.0:
        raise ModelError(f"Error probability: 0 < delta < 1 must hold, found {delta:g}.")
    samples = np.ascontiguousarray(samples, dtype=np.float64)
    threshold = -np.log(delta) * (1.0 + 2.0 * EPS)
    rejected, kept = 0.0, 1.0
    while kept - rejected > 1e-12:
        mean = 0.5 * (rejected + kept)
        if betting_rejects(samples, mean, threshold, float(horizon or 0)):
            rejected = mean
        else:
            kept = mean
    return rejected
