"""Inner methods beside the exact one.

Sequential contraction is step 1 of `kernels.exact` alone; the products of all vertices are Theorem
1 of the paper. Two relaxations look at all joint outcomes of a row at once: product bounds, and one
ball.

Interval arithmetic has the semantics of PRISM and Storm for synchronised intervals: product bounds,
one greedy over the whole product support. Branches that meet in one successor add their intervals
up; since they have one value, the greedy of a box gives the same without merging.
Twin in the tests: `kernels.twins.interval_arithmetic`.

A ball around the nominal product is written to memory as a packed set of one marginal
(`kernels.layout`): head[0] and, at place 0 of `data`, free mass, radius, exponent, then lower
bounds, slacks and the nominal product, one number per joint outcome each. p[0 : d] is the
minimiser, p[d] the minimum.
"""

import numpy as np

from rfmdp.kernels import layout as slot
from rfmdp.kernels.decorator import inline_kernel, kernel
from rfmdp.kernels.exact import fold
from rfmdp.kernels.oracle import box_member, box_minimum, minimise, minimum
from rfmdp.kernels.primitives import contract_first, dot, multiply, outer_product, sort_long
from rfmdp.kernels.rows import load, scatter, store, take_axes, terms_of, write_answer
from rfmdp.rounding import CURVED_TERMS


@kernel
def sequential_rows(sets, rows, work, asked, bounds):
    """Fill the relaxation's side of every wanted row, and the open one with infinity."""
    axes = work[slot.AXES]
    for i in range(asked[slot.FIRST], asked[slot.LAST]):
        row, size = load(rows, asked, i, work[slot.LEVELS])
        r, _, span = row
        q, terms = 0.0, 0
        if span > 0.0:
            n, width = take_axes(rows, r, sets[slot.HEAD], axes)
            terms = terms_of(sets[slot.HEAD], axes, n)
            fold(sets, work, 0, n, 0, size, width)
            q = minimum(sets, work, axes[0])
        store(q, np.inf, terms, row, asked, bounds)


@inline_kernel
def conditional(sets, work, n, size, width):
    """Write nature's sequential answer p1(o1) p2(o2 | o1) ... over the tensor behind it."""
    levels, p, axes = work[slot.LEVELS], work[slot.MEMBER], work[slot.AXES]
    levels[size] = 1.0
    count = 1  # outcomes of the axes done so far
    for k in range(n):
        d = sets[slot.HEAD][axes[k], slot.SIZE]
        rest = size // count
        for f in range(count - 1, -1, -1):  # backwards: products grow in place
            fold(sets, work, k, n, f * rest, rest, width)
            minimum(sets, work, axes[k])
            x = levels[size + f]
            for j in range(d):
                levels[size + f * d + j] = x * p[j]
        count *= d


@kernel
def sequential_answers(sets, rows, work, asked, begin, out):
    """Write the sequential answer over the stored successors of wanted[i] to out[begin[i]:]."""
    for i in range(asked[slot.FIRST], asked[slot.LAST]):
        row, size = load(rows, asked, i, work[slot.LEVELS])
        r, _, _ = row
        n, width = take_axes(rows, r, sets[slot.HEAD], work[slot.AXES])
        conditional(sets, work, n, size, width)
        scatter(work[slot.LEVELS], size, size, rows, r, out, begin[i])


@kernel
def products(sets, rows, work, asked, where, answer, begin, out):
    """Multiply out the marginals at answer[where[i]:] over the stored successors of wanted[i]."""
    wanted, _, _, first, last = asked
    head, tensor, axes = sets[slot.HEAD], work[slot.LEVELS], work[slot.AXES]
    for i in range(first, last):
        r = wanted[i]
        n, _ = take_axes(rows, r, head, axes)
        tensor[0] = 1.0
        count, place = 1, where[i]
        for k in range(n):
            d = head[axes[k], slot.SIZE]
            count = multiply(tensor, 0, count, answer, place, d)
            place += d
        scatter(tensor, 0, count, rows, r, out, begin[i])


@inline_kernel
def enumerate_tensor(sets, work, n, size):
    """Return the minimum over all products of vertices; the attaining product is in `best`."""
    head, _, corners, _ = sets
    levels, best, cursor, axes = (
        work[slot.LEVELS],
        work[slot.BEST],
        work[slot.CURSOR],
        work[slot.AXES],
    )
    high, k, start, count = np.inf, 0, 0, size
    cursor[0] = head[axes[0], slot.CORNERS]
    while k >= 0:
        m = axes[k]
        d = head[m, slot.SIZE]
        c = cursor[k]
        if c == head[m, slot.CORNERS_END]:
            k -= 1
            if k >= 0:
                count *= head[axes[k], slot.SIZE]
                start -= count
            continue
        cursor[k] = c + d
        if k == n - 1:
            value = dot(corners, c, levels, start, d)
            if value < high:
                high = value
                place = 0
                for a in range(n):
                    size_a = head[axes[a], slot.SIZE]
                    for i in range(size_a):
                        best[place + i] = corners[cursor[a] - size_a + i]
                    place += size_a
            continue
        rest = count // d
        contract_first(corners, c, d, levels, start, rest, levels, start + count)
        start, count, k = start + count, rest, k + 1
        cursor[k] = head[axes[k], slot.CORNERS]
    return high


@kernel
def vertex_rows(sets, rows, work, asked, answers, bounds):
    """Fill both sides of every wanted row with the minimum over all products, and answers."""
    for i in range(asked[slot.FIRST], asked[slot.LAST]):
        row, size = load(rows, asked, i, work[slot.LEVELS])
        r, _, _ = row
        n, width = take_axes(rows, r, sets[slot.HEAD], work[slot.AXES])
        q = enumerate_tensor(sets, work, n, size) if n > 0 else 0.0
        store(q, q, width, row, asked, bounds)
        write_answer(work[slot.BEST], width, i, answers)


@inline_kernel
def product_box(head, data, axes, n, size, out):
    """Fill out with the box of the products of the marginals' bounds, C order; returns it.

    Of the free mass, and of every slack, what rounding made negative counts as none.
    """
    out[0], out[size], count = 1.0, 1.0, 1
    for k in range(n):
        d = head[axes[k], slot.SIZE]
        l = head[axes[k], slot.PLACE] + slot.LOWER
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
    n, _ = take_axes(rows, r, sets[slot.HEAD], axes)
    sort_long(tensor, size, order)
    return product_box(sets[slot.HEAD], sets[slot.DATA], axes, n, size, products)


@kernel
def interval_rows(sets, rows, work, asked, bounds):
    """Fill the side that the relaxation proves for every wanted row, and the open one with inf.

    work : tensor (K,), box (2 K,), order (K + STACK,), axes
    """
    tensor, _, order, _ = work
    for i in range(asked[slot.FIRST], asked[slot.LAST]):
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
    for i in range(asked[slot.FIRST], asked[slot.LAST]):
        row, size = load(rows, asked, i, tensor)
        r, _, _ = row
        box = sorted_box(sets, rows, r, size, work)
        box_member(box, order, out, begin[i])


@inline_kernel
def pack_ball(r, d, balls, rows, nominals, head, data):
    """Write the ball of row r, with d joint outcomes, as the set of marginal 0."""
    kinds, radii, exponents = balls
    kind, radius, exponent = kinds[r], radii[r], exponents[r]
    outcome_ptr, nominal = nominals
    _, _, marginal_ptr, marginals, _, _, _ = rows
    head[0, slot.KIND], head[0, slot.SIZE], head[0, slot.PLACE] = kind, d, 0
    data[slot.RADIUS], data[slot.EXPONENT] = radius, exponent
    centre = slot.LOWER + 2 * d
    first, last = marginal_ptr[r], marginal_ptr[r + 1]
    outer_product(outcome_ptr, nominal, marginals, first, last, data, centre)
    free = 1.0
    width = radius if kind == slot.BOX else 0.0
    for i in range(d):
        x = data[centre + i]
        low, high = max(x - width, 0.0), min(x + width, 1.0)
        data[slot.LOWER + i] = low
        data[slot.LOWER + d + i] = high - low
        free -= low
    data[slot.FREE] = max(free, 0.0)


@kernel
def radius_sum_rows(sets, rows, work, asked, balls, nominals, answers, bounds):
    """Fill the relaxation's side of every wanted row, the other one open, and wanted answers.

    The sets of the marginals are not looked at: their balls are one ball per row,
    min { p.v : p in the simplex, ||p - nominal product|| <= radius }
    balls    : kinds (R,), radii (R,), exponents (R,)
    nominals : outcome_ptr (M + 1,), nominal probabilities
    work     : the packed set, v (K,) values, p (K + 1,), order (K + STACK,), curved (K,)
    """
    ball, v, p, order, curved = work
    head, data, _, _ = ball
    _, _, marginal_ptr, _, _, _, _ = rows
    for i in range(asked[slot.FIRST], asked[slot.LAST]):
        row, d = load(rows, asked, i, v)
        r, _, _ = row
        pack_ball(r, d, balls, rows, nominals, head, data)
        # the minimisers sort by insertion, quadratic for long rows: hand them a sorted order
        sort_long(v, d, order)
        least = v[order[0]]
        minimise(ball, 0, (v, 0, 1), order, curved, (p, d), (p, 0))
        terms = d + marginal_ptr[r + 1] - marginal_ptr[r]
        if head[0, slot.KIND] == slot.LP:
            terms *= CURVED_TERMS
        store(max(p[d], least), np.inf, terms, row, asked, bounds)
        write_answer(p, d, i, answers)
