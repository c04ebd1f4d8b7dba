"""How uncertainty sets and rows are laid out for kernels, and what every row kernel does with them.

Arrays that travel together travel as plain tuples, everywhere in the same order (neither named
tuples nor classes appear in kernel signatures: numba's cache stores types by reference, and a
cache written before a renaming could not be read any more). A constant below is the place of an
entry: asked[SIGN]. Who needs most of a tuple unpacks it in the first line.

sets     head, data, corners, minimiser: the uncertainty sets, made by `inner.packing.pack_sets`
rows     successor_ptr (R + 1,), successors (K,) int32, marginal_ptr (R + 1,), marginals int32,
         kind (R,) int32, gather_ptr (classes + 1,), gather int32
work     scratch memory of one thread, see `inner.packing.scratch`
asked    wanted (N,) rows, value (S,), sign (+1 nature minimises, -1 it maximises), first, last:
         the kernel does wanted[first : last], a part of the rows
answers  where (N,) or empty if no answers are wanted, answer: the marginals of wanted[i], in the
         rows' order of axes, are written to answer[where[i]:]
bounds   below (R,), above (R,): filled for the wanted rows

The axes of every tensor are in a solver's order. A row's `kind` is its class of shapes: rows of one
class share a table in `gather` that lists where the entries of the reordered tensor stand in the
stored one; an empty table means "as stored".

Of the sets:

head       (M, 5) int64: kind, size d, place in `data`, begin and end in `corners`
data       per marginal: free mass 1 - sum(lower), radius, exponent; lower, slack, nominal (d
           each)
corners    vertices, d numbers each: of every polytope, and of boxes where a solver branches on
           them
minimiser  the address of `oracle.curved_minimum`, or 0 if no set needs it
"""

import numpy as np

from rfmdp.kernels.decorator import inline_kernel
from rfmdp.rounding import CURVED_TERMS, backup_margin, branching_margin

HEAD, DATA = 0, 1  # in `sets`
SINGLETON, BOX, L1, LP, POLYTOPE = 0, 1, 2, 3, 4  # as sets.marginals.Kind
KIND, SIZE, PLACE, CORNERS, CORNERS_END = 0, 1, 2, 3, 4  # columns of head
FREE, RADIUS, EXPONENT, LOWER = 0, 1, 2, 3  # offsets in data; slack and nominal follow lower

MARGINALS, ROW_KIND = 3, 4  # in `rows`
SIGN, FIRST, LAST = 2, 3, 4  # in `asked`
WHERE = 0  # in `answers`
# in `work`
LEVELS, SLICES, FOLDS, POINT, BEST, MEMBER = 0, 1, 2, 3, 4, 5  # floats
ORDER, CURSOR, CLASSES, AXES = 6, 7, 8, 9  # integers
CURVED = 10  # floats

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
