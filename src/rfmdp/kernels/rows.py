"""What every row kernel does first and last: load the tensor, and write bounds and answers.

The tuples `sets`, `rows`, `asked`, `answers` and `bounds` are those of `kernels.layout`.
"""

import numpy as np

from rfmdp.kernels.decorator import inline_kernel
from rfmdp.kernels.layout import KIND, LP, SIGN, SIZE
from rfmdp.rounding import CURVED_TERMS, backup_margin, branching_margin

margin = inline_kernel(backup_margin)
branch_margin = inline_kernel(branching_margin)


@inline_kernel
def load(rows, asked, i, out):
    """Fill out[0 : size] with sign * (value - reference) of the successors of row wanted[i].

    Returns (row, size). A row is (r, reference, span): its number, the value of its first
    successor, so that a constant row is filled with exact zeros, and the span of its values.
    """
    successor_ptr, successors, _, _, kind, gather_ptr, gather = rows
    wanted, value, sign, _, _ = asked
    r = wanted[i]
    start = successor_ptr[r]
    size = successor_ptr[r + 1] - start
    table = gather_ptr[kind[r]]
    reference = value[successors[start]]
    low = 0.0
    high = 0.0
    if table == gather_ptr[kind[r] + 1]:
        for k in range(size):
            x = sign * (value[successors[start + k]] - reference)
            out[k] = x
            low = min(low, x)
            high = max(high, x)
    else:
        for k in range(size):
            x = sign * (value[successors[start + gather[table + k]]] - reference)
            out[k] = x
            low = min(low, x)
            high = max(high, x)
    return (r, reference, high - low), size


@inline_kernel
def take_axes(rows, r, head, axes):
    """Copy the marginals of row r to axes[0 : n]; returns n and the sum of their sizes."""
    _, _, marginal_ptr, marginals, _, _, _ = rows
    first, last = marginal_ptr[r], marginal_ptr[r + 1]
    width = 0
    for k in range(first, last):
        m = marginals[k]
        axes[k - first] = m
        width += head[m, SIZE]
    return last - first, width


@inline_kernel
def terms_of(head, axes, n):
    """Return how many terms of a sum the contraction of axes[0 : n] counts as, see `rounding`."""
    terms = 0
    for k in range(n):
        each = CURVED_TERMS if head[axes[k], KIND] == LP else 1
        terms += each * head[axes[k], SIZE]
    return terms


@inline_kernel
def store(low, high, terms, row, asked, bounds):
    """Write the bounds of a row, turned back by sign and widened by the float error.

    Values whose differences overflow leave both sides open; a constant row has no error.
    """
    r, reference, span = row
    sign = asked[SIGN]
    below, above = bounds
    error = margin(terms, span, abs(reference) + span)
    if not error < np.inf:
        below[r], above[r] = -np.inf, np.inf
    elif sign > 0.0:
        below[r] = reference + low - error
        above[r] = reference + high + error
    else:
        below[r] = reference - high - error
        above[r] = reference - low + error


@inline_kernel
def write_answer(point, width, i, answers):
    """Copy the marginals point[0 : width] to the place of answer i, if answers are wanted."""
    where, answer = answers
    if where.shape[0] > 0:
        for k in range(width):
            answer[where[i] + k] = point[k]


@inline_kernel
def scatter(tensor, at, size, rows, r, out, to):
    """Copy tensor[at : at + size] of row r, in solver order, to out[to :] in stored order."""
    _, _, _, _, kind, gather_ptr, gather = rows
    table = gather_ptr[kind[r]]
    if table == gather_ptr[kind[r] + 1]:
        for k in range(size):
            out[to + k] = tensor[at + k]
    else:
        for k in range(size):
            out[to + gather[table + k]] = tensor[at + k]
