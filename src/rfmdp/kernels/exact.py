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

`sets` and `work` are the tuples of `kernels.layout`; axes[0 : n] are the marginals of the row at
hand, `size` its joint outcomes (the tensor is levels[0 : size]), `width` the outcomes of all its
marginals together. Twin: `tests/set_twins.py`.

Outcomes are *alike* if a row's tensor and its boxes stay what they are when the two change places
in every axis of one size at once. Likeness is an equivalence, and all permutations within its
classes change nothing. So of vertices that differ only by such permutations, one is enough: a tree
needs only those of a first factor whose entries fall within each class; those of the next factor
that fall within each class whose entries of the first were equal; and so on, because the
permutations that are left to the next factor leave the vertices before it as they are.

Classes are chains: before[i] is the outcome next below i that is alike, or -1.
"""

from rfmdp.kernels import layout as slot
from rfmdp.kernels.decorator import inline_kernel, kernel, step_kernel
from rfmdp.kernels.layout import branch_margin, load, store, take_axes, terms_of, write_answer
from rfmdp.kernels.oracle import minimise, minimum
from rfmdp.kernels.primitives import contract_first, dot, reset
from rfmdp.rounding import RENAMED

WORTH = 200.0  # leaves of a tree from which on it pays to look for interchangeable outcomes


@inline_kernel
def fold(sets, work, k, n, at, size, width):
    """Contract the axes n-1, ..., k+1 of levels[at : at + size] by their minimisers (step 1).

    Fills folds[0 : d_k], a lower bound per slice of axis k. Returns whether they are attained by
    one answer per axis; these are then in `point`, which ends at `width`.
    """
    head = sets[slot.HEAD]
    levels, folds, point = work[slot.LEVELS], work[slot.FOLDS], work[slot.POINT]
    order, axes, curved = work[slot.ORDER], work[slot.AXES], work[slot.CURVED]
    if k == n - 1:
        for f in range(size):
            folds[f] = levels[at + f]
    product, count, place = True, size, width
    source, begin = levels, at
    for axis in range(n - 1, k, -1):
        m = axes[axis]
        count //= head[m, slot.SIZE]
        place -= head[m, slot.SIZE]
        reset(order, head[m, slot.SIZE])
        fibres = source, begin, count
        same = minimise(sets, m, fibres, order, curved, (folds, 0), (point, place))
        product = product and same
        source, begin = folds, 0
    return product


@inline_kernel
def descend(sets, work, n, size, width):
    """Take steps 1 and 2 for levels[0 : size]; returns (L, U), witness in `point`.

    The bounds per outcome of the first factor are kept in `slices`, for the tree.
    """
    levels, slices, folds, point, _, p = work[: slot.ORDER]
    axes = work[slot.AXES]
    start, count, place = 0, size, 0
    low, high = 0.0, 0.0
    for k in range(n):
        m = axes[k]
        d = sets[slot.HEAD][m, slot.SIZE]
        product = fold(sets, work, k, n, start, count, width)
        bound = minimum(sets, work, m)
        if k == 0:
            low = bound
            for i in range(d):
                slices[i] = folds[i]
        for i in range(d):
            point[place + i] = p[i]
        if product:
            high = dot(p, 0, folds, 0, d)
            break
        rest = count // d
        contract_first(p, 0, d, levels, start, rest, levels, start + count)
        start, count, place = start + count, rest, place + d
    return low, high


@inline_kernel
def contract_others(head, work, n, keep, size, width):
    """Contract all axes but `keep` by the marginals in `point`; fills folds[0 : d_keep]."""
    tensor, _, out, point, _, _ = work[: slot.ORDER]
    axes = work[slot.AXES]
    if n == 1:
        for f in range(size):
            out[f] = tensor[f]
    count, place = size, width
    for k in range(n - 1, keep, -1):
        d = head[axes[k], slot.SIZE]
        place -= d
        count //= d
        source = tensor if k == n - 1 else out
        for f in range(count):
            out[f] = dot(point, place, source, f * d, d)
    place = 0
    for k in range(keep):
        d = head[axes[k], slot.SIZE]
        count //= d
        source = tensor if keep == n - 1 and k == 0 else out
        for j in range(count):
            total = 0.0
            for i in range(d):
                total += point[place + i] * source[i * count + j]
            out[j] = total
        place += d


@inline_kernel
def improve(sets, work, n, size, width, high, gap):
    """Coordinate descent from the product in `point`; returns the improved value U."""
    folds, point, p, axes = work[slot.FOLDS], work[slot.POINT], work[slot.MEMBER], work[slot.AXES]
    quiet, k, place = 0, 0, 0
    while quiet < n:
        m = axes[k]
        d = sets[slot.HEAD][m, slot.SIZE]
        contract_others(sets[slot.HEAD], work, n, k, size, width)
        minimum(sets, work, m)
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


@inline_kernel
def branch(sets, work, n, size, width, low, high, gap, limit):
    """Search depth-first (step 3) from `slices` of the root; returns (L, U, nodes), witness `best`.

    Every subtree left out has a bound of at least U - gap at that time, and every leaf one of at
    least `least`, so that the smaller of these is a lower bound at the end; at the node limit L
    stays what it was. A node whose step 1 gives a product is a leaf. Of vertices that are the same
    but for names of outcomes one is looked at.

    low, high : L and U so far; U is attained by the product in `best`
    gap : a subtree that could lower U by no more is left out
    limit : nodes to look at, at most; if there are more, limit + 1 is returned
    """
    head, data, corners, _ = sets
    levels, slices, folds, _, _, p = work[: slot.ORDER]
    order, cursor, classes, axes, _ = work[slot.ORDER :]
    stride, most = p.shape[0], order.shape[0]  # per depth, in `slices` and in `classes`
    nodes, k, start, count, least = 0, 0, 0, size, high
    alike = alike_outcomes(head, data, axes, n, levels, size, folds, classes)
    cursor[0] = head[axes[0], slot.CORNERS]
    while k >= 0:
        m = axes[k]
        d = head[m, slot.SIZE]
        c = cursor[k]
        if c == head[m, slot.CORNERS_END]:  # all children done: back to the parent
            k -= 1
            if k >= 0:
                count *= head[axes[k], slot.SIZE]
                start -= count
            continue
        cursor[k] = c + d
        at = k * most
        if d == alike and not falls(corners, c, d, classes, at):
            continue
        if dot(corners, c, slices, k * stride, d) >= high - gap:
            continue
        nodes += 1
        if nodes > limit:
            return low, high, nodes
        rest = count // d
        child = start + count
        contract_first(corners, c, d, levels, start, rest, levels, child)
        product = fold(sets, work, k + 1, n, child, rest, width)
        d = head[axes[k + 1], slot.SIZE]
        if product:
            bound = minimum(sets, work, axes[k + 1])
            least = min(least, bound)
            value = dot(p, 0, folds, 0, d)
            if value < high:
                high = value
                remember(head, corners, work, k + 1, width)
            continue
        start, count, k = child, rest, k + 1
        then = at + most
        if head[m, slot.SIZE] == alike:
            split_classes(corners, c, alike, classes, at, then)
        else:
            for i in range(alike):
                classes[then + i] = classes[at + i]
        for i in range(d):
            slices[k * stride + i] = folds[i]
        cursor[k] = head[axes[k], slot.CORNERS]
    return max(low, min(high - gap, least)), high, nodes


@inline_kernel
def remember(head, corners, work, leaf, width):
    """Copy vertices of the axes before `leaf`, p for it and `point` for those behind to `best`."""
    _, _, _, point, best, p = work[: slot.ORDER]
    cursor, axes = work[slot.CURSOR], work[slot.AXES]
    for i in range(width):
        best[i] = point[i]
    place = 0
    for k in range(leaf):
        d = head[axes[k], slot.SIZE]
        for i in range(d):
            best[place + i] = corners[cursor[k] - d + i]
        place += d
    for i in range(head[axes[leaf], slot.SIZE]):
        best[place + i] = p[i]


@inline_kernel
def solve_tensor(sets, work, n, size, width, gap, limit):
    """Solve the tensor levels[0 : size]; returns (L, U, nodes), witness in best[0 : width].

    nodes: 0 certified without branching, > 0 branched, < 0 gap left after -1 - nodes of them
    (at the limit, or for want of vertices).
    """
    head, point, best, axes = sets[slot.HEAD], work[slot.POINT], work[slot.BEST], work[slot.AXES]
    branches = n > 1
    for k in range(n - 1):
        if head[axes[k], slot.CORNERS] == head[axes[k], slot.CORNERS_END]:
            branches = False
    low, high = descend(sets, work, n, size, width)
    if high - low > gap:
        high = improve(sets, work, n, size, width, high, 0.5 * gap)
    for i in range(width):
        best[i] = point[i]
    if high - low <= gap:
        return low, high, 0
    if not branches:
        return low, high, -1
    low, high, nodes = branch(sets, work, n, size, width, low, high, 0.5 * gap, limit)
    return low, high, nodes if nodes <= limit else -1 - nodes


@step_kernel
def alike_outcomes(head, data, axes, n, levels, size, image, before):
    """Fill before[0 : d] for the tensor levels[0 : size], d the size of the last axis.

    Returns d, or 0 if no two outcomes are alike. image (size,) is scratch memory.
    """
    leaves, d, found = 1.0, head[axes[n - 1], slot.SIZE], False
    for k in range(n - 1):
        m = axes[k]
        leaves *= (head[m, slot.CORNERS_END] - head[m, slot.CORNERS]) // head[m, slot.SIZE]
    if leaves < WORTH:
        return 0
    for j in range(d):
        before[j] = -1
        for i in range(j - 1, -1, -1):
            if same_bounds(head, data, axes, n, d, i, j) and same_values(
                head, axes, n, levels, size, image, d, i, j
            ):
                before[j], found = i, True
                break
    return d if found else 0


@inline_kernel
def same_bounds(head, data, axes, n, d, i, j):
    """Return whether outcomes i and j have the same bounds in all axes of size d, boxes all."""
    for k in range(n):
        m = axes[k]
        if head[m, slot.SIZE] == d:
            lower = head[m, slot.PLACE] + slot.LOWER
            if head[m, slot.KIND] > slot.BOX or data[lower + i] != data[lower + j]:
                return False
            if data[lower + d + i] != data[lower + d + j]:
                return False
    return True


@inline_kernel
def same_values(head, axes, n, levels, size, image, d, i, j):
    """Return whether the tensor stays the same if i and j change places in all axes of size d."""
    image[0], count = 0.0, 1
    for k in range(n):
        wide = head[axes[k], slot.SIZE]
        for f in range(count - 1, -1, -1):
            base = image[f] * wide
            for o in range(wide - 1, -1, -1):
                image[f * wide + o] = base + o
            if wide == d:
                image[f * wide + i], image[f * wide + j] = base + j, base + i
        count *= wide
    f = 0
    while f < size and levels[f] == levels[int(image[f])]:
        f += 1
    return f == size


@inline_kernel
def falls(corners, c, d, before, at):
    """Return whether the entries of a vertex fall within every class, rounding aside."""
    for i in range(d):
        j = before[at + i]
        if j >= 0 and corners[c + i] > corners[c + j] + RENAMED:
            return False
    return True


@inline_kernel
def split_classes(corners, c, d, before, at, then):
    """Fill before[then : then + d] with the classes whose entries of a vertex are equal."""
    for i in range(d):
        j = before[at + i]
        before[then + i] = j if j >= 0 and corners[c + i] == corners[c + j] else -1


@kernel
def exact_rows(sets, rows, work, asked, tolerance, limit, answers, bounds, nodes):
    """Fill both bounds of every wanted row, nodes[i] (see `solve_tensor`) and, if wanted, answers.

    A row is exact when its sides differ by at most `tolerance` times the span of its values; its
    tree has at most `limit` nodes. The tuples are those of `kernels.layout`.
    """
    for i in range(asked[slot.FIRST], asked[slot.LAST]):
        row, size = load(rows, asked, i, work[slot.LEVELS])
        r, _, span = row
        nodes[i] = 0
        if span == 0.0 and answers[slot.WHERE].shape[0] == 0:
            store(0.0, 0.0, 0, row, asked, bounds)
            continue
        n, width = take_axes(rows, r, sets[slot.HEAD], work[slot.AXES])
        terms = terms_of(sets[slot.HEAD], work[slot.AXES], n)
        low, high, nodes[i] = solve_tensor(sets, work, n, size, width, tolerance * span, limit)
        if nodes[i] != 0:
            low -= branch_margin(terms, span)
        store(low, high, terms, row, asked, bounds)
        write_answer(work[slot.BEST], width, i, answers)
