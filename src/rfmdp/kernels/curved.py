"""Linear minimisers of sets that are no boxes and have no list of vertices: Lp, KL, subset sets.

Every float error is charged to the safe side: a minimum is returned from below, a witness is a
member.

`curved_minimum` is compiled once and called by its address (`call_curved`): as a part of every
kernel that minimises it would take longer to compile than the rest of them.
"""

import math
from functools import cache

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from rfmdp.kernels.decorator import addressed_kernel, inline_kernel, kernel, step_kernel
from rfmdp.kernels.layout import EXPONENT, KIND, KL, LOWER, LP, PLACE, RADIUS, SIZE
from rfmdp.kernels.primitives import reset, sort
from rfmdp.rounding import EPS, KL_UNUSED, LP_UNUSED


@addressed_kernel
def curved_minimum(head, data, m, v, at, order, p):
    """Return min p.v over marginal m, from below, and fill the attaining p[0 : d]."""
    kind, d, place = head[m, KIND], head[m, SIZE], head[m, PLACE]
    n = place + LOWER + 2 * d
    nominal_X, value_X, radius = data[n : n + d], v[at : at + d], data[place + RADIUS]
    if kind == LP:
        return _lp_minimum(nominal_X, radius, data[place + EXPONENT], value_X, order, p[:d])
    if kind == KL:
        return _kl_step(nominal_X, radius, value_X, p[:d])
    return _choquet_step(data[n + d : n + d + 2**d], value_X, order, p[:d])


_NUMBERS, _INDEX = types.float64[::1], types.int64
_ARGUMENTS = types.Tuple(
    (_INDEX[:, ::1], _NUMBERS, _INDEX, _NUMBERS, _INDEX, _INDEX[::1], _NUMBERS)
)


@cache
def curved_address() -> int:
    """Return where the machine code of `curved_minimum` is in this process."""
    curved_minimum.compile(types.float64(*_ARGUMENTS))
    made = curved_minimum.overloads[tuple(_ARGUMENTS)]
    address: int = made.library.get_pointer_to_function(made.fndesc.llvm_cfunc_wrapper_name)
    return address


def call_curved(address, arguments):
    """Return curved_minimum(*arguments); compiled, by its address."""
    return curved_minimum.py_func(*arguments)


@intrinsic
def _call(typing_context, address, arguments):
    def generate(context, builder, signature, values):
        parts = cgutils.unpack_tuple(builder, values[1], len(_ARGUMENTS))
        kinds = [context.get_value_type(kind) for kind in _ARGUMENTS]
        function = ir.FunctionType(ir.DoubleType(), kinds).as_pointer()
        return builder.call(builder.inttoptr(values[0], function), parts)

    return types.float64(types.int64, _ARGUMENTS), generate


@overload(call_curved, inline="always")
def _compiled_call(address, arguments):
    return lambda address, arguments: _call(address, arguments)


@inline_kernel
def _lp_entry(nominal, gap, lam, q):
    """Return argmin { gap x + lam / c |x - nominal|^c : 0 <= x <= 1 }, with 1/q + 1/c = 1."""
    step = (abs(gap) / lam) ** (q - 1.0)
    x = nominal - step if gap > 0.0 else nominal + step
    return min(1.0, max(0.0, x))


@inline_kernel
def _next(low, high, f_low, f_high, step):
    """Return where to look for a root of f in [low, high]: secant, every third time the middle."""
    x = low - f_low * (high - low) / (f_high - f_low)
    if step % 3 == 2 or not low < x < high:
        return 0.5 * (low + high)
    return x


@inline_kernel
def _narrow(low, high, f_low, f_high, side, x, f):
    """Return the bracket (low, high, f_low, f_high, side) of a rising f after f(x) was found.

    Illinois' rule: the value of an end that stays twice is halved, or the secant stalls.
    """
    if f > 0.0:
        return low, x, f_low * (0.5 if side == 1 else 1.0), f, 1
    return x, high, f, f_high * (0.5 if side == -1 else 1.0), -1


@inline_kernel
def _lp_balanced(nominal_X, value_X, q, lam, p):
    """Fill p_i = clip(nominal_i -+ (|v_i - mu| / lam)**(q - 1), 0, 1) and return mu.

    This is the minimiser of p.v + mu (1 - sum p) + (lam / c) ||p - nominal||_c^c over the box
    [0, 1], with 1/q + 1/c = 1. The mu is the one for which p sums to one, to rounding.
    """
    d = value_X.shape[0]
    low, high = np.inf, -np.inf
    for i in range(d):
        low, high = min(low, value_X[i]), max(high, value_X[i])
    # all values are above mu = low, and all below mu = high; the sum rises with mu
    mu, f, f_low, f_high, side = low, 0.0, -1.0, 1.0, 0
    for step in range(120):
        mu = _next(low, high, f_low, f_high, step)
        f = -1.0
        for i in range(d):
            p[i] = _lp_entry(nominal_X[i], value_X[i] - mu, lam, q)
            f += p[i]
        if abs(f) <= 0.1 * LP_UNUSED or mu <= low or mu >= high:
            break
        low, high, f_low, f_high, side = _narrow(low, high, f_low, f_high, side, mu, f)
    # large exponents jump where mu meets a value: that entry takes the rest, at no price
    nearest = 0
    for i in range(d):
        if abs(value_X[i] - mu) < abs(value_X[nearest] - mu):
            nearest = i
    p[nearest] = min(1.0, max(0.0, p[nearest] - f))
    return mu


@step_kernel
def _lp_norm(nominal_X, exponent, p):
    """Return ||p - nominal||_exponent."""
    top = 0.0
    for i in range(nominal_X.shape[0]):
        top = max(top, abs(p[i] - nominal_X[i]))
    if top == 0.0:
        return 0.0
    total = 0.0
    for i in range(nominal_X.shape[0]):
        total += (abs(p[i] - nominal_X[i]) / top) ** exponent
    return top * total ** (1.0 / exponent)


@inline_kernel
def _lp_minimum(nominal_X, radius, c, value_X, order, p):
    """Return a lower bound of min { v.p : ||p - nominal||_c <= radius }, 1 < c < inf; fill p.

    Lagrange: for a multiplier lam of the ball the minimiser over box and sum is in closed form up
    to mu; both are found by secants. Returned is the *dual* value
    mu + sum_i min_{x in [0,1]} ((v_i - mu) x + lam/c |x - nominal_i|^c) - lam/c radius^c,
    below the true minimum for every lam > 0 and mu, and p is pulled into the ball. `order` is a
    permutation to start sorting from.
    """
    d = value_X.shape[0]
    q = c / (c - 1.0)
    sort(value_X, 0, d, order)
    least = order[0]
    span = value_X[order[d - 1]] - value_X[least]
    if span == 0.0 or radius == 0.0:
        total = 0.0
        for i in range(d):
            p[i] = nominal_X[i]
            total += p[i] * value_X[i]
        return total
    for i in range(d):
        p[i] = 1.0 if i == least else 0.0
    if _lp_norm(nominal_X, c, p) <= radius:
        return value_X[least]
    # the length of the move falls with lam, nearly as a power of it: secants on logarithms
    low, high, f_low, f_high, lam, mu, side = -700.0, 700.0, -1.0, 1.0, 1.0, 0.0, 0
    t = np.log(span) + (np.log(d) - np.log(radius)) / (q - 1.0)
    for step in range(120):
        if step > 0:
            t = _next(low, high, f_low, f_high, step)
        elif not low < t < high:
            t = 0.0
        lam = np.exp(t)
        mu = _lp_balanced(nominal_X, value_X, q, lam, p)
        f = -np.log(max(_lp_norm(nominal_X, c, p) / radius, 1e-300))
        # an error of f costs its square in the dual value, and itself in the length of the move
        if t <= low or t >= high or abs(f) <= LP_UNUSED:
            break
        low, high, f_low, f_high, side = _narrow(low, high, f_low, f_high, side, t, f)
    _lp_repair(nominal_X, c, radius, p)
    dual = mu - lam / c * radius**c
    for i in range(d):
        gap = value_X[i] - mu
        x = _lp_entry(nominal_X[i], gap, lam, q)
        dual += gap * x + lam / c * abs(x - nominal_X[i]) ** c
    return dual


@inline_kernel
def _lp_repair(nominal_X, c, radius, p):
    """Make p sum to one and pull it into the ball, both by rounding-sized moves."""
    total = 0.0
    for i in range(p.shape[0]):
        total += p[i]
    for i in range(p.shape[0]):
        p[i] /= total
    norm = _lp_norm(nominal_X, c, p)
    if norm > radius:
        share = radius / norm
        for i in range(p.shape[0]):
            p[i] = nominal_X[i] + share * (p[i] - nominal_X[i])


@step_kernel
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


@step_kernel
def _kl_distance(nominal_X, value_X, low, span, rho):
    """Return D > 0 with F(D) = E ln(1 + w/D) + ln E 1/(1 + w/D) <= rho, nearly equal.

    F decreases, F(D) <= 1/(4 D^2), and ln F is almost linear in ln D: Newton on ln F inside a
    bracket. Any D is sound; precision here only buys tightness, to second order.
    """
    high = 0.5 / math.sqrt(rho)
    low_end = -700.0
    s_high = math.log(high)
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
            trial = s - (math.log(f / rho) + 0.1 * KL_UNUSED) * f / slope
        else:
            trial = s_high - 2.0
        if not low_end < trial < s_high:
            trial = 0.5 * (low_end + s_high)
        if rho * (1.0 - KL_UNUSED) <= f <= rho or s_high - low_end < 0.1 * KL_UNUSED:
            break
        s = trial
    return math.exp(s_high)


@kernel
def kl_minimum(nominal_X, rho, value_X, witness_X):
    """Return a lower bound of min { v.P : KL(nominal || P) <= rho }; fill `witness_X`.

    For every mu <= min v, Jensen's inequality gives
        v.P >= mu + exp(sum_i nominal_i ln(v_i - mu) - rho),
    which is what is returned, at the mu that maximises it: sound whatever the search found.
    The witness is the primal solution, pulled in by the rounding of its divergence: a member.
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
    _kl_pull(nominal_X, rho, logs, witness_X)
    bound = distance * (math.expm1(logs - rho) - 4.0 * EPS * size * (logs + rho))
    return low + span * max(bound, 0.0) - 4.0 * EPS * size * (abs(low) + span)


@step_kernel
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
    _kl_pull(nominal_X, rho, abs(logs) + abs(math.log(inverse)), witness_X)
    return math.exp(logs - rho)


@step_kernel
def _kl_pull(nominal_X, rho, logs, witness_X):
    """Pull a point of divergence rho, up to its rounding, to where it certainly has no more.

    Entries are six roundings off each, and their logarithms were added up for the search: the
    divergence is known to (size + 6) units of roundoff of 1 + logs. It is convex and zero at the
    nominal distribution, so the share rho / (rho + error) of the way there is enough.
    """
    error = EPS * (nominal_X.shape[0] + 6) * (1.0 + logs)
    share = rho / (rho + error)
    for i in range(nominal_X.shape[0]):
        witness_X[i] = nominal_X[i] + share * (witness_X[i] - nominal_X[i])


@kernel
def choquet_minimum(lower_B, value_X, order_X, witness_X):
    """Return a lower bound of min { v.P : P(A) >= lower[A] for all A }; fill `witness_X`.

    Layer cake: v.P = v_(1) + sum_m (v_(m) - v_(m-1)) P(v >= v_(m)), and every P(A) is replaced
    by its bound. Exact if `lower_B` (indexed by bitmask) is supermodular; then the witness,
    the increments of the bounds along the chain, is a member. order_X is scratch memory.
    """
    size = value_X.shape[0]
    reset(order_X, size)
    sort(value_X, 0, size, order_X)
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


_kl_step, _choquet_step = step_kernel(kl_minimum.py_func), step_kernel(choquet_minimum.py_func)
