"""Enumerate the supports that matter of boxes and balls, as bit masks of outcomes.

A set of outcomes B is *feasible* if some member of the uncertainty set has its support within B.
For the sets here that is: B is not empty and its weights sum to at least a threshold (see
`sets.supports`, which leaves only those outcomes that can be empty or not). Weights are integers
of L digits to the base 2^32, the highest first; so sums are exact, at all scales.

Feasible sets stay feasible when an outcome is replaced by a heavier one. So taking outcomes by
descending weight and stopping at the first feasible set gives minimal sets only, and every
branch that is entered ends in one.
"""

from rfmdp.kernels.decorator import inline_kernel, kernel

BITS = 32  # of a digit; sums of 62 of them are far from the end of 64 bits


@inline_kernel
def feasible(mask, bare, weight, threshold, total):
    """Return whether the weights (d, L) of mask sum to at least threshold (L,); total is scratch.

    bare : whether nothing else is in the set, so that an empty mask is none
    """
    if mask == 0 and bare:
        return False
    digits = threshold.shape[0]
    for k in range(digits):
        total[k] = -threshold[k]
    for i in range(weight.shape[0]):
        if (mask >> i) & 1:
            for k in range(digits):
                total[k] += weight[i, k]
    # carry from the lowest digit up: the sign is then that of the highest one
    for k in range(digits - 1, 0, -1):
        total[k - 1] += total[k] >> BITS
    return total[0] >= 0


@inline_kernel
def supersets(extra, bare, weight, threshold, scratch, masks, used):
    """Append the minimal feasible supersets of `extra`; returns the new length or -1.

    With an extra outcome (one bit) only those are kept that are feasible without it: the others
    are minimal among all feasible sets. Outcomes are ordered by descending weight.
    """
    rest, path, total = scratch[0], scratch[1], scratch[2]
    size = weight.shape[0]
    rest[size] = 0
    for i in range(size - 1, -1, -1):
        rest[i] = rest[i + 1] | (1 << i)
    mask, depth, i = extra, 0, 0
    done = feasible(extra, bare, weight, threshold, total)
    while True:
        if done:
            if extra == 0 or feasible(mask ^ extra, bare, weight, threshold, total):
                if used == masks.shape[0]:
                    return -1
                masks[used] = mask
                used += 1
        elif i < size and feasible(mask | rest[i], bare, weight, threshold, total):
            if (mask >> i) & 1 == 0:
                mask |= 1 << i
                path[depth] = i
                depth += 1
                done = feasible(mask, bare, weight, threshold, total)
            i += 1
            continue
        if depth == 0:
            return used
        depth -= 1
        i = path[depth] + 1
        mask ^= 1 << (i - 1)
        done = False


@kernel
def enumerate_supports(ptr, bare, weight, threshold, scratch, masks, ends):
    """Enumerate the supports of N sets until `masks` is full; returns how many were finished.

    ends[n] = (end of the minimal supports, end of all) of set n. All supports: for every outcome
    the minimal ones that contain it.

    ptr : (N + 1,) outcomes of every set in `weight` (O, L), by descending weight
    bare : (N,), threshold : (N, L), scratch : (3, 64) int64
    """
    used = 0
    for n in range(ptr.shape[0] - 1):
        w = weight[ptr[n] : ptr[n + 1]]
        for e in range(-1, w.shape[0]):
            extra = 1 << e if e >= 0 else 0
            used = supersets(extra, bare[n], w, threshold[n], scratch, masks, used)
            if used < 0:
                return n
            if e < 0:
                ends[n, 0] = used
        ends[n, 1] = used
    return ptr.shape[0] - 1
