"""McCormick programmes on Gurobi, as the paper solved them; needs the extra `gurobi`."""

from __future__ import annotations

from typing import Any

import numpy as np

from rfmdp.errors import SolverError, UnsupportedError
from rfmdp.inner.mccormick.programme import Programme
from rfmdp.ragged import owners, segment
from rfmdp.types import FloatArray

TOLERANCE = 1e-9
SIZE_LIMIT = 10010  # GRB.Error.SIZE_LIMIT_EXCEEDED

OPTIONS = {
    "OutputFlag": 0,
    "Threads": 1,
    "Method": 1,  # dual simplex
    "Presolve": 0,
    "FeasibilityTol": TOLERANCE,
    "OptimalityTol": TOLERANCE,
}


def environment() -> Any:
    """Return a silent Gurobi environment; raise `UnsupportedError` without gurobipy."""
    try:
        import gurobipy
    except ImportError as error:
        raise UnsupportedError(
            "McCormick: Backend.GUROBI needs gurobipy; install the extra `gurobi` "
            "or use Backend.HIGHS."
        ) from error
    try:
        return gurobipy.Env(params=OPTIONS)
    except gurobipy.GurobiError as error:
        raise SolverError(f"Gurobi cannot start: {error}.") from error


class GurobiSession:
    """A Gurobi model of one programme; `load` changes its entries, `solve` its objective."""

    def __init__(self, programme: Programme, env: Any) -> None:
        import gurobipy

        self._gurobi = gurobipy
        self._programme = programme
        self._model = gurobipy.Model(env=env)
        columns = self._model.addVars(programme.columns, lb=0.0, ub=1.0)
        self._columns = list(columns.values())
        self._rows: list[Any] = []
        self._loaded: FloatArray | None = None
        status = gurobipy.GRB.Status
        self._names = {getattr(status, n): n for n in dir(status) if not n.startswith("_")}

    def load(self) -> None:
        """Take over the programme's entries, which the caller has rewritten."""
        entries = self._programme.data[: self._programme.changing]
        if self._loaded is None:
            self._add_rows()
            self._loaded = entries.copy()
            return
        lp = self._programme
        row_of = owners(self._programme.ptr)
        for e in np.flatnonzero(entries != self._loaded).tolist():
            self._model.chgCoeff(self._rows[row_of[e]], self._columns[lp.indices[e]], entries[e])
        self._loaded[:] = entries

    def solve(self, cost: FloatArray) -> str | None:
        """Minimise; return None if optimal, else the status by name."""
        self._model.setAttr("Obj", self._columns, cost.tolist())
        try:
            self._model.optimize()
        except self._gurobi.GurobiError as error:
            if error.errno == SIZE_LIMIT:
                lp = self._programme
                return (
                    f"its programme of {lp.columns} columns and {lp.rows} rows exceeds the "
                    "size-limited licence; use Backend.HIGHS or a full licence"
                )
            return str(error)
        status = self._names.get(self._model.Status, str(self._model.Status))
        return None if status == "OPTIMAL" else status

    def dual(self, out: FloatArray) -> None:
        """Fill the multipliers of the rows."""
        out[:] = self._model.getAttr("Pi", self._rows)

    def primal(self, out: FloatArray) -> None:
        """Fill the values of the columns."""
        out[:] = self._model.getAttr("X", self._columns)

    def _add_rows(self) -> None:
        lp = self._programme
        for r in range(lp.rows):
            part = segment(lp.ptr, r)
            columns = [self._columns[c] for c in lp.indices[part]]
            terms = self._gurobi.LinExpr(lp.data[part].tolist(), columns)
            sense = "=" if r < lp.equalities else "<"
            self._rows.append(self._model.addLConstr(terms, sense, float(lp.rhs[r])))
        self._model.update()
