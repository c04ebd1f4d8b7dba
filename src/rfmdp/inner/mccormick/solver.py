"""McCormick relaxation of the inner problem: one linear programme per row.

Every product of probabilities is replaced by a variable between McCormick's four inequalities,
recursively for more than two factors (h_1 = p_1 p_2, h_r = h_{r-1} p_{r+1}, in the order of the
row's marginals; appendix "McCormick Linear Program" of the paper). The programme is the one of
`programme`; the variants, ordered by how much they prove, say which equations it has:

    McCormick()                           # all marginalisation rows, the published "0 % gap"
    McCormick(variant=Variant.PRINTED)    # as printed in the paper: loose
    McCormick(backend=Backend.GUROBI)     # as the paper solved it

Only the attainable bounds of the marginals are read: a set that is not a box (an L1 ball, a
polytope) is replaced by its enclosing box, a larger relaxation. Marginals that are known are
contracted away first, and a row with one uncertain marginal left is solved greedily, exactly.

A linear programming solver is right to its tolerance only. Reported is the bound that its
multipliers prove by weak duality, recomputed here with all rounding charged to the safe side
(`kernels.mccormick.safe_bounds`); bad multipliers can make it loose, never wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

import numpy as np

from rfmdp.errors import SolverError
from rfmdp.inner.mccormick.groups import Group, Opener, RowGroups, Shape
from rfmdp.inner.mccormick.programme import Variant
from rfmdp.inner.protocol import (
    InnerStats,
    Side,
    leave_open,
    relaxation_side,
    successor_starts,
)
from rfmdp.kernels import mccormick as kernels
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Direction
from rfmdp.types import FloatArray, IntArray


class Backend(Enum):
    """Which solver runs the programmes."""

    HIGHS = "highs"
    GUROBI = "gurobi"


@dataclass(frozen=True, slots=True)
class McCormick:
    """The McCormick relaxation: proves `below` if nature minimises, `above` if it maximises.

    Parameters
    ----------
    variant
        Which equations accompany the inequalities; the default is the tightest.
    backend
        HiGHS (default) or Gurobi, which needs the extra `gurobi`.
    """

    name: ClassVar[str] = "mccormick"  # as on the command line

    variant: Variant = Variant.MARGINALISED
    backend: Backend = Backend.HIGHS

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedMcCormick:
        """Bind to a model; every kind of set fits.

        Raises
        ------
        UnsupportedError
            If the backend is not installed.
        """
        return PreparedMcCormick(model, nature, self.variant, _opener(self.backend))


def _opener(backend: Backend) -> Opener:
    """Return the function that opens a session for a programme."""
    if backend is Backend.GUROBI:
        from rfmdp.inner.mccormick.gurobi import GurobiSession, environment

        env = environment()
        return lambda lp: GurobiSession(lp, env)
    from rfmdp.inner.mccormick.highs import HighsSession

    return HighsSession


class PreparedMcCormick:
    """`McCormick` bound to a model and a direction."""

    def __init__(
        self, model: FactoredMDP, nature: Direction, variant: Variant, opener: Opener
    ) -> None:
        self.proves: Side = relaxation_side(nature)
        self.stats = InnerStats()
        self._model = model
        self._sign = -nature.sign
        self._variant = variant
        self._opener = opener
        self._shapes: dict[tuple[int, ...], Shape] = {}
        self._groups = RowGroups(model)

    def backup(
        self, value: FloatArray, rows: IntArray, below: FloatArray, above: FloatArray
    ) -> None:
        """Fill the proven side of `rows` and an infinity on the other."""
        leave_open(self.proves, rows, below, above)
        bound = below if Side.BELOW in self.proves else above
        for group in self._groups.of(rows):
            self._solve(value, group, bound, None)

    def respond(self, value: FloatArray, rows: IntArray) -> FloatArray:
        """Return the optimal h of the relaxation over the successors of `rows`."""
        begin = successor_starts(self._model, rows)
        out = np.empty(begin[-1])
        bound = np.empty(self._model.rows)
        for group in self._groups.of(rows):
            self._solve(value, group, bound, (begin[group.places], out))
        return out

    def _solve(
        self,
        value: FloatArray,
        group: Group,
        bound: FloatArray,
        witness: tuple[IntArray, FloatArray] | None,
    ) -> None:
        """Bound the rows of a group; fill their witnesses, (starts, array), if wanted."""
        if len(group.uncertain) < 2:
            self._greedy(value, group, bound, witness)
            return
        if group.sizes not in self._shapes:
            self._shapes[group.sizes] = Shape(group.sizes, self._variant, self._opener)
        shape = self._shapes[group.sizes]
        shape.load(group.uncertain, self._model.marginals)
        for start in range(0, len(group.rows), shape.batch):
            part = slice(start, start + shape.batch)
            rows = group.rows[part]
            primal = None if witness is None else np.empty((len(rows), shape.lp.columns))
            self._batch(value, shape, group, rows, bound, primal)
            if witness is not None:
                mine = witness[0][part], witness[1]
                kernels.joint(primal, group.tensors, shape.box, shape.places, mine)

    def _batch(
        self,
        value: FloatArray,
        shape: Shape,
        group: Group,
        rows: IntArray,
        bound: FloatArray,
        primal: FloatArray | None,
    ) -> None:
        """Solve the programmes of some rows with the same marginals."""
        model, session = self._model, shape.session
        asked, work = (value, self._sign, rows), (shape.tensor, shape.cost, shape.head)
        kernels.costs(asked, group.tensors, shape.box, shape.places, *work)
        for b, row in enumerate(rows.tolist()):
            failure = session.solve(shape.cost[b])
            if failure is not None:
                raise SolverError(
                    f"McCormick, row {row} ({model.row_name(row)}): the solver ended without "
                    f"an optimum: {failure}."
                )
            session.dual(shape.dual[b])
            if primal is not None:
                session.primal(primal[b])
        self.stats.nodes += len(rows)
        found = shape.head, shape.cost, shape.dual
        kernels.safe_bounds(asked, *found, shape.matrix, group.charged, shape.reduced, bound)

    def _greedy(
        self,
        value: FloatArray,
        group: Group,
        bound: FloatArray,
        witness: tuple[IntArray, FloatArray] | None,
    ) -> None:
        """Solve rows with at most one uncertain marginal: no relaxation is needed."""
        box = self._groups.box(group)
        _, _, d, _ = box
        wanted = (group.rows, np.empty(0)) if witness is None else witness
        asked = value, self._sign, group.rows
        work = np.empty(d), np.empty(d, dtype=np.int64), np.empty(d)
        kernels.greedy(asked, group.tensors, box, group.charged, work, wanted, bound)
