"""All products of marginal vertices (Theorem 1 of the paper): the plain exact method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.inner.bound import Bound, RowSolver, corners_of, inputs, require_vertices
from rfmdp.inner.layout import Work, pack_rows
from rfmdp.inner.protocol import InnerStats, Side
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Direction
from rfmdp.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class VertexEnumeration:
    """Exact by brute force; for polytopes only, and for few vertices.

    Parameters
    ----------
    vertex_limit
        Vertices that one marginal may have.
    product_limit
        Products of vertices that one row may have.
    """

    vertex_limit: int = 100_000
    product_limit: int = 100_000_000

    @property
    def name(self) -> str:
        """Short name, as on the command line."""
        return "vertices"

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedVertices:
        """Bind to a model whose sets all have finitely many vertices, not too many."""
        used = np.unique(model.row_marginals).astype(np.int64)
        require_vertices(model, used, self.vertex_limit, "VertexEnumeration")
        corners = corners_of(model, used)
        counts = np.log(np.maximum(1, np.diff(corners[0]) // np.maximum(1, model.marginals.sizes)))
        ends = np.concatenate([[0.0], np.cumsum(counts[model.row_marginals])])
        products = ends[model.marginal_ptr[1:]] - ends[model.marginal_ptr[:-1]]
        if model.rows and products.max() > np.log(self.product_limit):
            row = int(products.argmax())
            raise UnsupportedError(
                f"VertexEnumeration: row {model.row_name(row)} has {np.exp(products[row]):.3g} "
                f"products of vertices, more than the limit of {self.product_limit}; use Exact."
            )
        return PreparedVertices(Bound(model, nature, pack_rows(model), corners))


class PreparedVertices(RowSolver):
    """`VertexEnumeration` bound to a model and a direction."""

    proves = Side.BOTH

    def __init__(self, bound: Bound) -> None:
        self.stats = InnerStats()
        self._bound = bound

    def backup(
        self, value: FloatArray, rows: IntArray, below: FloatArray, above: FloatArray
    ) -> None:
        """Fill both sides of the wanted rows."""
        self._run(value, rows, np.empty(0, np.int64), np.empty(0), below, above)
        self.stats.rows += len(rows)

    def _run(
        self,
        value: FloatArray,
        rows: IntArray,
        where: IntArray,
        answer: FloatArray,
        below: FloatArray,
        above: FloatArray,
    ) -> None:
        from rfmdp.kernels.plain import vertex_rows

        b = self._bound
        value, rows = inputs(value, rows)

        def part(work: Work, chosen: slice) -> None:
            vertex_rows(
                b.sets, b.rows, work, rows[chosen], value, b.sign, where[chosen], answer, below,
                above,
            )  # fmt: skip

        b.run(rows, part)
