"""Sequential contraction, step 1 of `kernels.exact` alone, and products over successors."""

import numpy as np

from rfmdp.kernels.decorator import inline_kernel, kernel
from rfmdp.kernels.exact import fold
from rfmdp.kernels.layout import AXES, FIRST, HEAD, LAST, LEVELS, MEMBER, SIZE
from rfmdp.kernels.oracle import minimum
from rfmdp.kernels.primitives import multiply
from rfmdp.kernels.rows import load, scatter, store, take_axes, terms_of


@kernel
def sequential_rows(sets, rows, work, asked, bounds):
    """Fill the relaxation's side of every wanted row, and the open one with infinity."""
    axes = work[AXES]
    for i in range(asked[FIRST], asked[LAST]):
        row, size = load(rows, asked, i, work[LEVELS])
        r, _, span = row
        q, terms = 0.0, 0
        if span > 0.0:
            n, width = take_axes(rows, r, sets[HEAD], axes)
            terms = terms_of(sets[HEAD], axes, n)
            fold(sets, work, 0, n, 0, size, width)
            q = minimum(sets, work, axes[0])
        store(q, np.inf, terms, row, asked, bounds)


@inline_kernel
def conditional(sets, work, n, size, width):
    """Write nature's sequential answer p1(o1) p2(o2 | o1) ... over the tensor behind it."""
    levels, p, axes = work[LEVELS], work[MEMBER], work[AXES]
    levels[size] = 1.0
    count = 1  # outcomes of the axes done so far
    for k in range(n):
        d = sets[HEAD][axes[k], SIZE]
        rest = size // count
        for f in range(count - 1, -1, -1):  # backwards: products grow in place
            fold(sets, work, k, n, f * rest, rest, width)
            minimum(sets, work, axes[k])
            x = levels[size + f]
            for j in range(d):
                levels[size + f * d + j] = x * p[j]
        count *= d


@kernel
def sequential_answers(sets, rows, work, asked, begin, out):
    """Write the sequential answer over the stored successors of wanted[i] to out[begin[i]:]."""
    for i in range(asked[FIRST], asked[LAST]):
        row, size = load(rows, asked, i, work[LEVELS])
        r, _, _ = row
        n, width = take_axes(rows, r, sets[HEAD], work[AXES])
        conditional(sets, work, n, size, width)
        scatter(work[LEVELS], size, size, rows, r, out, begin[i])


@kernel
def products(sets, rows, work, asked, where, answer, begin, out):
    """Multiply out the marginals at answer[where[i]:] over the stored successors of wanted[i]."""
    wanted, _, _, first, last = asked
    head, tensor, axes = sets[HEAD], work[LEVELS], work[AXES]
    for i in range(first, last):
        r = wanted[i]
        n, _ = take_axes(rows, r, head, axes)
        tensor[0] = 1.0
        count, place = 1, where[i]
        for k in range(n):
            d = head[axes[k], SIZE]
            count = multiply(tensor, 0, count, answer, place, d)
            place += d
        scatter(tensor, 0, count, rows, r, out, begin[i])
