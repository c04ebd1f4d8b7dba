"""Enumerate the supports that matter of boxes and balls, as bit masks of outcomes.

A set of outcomes B is *feasible* if some member of the uncertainty set has its support within B:

box      sum of upper over B >= 1
Lp ball  ||projection of nominal onto B - nominal||_c <= radius; the projection spreads the mass
         a outside B evenly, so its distance is (sum_{i not in B} nominal_i^c + a^c |B|^(1-c))^(1/c)

Both families stay feasible when an outcome is replaced by a heavier one. So taking outcomes by
descending weight and stopping at the first feasible set gives minimal sets only, and every
branch that is entered ends in one.
"""

from rfmdp.kernels.decorator import inline_kernel, kernel

SLACK = 1e-12  # sums this close to one, distances this close to the radius, count as equal


@inline_kernel
def feasible(mask, weight, d, radius, exponent):
    """Whether some member lives on the outcomes of mask; exponent 0: a box, with mass `radius`."""
    kept, lost, power = 0.0, 0.0, 0.0
    count = 0
    for i in range(d):
        if (mask >> i) & 1:
            kept += weight[i]
            count += 1
        elif exponent > 0.0:
            lost += weight[i]
            power += weight[i] ** exponent
    if exponent == 0.0:
        return kept >= radius - SLACK
    if count == 0:
        return False
    power += lost**exponent * float(count) ** (1.0 - exponent)
    return power ** (1.0 / exponent) <= radius + SLACK


@kernel
def supersets(required, extra, weight, d, radius, exponent, order, free, rest, path, masks, used):
    """Append the minimal feasible supersets of required | extra; returns the new length or -1.

    With an extra outcome (one bit) only those are kept that are feasible without it: the others
    are minimal among all feasible sets.
    order[: free] : the outcomes that may be added, by descending weight; rest, path : scratch
    """
    start = required | extra
    rest[free] = 0
    for i in range(free - 1, -1, -1):
        rest[i] = rest[i + 1] | (1 << order[i])
    mask, depth, i = start, 0, 0
    done = start != 0 and feasible(start, weight, d, radius, exponent)
    while True:
        if done:
            if extra == 0 or feasible(mask ^ extra, weight, d, radius, exponent):
                if used == masks.shape[0]:
                    return -1
                masks[used] = mask
                used += 1
        elif i < free and feasible(mask | rest[i], weight, d, radius, exponent):
            if (mask >> order[i]) & 1 == 0:
                mask |= 1 << order[i]
                path[depth] = i
                depth += 1
                done = feasible(mask, weight, d, radius, exponent)
            i += 1
            continue
        if depth == 0:
            return used
        depth -= 1
        i = path[depth] + 1
        mask ^= 1 << order[i - 1]
        done = False


@kernel
def families(
    which, outcome_ptr, weight, required, possible, radius, exponent, scratch, masks, ends
):
    """Enumerate the supports of the marginals `which` until `masks` is full.

    Returns how many marginals were finished. ends[i] = (end of the minimal supports, end of all)
    of which[i]. All supports: for every outcome the minimal ones that contain it.
    scratch : (3, 64) int64
    """
    order, rest, path = scratch[0], scratch[1], scratch[2]
    used = 0
    for n in range(which.shape[0]):
        m = which[n]
        first, d = outcome_ptr[m], outcome_ptr[m + 1] - outcome_ptr[m]
        w = weight[first : first + d]
        fixed, free = 0, 0
        for i in range(d):
            if required[first + i]:
                fixed |= 1 << i
            elif possible[first + i]:
                j = free
                while j > 0 and w[order[j - 1]] < w[i]:
                    order[j] = order[j - 1]
                    j -= 1
                order[j] = i
                free += 1
        extra = 0
        for e in range(-1, free):
            extra = 1 << order[e] if e >= 0 else 0
            used = supersets(
                fixed, extra, w, d, radius[m], exponent[m], order, free, rest, path, masks, used
            )
            if used < 0:
                return n
            if e < 0:
                ends[n, 0] = used
        ends[n, 1] = used
    return which.shape[0]
