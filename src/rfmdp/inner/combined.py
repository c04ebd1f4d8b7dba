"""Inner solvers made of others.

Sandwich  a relaxation, which proves one side, and a restriction, which proves the other
Screened  a costly relaxation, asked only for the rows that cheap bounds leave open. In most rows of
          real models the sequential bound equals the value of a witness found from it. Such a row
          is exact, and no relaxation can say more about it.
OneSided  a solver of which one side only is read: the one that a guarantee needs
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.inner.exact import Exact
from rfmdp.inner.protocol import (
    Inner,
    InnerStats,
    PreparedRows,
    Side,
    better_of,
    leave_open,
    relaxation_side,
)
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Direction
from rfmdp.ragged import segment_lengths
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

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedRows:
        """Bind both; raise `UnsupportedError` if the other one is no relaxation."""
        relaxation = self.relaxation.prepare(model, nature)
        if relaxation.proves != relaxation_side(nature):
            raise UnsupportedError(
                f"Screened: the inner solver must be a relaxation, {self.relaxation.name} is not."
            )
        screen = Exact(node_limit=0).prepare(model, nature)
        stats = InnerStats()

        def screened(
            value: FloatArray, rows: IntArray, below: FloatArray, above: FloatArray
        ) -> BoolArray:
            """Fill both sides by the screen; return which rows it solved."""
            screen.backup(value, rows, below, above)
            return np.asarray(above[rows] - below[rows] <= CLOSED * np.ptp(value))

        def backup(value: FloatArray, rows: IntArray, below: FloatArray, above: FloatArray) -> None:
            left = rows[~screened(value, rows, below, above)]
            leave_open(relaxation.proves, rows, below, above)
            if len(left):
                relaxation.backup(value, left, below, above)
            stats.branched += len(left)
            stats.nodes, stats.open_rows = relaxation.stats.nodes, relaxation.stats.open_rows

        def respond(value: FloatArray, rows: IntArray) -> FloatArray:
            closed = screened(value, rows, np.empty(model.rows), np.empty(model.rows))
            lengths = segment_lengths(model.successor_ptr)[rows]
            out = np.empty(int(lengths.sum()))
            for solver, chosen in ((screen, closed), (relaxation, ~closed)):
                if chosen.any():
                    out[np.repeat(chosen, lengths)] = solver.respond(value, rows[chosen])
            return out

        return PreparedRows(relaxation.proves, backup, respond, stats)


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

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedRows:
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

        return PreparedRows(side, backup, prepared.respond, prepared.stats)
