"""Linear minimisers of one marginal set, the step that every inner solver repeats.

`minimiser(...)` returns min { p.v : p in the set } for values `v[at : at + d]` and fills the
attaining `p[0 : d]`; `fibres(...)` gives the values for many fibres of a tensor at once, and says
whether one member attains them all. The number returned is never above the true minimum by more
than rounding; `p` is a member.

Sets come as three arrays (made by `inner.layout.pack_sets`), because a struct handed to a function
that is not inlined costs a reference count per field:

head     (M, 5) int64: kind, size d, place in `data`, begin and end in `corners`
data     per marginal: free mass 1 - sum(lower), radius, exponent; lower, slack, nominal (d each);
         of subset sets then the lower probabilities of all 2**d bitmasks
corners  vertices, d numbers each: of every polytope, and of boxes where a solver branches on them

`order` holds a permutation of 0..d-1 that is sorted in place. Handing the same array to the next
fibre makes the insertion sort nearly linear, because neighbouring fibres of a value function are
mostly sorted alike. It is reset once per row, so that results do not depend on which rows a
thread saw before.

numba compiles a callee once more for every literal among its arguments. `zero` makes a zero that
is none; without it most of this package would be compiled two to six times.
"""

import numpy as np

from rfmdp.kernels.decorator import inline_kernel, kernel, part_kernel
from rfmdp.kernels.statistical import choquet_minimum, kl_minimum

SINGLETON, BOX, L1, LP, POLYTOPE, KL, SUBSETS = 0, 1, 2, 3, 4, 5, 6
KIND, SIZE, PLACE, CORNERS, CORNERS_END = 0, 1, 2, 3, 4  # columns of head
FREE, RADIUS, EXPONENT, LOWER = 0, 1, 2, 3  # offsets in data; slack and nominal follow lower


@inline_kernel
def zero(n):
    """Return 0, as an integer of the run and not of the source text."""
    return n * 0


@inline_kernel
def reset(order, d):
    """Fill the identity permutation."""
    for i in range(d):
        order[i] = i


@inline_kernel
def sort(v, at, d, order):
    """Sort `order` by ascending v[at + order]; returns whether it was not sorted before.

    Insertion, so that nearly sorted input is linear.
    """
    moved = False
    for i in range(1, d):
        k = order[i]
        x = v[at + k]
        j = i - 1
        while j >= 0 and v[at + order[j]] > x:
            order[j + 1] = order[j]
            j -= 1
            moved = True
        order[j + 1] = k
    return moved


@inline_kernel
def box_minimum(data, l, d, free, v, at, order):
    """Return min p.v over one box, and whether `order` changed.

    The free mass goes to the lowest values first [Givan2000].
    l : place of the lower bounds in data; the slacks follow them
    """
    total = 0.0
    for i in range(d):
        total += data[l + i] * v[at + i]
    moved = sort(v, at, d, order)
    mass = free
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
def box_answer(data, l, d, free, order, p, to):
    """Fill p[to : to + d] with the member of a box that fills up its entries in `order`."""
    mass = free
    for i in range(d):
        k = order[i]
        take = min(mass, data[l + d + k])
        mass -= take
        p[to + k] = data[l + k] + take


@kernel
def fibres(head, data, corners, m, source, start, count, order, p, out, point, place):
    """Minimise over marginal m for each of `count` fibres of `source`; fills out[0 : count].

    Returns whether one member attains the minimum of every fibre; it is then in
    point[place : place + d]. That member of a box fills up its entries in an order by which all
    fibres are sorted. `out` may be `source` if start is 0: fibre f is read before out[f] is
    written.
    """
    kind, d = head[m, KIND], head[m, SIZE]
    l = head[m, PLACE] + LOWER
    if kind == SINGLETON:
        for f in range(count):
            total = 0.0
            for i in range(d):
                total += data[l + i] * source[start + f * d + i]
            out[f] = total
        for i in range(d):
            point[place + i] = data[l + i]
        return True
    if kind == BOX and d == 2:
        low = data[l]
        high = low + data[l + 2]
        least, most = 0.0, 0.0
        for f in range(count):
            second = source[start + 2 * f + 1]
            step = source[start + 2 * f] - second
            out[f] = second + min(low * step, high * step)
            least, most = min(least, step), max(most, step)
        point[place] = low if most > 0.0 else high
        point[place + 1] = 1.0 - point[place]
        return least == 0.0 or most == 0.0
    reset(order, d)
    if kind == BOX:
        free = data[l - LOWER + FREE]
        changes = 0
        for f in range(count):
            out[f], moved = box_minimum(data, l, d, free, source, start + f * d, order)
            changes += moved and f > 0
        box_answer(data, l, d, free, order, point, place)
        return changes == 0
    same = kind != LP  # whose values are dual bounds, not attained to the last digit
    for f in range(count):
        out[f] = minimiser(head, data, corners, m, source, start + f * d, order, p)
        for i in range(d):
            same = same and (f == 0 or p[i] == point[place + i])
            point[place + i] = p[i]
    return same


@kernel
def minimiser(head, data, corners, m, v, at, order, p):
    """Return min p.v over marginal m and fill the attaining p[0 : d]."""
    kind, d = head[m, KIND], head[m, SIZE]
    place = head[m, PLACE]
    if kind == BOX:
        return _box(data, place, d, v, at, order, p)
    if kind == SINGLETON:
        total = 0.0
        for i in range(d):
            p[i] = data[place + LOWER + i]
            total += p[i] * v[at + i]
        return total
    if kind == L1:
        return _l1(data, place, d, v, at, order, p)
    if kind == KL:
        n = place + LOWER + 2 * d
        return kl_minimum(data[n : n + d], data[place + RADIUS], v[at : at + d], p[:d])
    if kind == SUBSETS:
        n = place + LOWER + 3 * d
        return choquet_minimum(data[n : n + 2**d], v[at : at + d], order, p[:d])
    if kind == LP:
        return _lp(data, place, d, v, at, order, p)
    return _polytope(corners, head[m, CORNERS], head[m, CORNERS_END], d, v, at, p)


@inline_kernel
def _box(data, place, d, v, at, order, p):
    """As `box_minimum`, and fill p."""
    l = place + LOWER
    if d == 2:
        p[0] = data[l]
        if v[at] <= v[at + 1]:
            p[0] += data[l + 2]
        p[1] = 1.0 - p[0]
        return v[at + 1] + p[0] * (v[at] - v[at + 1])
    total = 0.0
    for i in range(d):
        p[i] = data[l + i]
        total += p[i] * v[at + i]
    sort(v, at, d, order)
    mass = data[place + FREE]
    for i in range(d):
        k = order[i]
        take = min(mass, data[l + d + k])
        p[k] += take
        total += take * v[at + k]
        mass -= take
        if mass <= 0.0:
            break
    return total


@part_kernel
def _l1(data, place, d, v, at, order, p):
    """Move min(radius / 2, 1 - p) to the lowest value, taken from the highest ones."""
    for i in range(d):
        p[i] = data[place + LOWER + 2 * d + i]
    sort(v, at, d, order)
    best = order[0]
    move = min(0.5 * data[place + RADIUS], 1.0 - p[best])
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


@part_kernel
def _polytope(corners, begin, end, d, v, at, p):
    """Look at every vertex; the first of the best ones wins."""
    best, chosen = np.inf, begin
    for c in range(begin, end, d):
        total = 0.0
        for i in range(d):
            total += corners[c + i] * v[at + i]
        if total < best:
            best, chosen = total, c
    for i in range(d):
        p[i] = corners[chosen + i]
    return best


@inline_kernel
def _lp_entry(nominal, gap, lam, q):
    """Return argmin { gap x + lam / c |x - nominal|^c : 0 <= x <= 1 }, with 1/q + 1/c = 1."""
    step = (abs(gap) / lam) ** (q - 1.0)
    x = nominal - step if gap > 0.0 else nominal + step
    return min(1.0, max(0.0, x))


@part_kernel
def _lp_point(data, n, d, v, at, q, lam, mu, p):
    """Fill p_i = clip(nominal_i -+ (|v_i - mu| / lam)**(q - 1), 0, 1); return its sum.

    Minimiser of p.v + mu (1 - sum p) + (lam / c) ||p - nominal||_c^c over the box [0, 1], with
    1/q + 1/c = 1 and the nominal entries at data[n : n + d].
    """
    total = 0.0
    for i in range(d):
        p[i] = _lp_entry(data[n + i], v[at + i] - mu, lam, q)
        total += p[i]
    return total


@inline_kernel
def _next(low, high, f_low, f_high, step):
    """Return where to look for a root of f in [low, high]: secant, every third time the middle."""
    x = low - f_low * (high - low) / (f_high - f_low)
    if step % 3 == 2 or not low < x < high:
        return 0.5 * (low + high)
    return x


@part_kernel
def _lp_balanced(data, n, d, v, at, q, lam, p):
    """Find mu so that the point of `_lp_point` sums to one, to rounding; leave it in p."""
    low, high = np.inf, -np.inf
    for i in range(d):
        low, high = min(low, v[at + i]), max(high, v[at + i])
    # all values are above mu = low, and all below mu = high; the sum rises with mu
    mu, f, f_low, f_high, side = low, 0.0, -1.0, 1.0, 0
    for step in range(120):
        mu = _next(low, high, f_low, f_high, step)
        f = _lp_point(data, n, d, v, at, q, lam, mu, p) - 1.0
        if abs(f) <= 1e-15 or mu <= low or mu >= high:
            break
        # Illinois' rule: the value of an end that stays twice is halved, or the secant stalls
        if f > 0.0:
            high, f_high = mu, f
            f_low *= 0.5 if side == 1 else 1.0
            side = 1
        else:
            low, f_low = mu, f
            f_high *= 0.5 if side == -1 else 1.0
            side = -1
    # large exponents jump where mu meets a value: that entry takes the rest, at no price
    nearest = 0
    for i in range(d):
        if abs(v[at + i] - mu) < abs(v[at + nearest] - mu):
            nearest = i
    p[nearest] = min(1.0, max(0.0, p[nearest] - f))
    return mu


@kernel
def _lp_norm(data, n, d, exponent, p):
    """Return ||p - nominal||_exponent."""
    top = 0.0
    for i in range(d):
        top = max(top, abs(p[i] - data[n + i]))
    if top == 0.0:
        return 0.0
    total = 0.0
    for i in range(d):
        total += (abs(p[i] - data[n + i]) / top) ** exponent
    return top * total ** (1.0 / exponent)


@part_kernel
def _lp(data, place, d, v, at, order, p):
    """Minimise over {p in the simplex : ||p - nominal||_c <= radius}, 1 < c < inf.

    Lagrange: for a multiplier lam of the ball the minimiser over box and sum is in closed form up
    to mu; both are found by secants. Returned is the *dual* value
    mu + sum_i min_{x in [0,1]} ((v_i - mu) x + lam/c |x - nominal_i|^c) - lam/c radius^c,
    below the true minimum for every lam > 0 and mu, and p is pulled into the ball.
    """
    n = place + LOWER + 2 * d
    c, radius = data[place + EXPONENT], data[place + RADIUS]
    q = c / (c - 1.0)
    sort(v, at, d, order)
    span = v[at + order[d - 1]] - v[at + order[0]]
    if span == 0.0 or radius == 0.0:
        total = 0.0
        for i in range(d):
            p[i] = data[n + i]
            total += p[i] * v[at + i]
        return total
    for i in range(d):
        p[i] = 1.0 if i == order[0] else 0.0
    if _lp_norm(data, n, d, c, p) <= radius:
        return v[at + order[0]]
    # the length of the move falls with lam, nearly as a power of it: secants on logarithms
    low, high, f_low, f_high, lam, mu, side = -700.0, 700.0, 1.0, -1.0, 1.0, 0.0, 0
    t = np.log(span) + (np.log(d) - np.log(radius)) / (q - 1.0)
    for step in range(120):
        if step > 0:
            t = _next(low, high, f_low, f_high, step)
        elif not low < t < high:
            t = 0.0
        lam = np.exp(t)
        mu = _lp_balanced(data, n, d, v, at, q, lam, p)
        f = np.log(max(_lp_norm(data, n, d, c, p) / radius, 1e-300))
        # an error of f costs its square in the dual value, and itself in the length of the move
        if t <= low or t >= high or abs(f) <= 1e-14:
            break
        if f > 0.0:
            low, f_low = t, f
            f_high *= 0.5 if side == 1 else 1.0
            side = 1
        else:
            high, f_high = t, f
            f_low *= 0.5 if side == -1 else 1.0
            side = -1
    dual = mu - lam / c * radius**c
    _lp_repair(data, n, d, c, radius, p)
    for i in range(d):
        gap = v[at + i] - mu
        x = _lp_entry(data[n + i], gap, lam, q)
        dual += gap * x + lam / c * abs(x - data[n + i]) ** c
    return dual


@part_kernel
def _lp_repair(data, n, d, c, radius, p):
    """Make p sum to one and pull it into the ball, both by rounding-sized moves."""
    total = 0.0
    for i in range(d):
        total += p[i]
    for i in range(d):
        p[i] /= total
    norm = _lp_norm(data, n, d, c, p)
    if norm > radius:
        share = radius / norm
        for i in range(d):
            p[i] = data[n + i] + share * (p[i] - data[n + i])
