"""One ball around the nominal product of every row, minimised over.

The ball of the row at hand is written to memory as a packed set of one marginal (`kernels.layout`):
head[0] and, at place 0 of `data`, free mass, radius, exponent, then lower bounds, slacks and the
nominal product, one number per joint outcome each. p[0 : d] is the minimiser, p[d] the minimum.
"""

import numpy as np

from rfmdp.kernels.decorator import inline_kernel, kernel
from rfmdp.kernels.layout import (
    BOX,
    EXPONENT,
    FIRST,
    FREE,
    KIND,
    LAST,
    LOWER,
    LP,
    PLACE,
    RADIUS,
    SIZE,
)
from rfmdp.kernels.oracle import minimise
from rfmdp.kernels.primitives import outer_product, sort_long
from rfmdp.kernels.rows import load, store, write_answer
from rfmdp.rounding import CURVED_TERMS


@inline_kernel
def pack_ball(r, d, balls, rows, nominals, head, data):
    """Write the ball of row r, with d joint outcomes, as the set of marginal 0."""
    kinds, radii, exponents = balls
    kind, radius, exponent = kinds[r], radii[r], exponents[r]
    outcome_ptr, nominal = nominals
    _, _, marginal_ptr, marginals, _, _, _ = rows
    head[0, KIND], head[0, SIZE], head[0, PLACE] = kind, d, 0
    data[RADIUS], data[EXPONENT] = radius, exponent
    centre = LOWER + 2 * d
    first, last = marginal_ptr[r], marginal_ptr[r + 1]
    outer_product(outcome_ptr, nominal, marginals, first, last, data, centre)
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
def radius_sum_rows(sets, rows, work, asked, balls, nominals, answers, bounds):
    """Fill the relaxation's side of every wanted row, the other one open, and wanted answers.

    The sets of the marginals are not looked at: their balls are one ball per row,
    min { p.v : p in the simplex, ||p - nominal product|| <= radius }
    balls    : kinds (R,), radii (R,), exponents (R,)
    nominals : outcome_ptr (M + 1,), nominal probabilities
    work     : the packed set, v (K,) values, p (K + 1,), order (K + STACK,), curved (K,)
    """
    ball, v, p, order, curved = work
    head, data, _, _ = ball
    _, _, marginal_ptr, _, _, _, _ = rows
    for i in range(asked[FIRST], asked[LAST]):
        row, d = load(rows, asked, i, v)
        r, _, _ = row
        pack_ball(r, d, balls, rows, nominals, head, data)
        # the minimisers sort by insertion, quadratic for long rows: hand them a sorted order
        sort_long(v, d, order)
        least = v[order[0]]
        minimise(ball, 0, (v, 0, 1), order, curved, (p, d), (p, 0))
        terms = d + marginal_ptr[r + 1] - marginal_ptr[r]
        if head[0, KIND] == LP:
            terms *= CURVED_TERMS
        store(max(p[d], least), np.inf, terms, row, asked, bounds)
        write_answer(p, d, i, answers)
