"""The families of marginal uncertainty sets, as frozen data that is checked once.

Every set is a non-empty, closed, convex set of distributions over `size` outcomes; `nominal` is its
distinguished member. What it is exactly, `docs/soundness.md` says: every float is the rational
number that it is, all sums are exact, and a distribution d stands for d / sum d. Constructors take
sums within 1e-9 of one; if the correctly rounded sum is off one by more than 2^-51 they store
d / sum d, rounded, instead of d.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError
from rfmdp.rounding import SUM_TOLERANCE
from rfmdp.sets.boxes import box_centres, check_boxes, normalised, settled_boxes, tighten
from rfmdp.types import FloatArray, frozen

HALVINGS = 200  # of an interval, until its ends are neighbours


class _Set:
    """What all families have."""

    __slots__ = ()

    nominal: FloatArray  # (X,)

    @property
    def size(self) -> int:
        """Number of outcomes."""
        return len(self.nominal)


@dataclass(frozen=True, slots=True, eq=False)
class Singleton(_Set):
    """One known distribution."""

    nominal: FloatArray  # (X,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nominal", _distribution("Singleton", self.nominal))


@dataclass(frozen=True, slots=True, eq=False)
class Interval(_Set):
    """{p : lower <= p <= upper, sum p = 1}, a box within the simplex.

    `nominal` may name a distinguished member, for reports and radii: no bound rests on it.
    Without one, it is the point `lower + t (upper - lower)` whose entries sum to one.

    Examples
    --------
    >>> Interval([0.0, 0.5], [0.5, 1.0]).nominal.tolist()
    [0.25, 0.75]
    """

    lower: FloatArray  # (X,)
    upper: FloatArray  # (X,)
    nominal: FloatArray = field(default=None)  # type: ignore[arg-type]  # (X,)

    def __post_init__(self) -> None:
        lower = _vector("Interval", "lower", self.lower)
        upper = _vector("Interval", "upper", self.upper)
        centre = lower if self.nominal is None else _distribution("Interval", self.nominal)
        sizes = lower.size, upper.size, centre.size
        if len(set(sizes)) > 1:
            raise ModelError(
                f"Interval: lower, upper and nominal must have the same size, got {sizes}."
            )
        ends = np.array([0, len(lower)])
        if self.nominal is None:
            with np.errstate(all="ignore"):  # of bounds that are refused below
                centre = box_centres(ends, lower, upper)
        check_boxes(ends, lower, upper, centre, "Interval")
        lower, upper, centre = (frozen(a) for a in settled_boxes(ends, lower, upper, centre))
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        object.__setattr__(self, "nominal", centre)


@dataclass(frozen=True, slots=True, eq=False)
class LpBall(_Set):
    """{p in the simplex : ||p - nominal||_exponent <= radius}, for 1 <= exponent <= inf."""

    nominal: FloatArray  # (X,)
    radius: float
    exponent: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "nominal", _distribution("LpBall", self.nominal))
        try:
            radius, exponent = float(self.radius), float(self.exponent)
        except (TypeError, ValueError):
            radius = exponent = math.nan
        if not (0.0 <= radius < math.inf and exponent >= 1.0):
            raise ModelError(
                "LpBall: radius must be finite and >= 0, exponent must be in [1, inf]; got "
                f"{self.radius!r} and {self.exponent!r}."
            )
        object.__setattr__(self, "radius", radius)
        object.__setattr__(self, "exponent", exponent)


def L1Ball(nominal: ArrayLike, radius: float) -> LpBall:
    """Return {p : sum |p - nominal| <= radius}; a radius of 2 or more is the whole simplex."""
    return LpBall(_as_floats(nominal), radius, 1.0)


def LinfBall(nominal: ArrayLike, radius: float) -> LpBall:
    """Return {p : max |p - nominal| <= radius}, the box around a nominal distribution."""
    return LpBall(_as_floats(nominal), radius, math.inf)


@dataclass(frozen=True, slots=True, eq=False)
class Polytope(_Set):
    """The convex hull of finitely many distributions, its vertices.

    What is given by half-spaces is converted first, by pycddlib say.
    """

    vertices: FloatArray  # (V, X)
    nominal: FloatArray = field(init=False)  # their mean

    def __post_init__(self) -> None:
        corners = np.atleast_2d(_as_floats(self.vertices))
        if corners.ndim != 2 or corners.size == 0:
            raise ModelError(
                "Polytope: vertices must be a non-empty (V, X) array; half-spaces are converted "
                "first, by pycddlib say."
            )
        for number, corner in enumerate(corners):
            corners[number] = _distribution(f"Polytope, vertex {number}", corner)
        object.__setattr__(self, "vertices", frozen(np.unique(corners, axis=0)))
        object.__setattr__(self, "nominal", frozen(self.vertices.mean(axis=0)))


UncertaintySet: TypeAlias = Singleton | Interval | LpBall | Polytope


class CustomSet(Protocol):
    """A set of somebody else: it says which of the sets above it is (`docs/extending.md`)."""

    def to_set(self) -> UncertaintySet:
        """Return the same set as one of the families."""


AnySet: TypeAlias = UncertaintySet | CustomSet


def as_set(uset: AnySet, where: str) -> UncertaintySet:
    """Return one of the families; `where` begins the error if it is none."""
    family = uset.to_set() if hasattr(uset, "to_set") else uset
    if not isinstance(family, UncertaintySet):
        raise ModelError(f"{where}: must be an uncertainty set, got {family!r}.")
    return family


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


def _as_floats(values: ArrayLike) -> FloatArray:
    try:
        # a copy: a set must not change with the caller's array
        return np.array(values, dtype=np.float64, order="C", ndmin=1)
    except (TypeError, ValueError) as error:
        raise ModelError(f"Probabilities must be numbers, got {values!r}.") from error


def _vector(where: str, name: str, values: ArrayLike) -> FloatArray:
    vector = _as_floats(values)
    if vector.ndim != 1 or vector.size == 0:
        raise ModelError(f"{where}: {name} must be a non-empty vector, got shape {vector.shape}.")
    return frozen(vector)


def _distribution(where: str, values: ArrayLike) -> FloatArray:
    vector = _vector(where, "probabilities", values)
    inside = np.all((vector >= 0.0) & (vector <= 1.0))
    if not inside or abs(float(vector.sum()) - 1.0) > SUM_TOLERANCE:
        raise ModelError(
            f"{where}: probabilities must lie in [0, 1] and sum to 1, got {vector.tolist()}, which "
            f"sum to {vector.sum():.9g}."
        )
    return frozen(normalised(vector, np.array([0, len(vector)])))
