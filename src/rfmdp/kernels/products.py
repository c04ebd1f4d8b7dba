"""Inner methods beside the exact one.

Sequential contraction is step 1 of `kernels.exact` alone; the products of all vertices are Theorem
1 of the paper. Two relaxations look at all joint outcomes of a row at once: product bounds, and one
ball.

Interval arithmetic has the semantics of PRISM and Storm for synchronised intervals: product bounds,
one greedy over the whole product support. Branches that meet in one successor add their intervals
up; since they have one value, the greedy of a box gives the same without merging.
Twin in the tests: `kernels.twins.interval_arithmetic`.

Either is written to memory as a packed set of one marginal (`kernels.layout`): head[0] and, at
place 0 of `data`, free mass, radius, exponent, then lower bounds, slacks and the nominal product.
"""

import numpy as np

from rfmdp.kernels import layout as slot
from rfmdp.kernels.decorator import inline_kernel, kernel
from rfmdp.kernels.exact import fold
from rfmdp.kernels.layout import load, scatter, store, take_axes, terms_of, write_answer
from rfmdp.kernels.oracle import box_member, box_minimum, box_of, minimise, minimum
from rfmdp.kernels.primitives import contract_first, dot, multiply, outer_product, sort_long
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
    levels, _, _, _, best, _ = work[: slot.ORDER]
    _, cursor, _, axes, _ = work[slot.ORDER :]
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
def product_box(sets, axes, n, size, out):
    """Write the box of the products of the bounds of axes[0 : n] as a packed set to `out`.

    Of the free mass, and of every slack, what rounding made negative counts as none.
    """
    head, data, _, _ = sets
    lower, slack, count = slot.LOWER, slot.LOWER + size, 1
    out[lower], out[slack] = 1.0, 1.0
    for k in range(n):
        d = head[axes[k], slot.SIZE]
        l = head[axes[k], slot.PLACE] + slot.LOWER
        for f in range(count - 1, -1, -1):
            low, high = out[lower + f], out[slack + f]
            for j in range(d - 1, -1, -1):
                out[lower + f * d + j] = low * data[l + j]
                out[slack + f * d + j] = high * (data[l + j] + data[l + d + j])
        count *= d
    free = 1.0
    for f in range(size):
        out[slack + f] = max(0.0, out[slack + f] - out[lower + f])
        free -= out[lower + f]
    out[slot.FREE] = max(0.0, free)


@inline_kernel
def ball_set(sets, axes, n, size, ball, head, data):
    """Write the ball around the nominal product of axes[0 : n] as marginal 0 of head and data."""
    kind, radius, exponent = ball
    head[0, slot.KIND], data[slot.RADIUS], data[slot.EXPONENT] = kind, radius, exponent
    centre = slot.LOWER + 2 * size
    data[centre], count = 1.0, 1
    for k in range(n):
        d, place = sets[slot.HEAD][axes[k], slot.SIZE], sets[slot.HEAD][axes[k], slot.PLACE]
        count = multiply(data, centre, count, sets[slot.DATA], place + slot.LOWER + 2 * d, d)
    free = 1.0
    width = radius if kind == slot.BOX else 0.0
    for i in range(size):
        x = data[centre + i]
        low, high = max(x - width, 0.0), min(x + width, 1.0)
        data[slot.LOWER + i] = low
        data[slot.LOWER + size + i] = high - low
        free -= low
    data[slot.FREE] = max(free, 0.0)


@kernel
def joint_rows(sets, rows, work, asked, balls, answers, bounds):
    """Fill the side that one set per row over all joint outcomes proves, the other with infinity.

    That set is the ball around the nominal product, or the box of products of bounds where the
    radius is negative. Answers are the attaining distributions, over the stored successors.

    balls : kinds (R,), radii (R,), exponents (R,)
    work  : the set as packed sets, v (K,) values, p (K + 1,), order (2 K,), curved (K,), axes
    """
    one, v, p, order, curved, axes = work
    head, data, _, _ = one
    kinds, radii, exponents = balls
    wants = answers[slot.WHERE].shape[0] > 0
    for i in range(asked[slot.FIRST], asked[slot.LAST]):
        row, size = load(rows, asked, i, v)
        r, _, span = row
        if span == 0.0 and not wants:
            store(0.0, np.inf, 0, row, asked, bounds)
            continue
        n, _ = take_axes(rows, r, sets[slot.HEAD], axes)
        head[0, slot.SIZE], terms = size, size
        if radii[r] < 0.0:
            head[0, slot.KIND] = slot.BOX
            product_box(sets, axes, n, size, data)
        else:
            ball_set(sets, axes, n, size, (kinds[r], radii[r], exponents[r]), head, data)
            terms = (size + n) * (CURVED_TERMS if kinds[r] == slot.LP else 1)
        # the minimisers sort by insertion, quadratic for long rows: hand them a sorted order
        sort_long(v, size, order)
        if head[0, slot.KIND] == slot.BOX:
            box = box_of(head, data, 0)
            p[size], _ = box_minimum(box, v, 0, order)
            if wants:
                box_member(box, order, p, 0)
        else:
            minimise(one, 0, (v, 0, 1), order, curved, (p, size), (p, 0))
        store(max(p[size], v[order[0]]), np.inf, terms, row, asked, bounds)
        write_answer(p, size, i, answers)


@kernel
def distributions(rows, model, probability, work, size_N, targets, joint):
    """Multiply the listed rows out: distinct successors in order of appearance, and their mass.

    Fills size_N, and targets and joint one row after the other; returns the entries used.

    model : the arrays of `FactoredMDP.structure`
    work : place (S,) of -1, product (K,) of the largest row
    """
    _, marginal_ptr, row_marginals, outcome_ptr, successor_ptr, successors = model
    place, product = work
    used = 0
    for i in range(rows.shape[0]):
        r = rows[i]
        start, begin = successor_ptr[r], used
        first, last = marginal_ptr[r], marginal_ptr[r + 1]
        size = outer_product(outcome_ptr, probability, row_marginals, first, last, product, 0)
        for k in range(size):
            s = successors[start + k]
            if place[s] < begin:
                place[s] = used
                targets[used] = s
                joint[used] = 0.0
                used += 1
            joint[place[s]] += product[k]
        size_N[i] = used - begin
        for e in range(begin, used):
            place[targets[e]] = -1
    return used
