"""A model packed for row kernels: sets, rows and scratch memory as arrays, nature's sign."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np

from rfmdp.inner.packing import Corners, Layout, Work, corners_of, pack_rows, pack_sets, scratch
from rfmdp.inner.protocol import PreparedRows, Side, successor_starts
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MIN, Direction
from rfmdp.ragged import segment, segment_any, segment_sum, starts
from rfmdp.threads import spread
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray, frozen

Answers: TypeAlias = tuple[IntArray, FloatArray]  # where, answer: see kernels.rows
Solve: TypeAlias = Callable[[FloatArray, IntArray, Answers, FloatArray, FloatArray], object]
# fills bounds of rows and, if wanted, the marginals that attain them
NO_ANSWERS: Answers = (np.empty(0, dtype=np.int64), np.empty(0))


class PackedModel:
    """What every compiled inner solver holds: the same arrays, made once.

    Axes stay as stored, and only polytopes have their vertices listed, unless told otherwise.
    Not for use by several threads at a time: they would share the scratch memory.
    """

    def __init__(
        self,
        model: FactoredMDP,
        nature: Direction,
        layout: Layout | None = None,
        corners: Corners | None = None,
        memory: Callable[[FactoredMDP], Work] = scratch,
    ) -> None:
        self.model = model
        self.sign = 1.0 if nature is MIN else -1.0
        self.rows, self._axes = layout or pack_rows(model)
        self.sets = pack_sets(model.marginals, corners or corners_of(model))
        self._memory = memory
        self._scratch: dict[int, Work] = {}  # per slot, made when first needed

    def run(
        self, kernel: Callable[..., None], value: FloatArray, rows: IntArray, *arguments: Any
    ) -> None:
        """Call `kernel(sets, rows, work, asked, *arguments)` for parts of `rows`, on all threads.

        `asked` is the tuple of `kernels.rows`.
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
        from rfmdp.kernels.sequential import products

        where, answer = self._answers(solve, value, rows)
        begin = successor_starts(self.model, rows)
        out = np.empty(begin[-1])
        self.run(products, value, rows, where, answer, begin, out)
        return out

    def marginals(self, solve: Solve, value: FloatArray, rows: IntArray) -> FloatArray:
        """Return the marginals that `solve` finds for `rows` in the model's order, concatenated."""
        where, answer = self._answers(solve, value, rows)
        out = answer.copy()
        kinds = self.rows[4][rows]
        sizes = self.model.marginals.sizes
        for kind in np.unique(kinds[kinds > 0]):  # kind 0 is stored in the solver's order
            members = np.flatnonzero(kinds == kind)
            row = rows[members[0]]
            stored = self.model.row_marginals[segment(self.model.marginal_ptr, row)]
            begin = starts(sizes[stored])
            axes = self._axes[kind]
            # entry i of the solver's order belongs to place[i] of the stored one
            place = np.concatenate([np.arange(begin[a], begin[a + 1]) for a in axes])
            target = where[members][:, None] + place
            out[target] = answer[where[members][:, None] + np.arange(len(place))]
        return out

    def _answers(self, solve: Solve, value: FloatArray, rows: IntArray) -> Answers:
        """Return where the marginals of every row start, and the marginals, solver's order."""
        where = starts(self._widths[rows])
        answers = where, np.empty(where[-1])
        solve(value, rows, answers, np.empty(self.model.rows), np.empty(self.model.rows))
        return answers

    def row_axes(self, row: int) -> IntArray:
        """Return the marginals of a row in the solver's order, (n,)."""
        pointers = self.model.marginal_ptr
        axes: IntArray = self.rows[3][segment(pointers, row)].astype(np.int64)
        return axes

    def tensor(self, value: FloatArray, row: int) -> tuple[FloatArray, float]:
        """Return sign * (value - reference) of a row, solver order, and the reference."""
        pointers = self.model.successor_ptr
        stored = value[self.model.successors[segment(pointers, row)]]
        tables, kind = self.rows[5], self.rows[4][row]
        gather = self.rows[6][segment(tables, kind)]
        ordered = stored[gather] if len(gather) else stored
        return self.sign * (ordered - stored[0]), float(stored[0])

    def lacks_vertices(self) -> BoolArray:
        """Return (R,): rows with a factor, not the last one, whose vertices are not listed."""
        from rfmdp.kernels.layout import CORNERS, CORNERS_END

        head, pointers = self.sets[0], self.model.marginal_ptr
        lacking = head[self.rows[3], CORNERS] == head[self.rows[3], CORNERS_END]
        lacking[pointers[1:][np.diff(pointers) > 0] - 1] = False
        return segment_any(lacking, pointers)

    @cached_property
    def _widths(self) -> IntArray:
        """Outcomes of all marginals of a row together, (R,)."""
        sizes = self.model.marginals.sizes[self.model.row_marginals]
        return segment_sum(sizes.astype(float), self.model.marginal_ptr).astype(np.int64)


def prepared_products(packed: PackedModel, proves: Side, solve: Solve) -> PreparedRows:
    """Return a method whose kernel finds marginals, and answers by their product."""

    def backup(value: FloatArray, rows: IntArray, *bounds: FloatArray) -> None:
        solve(value, rows, NO_ANSWERS, *bounds)

    return PreparedRows(proves, backup, partial(packed.respond, solve))


def _plain(array: AnyArray, kind: type) -> AnyArray:
    """Return an array as kernels know it: one type means one compilation."""
    plain: AnyArray = np.ascontiguousarray(array, dtype=kind)
    return frozen(plain)
