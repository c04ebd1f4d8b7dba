"""Kernels of the confidence sets: interval ends, linear minimisers, betting wealth.

Every float error is charged to the safe side here, so that callers need no tolerance: a log
martingale is evaluated from below (a parameter is rejected only if it certainly is), a minimum
is returned from below.
"""

import math

import numpy as np

from rfmdp.kernels.decorator import kernel

EPS = 2.220446049250313e-16
HALF_LOG_2PI = 0.9189385332046728
MIXTURE = 0
KRICHEVSKY_TROFIMOV = 1


@kernel
def _log_rising(a, y):
    """Return (g, size): g = ln Gamma(a + y) - ln Gamma(a) - y ln a, size bounds its operands.

    For integer y this is sum_{i<y} ln(1 + i/a). Stirling's series cancels the large parts where
    a is large; the absolute error is a few EPS * size in both branches.
    """
    if y == 0.0:
        return 0.0, 0.0
    z = a + y
    if a < 16.0:
        upper, lower, power = _log_gamma(z), math.lgamma(a), y * math.log(a)
        return upper - lower - power, abs(upper) + abs(lower) + abs(power) + z
    growth = (z - 0.5) * math.log1p(y / a)
    return growth - y + _stirling(1.0 / z) - _stirling(1.0 / a), growth + y


@kernel
def _log_gamma(z):
    """Return ln Gamma(z); the series beyond 16 is several times faster than math.lgamma."""
    if z < 16.0:
        return math.lgamma(z)
    return (z - 0.5) * math.log(z) - z + HALF_LOG_2PI + _stirling(1.0 / z)


@kernel
def _stirling(r):
    """Remainder of ln Gamma(1/r) after its leading terms; error below 1e-16 for r <= 1/16."""
    s = r * r
    return r * (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188)))))


@kernel
def _log_mixture(x, n, p, q, kappa_K, log_weight_K, offset_K):
    """Lower bound of ln sum_m w_m exp(g(kappa_m p, x) + g(kappa_m q, n-x) - g(kappa_m, n))."""
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


@kernel
def _kt_offset(x, n):
    """Upper bound of c_n = -ln B(x+1/2, n-x+1/2) + ln pi - n H(x/n)."""
    y = n - x
    parts = math.lgamma(n + 1.0) - math.lgamma(x + 0.5) - math.lgamma(y + 0.5)
    size = 2.0 * abs(math.lgamma(n + 1.0)) + 2.0
    entropy = 0.0
    if x > 0.0:
        entropy -= x * math.log(x / n)
    if y > 0.0:
        entropy -= y * math.log(y / n)
    return parts + math.log(math.pi) - entropy + 8.0 * EPS * (size + entropy)


@kernel
def _log_kt(x, n, log_p, q, offset):
    """Lower bound of n kl(x/n, p) - c_n."""
    ratio, size = 0.0, 0.0
    if x > 0.0:
        ratio += x * (math.log(x / n) - log_p)
        size += x * (1.0 + abs(log_p))
    if x < n:
        log_q = math.log(q)
        ratio += (n - x) * (math.log((n - x) / n) - log_q)
        size += (n - x) * (1.0 + abs(log_q))
    return ratio - offset - 4.0 * EPS * size


@kernel
def _log_martingale(kind, x, n, log_p, kappa_K, log_weight_K, offset_K):
    """Evidence against p = exp(log_p); working in ln p keeps tiny p and tiny 1-p exact."""
    q = -math.expm1(log_p)
    if kind == KRICHEVSKY_TROFIMOV:
        return _log_kt(x, n, log_p, q, offset_K[0])
    return _log_mixture(x, n, math.exp(log_p), q, kappa_K, log_weight_K, offset_K)


@kernel
def _sequence_lower(kind, x, n, threshold, kappa_K, log_weight_K, offset_K):
    """Lower end of {p : ln M_n(p) < threshold}, from its rejected side.

    ln M_n is at most 0 at x/n and decreases in p below it. It is nearly a parabola in ln p, so
    the root is sought for the square root of its rise, which is nearly a line: a bracket by
    doubling steps, then the ITP method (a secant's pace, never worse than bisection).
    """
    inner = math.log(x / n)
    base = _log_martingale(kind, x, n, inner, kappa_K, log_weight_K, offset_K)
    goal = math.sqrt(threshold - base)
    step = goal * (math.sqrt(2.0 * (n - x) / (n * x)) + goal / x)
    outer, f_inner, f_outer = inner, -goal, -goal
    while f_outer <= 0.0:
        inner, f_inner = outer, f_outer
        outer -= step
        step *= 2.0
        if outer < -700.0:
            return 0.0
        rise = _log_martingale(kind, x, n, outer, kappa_K, log_weight_K, offset_K) - base
        f_outer = math.sqrt(max(rise, 0.0)) - goal
    tolerance = 1e-14 * (1.0 + abs(outer))
    pull = 0.02 / (inner - outer)
    slack = tolerance * 2.0 ** (1.0 + math.ceil(math.log2((inner - outer) / tolerance)))
    while inner - outer > tolerance:
        trial = _itp_trial(outer, inner, f_outer, f_inner, pull, slack, tolerance)
        rise = _log_martingale(kind, x, n, trial, kappa_K, log_weight_K, offset_K) - base
        f = math.sqrt(max(rise, 0.0)) - goal
        if f > 0.0:
            outer, f_outer = trial, f
        else:
            inner, f_inner = trial, f
        slack *= 0.5
    return math.exp(outer) * (1.0 - 4.0 * EPS * (1.0 + abs(outer)))


@kernel
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
def sequence_lower(kind, x_N, n_N, threshold_N, kappa_K, log_weight_K, offset_K, lower_N):
    """Lower ends of a confidence sequence for N counts. Fills `lower_N` in place.

    Nothing seen excludes 0. A mixture excludes it only from the second success on: its priors
    move with p, so that ln M_n increases in p for x <= 1. offset_K is scratch memory.
    Twin: a bisection with scipy.special.betaln in the tests.
    """
    for i in range(x_N.shape[0]):
        x, n = x_N[i], n_N[i]
        lower_N[i] = 0.0
        if x <= 0.0 or (kind == MIXTURE and x <= 1.0):
            continue
        if kind == KRICHEVSKY_TROFIMOV:
            offset_K[0] = _kt_offset(x, n)
        else:
            for m in range(kappa_K.shape[0]):
                offset_K[m] = _log_rising(kappa_K[m], n)[0]
        lower_N[i] = _sequence_lower(kind, x, n, threshold_N[i], kappa_K, log_weight_K, offset_K)


@kernel
def _kl_profile(nominal_X, value_X, low, span, distance):
    """Return (E ln(1 + w/D), ln E 1/(1 + w/D), d/dlnD of their sum) for w = (v - low)/span."""
    logs, inverse, weighted, square = 0.0, 0.0, 0.0, 0.0
    for i in range(nominal_X.shape[0]):
        if nominal_X[i] > 0.0:
            ratio = (value_X[i] - low) / span / distance
            share = nominal_X[i] / (1.0 + ratio)
            logs += nominal_X[i] * math.log1p(ratio)
            inverse += share
            weighted += share * ratio
            square += share * ratio / (1.0 + ratio)
    return logs, math.log(inverse), square / inverse - weighted


@kernel
def _kl_distance(nominal_X, value_X, low, span, rho):
    """Return D > 0 with F(D) = E ln(1 + w/D) + ln E 1/(1 + w/D) <= rho, nearly equal.

    F decreases, F(D) <= 1/(4 D^2), and ln F is almost linear in ln D: Newton on ln F inside a
    bracket. Any D is sound; precision here only buys tightness, to second order.
    """
    high = 0.5 / math.sqrt(rho)
    low_end, s_high = -700.0, math.log(high)
    s = s_high
    for _ in range(80):
        logs, inverse, slope = _kl_profile(nominal_X, value_X, low, span, math.exp(s))
        f = logs + inverse
        if f > rho:
            low_end = s
        else:
            s_high = s
        if f > 0.0 and slope < 0.0:
            # aim a little beyond the root, on its feasible side
            trial = s - (math.log(f / rho) + 1e-9) * f / slope
        else:
            trial = s_high - 2.0
        if not low_end < trial < s_high:
            trial = 0.5 * (low_end + s_high)
        if rho * (1.0 - 1e-8) <= f <= rho or s_high - low_end < 1e-9:
            break
        s = trial
    return math.exp(s_high)


@kernel
def kl_minimum(nominal_X, rho, value_X, witness_X):
    """Return a lower bound of min { v.P : KL(nominal || P) <= rho }; fill `witness_X`.

    For every mu <= min v, Jensen's inequality gives
        v.P >= mu + exp(sum_i nominal_i ln(v_i - mu) - rho),
    which is what is returned, at the mu that maximises it: sound whatever the search found.
    The witness is the primal solution, a member up to rounding, and attains the bound.
    Requires sum nominal = 1 (or all zero with rho = inf: the whole simplex).
    """
    size = value_X.shape[0]
    least = 0
    for i in range(1, size):
        if value_X[i] < value_X[least]:
            least = i
    low, high = value_X[least], value_X[least]
    free, seen = -1, False
    for i in range(size):
        witness_X[i] = nominal_X[i]
        high = max(high, value_X[i])
        if value_X[i] == low:
            if nominal_X[i] > 0.0:
                seen = True
            else:
                free = i
    span = high - low
    if rho == np.inf:
        witness_X[:] = 0.0
        witness_X[least] = 1.0
        return low
    if span == 0.0:
        return low
    if rho <= 0.0:
        mean = 0.0
        for i in range(size):
            mean += nominal_X[i] * (value_X[i] - low)
        return low + mean - 4.0 * EPS * size * (abs(low) + span)
    if free >= 0 and not seen:
        bound = _kl_boundary(nominal_X, rho, value_X, low, span, free, witness_X)
        if bound >= 0.0:
            return low + span * bound - 16.0 * EPS * size * (abs(low) + span)
    distance = _kl_distance(nominal_X, value_X, low, span, rho)
    logs, inverse, _ = _kl_profile(nominal_X, value_X, low, span, distance)
    for i in range(size):
        witness_X[i] /= (1.0 + (value_X[i] - low) / span / distance) * math.exp(inverse)
    bound = distance * (math.expm1(logs - rho) - 4.0 * EPS * size * (logs + rho))
    return low + span * max(bound, 0.0) - 4.0 * EPS * size * (abs(low) + span)


@kernel
def _kl_boundary(nominal_X, rho, value_X, low, span, free, witness_X):
    """Dual at mu = min v, where an unseen outcome takes mass; -1 if mu is smaller."""
    logs, inverse = 0.0, 0.0
    for i in range(value_X.shape[0]):
        if nominal_X[i] > 0.0:
            w = (value_X[i] - low) / span
            logs += nominal_X[i] * math.log(w)
            inverse += nominal_X[i] / w
    kept = logs + math.log(inverse) - rho
    if kept >= 0.0:
        return -1.0
    for i in range(value_X.shape[0]):
        if nominal_X[i] > 0.0:
            w = (value_X[i] - low) / span
            witness_X[i] = nominal_X[i] / w / inverse * math.exp(kept)
    witness_X[free] = -math.expm1(kept)
    return math.exp(logs - rho)


@kernel
def choquet_minimum(lower_B, value_X, order_X, witness_X):
    """Return a lower bound of min { v.P : P(A) >= lower[A] for all A }; fill `witness_X`.

    Layer cake: v.P = v_(1) + sum_m (v_(m) - v_(m-1)) P(v >= v_(m)), and every P(A) is replaced
    by its bound. Exact if `lower_B` (indexed by bitmask) is supermodular; then the witness,
    the increments of the bounds along the chain, is a member. order_X is scratch memory.
    """
    size = value_X.shape[0]
    for i in range(size):
        j = i
        while j > 0 and value_X[order_X[j - 1]] > value_X[i]:
            order_X[j] = order_X[j - 1]
            j -= 1
        order_X[j] = i
    mask, previous, total = 0, 0.0, 0.0
    for m in range(size - 1, -1, -1):
        i = order_X[m]
        mask |= 1 << i
        bound = lower_B[mask] if m > 0 else 1.0
        witness_X[i] = bound - previous
        previous = bound
        if m > 0:
            total += (value_X[i] - value_X[order_X[m - 1]]) * bound
    low, high = value_X[order_X[0]], value_X[order_X[size - 1]]
    return low + total - 2.0 * EPS * size * (abs(low) + high - low)


@kernel
def betting_rejects(sample_N, mean, threshold, horizon):
    """Tell whether betting against `mean` on samples in [0, 1] ever multiplied 1 by exp(threshold).

    Wealth prod_t (1 + lambda_t (X_t - mean)), lambda_t from the samples before t:
        min(sqrt(2 threshold / (variance_{t-1} T)), 0.75 / mean),
    T = horizon if it is positive (a fixed sample size), else t ln(1 + t) (any time). Every
    factor decreases in `mean`, so the rejected means are an interval from 0.
    """
    log_wealth, total, squares = 0.0, 0.5, 0.25
    for i in range(sample_N.shape[0]):
        t = i + 1.0
        span = horizon if horizon > 0.0 else t * math.log1p(t)
        bet = math.sqrt(2.0 * threshold * t / (squares * span))
        bet = min(bet, 0.75 / mean)
        log_wealth += math.log1p(bet * (sample_N[i] - mean)) - 16.0 * EPS
        if log_wealth >= threshold:
            return True
        total += sample_N[i]
        squares += (sample_N[i] - total / (t + 1.0)) ** 2
    return False
