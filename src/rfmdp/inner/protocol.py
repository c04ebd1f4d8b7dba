"""The contract of inner solvers: what they promise to the outer loop.

`prepare` binds a solver to a model and to nature's direction, and is the place where a solver
refuses a model that it does not fit. What comes back fills, for the rows it is given, numbers
that are *proven* bounds of

    q*(r) = opt over p_1 in P_1, ..., p_n in P_n of sum_o value[successor(o)] p_1[o_1] ... p_n[o_n],

opt being nature's direction, rounding included. A side that a solver cannot prove is filled with
-inf or +inf, so that an array is always a bound. `proves` says which
sides are worth reading.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Flag
from typing import Protocol, TypeAlias

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Direction
from rfmdp.ragged import starts
from rfmdp.types import FloatArray, IntArray


class Side(Flag):
    """Which bounds of the exact inner value are proven."""

    BELOW = 1
    ABOVE = 2
    BOTH = 3


def relaxation_side(nature: Direction) -> Side:
    """Return the side that an enlarged set of nature proves."""
    return Side.BELOW if nature is Direction.MIN else Side.ABOVE


def leave_open(side: Side, rows: IntArray, below: FloatArray, above: FloatArray) -> None:
    """Fill the sides other than `side` of the wanted rows with infinities: nothing is proven."""
    if Side.BELOW not in side:
        below[rows] = -np.inf
    if Side.ABOVE not in side:
        above[rows] = np.inf


@dataclass(slots=True)
class InnerStats:
    """What an inner solver did so far."""

    branched: int = 0  # inner problems that the first bounds did not certify
    nodes: int = 0  # nodes of trees, or LPs solved
    open_rows: int = 0  # stopped at a limit with a gap left


Backup: TypeAlias = Callable[[FloatArray, IntArray, FloatArray, FloatArray], None]
Respond: TypeAlias = Callable[[FloatArray, IntArray], FloatArray]


def _no_marginals(value: FloatArray, rows: IntArray) -> FloatArray:
    raise UnsupportedError("Only `Exact` answers with the marginals of a row.")


@dataclass(slots=True, eq=False)
class PreparedInner:
    """An inner solver bound to a model and a direction.

    `backup(value, rows, below, above)` fills `below[rows]` and `above[rows]`, both of shape (R,).

    `respond(value, rows)` returns nature's answer as distributions over the successors of `rows`,
    concatenated. They belong to the set that the solver works with (the exact product or its
    relaxation) and attain, to rounding, the value of `backup`. `Exact` has `marginals`, too: the
    answer as distributions of the marginals of `rows`, in the model's order.
    """

    proves: Side
    backup: Backup
    respond: Respond
    stats: InnerStats = field(default_factory=InnerStats)
    marginals: Respond = _no_marginals


class Inner(Protocol):
    """A choice of method for the inner problem; frozen settings only."""

    @property
    def name(self) -> str:
        """Short name, as on the command line."""
        ...

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedInner:
        """Bind to a model, or raise `UnsupportedError` with the reason."""
        ...


def successor_starts(model: FactoredMDP, rows: IntArray) -> IntArray:
    """Return where the successors of every row start in an answer of `respond`, (N + 1,)."""
    return starts(model.successor_ptr[rows + 1] - model.successor_ptr[rows])


@dataclass(frozen=True, slots=True)
class OneSided:
    """Keep only the side of a solver that holds whatever nature does.

    An outer solver that has to prove one side only is done sooner.
    """

    inner: Inner

    @property
    def name(self) -> str:
        """That of the solver."""
        return self.inner.name

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedInner:
        """Bind the solver; raise `UnsupportedError` if it does not prove that side."""
        prepared = self.inner.prepare(model, nature)
        side = relaxation_side(nature)
        if not prepared.proves & side:
            raise UnsupportedError(
                f"{self.inner.name}: a guarantee needs bounds that hold whatever nature does; use "
                "Exact or a relaxation."
            )

        def backup(value: FloatArray, rows: IntArray, below: FloatArray, above: FloatArray) -> None:
            prepared.backup(value, rows, below, above)
            leave_open(side, rows, below, above)

        return PreparedInner(side, backup, prepared.respond, prepared.stats)
