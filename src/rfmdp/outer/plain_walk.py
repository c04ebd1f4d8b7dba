"""Settle plain components in compiled code, and help where its sweeps are slow.

`kernels.walk` stops where a component mixes slowly. Then the chain of the rows at hand is solved
by elimination, and the sweeps go on from its value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rfmdp.kernels import passes, walk as kernels
from rfmdp.outer.plain import ONE, ZERO, Packed, players
from rfmdp.outer.problem import Form, Problem
from rfmdp.outer.settings import BUDGET, Clock
from rfmdp.types import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse.linalg import SuperLU

DIRECT = 20_000  # nodes of a component whose chain is worth an elimination
ANSWERED = 60  # times that a component is helped so


class NodeBounds(NamedTuple):
    """What a walk fills in for every node, arrays (N,); see `kernels.walk`."""

    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    choice: IntArray  # packed row that is best for the value
    shape: FloatArray  # how errors of values add up
    rule: IntArray  # packed row that is best for the bound at hand


class PlainWalk:
    """A walk through packed components from a first `value` (N,); `bounds` are what it finds."""

    def __init__(self, packed: Packed, problem: Problem, value: FloatArray) -> None:
        self.packed = packed
        self._players = players(problem)
        size = len(value)
        top = 1.0 if problem.form is Form.REACH else np.inf
        choice = packed.row_ptr[:-1]
        self.bounds = NodeBounds(
            value, np.zeros(size), np.full(size, top), choice.copy(), np.zeros(size), choice.copy()
        )
        for known, number in ((ZERO, 0.0), (ONE, 1.0)):
            value[known] = self.bounds.lower[known] = self.bounds.upper[known] = number
        self.go_to(0)

    def go_to(self, component: int) -> None:
        """Go on at a component."""
        self._place = np.zeros(6, dtype=np.int64)
        self._place[kernels.COMPONENT] = component
        self._pace = np.array([1.0, 0.0, 0.0, 0.0])

    @property
    def component(self) -> int:
        """Where it stands: all components before are settled."""
        return int(self._place[kernels.COMPONENT])

    def run(self, last: int, width: float, clock: Clock) -> bool:
        """Settle components up to `last` to a relative width; return False if one needs more."""
        p, helped, at = self.packed, 0, self.component
        while True:
            found = kernels.walk(
                p.nodes, p.rows, self._players, tuple(self.bounds), (self._place, self._pace),
                last, width, BUDGET, DIRECT if helped < ANSWERED else 0,
            )  # fmt: skip
            if self.component != at:
                at, helped = self.component, 0
            if found == kernels.SETTLED:
                return True
            if found == kernels.FAILED or (found == kernels.PAUSED and helped >= ANSWERED):
                return False
            if found == kernels.SLOW:
                helped += 1
                self._help(width)
            clock.tick("solve", float(self._pace[kernels.CHANGE]))

    def _help(self, width: float) -> None:
        """Solve the chain of a component whose sweeps are slow, for its value or a bound."""
        phase = self._place[kernels.PHASE]
        if phase >= kernels.LOWER:
            side = -1.0 if phase == kernels.LOWER else 1.0
            self._solve_side(side, width * 0.125 ** self._place[kernels.TRIES])
        elif not self._solve_chain():
            self.make_progress(self.component)
            self._solve_chain()

    def make_progress(self, component: int) -> None:
        """Choose rows of a component whose chain ends, at more than 0 where there is a way."""
        p, (first, last) = self.packed, self._nodes(component)
        reached = np.zeros(last - first, dtype=np.bool_)
        passes.make_progress(p.nodes, p.rows, tuple(self.bounds), first, last, reached)

    def _nodes(self, component: int) -> tuple[int, int]:
        first, last = self.packed.component_ptr[component : component + 2].tolist()
        return first, last

    def _solve_chain(self) -> bool:
        """Give the nodes of the component the value of their chain; return whether it has one.

        `shape` becomes the expected sum of these values along the chain, which says how errors add
        up. A chain that does not end, or is worth nothing, came from meaningless values.
        """
        bounds, pace, (first, last) = self.bounds, self._pace, self._nodes(self.component)
        try:
            factors, paid, away = self._chain(bounds.value, bounds.choice, first, last)
            value = np.maximum(factors.solve(paid, "T"), 0.0)
            size = value + kernels.FLOOR * float(value.max())
            total = factors.solve(away * size, "T")
        except RuntimeError:  # singular: a trap of this chain
            return False
        if not (np.isfinite(value).all() and np.isfinite(total).all() and np.all(total > 0.0)):
            return False
        bounds.value[first:last], bounds.shape[first:last] = value, total
        pace[kernels.STEPS] = float(np.max(total / size))
        pace[kernels.RATE] = 1.0 - 1.0 / max(pace[kernels.STEPS], 1.0)
        return True

    def _solve_side(self, side: float, width: float) -> None:
        """Give a bound of the component its limit along the rows that are best for it now.

        Every step pushes it outwards. Where other rows are as good as those of the value but lead
        through more steps, the chain of the value says too little of how errors add up; this one
        says more with every change of its rows.
        """
        bounds, pace, (first, last) = self.bounds, self._pace, self._nodes(self.component)
        x = bounds.lower if side < 0.0 else bounds.upper
        size = bounds.value[first:last] + kernels.FLOOR * pace[kernels.SCALE]
        try:
            factors, paid, away = self._chain(x, bounds.rule, first, last)
            value = factors.solve(paid, "T")
            total = factors.solve(away * size, "T")
        except RuntimeError:  # singular: a trap of this chain
            return
        if np.isfinite(value).all() and np.isfinite(total).all() and np.all(total > 0.0):
            # the push never grows again: rows that settle for one push may not for another
            pace[kernels.STEPS] = max(float(np.max(total / size)), pace[kernels.STEPS])
            step = max(width / pace[kernels.STEPS], 8.0 * kernels.LEAST)
            x[first:last] = np.maximum(value + side * step * total, 0.0)

    def _chain(
        self, x: FloatArray, rule: IntArray, first: int, last: int
    ) -> tuple[SuperLU, FloatArray, FloatArray]:
        """Return (factors, right side, probability to leave a node) of the chain of a rule.

        Other nodes are worth x. The factors are of the transpose: rows are columns to SciPy.
        """
        from scipy.sparse import csc_array
        from scipy.sparse.linalg import splu

        rows, count, chosen = self.packed.rows, last - first, rule[first:last]
        entry_ptr, _, _, _, _, _, _, reward, _ = rows
        most = count + int(np.sum(entry_ptr[chosen + 1] - entry_ptr[chosen]))
        ptr = np.empty(count + 1, dtype=np.int32)
        inside = np.empty(most, dtype=np.int32)
        entry, known = np.empty(most), np.empty(count)
        out = ptr, inside, entry, known
        found = passes.chain(rows, self._players, x, rule, first, last, out)
        away = entry[ptr[:-1]]
        turned = csc_array((entry[:found], inside[:found], ptr), shape=(count, count))
        # diagonals dominate, so all are pivots, and columns so short are best taken one by one
        factors = splu(turned, diag_pivot_thresh=0.0, relax=1, panel_size=1)
        return factors, reward[chosen] + known, away
