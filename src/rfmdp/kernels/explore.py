"""Kernels of gap-directed exploration: where a policy goes, and what ignorance costs there."""

import numpy as np

from rfmdp.kernels.decorator import allocating_kernel, kernel
from rfmdp.kernels.flatten import outer_product


@allocating_kernel
def occupancy(rows_TS, steps, model, outcome_ptr, probability, initial, terminal, scratch, total):
    """Add to total (S,) the expected visits of every state within some steps of a policy."""
    states = total.shape[0]
    _, marginal_ptr, row_marginals, successor_ptr, successors = model
    mass, after = np.zeros(states), np.zeros(states)
    for s in initial:
        mass[s] += 1.0 / initial.shape[0]
    for t in range(steps):
        after[:] = 0.0
        for s in range(states):
            if mass[s] < 1e-12 or terminal[s]:
                continue
            total[s] += mass[s]
            row = rows_TS[min(t, rows_TS.shape[0] - 1), s]
            first, last = marginal_ptr[row], marginal_ptr[row + 1]
            size = outer_product(outcome_ptr, probability, row_marginals, first, last, scratch)
            for k in range(size):
                after[successors[successor_ptr[row] + k]] += mass[s] * scratch[k]
        mass, after = after, mass


@kernel
def _box_low(lower, upper, begin, d, v, order):
    """Return the least expectation of v[0 : d] over a box."""
    for i in range(d):
        j = i
        while j > 0 and v[order[j - 1]] > v[i]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i
    mass, low = 1.0, 0.0
    for i in range(d):
        mass -= lower[begin + i]
        low += lower[begin + i] * v[i]
    for i in range(d):
        take = min(mass, upper[begin + order[i]] - lower[begin + order[i]])
        low += take * v[order[i]]
        mass -= take
    return low


@kernel
def gap_losses(
    rows_S, visits, model, outcome_ptr, probability, lower, upper, value, sign, scratch, fibre,
    order, loss,
):  # fmt: skip
    """Add to loss (M,): sum_s visits(s) [E v - least v of one marginal, the others nominal].

    sign = +1 if nature minimises. Requires positive probabilities.
    """
    _, marginal_ptr, row_marginals, successor_ptr, successors = model
    for s in range(visits.shape[0]):
        if visits[s] < 1e-9:
            continue
        row = rows_S[s]
        first, last = marginal_ptr[row], marginal_ptr[row + 1]
        size = outer_product(outcome_ptr, probability, row_marginals, first, last, scratch)
        stride = size
        for slot in range(first, last):
            j = row_marginals[slot]
            begin = outcome_ptr[j]
            d = outcome_ptr[j + 1] - begin
            stride //= d
            fibre[:d] = 0.0
            for k in range(size):
                o = k // stride % d
                fibre[o] += scratch[k] * value[successors[successor_ptr[row] + k]]
            mean = 0.0
            for o in range(d):
                mean += sign * fibre[o]
                fibre[o] *= sign / probability[begin + o]
            loss[j] += visits[s] * max(0.0, mean - _box_low(lower, upper, begin, d, fibre, order))


@kernel
def stale_rows(
    rows, marginal_ptr, row_marginals, successor_ptr, successors, changed_M, value, old, out
):
    """Fill `out` with the rows whose backup may have changed; returns their number.

    That is where a marginal changed, or the value of a successor is not what it was (`old`).
    """
    count = 0
    for i in range(rows.shape[0]):
        r = rows[i]
        stale = False
        for k in range(marginal_ptr[r], marginal_ptr[r + 1]):
            stale |= changed_M[row_marginals[k]]
        k, end = successor_ptr[r], successor_ptr[r + 1]
        while not stale and k < end:
            s = successors[k]
            stale = value[s] != old[s]
            k += 1
        if stale:
            out[count] = r
            count += 1
    return count
