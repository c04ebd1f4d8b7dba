"""Boxes within the simplex: their linear minimum, maximum and members.

A *box* is a plain tuple (data, l, d, free): lower bounds at data[l : l + d], slacks (upper - lower)
behind them, and the mass 1 - sum(lower) that is free to give away. Its linear minimiser gives the
free mass to the lowest values first [Givan2000]. `order` is that of `kernels.primitives.sort`.
"""

from rfmdp.kernels.decorator import inline_kernel
from rfmdp.kernels.layout import FREE, LOWER, PLACE, SIZE
from rfmdp.kernels.primitives import dot, sort


@inline_kernel
def box_of(head, data, m):
    """Return marginal m of packed sets (see `kernels.layout`) as a box."""
    place = head[m, PLACE]
    return data, place + LOWER, head[m, SIZE], data[place + FREE]


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
