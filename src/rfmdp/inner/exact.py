"""The exact inner problem at the price of about one greedy pass; see `kernels.exact`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from rfmdp.inner.packing import (
    NO_ANSWERS,
    Answers,
    PackedModel,
    branching_weight,
    corners_of,
    pack_rows,
)
from rfmdp.inner.protocol import InnerStats, Side
from rfmdp.kernels.layout import MARGINALS
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Direction
from rfmdp.ragged import segment_any, segment_lengths
from rfmdp.rounding import EXACT
from rfmdp.sets.marginals import Kind
from rfmdp.types import BoolArray, FloatArray, IntArray

CORNER_LIMIT = 1 << 17  # entries of one marginal's vertex list that a tree may branch on


@dataclass(frozen=True, slots=True)
class Exact:
    """Both sides of the exact value of every row, certificate first, tree for the rest.

    Parameters
    ----------
    tolerance
        A row is exact when its sides differ by at most this share of the span of its values.
    node_limit
        Nodes that one row's tree may visit; beyond it the row keeps the gap it has reached.

    A row with several sets whose vertices cannot be listed (Lp balls, boxes of very many outcomes)
    keeps the gap between its certificate and its witness.
    """

    name: ClassVar[str] = "exact"  # as on the command line

    tolerance: float = EXACT
    node_limit: int = 1_000_000

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedExact:
        """Bind to a model; every set that has a linear minimiser fits."""
        return PreparedExact(self, model, nature)


class PreparedExact:
    """`Exact` bound to a model and a direction; packed when first used."""

    proves = Side.BOTH

    def __init__(self, settings: Exact, model: FactoredMDP, nature: Direction) -> None:
        self.stats = InnerStats()
        self._settings = settings
        self._model, self._nature = model, nature

    @cached_property
    def _packed(self) -> PackedModel:
        """The rows, with the vertices of all sets that a tree may branch on."""
        model = self._model
        weight = branching_weight(model)
        layout = pack_rows(model, weight)
        inside = np.ones(len(model.row_marginals), dtype=np.bool_)
        ends = model.marginal_ptr[1:][segment_lengths(model.marginal_ptr) > 0]
        inside[ends - 1] = False  # the last factor is only given to its minimiser
        branched = np.unique(layout.rows[MARGINALS][inside])
        known = (model.marginals.kind[branched] != Kind.LP) & (
            weight[branched] * model.marginals.sizes[branched] <= CORNER_LIMIT
        )
        return PackedModel(model, self._nature, layout, corners_of(model, branched[known]))

    @cached_property
    def _pairs(self) -> BoolArray:
        """Rows of two marginals, both boxes or points (R,): they have an own kernel."""
        model = self._model
        other = model.marginals.kind[model.row_marginals] > Kind.BOX
        two: BoolArray = segment_lengths(model.marginal_ptr) == 2
        return two & ~segment_any(other, model.marginal_ptr)

    def backup(
        self, value: FloatArray, rows: IntArray, below: FloatArray, above: FloatArray
    ) -> None:
        """Fill both sides of the wanted rows."""
        nodes = self._solve(value, rows, NO_ANSWERS, below, above)
        stats = self.stats
        stats.branched += int(np.count_nonzero(nodes))
        stats.nodes += int(np.where(nodes < 0, -1 - nodes, nodes).sum())
        stats.open_rows += int(np.count_nonzero(nodes < 0))

    def respond(self, value: FloatArray, rows: IntArray) -> FloatArray:
        """Return nature's best products over the successors of `rows`, concatenated."""
        return self._packed.respond(self._solve, value, rows)

    def marginals(self, value: FloatArray, rows: IntArray) -> FloatArray:
        """Return nature's best marginals for `rows` in the model's order, concatenated."""
        return self._packed.marginals(self._solve, value, rows)

    def _solve(
        self,
        value: FloatArray,
        rows: IntArray,
        answers: Answers,
        below: FloatArray,
        above: FloatArray,
    ) -> IntArray:
        """Solve the wanted rows; return the nodes of each as `kernels.exact.solve_tensor`."""
        from rfmdp.kernels.exact import exact_rows
        from rfmdp.kernels.pair import pair_rows

        limits = self._settings.tolerance, self._settings.node_limit
        (where, answer), bounds, pairs = answers, (below, above), self._pairs[rows]
        nodes = np.empty(len(rows), dtype=np.int64)
        for kernel, chosen in ((pair_rows, pairs), (exact_rows, ~pairs)):
            mine = np.flatnonzero(chosen)
            if len(mine):  # a kernel that is not needed is not compiled
                own = where[mine] if len(where) else where
                visited = nodes[mine]
                wanted = *limits, (own, answer), bounds, visited
                self._packed.run(kernel, value, rows[mine], *wanted)
                nodes[mine] = visited
        return nodes
