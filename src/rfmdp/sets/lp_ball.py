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

    low, high = 0.0, float(others.max())
    if cost(high) <= radius:
        return float(others.sum())
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if cost(middle) <= radius else (low, middle)
    return float(np.minimum(others, high).sum())


def minimise_lp_ball(uset: LpBall, values: FloatArray) -> tuple[float, FloatArray]:
    """Return (dual bound of the minimum, feasible p) for 1 < exponent < inf."""
    nominal = uset.nominal
    base, span = float(values.min()), float(np.ptp(values))
    if span == 0.0 or uset.radius == 0.0:
        return float(nominal @ values), nominal
    scaled = (values - base) / span
    best = scaled == 0.0
    toward_best = np.where(best, nominal[~best].sum() / best.sum(), -nominal)
    if p_norm(toward_best, uset.exponent) <= uset.radius:
        p = np.maximum(nominal + toward_best, 0.0)
        return float(p @ values), p
    move = _search(_Problem(scaled, nominal, uset.radius, uset.exponent))
    p = np.maximum(nominal + move.y, 0.0)
    return base * float(nominal.sum()) + span * move.bound, p


@dataclass(frozen=True, slots=True)
class _Problem:
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


@dataclass(frozen=True, slots=True)
class _Move:
    """A feasible change of the nominal, its length, and the bound found with it."""

    y: FloatArray  # (X,)
    length: float
    bound: float


def _search(problem: _Problem) -> _Move:
    """Bisect the scale until the move is as long as the radius; keep the best bound."""
    low = math.log(problem.radius / len(problem.nominal))
    inside = _balanced(problem, low)
    bound, step = inside.bound, 1.0
    while (trial := _balanced(problem, low + step)).length <= problem.radius and step < 1e9:
        inside, bound, step = trial, max(bound, trial.bound), 2.0 * step
    high = low + step
    outside = trial
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        trial = _balanced(problem, middle)
        bound = max(bound, trial.bound)
        if trial.length <= problem.radius:
            low, inside = middle, trial
        else:
            high, outside = middle, trial
    shrink = problem.radius / outside.length if outside.length > problem.radius else 1.0
    candidates = [inside.y, shrink * outside.y]
    y = min(candidates, key=lambda move: float(move @ problem.values))
    return _Move(y, problem.radius, bound)


def _balanced(problem: _Problem, log_scale: float) -> _Move:
    """Bisect nu until the move sums to zero, and mix the last two so that it does."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if problem.moves(middle, log_scale).sum() <= 0.0:
            low = middle
        else:
            high = middle
    below, above = problem.moves(low, log_scale), problem.moves(high, log_scale)
    lack, excess = -float(below.sum()), float(above.sum())
    share = lack / (lack + excess) if lack + excess > 0.0 else 0.0
    y = (1.0 - share) * below + share * above
    bound = max(problem.dual(low, log_scale), problem.dual(high, log_scale))
    return _Move(y, p_norm(y, problem.exponent), bound)
