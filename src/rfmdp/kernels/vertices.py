"""All products of vertices (Theorem 1 of the paper)."""

from rfmdp.kernels.borrow import borrow
from rfmdp.kernels.decorator import kernel, part_kernel
from rfmdp.kernels.layout import CORNERS, CORNERS_END, SIZE
from rfmdp.kernels.primitives import contract_first, dot, zero
from rfmdp.kernels.rows import load, margin, store, take_axes, write_answer


@part_kernel
def enumerate_tensor(sets, work, n, size):
    """Return the minimum over all products of vertices; the attaining product is in `best`."""
    head, _, corners, _ = sets
    levels, _, _, _, best, _, _, cursor, axes, _ = work
    high, k, start, count = float("inf"), zero(n), zero(n), size
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
                place = zero(n)
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
    sets, rows, work, asked, answers, bounds = borrow((sets, rows, work, asked, answers, bounds))
    wanted, value, sign, first, last = asked
    for i in range(first, last):
        r = wanted[i]
        size, reference, low, high = load(rows, r, value, sign, work[0])
        n, width = take_axes(rows, r, sets[0], work[8])
        q, span = 0.0, high - low
        if n > 0:
            q = enumerate_tensor(sets, work, n, size)
        error = margin(width, span, abs(reference) + span)
        store(q, q, error, reference, sign, r, bounds)
        write_answer(work[4], width, i, answers)
