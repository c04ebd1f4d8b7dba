"""What every row kernel does first and last: load the tensor, contract, store the bounds.

Rows come as plain tuples of arrays (made by `inner.layout.pack_rows`), unpacked once per call:

successor_ptr (R + 1,), successors (K,) int32, marginal_ptr (R + 1,), marginals int32,
kind (R,) int32, gather_ptr (classes + 1,), gather int32

with the axes of every tensor in a solver's order. A row's `kind` is its class of shapes: rows of
one class share a table in `gather` that lists where the entries of the reordered tensor stand in
the stored one; an empty table means "as stored".

Neither named tuples nor classes appear in kernel signatures: numba's cache on disk stores the
types by reference, and a cache written before a renaming could not be read any more.
"""

from rfmdp.kernels.decorator import inline_kernel
from rfmdp.kernels.oracle import SIZE
from rfmdp.rounding import SUM, TERM


@inline_kernel
def load(successor_ptr, successors, kind, gather_ptr, gather, r, value, sign, out):
    """Fill out[0 : size] with sign * (value - reference) of row r's successors.

    Returns (size, reference, smallest, largest) of the filled entries; the reference is the value
    of the first successor, so that a constant row is filled with exact zeros.
    """
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
    return size, reference, low, high


@inline_kernel
def take_axes(marginal_ptr, marginals, r, head, axes):
    """Copy the marginals of row r to axes[0 : n]; returns n and the sum of their sizes."""
    first, last = marginal_ptr[r], marginal_ptr[r + 1]
    terms = 0
    for k in range(first, last):
        m = marginals[k]
        axes[k - first] = m
        terms += head[m, SIZE]
    return last - first, terms


@inline_kernel
def margin(terms, span, magnitude):
    """Compiled twin of `rounding.backup_margin`."""
    if span == 0.0:
        return 0.0
    return TERM * terms * span + SUM * magnitude


@inline_kernel
def vertex_margin(n, terms, span):
    """Return what a minimum over listed vertices may be too large by.

    `uncertainty.boxes` lists vertices that differ by rounding once: by up to d + 2 units of 2^-48.
    """
    return 2.0**-48 * (terms + 2 * n) * span


@inline_kernel
def dot(p, at, v, start, d):
    """Return p[at : at + d] . v[start : start + d]."""
    total = 0.0
    for i in range(d):
        total += p[at + i] * v[start + i]
    return total


@inline_kernel
def contract_first(p, at, d, tensor, start, rest, out, to):
    """out[to : to + rest] = sum_i p[at + i] * tensor[start + i * rest : ...]; zeros are skipped."""
    for j in range(rest):
        out[to + j] = 0.0
    for i in range(d):
        x = p[at + i]
        if x != 0.0:
            base = start + i * rest
            for j in range(rest):
                out[to + j] += x * tensor[base + j]


@inline_kernel
def store(q_low, q_high, reference, sign, gap, r, below, above):
    """Write the bounds of row r, turned back by sign and widened by the margin `gap`."""
    if sign > 0.0:
        below[r] = reference + q_low - gap
        above[r] = reference + q_high + gap
    else:
        below[r] = reference - q_high - gap
        above[r] = reference - q_low + gap
