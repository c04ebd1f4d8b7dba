"""A costly relaxation only where cheap bounds leave something open.

The sequential bound and a witness found from it are equal in most rows of real models. Such a row
is exact, so no relaxation can say more about it; only the others are given to the relaxation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.inner.exact import Exact, PreparedExact
from rfmdp.inner.protocol import Inner, InnerStats, PreparedInner, Side, relaxation_side
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MIN, Direction
from rfmdp.types import BoolArray, FloatArray, IntArray

CLOSED = 1e-11  # gap at which a row is exact, as a share of the span of all values


@dataclass(frozen=True, slots=True)
class Screened:
    """Proves the side that the relaxation proves: exact rows exactly, the others as it does."""

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
        return PreparedScreened(model, nature, screen, relaxation)


class PreparedScreened:
    """`Screened` bound to a model and a direction."""

    def __init__(
        self,
        model: FactoredMDP,
        nature: Direction,
        screen: PreparedExact,
        relaxation: PreparedInner,
    ) -> None:
        self.proves: Side = relaxation_side(nature)
        self._model, self._nature = model, nature
        self._screen, self._relaxation = screen, relaxation
        self.stats = InnerStats()

    def backup(
        self, value: FloatArray, rows: IntArray, below: FloatArray, above: FloatArray
    ) -> None:
        """Fill the proven side of `rows` and an infinity on the other."""
        closed = self._closed(value, rows, below, above)
        other = above if self._nature is MIN else below
        other[rows] = -self._nature.sign * np.inf
        if not closed.all():
            self._relaxation.backup(value, rows[~closed], below, above)
        done = self._relaxation.stats
        self.stats.rows += len(rows)
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
