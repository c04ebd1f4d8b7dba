"""Inner methods beside the exact one: sequential, alternating, all products of vertices.

Sequential contraction is step 1 of `kernels.exact` alone; alternating takes step 2 from several
starts; the products of all vertices are Theorem 1 of the paper.
"""

import numpy as np

from rfmdp.kernels import layout as slot
from rfmdp.kernels.decorator import inline_kernel, kernel
from rfmdp.kernels.exact import descend, fold, improve
from rfmdp.kernels.oracle import minimum
from rfmdp.kernels.primitives import contract_first, dot, multiply
from rfmdp.kernels.rows import load, scatter, store, take_axes, terms_of, write_answer
from rfmdp.rounding import PROGRESS


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
def random_product(sets, work, n, state):
    """Fill `point` with the minimisers of random values, a member per marginal; returns the state.

    A linear congruence per row, so that the result does not depend on threads.
    """
    folds, point, p, axes = work[slot.FOLDS], work[slot.POINT], work[slot.MEMBER], work[slot.AXES]
    place = 0
    for k in range(n):
        d = sets[slot.HEAD][axes[k], slot.SIZE]
        for i in range(d):
            state = ((state & 0x7FFFFFFF) * 1103515245 + 12345) & 0x7FFFFFFF
            folds[i] = state * 2.0**-31
        minimum(sets, work, axes[k])
        for i in range(d):
            point[place + i] = p[i]
        place += d
    return state


@inline_kernel
def alternating_tensor(sets, work, n, size, width, seed, starts, gap):
    """Descend from the sequential answer and `starts - 1` random members.

    Returns the best value; its marginals are in best[0 : width].
    """
    point, best = work[slot.POINT], work[slot.BEST]
    state, high = seed, np.inf
    for start in range(starts):
        value = np.inf
        if start == 0:
            _, value = descend(sets, work, n, size, width)
        else:
            state = random_product(sets, work, n, state)
        value = improve(sets, work, n, size, width, value, gap)
        if value < high:
            high = value
            for i in range(width):
                best[i] = point[i]
    return high


@kernel
def alternating_rows(sets, rows, work, asked, starts, seed, answers, bounds):
    """Fill the restriction's side of every wanted row, the other one open, and wanted answers."""
    for i in range(asked[slot.FIRST], asked[slot.LAST]):
        row, size = load(rows, asked, i, work[slot.LEVELS])
        r, _, span = row
        n, width = take_axes(rows, r, sets[slot.HEAD], work[slot.AXES])
        q = 0.0
        if n > 0:
            q = alternating_tensor(sets, work, n, size, width, seed + r, starts, PROGRESS * span)
        terms = terms_of(sets[slot.HEAD], work[slot.AXES], n)
        store(-np.inf, q, terms, row, asked, bounds)
        write_answer(work[slot.BEST], width, i, answers)


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
