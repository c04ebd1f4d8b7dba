"""Linear minimisers of one marginal set, the step that every inner solver repeats.

`minimum(...)` gives min { p.v : p in the set } for values `v[at : at + d]`; `minimiser(...)`
also fills the attaining `p[0 : d]`. Both read the packed sets (`Sets`, the arrays of
`Marginals` with slack and free mass added). The number returned is never above the true
minimum by more than rounding; `p` is a member of the set.

`order` holds a permutation of 0..d-1 that is sorted in place. Handing the same array to the next
fibre makes the insertion sort nearly linear, because neighbouring fibres of a value function are
mostly sorted alike. It must be reset once per row, so that results do not depend on which rows
a thread saw before.
"""

from typing import NamedTuple

import numpy as np

from rfmdp.kernels.decorator import kernel

SINGLETON, BOX, L1, LP, POLYTOPE = 0, 1, 2, 3, 4


class Sets(NamedTuple):
    """The packed marginals as kernels read them."""

    ptr: np.ndarray  # (M + 1,) outcomes of a marginal
    kind: np.ndarray  # (M,)
    nominal: np.ndarray  # (O,)
    lower: np.ndarray  # (O,)
    slack: np.ndarray  # (O,) upper - lower
    free: np.ndarray  # (M,) 1 - sum of lower
    radius: np.ndarray  # (M,)
    exponent: np.ndarray  # (M,)
    corner_ptr: np.ndarray  # (M + 1,)
    corners: np.ndarray


@kernel
def reset(order, d):
    """Fill the identity permutation."""
    for i in range(d):
        order[i] = i


@kernel
def sort(v, at, d, order):
    """Sort `order` by ascending v[at + order]; insertion, so nearly sorted input is linear."""
    for i in range(1, d):
        k = order[i]
        x = v[at + k]
        j = i - 1
        while j >= 0 and v[at + order[j]] > x:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = k


@kernel
def minimum(sets, m, v, at, order, p):
    """Return min p.v over marginal m; `p` is scratch for the sets that need it."""
    kind = sets.kind[m]
    o = sets.ptr[m]
    d = sets.ptr[m + 1] - o
    if kind == BOX:
        if d == 2:
            # both ends of the segment; branch-free
            low, high = sets.lower[o], sets.lower[o] + sets.slack[o]
            first, second = v[at], v[at + 1]
            step = first - second
            return second + min(low * step, high * step)
        total = 0.0
        for i in range(d):
            total += sets.lower[o + i] * v[at + i]
        sort(v, at, d, order)
        mass = sets.free[m]
        for i in range(d):
            k = order[i]
            s = sets.slack[o + k]
            if s >= mass:
                return total + mass * v[at + k]
            total += s * v[at + k]
            mass -= s
        return total
    if kind == SINGLETON:
        total = 0.0
        for i in range(d):
            total += sets.nominal[o + i] * v[at + i]
        return total
    return minimiser(sets, m, v, at, order, p)


@kernel
def minimiser(sets, m, v, at, order, p):
    """Return min p.v over marginal m and fill the attaining p[0 : d]."""
    kind = sets.kind[m]
    o = sets.ptr[m]
    d = sets.ptr[m + 1] - o
    if kind == SINGLETON:
        total = 0.0
        for i in range(d):
            p[i] = sets.nominal[o + i]
            total += p[i] * v[at + i]
        return total
    if kind == BOX:
        return _box(sets, m, o, d, v, at, order, p)
    if kind == L1:
        return _l1(sets, m, o, d, v, at, order, p)
    if kind == LP:
        return _lp(sets, m, o, d, v, at, order, p)
    return _polytope(sets, m, d, v, at, p)


@kernel
def _box(sets, m, o, d, v, at, order, p):
    """Give the free mass to the lowest values first [Givan2000]."""
    if d == 2:
        if v[at] <= v[at + 1]:
            p[0] = sets.lower[o] + sets.slack[o]
            p[1] = 1.0 - p[0]
        else:
            p[0] = sets.lower[o]
            p[1] = 1.0 - p[0]
        return v[at + 1] + p[0] * (v[at] - v[at + 1])
    total = 0.0
    for i in range(d):
        p[i] = sets.lower[o + i]
        total += p[i] * v[at + i]
    sort(v, at, d, order)
    mass = sets.free[m]
    for i in range(d):
        k = order[i]
        take = min(mass, sets.slack[o + k])
        p[k] += take
        total += take * v[at + k]
        mass -= take
        if mass <= 0.0:
            break
    return total


@kernel
def _l1(sets, m, o, d, v, at, order, p):
    """Move min(radius / 2, 1 - p) to the lowest value, taken from the highest ones."""
    for i in range(d):
        p[i] = sets.nominal[o + i]
    sort(v, at, d, order)
    best = order[0]
    move = min(0.5 * sets.radius[m], 1.0 - p[best])
    p[best] += move
    for i in range(d - 1, 0, -1):
        take = min(move, p[order[i]])
        p[order[i]] -= take
        move -= take
        if move <= 0.0:
            break
    total = 0.0
    for i in range(d):
        total += p[i] * v[at + i]
    return total


@kernel
def _polytope(sets, m, d, v, at, p):
    """Look at every vertex; the first of the best ones wins."""
    best, chosen = np.inf, sets.corner_ptr[m]
    for c in range(sets.corner_ptr[m], sets.corner_ptr[m + 1], d):
        total = 0.0
        for i in range(d):
            total += sets.corners[c + i] * v[at + i]
        if total < best:
            best, chosen = total, c
    for i in range(d):
        p[i] = sets.corners[chosen + i]
    return best


@kernel
def _lp_point(sets, o, d, v, at, q, lam, mu, p):
    """Fill p_i = clip(nominal_i - sign * (|v_i - mu| / lam)**(q - 1), 0, 1); return its sum.

    Minimiser of p.v + mu (1 - sum p) + (lam / c) ||p - nominal||_c^c over the box [0, 1].
    """
    total = 0.0
    for i in range(d):
        gap = v[at + i] - mu
        step = (abs(gap) / lam) ** (q - 1.0)
        x = sets.nominal[o + i] - step if gap > 0.0 else sets.nominal[o + i] + step
        p[i] = min(1.0, max(0.0, x))
        total += p[i]
    return total


@kernel
def _lp_balanced(sets, o, d, v, at, q, lam, p):
    """Find mu by bisection so that the point of `_lp_point` sums to one; leave it in p."""
    low, high = np.inf, -np.inf
    for i in range(d):
        low, high = min(low, v[at + i]), max(high, v[at + i])
    for _ in range(200):
        mu = 0.5 * (low + high)
        if mu <= low or mu >= high:
            break
        if _lp_point(sets, o, d, v, at, q, lam, mu, p) > 1.0:
            high = mu
        else:
            low = mu
    mu = 0.5 * (low + high)
    _lp_point(sets, o, d, v, at, q, lam, mu, p)
    return mu


@kernel
def _lp_norm(sets, o, d, exponent, p):
    """Return ||p - nominal||_exponent."""
    top = 0.0
    for i in range(d):
        top = max(top, abs(p[i] - sets.nominal[o + i]))
    if top == 0.0:
        return 0.0
    total = 0.0
    for i in range(d):
        total += (abs(p[i] - sets.nominal[o + i]) / top) ** exponent
    return top * total ** (1.0 / exponent)


@kernel
def _lp(sets, m, o, d, v, at, order, p):
    """Minimise over {p in the simplex : ||p - nominal||_c <= radius}, 1 < c < inf.

    Lagrange: for a multiplier lam of the ball the minimiser over box and sum is in closed form up
    to mu; lam is found by bisection. Returned is the *dual* value
    mu + sum_i min_{x in [0,1]} ((v_i - mu) x + lam/c |x - nominal_i|^c) - lam/c radius^c,
    below the true minimum for every lam > 0 and mu, and p is pulled into the ball.
    """
    c = sets.exponent[m]
    q = c / (c - 1.0)
    radius = sets.radius[m]
    sort(v, at, d, order)
    span = v[at + order[d - 1]] - v[at + order[0]]
    if span == 0.0 or radius == 0.0:
        total = 0.0
        for i in range(d):
            p[i] = sets.nominal[o + i]
            total += p[i] * v[at + i]
        return total
    for i in range(d):
        p[i] = 1.0 if i == order[0] else 0.0
    if _lp_norm(sets, o, d, c, p) <= radius:
        return v[at + order[0]]
    low, high = 0.0, span
    while True:  # double until the ball is not left
        _lp_balanced(sets, o, d, v, at, q, high, p)
        if _lp_norm(sets, o, d, c, p) <= radius or high > 1e300:
            break
        low, high = high, high * 4.0
    for _ in range(200):
        lam = 0.5 * (low + high)
        if lam <= low or lam >= high:
            break
        _lp_balanced(sets, o, d, v, at, q, lam, p)
        if _lp_norm(sets, o, d, c, p) > radius:
            low = lam
        else:
            high = lam
    mu = _lp_balanced(sets, o, d, v, at, q, high, p)
    dual = mu - high / c * radius**c
    for i in range(d):
        dual += (v[at + i] - mu) * p[i] + high / c * abs(p[i] - sets.nominal[o + i]) ** c
    _lp_repair(sets, o, d, c, radius, p)
    return dual


@kernel
def _lp_repair(sets, o, d, c, radius, p):
    """Make p sum to one and pull it into the ball, both by rounding-sized moves."""
    total = 0.0
    for i in range(d):
        total += p[i]
    for i in range(d):
        p[i] /= total
    norm = _lp_norm(sets, o, d, c, p)
    if norm > radius:
        share = radius / norm
        for i in range(d):
            p[i] = sets.nominal[o + i] + share * (p[i] - sets.nominal[o + i])
