"""The exact inner problem, from both sides.

`Exact` at the price of about one greedy pass (see `kernels.exact`), and by all products of vertices
(Theorem 1 of the paper), the plain reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import ClassVar

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.inner.packing import (
    NO_ANSWERS,
    Answers,
    PackedModel,
    branching_weight,
    corners_of,
    pack_rows,
)
from rfmdp.inner.protocol import InnerStats, PreparedInner, Side
from rfmdp.kernels.layout import MARGINALS
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Direction
from rfmdp.ragged import segment_any, segment_lengths, segment_sum
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

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedInner:
        """Bind to a model; every set that has a linear minimiser fits."""
        packed = cache(lambda: _packed(model, nature))  # when first used
        stats, limits = InnerStats(), (self.tolerance, self.node_limit)

        def solve(
            value: FloatArray, rows: IntArray, answers: Answers, *bounds: FloatArray
        ) -> IntArray:
            """Solve rows; return the nodes of each as `kernels.exact.solve_tensor`."""
            from rfmdp.kernels.exact import exact_rows
            from rfmdp.kernels.pair import pair_rows

            (where, answer), (arrays, are_pairs) = answers, packed()
            pairs, nodes = are_pairs[rows], np.empty(len(rows), dtype=np.int64)
            for kernel, chosen in ((pair_rows, pairs), (exact_rows, ~pairs)):
                mine = np.flatnonzero(chosen)
                if len(mine):  # a kernel that is not needed is not compiled
                    own = where[mine] if len(where) else where
                    visited = nodes[mine]
                    arrays.run(kernel, value, rows[mine], *limits, (own, answer), bounds, visited)
                    nodes[mine] = visited
            return nodes

        def backup(value: FloatArray, rows: IntArray, *bounds: FloatArray) -> None:
            nodes = solve(value, rows, NO_ANSWERS, *bounds)
            stats.branched += int(np.count_nonzero(nodes))
            stats.nodes += int(np.where(nodes < 0, -1 - nodes, nodes).sum())
            stats.open_rows += int(np.count_nonzero(nodes < 0))

        def respond(value: FloatArray, rows: IntArray) -> FloatArray:
            return packed()[0].respond(solve, value, rows)

        def marginals(value: FloatArray, rows: IntArray) -> FloatArray:
            return packed()[0].marginals(solve, value, rows)

        return PreparedInner(Side.BOTH, backup, respond, stats, marginals)


def _packed(model: FactoredMDP, nature: Direction) -> tuple[PackedModel, BoolArray]:
    """Return the rows, with the vertices of all sets that a tree may branch on, and pairs (R,).

    Pairs are rows of two marginals, both boxes or points: they have a kernel of their own.
    """
    kinds, arity = model.marginals.kind, segment_lengths(model.marginal_ptr)
    weight = branching_weight(model)
    rows = pack_rows(model, weight)
    inside = np.ones(len(model.row_marginals), dtype=np.bool_)
    inside[model.marginal_ptr[1:][arity > 0] - 1] = False  # the last is only given to its minimiser
    branched = np.unique(rows[MARGINALS][inside])
    few = weight[branched] * model.marginals.sizes[branched] <= CORNER_LIMIT
    corners = corners_of(model, branched[few & (kinds[branched] != Kind.LP)])
    pairs = (arity == 2) & ~segment_any(kinds[model.row_marginals] > Kind.BOX, model.marginal_ptr)
    return PackedModel(model, nature, rows, corners), pairs


@dataclass(frozen=True, slots=True)
class VertexEnumeration:
    """Exact by brute force, for sets with vertices; a row may have `product_limit` products."""

    name: ClassVar[str] = "vertices"  # as on the command line

    product_limit: int = 100_000_000

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedInner:
        """Bind to a model whose sets all have finitely many vertices, not too many."""
        used = np.unique(model.row_marginals).astype(np.int64)
        try:
            corners = corners_of(model, used)
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
