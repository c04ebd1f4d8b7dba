"""What counts prove about marginals, as plain arrays: boxes, L1 and KL balls, lower probabilities.

All are CSR over marginals: marginal `j` owns the entries `outcome_ptr[j] : outcome_ptr[j + 1]`.
Each describes one closed set per marginal that contains the true distribution unless an event
of the ledger happened. A marginal without samples (or without budget) is the whole simplex.

Sets of the same marginal at different times may be intersected: each of them holds on the same
event. An empty intersection is therefore an alarm: the data contradict an assumption.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from rfmdp.errors import ModelError, RfmdpError
from rfmdp.sets.bounds import tighten
from rfmdp.types import BoolArray, FloatArray, IntArray, frozen

# sums of rounded bounds may miss 1 by this much without meaning anything
_ROUNDING = 1e-12


class AssumptionAlarm(RfmdpError):
    """No distribution is left: the data contradict the assumptions of the guarantee."""


@dataclass(frozen=True, slots=True, eq=False)
class BoxBounds:
    """{P : lower <= P <= upper} per marginal, with attainable bounds."""

    outcome_ptr: IntArray  # (M + 1,)
    lower: FloatArray  # (O,)
    upper: FloatArray  # (O,)

    def __post_init__(self) -> None:
        starts = self.outcome_ptr[:-1]
        if len(starts):
            empty = np.maximum.reduceat(self.lower > self.upper + _ROUNDING, starts)
            empty |= np.add.reduceat(self.lower, starts) > 1.0 + _ROUNDING
            empty |= np.add.reduceat(self.upper, starts) < 1.0 - _ROUNDING
            _alarm_if(empty, "box")
        lower, upper = tighten(self.outcome_ptr, self.lower, self.upper)
        object.__setattr__(self, "lower", frozen(lower))
        object.__setattr__(self, "upper", frozen(upper))

    def intersect(self, other: BoxBounds) -> BoxBounds:
        """Return what both boxes allow; AssumptionAlarm if that is nothing."""
        _check_same(self.outcome_ptr, other.outcome_ptr)
        lower = np.maximum(self.lower, other.lower)
        return BoxBounds(self.outcome_ptr, lower, np.minimum(self.upper, other.upper))

    def member(self) -> FloatArray:
        """Return one distribution of every box: the same fraction of every width."""
        sizes, starts = np.diff(self.outcome_ptr), self.outcome_ptr[:-1]
        if not len(sizes):
            return np.empty(0)
        width = self.upper - self.lower
        room = np.add.reduceat(width, starts)
        missing = 1.0 - np.add.reduceat(self.lower, starts)
        fraction = np.divide(missing, room, out=np.zeros(len(sizes)), where=room > 0)
        shares = np.repeat(np.clip(fraction, 0.0, 1.0), sizes)
        return np.asarray(self.lower + width * shares)


@dataclass(frozen=True, slots=True, eq=False)
class L1Bounds:
    """{P : ||P - nominal||_1 <= radius} per marginal; radius 2 is the whole simplex."""

    outcome_ptr: IntArray  # (M + 1,)
    nominal: FloatArray  # (O,)
    radius: FloatArray  # (M,)


@dataclass(frozen=True, slots=True, eq=False)
class KLBounds:
    """{P : KL(nominal || P) <= rho} per marginal; rho = inf is the whole simplex."""

    outcome_ptr: IntArray  # (M + 1,)
    nominal: FloatArray  # (O,)
    rho: FloatArray  # (M,)


@dataclass(frozen=True, slots=True, eq=False)
class SubsetBounds:
    """{P : P(A) >= lower[A] for every set A of outcomes} per marginal.

    The bounds of marginal `j` are `lower[mask_ptr[j] : mask_ptr[j + 1]]`, indexed by the bitmask
    of A (bit i is the i-th outcome); the empty set has bound 0 and the full set 1.
    """

    outcome_ptr: IntArray  # (M + 1,)
    mask_ptr: IntArray  # (M + 1,)
    lower: FloatArray  # (sum of 2**X_j,)

    def __post_init__(self) -> None:
        sizes = np.diff(self.mask_ptr)
        # within a marginal, the complement of mask b is (2**X - 1) - b: the table reversed
        ends = np.repeat(self.mask_ptr[1:] - 1, sizes)
        offsets = np.arange(len(self.lower)) - np.repeat(self.mask_ptr[:-1], sizes)
        conflict = self.lower + self.lower[ends - offsets] > 1.0 + _ROUNDING
        if len(sizes):
            _alarm_if(np.maximum.reduceat(conflict, self.mask_ptr[:-1]), "subset set")
        object.__setattr__(self, "lower", frozen(self.lower))

    def table(self, marginal: int) -> FloatArray:
        """Return the (2**X,) lower probabilities of one marginal."""
        return self.lower[self.mask_ptr[marginal] : self.mask_ptr[marginal + 1]]

    def intersect(self, other: SubsetBounds) -> SubsetBounds:
        """Return the larger lower probabilities; AssumptionAlarm if a pair contradicts itself.

        The result need not be supermodular: its Choquet minimum stays a lower bound of the
        true minimum, but may be below it.
        """
        _check_same(self.outcome_ptr, other.outcome_ptr)
        lower = np.maximum(self.lower, other.lower)
        return SubsetBounds(self.outcome_ptr, self.mask_ptr, lower)


@dataclass(frozen=True, slots=True, eq=False)
class KLHistory:
    """The last few KL balls of the same marginals, newest first; the truth lies in all of them.

    Balls of different sample sizes are not nested. The largest of their minima is a lower bound,
    and keeps most of what an earlier, luckier ball had proven.
    """

    balls: tuple[KLBounds, ...]

    def push(self, ball: KLBounds, keep: int = 3) -> KLHistory:
        """Return the history with `ball` in front and at most `keep` balls."""
        if self.balls:
            _check_same(self.balls[0].outcome_ptr, ball.outcome_ptr)
        return KLHistory((ball, *self.balls)[:keep])


@dataclass(frozen=True, slots=True, eq=False)
class MixedBounds:
    """Sets of several families: part i describes the marginals `marginals[i]`, in their order."""

    outcome_ptr: IntArray  # (M + 1,)
    marginals: tuple[IntArray, ...]  # a partition of 0 .. M-1
    parts: tuple[Bounds, ...]


Bounds: TypeAlias = "BoxBounds | L1Bounds | KLBounds | SubsetBounds | MixedBounds"


def _alarm_if(empty: BoolArray, what: str) -> None:
    """Raise with the first marginal whose set is empty."""
    if np.any(empty):
        j = int(np.argmax(empty))
        raise AssumptionAlarm(
            f"Marginal {j}: its {what} must contain a distribution, found it empty "
            f"({int(np.sum(empty))} marginals in all). With independent draws from fixed "
            "distributions this has probability at most beta: check that the system is "
            "stationary, that equal identifiers mean equal distributions and that no samples "
            "were dropped or counted twice."
        )


def _check_same(first: IntArray, second: IntArray) -> None:
    if not np.array_equal(first, second):
        raise ModelError(
            "Intersection: both bounds must list the same marginals with the same outcomes, "
            f"found {len(first) - 1} and {len(second) - 1} marginals or other sizes."
        )
