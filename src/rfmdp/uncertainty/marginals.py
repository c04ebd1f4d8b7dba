"""Many marginal sets as flat arrays: what the kernels read and a model stores.

A marginal `j` owns the outcomes `outcome_ptr[j] : outcome_ptr[j + 1]`. Whatever its kind,
`lower` and `upper` are attainable bounds of its entries and `nominal` is a member, so that
solvers that need only bounds (interval arithmetic, McCormick) accept every kind.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.types import FloatArray, Int8Array, IntArray, frozen
from rfmdp.uncertainty.bounds import bounds, nominal, tighten
from rfmdp.uncertainty.sets import Interval, LpBall, Polytope, Singleton, UncertaintySet, check_box


class Kind(IntEnum):
    """How the minimiser of a marginal works."""

    SINGLETON = 0
    BOX = 1
    L1 = 2
    LP = 3
    POLYTOPE = 4


@dataclass(frozen=True, slots=True, eq=False)
class Marginals:
    """A sequence of M uncertainty sets, packed.

    Build with `from_sets`, or in bulk with `from_points` and `from_boxes`. `marginals[j]`
    gives the set back as an object.
    """

    outcome_ptr: IntArray  # (M + 1,)
    kind: Int8Array  # (M,)
    nominal: FloatArray  # (O,)
    lower: FloatArray  # (O,) attainable
    upper: FloatArray  # (O,) attainable
    radius: FloatArray  # (M,) of Lp balls, nan elsewhere
    exponent: FloatArray  # (M,) of Lp balls, nan elsewhere
    corner_ptr: IntArray  # (M + 1,) rows of `corners` are per marginal; polytopes only
    corners: FloatArray  # (sum of V_j * X_j,), C order per marginal

    def __post_init__(self) -> None:
        for name in self.__slots__:
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def __len__(self) -> int:
        return len(self.kind)

    def __getitem__(self, j: int) -> UncertaintySet:
        if not 0 <= j < len(self):
            raise IndexError(j)
        kind, part = self.kind[j], slice(self.outcome_ptr[j], self.outcome_ptr[j + 1])
        if kind == Kind.SINGLETON:
            return Singleton(self.nominal[part])
        if kind == Kind.POLYTOPE:
            corners = self.corners[self.corner_ptr[j] : self.corner_ptr[j + 1]]
            return Polytope(corners.reshape(-1, part.stop - part.start))
        if not math.isnan(self.exponent[j]):
            ball = LpBall(self.nominal[part], float(self.radius[j]), float(self.exponent[j]))
            return ball
        return Interval(self.lower[part], self.upper[part], self.nominal[part])

    def __iter__(self) -> Iterator[UncertaintySet]:
        return (self[j] for j in range(len(self)))

    @property
    def sizes(self) -> IntArray:
        """Number of outcomes of every marginal."""
        return np.diff(self.outcome_ptr)

    @staticmethod
    def from_sets(sets: Iterable[UncertaintySet]) -> Marginals:
        """Pack sets of any families, in order."""
        sets = list(sets)
        ends = [bounds(uset) for uset in sets]
        corners = [s.vertices.ravel() if isinstance(s, Polytope) else np.empty(0) for s in sets]
        balls = [s if isinstance(s, LpBall) else None for s in sets]
        return Marginals(
            outcome_ptr=_pointers([s.size for s in sets]),
            kind=np.array([_kind(s) for s in sets], dtype=np.int8),
            nominal=_join([nominal(s) for s in sets]),
            lower=_join([low for low, _ in ends]),
            upper=_join([high for _, high in ends]),
            radius=np.array([b.radius if b else math.nan for b in balls], dtype=np.float64),
            exponent=np.array([b.exponent if b else math.nan for b in balls], dtype=np.float64),
            corner_ptr=_pointers([len(c) for c in corners]),
            corners=_join(corners),
        )

    @staticmethod
    def from_points(outcome_ptr: IntArray, probability: FloatArray) -> Marginals:
        """Pack known distributions; row sums are checked by `from_boxes`' rules."""
        return Marginals.from_boxes(outcome_ptr, probability, probability, probability)

    @staticmethod
    def from_boxes(
        outcome_ptr: IntArray, lower: FloatArray, upper: FloatArray, nominal: FloatArray
    ) -> Marginals:
        """Pack boxes given in bulk (O,), with a nominal member each.

        A box whose bounds coincide becomes a singleton.
        """
        count = len(outcome_ptr) - 1
        if count:
            _check_boxes(outcome_ptr, lower, upper)
        lower, upper = tighten(outcome_ptr, lower, upper)
        width = np.zeros(count)
        if count:
            width = np.maximum.reduceat(upper - lower, outcome_ptr[:-1])
        return Marginals(
            outcome_ptr=np.asarray(outcome_ptr, dtype=np.int64),
            kind=np.where(width > 0.0, Kind.BOX, Kind.SINGLETON).astype(np.int8),
            nominal=np.asarray(nominal, dtype=np.float64),
            lower=lower,
            upper=upper,
            radius=np.full(count, math.nan),
            exponent=np.full(count, math.nan),
            corner_ptr=np.zeros(count + 1, dtype=np.int64),
            corners=np.empty(0),
        )


def _kind(uset: UncertaintySet) -> Kind:
    if isinstance(uset, Singleton) or uset.size == 1:
        return Kind.SINGLETON
    if isinstance(uset, Polytope):
        return Kind.POLYTOPE
    if isinstance(uset, LpBall):
        if uset.exponent == math.inf:
            return Kind.BOX
        return Kind.L1 if uset.exponent == 1.0 else Kind.LP
    return Kind.BOX


def _check_boxes(outcome_ptr: IntArray, lower: FloatArray, upper: FloatArray) -> None:
    """Check all boxes at once; on a fault name the first marginal that has one."""
    if len(lower) != outcome_ptr[-1] or len(upper) != outcome_ptr[-1]:
        raise ModelError(
            f"Marginals: bounds must have {outcome_ptr[-1]} entries, "
            f"got {len(lower)} and {len(upper)}."
        )
    if np.any(np.diff(outcome_ptr) < 1):
        j = int(np.flatnonzero(np.diff(outcome_ptr) < 1)[0])
        raise ModelError(f"Marginal {j}: must have at least one outcome.")
    starts = outcome_ptr[:-1]
    fault = (
        np.maximum.reduceat(~((lower >= 0) & (upper <= 1) & (lower <= upper)), starts)
        | (np.add.reduceat(lower, starts) > 1 + 1e-9)
        | (np.add.reduceat(upper, starts) < 1 - 1e-9)
    )
    if np.any(fault):
        j = int(np.flatnonzero(fault)[0])
        part = slice(outcome_ptr[j], outcome_ptr[j + 1])
        check_box(lower[part], upper[part], where=f"Marginal {j}")


def _pointers(sizes: list[int]) -> IntArray:
    pointers = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=pointers[1:])
    return pointers


def _join(parts: list[FloatArray]) -> FloatArray:
    return np.concatenate(parts) if parts else np.empty(0)
