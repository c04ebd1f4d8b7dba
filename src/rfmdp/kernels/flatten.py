"""Multiply rows out. Twin in the tests: plain dictionaries over `itertools.product`."""

from rfmdp.kernels.decorator import kernel
from rfmdp.kernels.primitives import outer_product, sort_long


@kernel
def flatten_rows(begin, end, model, sets, work, place_S, size, targets, boxes):
    """Multiply out the rows begin..end - 1, one after the other; returns the length written.

    Branches that meet add up, capped at one; successors that cannot happen (upper bound 0) are
    left out; the others are ascending. size[r - begin] is the number of successors of row r.

    model : the arrays of `FactoredMDP.structure`
    sets, boxes : lower, upper, nominal of the marginals' outcomes, and of the rows' successors
    place_S : (S,) filled with -1, and so again afterwards
    work : three (K,) buffers for the largest tensor; order (K + STACK,), see `sort_long`
    """
    _, marginal_ptr, marginals, outcome_ptr, successor_ptr, successors = model
    low, high, mid = sets
    low_K, high_K, mid_K, order = work
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
        sort_long(targets[at:found], found - at, order)
        for i in range(found - at):
            order[i] = targets[at + order[i]]
        for k in range(at, found):
            targets[k] = order[k - at]
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
