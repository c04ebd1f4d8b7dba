"""Inner solvers made of others.

Sandwich  a relaxation, which proves one side, and a restriction, which proves the other
Screened  a costly relaxation, asked only for the rows that cheap bounds leave open. In most rows of
          real models the sequential bound equals the value of a witness found from it. Such a row
          is exact, and no relaxation can say more about it.
OneSided  a solver read on one side only
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.inner.exact import Exact, PreparedExact
from rfmdp.inner.protocol import (
    Inner,
    InnerStats,
    PreparedInner,
    PreparedRows,
    Side,
    better_of,
    leave_open,
    relaxation_side,
)
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Direction
from rfmdp.rounding import CLOSED
from rfmdp.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Sandwich:
    """Join a relaxation with a restriction, so that both sides are proven."""

    relaxation: Inner
    restriction: Inner

    @property
    def name(self) -> str:
        """Short name, as on the command line."""
        return f"{self.relaxation.name}+{self.restriction.name}"

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedRows:
        """Bind both; raise `UnsupportedError` if together they do not prove both sides."""
        relaxation = self.relaxation.prepare(model, nature)
        restriction = self.restriction.prepare(model, nature)
        if relaxation.proves | restriction.proves != Side.BOTH:
            raise UnsupportedError(
                f"Sandwich: {self.relaxation.name} and {self.restriction.name} prove the same "
                "side; join a relaxation (such as McCormick) with a restriction (Alternating)."
            )
        backup = better_of([relaxation.backup, restriction.backup])
        # the answer is a member of the product set; both solve the same rows
        return PreparedRows(Side.BOTH, backup, restriction.respond, relaxation.stats)


@dataclass(frozen=True, slots=True)
class Screened:
    """Prove the side of a relaxation: cheap bounds first, the relaxation where they leave a gap."""

    relaxation: Inner

    @property
    def name(self) -> str:
        """Short name with that of the relaxation."""
        return f"screened {self.relaxation.name}"

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedScreened:
        """Bind both; raise `UnsupportedError` if the other one is no relaxation."""
        relaxation = self.relaxation.prepare(model, nature)
        if relaxation.proves != relaxation_side(nature):
            raise UnsupportedError(
                f"Screened: the inner solver must be a relaxation, {self.relaxation.name} is not."
            )
        screen = Exact(node_limit=0, cut_limit=0).prepare(model, nature)
        return PreparedScreened(model, screen, relaxation)


class PreparedScreened:
    """`Screened` bound to a model and a direction."""

    def __init__(
        self, model: FactoredMDP, screen: PreparedExact, relaxation: PreparedInner
    ) -> None:
        self.proves: Side = relaxation.proves
        self._model, self._screen, self._relaxation = model, screen, relaxation
        self.stats = InnerStats()

    def backup(
        self, value: FloatArray, rows: IntArray, below: FloatArray, above: FloatArray
    ) -> None:
        """Fill the proven side of `rows` and an infinity on the other."""
        closed = self._closed(value, rows, below, above)
        leave_open(self.proves, rows, below, above)
        if not closed.all():
            self._relaxation.backup(value, rows[~closed], below, above)
        done = self._relaxation.stats
        self.stats.branched += int(np.count_nonzero(~closed))
        self.stats.nodes, self.stats.open_rows = done.nodes, done.open_rows

    def respond(self, value: FloatArray, rows: IntArray) -> FloatArray:
        """Return witnesses of closed rows, and answers of the relaxation for the others."""
        sides = np.empty((2, self._model.rows))
        closed = self._closed(value, rows, sides[0], sides[1])
        lengths = np.diff(self._model.successor_ptr)[rows]
        out = np.empty(int(lengths.sum()))
        for solver, chosen in ((self._screen, closed), (self._relaxation, ~closed)):
            if chosen.any():
                out[np.repeat(chosen, lengths)] = solver.respond(value, rows[chosen])
        return out

    def _closed(
        self, value: FloatArray, rows: IntArray, below: FloatArray, above: FloatArray
    ) -> BoolArray:
        """Fill both sides by the screen; say which rows it solved."""
        self._screen.backup(value, rows, below, above)
        return np.asarray(above[rows] - below[rows] <= CLOSED * np.ptp(value))


@dataclass(frozen=True, slots=True)
class OneSided:
    """Keep only the side of a solver that holds whatever nature does: it is proven sooner alone."""

    inner: Inner

    @property
    def name(self) -> str:
        """That of the solver."""
        return self.inner.name

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedRows:
        """Bind the solver; raise `UnsupportedError` if it does not prove that side."""
        prepared, side = self.inner.prepare(model, nature), relaxation_side(nature)
        if not prepared.proves & side:
            raise UnsupportedError(
                f"{self.inner.name}: a guarantee needs bounds that hold whatever nature does; use "
                "Exact or a relaxation."
            )

        def backup(value: FloatArray, rows: IntArray, below: FloatArray, above: FloatArray) -> None:
            prepared.backup(value, rows, below, above)
            leave_open(side, rows, below, above)

        return PreparedRows(side, backup, prepared.respond, prepared.stats)
