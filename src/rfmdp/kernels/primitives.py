"""Steps that every inner solver repeats, each written once: sort, contract, multiply.

`order` holds a permutation of 0..d-1 that is sorted in place. Handing the same array to the next
vector makes the insertion sort nearly linear, because neighbouring fibres of a value function are
mostly sorted alike. It is reset once per row, so that results do not depend on which rows a
thread saw before.
"""

from rfmdp.kernels.decorator import inline_kernel, step_kernel

SHORT = 32  # entries that insertion sorts faster than merging


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

    Short parts by insertion, then merged to and fro between order[0 : d] and order[d : 2 * d].
    """
    reset(order, d)
    for low in range(0, d, SHORT):
        sort(v, 0, min(SHORT, d - low), order[low:])
    here, there, width = 0, d, SHORT
    while width < d:
        for low in range(0, d, 2 * width):
            middle, end = min(low + width, d), min(low + 2 * width, d)
            i, j = low, middle
            for k in range(low, end):
                if j == end or (i < middle and v[order[here + i]] <= v[order[here + j]]):
                    order[there + k] = order[here + i]
                    i += 1
                else:
                    order[there + k] = order[here + j]
                    j += 1
        here, there, width = there, here, 2 * width
    if here > 0:
        for i in range(d):
            order[i] = order[d + i]


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
