"""The linear minimiser of one marginal set, the step that every inner solver repeats.

`minimise(...)` gives min { p.v : p in the set } for many fibres of a tensor at once, and says
whether one member attains them all. The numbers are never above the true minimum by more than
rounding; the member is one. Sets are packed as `kernels.layout` says.

Lp balls with 1 < p < inf have no list of vertices and a minimiser of their own, `curved_minimum`,
which takes longer to compile than the rest of most kernels. It is compiled once and called by its
address, so that a kernel does not contain it, and a model without such sets does not compile it.
Every float error of it is charged to the safe side.

A *box* is a plain tuple (data, l, d, free): lower bounds at data[l : l + d], slacks (upper - lower)
behind them, and the mass 1 - sum(lower) that is free to give away. Its linear minimiser gives the
free mass to the lowest values first [Givan2000]. `order` is that of `kernels.primitives.sort`.
"""

from functools import cache
from typing import Any

import numpy as np

from rfmdp.kernels import layout as slot
from rfmdp.kernels.decorator import address_of, before_compiling, inline_kernel, step_kernel
from rfmdp.kernels.primitives import dot, reset, sort
from rfmdp.rounding import LP_UNUSED


@inline_kernel
def box_of(head, data, m):
    """Return marginal m of packed sets (see `kernels.layout`) as a box."""
    place = head[m, slot.PLACE]
    return data, place + slot.LOWER, head[m, slot.SIZE], data[place + slot.FREE]


@inline_kernel
def box_minimum(box, v, at, order):
    """Return min p.v over a box for values v[at : at + d], and whether `order` changed."""
    data, l, d, mass = box
    total = 0.0
    for i in range(d):
        total += data[l + i] * v[at + i]
    moved = sort(v, at, d, order)
    for i in range(d):
        k = order[i]
        s = data[l + d + k]
        x = v[at + k]
        if s >= mass:
            return total + mass * x, moved
        total += s * x
        mass -= s
    return total, moved


@inline_kernel
def box_maximum(box, v, at, order):
    """Return max p.v over a box for an `order` that is sorted by v already."""
    data, l, d, mass = box
    total = 0.0
    for i in range(d - 1, -1, -1):
        k = order[i]
        take = min(mass, data[l + d + k])
        mass -= take
        total += (data[l + k] + take) * v[at + k]
    return total


@inline_kernel
def box_member(box, order, p, to):
    """Fill p[to : to + d] with the member of a box that fills up its entries in `order`."""
    data, l, d, mass = box
    for i in range(d):
        k = order[i]
        take = min(mass, data[l + d + k])
        mass -= take
        p[to + k] = data[l + k] + take


@inline_kernel
def box_point(box, v, at, order, p, to):
    """Fill p[to : to + d] with the minimiser over a box; returns p.v."""
    _, _, d, _ = box
    sort(v, at, d, order)
    box_member(box, order, p, to)
    return dot(p, to, v, at, d)


@step_kernel
def minimise(sets, m, fibres, order, curved, minima, member):
    """Minimise over marginal m for each of `count` fibres of `source`; fills out[to : to + count].

    Returns whether one member attains the minimum of every fibre. It is then in
    point[place : place + d]; otherwise that of the last fibre is. `out` may be `source` if start
    is to: fibre f is read before out[to + f] is written. `order` starts as some permutation, best
    one by which the first fibre is sorted. `curved` has room for a member.

    fibres : source, start, count
    minima : out, to
    member : point, place
    """
    source, start, count = fibres
    out, to = minima
    point, place = member
    head, data, corners, minimiser = sets
    kind, d = head[m, slot.KIND], head[m, slot.SIZE]
    l = head[m, slot.PLACE] + slot.LOWER
    if kind == slot.SINGLETON:
        for f in range(count):
            out[to + f] = dot(data, l, source, start + f * d, d)
        for i in range(d):
            point[place + i] = data[l + i]
        return True
    if kind == slot.BOX and d == 2:
        return _two_outcomes(data, l, fibres, minima, member)
    if kind == slot.BOX:
        box = box_of(head, data, m)
        changes = 0
        for f in range(count):
            out[to + f], moved = box_minimum(box, source, start + f * d, order)
            changes += moved and f > 0
        box_member(box, order, point, place)
        return changes == 0
    if kind == slot.L1:
        return _l1(data, l, d, fibres, order, minima, member)
    if kind == slot.POLYTOPE:
        at = head[m, slot.CORNERS], head[m, slot.CORNERS_END]
        return _polytope(corners, at, d, fibres, minima, member)
    for f in range(count):
        out[to + f] = call_curved(minimiser, (head, data, m, source, start + f * d, order, curved))
    for i in range(d):
        point[place + i] = curved[i]
    return False  # dual bounds, not attained to the last digit


@inline_kernel
def minimum(sets, work, m):
    """Return min p.v over marginal m for the values v = folds[0 : d]; the minimiser is p[0 : d]."""
    _, _, folds, _, _, p = work[: slot.ORDER]
    order, _, _, _, curved = work[slot.ORDER :]
    d = sets[slot.HEAD][m, slot.SIZE]
    reset(order, d)
    minimise(sets, m, (folds, 0, 1), order, curved, (p, d), (p, 0))
    return p[d]


@inline_kernel
def _two_outcomes(data, l, fibres, minima, member):
    """Minimise over a box of two outcomes, an interval of the first one's probability."""
    source, start, count = fibres
    out, to = minima
    point, place = member
    low = data[l]
    high = low + data[l + 2]
    least, most = 0.0, 0.0
    for f in range(count):
        second = source[start + 2 * f + 1]
        step = source[start + 2 * f] - second
        out[to + f] = second + min(low * step, high * step)
        least, most = min(least, step), max(most, step)
    point[place] = low if most > 0.0 else high
    point[place + 1] = 1.0 - point[place]
    return least == 0.0 or most == 0.0


@inline_kernel
def _l1(data, l, d, fibres, order, minima, member):
    """Move min(radius / 2, 1 - p) to the lowest value, taken from the highest ones."""
    source, start, count = fibres
    out, to = minima
    point, place = member
    changes = 0
    for f in range(count):
        changes += sort(source, start + f * d, d, order) and f > 0
        for i in range(d):
            point[place + i] = data[l + 2 * d + i]
        best = place + order[0]
        move = min(0.5 * data[l - slot.LOWER + slot.RADIUS], 1.0 - point[best])
        point[best] += move
        for i in range(d - 1, 0, -1):
            k = place + order[i]
            take = min(move, point[k])
            point[k] -= take
            move -= take
            if move <= 0.0:
                break
        out[to + f] = dot(point, place, source, start + f * d, d)
    return changes == 0


@inline_kernel
def _polytope(corners, at, d, fibres, minima, member):
    """Look at every vertex; the first of the best ones wins."""
    source, start, count = fibres
    out, to = minima
    point, place = member
    begin, end = at
    same, last = True, begin
    for f in range(count):
        best = dot(corners, begin, source, start + f * d, d)
        chosen = begin
        for c in range(begin + d, end, d):
            total = dot(corners, c, source, start + f * d, d)
            if total < best:
                best, chosen = total, c
        out[to + f] = best
        same = same and (f == 0 or chosen == last)
        last = chosen
    for i in range(d):
        point[place + i] = corners[last + i]
    return same


def curved_minimum(head, data, m, v, at, order, p):
    """Return min p.v over marginal m, from below, and fill the attaining p[0 : d]."""
    d, place = head[m, slot.SIZE], head[m, slot.PLACE]
    n = place + slot.LOWER + 2 * d
    nominal_X, value_X, radius = data[n : n + d], v[at : at + d], data[place + slot.RADIUS]
    return _lp_minimum(nominal_X, radius, data[place + slot.EXPONENT], value_X, order, p[:d])


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
