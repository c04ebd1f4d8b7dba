"""The linear minimiser of Lp balls with 1 < p < inf, which have no list of vertices.

Every float error is charged to the safe side: a minimum is returned from below, a witness is a
member.

`curved_minimum` is compiled once and called by its address (`call_curved`): as a part of every
kernel that minimises it would take longer to compile than the rest of them.
"""

from functools import cache
from typing import Any

import numpy as np

from rfmdp.kernels.decorator import address_of, before_compiling, inline_kernel, step_kernel
from rfmdp.kernels.layout import EXPONENT, LOWER, PLACE, RADIUS, SIZE
from rfmdp.kernels.primitives import sort
from rfmdp.rounding import LP_UNUSED


def curved_minimum(head, data, m, v, at, order, p):
    """Return min p.v over marginal m, from below, and fill the attaining p[0 : d]."""
    d, place = head[m, SIZE], head[m, PLACE]
    n = place + LOWER + 2 * d
    nominal_X, value_X, radius = data[n : n + d], v[at : at + d], data[place + RADIUS]
    return _lp_minimum(nominal_X, radius, data[place + EXPONENT], value_X, order, p[:d])


@cache
def _arguments() -> Any:
    """Return the types of the arguments of `curved_minimum`."""
    from numba import types

    numbers, index = types.float64[::1], types.int64
    return types.Tuple((index[:, ::1], numbers, index, numbers, index, index[::1], numbers))


@cache
def curved_address() -> int:
    """Return where the machine code of `curved_minimum` is in this process."""
    from numba import types

    return address_of(curved_minimum, types.float64(*_arguments()))


def call_curved(address, arguments):
    """Return curved_minimum(*arguments); compiled, by its address."""
    return curved_minimum(*arguments)


@before_compiling
def _compile_calls() -> None:
    """Tell numba how machine code calls `curved_minimum`."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic, overload

    @intrinsic
    def call(typing_context, address, arguments):
        def generate(context, builder, signature, values):
            parts = cgutils.unpack_tuple(builder, values[1], len(_arguments()))
            kinds = [context.get_value_type(kind) for kind in _arguments()]
            function = ir.FunctionType(ir.DoubleType(), kinds).as_pointer()
            return builder.call(builder.inttoptr(values[0], function), parts)

        return types.float64(types.int64, _arguments()), generate

    @overload(call_curved, inline="always")
    def compiled_call(address, arguments):
        return lambda address, arguments: call(address, arguments)


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
