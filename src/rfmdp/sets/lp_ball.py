"""Lp balls within the simplex, 1 < p < inf: extent of every entry, and the minimiser.

With y = x - nominal and values v scaled to [0, 1], the conditions of optimality read

    y_i = max(-nominal_i, sign(nu - v_i) * (|nu - v_i| / theta)^(1 / (p - 1))),

with sum y = 0 (fixes nu for given theta) and ||y||_p = radius (fixes theta). Both are
monotone, hence bisection. The powers are taken by logarithms, with log_scale =
-log(theta) / (p - 1), so that exponents near 1 and large ones neither under- nor overflow.

Whatever nu and theta come out, the value is sound. For all nu and all mu >= 0

    v . y >= -radius * ||v - nu - mu||_q - mu . nominal,    1/p + 1/q = 1,

by sum y = 0, y >= -nominal and Hoelder's inequality; mu is what the clipped entries leave.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rfmdp.sets.families import LpBall
from rfmdp.types import FloatArray

HALVINGS = 200


def p_norm(vector: FloatArray, exponent: float) -> float:
    """Return (sum |v_i|^p)^(1/p), or max |v_i| for p = inf.

    Entries are scaled by the largest one first, so that no power under- or overflows.

    Examples
    --------
    >>> p_norm(np.array([3.0, -4.0]), 2.0)
    5.0
    """
    size = np.abs(vector)
    top = float(size.max(initial=0.0))
    if top == 0.0 or math.isinf(exponent):
        return top
    if exponent == 1.0:
        return float(size.sum())
    return top * math.pow(float(((size / top) ** exponent).sum()), 1.0 / exponent)


def lp_ball_bounds(uset: LpBall) -> tuple[FloatArray, FloatArray]:
    """Return (lower, upper), the attainable bounds of every entry of an Lp ball, p < inf.

    Lowering entry i by t costs least if the k others rise evenly: radius / (1 + k^(1-p))^(1/p)
    at most. Raising it by t lowers the others by min(nominal_j, level): evenly while they
    last; the level is found by bisection and rounded outwards.
    """
    nominal, p = uset.nominal, uset.exponent
    if len(nominal) == 1:
        return nominal, nominal
    move = uset.radius / (1.0 + (len(nominal) - 1.0) ** (1.0 - p)) ** (1.0 / p)
    lower = np.maximum(nominal - move, 0.0)
    if p == 1.0 or move <= (len(nominal) - 1) * nominal.min():
        return lower, np.minimum(nominal + move, 1.0)
    rise = np.array([_rise(np.delete(nominal, i), uset.radius, p) for i in range(len(nominal))])
    return lower, np.minimum(nominal + rise, 1.0)


def _rise(others: FloatArray, radius: float, p: float) -> float:
    """Return how far an entry can rise if the others fall by min(others, level)."""

    def cost(level: float) -> float:
        fall = np.minimum(others, level)
        return p_norm(np.append(fall, fall.sum()), p)

    if cost(float(others.max())) <= radius:
        return float(others.sum())
    _, level = _bisect(lambda level: cost(level) <= radius, 0.0, float(others.max()))
    return float(np.minimum(others, level).sum())


def _bisect(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Return (low, high), as close as floats can be, with holds(low) and not holds(high)."""
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def minimise_lp_ball(uset: LpBall, values: FloatArray) -> tuple[float, FloatArray]:
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
    ends = _bisect(problem.within_radius, low, low + step)
    (inside, bound), (outside, other_bound) = map(problem.balanced, ends)
    shrink = min(1.0, uset.radius / p_norm(outside, uset.exponent))
    y = min(inside, shrink * outside, key=lambda move: float(move @ scaled))
    value = base * float(nominal.sum()) + span * max(bound, other_bound)
    return value, np.maximum(nominal + y, 0.0)


@dataclass(frozen=True, slots=True)
class _BallProblem:
    """Values in [0, 1], nominal, radius and exponent."""

    values: FloatArray  # (X,)
    nominal: FloatArray  # (X,)
    radius: float
    exponent: float

    def moves(self, nu: float, log_scale: float) -> FloatArray:
        """Return y for given multipliers; entries do not yet sum to zero."""
        distance = nu - self.values
        with np.errstate(divide="ignore"):
            log_size = np.log(np.abs(distance)) / (self.exponent - 1.0) + log_scale
        size = np.exp(np.minimum(log_size, 50.0))
        moves: FloatArray = np.maximum(np.where(distance >= 0.0, size, -size), -self.nominal)
        return moves

    def dual(self, nu: float, log_scale: float) -> float:
        """Return the bound of the module's docstring, which holds for all arguments."""
        p = self.exponent
        with np.errstate(divide="ignore"):
            limit = np.exp(np.minimum((p - 1.0) * (np.log(self.nominal) - log_scale), 700.0))
        weight = np.minimum(self.values - nu, limit)
        mu = self.values - nu - weight
        price = self.radius * p_norm(weight, p / (p - 1.0))
        return float((self.values - mu) @ self.nominal) - price

    def balanced(self, log_scale: float) -> tuple[FloatArray, float]:
        """Return a move that sums to zero, mixed of two that almost do, and the better bound."""
        low, high = _bisect(lambda nu: self.moves(nu, log_scale).sum() <= 0.0, 0.0, 1.0)
        below, above = self.moves(low, log_scale), self.moves(high, log_scale)
        lack, excess = -float(below.sum()), float(above.sum())
        share = lack / (lack + excess) if lack + excess > 0.0 else 0.0
        bound = max(self.dual(low, log_scale), self.dual(high, log_scale))
        return (1.0 - share) * below + share * above, bound

    def within_radius(self, log_scale: float) -> bool:
        """Return whether the move is no longer than the radius."""
        return p_norm(self.balanced(log_scale)[0], self.exponent) <= self.radius
