"""A model bound for row kernels: packed sets and rows, scratch memory, nature's sign."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.inner.layout import Layout, Work, pack_sets, scratch
from rfmdp.inner.threads import spread
from rfmdp.kernels.oracle import CORNERS, CORNERS_END
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MIN, Direction
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray, frozen


class Bound:
    """What every compiled inner solver holds: the same arrays, made once.

    Not for use by several threads at a time: they would share the scratch memory.
    """

    def __init__(
        self,
        model: FactoredMDP,
        nature: Direction,
        layout: Layout,
        corners: tuple[IntArray, FloatArray],
        memory: Callable[[FactoredMDP], Work] = scratch,
    ) -> None:
        self.model = model
        self.sign = 1.0 if nature is MIN else -1.0
        self.layout = layout
        self.rows = layout.rows
        self.sets = pack_sets(model.marginals, *corners)
        self._memory = memory
        self._scratch: dict[int, Work] = {}  # per slot, made when first needed

    def run(self, wanted: IntArray, kernel: Callable[[Work, slice], None]) -> None:
        """Call `kernel(work, part)` for parts of the wanted rows, on all threads."""
        from numba import get_num_threads

        model = self.model
        weight = model.transitions / max(1, model.rows)
        spread(
            len(wanted), weight, lambda slot, part: kernel(self.work(slot), part), get_num_threads()
        )

    def work(self, slot: int) -> Work:
        """Return the scratch memory of a slot."""
        if slot not in self._scratch:
            self._scratch[slot] = self._memory(self.model)
        return self._scratch[slot]

    def row_axes(self, row: int) -> IntArray:
        """Return the marginals of a row in the solver's order, (n,)."""
        pointers = self.model.marginal_ptr
        axes: IntArray = self.rows[3][pointers[row] : pointers[row + 1]].astype(np.int64)
        return axes

    def tensor(self, value: FloatArray, row: int) -> tuple[FloatArray, float]:
        """Return sign * (value - reference) of a row, solver order, and the reference."""
        pointers = self.model.successor_ptr
        stored = value[self.model.successors[pointers[row] : pointers[row + 1]]]
        tables, kind = self.rows[5], self.rows[4][row]
        gather = self.rows[6][tables[kind] : tables[kind + 1]]
        ordered = stored[gather] if len(gather) else stored
        return self.sign * (ordered - stored[0]), float(stored[0])

    def lacks_vertices(self) -> BoolArray:
        """Return (R,): rows with a factor, not the last one, whose vertices are not listed."""
        head, pointers = self.sets[0], self.model.marginal_ptr
        lacking = head[self.rows[3], CORNERS] == head[self.rows[3], CORNERS_END]
        lacking[pointers[1:][np.diff(pointers) > 0] - 1] = False
        ends = np.concatenate([[0], np.cumsum(lacking)])
        return ends[pointers[1:]] > ends[pointers[:-1]]

    def places(self, rows: IntArray) -> IntArray:
        """Return where the marginals of every row start in a concatenation, (N + 1,)."""
        return np.concatenate([[0], np.cumsum(self._widths[rows])])

    @cached_property
    def _widths(self) -> IntArray:
        """Outcomes of all marginals of a row together, (R,)."""
        sizes = self.model.marginals.sizes[self.model.row_marginals]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        return np.diff(ends[self.model.marginal_ptr])

    def products(self, rows: IntArray, where: IntArray, answer: FloatArray) -> FloatArray:
        """Multiply marginals (solver order) out over the successors of `rows`, concatenated."""
        from rfmdp.kernels.plain import products

        begin = successor_starts(self.model, rows)
        out = np.empty(begin[-1])

        def part(work: Work, chosen: slice) -> None:
            products(
                self.sets, self.rows, work, rows[chosen], where[chosen], answer, begin[chosen], out
            )

        self.run(rows, part)
        return out


class RowSolver:
    """What a solver that finds marginals of rows answers with them, for its `_run` of a part.

    `_run(value, rows, where, answer, below, above)` fills both sides of the rows and, if `where`
    is not empty, writes the marginals of rows[i] to answer[where[i]:].
    """

    _bound: Bound
    _run: Callable[..., object]

    def respond(self, value: FloatArray, rows: IntArray) -> FloatArray:
        """Return the best products found over the successors of `rows`, concatenated."""
        where, answer = self._answers(value, rows)
        return self._bound.products(rows, where, answer)

    def marginals(self, value: FloatArray, rows: IntArray) -> FloatArray:
        """Return the best marginals found for `rows` in the model's order, concatenated."""
        return stored_order(self._bound, rows, *self._answers(value, rows))

    def _answers(self, value: FloatArray, rows: IntArray) -> tuple[IntArray, FloatArray]:
        where = self._bound.places(rows)
        answer, ignored = np.empty(where[-1]), np.empty(self._bound.model.rows)
        self._run(value, rows, where, answer, ignored, ignored.copy())
        return where, answer


def inputs(value: FloatArray, rows: IntArray) -> tuple[FloatArray, IntArray]:
    """Return both as kernels know them: one type means one compilation."""
    values: AnyArray = np.ascontiguousarray(value, dtype=np.float64)
    wanted: AnyArray = np.ascontiguousarray(rows, dtype=np.int64)
    return frozen(values), frozen(wanted)


def successor_starts(model: FactoredMDP, rows: IntArray) -> IntArray:
    """Return where the successors of every row start in a concatenation, (N + 1,)."""
    widths = model.successor_ptr[rows + 1] - model.successor_ptr[rows]
    return np.concatenate([[0], np.cumsum(widths)])


def stored_order(bound: Bound, rows: IntArray, where: IntArray, answer: FloatArray) -> FloatArray:
    """Return marginals given in the solver's axis order in the model's order."""
    out = answer.copy()
    kinds = bound.rows[4][rows]
    sizes = bound.model.marginals.sizes
    for kind in np.unique(kinds):
        if kind == 0:
            continue
        members = np.flatnonzero(kinds == kind)
        row = rows[members[0]]
        stored = bound.model.row_marginals[slice(*bound.model.marginal_ptr[row : row + 2])]
        starts = np.concatenate([[0], np.cumsum(sizes[stored])])
        axes = bound.layout.axes[kind]
        # entry i of the solver's order belongs to place[i] of the stored one
        place = np.concatenate([np.arange(starts[a], starts[a + 1]) for a in axes])
        target = where[members][:, None] + place
        out[target] = answer[where[members][:, None] + np.arange(len(place))]
    return out


def branching_weight(model: FactoredMDP) -> IntArray:
    """Return an estimate of the number of vertices per marginal, to order the axes by.

    Factors with few vertices come first, because a tree branches on all factors but the last;
    sets without finitely many vertices come last.
    """
    from rfmdp.sets.marginals import Kind

    marginals = model.marginals
    size = marginals.sizes.astype(np.float64)
    # a box of d outcomes has at most d * binomial(d - 1, (d - 1) // 2) vertices, about this
    weight = size * 2.0 ** np.minimum(size - 1.0, 50.0) / np.sqrt(np.maximum(size, 1.0))
    weight = np.where(marginals.kind == Kind.SINGLETON, 1.0, weight)
    corners = np.diff(marginals.corner_ptr) / np.maximum(size, 1.0)
    weight = np.where(marginals.kind == Kind.POLYTOPE, corners, weight)
    weight = np.where(marginals.kind > Kind.POLYTOPE, 2.0**60, weight)
    weight = np.where(marginals.kind == Kind.LP, 2.0**60, weight)
    return np.minimum(weight, 2.0**60).astype(np.int64)


def corners_of(model: FactoredMDP, which: IntArray) -> tuple[IntArray, FloatArray]:
    """Return the vertices of the marginals `which` as (ptr (M + 1,), flat); others have none.

    Polytopes are always listed, because their minimiser reads the vertices.
    """
    from rfmdp.sets.marginals import Kind
    from rfmdp.sets.vertices import vertices_bulk

    marginals = model.marginals
    listed = np.zeros(len(marginals), dtype=np.bool_)
    listed[which] = True
    listed |= marginals.kind == Kind.POLYTOPE
    wanted = np.flatnonzero(listed)
    ptr, flat = vertices_bulk(marginals, wanted)
    lengths = np.zeros(len(marginals), dtype=np.int64)
    lengths[wanted] = np.diff(ptr)
    return np.concatenate([[0], np.cumsum(lengths)]), flat


def require_vertices(model: FactoredMDP, which: IntArray, limit: int, solver: str) -> None:
    """Raise `UnsupportedError` if a marginal has no finite list of at most `limit` vertices."""
    from rfmdp.sets.vertices import count_vertices

    sets = model.marginals
    for j in which:
        try:
            count = count_vertices(sets[int(j)])
        except UnsupportedError as error:
            raise UnsupportedError(f"{solver}: {model.marginal_name(int(j))}: {error}") from error
        if count > limit:
            raise UnsupportedError(
                f"{solver}: {model.marginal_name(int(j))} has {count} vertices, more than the "
                f"limit of {limit}; use Exact or McCormick, or raise the limit."
            )
