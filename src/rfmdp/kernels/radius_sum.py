"""One ball around the nominal product of every row, minimised over."""

import numpy as np
from numba import get_thread_id, prange

from rfmdp.kernels.decorator import kernel, parallel_kernel
from rfmdp.kernels.oracle import (
    BOX,
    EXPONENT,
    FREE,
    KIND,
    LOWER,
    LP,
    PLACE,
    RADIUS,
    SIZE,
    minimiser,
)
from rfmdp.kernels.rows import margin

CHUNK = 64


@kernel
def heap_order(v, d, order):
    """Fill `order` with a permutation that sorts v[0 : d] ascending; d log d, no memory."""
    for i in range(d):
        order[i] = i
    for end in range(-(d // 2), d):
        if end < 0:  # first build the heap, from the last parent up
            root, last = -end - 1, d
        else:  # then take the largest to the back
            root, last = 0, d - 1 - end
            order[0], order[last] = order[last], order[0]
        moving = order[root]
        child = 2 * root + 1
        while child < last:
            if child + 1 < last and v[order[child + 1]] > v[order[child]]:
                child += 1
            if v[order[child]] <= v[moving]:
                break
            order[root] = order[child]
            root, child = child, 2 * child + 1
        order[root] = moving


@kernel
def _ball(r, d, kind, radius, exponent, marginal_ptr, marginals, outcome_ptr, nominal, head, data):
    """Write the ball of row r as a packed set (see `kernels.oracle`)."""
    head[0, KIND], head[0, SIZE], head[0, PLACE] = kind, d, 0
    data[RADIUS], data[EXPONENT] = radius, exponent
    centre = LOWER + 2 * d
    data[centre] = 1.0
    count = 1
    for k in range(marginal_ptr[r], marginal_ptr[r + 1]):
        start = outcome_ptr[marginals[k]]
        size = outcome_ptr[marginals[k] + 1] - start
        for i in range(count - 1, -1, -1):  # backwards: products grow in place
            x = data[centre + i]
            for j in range(size - 1, -1, -1):
                data[centre + i * size + j] = x * nominal[start + j]
        count *= size
    free = 1.0
    width = radius if kind == BOX else 0.0
    for i in range(d):
        x = data[centre + i]
        low, high = max(x - width, 0.0), min(x + width, 1.0)
        data[LOWER + i] = low
        data[LOWER + d + i] = high - low
        free -= low
    data[FREE] = max(free, 0.0)


@kernel
def _row(r, value, sign, rows, balls, head, data, corners, v, order, p):
    """Minimise over the ball of row r; returns the bound of sign * value, and fills p."""
    successor_ptr, successors, marginal_ptr, marginals, outcome_ptr, nominal = rows
    kind_R, radius_R, exponent_R = balls
    start = successor_ptr[r]
    d = successor_ptr[r + 1] - start
    reference = value[successors[start]]
    low, high = 0.0, 0.0
    for k in range(d):
        v[k] = sign * (value[successors[start + k]] - reference)
        low, high = min(low, v[k]), max(high, v[k])
    kind = kind_R[r]
    _ball(
        r, d, kind, radius_R[r], exponent_R[r], marginal_ptr, marginals, outcome_ptr, nominal,
        head, data,
    )  # fmt: skip
    # the minimisers sort by insertion, quadratic for long rows: hand them a sorted order
    heap_order(v, d, order)
    least = minimiser(head, data, corners, 0, v, 0, order, p)
    terms = d + marginal_ptr[r + 1] - marginal_ptr[r]
    if kind == LP:  # powers and a dual value instead of one dot product
        terms *= 4
    gap = margin(terms, high - low, abs(reference) + high - low)
    return sign * reference + max(least, low) - gap


@parallel_kernel
def radius_sum_rows(value, sign, wanted, rows, balls, work, starts, bound, answer):
    """Fill bound[wanted], and the minimisers at answer[starts] if `answer` has room.

    bound = sign * min { p.(sign v) : p in the simplex, ||p - nominal product|| <= radius },
    rounding included: below the true number for sign = 1, above it for sign = -1.
    Every row is computed by itself, so results do not depend on the number of threads.
    work : scratch memory, one line per thread
    """
    head_T, data_T, corners, v_T, order_T, p_T = work
    total = wanted.shape[0]
    for c in prange((total + CHUNK - 1) // CHUNK):
        t = get_thread_id()
        head, data, v, order, p = head_T[t], data_T[t], v_T[t], order_T[t], p_T[t]
        for i in range(c * CHUNK, min(total, (c + 1) * CHUNK)):
            r = wanted[i]
            bound[r] = sign * _row(r, value, sign, rows, balls, head, data, corners, v, order, p)
            if answer.shape[0] > 0:
                for k in range(rows[0][r + 1] - rows[0][r]):
                    answer[starts[i] + k] = p[k]


def workspace(threads: int, largest: int) -> tuple[np.ndarray, ...]:
    """Return the scratch memory of `radius_sum_rows` for rows of up to `largest` successors."""
    return (
        np.zeros((threads, 1, 5), dtype=np.int64),
        np.zeros((threads, LOWER + 3 * largest)),
        np.zeros(0),
        np.zeros((threads, largest)),
        np.zeros((threads, largest), dtype=np.int64),
        np.zeros((threads, largest)),
    )
