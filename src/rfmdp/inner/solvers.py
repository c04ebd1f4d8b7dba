"""Inner solvers by compiled kernels: exact ones, and relaxations that larger sets of nature give.

`Exact` proves both sides at the price of about one greedy pass (see `kernels.exact`), and so does
`VertexEnumeration` by all products of vertices (Theorem 1 of the paper), the plain reference.

Relaxations prove one side. `Sequential` lets nature answer factor by factor: the first step of
`Exact` alone. The others look at one set per row over its joint outcomes (see `kernels.products`):
`IntervalArithmetic` at the products of bounds, as PRISM and Storm do, `RadiusSum` at a ball around
the nominal product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, partial
from typing import ClassVar

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.inner.packing import (
    NO_ANSWERS,
    Answers,
    PackedModel,
    Work,
    branching_weight,
    corners_of,
    largest,
    minimiser_address,
    pack_rows,
    zeros_apart,
)
from rfmdp.inner.protocol import InnerStats, PreparedInner, Side, relaxation_side, successor_starts
from rfmdp.kernels import layout
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Direction
from rfmdp.ragged import owners, segment, segment_any, segment_lengths, segment_sum
from rfmdp.rounding import EXACT, UNIT
from rfmdp.sets.marginals import Kind
from rfmdp.types import BoolArray, FloatArray, IntArray, frozen

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
    branched = np.unique(rows[layout.MARGINALS][inside])
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
        corners = corners_of(model, used)
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


@dataclass(frozen=True, slots=True)
class Sequential:
    """Relaxation: nature may answer each factor after seeing the outcomes of earlier ones.

    Factors are contracted in two orders, that with the most vertices first or last; the better
    bound counts.
    """

    name: ClassVar[str] = "sequential"  # as on the command line

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedInner:
        """Bind to a model; every set that has a linear minimiser fits."""
        from rfmdp.kernels.products import sequential_answers, sequential_rows

        weight = branching_weight(model)
        packed = [PackedModel(model, nature, pack_rows(model, w)) for w in (weight, -weight)]
        proves = relaxation_side(nature)
        side = 0 if Side.BELOW in proves else 1

        def bounds_of(value: FloatArray, rows: IntArray) -> FloatArray:
            """Return what both orders prove of the rows, (2, N)."""
            proven = []
            for order in packed:
                bounds = np.empty(model.rows), np.empty(model.rows)
                order.run(sequential_rows, value, rows, bounds)
                proven.append(bounds[side][rows])
            return np.array(proven)

        def backup(value: FloatArray, rows: IntArray, below: FloatArray, above: FloatArray) -> None:
            proven = bounds_of(value, rows)
            below[rows] = -np.inf if side else proven.max(axis=0)
            above[rows] = proven.min(axis=0) if side else np.inf

        def respond(value: FloatArray, rows: IntArray) -> FloatArray:
            begin = successor_starts(model, rows)
            out = np.empty(begin[-1])
            best = np.argmax(-nature.sign * bounds_of(value, rows), axis=0)  # the first if equal
            for number, order in enumerate(packed):
                mine = np.flatnonzero(best == number)
                order.run(sequential_answers, value, rows[mine], begin[mine], out)
            return out

        return PreparedInner(proves, backup, respond)


@dataclass(frozen=True, slots=True)
class IntervalArithmetic:
    """Relaxation: joint probabilities between the products of the marginals' bounds.

    Only bounds are read, so every set fits; one that is not a box is replaced by its enclosing
    box. Bounds that a PRISM text states are taken as they are, as PRISM does.
    """

    name: ClassVar[str] = "interval"  # as on the command line

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedInner:
        """Bind to a model. One box per row is no product: then it is exact, from both sides."""
        marginals = model.marginals
        plain = np.isin(marginals.kind, (Kind.SINGLETON, Kind.BOX)).all()
        if plain and marginals.stated is None and segment_lengths(model.marginal_ptr).max() <= 1:
            return Exact().prepare(model, nature)
        model = model.with_marginals(model.marginals.as_stated())
        boxes = np.full(model.rows, Kind.BOX, np.int64), np.full(model.rows, -1.0)
        return _joint_relaxation(model, nature, (*boxes, np.ones(model.rows)))


@dataclass(frozen=True, slots=True)
class RadiusSum:
    """One Lp ball around the nominal product: a relaxation, and a loose one."""

    name: ClassVar[str] = "radius-sum"  # as on the command line

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedInner:
        """Bind to a model of Lp balls.

        Raises
        ------
        UnsupportedError
            If a row has a marginal that is no Lp ball, or balls of different exponents.
            Singletons, and balls of radius zero, fit every exponent.
        """
        radius, exponent = _row_balls(model)
        kind = np.select(
            [radius == 0.0, exponent == 1.0, np.isinf(exponent)],
            [Kind.SINGLETON, Kind.L1, Kind.BOX],
            Kind.LP,
        )
        return _joint_relaxation(model, nature, (kind.astype(np.int64), radius, exponent))


def _row_balls(model: FactoredMDP) -> tuple[FloatArray, FloatArray]:
    """Return radius and exponent of every row's ball (R,); exponent 1 where the radius is 0."""
    marginals, ids, rows = model.marginals, model.row_marginals, owners(model.marginal_ptr)
    ball = (marginals.kind != Kind.SINGLETON) & (marginals.radius != 0.0)
    used = np.flatnonzero(ball[ids])  # places of sets that nature chooses from
    least, most = np.full(model.rows, math.inf), np.ones(model.rows)
    exponent = np.nan_to_num(marginals.exponent[ids[used]], nan=0.0, posinf=math.inf)
    np.minimum.at(least, rows[used], exponent)  # 0 of what is no ball
    np.maximum.at(most, rows[used], exponent)
    clash = rows[used[least[rows[used]] != most[rows[used]]]]
    if len(clash):
        row = int(clash[0])
        names = map(model.marginal_name, ids[segment(model.marginal_ptr, row)].tolist())
        raise UnsupportedError(
            f"radius-sum needs Lp balls of one exponent in a row; those of {model.row_name(row)}, "
            f"are others: {', '.join(names)}. Give balls (`LpBall`s instead of `with_radius`), or "
            "use `Exact()`."
        )
    cap = 2.0 ** (1.0 / np.where(ball, marginals.exponent, 1.0))
    radius = np.where(ball, np.minimum(marginals.radius, cap), 0.0)
    total = np.bincount(rows, weights=radius[ids], minlength=model.rows)
    # the radius is rounded once per factor; a ball that is larger by that is still a relaxation
    factors = segment_lengths(model.marginal_ptr)
    total = np.where(total > 0.0, total + 4.0 * UNIT * (factors + 1.0), 0.0)
    return np.minimum(total, 2.0 ** (1.0 / most)), most


def _joint_relaxation(
    model: FactoredMDP, nature: Direction, balls: tuple[IntArray, FloatArray, FloatArray]
) -> PreparedInner:
    """Return a relaxation of one set per row over its joint outcomes; see `products.joint_rows`."""
    from rfmdp.kernels.products import joint_rows

    def memory(model: FactoredMDP) -> Work:
        size, n, _ = largest(model)
        lengths = [layout.LOWER + 3 * size, size, size + 1, size]
        data, v, p, curved = zeros_apart(lengths, np.float64)
        order, axes, head = zeros_apart([2 * size, n, 5], np.int64)
        one = head.reshape(1, 5), data, frozen(np.zeros(0)), minimiser_address(balls[0])
        return one, v, p, order, curved, axes

    packed = PackedModel(model, nature, memory=memory)

    def backup(value: FloatArray, rows: IntArray, *bounds: FloatArray) -> None:
        packed.run(joint_rows, value, rows, balls, NO_ANSWERS, bounds)

    def respond(value: FloatArray, rows: IntArray) -> FloatArray:
        begin = successor_starts(model, rows)
        answers, ignored = (begin, np.empty(begin[-1])), tuple(np.empty((2, model.rows)))
        packed.run(joint_rows, value, rows, balls, answers, ignored)
        return answers[1]

    return PreparedInner(relaxation_side(nature), backup, respond)
