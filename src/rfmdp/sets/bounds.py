"""Attainable bounds of the entries of one set."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rfmdp.sets.boxes import settled_boxes, tighten
from rfmdp.sets.families import Interval, LpBall, Polytope, Singleton, UncertaintySet
from rfmdp.types import FloatArray

HALVINGS = 200


def bounds(uset: UncertaintySet) -> tuple[FloatArray, FloatArray]:
    """Return (lower, upper), the attainable bounds of every entry, (X,) each."""
    if isinstance(uset, Singleton):
        return uset.nominal, uset.nominal
    if isinstance(uset, Polytope):
        return uset.vertices.min(axis=0), uset.vertices.max(axis=0)
    ends = np.array([0, uset.size])
    if isinstance(uset, Interval):
        return tighten(ends, uset.lower, uset.upper)
    if not math.isinf(uset.exponent):
        return _ball_bounds(uset)
    lower = np.maximum(uset.nominal - uset.radius, 0.0)
    upper = np.minimum(uset.nominal + uset.radius, 1.0)
    return tighten(ends, *settled_boxes(ends, lower, upper, uset.nominal)[:2])


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


def _ball_bounds(uset: LpBall) -> tuple[FloatArray, FloatArray]:
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
    _, level = bisected(lambda level: cost(level) <= radius, 0.0, float(others.max()))
    return float(np.minimum(others, level).sum())


def bisected(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Return (low, high), as close as floats can be, with holds(low) and not holds(high)."""
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high
