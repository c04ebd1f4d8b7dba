"""The exact inner problem of two boxes, the commonest row, in one function without calls.

min { sum_ij A[i, j] p[i] q[j] : p in P, q in Q } with P, Q boxes within the simplex (or points).
Same steps as `kernels.exact`, which solves these rows too (its twin), with one more bound for the
tree. Let p*, q* attain U and R[i, j] = A[i, j] - (p*.A)[j]. For every vertex v of P,

    min_q v.A.q >= U + sum_i (v - p*)[i] * (min_q R[i].q if v[i] > p*[i] else max_q R[i].q),

because sum_i (v - p*)[i] = 0 lets the common part go. Its slack is proportional to the mass that
v moves away from p*, that of `v . slices` to all mass, so most vertices are pruned by it. If no
move from one entry to another can pay, whatever q is, none has to be looked at.
"""

from rfmdp.kernels.decorator import inline_kernel, part_kernel
from rfmdp.kernels.oracle import (
    CORNERS,
    CORNERS_END,
    FREE,
    LOWER,
    PLACE,
    SIZE,
    box_answer,
    box_minimum,
    reset,
    sort,
    zero,
)
from rfmdp.kernels.rows import contract_first, dot


@inline_kernel
def box_point(data, l, d, free, v, at, order, p, to):
    """Fill p[to : to + d] with the minimiser over one box; returns p.v."""
    sort(v, at, d, order)
    mass = free
    total = 0.0
    for i in range(d):
        k = order[i]
        take = min(mass, data[l + d + k])
        mass -= take
        x = data[l + k] + take
        p[to + k] = x
        total += x * v[at + k]
    return total


@inline_kernel
def box_maximum(data, l, d, free, v, at, order):
    """Return max p.v over one box for an `order` that is sorted by v already."""
    total = 0.0
    mass = free
    for i in range(d - 1, -1, -1):
        k = order[i]
        take = min(mass, data[l + d + k])
        mass -= take
        total += (data[l + k] + take) * v[at + k]
    return total


@part_kernel
def solve_pair(head, data, corners, axes, a, slices, folds, point, best, order, gap, limit):
    """Solve the tensor a[0 : d1 * d2]; returns (L, U, nodes), witness in `best`.

    nodes: as in `exact.solve_tensor`.
    """
    m1, m2 = axes[0], axes[1]
    o = zero(m1)
    d1, d2 = head[m1, SIZE], head[m2, SIZE]
    l1, l2 = head[m1, PLACE] + LOWER, head[m2, PLACE] + LOWER
    free1, free2 = data[l1 - LOWER + FREE], data[l2 - LOWER + FREE]
    changes = 0
    reset(order, d2)
    for i in range(d1):
        slices[i], moved = box_minimum(data, l2, d2, free2, a, i * d2, order)
        changes += moved and i > 0
    if changes == 0:
        box_answer(data, l2, d2, free2, order, best, d1)
    reset(order, d1)
    low = box_point(data, l1, d1, free1, slices, o, order, best, o)
    if changes == 0:  # one q for all slices: the bound is attained by a product
        return low, low, 0
    contract_first(best, o, d1, a, o, d2, folds, o)
    reset(order, d2)
    high = box_point(data, l2, d2, free2, folds, o, order, best, d1)
    if high - low <= gap:
        return low, high, 0
    high = alternate(data, a, l1, d1, free1, l2, d2, free2, folds, point, best, order, high, gap)
    if high - low <= gap:
        return low, high, 0
    if head[m1, CORNERS] == head[m1, CORNERS_END]:
        return low, high, -1
    return branch_pair(
        head, data, corners, axes, a, slices, folds, point, best, order, low, high, 0.5 * gap, limit
    )


@part_kernel
def branch_pair(
    head, data, corners, axes, a, slices, folds, point, best, order, low, high, gap, limit
):
    """Try the vertices of the first factor that neither bound excludes; returns (L, U, nodes)."""
    m1, m2 = axes[0], axes[1]
    o = zero(m1)
    d1, d2 = head[m1, SIZE], head[m2, SIZE]
    l2 = head[m2, PLACE] + LOWER
    free2 = data[l2 - LOWER + FREE]
    # extremes of R[i].q, kept behind the slices
    least, most = d1, 2 * d1
    contract_first(best, o, d1, a, o, d2, folds, o)
    reset(order, d2)
    for i in range(d1):
        for j in range(d2):
            folds[d2 + j] = a[i * d2 + j] - folds[j]
        slices[least + i], _ = box_minimum(data, l2, d2, free2, folds, d2, order)
        slices[most + i] = box_maximum(data, l2, d2, free2, folds, d2, order)
    for i in range(d1):
        point[i] = best[i]
    anchor = high
    bound = anchor + best_move(data, head[m1, PLACE] + LOWER, d1, point, slices)
    if bound >= high - gap:
        return max(low, bound), high, 0
    nodes = 0
    for c in range(head[m1, CORNERS], head[m1, CORNERS_END], d1):
        bound = anchor
        for i in range(d1):
            step = corners[c + i] - point[i]
            # branch-free: the sign of a step is a coin toss
            bound += max(step, 0.0) * slices[least + i] + min(step, 0.0) * slices[most + i]
        if bound >= high - gap or dot(corners, c, slices, o, d1) >= high - gap:
            continue
        nodes += 1
        if nodes > limit:
            return low, high, -1 - nodes
        contract_first(corners, c, d1, a, o, d2, folds, o)
        value, _ = box_minimum(data, l2, d2, free2, folds, o, order)
        if value < high:
            high = value
            for i in range(d1):
                best[i] = corners[c + i]
            box_answer(data, l2, d2, free2, order, best, d1)
    return max(low, high - gap), high, max(nodes, 1)


@inline_kernel
def best_move(data, l, d, p, slices):
    """Return a lower bound (<= 0) of what moving mass between entries of p can gain, for any q."""
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


@part_kernel
def alternate(data, a, l1, d1, free1, l2, d2, free2, folds, point, best, order, high, gap):
    """Coordinate descent on p and q in `best`; returns the improved value."""
    o = zero(d1)
    while True:
        for i in range(d1):
            folds[i] = dot(best, d1, a, i * d2, d2)
        reset(order, d1)
        box_point(data, l1, d1, free1, folds, o, order, point, o)
        contract_first(point, o, d1, a, o, d2, folds, o)
        reset(order, d2)
        value = box_point(data, l2, d2, free2, folds, o, order, point, d1)
        if value >= high - 0.5 * gap:
            return high
        high = value
        for i in range(d1 + d2):
            best[i] = point[i]
