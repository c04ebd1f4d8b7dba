"""Outcomes that are interchangeable: of vertices that differ only by swapping them, one is enough.

If a row's tensor and its boxes stay what they are when two outcomes change places in every axis
of one size at once, these outcomes are *alike*. Likeness is an equivalence, and all permutations
within its classes change nothing. So a tree over vertices of the first factors needs only those
of a first factor whose entries fall within each class; those of the next factor that fall within
each class whose entries of the first were equal; and so on, because the permutations that are
left to the next factor leave the vertices before it as they are.

Classes are chains: before[i] is the outcome next below i that is alike, or -1.
"""

from rfmdp.kernels.decorator import inline_kernel, step_kernel
from rfmdp.kernels.layout import BOX, CORNERS, CORNERS_END, KIND, LOWER, PLACE, SIZE
from rfmdp.rounding import RENAMED

WORTH = 200.0  # leaves of a tree from which on it pays to look


@step_kernel
def alike_outcomes(head, data, axes, n, levels, size, image, before):
    """Fill before[0 : d] for the tensor levels[0 : size], d the size of the last axis.

    Returns d, or 0 if no two outcomes are alike. image (size,) is scratch memory.
    """
    leaves, d, found = 1.0, head[axes[n - 1], SIZE], False
    for k in range(n - 1):
        m = axes[k]
        leaves *= (head[m, CORNERS_END] - head[m, CORNERS]) // head[m, SIZE]
    if leaves < WORTH:
        return 0
    for j in range(d):
        before[j] = -1
        for i in range(j - 1, -1, -1):
            if same_bounds(head, data, axes, n, d, i, j) and same_values(
                head, axes, n, levels, size, image, d, i, j
            ):
                before[j], found = i, True
                break
    return d if found else 0


@inline_kernel
def same_bounds(head, data, axes, n, d, i, j):
    """Return whether outcomes i and j have the same bounds in all axes of size d, boxes all."""
    for k in range(n):
        m = axes[k]
        if head[m, SIZE] == d:
            lower = head[m, PLACE] + LOWER
            if head[m, KIND] > BOX or data[lower + i] != data[lower + j]:
                return False
            if data[lower + d + i] != data[lower + d + j]:
                return False
    return True


@inline_kernel
def same_values(head, axes, n, levels, size, image, d, i, j):
    """Return whether the tensor stays the same if i and j change places in all axes of size d."""
    image[0], count = 0.0, 1
    for k in range(n):
        wide = head[axes[k], SIZE]
        for f in range(count - 1, -1, -1):
            base = image[f] * wide
            for o in range(wide - 1, -1, -1):
                image[f * wide + o] = base + o
            if wide == d:
                image[f * wide + i], image[f * wide + j] = base + j, base + i
        count *= wide
    f = 0
    while f < size and levels[f] == levels[int(image[f])]:
        f += 1
    return f == size


@inline_kernel
def falls(corners, c, d, before, at):
    """Return whether the entries of a vertex fall within every class, rounding aside."""
    for i in range(d):
        j = before[at + i]
        if j >= 0 and corners[c + i] > corners[c + j] + RENAMED:
            return False
    return True


@inline_kernel
def split_classes(corners, c, d, before, at, then):
    """Fill before[then : then + d] with the classes whose entries of a vertex are equal."""
    for i in range(d):
        j = before[at + i]
        before[then + i] = j if j >= 0 and corners[c + i] == corners[c + j] else -1
