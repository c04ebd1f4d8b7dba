"""The exact inner problem of two boxes, the commonest row, in one function without calls.

min { sum_ij A[i, j] p[i] q[j] : p in P, q in Q } with P, Q boxes within the simplex (or points).
Same steps as `kernels.exact`, which solves these rows too (its twin), with one more bound for the
tree. Let p*, q* attain U and R[i, j] = A[i, j] - (p*.A)[j]. For every vertex v of P,

    min_q v.A.q >= U + sum_i (v - p*)[i] * (min_q R[i].q if v[i] > p*[i] else max_q R[i].q),

because sum_i (v - p*)[i] = 0 lets the common part go. Its slack is proportional to the mass that
v moves away from p*, that of `v . slices` to all mass, so most vertices are pruned by it. If no
move from one entry to another can pay, whatever q is, none has to be looked at.

Names: `first` and `second` are the boxes P and Q as tuples (see `kernels.oracle`), `a` the
tensor, `work` the scratch memory (see `kernels.layout`), `best` the witness (p, q), one behind the
other.
"""

from rfmdp.kernels import layout as slot
from rfmdp.kernels.decorator import inline_kernel, kernel
from rfmdp.kernels.layout import branch_margin, load, store, take_axes, write_answer
from rfmdp.kernels.oracle import box_maximum, box_member, box_minimum, box_of, box_point
from rfmdp.kernels.primitives import contract_first, dot, reset


@inline_kernel
def solve_pair(sets, work, gap, limit):
    """Solve the tensor of the row loaded in `work`; returns (L, U, nodes), witness in `best`.

    nodes: as in `exact.solve_tensor`.
    """
    head, data, _, _ = sets
    a, slices, folds, _, best, _ = work[: slot.ORDER]
    order, axes = work[slot.ORDER], work[slot.AXES]
    m1, m2 = axes[0], axes[1]
    first, second = box_of(head, data, m1), box_of(head, data, m2)
    (_, _, d1, _), (_, _, d2, _) = first, second
    changes = 0
    reset(order, d2)
    for i in range(d1):
        slices[i], moved = box_minimum(second, a, i * d2, order)
        changes += moved and i > 0
    if changes == 0:
        box_member(second, order, best, d1)
    reset(order, d1)
    low = box_point(first, slices, 0, order, best, 0)
    if changes == 0:  # one q for all slices: the bound is attained by a product
        return low, low, 0
    contract_first(best, 0, d1, a, 0, d2, folds, 0)
    reset(order, d2)
    high = box_point(second, folds, 0, order, best, d1)
    if high - low <= gap:
        return low, high, 0
    high = alternate(first, second, work, high, gap)
    if high - low <= gap:
        return low, high, 0
    if head[m1, slot.CORNERS] == head[m1, slot.CORNERS_END]:
        return low, high, -1
    return branch_pair(sets, first, second, work, low, high, 0.5 * gap, limit)


@inline_kernel
def branch_pair(sets, first, second, work, low, high, gap, limit):
    """Try the vertices of the first factor that neither bound excludes; returns (L, U, nodes)."""
    head, _, corners, _ = sets
    a, slices, folds, point, best, _ = work[: slot.ORDER]
    order, axes = work[slot.ORDER], work[slot.AXES]
    m1 = axes[0]
    (_, _, d1, _), (_, _, d2, _) = first, second
    # extremes of R[i].q, kept behind the slices
    least, most = d1, 2 * d1
    contract_first(best, 0, d1, a, 0, d2, folds, 0)
    reset(order, d2)
    for i in range(d1):
        for j in range(d2):
            folds[d2 + j] = a[i * d2 + j] - folds[j]
        slices[least + i], _ = box_minimum(second, folds, d2, order)
        slices[most + i] = box_maximum(second, folds, d2, order)
    for i in range(d1):
        point[i] = best[i]
    anchor = high
    bound = anchor + best_move(first, point, slices)
    if bound >= high - gap:
        return max(low, bound), high, 0
    nodes = 0
    for c in range(head[m1, slot.CORNERS], head[m1, slot.CORNERS_END], d1):
        bound = anchor
        for i in range(d1):
            step = corners[c + i] - point[i]
            # branch-free: the sign of a step is a coin toss
            bound += max(step, 0.0) * slices[least + i] + min(step, 0.0) * slices[most + i]
        if bound >= high - gap or dot(corners, c, slices, 0, d1) >= high - gap:
            continue
        nodes += 1
        if nodes > limit:
            return low, high, -1 - nodes
        contract_first(corners, c, d1, a, 0, d2, folds, 0)
        value, _ = box_minimum(second, folds, 0, order)
        if value < high:
            high = value
            for i in range(d1):
                best[i] = corners[c + i]
            box_member(second, order, best, d1)
    return max(low, high - gap), high, max(nodes, 1)


@inline_kernel
def best_move(box, p, slices):
    """Return a lower bound (<= 0) of what moving mass between entries of p can gain, for any q."""
    data, l, d, _ = box
    worst, up, down = 0.0, 0.0, 0.0
    for i in range(d):
        given = p[i] - data[l + i]
        down += max(given, 0.0)
        up += max(data[l + d + i] - given, 0.0)
        if given > 0.0:
            for j in range(d):
                if j != i and p[j] < data[l + j] + data[l + d + j]:
                    worst = min(worst, slices[d + j] - slices[2 * d + i])
    return worst * min(up, down)


@inline_kernel
def alternate(first, second, work, high, gap):
    """Coordinate descent on p and q in `best`; returns the improved value."""
    a, _, folds, point, best, _ = work[: slot.ORDER]
    order = work[slot.ORDER]
    (_, _, d1, _), (_, _, d2, _) = first, second
    while True:
        for i in range(d1):
            folds[i] = dot(best, d1, a, i * d2, d2)
        reset(order, d1)
        box_point(first, folds, 0, order, point, 0)
        contract_first(point, 0, d1, a, 0, d2, folds, 0)
        reset(order, d2)
        value = box_point(second, folds, 0, order, point, d1)
        if value >= high - 0.5 * gap:
            return high
        high = value
        for i in range(d1 + d2):
            best[i] = point[i]


@kernel
def pair_rows(sets, rows, work, asked, tolerance, limit, answers, bounds, nodes):
    """Solve rows of two boxes; everything as in `exact.exact_rows`."""
    for i in range(asked[slot.FIRST], asked[slot.LAST]):
        row, _ = load(rows, asked, i, work[slot.LEVELS])
        r, _, span = row
        nodes[i] = 0
        if span == 0.0 and answers[slot.WHERE].shape[0] == 0:
            store(0.0, 0.0, 0, row, asked, bounds)
            continue
        _, width = take_axes(rows, r, sets[slot.HEAD], work[slot.AXES])
        low, high, nodes[i] = solve_pair(sets, work, tolerance * span, limit)
        if nodes[i] != 0:
            low -= branch_margin(width, span)
        store(low, high, width, row, asked, bounds)
        write_answer(work[slot.BEST], width, i, answers)
