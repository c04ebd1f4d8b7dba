"""The linear minimiser of one marginal set, the step that every inner solver repeats.

`minimise(...)` gives min { p.v : p in the set } for many fibres of a tensor at once, and says
whether one member attains them all. The numbers are never above the true minimum by more than
rounding; the member is one. Sets are packed as `kernels.layout` says.

Lp balls with 1 < p < inf have a minimiser of their own in `kernels.curved`, which takes long to
compile. It is called by its address, so that a kernel does not contain it, and a model without
such sets does not compile it.

A *box* is a plain tuple (data, l, d, free): lower bounds at data[l : l + d], slacks (upper - lower)
behind them, and the mass 1 - sum(lower) that is free to give away. Its linear minimiser gives the
free mass to the lowest values first [Givan2000]. `order` is that of `kernels.primitives.sort`.
"""

from rfmdp.kernels import layout as slot
from rfmdp.kernels.curved import call_curved
from rfmdp.kernels.decorator import inline_kernel, step_kernel
from rfmdp.kernels.primitives import dot, reset, sort


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
