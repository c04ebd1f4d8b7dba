"""Multiply rows out, and find rows that are equal.

Twin of `flatten_rows` in the tests: plain dictionaries over `itertools.product`.
"""

import numpy as np

from rfmdp.kernels.decorator import allocating_kernel, inline_kernel, kernel
from rfmdp.kernels.primitives import outer_product

MIX = np.uint64(0x9E3779B97F4A7C15)


@allocating_kernel
def flatten_rows(begin, end, model, sets, work, place_S, size, targets, boxes):
    """Multiply out the rows begin..end - 1, one after the other; returns the length written.

    Branches that meet add up, capped at one; successors that cannot happen (upper bound 0) are
    left out; the others are ascending. size[r - begin] is the number of successors of row r.

    model : the arrays of `FactoredMDP.structure`
    sets, boxes : lower, upper, nominal of the marginals' outcomes, and of the rows' successors
    place_S : (S,) filled with -1, and so again afterwards
    work : three (largest tensor,) buffers
    """
    _, marginal_ptr, marginals, outcome_ptr, successor_ptr, successors = model
    low, high, mid = sets
    low_K, high_K, mid_K = work
    lower, upper, nominal = boxes
    at = 0
    for r in range(begin, end):
        first, last, tensor = marginal_ptr[r], marginal_ptr[r + 1], successor_ptr[r]
        outer_product(outcome_ptr, low, marginals, first, last, low_K, 0)
        outer_product(outcome_ptr, high, marginals, first, last, high_K, 0)
        count = outer_product(outcome_ptr, mid, marginals, first, last, mid_K, 0)
        found = at
        for k in range(count):
            if high_K[k] > 0.0:
                s = successors[tensor + k]
                if place_S[s] < 0:
                    place_S[s] = found
                    targets[found] = s
                    found += 1
        for k in range(at, found):
            place_S[targets[k]] = -1
        part = targets[at:found]
        part.sort()
        for k in range(at, found):
            place_S[targets[k]] = k
            lower[k], upper[k], nominal[k] = 0.0, 0.0, 0.0
        for k in range(count):
            if high_K[k] > 0.0:
                i = place_S[successors[tensor + k]]
                lower[i] += low_K[k]
                upper[i] += high_K[k]
                nominal[i] += mid_K[k]
        for k in range(at, found):
            place_S[targets[k]] = -1
            lower[k], upper[k] = min(lower[k], 1.0), min(upper[k], 1.0)
        size[r - begin] = found - at
        at = found
    return at


@kernel
def number_rows(pointers, lower, upper, nominal, table, ids, first):
    """Give equal rows equal numbers, by first appearance; returns how many there are.

    lower, upper, nominal : the bits of the entries as 64-bit integers
    table : (a power of two above 2 N,) filled with -1
    """
    mask = table.shape[0] - 1
    count = 0
    for i in range(pointers.shape[0] - 1):
        key = np.uint64(pointers[i + 1] - pointers[i])
        for k in range(pointers[i], pointers[i + 1]):
            key = (key ^ np.uint64(lower[k])) * MIX
            key = (key ^ (key >> np.uint64(29)) ^ np.uint64(upper[k])) * MIX
            key = (key ^ (key >> np.uint64(32)) ^ np.uint64(nominal[k])) * MIX
        slot = np.int64(key >> np.uint64(24)) & mask
        while True:
            other = table[slot]
            if other < 0:
                table[slot], first[count], ids[i] = count, i, count
                count += 1
                break
            if same_row(pointers, lower, upper, nominal, i, first[other]):
                ids[i] = other
                break
            slot = (slot + 1) & mask
    return count


@inline_kernel
def same_row(pointers, lower, upper, nominal, i, j):
    """Return whether two rows have equal entries."""
    a, b = pointers[i], pointers[j]
    size = pointers[i + 1] - a
    if pointers[j + 1] - b != size:
        return False
    for k in range(size):
        if lower[a + k] != lower[b + k] or upper[a + k] != upper[b + k]:
            return False
        if nominal[a + k] != nominal[b + k]:
            return False
    return True
