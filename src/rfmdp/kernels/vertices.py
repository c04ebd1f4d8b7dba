"""All products of vertices (Theorem 1 of the paper)."""

import numpy as np

from rfmdp.kernels.decorator import inline_kernel, kernel
from rfmdp.kernels.layout import (
    AXES,
    BEST,
    CORNERS,
    CORNERS_END,
    CURSOR,
    FIRST,
    HEAD,
    LAST,
    LEVELS,
    SIZE,
)
from rfmdp.kernels.primitives import contract_first, dot
from rfmdp.kernels.rows import load, store, take_axes, write_answer


@inline_kernel
def enumerate_tensor(sets, work, n, size):
    """Return the minimum over all products of vertices; the attaining product is in `best`."""
    head, _, corners, _ = sets
    levels, best, cursor, axes = work[LEVELS], work[BEST], work[CURSOR], work[AXES]
    high, k, start, count = np.inf, 0, 0, size
    cursor[0] = head[axes[0], CORNERS]
    while k >= 0:
        m = axes[k]
        d = head[m, SIZE]
        c = cursor[k]
        if c == head[m, CORNERS_END]:
            k -= 1
            if k >= 0:
                count *= head[axes[k], SIZE]
                start -= count
            continue
        cursor[k] = c + d
        if k == n - 1:
            value = dot(corners, c, levels, start, d)
            if value < high:
                high = value
                place = 0
                for a in range(n):
                    size_a = head[axes[a], SIZE]
                    for i in range(size_a):
                        best[place + i] = corners[cursor[a] - size_a + i]
                    place += size_a
            continue
        rest = count // d
        contract_first(corners, c, d, levels, start, rest, levels, start + count)
        start, count, k = start + count, rest, k + 1
        cursor[k] = head[axes[k], CORNERS]
    return high


@kernel
def vertex_rows(sets, rows, work, asked, answers, bounds):
    """Fill both sides of every wanted row with the minimum over all products, and answers."""
    for i in range(asked[FIRST], asked[LAST]):
        row, size = load(rows, asked, i, work[LEVELS])
        r, _, _ = row
        n, width = take_axes(rows, r, sets[HEAD], work[AXES])
        q = enumerate_tensor(sets, work, n, size) if n > 0 else 0.0
        store(q, q, width, row, asked, bounds)
        write_answer(work[BEST], width, i, answers)
