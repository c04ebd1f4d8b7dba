"""Interval arithmetic: product bounds, one greedy over the whole product support.

The semantics of PRISM and Storm for synchronised intervals. Branches that meet in one successor
add their intervals up; since they have one value, the greedy gives the same without merging.
Twin: `reference.interval_arithmetic`.
"""

from rfmdp.kernels.decorator import inline_kernel, kernel
from rfmdp.kernels.oracle import LOWER, PLACE, SIZE
from rfmdp.kernels.rows import load, margin, store, take_axes


@inline_kernel
def product_bounds(head, data, axes, n, lower, upper):
    """Fill lower[0 : K], upper[0 : K] with the products of the marginals' bounds, C order."""
    lower[0], upper[0], count = 1.0, 1.0, 1
    for k in range(n):
        d = head[axes[k], SIZE]
        l = head[axes[k], PLACE] + LOWER
        for f in range(count - 1, -1, -1):
            low, high = lower[f], upper[f]
            for j in range(d - 1, -1, -1):
                lower[f * d + j] = low * data[l + j]
                upper[f * d + j] = high * (data[l + j] + data[l + d + j])
        count *= d
    return count


@kernel
def sort_indices(v, order, count):
    """Sort order[0 : count] by ascending v: quicksort by medians, insertion for short parts.

    The parts still to be sorted are kept in order[count : count + 128] (the longer one waits, so
    that 64 pairs are enough); a recursive kernel cannot be loaded from numba's cache.
    """
    low, high, top = 0, count - 1, count
    while True:
        while high - low > 24:
            middle = (low + high) // 2
            if v[order[middle]] < v[order[low]]:
                order[middle], order[low] = order[low], order[middle]
            if v[order[high]] < v[order[low]]:
                order[high], order[low] = order[low], order[high]
            if v[order[high]] < v[order[middle]]:
                order[high], order[middle] = order[middle], order[high]
            pivot = v[order[middle]]
            i, j = low, high
            while i <= j:
                while v[order[i]] < pivot:
                    i += 1
                while v[order[j]] > pivot:
                    j -= 1
                if i <= j:
                    order[i], order[j] = order[j], order[i]
                    i += 1
                    j -= 1
            if j - low < high - i:
                order[top], order[top + 1] = i, high
                high = j
            else:
                order[top], order[top + 1] = low, j
                low = i
            top += 2
        for i in range(low + 1, high + 1):
            k = order[i]
            x = v[k]
            j = i - 1
            while j >= low and v[order[j]] > x:
                order[j + 1] = order[j]
                j -= 1
            order[j + 1] = k
        if top == count:
            return
        top -= 2
        low, high = order[top], order[top + 1]


@kernel
def interval_tensor(head, data, axes, n, a, lower, upper, order):
    """Return the greedy minimum over the product box; lower becomes the attaining distribution."""
    count = product_bounds(head, data, axes, n, lower, upper)
    mass, total = 1.0, 0.0
    for k in range(count):
        order[k] = k
        mass -= lower[k]
        total += lower[k] * a[k]
    sort_indices(a, order, count)
    for i in range(count):
        k = order[i]
        take = max(0.0, min(mass, upper[k] - lower[k]))
        lower[k] += take
        total += take * a[k]
        mass -= take
        if mass <= 0.0:
            break
    return total


@kernel
def interval_rows(sets, rows, work, wanted, value, sign, below, above):
    """Fill the side that the relaxation proves for every wanted row, and the open one with inf."""
    head, data, _ = sets
    successor_ptr, successors, marginal_ptr, marginals, kind, gather_ptr, gather = rows
    tensor, lower, upper, order, axes = work
    for i in range(wanted.shape[0]):
        r = wanted[i]
        size, reference, low, high = load(
            successor_ptr, successors, kind, gather_ptr, gather, r, value, sign, tensor
        )
        if high == low:
            store(0.0, float("inf"), reference, sign, 0.0, r, below, above)
            continue
        n, _ = take_axes(marginal_ptr, marginals, r, head, axes)
        q = interval_tensor(head, data, axes, n, tensor, lower, upper, order)
        gap = margin(size, high - low, abs(reference) + high - low)
        store(q, float("inf"), reference, sign, gap, r, below, above)


@kernel
def interval_answers(sets, rows, work, wanted, value, sign, begin, out):
    """Write the attaining distribution over the stored successors of wanted[i] to begin[i]."""
    head, data, _ = sets
    successor_ptr, successors, marginal_ptr, marginals, kind, gather_ptr, gather = rows
    tensor, lower, upper, order, axes = work
    for i in range(wanted.shape[0]):
        r = wanted[i]
        size, _, _, _ = load(
            successor_ptr, successors, kind, gather_ptr, gather, r, value, sign, tensor
        )
        n, _ = take_axes(marginal_ptr, marginals, r, head, axes)
        interval_tensor(head, data, axes, n, tensor, lower, upper, order)
        for k in range(size):
            out[begin[i] + k] = lower[k]
