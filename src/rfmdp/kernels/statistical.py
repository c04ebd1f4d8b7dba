"""Kernels of learning: interval ends, and where ignorance costs most.

Every float error is charged to the safe side here, so that callers need no tolerance: a log
martingale is evaluated from below (a parameter is rejected only if it certainly is), a minimum
is returned from below. In exploration, which proves nothing, `model` are the arrays of
`FactoredMDP.structure` and `sets` are probability, lower, upper (O,); probabilities are positive.
"""

import math

import numpy as np

from rfmdp.kernels.decorator import inline_kernel, kernel
from rfmdp.kernels.oracle import box_minimum
from rfmdp.kernels.primitives import outer_product, reset
from rfmdp.rounding import EPS

HALF_LOG_2PI = 0.9189385332046728


@inline_kernel
def _log_rising(a, y):
    """Return (g, size): g = ln Gamma(a + y) - ln Gamma(a) - y ln a, size bounds its operands.

    For integer y this is sum_{i<y} ln(1 + i/a). Stirling's series cancels the large parts where
    a is large; the absolute error is a few EPS * size in both branches.
    """
    if y == 0.0:
        return 0.0, 0.0
    z = a + y
    if a < 16.0:
        upper = _log_gamma(z)
        lower = math.lgamma(a)
        power = y * math.log(a)
        return upper - lower - power, abs(upper) + abs(lower) + abs(power) + z
    growth = (z - 0.5) * math.log1p(y / a)
    return growth - y + _stirling(1.0 / z) - _stirling(1.0 / a), growth + y


@inline_kernel
def _log_gamma(z):
    """Return ln Gamma(z); the series beyond 16 is several times faster than math.lgamma."""
    if z < 16.0:
        return math.lgamma(z)
    return (z - 0.5) * math.log(z) - z + HALF_LOG_2PI + _stirling(1.0 / z)


@inline_kernel
def _stirling(r):
    """Remainder of ln Gamma(1/r) after its leading terms; error below 1e-16 for r <= 1/16."""
    s = r * r
    return r * (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188)))))


@inline_kernel
def _log_martingale(x, n, log_p, kappa_K, log_weight_K, offset_K):
    """Lower bound of ln sum_m w_m exp(g(kappa_m p, x) + g(kappa_m q, n-x) - g(kappa_m, n)).

    The evidence against p = exp(log_p); working in ln p keeps tiny p and tiny q = 1-p exact.
    """
    p, q = math.exp(log_p), -math.expm1(log_p)
    best, total = -np.inf, 0.0
    for m in range(kappa_K.shape[0]):
        low, low_size = _log_rising(kappa_K[m] * p, x)
        high, high_size = _log_rising(kappa_K[m] * q, n - x)
        term = log_weight_K[m] + low + high - offset_K[m]
        term -= 4.0 * EPS * (low_size + high_size + abs(offset_K[m]) + n)
        if term > best:
            total = total * math.exp(best - term) + 1.0
            best = term
        else:
            total += math.exp(term - best)
    return best + math.log(total) - 16.0 * EPS


@inline_kernel
def _mixture_lower(x, n, threshold, kappa_K, log_weight_K, offset_K):
    """Lower end of {p : ln M_n(p) < threshold}, from its rejected side.

    ln M_n is at most 0 at x/n and decreases in p below it. It is nearly a parabola in ln p, so
    the root is sought for the square root of its rise, which is nearly a line: a bracket by
    doubling steps, then the ITP method (a secant's pace, never worse than bisection).
    """
    inner = math.log(x / n)
    base = _log_martingale(x, n, inner, kappa_K, log_weight_K, offset_K)
    goal = math.sqrt(threshold - base)
    step = goal * (math.sqrt(2.0 * (n - x) / (n * x)) + goal / x)
    outer, f_inner, f_outer = inner, -goal, -goal
    while f_outer <= 0.0:
        inner, f_inner = outer, f_outer
        outer -= step
        step *= 2.0
        if outer < -700.0:
            return 0.0
        rise = _log_martingale(x, n, outer, kappa_K, log_weight_K, offset_K) - base
        f_outer = math.sqrt(max(rise, 0.0)) - goal
    tolerance = 1e-14 * (1.0 + abs(outer))
    pull = 0.02 / (inner - outer)
    slack = tolerance * 2.0 ** (1.0 + math.ceil(math.log2((inner - outer) / tolerance)))
    while inner - outer > tolerance:
        trial = _itp_trial(outer, inner, f_outer, f_inner, pull, slack, tolerance)
        rise = _log_martingale(x, n, trial, kappa_K, log_weight_K, offset_K) - base
        f = math.sqrt(max(rise, 0.0)) - goal
        if f > 0.0:
            outer, f_outer = trial, f
        else:
            inner, f_inner = trial, f
        slack *= 0.5
    return math.exp(outer) * (1.0 - 4.0 * EPS * (1.0 + abs(outer)))


@inline_kernel
def _itp_trial(outer, inner, f_outer, f_inner, pull, slack, tolerance):
    """Next point of the ITP root search: a secant, moved and projected towards the middle."""
    middle = 0.5 * (outer + inner)
    secant = (f_inner * outer - f_outer * inner) / (f_inner - f_outer)
    side = 1.0 if middle >= secant else -1.0
    # at least half a tolerance, so that the last step lands across the root and ends the search
    nudge = max(pull * (inner - outer) ** 2, 0.5 * tolerance)
    trial = secant + side * min(nudge, abs(middle - secant))
    reach = max(slack - 0.5 * (inner - outer), 0.0)
    if abs(trial - middle) > reach:
        trial = middle - side * reach
    return trial if outer < trial < inner else middle


@kernel
def mixture_lower(x_N, n_N, threshold_N, kappa_K, log_weight_K, offset_K, lower_N):
    """Lower ends of the mixture sequence for N counts. Fills `lower_N` in place.

    It excludes 0 only from the second success on: its priors move with p, so that ln M_n increases
    in p for x <= 1. offset_K is scratch memory.
    Twin: a bisection with scipy.special.betaln in the tests.
    """
    for i in range(x_N.shape[0]):
        x, n = x_N[i], n_N[i]
        lower_N[i] = 0.0
        if x <= 1.0:
            continue
        for m in range(kappa_K.shape[0]):
            offset_K[m] = _log_rising(kappa_K[m], n)[0]
        lower_N[i] = _mixture_lower(x, n, threshold_N[i], kappa_K, log_weight_K, offset_K)


GONE, RARE = 1e-12, 1e-9  # expected visits that are not followed, and that cost nothing


@kernel
def occupancy(rows_TS, steps, model, sets, initial, terminal, work, total):
    """Add to total (S,) the expected visits of every state within some steps of a policy.

    work : joint (K,) of the largest row; mass (S,) and after (S,), zeros
    """
    states = total.shape[0]
    _, marginal_ptr, row_marginals, outcome_ptr, successor_ptr, successors = model
    probability, _, _ = sets
    joint, mass, after = work
    for s in initial:
        mass[s] += 1.0 / initial.shape[0]
    for t in range(steps):
        after[:] = 0.0
        for s in range(states):
            if mass[s] < GONE or terminal[s]:
                continue
            total[s] += mass[s]
            row = rows_TS[min(t, rows_TS.shape[0] - 1), s]
            first, last = marginal_ptr[row], marginal_ptr[row + 1]
            size = outer_product(outcome_ptr, probability, row_marginals, first, last, joint, 0)
            for k in range(size):
                after[successors[successor_ptr[row] + k]] += mass[s] * joint[k]
        mass, after = after, mass


@kernel
def gap_losses(rows_S, visits, model, sets, value, sign, work, loss):
    """Add to loss (M,): sum_s visits(s) [E v - least v of one marginal, the others nominal].

    sign : +1 if nature minimises, -1 if it maximises
    work : joint (K,) of the largest row; fibre (d,), box (2 d,), order (d,) of the largest marginal
    """
    _, marginal_ptr, row_marginals, outcome_ptr, successor_ptr, successors = model
    probability, lower, upper = sets
    joint, fibre, box, order = work
    for s in range(visits.shape[0]):
        if visits[s] < RARE:
            continue
        row = rows_S[s]
        first, last = marginal_ptr[row], marginal_ptr[row + 1]
        size = outer_product(outcome_ptr, probability, row_marginals, first, last, joint, 0)
        stride = size
        for slot in range(first, last):
            j = row_marginals[slot]
            begin = outcome_ptr[j]
            d = outcome_ptr[j + 1] - begin
            stride //= d
            fibre[:d] = 0.0
            for k in range(size):
                fibre[k // stride % d] += joint[k] * value[successors[successor_ptr[row] + k]]
            mean, free = 0.0, 1.0
            for i in range(d):
                mean += sign * fibre[i]
                fibre[i] *= sign / probability[begin + i]
                box[i], box[d + i] = lower[begin + i], upper[begin + i] - lower[begin + i]
                free -= lower[begin + i]
            reset(order, d)
            low, _ = box_minimum((box, 0, d, free), fibre, 0, order)
            loss[j] += visits[s] * max(0.0, mean - low)
