"""Interval arithmetic: product bounds, one greedy over the whole product support.

The semantics of PRISM and Storm for synchronised intervals. Branches that meet in one successor
add their intervals up; since they have one value, the greedy gives the same without merging.
Twin in the tests: `kernels.twins.interval_arithmetic`.
"""

from rfmdp.kernels.borrow import borrow
from rfmdp.kernels.decorator import kernel, part_kernel
from rfmdp.kernels.layout import LOWER, PLACE, SIZE
from rfmdp.kernels.primitives import box_member, box_minimum, sort_long, zero
from rfmdp.kernels.rows import load, margin, store, take_axes


@part_kernel
def product_box(head, data, axes, n, size, out):
    """Fill out with the box of the products of the marginals' bounds, C order; returns it.

    Of the free mass, and of every slack, what rounding made negative counts as none.
    """
    out[0], out[size], count = 1.0, 1.0, 1
    for k in range(n):
        d = head[axes[k], SIZE]
        l = head[axes[k], PLACE] + LOWER
        for f in range(count - 1, -1, -1):
            low, high = out[f], out[size + f]
            for j in range(d - 1, -1, -1):
                out[f * d + j] = low * data[l + j]
                out[size + f * d + j] = high * (data[l + j] + data[l + d + j])
        count *= d
    free = 1.0
    for f in range(size):
        out[size + f] = max(0.0, out[size + f] - out[f])
        free -= out[f]
    return out, zero(n), size, max(0.0, free)


@kernel
def interval_rows(sets, rows, work, asked, bounds):
    """Fill the side that the relaxation proves for every wanted row, and the open one with inf.

    work : tensor (K,), box (2 K,), order (K + STACK,), axes
    """
    sets, rows, work, asked, bounds = borrow((sets, rows, work, asked, bounds))
    wanted, value, sign, first, last = asked
    tensor, products, order, axes = work
    for i in range(first, last):
        r = wanted[i]
        size, reference, low, high = load(rows, r, value, sign, tensor)
        q, error, span = 0.0, 0.0, high - low
        if span > 0.0:
            n, _ = take_axes(rows, r, sets[0], axes)
            box = product_box(sets[0], sets[1], axes, n, size, products)
            sort_long(tensor, size, order)
            q, _ = box_minimum(box, tensor, zero(n), order)
            error = margin(size, span, abs(reference) + span)
        store(q, float("inf"), error, reference, sign, r, bounds)


@kernel
def interval_answers(sets, rows, work, asked, begin, out):
    """Write the attaining distribution over the stored successors of wanted[i] to begin[i]."""
    sets, rows, work, asked = borrow((sets, rows, work, asked))
    wanted, value, sign, first, last = asked
    tensor, products, order, axes = work
    for i in range(first, last):
        r = wanted[i]
        size, _, _, _ = load(rows, r, value, sign, tensor)
        n, _ = take_axes(rows, r, sets[0], axes)
        box = product_box(sets[0], sets[1], axes, n, size, products)
        sort_long(tensor, size, order)
        box_member(box, order, out, begin[i])
