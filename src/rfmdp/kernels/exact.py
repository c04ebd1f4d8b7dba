"""The exact inner problem: certificate first, a pruned tree for the rest.

min { sum A[o1..on] p1[o1] ... pn[on] : p_i in P_i } for every row.

1. L: contract the last axis fibre by fibre with its minimiser, then the one before, ...:
   nature may answer every earlier outcome differently, so L is a lower bound. If one answer per
   axis fits all its fibres, L is attained by a product: done.
2. U: take the outermost marginal that step 1 chose, contract by it, repeat on the rest; then
   coordinate descent. A product of members, so U is attained.
3. U - L within the tolerance: done, with no branching. Otherwise a depth-first tree: a node
   fixes vertices of the first k factors; its tensor is contracted once from its parent's, and
   `corner . slices` of step 1 bounds each child. The last factor is only given to its minimiser.

`axes[0 : n]` are the marginals of the row at hand; head, data and corners are its sets (see
`kernels.oracle`). Twin: `reference.product_minimum`.
"""

from rfmdp.kernels.decorator import kernel, part_kernel
from rfmdp.kernels.oracle import (
    BOX,
    CORNERS,
    CORNERS_END,
    KIND,
    SIZE,
    fibres,
    minimiser,
    reset,
    zero,
)
from rfmdp.kernels.pair import solve_pair
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
def fold(head, data, corners, axes, k, n, tensor, at, size, out, order, p, point, width):
    """Contract the axes n-1, ..., k+1 of a tensor by their minimisers (step 1).

    Fills out[0 : d_k], a lower bound per slice of axis k. Returns whether they are attained by
    one answer per axis; these are then in `point`, which ends at `width`.
    """
    if k == n - 1:
        for f in range(size):
            out[f] = tensor[at + f]
    product, count, place = True, size, width
    source, begin = tensor, at
    for axis in range(n - 1, k, -1):
        m = axes[axis]
        count //= head[m, SIZE]
        place -= head[m, SIZE]
        same = fibres(head, data, corners, m, source, begin, count, order, p, out, point, place)
        product = product and same
        source, begin = out, zero(n)
    return product


@part_kernel
def descend(head, data, corners, axes, n, levels, size, slices, folds, point, width, order, p):
    """Take steps 1 and 2 for levels[0 : size]; returns (L, U), witness in `point`.

    The bounds per outcome of the first factor are kept in `slices`, for the tree.
    """
    start, count, place = zero(n), size, zero(n)
    low, high = 0.0, 0.0
    for k in range(n):
        m = axes[k]
        d = head[m, SIZE]
        product = fold(
            head, data, corners, axes, k, n, levels, start, count, folds, order, p, point, width
        )
        reset(order, d)
        bound = minimiser(head, data, corners, m, folds, zero(n), order, p)
        if k == 0:
            low = bound
            for i in range(d):
                slices[i] = folds[i]
        for i in range(d):
            point[place + i] = p[i]
        if product:
            high = dot(p, zero(n), folds, zero(n), d)
            break
        rest = count // d
        contract_first(p, zero(n), d, levels, start, rest, levels, start + count)
        start, count, place = start + count, rest, place + d
    return low, high


@kernel
def contract_others(head, axes, n, keep, tensor, size, out, point, width):
    """Contract all axes but `keep` by the marginals in `point`; fills out[0 : d_keep]."""
    if n == 1:
        for f in range(size):
            out[f] = tensor[f]
        return
    count, place = size, width
    for k in range(n - 1, keep, -1):
        d = head[axes[k], SIZE]
        place -= d
        count //= d
        source = tensor if k == n - 1 else out
        for f in range(count):
            out[f] = dot(point, place, source, f * d, d)
    place = zero(n)
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
    quiet, k, place = 0, zero(n), zero(n)
    while quiet < n:
        m = axes[k]
        d = head[m, SIZE]
        contract_others(head, axes, n, k, levels, size, folds, point, width)
        reset(order, d)
        minimiser(head, data, corners, m, folds, zero(n), order, p)
        value = dot(p, zero(n), folds, zero(n), d)
        if value < high - gap:
            high, quiet = value, 0
            for i in range(d):
                point[place + i] = p[i]
        else:
            quiet += 1
        place += d
        k += 1
        if k == n:
            k, place = zero(n), zero(n)
    return high


@part_kernel
def branch(
    head, data, corners, axes, n, levels, size, slices, folds, point, best, width, order, p,
    cursor, low, high, gap, limit,
):  # fmt: skip
    """Search depth-first (step 3) from `slices` of the root; returns (L, U, nodes), witness `best`.

    Every subtree left out has a bound of at least U - gap at that time, and every leaf one of at
    least `least`, so that the smaller of these is a lower bound at the end; at the node limit L
    stays what it was. A node whose step 1 gives a product is a leaf.
    """
    stride = p.shape[0]
    nodes, k, start, count, least = 0, zero(n), zero(n), size, high
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
        product = fold(
            head, data, corners, axes, k + 1, n, levels, child, rest, folds, order, p, point, width
        )
        d = head[axes[k + 1], SIZE]
        if product:
            reset(order, d)
            bound = minimiser(head, data, corners, axes[k + 1], folds, zero(n), order, p)
            least = min(least, bound)
            value = dot(p, zero(n), folds, zero(n), d)
            if value < high:
                high = value
                remember(head, corners, axes, k + 1, width, cursor, p, point, best)
            continue
        start, count, k = child, rest, k + 1
        for i in range(d):
            slices[k * stride + i] = folds[i]
        cursor[k] = head[axes[k], CORNERS]
    return max(low, min(high - gap, least)), high, nodes


@part_kernel
def remember(head, corners, axes, leaf, width, cursor, p, point, best):
    """Copy vertices of the axes before `leaf`, p for it and `point` for those behind to `best`."""
    for i in range(width):
        best[i] = point[i]
    place = zero(leaf)
    for k in range(leaf):
        d = head[axes[k], SIZE]
        for i in range(d):
            best[place + i] = corners[cursor[k] - d + i]
        place += d
    for i in range(head[axes[leaf], SIZE]):
        best[place + i] = p[i]


@part_kernel
def solve_tensor(
    head, data, corners, axes, n, levels, size, slices, folds, point, best, width, order, p,
    cursor, gap, limit,
):  # fmt: skip
    """Solve the tensor levels[0 : size]; returns (L, U, nodes), witness in best[0 : width].

    nodes: 0 certified without branching, > 0 branched, < 0 gap left after -1 - nodes of them
    (at the limit, or for want of vertices).
    """
    branches = n > 1
    for k in range(n - 1):
        if head[axes[k], CORNERS] == head[axes[k], CORNERS_END]:
            branches = False
    low, high = descend(
        head, data, corners, axes, n, levels, size, slices, folds, point, width, order, p
    )
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
        head, data, corners, axes, n, levels, size, slices, folds, point, best, width, order, p,
        cursor, low, high, 0.5 * gap, limit,
    )  # fmt: skip
    return low, high, nodes if nodes <= limit else -1 - nodes


@kernel
def exact_rows(
    sets, rows, work, wanted, value, sign, tolerance, limit, where, answer, below, above, nodes
):
    """Fill below[r], above[r] for every wanted row r, and nodes[i] (see `solve_tensor`).

    If `where` is not empty, also write nature's optimal marginals of wanted[i], in the rows' axis
    order, to answer[where[i]:]. `work` is scratch memory (see `inner.layout.scratch`).
    """
    head, data, corners = sets
    successor_ptr, successors, marginal_ptr, marginals, kind, gather_ptr, gather = rows
    levels, slices, folds, point, best, p, order, cursor, axes = work
    answers = where.shape[0] > 0
    for i in range(wanted.shape[0]):
        r = wanted[i]
        size, reference, low, high = load(
            successor_ptr, successors, kind, gather_ptr, gather, r, value, sign, levels
        )
        span = high - low
        if span == 0.0 and not answers:
            below[r], above[r], nodes[i] = reference, reference, 0
            continue
        n, width = take_axes(marginal_ptr, marginals, r, head, axes)
        if n == 2 and head[axes[0], KIND] <= BOX and head[axes[1], KIND] <= BOX:
            q_low, q_high, nodes[i] = solve_pair(
                head, data, corners, axes, levels, slices, folds, point, best, order,
                tolerance * span, limit,
            )  # fmt: skip
        else:
            q_low, q_high, nodes[i] = solve_tensor(
                head, data, corners, axes, n, levels, size, slices, folds, point, best, width,
                order, p, cursor, tolerance * span, limit,
            )  # fmt: skip
        if nodes[i] != 0:
            q_low -= vertex_margin(n, width, span)
        gap = margin(width, span, abs(reference) + span)
        store(q_low, q_high, reference, sign, gap, r, below, above)
        if answers:
            for k in range(width):
                answer[where[i] + k] = best[k]
