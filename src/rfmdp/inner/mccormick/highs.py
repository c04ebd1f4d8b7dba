"""McCormick programmes on HiGHS: one model per row shape, kept and warm-started."""

from __future__ import annotations

import highspy
import numpy as np

from rfmdp.inner.mccormick.programme import Programme
from rfmdp.ragged import owners
from rfmdp.types import FloatArray

# single changes cost about 2 microseconds each, a whole new model with the old basis about 40
FEW = 30
TOLERANCE, LOOSE = 1e-9, 1e-6

OPTIONS = {
    "output_flag": False,
    "threads": 1,
    "solver": "simplex",
    "presolve": "off",
    "simplex_strategy": 1,  # dual simplex
    # the programme is scaled by construction; perturbation costs a clean-up run per row
    "simplex_scale_strategy": 0,
    "dual_simplex_cost_perturbation_multiplier": 0.0,
    "small_matrix_value": 1e-12,
}


class HighsSession:
    """A HiGHS model of one programme; `load` changes its entries, `solve` its objective."""

    def __init__(self, programme: Programme) -> None:
        self._programme = programme
        self._highs = highspy.Highs()
        for name, value in OPTIONS.items():
            self._highs.setOptionValue(name, value)
        self._tolerate(TOLERANCE)
        changing = programme.changing
        self._row_of = owners(programme.ptr)[:changing].tolist()
        self._col_of = programme.indices[:changing].tolist()
        self._loaded: FloatArray | None = None
        self._all = np.arange(programme.columns, dtype=np.int32)
        self._row_lower = programme.rhs.copy()
        self._row_lower[programme.equalities :] = -highspy.kHighsInf

    def load(self) -> None:
        """Take over the programme's entries, which the caller has rewritten."""
        entries = self._programme.data[: self._programme.changing]
        if self._loaded is None:
            self._pass_model()
            self._loaded = entries.copy()
            return
        changed = np.flatnonzero(entries != self._loaded)
        if len(changed) <= FEW:
            change = self._highs.changeCoeff
            values = entries.tolist()
            for e in changed.tolist():
                change(self._row_of[e], self._col_of[e], values[e])
        else:
            basis = self._highs.getBasis()
            self._pass_model()
            self._highs.setBasis(basis)
        self._loaded[:] = entries

    def solve(self, cost: FloatArray) -> str | None:
        """Minimise; return None if optimal, else the status by name."""
        self._highs.changeColsCost(len(cost), self._all, cost)
        if self._run() == "kOptimal":
            return None
        # feasible and bounded by construction: suspect the warm start and the strict tolerances
        self._highs.clearSolver()
        self._tolerate(LOOSE)
        status = self._run()
        self._tolerate(TOLERANCE)
        return None if status == "kOptimal" else status

    def dual(self, out: FloatArray) -> None:
        """Fill the multipliers of the rows."""
        out[:] = self._highs.getSolution().row_dual

    def primal(self, out: FloatArray) -> None:
        """Fill the values of the columns."""
        out[:] = self._highs.getSolution().col_value

    def _run(self) -> str:
        self._highs.run()
        return str(self._highs.getModelStatus().name)

    def _tolerate(self, tolerance: float) -> None:
        self._highs.setOptionValue("primal_feasibility_tolerance", tolerance)
        self._highs.setOptionValue("dual_feasibility_tolerance", tolerance)

    def _pass_model(self) -> None:
        lp = self._programme
        self._highs.passModel(
            lp.columns,
            lp.rows,
            len(lp.data),
            int(highspy.MatrixFormat.kRowwise),
            int(highspy.ObjSense.kMinimize),
            0.0,
            np.zeros(lp.columns),
            np.zeros(lp.columns),
            np.ones(lp.columns),
            self._row_lower,
            lp.rhs,
            lp.ptr,
            lp.indices,
            lp.data,
            np.zeros(lp.columns, dtype=np.int32),
        )
