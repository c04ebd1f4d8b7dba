"""The exact inner problem at the price of about one greedy pass; see `kernels.exact`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.inner.bound import Bound, RowSolver, branching_weight, corners_of, inputs
from rfmdp.inner.layout import Work, pack_rows
from rfmdp.inner.protocol import InnerStats, Side
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Direction
from rfmdp.rounding import backup_margin
from rfmdp.sets.marginals import Kind
from rfmdp.types import FloatArray, IntArray

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
    cut_limit
        Half-spaces per row with several sets whose vertices cannot be listed (Lp balls, boxes of
        very many outcomes); see `inner.cuts`. Beyond it the row keeps the gap it has reached.
    cut_tolerance
        Such rows are exact when their sides differ by at most this share of the span.
    """

    tolerance: float = 1e-12
    node_limit: int = 1_000_000
    cut_limit: int = 200
    cut_tolerance: float = 1e-9

    @property
    def name(self) -> str:
        """Short name, as on the command line."""
        return "exact"

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedExact:
        """Bind to a model; every set that has a linear minimiser fits."""
        weight = branching_weight(model)
        layout = pack_rows(model, weight)
        inside = np.ones(len(model.row_marginals), dtype=np.bool_)
        ends = model.marginal_ptr[1:][np.diff(model.marginal_ptr) > 0]
        inside[ends - 1] = False  # the last factor is only given to its minimiser
        branched = np.unique(layout.rows[3][inside])
        known = (model.marginals.kind[branched] != Kind.LP) & (
            weight[branched] * model.marginals.sizes[branched] <= CORNER_LIMIT
        )
        bound = Bound(model, nature, layout, corners_of(model, branched[known]))
        return PreparedExact(self, bound)


class PreparedExact(RowSolver):
    """`Exact` bound to a model and a direction."""

    proves = Side.BOTH

    def __init__(self, settings: Exact, bound: Bound) -> None:
        self.stats = InnerStats()
        self._settings = settings
        self._bound = bound
        self._unlisted = bound.lacks_vertices()

    def backup(
        self, value: FloatArray, rows: IntArray, below: FloatArray, above: FloatArray
    ) -> None:
        """Fill both sides of the wanted rows."""
        nodes = self._run(value, rows, np.empty(0, np.int64), np.empty(0), below, above)
        stats = self.stats
        stats.rows += len(nodes)
        stats.branched += int(np.count_nonzero(nodes))
        stats.nodes += int(np.where(nodes < 0, -1 - nodes, nodes).sum())
        stats.open_rows += int(np.count_nonzero(nodes < 0))

    def _run(
        self,
        value: FloatArray,
        rows: IntArray,
        where: IntArray,
        answer: FloatArray,
        below: FloatArray,
        above: FloatArray,
    ) -> IntArray:
        """Solve the wanted rows; returns the nodes of each as `kernels.exact.solve_tensor`."""
        from rfmdp.kernels.exact import exact_rows

        b, settings = self._bound, self._settings
        value, rows = inputs(value, rows)
        nodes = np.empty(len(rows), dtype=np.int64)

        def part(work: Work, chosen: slice) -> None:
            exact_rows(
                b.sets, b.rows, work, rows[chosen], value, b.sign, settings.tolerance,
                settings.node_limit, where[chosen], answer, below, above, nodes[chosen],
            )  # fmt: skip

        b.run(rows, part)
        for i in np.flatnonzero((nodes < 0) & self._unlisted[rows]):
            self._cut(value, int(i), rows, where, answer, below, above, nodes)
        return nodes

    def _cut(
        self,
        value: FloatArray,
        i: int,
        rows: IntArray,
        where: IntArray,
        answer: FloatArray,
        below: FloatArray,
        above: FloatArray,
        nodes: IntArray,
    ) -> None:
        """Close the gap of row i of the wanted ones by outer polytopes."""
        from rfmdp.inner.cuts import refine

        b, settings, row = self._bound, self._settings, int(rows[i])
        tensor, reference = b.tensor(value, row)
        span = float(np.ptp(tensor))
        gap = settings.cut_tolerance * span
        found = refine(b, row, tensor, settings.cut_limit, gap)
        size = b.model.marginals.sizes[b.row_axes(row)].sum()
        margin = backup_margin(int(size), span, abs(reference) + span)
        ends = b.sign * reference + found.low - margin, b.sign * reference + found.high + margin
        low, high = ends if b.sign > 0.0 else (-ends[1], -ends[0])
        below[row], above[row] = max(below[row], low), min(above[row], high)
        nodes[i] = found.cuts + 1 if found.high - found.low <= gap else -2 - found.cuts
        if len(where):
            answer[where[i] : where[i] + size] = found.points
