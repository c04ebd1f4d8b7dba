"""Coordinate descent for nature from several starts."""

import numpy as np

from rfmdp.kernels.decorator import inline_kernel, kernel
from rfmdp.kernels.exact import descend, improve
from rfmdp.kernels.layout import AXES, BEST, FIRST, FOLDS, HEAD, LAST, LEVELS, MEMBER, POINT, SIZE
from rfmdp.kernels.oracle import minimum
from rfmdp.kernels.rows import load, store, take_axes, terms_of, write_answer
from rfmdp.rounding import PROGRESS


@inline_kernel
def random_product(sets, work, n, state):
    """Fill `point` with the minimisers of random values, a member per marginal; returns the state.

    A linear congruence per row, so that the result does not depend on threads.
    """
    folds, point, p, axes = work[FOLDS], work[POINT], work[MEMBER], work[AXES]
    place = 0
    for k in range(n):
        d = sets[HEAD][axes[k], SIZE]
        for i in range(d):
            state = ((state & 0x7FFFFFFF) * 1103515245 + 12345) & 0x7FFFFFFF
            folds[i] = state * 2.0**-31
        minimum(sets, work, axes[k])
        for i in range(d):
            point[place + i] = p[i]
        place += d
    return state


@inline_kernel
def alternating_tensor(sets, work, n, size, width, seed, starts, gap):
    """Descend from the sequential answer and `starts - 1` random members.

    Returns the best value; its marginals are in best[0 : width].
    """
    point, best = work[POINT], work[BEST]
    state, high = seed, np.inf
    for start in range(starts):
        value = np.inf
        if start == 0:
            _, value = descend(sets, work, n, size, width)
        else:
            state = random_product(sets, work, n, state)
        value = improve(sets, work, n, size, width, value, gap)
        if value < high:
            high = value
            for i in range(width):
                best[i] = point[i]
    return high


@kernel
def alternating_rows(sets, rows, work, asked, starts, seed, answers, bounds):
    """Fill the restriction's side of every wanted row, the other one open, and wanted answers."""
    for i in range(asked[FIRST], asked[LAST]):
        row, size = load(rows, asked, i, work[LEVELS])
        r, _, span = row
        n, width = take_axes(rows, r, sets[HEAD], work[AXES])
        q = 0.0
        if n > 0:
            q = alternating_tensor(sets, work, n, size, width, seed + r, starts, PROGRESS * span)
        terms = terms_of(sets[HEAD], work[AXES], n)
        store(-np.inf, q, terms, row, asked, bounds)
        write_answer(work[BEST], width, i, answers)
