"""Steps that every inner solver repeats, each written once: sort, contract, multiply.

`order` holds a permutation of 0..d-1 that is sorted in place. Handing the same array to the next
vector makes the insertion sort nearly linear, because neighbouring fibres of a value function are
mostly sorted alike. It is reset once per row, so that results do not depend on which rows a
thread saw before.
"""

from rfmdp.kernels.decorator import inline_kernel, step_kernel

STACK = 128  # room that `sort_long` needs behind the permutation


@inline_kernel
def reset(order, d):
    """Fill the identity permutation."""
    for i in range(d):
        order[i] = i


@inline_kernel
def sort(v, at, d, order):
    """Sort `order` by ascending v[at + order]; returns whether it was not sorted before.

    Insertion, so that nearly sorted input is linear.
    """
    moved = False
    for i in range(1, d):
        k = order[i]
        x = v[at + k]
        j = i - 1
        while j >= 0 and v[at + order[j]] > x:
            order[j + 1] = order[j]
            j -= 1
            moved = True
        order[j + 1] = k
    return moved


@step_kernel
def sort_long(v, d, order):
    """Fill order[0 : d] with a permutation that sorts v ascending; for rows of many entries.

    Quicksort by medians, insertion for short parts. The parts still to be sorted are kept in
    order[d : d + STACK] (the longer one waits, so that 64 pairs are enough); a recursive kernel
    cannot be loaded from numba's cache.
    """
    reset(order, d)
    low, high, top = 0, d - 1, d
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
        if top == d:
            return
        top -= 2
        low, high = order[top], order[top + 1]


@inline_kernel
def dot(p, at, v, start, d):
    """Return p[at : at + d] . v[start : start + d]."""
    total = 0.0
    for i in range(d):
        total += p[at + i] * v[start + i]
    return total


@inline_kernel
def contract_first(p, at, d, tensor, start, rest, out, to):
    """out[to : to + rest] = sum_i p[at + i] * tensor[start + i * rest : ...]; zeros are skipped."""
    for j in range(rest):
        out[to + j] = 0.0
    for i in range(d):
        x = p[at + i]
        if x != 0.0:
            base = start + i * rest
            for j in range(rest):
                out[to + j] += x * tensor[base + j]


@inline_kernel
def multiply(out, to, count, p, at, d):
    """Replace out[to : to + count] by its outer product with p[at : at + d]; returns count * d.

    Backwards, so that products grow in place: those of f need no entry before f.
    """
    for f in range(count - 1, -1, -1):
        x = out[to + f]
        for j in range(d):
            out[to + f * d + j] = x * p[at + j]
    return count * d


@inline_kernel
def outer_product(outcome_ptr, values, marginals, first, last, out, to):
    """Fill out[to : to + K] with the products of the entries of marginals[first : last], C order.

    Entries of marginal m are values[outcome_ptr[m] : outcome_ptr[m + 1]]. Returns K.
    """
    out[to], count = 1.0, 1
    for k in range(first, last):
        begin = outcome_ptr[marginals[k]]
        count = multiply(out, to, count, values, begin, outcome_ptr[marginals[k] + 1] - begin)
    return count
