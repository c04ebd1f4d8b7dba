"""Interval arithmetic: product bounds, one greedy over the whole product support.

The semantics of PRISM and Storm for synchronised intervals. Branches that meet in one successor
add their intervals up; since they have one value, the greedy (`kernels.boxes`) gives the same
without merging.
Twin in the tests: `kernels.twins.interval_arithmetic`.
"""

import numpy as np

from rfmdp.kernels.boxes import box_member, box_minimum
from rfmdp.kernels.decorator import inline_kernel, kernel
from rfmdp.kernels.layout import DATA, FIRST, HEAD, LAST, LOWER, PLACE, SIZE
from rfmdp.kernels.primitives import sort_long
from rfmdp.kernels.rows import load, store, take_axes


@inline_kernel
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
    return out, 0, size, max(0.0, free)


@inline_kernel
def sorted_box(sets, rows, r, size, work):
    """Return the product box of row r, and fill the order of its values."""
    tensor, products, order, axes = work
    n, _ = take_axes(rows, r, sets[HEAD], axes)
    sort_long(tensor, size, order)
    return product_box(sets[HEAD], sets[DATA], axes, n, size, products)


@kernel
def interval_rows(sets, rows, work, asked, bounds):
    """Fill the side that the relaxation proves for every wanted row, and the open one with inf.

    work : tensor (K,), box (2 K,), order (K + STACK,), axes
    """
    tensor, _, order, _ = work
    for i in range(asked[FIRST], asked[LAST]):
        row, size = load(rows, asked, i, tensor)
        r, _, span = row
        q = 0.0
        if span > 0.0:
            box = sorted_box(sets, rows, r, size, work)
            q, _ = box_minimum(box, tensor, 0, order)
        store(q, np.inf, size, row, asked, bounds)


@kernel
def interval_answers(sets, rows, work, asked, begin, out):
    """Write the attaining distribution over the stored successors of wanted[i] to begin[i]."""
    tensor, _, order, _ = work
    for i in range(asked[FIRST], asked[LAST]):
        row, size = load(rows, asked, i, tensor)
        r, _, _ = row
        box = sorted_box(sets, rows, r, size, work)
        box_member(box, order, out, begin[i])
