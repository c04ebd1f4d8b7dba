"""Rows of several sets without a list of vertices: outer polytopes, cut where nature leaves them.

The minimum over the product is concave in every marginal, the others chosen best. So an Lp ball
may be replaced by a polytope around it: over polytopes the exact kernel finds the minimum, a
proven lower bound L, at vertices. Where such a vertex lies outside its set, a half-space cuts it
off: for a ball the tangent below it, by Hoelder's inequality g.(p - nominal) <= radius ||g||_q;
for a box the bound that it misses most. Its pull into the set, improved by coordinate descent,
gives U. The gap shrinks with the square of the distance between tangents, and these gather
where the minimum is: three outcomes take some ten cuts for nine digits. (Bisecting boxes around
the sets instead has an error of first order, and thousands of boxes share the minimum.)

The last factor keeps its own minimiser; it is never replaced. Boxes and L1 balls with more
vertices than can be listed are treated alike, and may keep a gap at the limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rfmdp.inner.packing import PackedModel, Sets, Work
from rfmdp.kernels.layout import (
    AXES,
    CORNERS,
    CORNERS_END,
    KIND,
    LEVELS,
    LOWER,
    PLACE,
    POINT,
    SIZE,
)
from rfmdp.ragged import segment, starts
from rfmdp.rounding import CUT_INSIDE, UNIT, cut_outwards
from rfmdp.sets.families import Interval, LpBall, UncertaintySet
from rfmdp.sets.halfspaces import CutSimplex
from rfmdp.sets.lp_ball import p_norm
from rfmdp.sets.marginals import Kind
from rfmdp.sets.questions import bounds
from rfmdp.types import AnyArray, FloatArray, IntArray, frozen

VERTEX_LIMIT = 2000  # of one outer polytope; beyond it the row keeps its gap
NODE_LIMIT = 1_000_000  # of the tree over outer polytopes


@dataclass(frozen=True, slots=True, eq=False)
class Refined:
    """Bounds of the minimum of one row, and members that attain the upper one."""

    low: float
    high: float
    points: FloatArray  # (sum of sizes,) the members of all sets, in the solver's order
    cuts: int


class OuterPolytope:
    """A polytope around a set, given by its vertices; `cut` makes it smaller."""

    def __init__(self, uset: UncertaintySet) -> None:
        self.uset = uset
        self.low, self.high = bounds(uset)
        # smallest at the start: the simplex of all mass that is not below the lower bounds
        self._radius = uset.radius if isinstance(uset, LpBall) else 0.0
        outwards = cut_outwards(uset.size, 0.0)
        self._cut = CutSimplex(np.maximum(self.low - outwards, 0.0))

    @property
    def vertices(self) -> FloatArray:
        """The vertices (V, X), each number rounded once."""
        return self._cut.points

    def excess(self, p: FloatArray) -> tuple[float, FloatArray, float]:
        """Return by how much p (X,) misses the set; normal (X,) and bound that it misses most."""
        uset = self.uset
        if isinstance(uset, LpBall) and not math.isinf(uset.exponent):
            y, c = p - uset.nominal, uset.exponent
            top = float(np.abs(y).max(initial=0.0))
            if top == 0.0:
                return 0.0, y, 0.0
            normal = np.sign(y) * (np.abs(y) / top) ** (c - 1.0)
            dual = math.inf if c == 1.0 else c / (c - 1.0)
            limit = float(normal @ uset.nominal) + uset.radius * p_norm(normal, dual)
            return p_norm(y, c) - uset.radius, normal, limit
        normal = np.zeros(uset.size)
        over, under = p - self.high, self.low - p
        k = int(np.argmax(np.maximum(over, under)))
        if over[k] >= under[k]:
            normal[k] = 1.0
            return float(over[k]), normal, float(self.high[k])
        normal[k] = -1.0
        return float(under[k]), normal, -float(self.low[k])

    def cut(self, p: FloatArray) -> bool:
        """Cut off a vertex that misses the set; return whether anything was cut."""
        missed, normal, limit = self.excess(p)
        if missed <= CUT_INSIDE:
            return False
        outwards = cut_outwards(len(p), self._radius) * float(np.abs(normal).max())
        self._cut.cut(normal, limit + outwards)
        return True

    def pull(self, p: FloatArray) -> FloatArray:
        """Return the last member (X,) on the way from the nominal distribution to p."""
        uset = self.uset
        if not isinstance(uset, LpBall | Interval):
            return p
        y = p - uset.nominal
        if isinstance(uset, LpBall) and not math.isinf(uset.exponent):
            length = p_norm(y, uset.exponent)
            share = uset.radius / length if length > uset.radius else 1.0
        else:
            room = np.where(y > 0.0, self.high - uset.nominal, self.low - uset.nominal)
            moves = np.abs(y) > 0.0
            share = float(np.min(room[moves] / y[moves], initial=1.0))
        member: FloatArray = uset.nominal + max(0.0, share) * y
        return member


def refine(packed: PackedModel, row: int, tensor: FloatArray, limit: int, gap: float) -> Refined:
    """Enclose the minimum of `tensor` (K,), in solver order, over the sets of a row.

    Stops when the sides are within `gap`, or after `limit` cuts.
    """
    axes = packed.row_axes(row)
    head, _, _, _ = packed.sets
    listed = (head[axes, CORNERS] < head[axes, CORNERS_END]) | (head[axes, KIND] == Kind.SINGLETON)
    outer = {
        k: OuterPolytope(packed.model.marginals[int(axes[k])])
        for k in range(len(axes) - 1)
        if not listed[k]
    }
    ends = starts(head[axes, SIZE])
    places = [segment(ends, k) for k in range(len(axes))]
    work = packed.work(0)
    span = float(np.ptp(tensor))
    low = -math.inf
    high = math.inf
    best = np.empty(ends[-1])
    cuts = 0
    while True:
        proven, answer = _relaxed(packed, axes, outer, tensor, work, 0.1 * gap / max(span, gap))
        # rounding a vertex moves it by 2 u in L1 at most: its mean by 2 u of the span
        low = max(low, proven - 4.0 * UNIT * len(axes) * span)
        point = answer.copy()
        for k, polytope in outer.items():
            point[places[k]] = polytope.pull(point[places[k]])
        value = _improve(packed, axes, tensor, point, work, gap)
        if value < high:
            high, best = value, point
        if high - low <= gap or cuts >= limit:
            break
        done = [polytope.cut(answer[places[k]]) for k, polytope in outer.items()]
        cuts += sum(done)
        if not any(done) or max(len(o.vertices) for o in outer.values()) > VERTEX_LIMIT:
            break
    return Refined(low, high, best, cuts)


def _relaxed(
    packed: PackedModel,
    axes: IntArray,
    outer: dict[int, OuterPolytope],
    tensor: FloatArray,
    work: Work,
    tolerance: float,
) -> tuple[float, FloatArray]:
    """Return a lower bound over the outer polytopes by the exact kernel, and its answer."""
    from rfmdp.kernels.exact import exact_rows

    n, size = len(axes), len(tensor)
    pointers = (np.array([0, size]), np.arange(size, dtype=np.int32), np.array([0, n]))
    rest = (np.arange(n, dtype=np.int32), np.zeros(1, np.int32), np.zeros(2, np.int64))
    rows: list[AnyArray] = [*pointers, *rest, np.empty(0, np.int32)]
    sets = _packed(packed.sets, axes, outer)
    head, _, _, _ = sets
    answer = np.empty(int(head[:, SIZE].sum()))
    below = np.empty(1)
    above = np.empty(1)
    nodes = np.empty(1, np.int64)
    asked = frozen(np.zeros(1, np.int64)), frozen(tensor), 1.0, 0, 1
    answers = (np.zeros(1, np.int64), answer)
    bounds = (below, above)
    packed_rows = tuple(frozen(a) for a in rows)
    exact_rows(sets, packed_rows, work, asked, tolerance, NODE_LIMIT, answers, bounds, nodes)
    return float(below[0]), answer


def _packed(sets: Sets, axes: IntArray, outer: dict[int, OuterPolytope]) -> Sets:
    """Return the sets of one row, polytopes in the places of those in `outer`."""
    head, data, corners, minimiser = sets
    lines = head[axes].copy()
    numbers, points = [], []
    place = corner = 0
    for k, line in enumerate(lines):
        mine = data[line[PLACE] : line[PLACE] + LOWER + 3 * line[SIZE]]
        listed = corners[line[CORNERS] : line[CORNERS_END]]
        if k in outer:
            line[KIND] = Kind.POLYTOPE
            listed = outer[k].vertices.ravel()
        line[PLACE] = place
        line[CORNERS] = corner
        line[CORNERS_END] = corner + len(listed)
        numbers.append(mine)
        points.append(listed)
        place, corner = place + len(mine), corner + len(listed)
    return lines, np.concatenate(numbers), frozen(np.concatenate(points)), minimiser


def _improve(
    packed: PackedModel,
    axes: IntArray,
    tensor: FloatArray,
    point: FloatArray,
    work: Work,
    gap: float,
) -> float:
    """Improve a product of members in place by coordinate descent; return its value."""
    from rfmdp.kernels.exact import improve_product

    levels, mine, places = work[LEVELS], work[POINT], work[AXES]
    levels[: len(tensor)], mine[: len(point)], places[: len(axes)] = tensor, point, axes
    value = improve_product(packed.sets, work, len(axes), len(tensor), len(point), 0.1 * gap)
    point[:] = mine[: len(point)]
    return float(value)
