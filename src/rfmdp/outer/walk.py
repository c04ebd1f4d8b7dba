"""Walk through the components of a problem, bottom first, with proven bounds from one to the next.

Components of plain rows are settled in compiled code (`plain`, `kernels.walk`), the others by
`general`, many at once: components are put into phases, plain and general in turn, each of which
needs only those before it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rfmdp.inner.protocol import Side
from rfmdp.kernels import walk as kernels
from rfmdp.kernels.graph import component_phases
from rfmdp.objective import MAX
from rfmdp.outer.general import FLOOR, solve_general
from rfmdp.outer.operator import Operator
from rfmdp.outer.plain import ONE, ZERO, pack
from rfmdp.outer.problem import Form, Problem
from rfmdp.outer.region import Region, trivial_bounds
from rfmdp.outer.settings import Clock, LimitReached, Limits, Measure
from rfmdp.outer.solution import Status
from rfmdp.ragged import segment_any
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse.linalg import SuperLU

BUDGET = 20_000_000  # entries between two looks at the clock
DIRECT = 20_000  # nodes of a component whose chain is worth an elimination
ANSWERED = 60  # times that a component is helped so
PHASES = 12  # at most; all components beyond are general ones


class Walk:
    """Bounds made better round by round; `low`, `high` (S,) are proven, `policy` keeps them."""

    def __init__(
        self,
        problem: Problem,
        region: Region,
        general: BoolArray,
        operator: Operator,
        clock: Clock,
        limits: Limits,
        interest: BoolArray,
        warm: FloatArray | None,
    ) -> None:
        self.problem, self.region, self.operator, self.clock = problem, region, operator, clock
        self.limits, self.interest = limits, interest
        self.numbers, self.blocks = _in_phases(region, general)
        later = np.zeros(len(general), dtype=np.bool_)
        for first, last, hard in self.blocks:
            later[self.numbers[first:last]] = hard
        self.packed = pack(problem, region, self.numbers, later)
        slow = later & ~region.components.trivial
        slow[self.numbers] |= ~self.packed.single
        levels = segment_any(slow, region.components.level_ptr)  # widths add up over these
        self.share = 0.5 / max(int(np.count_nonzero(levels)), 2)
        self.low, self.high = trivial_bounds(problem, region)
        self.middle, self.policy = self.low, region.choice
        self._proven, self._warm = False, warm is not None
        self._value = np.zeros(int(self.packed.nodes[0][-1]))
        self._value[ONE] = 1.0
        if warm is not None:
            open_ = region.open
            self._value[self.packed.node[open_]] = np.nan_to_num(warm[open_], posinf=0.0)

    def run(self, width: float) -> Status:
        """Settle all components to about a relative width each.

        Returns CERTIFIED if that was done, GAP_OPEN if it cannot be (values that leave the floats
        are finite, and infinity is no bound of them), or the limit that was reached in between.
        What an interrupted run has proven is kept only if nothing was proven before.
        """
        size, top = len(self._value), 1.0 if self.problem.form is Form.REACH else np.inf
        lower, upper = np.zeros(size), np.full(size, top)
        lower[ONE], upper[ZERO], upper[ONE] = 1.0, 0.0, 1.0
        choice = self.packed.nodes[1][:-1].copy()
        bounds = (self._value, lower, upper, choice, np.zeros(size), choice.copy())
        self.bounds = bounds  # of the nodes, in the order of `kernels.walk`
        place, pace = np.zeros(6, dtype=np.int64), np.array([1.0, 0.0, 0.0, 0.0])
        rows, status = np.full(len(self.region.open), -1, dtype=np.int64), Status.CERTIFIED
        try:
            for first, last, hard in self.blocks:
                if hard:
                    status = self._general(bounds, first, last, width, rows)
                    place[kernels.COMPONENT] = last
                else:
                    status = self._plain(bounds, place, pace, last, width, rows)
                if status is not Status.CERTIFIED:
                    break
        except (LimitReached, KeyboardInterrupt):
            self._keep(bounds, rows, int(place[kernels.COMPONENT]))
            raise
        if status is Status.CERTIFIED and not (np.isfinite(lower) & np.isfinite(upper)).all():
            status = Status.GAP_OPEN
        if status is Status.GAP_OPEN:
            return status
        self._keep(bounds, rows, int(place[kernels.COMPONENT]))
        return status

    def _keep(self, bounds: tuple[AnyArray, ...], rows: IntArray, settled: int) -> None:
        """Take the bounds of the components that are settled; the guarantee is that of one run."""
        packed, region = self.packed, self.region
        if settled < len(packed.single) and self._proven:
            return
        self._proven = True
        node = packed.node
        done = region.open & (node < packed.nodes[0][settled]) & np.isfinite(bounds[1][node])
        lower = np.where(done, bounds[1][node], self.low)
        upper = np.where(done, bounds[2][node], self.high)
        if self.problem.agent is MAX:
            upper = np.minimum(upper, self.high)
        else:
            lower = np.maximum(lower, self.low)
        self.low, self.high = lower, upper
        self.middle = np.where(done, bounds[0][node], np.where(region.open, lower, region.known))
        own = done & (rows < 0)
        self.policy = np.where(rows >= 0, rows, region.choice)
        self.policy[own] = packed.origin[bounds[3][node[own]]]

    def _plain(
        self,
        bounds: tuple[AnyArray, ...],
        place: IntArray,
        pace: FloatArray,
        last: int,
        width: float,
        rows: IntArray,
    ) -> Status:
        """Settle plain components up to `last` in compiled code."""
        p, sign = self.packed, self.problem.agent.sign
        nature = 1.0 if self.problem.nature is MAX else -1.0
        helped, at = 0, int(place[kernels.COMPONENT])
        while True:
            found = kernels.walk(
                p.nodes, p.rows, bounds, p.single, place, pace, p.order, sign, nature, width,
                BUDGET, DIRECT if helped < ANSWERED else 0, last,
            )  # fmt: skip
            if place[kernels.COMPONENT] != at:
                at, helped = int(place[kernels.COMPONENT]), 0
            if found == kernels.SETTLED:
                return Status.CERTIFIED
            if found == kernels.PAUSED and helped >= ANSWERED:  # help and patience are used up
                found = kernels.FAILED
            if found == kernels.FAILED and self.operator.inner.proves != Side.BOTH:
                return Status.GAP_OPEN
            if found == kernels.FAILED:  # another way for this one
                status = self._general(bounds, at, at + 1, width, rows)
                place[:], pace[:] = 0, (1.0, 0.0, 0.0, 0.0)
                place[kernels.COMPONENT] = at + 1
                if status is not Status.CERTIFIED:
                    return status
            if found == kernels.SLOW:
                helped += 1
                if place[kernels.PHASE] >= kernels.LOWER:
                    side = -1.0 if place[kernels.PHASE] == kernels.LOWER else 1.0
                    tried = width * 0.125 ** place[kernels.TRIES]
                    self._solve_side(bounds, pace, at, nature, side, tried)
                elif not self._solve_chain(bounds, pace, at, nature):
                    self._make_progress(bounds, at)
                    self._solve_chain(bounds, pace, at, nature)
            self.clock.tick("solve", float(pace[kernels.CHANGE]))

    def _general(
        self, bounds: tuple[AnyArray, ...], first: int, last: int, width: float, rows: IntArray
    ) -> Status:
        """Settle the components first..last together; their policy goes to `rows`."""
        region, node = self.region, self.packed.node
        value, lower, upper = bounds[:3]
        settled = region.open & (node < self.packed.nodes[0][first])
        known = np.where(settled, value[node], region.known)
        below = np.where(settled, lower[node], known), np.where(settled, upper[node], known)
        part = region.part(np.sort(self.numbers[first:last]), known)
        limits, interest = (
            replace(self.limits, precision=max(width, FLOOR), measure=Measure.RELATIVE),
            part.open,
        )
        if last == len(self.numbers):  # the end: only what is asked for has to be that precise
            limits = replace(self.limits, precision=max(0.5 * width / self.share, FLOOR))
            interest = part.open & self.interest if np.any(part.open & self.interest) else part.open
        warm = value[node] if self._warm or self._proven else None
        found = solve_general(
            self.problem, part, below, self.operator, self.clock, limits, interest, warm
        )
        states = part.components.states
        lower[node[states]], upper[node[states]] = np.inf, -np.inf
        np.minimum.at(lower, node[states], np.maximum(found.lower[states], 0.0))
        np.maximum.at(upper, node[states], found.upper[states])
        value[node[states]] = 0.5 * (lower[node[states]] + upper[node[states]])
        rows[states] = found.choice[states]
        if found.status is not Status.CERTIFIED:
            return found.status
        proven = np.isfinite(lower[node[states]]).all() and np.isfinite(upper[node[states]]).all()
        return Status.CERTIFIED if proven else Status.GAP_OPEN

    def _make_progress(self, bounds: tuple[AnyArray, ...], component: int) -> None:
        """Choose rows of a component whose chain ends, at more than 0 where there is a way."""
        p = self.packed
        first, last = (int(n) for n in p.nodes[0][component : component + 2])
        reached = np.zeros(last - first, dtype=np.bool_)
        kernels.make_progress(p.nodes, p.rows, bounds, first, last, reached)

    def _solve_chain(
        self, bounds: tuple[AnyArray, ...], pace: FloatArray, component: int, nature: float
    ) -> bool:
        """Give the nodes of a component the value of the chain at hand, if there is one.

        And the expected sum of these values along it, which says how errors add up. Returns False
        for a chain that does not end, or is worth nothing: one that values of no meaning led to.
        """
        first, last = (int(n) for n in self.packed.nodes[0][component : component + 2])
        try:
            factors, paid, away = self._chain((bounds[0], bounds[3]), first, last, nature)
            value = np.maximum(factors.solve(paid, "T"), 0.0)
            size = value + kernels.FLOOR * float(value.max())
            total = factors.solve(away * size, "T")
        except RuntimeError:  # singular: a trap of this chain
            return False
        if not (np.isfinite(value).all() and np.isfinite(total).all() and np.all(total > 0.0)):
            return False
        bounds[0][first:last], bounds[4][first:last] = value, total
        pace[kernels.STEPS] = float(np.max(total / size))
        pace[kernels.RATE] = 1.0 - 1.0 / max(pace[kernels.STEPS], 1.0)
        return True

    def _solve_side(
        self,
        bounds: tuple[AnyArray, ...],
        pace: FloatArray,
        component: int,
        nature: float,
        side: float,
        width: float,
    ) -> None:
        """Give a bound of a component its limit along the rows that are best for it now.

        Every step pushes it outwards. Where other rows are as good as those of the value but lead
        through more steps, the chain of the value says too little of how errors add up; this one
        says more with every change of its rows.
        """
        first, last = (int(n) for n in self.packed.nodes[0][component : component + 2])
        x = bounds[1] if side < 0.0 else bounds[2]
        size = bounds[0][first:last] + kernels.FLOOR * pace[kernels.SCALE]
        try:
            factors, paid, away = self._chain((x, bounds[5]), first, last, nature)
            value, total = factors.solve(paid, "T"), factors.solve(away * size, "T")
        except RuntimeError:  # singular: a trap of this chain
            return
        if np.isfinite(value).all() and np.isfinite(total).all() and np.all(total > 0.0):
            # the push never grows again: rows that settle for one push may not for another
            pace[kernels.STEPS] = max(float(np.max(total / size)), pace[kernels.STEPS])
            step = max(width / pace[kernels.STEPS], 8.0 * kernels.LEAST)
            x[first:last] = np.maximum(value + side * step * total, 0.0)

    def _chain(
        self, at: tuple[FloatArray, IntArray], first: int, last: int, nature: float
    ) -> tuple[SuperLU, FloatArray, FloatArray]:
        """Return (factors, right side, probability to leave a node) of the chain of rows at[1].

        Other nodes are worth at[0]. The factors are of the transpose: rows are columns to SciPy.
        """
        from scipy.sparse import csc_array
        from scipy.sparse.linalg import splu

        p, count, choice = self.packed, last - first, at[1][first:last]
        most = count + int(np.sum(p.rows[0][choice + 1] - p.rows[0][choice]))
        ptr, inside = np.empty(count + 1, dtype=np.int32), np.empty(most, dtype=np.int32)
        entry, known = np.empty(most), np.empty(count)
        found = kernels.chain(p.rows, *at, first, last, nature, p.order, ptr, inside, entry, known)
        away = entry[ptr[:-1]]
        turned = csc_array((entry[:found], inside[:found], ptr), shape=(count, count))
        # diagonals dominate, so all are pivots, and columns so short are best taken one by one
        factors = splu(turned, diag_pivot_thresh=0.0, relax=1, panel_size=1)
        return factors, p.rows[7][choice] + known, away


def _in_phases(region: Region, general: BoolArray) -> tuple[IntArray, list[tuple[int, int, bool]]]:
    """Return the order of the components, and its blocks as (first, last, whether general)."""
    count, parts, graph = len(general), region.components, region.graph
    phase = general.astype(np.int64)
    if general.any():
        component_phases(
            graph.edges.forward, region.finite_rows, parts.component, parts.states, general, phase
        )
        np.minimum(phase, PHASES + 1 - PHASES % 2, out=phase)  # an odd one: general
    numbers = np.argsort(phase, kind="stable")
    ends = [0, *(np.flatnonzero(np.diff(phase[numbers])) + 1).tolist(), count]
    blocks = [(a, b, bool(phase[numbers[a]] % 2)) for a, b in pairwise(ends) if a < b]
    return numbers, blocks
