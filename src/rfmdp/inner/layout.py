"""What kernels need of a model, prepared once: packed sets, rows in a solver's axis order.

All arrays are handed over as read-only views: numba tells read-only arrays apart by type, and
one type means one compilation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from rfmdp.kernels.oracle import (
    CORNERS,
    CORNERS_END,
    EXPONENT,
    FREE,
    KIND,
    LOWER,
    PLACE,
    RADIUS,
    SIZE,
)
from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.types import AnyArray, FloatArray, IntArray, frozen

Sets: TypeAlias = tuple[IntArray, FloatArray, FloatArray]  # head, data, corners
Rows: TypeAlias = tuple[AnyArray, ...]  # see kernels.rows
Work: TypeAlias = tuple[AnyArray, ...]  # see scratch


def pack_sets(marginals: Marginals, corner_ptr: IntArray, corners: FloatArray) -> Sets:
    """Return the sets for the kernels, with known vertices `corners` (ptr of shape (M + 1,))."""
    count, sizes = len(marginals), marginals.sizes
    head = np.empty((count, 5), dtype=np.int64)
    head[:, KIND], head[:, SIZE] = marginals.kind, sizes
    tables = marginals.kind == Kind.SUBSETS
    lengths = LOWER + 3 * sizes + np.where(tables, np.diff(marginals.corner_ptr), 0)
    head[:, PLACE] = np.concatenate([[0], np.cumsum(lengths)[:-1]]) if count else []
    head[:, CORNERS], head[:, CORNERS_END] = corner_ptr[:-1], corner_ptr[1:]
    data = np.empty(int(np.sum(lengths)))
    if count:
        lower_sum = np.add.reduceat(marginals.lower, marginals.outcome_ptr[:-1])
        data[head[:, PLACE] + FREE] = np.maximum(0.0, 1.0 - lower_sum)
        data[head[:, PLACE] + RADIUS] = marginals.radius
        data[head[:, PLACE] + EXPONENT] = marginals.exponent
        within = np.arange(len(marginals.lower)) - np.repeat(marginals.outcome_ptr[:-1], sizes)
        place = np.repeat(head[:, PLACE] + LOWER, sizes) + within
        data[place] = marginals.lower
        data[place + np.repeat(sizes, sizes)] = marginals.upper - marginals.lower
        data[place + 2 * np.repeat(sizes, sizes)] = marginals.nominal
    for j in np.flatnonzero(tables):
        begin, end = marginals.corner_ptr[j : j + 2]
        at = head[j, PLACE] + LOWER + 3 * sizes[j]
        data[at : at + end - begin] = marginals.corners[begin:end]
    return head, data, np.ascontiguousarray(corners)


@dataclass(frozen=True, slots=True)
class Layout:
    """Rows with the axes of every successor tensor in a solver's order."""

    rows: Rows
    axes: tuple[IntArray, ...]  # per class: axis k of the solver is axis axes[c][k] of the model


def pack_rows(model: FactoredMDP, weight: IntArray | None = None) -> Layout:
    """Return the rows with the axes of every tensor ordered by ascending `weight` (M,).

    Without weights the axes stay as stored. Ties keep their order. Rows whose marginals agree in
    size and weight share one table that says where the reordered entries are stored.
    """
    ids = model.row_marginals
    kind = np.zeros(model.rows, dtype=np.int32)
    tables, permutations = [np.empty(0, dtype=np.int32)], [np.empty(0, dtype=np.int64)]
    if weight is None or not len(ids):
        return _layout(model, ids, kind, tables, permutations)
    ordered = ids.copy()
    sizes = model.marginals.sizes
    _, types = np.unique(np.stack([sizes, weight]), axis=1, return_inverse=True)
    types = types.reshape(-1)
    arity = np.diff(model.marginal_ptr)
    for n in np.unique(arity[arity > 1]):
        rows = np.flatnonzero(arity == n)
        places = model.marginal_ptr[rows][:, None] + np.arange(n)
        for members in _classes(types[ids[places]]):
            sample = ids[places[members[0]]]
            axes = np.argsort(weight[sample], kind="stable")
            if np.array_equal(axes, np.arange(n)):
                continue
            shape = sizes[sample]
            table = np.arange(np.prod(shape)).reshape(shape).transpose(axes).ravel()
            tables.append(table.astype(np.int32))
            permutations.append(axes)
            kind[rows[members]] = len(tables) - 1
            ordered[places[members]] = ids[places[members][:, axes]]
    return _layout(model, ordered, kind, tables, permutations)


def _classes(types: IntArray) -> list[IntArray]:
    """Group equal lines of a (N, n) array of small integers; returns the members per group."""
    code = np.zeros(len(types), dtype=np.int64)
    for column in types.T:
        # renumber after each column, so that the code never outgrows the number of lines
        _, code = np.unique(code * (int(types.max()) + 1) + column, return_inverse=True)
    order = np.argsort(code, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(code[order])) + 1)


def _layout(
    model: FactoredMDP,
    marginals: AnyArray,
    kind: AnyArray,
    tables: list[AnyArray],
    permutations: list[IntArray],
) -> Layout:
    pointers = np.concatenate([[0], np.cumsum([len(table) for table in tables])])
    arrays = (
        model.successor_ptr,
        model.successors,
        model.marginal_ptr,
        marginals,
        kind,
        pointers,
        np.concatenate(tables),
    )
    return Layout(tuple(frozen(array) for array in arrays), tuple(permutations))


def scratch(model: FactoredMDP) -> Work:
    """Return memory for one thread's kernels, sized for the largest row of the model.

    With K joint outcomes, n marginals and d outcomes of the largest: levels (2 K, and K for every
    marginal with one outcome), the tensors along a path of the tree; slices (n d), bounds per
    depth; folds (K + 3 d); point and best (n d), the marginals of a candidate and of U; p (d);
    order (d); cursor (n), the next vertex per depth; axes (n).
    """
    size = int(np.max(np.diff(model.successor_ptr), initial=1))
    n = int(np.max(np.diff(model.marginal_ptr), initial=1))
    d = int(np.max(model.marginals.sizes, initial=1))
    ones = np.concatenate([[0], np.cumsum(model.marginals.sizes[model.row_marginals] == 1)])
    single = int(np.max(np.diff(ones[model.marginal_ptr]), initial=0))
    floats = [(2 + single) * size + 8, (n + 3) * (d + 8), size + 3 * d, n * d, n * d, d + 8]
    integers = [d, n, n]
    require_memory(8 * sum(floats), f"Solving a row of {size} successors")
    return tuple(np.zeros(length) for length in floats) + tuple(
        np.zeros(length, dtype=np.int64) for length in integers
    )


def interval_scratch(model: FactoredMDP) -> Work:
    """Return memory for one thread of `kernels.interval`: tensor, lower, upper (K), order, axes.

    `order` has room for the parts that its sort puts off.
    """
    size = int(np.max(np.diff(model.successor_ptr), initial=1))
    n = int(np.max(np.diff(model.marginal_ptr), initial=1))
    floats = tuple(np.zeros(size) for _ in range(3))
    return *floats, np.zeros(size + 128, dtype=np.int64), np.zeros(n, dtype=np.int64)
