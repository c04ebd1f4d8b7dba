"""Kernels of gap-directed exploration: where a policy goes, and what ignorance costs there.

model   the arrays of `FactoredMDP.structure`
sets    probability, lower, upper (O,); probabilities are positive
"""

from rfmdp.kernels.decorator import kernel
from rfmdp.kernels.oracle import box_minimum
from rfmdp.kernels.primitives import outer_product, reset

GONE, RARE = 1e-12, 1e-9  # expected visits that are not followed, and that cost nothing


@kernel
def occupancy(rows_TS, steps, model, sets, initial, terminal, work, total):
    """Add to total (S,) the expected visits of every state within some steps of a policy.

    work : joint (K,) of the largest row; mass (S,) and after (S,), zeros
    """
    states = total.shape[0]
    _, marginal_ptr, row_marginals, outcome_ptr, successor_ptr, successors = model
    probability, _, _ = sets
    joint, mass, after = work
    for s in initial:
        mass[s] += 1.0 / initial.shape[0]
    for t in range(steps):
        after[:] = 0.0
        for s in range(states):
            if mass[s] < GONE or terminal[s]:
                continue
            total[s] += mass[s]
            row = rows_TS[min(t, rows_TS.shape[0] - 1), s]
            first, last = marginal_ptr[row], marginal_ptr[row + 1]
            size = outer_product(outcome_ptr, probability, row_marginals, first, last, joint, 0)
            for k in range(size):
                after[successors[successor_ptr[row] + k]] += mass[s] * joint[k]
        mass, after = after, mass


@kernel
def gap_losses(rows_S, visits, model, sets, value, sign, work, loss):
    """Add to loss (M,): sum_s visits(s) [E v - least v of one marginal, the others nominal].

    sign : +1 if nature minimises, -1 if it maximises
    work : joint (K,) of the largest row; fibre (d,), box (2 d,), order (d,) of the largest marginal
    """
    _, marginal_ptr, row_marginals, outcome_ptr, successor_ptr, successors = model
    probability, lower, upper = sets
    joint, fibre, box, order = work
    for s in range(visits.shape[0]):
        if visits[s] < RARE:
            continue
        row = rows_S[s]
        first, last = marginal_ptr[row], marginal_ptr[row + 1]
        size = outer_product(outcome_ptr, probability, row_marginals, first, last, joint, 0)
        stride = size
        for slot in range(first, last):
            j = row_marginals[slot]
            begin = outcome_ptr[j]
            d = outcome_ptr[j + 1] - begin
            stride //= d
            fibre[:d] = 0.0
            for k in range(size):
                fibre[k // stride % d] += joint[k] * value[successors[successor_ptr[row] + k]]
            mean, free = 0.0, 1.0
            for i in range(d):
                mean += sign * fibre[i]
                fibre[i] *= sign / probability[begin + i]
                box[i], box[d + i] = lower[begin + i], upper[begin + i] - lower[begin + i]
                free -= lower[begin + i]
            reset(order, d)
            low, _ = box_minimum((box, 0, d, free), fibre, 0, order)
            loss[j] += visits[s] * max(0.0, mean - low)
