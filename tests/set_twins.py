"""Slow, obvious twins of what kernels ask of one set: membership, the least expectation.

The least expectation over boxes, L1 balls and polytopes is computed in fractions. For Lp balls with
1 < p < inf it is found by bisection:

With y = x - nominal and values v scaled to [0, 1], the conditions of optimality read

    y_i = max(-nominal_i, sign(nu - v_i) * (|nu - v_i| / theta)^(1 / (p - 1))),

with sum y = 0 (fixes nu for given theta) and ||y||_p = radius (fixes theta). Both are
monotone, hence bisection. The powers are taken by logarithms, with log_scale =
-log(theta) / (p - 1), so that exponents near 1 and large ones neither under- nor overflow.

Whatever nu and theta come out, the value is sound. For all nu and all mu >= 0

    v . y >= -radius * ||v - nu - mu||_q - mu . nominal,    1/p + 1/q = 1,

by sum y = 0, y >= -nominal and Hoelder's inequality; mu is what the clipped entries leave.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from scipy.optimize import nnls

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.rounding import SUM_TOLERANCE
from rfmdp.sets.families import (
    Interval,
    LpBall,
    Polytope,
    Singleton,
    UncertaintySet,
    bisected,
    p_norm,
)
from rfmdp.sets.marginals import Marginals
from rfmdp.sets.vertices import Vector, box_vertices, product, vertices_bulk

Vertices: TypeAlias = Sequence[Vector]


def fractions(numbers) -> Vector:
    """Return numbers as fractions, floats as what they stand for."""
    return tuple(Fraction(x) for x in numbers)


def normalised(numbers: Sequence[Fraction]) -> Vector:
    """Return the distribution that some numbers stand for."""
    total = sum(numbers, Fraction(0))
    return tuple(x / total for x in numbers)


def box_corners(lower, upper) -> list[Vector]:
    """Return the vertices of a box.

    Bounds that leave no room, or none at all because of rounding, stand for a distribution.
    """
    low, high = fractions(lower), fractions(upper)
    if sum(low) >= 1 or sum(high) <= 1:
        return [normalised(low if sum(low) >= 1 else high)]
    return box_vertices(low, high)


def expectation(p: Sequence[Fraction], values: Sequence[Fraction]) -> Fraction:
    """Return p.v."""
    return sum((x * v for x, v in zip(p, values, strict=True)), Fraction(0))


def product_minimum(sets: Sequence[Vertices], tensor: Sequence[Fraction]) -> Fraction:
    """Return min { sum A p1 ... pn } over the product of hulls: Theorem 1 of the paper.

    The example of the paper, p in [0.2, 0.6] and q in [0.1, 0.3]:

    >>> p, q = [("0.2", "0.4"), ("0.6", "0.8")], [("0.1", "0.7"), ("0.3", "0.9")]
    >>> sets = [box_corners(*box) for box in (p, q)]
    >>> str(product_minimum(sets, fractions([0, 3, 1, 2])))
    '89/50'
    """
    return min(expectation(product(point), tensor) for point in itertools.product(*sets))


def contains(uset: UncertaintySet, p, tolerance: float = 1e-12):
    """Return whether `p` is a member of `uset`.

    The entries of `p` must sum to one as those of the sets do, within 1e-9. `tolerance` is
    allowed in every bound, in the radius of a ball, and in every entry of the convex
    combination that a polytope needs.

    Raises
    ------
    ModelError
        If `p` is no vector of the set's size.

    Examples
    --------
    >>> contains(Interval([0.2, 0.4], [0.6, 0.8]), [0.5, 0.5])
    True
    """
    point = np.asarray(p, dtype=np.float64)
    if point.shape != (uset.size,):
        raise ModelError(
            f"{type(uset).__name__}: a member has {uset.size} outcomes, got shape {point.shape}."
        )
    if not np.all(point >= -tolerance) or not abs(float(point.sum()) - 1.0) <= SUM_TOLERANCE:
        return False
    return _holds(uset, point, tolerance)


def _holds(uset: UncertaintySet, p, tolerance: float):
    """Check what the family asks of a distribution."""
    if isinstance(uset, Singleton):
        return bool(np.all(np.abs(p - uset.nominal) <= tolerance))
    if isinstance(uset, Interval):
        return bool(np.all((uset.lower - tolerance <= p) & (p <= uset.upper + tolerance)))
    if isinstance(uset, Polytope):
        return distance_to_hull(uset.vertices, p) <= tolerance
    return p_norm(p - uset.nominal, uset.exponent) <= uset.radius + tolerance


def distance_to_hull(points, p):
    """Return an upper bound of the largest entry of |p - q| for the best q in the hull.

    The weights come from non-negative least squares and are normalised; the distance is that
    of the combination they really give, so a small result is a proof of membership.

    Parameters
    ----------
    points : (V, X) array
        Points whose convex hull is meant.
    p : (X,) array
        The point to test.
    """
    system = np.vstack([points.T, np.ones(len(points))])
    try:
        weights, _ = nnls(system, np.append(p, 1.0), maxiter=30 * (len(points) + len(p)))
    except RuntimeError:  # no convergence: nothing is proven
        weights = np.zeros(len(points))
    total = weights.sum()
    if total <= 0.0:
        return float(np.min(np.max(np.abs(points - p), axis=1)))
    return float(np.max(np.abs((weights / total) @ points - p)))


def minimise(uset: UncertaintySet, values):
    """Return (value, p): the least expectation of `values` over a set, and where it is taken.

    Both are computed in fractions and rounded once, except for Lp balls with 1 < p < inf: there
    `value` is a dual bound, at most the true minimum, up to rounding of a few ulps of the span of
    `values`, `p` is a member, and `p @ values` is at least the true minimum.

    Parameters
    ----------
    uset : uncertainty set with X outcomes
    values : (X,) array
        Finite values of the outcomes.

    Raises
    ------
    ModelError
        If `values` is no finite vector of the set's size.

    Examples
    --------
    >>> value, p = minimise(Interval([0.25, 0.25], [0.75, 0.75]), [1.0, 3.0])
    >>> value, p.tolist()
    (1.5, [0.75, 0.25])
    """
    vector = np.asarray(values, dtype=np.float64)
    if vector.shape != (uset.size,) or not np.isfinite(vector).all():
        raise ModelError(
            f"{type(uset).__name__}: needs {uset.size} finite values, got {vector.tolist()}."
        )
    if isinstance(uset, LpBall) and 1.0 < uset.exponent < math.inf:
        return minimise_lp_ball(uset, vector)
    value, member = minimum(uset, [Fraction(x) for x in vector.tolist()])
    return float(value), np.array([float(x) for x in member])


def minimum(uset: object, values):
    """Return the least expectation over a set with finitely many vertices, and a member with it.

    A box gives what is free to the lowest values first; an L1 ball moves half of its radius from
    the highest values to the lowest one.
    """
    order = sorted(range(len(values)), key=values.__getitem__)
    if isinstance(uset, Interval):
        member = _filled(uset.lower.tolist(), uset.upper.tolist(), order)
    elif isinstance(uset, LpBall) and math.isinf(uset.exponent):
        member = _filled(*cube(uset), order)
    elif isinstance(uset, LpBall) and uset.exponent == 1.0:
        member = _moved(uset.nominal.tolist(), uset.radius, order)
    else:
        member = min(vertices(uset), key=lambda corner: expectation(corner, values))
    return expectation(member, values), member


def _filled(lower, upper, order):
    """Return the member of a box that fills up its entries in an order."""
    low, high = fractions(lower), fractions(upper)
    if sum(low) >= 1 or sum(high) <= 1:
        return normalised(low if sum(low) >= 1 else high)
    member = list(low)
    free = 1 - sum(low, Fraction(0))
    for k in order:
        take = min(free, high[k] - low[k])
        member[k] += take
        free -= take
    return tuple(member)


def _moved(nominal, radius: float, order):
    """Return the member of an L1 ball that moves mass from the end of an order to its begin."""
    member = list(fractions(nominal))
    first = order[0]
    if radius >= 2.0:
        return tuple(Fraction(int(k == first)) for k in range(len(member)))
    left = min(Fraction(radius) / 2, sum(member, Fraction(0)) - member[first])
    member[first] += left
    for k in reversed(order[1:]):
        take = min(left, member[k])
        member[k] -= take
        left -= take
    return normalised(member)


def minimise_lp_ball(uset: LpBall, values):
    """Return (dual bound of the minimum, feasible p (X,)) for 1 < exponent < inf."""
    nominal = uset.nominal
    base = float(values.min())
    span = float(np.ptp(values))
    if span == 0.0 or uset.radius == 0.0:
        return float(nominal @ values), nominal
    scaled = (values - base) / span
    best = scaled == 0.0
    toward_best = np.where(best, nominal[~best].sum() / best.sum(), -nominal)
    if p_norm(toward_best, uset.exponent) <= uset.radius:
        p = np.maximum(nominal + toward_best, 0.0)
        return float(p @ values), p
    problem = _BallProblem(scaled, nominal, uset.radius, uset.exponent)
    low = math.log(uset.radius / len(nominal))
    step = 1.0
    while problem.within_radius(low + step) and step < 1e9:
        step *= 2.0
    ends = bisected(problem.within_radius, low, low + step)
    (inside, bound), (outside, other_bound) = map(problem.balanced, ends)
    shrink = min(1.0, uset.radius / p_norm(outside, uset.exponent))
    y = min(inside, shrink * outside, key=lambda move: float(move @ scaled))
    value = base * float(nominal.sum()) + span * max(bound, other_bound)
    return value, np.maximum(nominal + y, 0.0)


@dataclass(frozen=True, slots=True)
class _BallProblem:
    """Values in [0, 1], nominal, radius and exponent."""

    values: np.ndarray  # (X,)
    nominal: np.ndarray  # (X,)
    radius: float
    exponent: float

    def moves(self, nu: float, log_scale: float):
        """Return y for given multipliers; entries do not yet sum to zero."""
        distance = nu - self.values
        with np.errstate(divide="ignore"):
            log_size = np.log(np.abs(distance)) / (self.exponent - 1.0) + log_scale
        size = np.exp(np.minimum(log_size, 50.0))
        moves = np.maximum(np.where(distance >= 0.0, size, -size), -self.nominal)
        return moves

    def dual(self, nu: float, log_scale: float):
        """Return the bound of the module's docstring, which holds for all arguments."""
        p = self.exponent
        with np.errstate(divide="ignore"):
            limit = np.exp(np.minimum((p - 1.0) * (np.log(self.nominal) - log_scale), 700.0))
        weight = np.minimum(self.values - nu, limit)
        mu = self.values - nu - weight
        price = self.radius * p_norm(weight, p / (p - 1.0))
        return float((self.values - mu) @ self.nominal) - price

    def balanced(self, log_scale: float):
        """Return a move that sums to zero, mixed of two that almost do, and the better bound."""
        low, high = bisected(lambda nu: self.moves(nu, log_scale).sum() <= 0.0, 0.0, 1.0)
        below, above = self.moves(low, log_scale), self.moves(high, log_scale)
        lack, excess = -float(below.sum()), float(above.sum())
        share = lack / (lack + excess) if lack + excess > 0.0 else 0.0
        bound = max(self.dual(low, log_scale), self.dual(high, log_scale))
        return (1.0 - share) * below + share * above, bound

    def within_radius(self, log_scale: float):
        """Return whether the move is no longer than the radius."""
        return p_norm(self.balanced(log_scale)[0], self.exponent) <= self.radius


def l1_vertices(nominal, radius):
    """Return the vertices of an L1 ball around numbers, among points of the same sum.

    One entry receives radius / 2, as far as there is room; the others give it, in every order.
    """
    centre, size = fractions(nominal), len(nominal)
    if radius >= 2:
        return [tuple(Fraction(int(i == k)) for i in range(size)) for k in range(size)]
    corners = set()
    for receiver in range(size):
        others = [k for k in range(size) if k != receiver]
        for order in itertools.permutations(others):
            p = list(centre)
            left = min(Fraction(radius) / 2, sum((centre[k] for k in others), Fraction(0)))
            p[receiver] += left
            for k in order:
                take = min(left, p[k])
                p[k] -= take
                left -= take
            corners.add(normalised(p))
    return sorted(corners)


def vertices(uset):
    """Return the vertices of a set, exactly; `UnsupportedError` if it has infinitely many."""
    if isinstance(uset, Singleton):
        return [normalised(fractions(uset.nominal.tolist()))]
    if isinstance(uset, Interval):
        return box_corners(uset.lower.tolist(), uset.upper.tolist())
    if isinstance(uset, Polytope):
        return [normalised(fractions(corner)) for corner in uset.vertices.tolist()]
    if isinstance(uset, LpBall) and uset.exponent == 1.0:
        return l1_vertices(uset.nominal.tolist(), uset.radius)
    if isinstance(uset, LpBall) and math.isinf(uset.exponent):
        return box_corners(*cube(uset))
    raise UnsupportedError(f"{uset!r} has no exact vertices.")


def cube(ball):
    """Return the box that an L-infinity ball is."""
    low, high = ball.nominal - ball.radius, ball.nominal + ball.radius
    return np.maximum(low, 0.0).tolist(), np.minimum(high, 1.0).tolist()


def packed_vertices(uset):
    """Return points (V, X) whose hull is the set, as solvers see them: floats, each once."""
    _, flat = vertices_bulk(Marginals.from_sets([uset]), np.array([0]))
    return flat.reshape(-1, uset.size)
