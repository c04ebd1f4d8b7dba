"""Relaxations that larger sets of nature give: they prove one side.

`Sequential` lets nature answer factor by factor: the first step of `Exact` alone. The others look
at one set per row over its joint outcomes (see `kernels.products`): `IntervalArithmetic` at the
products of bounds, as PRISM and Storm do, `RadiusSum` at a ball around the nominal product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.inner.exact import Exact
from rfmdp.inner.packing import (
    NO_ANSWERS,
    PackedModel,
    Work,
    branching_weight,
    largest,
    minimiser_address,
    pack_rows,
    zeros_apart,
)
from rfmdp.inner.protocol import PreparedInner, Side, relaxation_side, successor_starts
from rfmdp.kernels import layout
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Direction
from rfmdp.ragged import owners, segment, segment_lengths
from rfmdp.rounding import UNIT
from rfmdp.sets.marginals import Kind
from rfmdp.types import FloatArray, IntArray, frozen


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

        def bounds_of(value: FloatArray, rows: IntArray) -> FloatArray:
            """Return the bounds of the rows by both orders, (orders, sides, N)."""
            bounds = np.empty((len(packed), 2, model.rows))
            for order, (below, above) in zip(packed, bounds, strict=True):
                order.run(sequential_rows, value, rows, (below, above))
            return bounds[:, :, rows]

        def backup(value: FloatArray, rows: IntArray, below: FloatArray, above: FloatArray) -> None:
            bounds = bounds_of(value, rows)
            below[rows], above[rows] = bounds[:, 0].max(axis=0), bounds[:, 1].min(axis=0)

        def respond(value: FloatArray, rows: IntArray) -> FloatArray:
            begin = successor_starts(model, rows)
            out = np.empty(begin[-1])
            proven = bounds_of(value, rows)[:, 0 if Side.BELOW in proves else 1]
            best = np.argmax(-nature.sign * proven, axis=0)  # the first if equal
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
        names = [
            f"'{model.marginal_name(j)}' of type {type(marginals[j]).__name__}"
            + f" and exponent {marginals.exponent[j]:g}" * bool(marginals.exponent[j] > 0.0)
            for j in ids[segment(model.marginal_ptr, row)].tolist()
        ]
        raise UnsupportedError(
            f"radius-sum needs Lp balls of one exponent in a row; {model.row_name(row)}, has "
            f"{', '.join(names)}. Give `LpBall`s instead of `with_radius`, or use `Exact()`."
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
