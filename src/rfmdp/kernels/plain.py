"""Row kernels beside the exact one: sequential, alternating, all vertices, given marginals.

They share the layout of `kernels.rows` and the steps of `kernels.exact`.
"""

from rfmdp.kernels.decorator import kernel
from rfmdp.kernels.exact import descend, fold, improve
from rfmdp.kernels.oracle import CORNERS, CORNERS_END, SIZE, minimiser, reset, zero
from rfmdp.kernels.rows import (
    contract_first,
    dot,
    load,
    margin,
    store,
    take_axes,
    vertex_margin,
)


@kernel
def sequential_rows(sets, rows, work, wanted, value, sign, below, above):
    """Step 1 of the exact solver alone: the relaxation's side per row, the other one open."""
    head, data, corners = sets
    successor_ptr, successors, marginal_ptr, marginals, kind, gather_ptr, gather = rows
    levels, _, folds, point, _, p, order, _, axes = work
    for i in range(wanted.shape[0]):
        r = wanted[i]
        size, reference, low, high = load(
            successor_ptr, successors, kind, gather_ptr, gather, r, value, sign, levels
        )
        q, gap = 0.0, 0.0
        if high > low:
            n, width = take_axes(marginal_ptr, marginals, r, head, axes)
            o = zero(n)
            fold(head, data, corners, axes, o, n, levels, o, size, folds, order, p, point, width)
            reset(order, head[axes[0], SIZE])
            q = minimiser(head, data, corners, axes[0], folds, o, order, p)
            gap = margin(width, high - low, abs(reference) + high - low)
        store(q, float("inf"), reference, sign, gap, r, below, above)


@kernel
def conditional(head, data, corners, axes, n, levels, size, folds, point, width, order, p, out):
    """Write nature's sequential answer p1(o1) p2(o2 | o1) ... over the tensor to out[0 : size]."""
    out[0] = 1.0
    count = 1  # outcomes of the axes done so far
    for k in range(n):
        d = head[axes[k], SIZE]
        rest = size // count
        for f in range(count - 1, -1, -1):
            fold(
                head, data, corners, axes, k, n, levels, f * rest, rest, folds, order, p, point,
                width,
            )  # fmt: skip
            reset(order, d)
            minimiser(head, data, corners, axes[k], folds, zero(n), order, p)
            x = out[f]
            for j in range(d - 1, -1, -1):
                out[f * d + j] = x * p[j]
        count *= d


@kernel
def sequential_answers(sets, rows, work, wanted, value, sign, begin, out):
    """Write the sequential answer over the stored successors of wanted[i] to begin[i]."""
    head, data, corners = sets
    successor_ptr, successors, marginal_ptr, marginals, kind, gather_ptr, gather = rows
    levels, _, folds, point, _, p, order, _, axes = work
    for i in range(wanted.shape[0]):
        r = wanted[i]
        size, _, _, _ = load(
            successor_ptr, successors, kind, gather_ptr, gather, r, value, sign, levels
        )
        n, width = take_axes(marginal_ptr, marginals, r, head, axes)
        answer = levels[size:]
        conditional(
            head, data, corners, axes, n, levels, size, folds, point, width, order, p, answer
        )
        scatter(answer, size, kind[r], gather_ptr, gather, out, begin[i])


@kernel
def scatter(tensor, size, kind, gather_ptr, gather, out, to):
    """Copy a tensor in solver order to out[to : to + size] in stored order."""
    table = gather_ptr[kind]
    if table == gather_ptr[kind + 1]:
        for k in range(size):
            out[to + k] = tensor[k]
    else:
        for k in range(size):
            out[to + gather[table + k]] = tensor[k]


@kernel
def random_product(head, data, corners, axes, n, state, folds, point, order, p):
    """Fill `point` with the minimisers of random values, a member per marginal; returns the state.

    A 64-bit linear congruence per row, so that the result does not depend on threads.
    """
    place = zero(n)
    for k in range(n):
        d = head[axes[k], SIZE]
        for i in range(d):
            state = (state * 2862933555777941757 + 3037000493) & 0x7FFFFFFFFFFFFFFF
            folds[i] = (state >> 11) * (1.0 / 9007199254740992.0)
        reset(order, d)
        minimiser(head, data, corners, axes[k], folds, zero(n), order, p)
        for i in range(d):
            point[place + i] = p[i]
        place += d
    return state


@kernel
def alternating_tensor(
    head, data, corners, axes, n, levels, size, slices, folds, point, best, width, order, p, seed,
    starts, gap,
):  # fmt: skip
    """Coordinate descent from the sequential answer and `starts - 1` random members.

    Returns the best value; its marginals are in best[0 : width].
    """
    _, high = descend(
        head, data, corners, axes, n, levels, size, slices, folds, point, width, order, p
    )
    high = improve(
        head, data, corners, axes, n, levels, size, folds, point, width, order, p, high, gap
    )
    for i in range(width):
        best[i] = point[i]
    state = seed
    for _ in range(starts - 1):
        state = random_product(head, data, corners, axes, n, state, folds, point, order, p)
        value = improve(
            head, data, corners, axes, n, levels, size, folds, point, width, order, p, float("inf"),
            gap,
        )  # fmt: skip
        if value < high:
            high = value
            for i in range(width):
                best[i] = point[i]
    return high


@kernel
def alternating_rows(
    sets, rows, work, wanted, value, sign, starts, seed, where, answer, below, above
):
    """Fill the restriction's side per row, the other one open.

    If `where` is not empty, also write the attaining marginals of wanted[i] to answer[where[i]:].
    """
    head, data, corners = sets
    successor_ptr, successors, marginal_ptr, marginals, kind, gather_ptr, gather = rows
    levels, slices, folds, point, best, p, order, _, axes = work
    for i in range(wanted.shape[0]):
        r = wanted[i]
        size, reference, low, high = load(
            successor_ptr, successors, kind, gather_ptr, gather, r, value, sign, levels
        )
        n, terms = take_axes(marginal_ptr, marginals, r, head, axes)
        q = 0.0
        if n > 0:
            q = alternating_tensor(
                head, data, corners, axes, n, levels, size, slices, folds, point, best, terms,
                order, p, seed + r, starts, 1e-15 * (high - low),
            )  # fmt: skip
        gap = margin(terms, high - low, abs(reference) + high - low)
        store(-float("inf"), q, reference, sign, gap, r, below, above)
        if where.shape[0] > 0:
            for k in range(terms):
                answer[where[i] + k] = best[k]


@kernel
def enumerate_tensor(head, corners, axes, n, levels, size, cursor, best):
    """Return the minimum over all products of vertices; the attaining product is in `best`."""
    high, k, start, count = float("inf"), zero(n), zero(n), size
    cursor[0] = head[axes[0], CORNERS]
    while k >= 0:
        m = axes[k]
        d = head[m, SIZE]
        c = cursor[k]
        if c == head[m, CORNERS_END]:
            k -= 1
            if k >= 0:
                count *= head[axes[k], SIZE]
                start -= count
            continue
        cursor[k] = c + d
        if k == n - 1:
            value = dot(corners, c, levels, start, d)
            if value < high:
                high = value
                place = zero(n)
                for a in range(n):
                    size_a = head[axes[a], SIZE]
                    for i in range(size_a):
                        best[place + i] = corners[cursor[a] - size_a + i]
                    place += size_a
            continue
        rest = count // d
        contract_first(corners, c, d, levels, start, rest, levels, start + count)
        start, count, k = start + count, rest, k + 1
        cursor[k] = head[axes[k], CORNERS]
    return high


@kernel
def vertex_rows(sets, rows, work, wanted, value, sign, where, answer, below, above):
    """Fill both sides with the minimum over all products of vertices (Theorem 1 of the paper).

    If `where` is not empty, also write the attaining marginals of wanted[i] to answer[where[i]:].
    """
    head, _, corners = sets
    successor_ptr, successors, marginal_ptr, marginals, kind, gather_ptr, gather = rows
    levels, _, _, _, best, _, _, cursor, axes = work
    for i in range(wanted.shape[0]):
        r = wanted[i]
        size, reference, low, high = load(
            successor_ptr, successors, kind, gather_ptr, gather, r, value, sign, levels
        )
        n, terms = take_axes(marginal_ptr, marginals, r, head, axes)
        q = 0.0
        if n > 0:
            q = enumerate_tensor(head, corners, axes, n, levels, size, cursor, best)
        gap = margin(terms, high - low, abs(reference) + high - low)
        least = q - vertex_margin(n, terms, high - low)
        store(least, q, reference, sign, gap, r, below, above)
        if where.shape[0] > 0:
            for k in range(terms):
                answer[where[i] + k] = best[k]


@kernel
def products(sets, rows, work, wanted, where, answer, begin, out):
    """Multiply out the marginals at answer[where[i]:] over the stored successors of wanted[i]."""
    head, _, _ = sets
    _, _, marginal_ptr, marginals, kind, gather_ptr, gather = rows
    tensor, axes = work[0], work[8]
    for i in range(wanted.shape[0]):
        r = wanted[i]
        n, _ = take_axes(marginal_ptr, marginals, r, head, axes)
        tensor[0] = 1.0
        count, place = 1, where[i]
        for k in range(n):
            d = head[axes[k], SIZE]
            for f in range(count - 1, -1, -1):
                x = tensor[f]
                for j in range(d - 1, -1, -1):
                    tensor[f * d + j] = x * answer[place + j]
            count *= d
            place += d
        scatter(tensor, count, kind[r], gather_ptr, gather, out, begin[i])
