"""Sequential contraction, step 1 of `kernels.exact` alone, and products over successors."""

from rfmdp.kernels.borrow import borrow
from rfmdp.kernels.decorator import kernel, part_kernel
from rfmdp.kernels.exact import fold
from rfmdp.kernels.layout import SIZE
from rfmdp.kernels.oracle import minimum
from rfmdp.kernels.primitives import multiply, zero
from rfmdp.kernels.rows import load, margin, scatter, store, take_axes


@kernel
def sequential_rows(sets, rows, work, asked, bounds):
    """Fill the relaxation's side of every wanted row, and the open one with infinity."""
    sets, rows, work, asked, bounds = borrow((sets, rows, work, asked, bounds))
    wanted, value, sign, first, last = asked
    folds, p, order, axes, curved = work[2], work[5], work[6], work[8], work[9]
    for i in range(first, last):
        r = wanted[i]
        size, reference, low, high = load(rows, r, value, sign, work[0])
        q, error, span = 0.0, 0.0, high - low
        if span > 0.0:
            n, width = take_axes(rows, r, sets[0], axes)
            o = zero(n)
            fold(sets, work, o, n, o, size, width)
            q = minimum(sets, curved, axes[0], folds, o, order, p)
            error = margin(width, span, abs(reference) + span)
        store(q, float("inf"), error, reference, sign, r, bounds)


@part_kernel
def conditional(sets, work, n, size, width):
    """Write nature's sequential answer p1(o1) p2(o2 | o1) ... over the tensor behind it."""
    levels, _, folds, _, _, p, order, _, axes, curved = work
    levels[size] = 1.0
    count = 1  # outcomes of the axes done so far
    for k in range(n):
        d = sets[0][axes[k], SIZE]
        rest = size // count
        for f in range(count - 1, -1, -1):  # backwards: products grow in place
            fold(sets, work, k, n, f * rest, rest, width)
            minimum(sets, curved, axes[k], folds, zero(n), order, p)
            x = levels[size + f]
            for j in range(d):
                levels[size + f * d + j] = x * p[j]
        count *= d


@kernel
def sequential_answers(sets, rows, work, asked, begin, out):
    """Write the sequential answer over the stored successors of wanted[i] to out[begin[i]:]."""
    sets, rows, work, asked = borrow((sets, rows, work, asked))
    wanted, value, sign, first, last = asked
    for i in range(first, last):
        r = wanted[i]
        size, _, _, _ = load(rows, r, value, sign, work[0])
        n, width = take_axes(rows, r, sets[0], work[8])
        conditional(sets, work, n, size, width)
        scatter(work[0], size, size, rows, r, out, begin[i])


@kernel
def products(sets, rows, work, asked, where, answer, begin, out):
    """Multiply out the marginals at answer[where[i]:] over the stored successors of wanted[i]."""
    sets, rows, work, asked = borrow((sets, rows, work, asked))
    wanted, _, _, first, last = asked
    head, tensor, axes = sets[0], work[0], work[8]
    for i in range(first, last):
        r = wanted[i]
        n, _ = take_axes(rows, r, head, axes)
        o = zero(n)
        tensor[0] = 1.0
        count, place = o + 1, where[i]
        for k in range(n):
            d = head[axes[k], SIZE]
            count = multiply(tensor, o, count, answer, place, d)
            place += d
        scatter(tensor, o, count, rows, r, out, begin[i])
