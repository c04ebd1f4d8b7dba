"""All products of marginal vertices (Theorem 1 of the paper): the plain exact method."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.inner.packing import NO_ANSWERS, Answers, PackedModel, corners_of
from rfmdp.inner.protocol import PreparedInner, Side
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Direction
from rfmdp.ragged import segment_lengths, segment_sum
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

    name: ClassVar[str] = "vertices"  # as on the command line

    vertex_limit: int = 100_000
    product_limit: int = 100_000_000

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedInner:
        """Bind to a model whose sets all have finitely many vertices, not too many."""
        used = np.unique(model.row_marginals).astype(np.int64)
        try:
            corners = corners_of(model, used, self.vertex_limit)
        except UnsupportedError as error:
            raise UnsupportedError(f"VertexEnumeration: {error}") from error
        numbers = segment_lengths(corners[0]) // np.maximum(1, model.marginals.sizes)
        counts = np.log(np.maximum(1, numbers))
        products = segment_sum(counts[model.row_marginals], model.marginal_ptr)
        if model.rows and products.max() > np.log(self.product_limit):
            row = int(products.argmax())
            raise UnsupportedError(
                f"VertexEnumeration: row {model.row_name(row)} has {np.exp(products[row]):.3g} "
                f"products of vertices, more than the limit of {self.product_limit}; use Exact."
            )
        packed = PackedModel(model, nature, corners=corners)

        def solve(value: FloatArray, rows: IntArray, answers: Answers, *bounds: FloatArray) -> None:
            from rfmdp.kernels.products import vertex_rows

            packed.run(vertex_rows, value, rows, answers, bounds)

        def backup(value: FloatArray, rows: IntArray, *bounds: FloatArray) -> None:
            solve(value, rows, NO_ANSWERS, *bounds)

        return PreparedInner(Side.BOTH, backup, partial(packed.respond, solve))
