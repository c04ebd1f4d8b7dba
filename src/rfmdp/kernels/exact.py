"""The exact inner problem: certificate first, a pruned tree for the rest.

min { sum A[o1..on] p1[o1] ... pn[on] : p_i in P_i } for every row.

1. L: contract the last axis fibre by fibre with its minimiser, then the one before, ...:
   nature may answer every earlier outcome differently, so L is a lower bound.
2. U: take the outermost marginal that step 1 chose, contract by it, repeat on the rest; then
   coordinate descent. A product of members, so U is attained.
3. U - L within the tolerance: done, with no branching. Otherwise a depth-first tree: a node
   fixes vertices of the first k factors; its tensor is contracted once from its parent's, and
   `corner . slices` of step 1 bounds each child. The last factor is only given to its minimiser.

`axes[0 : n]` are the marginals of the row at hand; head, data and corners are its sets (see
`kernels.oracle`). Twin: `reference.product_minimum`.
"""

from numba import get_thread_id, prange

from rfmdp.kernels.decorator import kernel, parallel_kernel
from rfmdp.kernels.oracle import BOX, CORNERS, CORNERS_END, KIND, SIZE, fibres, minimiser, reset
from rfmdp.kernels.pair import solve_pair
from rfmdp.kernels.rows import contract_first, dot, load, margin, store, take_axes


@kernel
def fold(head, data, corners, axes, k, n, tensor, at, size, out, order, p):
    """Contract the axes n-1, ..., k+1 of a tensor by their minimisers (step 1).

    Fills out[0 : d_k], a lower bound per slice of axis k.
    """
    if k == n - 1:
        for f in range(size):
            out[f] = tensor[at + f]
        return
    count = size // head[axes[n - 1], SIZE]
    fibres(head, data, corners, axes[n - 1], tensor, at, count, order, p, out)
    for axis in range(n - 2, k, -1):
        count //= head[axes[axis], SIZE]
        fibres(head, data, corners, axes[axis], out, 0, count, order, p, out)


@kernel
def descend(head, data, corners, axes, n, levels, size, folds, point, order, p):
    """Steps 1 and 2 for the tensor levels[0 : size]; returns (L, U), witness in `point`."""
    start, count, low, high, place = 0, size, 0.0, 0.0, 0
    for k in range(n):
        m = axes[k]
        d = head[m, SIZE]
        fold(head, data, corners, axes, k, n, levels, start, count, folds, order, p)
        reset(order, d)
        bound = minimiser(head, data, corners, m, folds, 0, order, p)
        if k == 0:
            low = bound
        for i in range(d):
            point[place + i] = p[i]
        if k == n - 1:
            high = dot(p, 0, folds, 0, d)
        else:
            rest = count // d
            contract_first(p, 0, d, levels, start, rest, levels, start + count)
            start, count = start + count, rest
        place += d
    return low, high


@kernel
def contract_others(head, axes, n, keep, tensor, size, out, point, width):
    """Contract all axes but `keep` by the marginals in `point`; fills out[0 : d_keep]."""
    count, place = size, width
    for k in range(n - 1, keep, -1):
        d = head[axes[k], SIZE]
        place -= d
        count //= d
        source = tensor if k == n - 1 else out
        for f in range(count):
            out[f] = dot(point, place, source, f * d, d)
    place = 0
    for k in range(keep):
        d = head[axes[k], SIZE]
        count //= d
        source = tensor if keep == n - 1 and k == 0 else out
        for j in range(count):
            total = 0.0
            for i in range(d):
                total += point[place + i] * source[i * count + j]
            out[j] = total
        place += d


@kernel
def improve(head, data, corners, axes, n, levels, size, folds, point, width, order, p, high, gap):
    """Coordinate descent from the product in `point`; returns the improved value U."""
    quiet, k, place = 0, 0, 0
    while quiet < n:
        m = axes[k]
        d = head[m, SIZE]
        contract_others(head, axes, n, k, levels, size, folds, point, width)
        reset(order, d)
        minimiser(head, data, corners, m, folds, 0, order, p)
        value = dot(p, 0, folds, 0, d)
        if value < high - gap:
            high, quiet = value, 0
            for i in range(d):
                point[place + i] = p[i]
        else:
            quiet += 1
        place += d
        k += 1
        if k == n:
            k, place = 0, 0
    return high


@kernel
def branch(
    head, data, corners, axes, n, levels, size, slices, folds, best, order, p, cursor,
    low, high, gap, limit,
):  # fmt: skip
    """Depth-first tree (step 3); returns (L, U, nodes), witness in `best`.

    Every subtree left out has a bound of at least U - gap at that time, so that U - gap is a
    lower bound at the end; at the node limit L stays what it was.
    """
    stride = p.shape[0]
    nodes, k, start, count = 0, 0, 0, size
    fold(head, data, corners, axes, 0, n, levels, 0, size, folds, order, p)
    for i in range(head[axes[0], SIZE]):
        slices[i] = folds[i]
    cursor[0] = head[axes[0], CORNERS]
    while k >= 0:
        m = axes[k]
        d = head[m, SIZE]
        c = cursor[k]
        if c == head[m, CORNERS_END]:  # all children done: back to the parent
            k -= 1
            if k >= 0:
                count *= head[axes[k], SIZE]
                start -= count
            continue
        cursor[k] = c + d
        if dot(corners, c, slices, k * stride, d) >= high - gap:
            continue
        nodes += 1
        if nodes > limit:
            return low, high, nodes
        rest = count // d
        child = start + count
        contract_first(corners, c, d, levels, start, rest, levels, child)
        if k + 2 == n:
            reset(order, rest)
            minimiser(head, data, corners, axes[n - 1], levels, child, order, p)
            value = dot(p, 0, levels, child, rest)
            if value < high:
                high = value
                remember(head, corners, axes, n, cursor, p, best)
            continue
        fold(head, data, corners, axes, k + 1, n, levels, child, rest, folds, order, p)
        start, count, k = child, rest, k + 1
        for i in range(head[axes[k], SIZE]):
            slices[k * stride + i] = folds[i]
        cursor[k] = head[axes[k], CORNERS]
    return max(low, high - gap), high, nodes


@kernel
def remember(head, corners, axes, n, cursor, p, best):
    """Copy the vertices on the path and the last marginal to `best`."""
    place = 0
    for k in range(n - 1):
        d = head[axes[k], SIZE]
        for i in range(d):
            best[place + i] = corners[cursor[k] - d + i]
        place += d
    for i in range(head[axes[n - 1], SIZE]):
        best[place + i] = p[i]


@kernel
def solve_tensor(
    head, data, corners, axes, n, levels, size, slices, folds, point, best, order, p, cursor,
    gap, limit,
):  # fmt: skip
    """Solve the tensor levels[0 : size]; returns (L, U, nodes), witness in `best`.

    nodes: 0 certified without branching, > 0 branched, -1 gap left (limit, or no vertices).
    """
    if n == 2 and head[axes[0], KIND] <= BOX and head[axes[1], KIND] <= BOX:
        return solve_pair(
            head, data, corners, axes, levels, slices, folds, point, best, order, gap, limit
        )
    width = 0
    branches = True
    for k in range(n):
        width += head[axes[k], SIZE]
        if k < n - 1 and head[axes[k], CORNERS] == head[axes[k], CORNERS_END]:
            branches = False
    low, high = descend(head, data, corners, axes, n, levels, size, folds, point, order, p)
    if high - low > gap:
        high = improve(
            head, data, corners, axes, n, levels, size, folds, point, width, order, p, high,
            0.5 * gap,
        )  # fmt: skip
    for i in range(width):
        best[i] = point[i]
    if high - low <= gap:
        return low, high, 0
    if not branches:
        return low, high, -1
    low, high, nodes = branch(
        head, data, corners, axes, n, levels, size, slices, folds, best, order, p, cursor,
        low, high, 0.5 * gap, limit,
    )  # fmt: skip
    return low, high, nodes if nodes <= limit else -1


@parallel_kernel
def exact_rows(sets, rows, work, wanted, value, sign, tolerance, limit, below, above, count):
    """Fill below[r], above[r] for every wanted row; count[t] += (branched, nodes, open).

    `work` is scratch memory, one line per thread (see `inner.layout.scratch`).
    """
    head, data, corners = sets
    successor_ptr, successors, marginal_ptr, marginals, kind, gather_ptr, gather = rows
    levels_T, slices_T, folds_T, point_T, best_T, p_T, order_T, cursor_T, axes_T = work
    total = wanted.shape[0]
    chunk = max(1, min(1024, total // (4 * p_T.shape[0]) + 1))
    for c in prange((total + chunk - 1) // chunk):
        t = get_thread_id()
        levels, slices, folds, point = levels_T[t], slices_T[t], folds_T[t], point_T[t]
        best, order, p, cursor, axes = best_T[t], order_T[t], p_T[t], cursor_T[t], axes_T[t]
        for i in range(c * chunk, min(total, (c + 1) * chunk)):
            r = wanted[i]
            size, reference, low, high = load(
                successor_ptr, successors, kind, gather_ptr, gather, r, value, sign, levels
            )
            span = high - low
            if span == 0.0:
                below[r] = reference
                above[r] = reference
                continue
            n, terms = take_axes(marginal_ptr, marginals, r, head, axes)
            q_low, q_high, nodes = solve_tensor(
                head, data, corners, axes, n, levels, size, slices, folds, point, best, order, p,
                cursor, tolerance * span, limit,
            )  # fmt: skip
            gap = margin(terms, span, abs(reference) + span)
            store(q_low, q_high, reference, sign, gap, r, below, above)
            if nodes != 0:
                count[t, 0] += 1
                count[t, 1] += max(nodes, 0)
                count[t, 2] += nodes < 0


@parallel_kernel
def exact_answers(sets, rows, work, wanted, value, sign, tolerance, limit, starts, answer):
    """Write nature's optimal marginals of wanted[i], in the rows' axis order, to starts[i]."""
    head, data, corners = sets
    successor_ptr, successors, marginal_ptr, marginals, kind, gather_ptr, gather = rows
    levels_T, slices_T, folds_T, point_T, best_T, p_T, order_T, cursor_T, axes_T = work
    total = wanted.shape[0]
    chunk = max(1, min(1024, total // (4 * p_T.shape[0]) + 1))
    for c in prange((total + chunk - 1) // chunk):
        t = get_thread_id()
        levels, slices, folds, point = levels_T[t], slices_T[t], folds_T[t], point_T[t]
        best, order, p, cursor, axes = best_T[t], order_T[t], p_T[t], cursor_T[t], axes_T[t]
        for i in range(c * chunk, min(total, (c + 1) * chunk)):
            size, _, low, high = load(
                successor_ptr, successors, kind, gather_ptr, gather, wanted[i], value, sign, levels
            )
            n, terms = take_axes(marginal_ptr, marginals, wanted[i], head, axes)
            solve_tensor(
                head, data, corners, axes, n, levels, size, slices, folds, point, best, order, p,
                cursor, tolerance * (high - low), limit,
            )  # fmt: skip
            for k in range(terms):
                answer[starts[i] + k] = best[k]
