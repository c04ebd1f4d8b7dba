"""What kernels need of a model, prepared once: packed sets, rows in a solver's axis order.

All arrays are handed over as read-only views: numba tells read-only arrays apart by type, and
one type means one compilation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP
from rfmdp.ragged import owners, renumbered, segment_sum, stable_order, starts
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.sets.vertices import vertices_bulk
from rfmdp.types import AnyArray, FloatArray, IntArray, frozen

Sets: TypeAlias = tuple[IntArray, FloatArray, FloatArray, int]  # see kernels.layout
Rows: TypeAlias = tuple[AnyArray, ...]  # see kernels.rows
Work: TypeAlias = tuple[Any, ...]  # arrays: see scratch
Corners: TypeAlias = tuple[IntArray, FloatArray]  # ptr (M + 1,) and vertices, d numbers each

CURVED = (Kind.LP, Kind.KL, Kind.SUBSETS)  # whose minimiser is compiled only when they occur
MANY = 2**60  # vertices of a set that has no list of them


def pack_sets(marginals: Marginals, corners: Corners) -> Sets:
    """Return the sets for the kernels, with known vertices."""
    from rfmdp.kernels import layout

    sizes = marginals.sizes
    head = np.empty((len(marginals), 5), dtype=np.int64)
    head[:, layout.KIND], head[:, layout.SIZE] = marginals.kind, sizes
    tables = marginals.kind == Kind.SUBSETS
    lengths = layout.LOWER + 3 * sizes + np.where(tables, np.diff(marginals.corner_ptr), 0)
    ptr = starts(lengths)
    head[:, layout.PLACE] = begin = ptr[:-1]
    head[:, layout.CORNERS], head[:, layout.CORNERS_END] = corners[0][:-1], corners[0][1:]
    data = np.empty(ptr[-1])
    lower_sum = segment_sum(marginals.lower, marginals.outcome_ptr)
    data[begin + layout.FREE] = np.maximum(0.0, 1.0 - lower_sum)
    data[begin + layout.RADIUS] = marginals.radius
    data[begin + layout.EXPONENT] = marginals.exponent
    owner = owners(marginals.outcome_ptr)
    within = np.arange(len(owner)) - marginals.outcome_ptr[owner]
    place, size = begin[owner] + layout.LOWER + within, sizes[owner]
    data[place] = marginals.lower
    data[place + size] = marginals.upper - marginals.lower
    data[place + 2 * size] = marginals.nominal
    for j in np.flatnonzero(tables):
        first, last = marginals.corner_ptr[j : j + 2]
        at = begin[j] + layout.LOWER + 3 * sizes[j]
        data[at : at + last - first] = marginals.corners[first:last]
    return head, data, frozen(np.ascontiguousarray(corners[1])), minimiser(marginals.kind)


def minimiser(kinds: AnyArray) -> int:
    """Return the address of the minimiser of curved and subset sets, 0 if there are none."""
    if not np.isin(kinds, CURVED).any():
        return 0
    from rfmdp.kernels.curved import curved_address

    return curved_address()


def corners_of(model: FactoredMDP, which: IntArray | None = None) -> Corners:
    """Return the vertices of the marginals `which`; others have none.

    Polytopes are always listed, because their minimiser reads the vertices.
    """
    marginals = model.marginals
    listed = marginals.kind == Kind.POLYTOPE
    if which is not None:
        listed[which] = True
    wanted = np.flatnonzero(listed)
    ptr, flat = vertices_bulk(marginals, wanted)
    lengths = np.zeros(len(marginals), dtype=np.int64)
    lengths[wanted] = np.diff(ptr)
    return starts(lengths), flat


def branching_weight(model: FactoredMDP) -> IntArray:
    """Return an estimate of the number of vertices per marginal, to order the axes by.

    Factors with few vertices come first, because a tree branches on all factors but the last;
    sets without finitely many vertices come last.
    """
    marginals = model.marginals
    size = marginals.sizes.astype(np.float64)
    # a box of d outcomes has at most d * binomial(d - 1, (d - 1) // 2) vertices, about this
    weight = size * 2.0 ** np.minimum(size - 1.0, 50.0) / np.sqrt(np.maximum(size, 1.0))
    weight = np.where(marginals.kind == Kind.SINGLETON, 1.0, weight)
    listed = np.diff(marginals.corner_ptr) / np.maximum(size, 1.0)
    weight = np.where(marginals.kind == Kind.POLYTOPE, listed, weight)
    weight = np.where(np.isin(marginals.kind, CURVED), MANY, weight)
    return np.minimum(weight, MANY).astype(np.int64)


class Layout(NamedTuple):
    """Rows with the axes of every successor tensor in a solver's order."""

    rows: Rows
    axes: tuple[IntArray, ...]  # per class: axis k of the solver is axis axes[c][k] of the model


def pack_rows(model: FactoredMDP, weight: IntArray | None = None) -> Layout:
    """Return the rows with the axes of every tensor ordered by ascending `weight` (M,).

    Without weights the axes stay as stored. Ties keep their order. Rows whose marginals agree in
    size and weight share one table that says where the reordered entries are stored.
    """
    ids, sizes = model.row_marginals, model.marginals.sizes
    ordered, kind = ids.copy(), np.zeros(model.rows, dtype=np.int32)
    tables, permutations = [np.empty(0, dtype=np.int32)], [np.empty(0, dtype=np.int64)]
    moved = _reordered(model, weight) if weight is not None and len(ids) else ()
    for axes, rows, places in moved:
        shape = sizes[ids[places[0]]]
        table = np.arange(np.prod(shape)).reshape(shape).transpose(axes).ravel()
        kind[rows] = len(tables)
        tables.append(table.astype(np.int32))
        permutations.append(axes)
        ordered[places] = ids[places[:, axes]]
    arrays = (
        *(model.successor_ptr, model.successors, model.marginal_ptr, ordered, kind),
        *(starts([len(table) for table in tables]), np.concatenate(tables)),
    )
    return Layout(tuple(frozen(array) for array in arrays), tuple(permutations))


def _reordered(
    model: FactoredMDP, weight: IntArray
) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
    """Yield the axes (n,) of rows (N,) that get another order, and places (N, n) of marginals.

    The marginals of rows that come together agree in size and weight.
    """
    _, types = np.unique(np.stack([model.marginals.sizes, weight]), axis=1, return_inverse=True)
    types, arity = types.reshape(-1), np.diff(model.marginal_ptr)
    for n in np.unique(arity[arity > 1]):
        rows = np.flatnonzero(arity == n)
        places = model.marginal_ptr[rows][:, None] + np.arange(n)
        own = types[model.row_marginals[places]]
        code = np.zeros(len(rows), dtype=np.int64)
        for column in own.T:
            # renumber after each column, so that the code never outgrows the number of rows
            code = renumbered(code * (int(own.max()) + 1) + column)
        order = stable_order(code)
        for members in np.split(order, np.flatnonzero(np.diff(code[order])) + 1):
            axes = np.argsort(weight[model.row_marginals[places[members[0]]]], kind="stable")
            if np.any(axes != np.arange(n)):
                yield axes, rows[members], places[members]


def scratch(model: FactoredMDP) -> Work:
    """Return memory for one thread's kernels, sized for the largest row of the model.

    With K joint outcomes, n marginals and d outcomes of the largest: levels (2 K, and K for every
    marginal with one outcome), the tensors along a path of the tree; slices (n d), bounds per
    depth; folds (K + 3 d); point and best (n d), the marginals of a candidate and of U; p (d + 1);
    order (d); cursor (n + n d), the next vertex per depth and, behind these, d outcomes per depth
    for `kernels.symmetry`; axes (n); curved (d), a member of such a set.
    """
    size, n, d = _largest(model)
    ones = model.marginals.sizes[model.row_marginals] == 1
    single = int(np.max(segment_sum(ones.astype(float), model.marginal_ptr), initial=0))
    floats = [(2 + single) * size + 8, (n + 3) * (d + 8), size + 3 * d, n * d, n * d, d + 8]
    require_memory(8 * sum(floats), f"Solving a row of {size} successors")
    return (
        *(np.zeros(length) for length in floats),
        *(np.zeros(length, dtype=np.int64) for length in (d, n + n * d, n)),
        np.zeros(d),
    )


def interval_scratch(model: FactoredMDP) -> Work:
    """Return memory for one thread of `kernels.interval`: tensor (K), box (2 K), order, axes."""
    from rfmdp.kernels.primitives import STACK

    size, n, _ = _largest(model)
    order, axes = np.zeros(size + STACK, dtype=np.int64), np.zeros(n, dtype=np.int64)
    return np.zeros(size), np.zeros(2 * size), order, axes


def ball_scratch(model: FactoredMDP, kinds: AnyArray) -> Work:
    """Return memory for one thread of `kernels.radius_sum`: a set, v, p, order, curved.

    kinds : of the balls
    """
    from rfmdp.kernels.layout import LOWER
    from rfmdp.kernels.primitives import STACK

    size, _, _ = _largest(model)
    ball = (
        np.zeros((1, 5), dtype=np.int64),
        np.zeros(LOWER + 3 * size),
        np.zeros(0),
        minimiser(kinds),
    )
    order = np.zeros(size + STACK, dtype=np.int64)
    return ball, np.zeros(size), np.zeros(size + 1), order, np.zeros(size)


def _largest(model: FactoredMDP) -> tuple[int, int, int]:
    """Return the most joint outcomes and marginals of a row, and outcomes of a marginal."""
    counts = np.diff(model.successor_ptr), np.diff(model.marginal_ptr), model.marginals.sizes
    size, n, d = (int(np.max(count, initial=1)) for count in counts)
    return size, n, d
