"""A model packed for row kernels: sets, rows and scratch memory as arrays, made once.

Axes of rows are put in a solver's order. All arrays are handed over as read-only views: numba tells
read-only arrays apart by type, and one type means one compilation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from rfmdp.inner.protocol import successor_starts
from rfmdp.kernels import layout
from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.lattice import LatticeMDP
from rfmdp.objective import Direction
from rfmdp.ragged import alike, entries, owners, segment_lengths, segment_sum, starts
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.sets.vertices import vertices_bulk
from rfmdp.threads import spread
from rfmdp.types import AnyArray, FloatArray, IntArray, frozen

Sets: TypeAlias = tuple[IntArray, FloatArray, FloatArray, int]  # see kernels.layout
Rows: TypeAlias = tuple[AnyArray, ...]  # see kernels.layout
Work: TypeAlias = tuple[Any, ...]  # arrays: see scratch
Corners: TypeAlias = tuple[IntArray, FloatArray]  # ptr (M + 1,) and vertices, d numbers each
Answers: TypeAlias = tuple[IntArray, FloatArray]  # where, answer: see kernels.layout
Solve: TypeAlias = Callable[[FloatArray, IntArray, Answers, FloatArray, FloatArray], object]
# fills bounds of rows and, if wanted, the marginals that attain them
NO_ANSWERS: Answers = (np.empty(0, dtype=np.int64), np.empty(0))

MANY = 2**60  # vertices of a set that has no list of them
APART = 64  # entries between arrays: more than a compiled loop takes at once


class PackedModel:
    """What every compiled inner solver holds: the same arrays, made once.

    Axes stay as stored, and only polytopes have their vertices listed, unless told otherwise.
    Not for use by several threads at a time: they would share the scratch memory.
    """

    def __init__(
        self,
        model: FactoredMDP,
        nature: Direction,
        rows: Rows | None = None,
        corners: Corners | None = None,
        memory: Callable[[FactoredMDP], Work] | None = None,
    ) -> None:
        self.model = model
        self.sign = -nature.sign
        self.rows = rows or pack_rows(model)
        self.sets = pack_sets(model.marginals, corners or corners_of(model))
        self._memory = memory or scratch
        self._scratch: dict[int, Work] = {}  # per slot, made when first needed

    def run(
        self, kernel: Callable[..., None], value: FloatArray, rows: IntArray, *arguments: Any
    ) -> None:
        """Call `kernel(sets, rows, work, asked, *arguments)` for parts of `rows`, on all threads.

        `asked` is the tuple of `kernels.layout`.
        """
        value, wanted = _plain(value, np.float64), _plain(rows, np.int64)

        def part(slot: int, part: slice) -> None:
            asked = (wanted, value, self.sign, part.start, part.stop)
            kernel(self.sets, self.rows, self.work(slot), asked, *arguments)

        weight = self.model.transitions / max(1, self.model.rows)
        spread(len(wanted), weight, part)

    def work(self, slot: int) -> Work:
        """Return the scratch memory of a slot."""
        if slot not in self._scratch:
            self._scratch[slot] = self._memory(self.model)
        return self._scratch[slot]

    def respond(self, solve: Solve, value: FloatArray, rows: IntArray) -> FloatArray:
        """Return the product of the marginals that `solve` finds, over the successors of `rows`."""
        from rfmdp.kernels.products import products

        return self.joint(products, value, rows, *self._answers(solve, value, rows))

    def joint(
        self, kernel: Callable[..., None], value: FloatArray, rows: IntArray, *arguments: Any
    ) -> FloatArray:
        """Return what `kernel(..., begin, out)` writes over the successors of `rows`."""
        begin = successor_starts(self.model, rows)
        out = np.empty(begin[-1])
        self.run(kernel, value, rows, *arguments, begin, out)
        return out

    def marginals(self, solve: Solve, value: FloatArray, rows: IntArray) -> FloatArray:
        """Return the marginals that `solve` finds for `rows` in the model's order, concatenated."""
        _, answer = self._answers(solve, value, rows)
        places, sizes = entries(self.model.marginal_ptr, rows), self.model.marginals.sizes
        row = owners(starts(segment_lengths(self.model.marginal_ptr)[rows]))
        solved, stored = self.rows[layout.MARGINALS][places], self.model.row_marginals[places]
        # equal marginals of a row keep their order
        place = np.empty(len(places), dtype=np.int64)
        place[np.lexsort((stored, row))] = np.lexsort((solved, row))
        return answer[entries(starts(sizes[solved]), place)]

    def _answers(self, solve: Solve, value: FloatArray, rows: IntArray) -> Answers:
        """Return where the marginals of every row start, and the marginals, solver's order."""
        ptr, sizes = self.model.marginal_ptr, self.model.marginals.sizes
        ends = starts(sizes[self.model.row_marginals[entries(ptr, rows)]])
        where = ends[starts(segment_lengths(ptr)[rows])]
        answers = where, np.empty(where[-1])
        solve(value, rows, answers, np.empty(self.model.rows), np.empty(self.model.rows))
        return answers


def _plain(array: AnyArray, kind: type) -> AnyArray:
    """Return an array as kernels know it: one type means one compilation."""
    plain: AnyArray = np.ascontiguousarray(array, dtype=kind)
    return frozen(plain)


def pack_sets(marginals: Marginals, corners: Corners) -> Sets:
    """Return the sets for the kernels, with known vertices."""
    sizes = marginals.sizes
    head = np.empty((len(marginals), 5), dtype=np.int64)
    head[:, layout.KIND], head[:, layout.SIZE] = marginals.kind, sizes
    ptr = starts(layout.LOWER + 3 * sizes)
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
    return head, data, frozen(np.ascontiguousarray(corners[1])), minimiser_address(marginals.kind)


def minimiser_address(kinds: AnyArray) -> int:
    """Return the address of the minimiser of Lp balls, 0 if there are none: it compiles slowly."""
    if not (kinds == Kind.LP).any():
        return 0
    from rfmdp.kernels.oracle import curved_address

    return curved_address()


def corners_of(model: FactoredMDP | LatticeMDP, which: IntArray | None = None) -> Corners:
    """Return the vertices of the marginals `which`; others have none.

    Polytopes are always listed, because their minimiser reads the vertices.
    """
    marginals = model.marginals
    listed = marginals.kind == Kind.POLYTOPE
    if which is not None:
        listed[which] = True
    numbers = np.flatnonzero(listed)
    ptr, flat = vertices_bulk(marginals, numbers)
    lengths = np.zeros(len(marginals), dtype=np.int64)
    lengths[numbers] = segment_lengths(ptr)
    return starts(lengths), flat


def branching_weight(model: FactoredMDP) -> IntArray:
    """Return an estimate (M,) of the number of vertices per marginal, to order the axes by.

    Factors with few vertices come first, because a tree branches on all factors but the last;
    sets without finitely many vertices come last.
    """
    marginals = model.marginals
    size = marginals.sizes.astype(np.float64)
    # a box of d outcomes has at most d * binomial(d - 1, (d - 1) // 2) vertices, about this
    weight = size * 2.0 ** np.minimum(size - 1.0, 50.0) / np.sqrt(np.maximum(size, 1.0))
    listed = segment_lengths(marginals.corner_ptr) / np.maximum(size, 1.0)
    kinds = [marginals.kind == kind for kind in (Kind.SINGLETON, Kind.POLYTOPE, Kind.LP)]
    weight = np.select(kinds, [np.ones(len(size)), listed, np.full(len(size), MANY)], weight)
    return np.minimum(weight, MANY).astype(np.int64)


def pack_rows(model: FactoredMDP, weight: IntArray | None = None) -> Rows:
    """Return the rows with the axes of every tensor ordered by ascending `weight` (M,).

    Without weights the axes stay as stored. Ties keep their order. Rows whose marginals agree in
    size and weight share one table that says where the reordered entries are stored.
    """
    ids, sizes = model.row_marginals, model.marginals.sizes
    ordered = ids.copy()
    kind = np.zeros(model.rows, dtype=np.int32)
    tables = [np.empty(0, dtype=np.int32)]
    groups: Iterable[tuple[IntArray, IntArray]] = ()
    if weight is None:
        weight = np.zeros(len(sizes), dtype=np.int64)
    else:
        types = np.unique(np.stack([sizes, weight]), axis=1, return_inverse=True)[1].reshape(-1)
        groups = alike(types[ids], model.marginal_ptr)
    for rows, places in groups:
        axes = np.argsort(weight[ids[places[0]]], kind="stable")
        if np.all(axes == np.arange(len(axes))):
            continue
        shape = sizes[ids[places[0]]]
        table = np.arange(np.prod(shape)).reshape(shape).transpose(axes).ravel()
        kind[rows] = len(tables)
        tables.append(table.astype(np.int32))
        ordered[places] = ids[places[:, axes]]
    arrays = (
        *(model.successor_ptr, model.successors, model.marginal_ptr, ordered, kind),
        *(starts([len(table) for table in tables]), np.concatenate(tables)),
    )
    return tuple(frozen(array) for array in arrays)


def scratch(model: FactoredMDP) -> Work:
    """Return memory for one thread's kernels, sized for the largest row of the model.

    With K joint outcomes, n marginals and d outcomes of the largest: levels (2 K, and K for every
    marginal with one outcome), the tensors along a path of the tree; slices (n d), bounds per
    depth; folds (K + 3 d); point and best (n d), the marginals of a candidate and of U; member
    (d + 1), a minimiser and its value; order (d); cursor (n), the next vertex per depth; classes
    (n d), d outcomes per depth for `kernels.exact`; axes (n); curved (d), a member of such a
    set. `kernels.layout` has their places.
    """
    size, n, d = largest(model)
    ones = model.marginals.sizes[model.row_marginals] == 1
    single = int(np.max(segment_sum(ones.astype(float), model.marginal_ptr), initial=0))
    floats = [(2 + single) * size + 8, (n + 3) * (d + 8), size + 3 * d, n * d, n * d, d + 8, d]
    require_memory(8 * sum(floats), f"Solving a row of {size} successors")
    *arrays, curved = zeros_apart(floats, np.float64)
    return (*arrays, *zeros_apart([d, n, n * d, n], np.int64), curved)


def zeros_apart(lengths: list[int], kind: type) -> list[AnyArray]:
    """Return arrays that lie apart from each other, and from all others.

    A compiled loop takes several entries at once only if what it writes is no closer than that to
    what it reads. So the order of its sums, and their last digits, would depend on where the
    system puts small arrays.
    """
    begin = starts([length + APART for length in lengths]) + APART
    memory = np.zeros(begin[-1], dtype=kind)
    pairs = zip(begin.tolist(), lengths, strict=False)
    return [memory[first : first + length] for first, length in pairs]


def largest(model: FactoredMDP) -> tuple[int, int, int]:
    """Return the most joint outcomes and marginals of a row, and outcomes of a marginal."""
    lengths = [segment_lengths(ptr) for ptr in (model.successor_ptr, model.marginal_ptr)]
    size, n, d = (int(np.max(count, initial=1)) for count in (*lengths, model.marginals.sizes))
    return size, n, d
