"""Many marginal sets as flat arrays: what the kernels read and a model stores.

A marginal `j` owns the outcomes `outcome_ptr[j] : outcome_ptr[j + 1]`. Whatever its kind,
`lower` and `upper` are attainable bounds of its entries and `nominal` is a member, so that
solvers that need only bounds (interval arithmetic, McCormick) accept every kind.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.ragged import entries, segment, segment_lengths, starts
from rfmdp.rounding import NORMAL
from rfmdp.sets.boxes import box_centres, check_boxes, settled_boxes, tighten
from rfmdp.sets.families import (
    AnySet,
    Interval,
    LpBall,
    Polytope,
    Singleton,
    UncertaintySet,
    as_set,
    bounds,
)
from rfmdp.types import AnyArray, FloatArray, Int8Array, IntArray, frozen


class Kind(IntEnum):
    """How the minimiser of a marginal works."""

    SINGLETON = 0
    BOX = 1
    L1 = 2
    LP = 3
    POLYTOPE = 4


PER_SET = "kind", "radius", "exponent"
PER_OUTCOME = "nominal", "lower", "upper"


@dataclass(frozen=True, slots=True, eq=False)
class Marginals:
    """A sequence of M uncertainty sets, packed.

    Build with `from_sets`, or in bulk with `from_points` and `from_boxes`. `marginals[j]`
    gives the set back as an object; a set with a single member is of the kind SINGLETON,
    whatever its family, and comes back as a `Singleton` (Lp balls keep their family).
    """

    outcome_ptr: IntArray  # (M + 1,)
    kind: Int8Array  # (M,)
    nominal: FloatArray  # (O,)
    lower: FloatArray  # (O,) attainable
    upper: FloatArray  # (O,) attainable
    radius: FloatArray  # (M,) of Lp balls, nan elsewhere
    exponent: FloatArray  # (M,) of Lp balls, nan elsewhere
    corner_ptr: IntArray  # (M + 1,) where those of a marginal begin
    corners: FloatArray  # vertices of polytopes, (V_j * X_j,) each
    stated: FloatArray | None = None  # (2, O) bounds as a text has them, None: the attainable ones

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) is not None:
                object.__setattr__(self, name, frozen(getattr(self, name)))

    def __len__(self) -> int:
        return len(self.kind)

    def __getitem__(self, j: int) -> UncertaintySet:
        if not 0 <= j < len(self):
            raise IndexError(j)
        kind = self.kind[j]
        outcomes = segment(self.outcome_ptr, j)
        if not math.isnan(self.exponent[j]):
            return LpBall(self.nominal[outcomes], float(self.radius[j]), float(self.exponent[j]))
        if kind == Kind.SINGLETON:
            return Singleton(self.nominal[outcomes])
        if kind == Kind.POLYTOPE:
            corners = self.corners[segment(self.corner_ptr, j)]
            return Polytope(corners.reshape(-1, outcomes.stop - outcomes.start))
        return Interval(self.lower[outcomes], self.upper[outcomes], self.nominal[outcomes])

    def __iter__(self) -> Iterator[UncertaintySet]:
        return (self[j] for j in range(len(self)))

    @property
    def sizes(self) -> IntArray:
        """Number of outcomes of every marginal, (M,)."""
        return segment_lengths(self.outcome_ptr)

    def as_stated(self) -> Marginals:
        """Return the sets with the bounds that a text states, for products of bounds only.

        PRISM multiplies the bounds of synchronised commands as they are written, attainable or
        not; everything else needs attainable bounds.
        """
        if self.stated is None:
            return self
        return replace(self, lower=self.stated[0], upper=self.stated[1], stated=None)

    @staticmethod
    def from_sets(members: Iterable[AnySet]) -> Marginals:
        """Pack sets of any families, in order."""
        sets = [as_set(uset, f"Marginal {j}") for j, uset in enumerate(members)]
        columns = list(zip(*map(_columns, sets), strict=True)) or [()] * 7
        joined = [np.concatenate([*column, np.empty(0)]) for column in columns[:4]]
        return Marginals(
            outcome_ptr=starts([s.size for s in sets]),
            corner_ptr=starts([len(c) for c in columns[3]]),
            kind=np.array(columns[4], dtype=np.int8),
            radius=np.array(columns[5], dtype=np.float64),
            exponent=np.array(columns[6], dtype=np.float64),
            **dict(zip((*PER_OUTCOME, "corners"), joined, strict=True)),
        )

    @staticmethod
    def of_kind(
        outcome_ptr: IntArray,
        kind: Int8Array,
        nominal: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        radius: FloatArray | None = None,
    ) -> Marginals:
        """Pack points, boxes and L1 balls (M,) whose numbers are those of sets already."""
        count = len(outcome_ptr) - 1
        return Marginals(
            outcome_ptr=outcome_ptr,
            kind=kind.astype(np.int8),
            nominal=nominal,
            lower=lower,
            upper=upper,
            radius=np.full(count, math.nan) if radius is None else radius,
            exponent=np.where(kind == Kind.L1, 1.0, math.nan),
            corner_ptr=np.zeros(count + 1, dtype=np.int64),
            corners=np.empty(0),
        )

    @staticmethod
    def from_columns(**columns: AnyArray) -> Marginals:
        """Return the sets that arrays of packed sets stand for, each made by its constructor.

        Packed sets stay as they are; what contradicts a definition follows it: bounds of balls and
        polytopes are computed again.

        Raises
        ------
        ModelError
            If the arrays do not fit each other, or are not those of sets.
        """
        raw = Marginals(**columns)
        ptr, kind = raw.outcome_ptr, raw.kind
        _check_layout("outcome_ptr", ptr, 1, nominal=raw.nominal, lower=raw.lower, upper=raw.upper)
        _check_layout("corner_ptr", raw.corner_ptr, 0, corners=raw.corners)
        sizes, listed = raw.sizes, segment_lengths(raw.corner_ptr)
        if any(a.shape != sizes.shape for a in (kind, raw.radius, raw.exponent, listed)):
            raise ModelError(f"Marginals: {', '.join(PER_SET)}, corners: must be of all sets.")
        corners, boxes = kind == Kind.POLYTOPE, np.isin(kind, [Kind.SINGLETON, Kind.BOX])
        others = corners | ~np.isnan(raw.exponent)
        wrong = (listed % sizes > 0) | (corners & (listed == 0)) | ~(others | boxes)
        for j in np.flatnonzero(wrong)[:1]:
            raise ModelError(f"Marginal {j}: must be a box, a ball or a list of vertices.")
        plain, other = np.flatnonzero(~others), np.flatnonzero(others)
        at = entries(ptr, plain)
        packed = Marginals.from_boxes(
            starts(sizes[plain]), raw.lower[at], raw.upper[at], raw.nominal[at]
        )
        if not len(other):
            return packed
        sets = Marginals.from_sets(raw[j] for j in other.tolist())
        return packed.joined(sets).pick(np.argsort([*plain, *other]))

    def pick(self, chosen: IntArray) -> Marginals:
        """Return some of the sets, in the order of `chosen`."""
        outcomes, corners = entries(self.outcome_ptr, chosen), entries(self.corner_ptr, chosen)
        places = dict.fromkeys(PER_OUTCOME, outcomes) | dict.fromkeys(PER_SET, chosen)
        columns = {name: getattr(self, name)[place] for name, place in places.items()}
        return Marginals(
            outcome_ptr=starts(self.sizes[chosen]),
            corner_ptr=starts(segment_lengths(self.corner_ptr)[chosen]),
            corners=self.corners[corners],
            **columns,
        )

    def joined(self, other: Marginals) -> Marginals:
        """Return the sets of both, one after the other."""
        both = {
            name: np.concatenate([getattr(self, name), getattr(other, name)])
            for name in (*PER_SET, *PER_OUTCOME, "corners")
        }
        for name in ("outcome_ptr", "corner_ptr"):
            first, second = getattr(self, name), getattr(other, name)
            both[name] = np.concatenate([first, first[-1] + second[1:]])
        return Marginals(**both)

    @staticmethod
    def from_points(outcome_ptr: IntArray, probability: FloatArray) -> Marginals:
        """Pack known distributions (O,); they are checked by `from_boxes`' rules."""
        return Marginals.from_boxes(outcome_ptr, probability, probability, probability)

    @staticmethod
    def from_boxes(
        outcome_ptr: IntArray,
        lower: FloatArray,
        upper: FloatArray,
        nominal: FloatArray | None = None,
    ) -> Marginals:
        """Pack boxes given in bulk (O,), with a nominal member each, by default their centres.

        A box whose bounds coincide becomes a singleton.

        Raises
        ------
        ModelError
            If sizes do not fit, or for the first marginal that is no non-empty box with a
            nominal member inside.
        """
        outcome_ptr = np.asarray(outcome_ptr, dtype=np.int64)
        if nominal is None:
            nominal = box_centres(outcome_ptr, lower, upper)
        lower, upper, nominal = (np.asarray(a, dtype=np.float64) for a in (lower, upper, nominal))
        _check_layout("outcome_ptr", outcome_ptr, 1, lower=lower, upper=upper, nominal=nominal)
        check_boxes(outcome_ptr, lower, upper, nominal)
        count = len(outcome_ptr) - 1
        lower, upper, nominal = settled_boxes(outcome_ptr, lower, upper, nominal)
        lower, upper = tighten(outcome_ptr, lower, upper)
        width = np.zeros(count)
        if count:
            width = np.maximum.reduceat(upper - lower, outcome_ptr[:-1])
        box = width > 0.0
        return Marginals.of_kind(
            outcome_ptr,
            np.where(box, Kind.BOX, Kind.SINGLETON),
            np.where(np.repeat(box, segment_lengths(outcome_ptr)), nominal, lower),
            lower,
            upper,
        )


def _columns(
    uset: UncertaintySet,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, Kind, float, float]:
    """Return what is stored of a set: nominal, lower, upper, corners, kind, radius, exponent."""
    lower, upper = bounds(uset)
    kind, radius, exponent, corners = Kind.BOX, math.nan, math.nan, np.empty(0)
    still = np.array_equal(lower, upper)
    if isinstance(uset, LpBall):
        kind = {1.0: Kind.L1, math.inf: Kind.BOX}.get(uset.exponent, Kind.LP)
        if kind is not Kind.BOX and uset.radius > 0.0:
            # an outcome that nature can empty or fill, however little it takes, makes a
            # difference; normal floats that do not change by the radius are not emptied by it
            still = still and (uset.size == 1 or float(uset.nominal.min()) > NORMAL)
        # the box of one point that an L-infinity ball is may have moved
        if not still or np.array_equal(uset.nominal, lower):
            radius, exponent = uset.radius, uset.exponent
    elif isinstance(uset, Polytope) and not still:
        kind, corners = Kind.POLYTOPE, uset.vertices.ravel()
    # a single member is stored alike in all three arrays
    nominal = lower if still else uset.nominal
    return nominal, lower, upper, corners, Kind.SINGLETON if still else kind, radius, exponent


def _check_layout(name: str, ptr: IntArray, least: int, **columns: FloatArray) -> None:
    """Raise `ModelError` unless pointers cut floats into segments of at least so many."""
    if ptr.ndim != 1 or ptr.dtype != np.int64 or len(ptr) == 0 or ptr[0] != 0:
        raise ModelError(f"Marginals: {name} must be a vector of integers that starts with 0.")
    for j in np.flatnonzero(ptr[1:] < ptr[:-1] + least)[:1]:
        raise ModelError(f"Marginal {j}: must have at least one outcome; see {name}.")
    for what, values in columns.items():
        if values.shape != (ptr[-1],) or values.dtype != np.float64:
            raise ModelError(
                f"Marginals: {what} must have {ptr[-1]} numbers, as {name} says, "
                f"got shape {values.shape}."
            )


def balls_around(
    marginals: Marginals, radius: float | FloatArray, exponent: float = math.inf, floor: float = 0.0
) -> Marginals:
    """Return Lp balls of a radius (one, or one per marginal) around nominal distributions.

    In the L-infinity norm they are boxes: every probability p that is not 0 or 1 becomes
    [max(p - radius, floor), min(p + radius, 1 - floor)]. Certain marginals stay as they are.
    """
    p, sizes = marginals.nominal, marginals.sizes
    try:
        radii = np.broadcast_to(np.asarray(radius, dtype=np.float64), (len(marginals),))
    except (TypeError, ValueError):
        radii = np.full(1, -1.0)
    if not np.all(radii >= 0.0) or not 0.0 <= floor < 0.5:
        raise ModelError(
            f"A radius must be a number >= 0, or an array of one per marginal ({len(marginals)}), "
            f"and a floor must lie in [0, 0.5); got {radius!r:.60} and {floor!r}."
        )
    if math.isinf(exponent):
        reach = np.repeat(radii, sizes)
        open_ = (p > 0.0) & (p < 1.0) & (reach > 0.0)
        lower = np.where(open_, np.maximum(p - reach, np.minimum(floor, p)), p)
        upper = np.where(open_, np.minimum(p + reach, np.maximum(1.0 - floor, p)), p)
        return Marginals.from_boxes(marginals.outcome_ptr, lower, upper, p)
    if floor > 0.0:
        raise UnsupportedError("A floor needs the L-infinity norm; leave it out, or use boxes.")
    centres = [p[segment(marginals.outcome_ptr, j)] for j in range(len(marginals))]
    return Marginals.from_sets(
        LpBall(centre, 0.0 if np.any(centre == 1.0) else r, exponent)
        for centre, r in zip(centres, radii.tolist(), strict=True)
    )
