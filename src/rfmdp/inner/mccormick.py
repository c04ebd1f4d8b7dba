"""McCormick relaxation of the inner problem: one linear programme per row.

Every product of probabilities is replaced by a variable between McCormick's four inequalities,
recursively for more than two factors (h_1 = p_1 p_2, h_r = h_{r-1} p_{r+1}; appendix "McCormick
Linear Program" of the paper). It is a reference for what the paper computed: `Exact` proves more,
sooner. All variables live in [0, 1], which keeps sets of radius 1e-9 well conditioned: a marginal
in [l, u] is p = l + w x, a prefix product h = L + W xi, and the product of a pair is t = xi x, with

    0 <= t,   t <= xi,   t <= x,   xi + x - t <= 1.

xi of the next level is the convex combination of x, xi and t with weights L_I w_j, W_I l_j, W_I w_j
over their sum (xi of the first is x). With F = 1 - sum l and G = 1 - sum L the equations are

    PRINTED       sum h = 1 over the last level
    SIMPLEX       and sum_i (w_i / F) x_i = 1 for every marginal
    MARGINALISED  and, at every level, sum_j (w_j / F) t_Ij = xi_I for all I (that is, sum_j h_Ij
                  = h_I) and sum_I (W_I / G) t_Ij = x_j for all j (sum_I h_Ij = p_j); one simplex
                  row then implies the others and sum h = 1, which are left out

Reported is the bound that the multipliers of the solver prove by weak duality, with all rounding
charged to the safe side: bad multipliers can make it loose, never wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache, reduce
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rfmdp.errors import SolverError, UnsupportedError
from rfmdp.inner.protocol import InnerStats, PreparedInner, Side, leave_open, relaxation_side
from rfmdp.kernels.oracle import box_member
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Direction
from rfmdp.ragged import segment, starts
from rfmdp.rounding import KNOWN, UNIT, backup_margin
from rfmdp.types import FloatArray, IntArray

PROGRAMMES = 256  # programmes that are kept, with the basis of their last solution
OPTIONS = {
    "output_flag": False,
    "threads": 1,
    "presolve": "off",
    "simplex_strategy": 1,  # dual simplex
    # the programme is scaled by construction; perturbation costs a clean-up run per row
    "simplex_scale_strategy": 0,
    "dual_simplex_cost_perturbation_multiplier": 0.0,
    "small_matrix_value": 1e-12,
}


class Variant(Enum):
    """Which equations accompany the McCormick inequalities."""

    PRINTED = "printed"  # sum h = 1 only
    SIMPLEX = "simplex"  # and sum p = 1 for every marginal
    MARGINALISED = "marginalised"  # and sums of h over one factor


@dataclass(frozen=True, slots=True)
class McCormick:
    """The McCormick relaxation: proves `below` if nature minimises, `above` if it maximises.

    Only bounds of the marginals are read: every set is replaced by its enclosing box. A row with
    one uncertain marginal is exact. The default variant is the published "0 % gap".
    """

    name: ClassVar[str] = "mccormick"  # as on the command line

    variant: Variant = Variant.MARGINALISED

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedInner:
        """Bind to a model; every kind of set fits."""
        side, stats, sign = relaxation_side(nature), InnerStats(), -nature.sign
        product_of = lru_cache(PROGRAMMES)(lambda ids: _Product(model, ids, self.variant))

        def solve(value: FloatArray, row: int) -> tuple[float, FloatArray]:
            """Return the bound of a row and the joint distribution that it stands for."""
            product = product_of(tuple(model.row_marginals[segment(model.marginal_ptr, row)]))
            successors = value[model.successors[segment(model.successor_ptr, row)]]
            reference, span = float(successors[0]), float(np.ptp(successors))
            weighted = product.weight * (sign * (successors - reference))
            tensor: FloatArray = np.bincount(product.entry, weighted).astype(float)
            stats.nodes += product.uncertain > 1
            try:
                minimum, error, joint = product.solve(tensor, span)
            except SolverError as failure:
                name = model.row_name(row)
                raise SolverError(f"McCormick, row {row} ({name}): {failure}") from None
            error += backup_margin(product.terms, span, float(np.abs(successors).max()))
            return reference + sign * (minimum - error - product.slack * span), joint

        def backup(value: FloatArray, rows: IntArray, below: FloatArray, above: FloatArray) -> None:
            leave_open(side, rows, below, above)
            bound = below if Side.BELOW in side else above
            for row in rows.tolist():
                bound[row] = solve(value, row)[0]

        def respond(value: FloatArray, rows: IntArray) -> FloatArray:
            """Return the optimal h of the relaxation over the successors of `rows`."""
            return np.concatenate([np.empty(0), *(solve(value, row)[1] for row in rows.tolist())])

        return PreparedInner(side, backup, respond, stats)


class _Box(NamedTuple):
    """A marginal or a prefix between l and l + w; sum l, and F = 1 - sum l."""

    low: FloatArray
    width: FloatArray
    mass: float
    free: float

    @classmethod
    def of(cls, lower: FloatArray, upper: FloatArray) -> _Box:
        width, mass = upper - lower, float(lower.sum())
        # clamped, because sums of decimals may miss one by a tolerance: never infeasible
        return cls(lower, width, mass, min(max(1.0 - mass, 0.0), float(width.sum())))


class _Product:
    """What rows with the same marginals share; marginals that are known are contracted away."""

    def __init__(self, model: FactoredMDP, ids: tuple[int, ...], variant: Variant) -> None:
        marginals = model.marginals
        places = [segment(marginals.outcome_ptr, j) for j in ids]
        boxes = [_Box.of(marginals.lower[place], marginals.upper[place]) for place in places]
        known = [box.free <= KNOWN for box in boxes]
        sizes = [len(box.low) for box in boxes]
        kept = [1 if k else s for s, k in zip(sizes, known, strict=True)]
        # of every joint outcome: its entry of the contracted tensor, and its known probability
        self.entry = np.broadcast_to(np.arange(math.prod(kept)).reshape(kept), sizes).ravel()
        factors = [b.low if k else np.ones(len(b.low)) for b, k in zip(boxes, known, strict=True)]
        self.weight = reduce(np.multiply.outer, factors, np.array(1.0)).ravel()
        self.slack = sum(box.free for box, k in zip(boxes, known, strict=True) if k)
        self.terms = sum(sizes)
        self._reach = math.prod(float(marginals.upper[place].sum()) for place in places)
        free = [box for box, k in zip(boxes, known, strict=True) if not k]
        self._box = free[0] if free else _Box(np.ones(1), np.zeros(1), 1.0, 0.0)
        self.uncertain = len(free)
        if self.uncertain > 1:
            self._relaxed = _Programme(free, variant)

    def solve(self, tensor: FloatArray, span: float) -> tuple[float, float, FloatArray]:
        """Return minimum, a bound of its error, and the joint distribution; of a row's tensor.

        With A the tensor, I the prefix and j the last outcome, the objective is
        sum A h = sum A (L_I l_j + L_I w_j x_j + W_I l_j xi_I + W_I w_j t_Ij).
        """
        if self.uncertain < 2:  # the lowest entries are filled up
            p, (low, width, _, free) = np.empty(len(tensor)), self._box
            box = np.concatenate([low, width]), 0, len(p), free
            box_member(box, np.argsort(tensor, kind="stable"), p, 0)
            return float(p @ tensor), 0.0, self._joint(p)
        lp = self._relaxed
        x, xi, t, (low_P, width_P, *_), (low, width, *_) = lp.last
        A, widths = tensor.reshape(t.shape), np.outer(width_P, width)
        cost = np.zeros(lp.columns)
        cost[x] += (low_P @ A) * width
        cost[xi] += (A @ low) * width_P
        cost[t] = A * widths
        scale = float(np.abs(cost).max()) or 1.0
        cost /= scale
        z, multipliers = lp.solve(cost)
        total, weight, noise = lp.safe_minimum(cost, multipliers)
        size = self._reach * span + weight * scale
        error = 2.0 * UNIT * (np.count_nonzero(multipliers) + lp.columns + 8) * size + noise * scale
        h = np.outer(low_P, low + width * z[x]) + np.outer(width_P * z[xi], low)
        joint = self._joint((h + widths * z[t]).ravel())
        return float(low_P @ (A @ low)) + scale * total, error, joint

    def _joint(self, entries: FloatArray) -> FloatArray:
        joint = np.maximum(entries[self.entry] * self.weight, 0.0)
        scaled: FloatArray = joint / joint.sum()
        return scaled


class _Programme:
    """min c.z subject to A z = rhs (first `equalities` rows), A z <= rhs (others), 0 <= z <= 1.

    It is in HiGHS; every solution starts from the basis of the last one.
    """

    def __init__(self, boxes: list[_Box], variant: Variant) -> None:
        """Make the programme of rows with these uncertain marginals, at least two."""
        n, first = len(boxes), starts([len(box.low) for box in boxes])
        columns = [np.arange(first[k], first[k + 1]) for k in range(n)]
        free_column = int(first[-1])
        # blocks of rows of the same length: columns (N, k), entries, right-hand side, error
        equations: list[tuple[IntArray, FloatArray, float, float]] = []
        inequalities = equations.copy()
        simplex = {Variant.PRINTED: 0, Variant.SIMPLEX: n, Variant.MARGINALISED: 1}[variant]
        for x, box in zip(columns[:simplex], boxes, strict=False):
            equations.append((x[None], box.width / box.free, 1.0, x.size / box.free + 2.0))
        xi, prefix, terms = columns[0], boxes[0], columns[0].size
        for k in range(1, n):
            x, box = columns[k], boxes[k]
            t = np.arange(free_column, free_column + xi.size * x.size).reshape(xi.size, x.size)
            free_column += t.size
            if variant is Variant.MARGINALISED:
                share = np.append(box.width / box.free, -1.0)
                equations.append((np.column_stack([t, xi]), share, 0.0, x.size / box.free + 2.0))
                share, error = np.append(prefix.width / prefix.free, -1.0), terms / prefix.free
                equations.append((np.column_stack([t.T, x]), share, 0.0, error + 8.0))
            of_xi, of_x, of_t = np.repeat(xi, x.size), np.tile(x, xi.size), t.ravel()
            inequalities += [
                (np.column_stack([of_t, of_xi]), np.array([1.0, -1.0]), 0.0, 0.0),
                (np.column_stack([of_t, of_x]), np.array([1.0, -1.0]), 0.0, 0.0),
                (np.column_stack([of_xi, of_x, of_t]), np.array([1.0, 1.0, -1.0]), 1.0, 0.0),
            ]
            if k < n - 1:
                xi = np.arange(free_column, free_column + t.size)
                free_column += t.size
                shares, prefix = _next_prefix(prefix, box)
                equations.append((np.column_stack([xi, of_x, of_xi, of_t]), shares, 0.0, 8.0))
                terms += x.size
            elif variant is not Variant.MARGINALISED:
                printed = variant is Variant.PRINTED
                on_x, on_xi = prefix.mass * printed, box.mass * (printed or n > 2)
                row = np.concatenate([x, xi, of_t])[None]
                entries, error = _total(on_x, on_xi, prefix, box, terms)
                equations.append((row, entries, 1.0, error))
        blocks = equations + inequalities
        rows = [len(block) for block, *_ in blocks]
        self.columns = free_column
        self._equalities = sum(rows[: len(equations)])
        self._ptr = starts(np.repeat([block.shape[1] for block, *_ in blocks], rows))
        self._indices = np.concatenate([block.ravel() for block, *_ in blocks])
        self._data = np.concatenate([np.broadcast_to(b, a.shape).ravel() for a, b, *_ in blocks])
        self._rhs = np.repeat([rhs for *_, rhs, _ in blocks], rows)
        # relative errors of the entries of every row
        self._error = 4.0 * UNIT * np.repeat([error for *_, error in blocks], rows)
        # columns of the last marginal (d,), of the prefix before it (P,), of their products (P, d)
        self.last = x, xi, t, prefix, box  # ... and prefix and marginal
        self._highs = self._loaded()

    def _loaded(self) -> Any:
        """Return HiGHS with the programme."""
        try:
            import highspy
        except ImportError as error:
            raise UnsupportedError(
                "McCormick needs highspy, which is not installed; install the extra: pip install "
                "'rfmdp[mccormick]'. `Exact()` needs nothing, is as fast and never less precise."
            ) from error
        highs = highspy.Highs()
        for name, value in OPTIONS.items():
            highs.setOptionValue(name, value)
        lower = self._rhs.copy()
        lower[self._equalities :] = -highspy.kHighsInf
        zeros, ones = np.zeros(self.columns), np.ones(self.columns)
        formats = int(highspy.MatrixFormat.kRowwise), int(highspy.ObjSense.kMinimize)
        matrix = self._ptr.astype(np.int32), self._indices.astype(np.int32), self._data
        highs.passModel(
            *(self.columns, len(self._rhs), len(self._data), *formats, 0.0),
            *(zeros, zeros, ones, lower, self._rhs, *matrix, zeros.astype(np.int32)),
        )
        return highs

    def solve(self, cost: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the values of the columns that minimise, and the multipliers of the rows."""
        self._highs.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), cost)
        for tolerance in (1e-9, 1e-6):
            self._highs.setOptionValue("primal_feasibility_tolerance", tolerance)
            self._highs.setOptionValue("dual_feasibility_tolerance", tolerance)
            self._highs.run()
            status = self._highs.getModelStatus().name
            if status == "kOptimal":
                solution = self._highs.getSolution()
                return np.array(solution.col_value), np.array(solution.row_dual)
            # feasible and bounded by construction: suspect the warm start and the tolerance
            self._highs.clearSolver()
        raise SolverError(f"the solver ended without an optimum: {status}.")

    def safe_minimum(self, cost: FloatArray, dual: FloatArray) -> tuple[float, float, float]:
        """Return a bound c.z >= ... up to rounding, and what that is relative to [Neumaier2004].

        For every y in the dual cone, c.z >= y.rhs + sum_j min(0, c_j - (A^T y)_j) because all z
        lie in [0, 1]. The other numbers are sum |y| (|rhs| + |A|), and the same with the errors of
        entries.
        """
        y = dual.copy()
        y[self._equalities :] = np.minimum(y[self._equalities :], 0.0)
        owner = np.repeat(np.arange(len(y)), np.diff(self._ptr))
        used = np.bincount(self._indices, weights=y[owner] * self._data, minlength=self.columns)
        sizes = np.abs(self._rhs) + np.bincount(owner, weights=np.abs(self._data), minlength=len(y))
        total = float(y @ self._rhs + np.minimum(cost - used, 0.0).sum())
        weights = np.abs(y) * sizes
        return total, float(weights.sum()), float(weights @ self._error)


def _next_prefix(prefix: _Box, box: _Box) -> tuple[FloatArray, _Box]:
    """Return the rows xi' - (L w x + W l xi + W w t) / W' = 0 and the longer prefix."""
    factors = (prefix.low, box.width), (prefix.width, box.low), (prefix.width, box.width)
    parts = [np.outer(left, right).ravel() for left, right in factors]
    wide = parts[0] + parts[1] + parts[2]
    # a product without width: its variable has no effect, any definition serves
    shares = [np.divide(part, wide, out=np.zeros_like(wide), where=wide > 0.0) for part in parts]
    shares[2][wide == 0.0] = 1.0
    rows = np.column_stack([np.ones_like(wide), -shares[0], -shares[1], -shares[2]])
    free = prefix.free * (box.mass + box.free) + prefix.mass * box.free
    return rows, _Box(np.outer(prefix.low, box.low).ravel(), wide, prefix.mass * box.mass, free)


def _total(
    on_x: float, on_xi: float, prefix: _Box, box: _Box, terms: int
) -> tuple[FloatArray, float]:
    """Return the entries of x, xi and t in sum h = 1, and their error in units of 4 UNIT.

    sum h - sum of lower products = M sum w x + L sum W xi + sum W w t, with M and L the lower
    masses of prefix and last marginal, or 0 where simplex rows make that part constant: left in, a
    wide marginal beside a narrow one makes two rows nearly parallel.
    """
    total = prefix.free * box.free + on_xi * prefix.free + on_x * box.free
    error = terms * (box.free + on_xi) + len(box.low) * (prefix.free + on_x)
    both = np.outer(prefix.width, box.width).ravel()
    entries = np.concatenate([on_x * box.width, on_xi * prefix.width, both])
    return entries / total, 2.0 * error / total + 8.0
