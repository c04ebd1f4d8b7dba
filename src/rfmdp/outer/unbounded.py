"""Reachability, reward to a target and total reward: graph, components, loops.

Components are walked through bottom first, with proven bounds from one to the next. Those of plain
rows are settled in compiled code (`plain_walk`), the others by `general`, many at once: components
are put into phases, plain and general in turn, each of which needs only those before it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from rfmdp.inner.protocol import Side
from rfmdp.kernels.graph import component_phases
from rfmdp.objective import MAX
from rfmdp.outer.general import ATTEMPTS, FLOOR, solve_general
from rfmdp.outer.graph.region import Region, analyse
from rfmdp.outer.plain import general_components, pack
from rfmdp.outer.plain_walk import NodeBounds, PlainWalk
from rfmdp.outer.proofs.loops import settle_loops
from rfmdp.outer.settings import STOPS, Measure, status_of
from rfmdp.outer.solution import Status
from rfmdp.outer.task import Found, Task
from rfmdp.ragged import segment_any
from rfmdp.types import BoolArray, FloatArray, IntArray

PHASES = 12  # at most; all components beyond are general ones


def solve_unbounded(task: Task, warm: FloatArray | None = None) -> Found:
    """Return bounds of all states, from a first guess (S,) of their values."""
    with task.stats.phase("graph"):
        region = analyse(task.problem, task.clock)
        if not region.open.any():  # the graph knows it all
            return Found(region.known, region.known, region.known, region.choice)
        general = general_components(region)
    task.stats.components = len(region.components.trivial)
    task.stats.levels = len(region.components.level_ptr) - 1
    found = _walk(task, region, general, warm) if _worth_a_walk(task, region, general) else None
    if found is None:
        task.clock.check_overdue()
        found = solve_general(task, region, (region.known, region.known), warm)
    close = task.closed(found.lower, found.upper, found.value)
    if not found.stopped and task.proves == Side.BOTH and not close:
        settle_loops(task, region, found)
    found.choice = region.finish_policy(found.choice)
    return found


def _worth_a_walk(task: Task, region: Region, general: BoolArray) -> bool:
    """Return whether to go from component to component, or to solve all of them at once."""
    if not general.any():
        return True
    if task.proves != Side.BOTH or general.all():  # a walk carries both sides
        return False
    # without cycles, levels are swept at once: a few plain components are not worth a walk
    return region.cyclic or 2 * int(np.count_nonzero(general)) <= len(general)


def _walk(task: Task, region: Region, general: BoolArray, warm: FloatArray | None) -> Found | None:
    """Walk through the components, again with less width each until the bounds are close.

    Returns None if there is no such way: some component needs infinity as a bound, or more than
    the inner solver proves.
    """
    rounds = Walk(task, region, general, warm)
    width = max(rounds.share * task.limits.precision, FLOOR)
    try:
        for _ in range(ATTEMPTS):
            if not rounds.run(width):
                return None
            task.stats.robust_sweeps += 1
            excess = task.excess(rounds.low, rounds.high)
            if rounds.stopped or excess <= 1.0 or width <= FLOOR:
                break
            width = max(width / max(3.0 * min(excess, 1e6), 4.0), FLOOR)
        task.clock.tick("solve", width)
    except STOPS as stop:
        rounds.stopped = status_of(stop)
    return Found(rounds.low, rounds.high, rounds.middle, rounds.policy, rounds.stopped)


class Walk:
    """Bounds made better round by round; `low`, `high` (S,) are proven, `policy` keeps them.

    `stopped` is the limit that ended a round, if one did.
    """

    def __init__(
        self, task: Task, region: Region, general: BoolArray, warm: FloatArray | None
    ) -> None:
        self.task, self.region = task, region
        self.numbers, self.blocks = _in_phases(region, general)
        later = np.zeros(len(general), dtype=np.bool_)
        for first, last, hard in self.blocks:
            later[self.numbers[first:last]] = hard
        self.packed = pack(region, self.numbers, later)
        slow = later & ~region.components.trivial
        slow[self.numbers] |= ~self.packed.single
        levels = segment_any(slow, region.components.level_ptr)  # widths add up over these
        self.share = 0.5 / max(int(np.count_nonzero(levels)), 2)
        self.low, self.high = region.trivial_bounds()
        self.middle, self.policy = self.low, region.choice
        self.stopped: Status | None = None
        self._proven, self._warm = False, warm is not None
        self._value = np.zeros(int(self.packed.component_ptr[-1]))
        if warm is not None:
            open_ = region.open
            self._value[self.packed.node[open_]] = np.nan_to_num(warm[open_], posinf=0.0)

    def run(self, width: float) -> bool:
        """Settle all components to about a relative width each, unless it is stopped in between.

        Returns False if that cannot be done (a value too large for floats is finite, but no float
        bounds it). What a stopped run has proven is kept only if nothing was proven before.
        """
        plain = PlainWalk(self.packed, self.task.problem, self._value)
        rows = np.full(len(self.region.open), -1, dtype=np.int64)
        try:
            for _, last, hard in self.blocks:
                while not self.stopped and plain.component < last:
                    if not hard and plain.run(last, width, self.task.clock):
                        break
                    if not hard and self.task.proves != Side.BOTH:
                        return False
                    end = last if hard else plain.component + 1  # one that sweeps cannot settle
                    if not self._general(plain.bounds, plain.component, end, width, rows):
                        return False
                    plain.go_to(end)
        except STOPS:
            self._keep(plain.bounds, rows, plain.component)
            raise
        finite = np.isfinite(plain.bounds.lower) & np.isfinite(plain.bounds.upper)
        if not (self.stopped or finite.all()):
            return False
        self._keep(plain.bounds, rows, plain.component)
        return True

    def _keep(self, bounds: NodeBounds, rows: IntArray, settled: int) -> None:
        """Take the bounds of the first `settled` components; the guarantee is that of one run."""
        packed, region = self.packed, self.region
        if settled < len(packed.single) and self._proven:
            return
        self._proven = True
        node = packed.node
        done = (
            region.open & (node < packed.component_ptr[settled]) & np.isfinite(bounds.lower[node])
        )
        lower = np.where(done, bounds.lower[node], self.low)
        upper = np.where(done, bounds.upper[node], self.high)
        if region.problem.agent is MAX:
            upper = np.minimum(upper, self.high)
        else:
            lower = np.maximum(lower, self.low)
        self.low, self.high = lower, upper
        self.middle = np.where(done, bounds.value[node], np.where(region.open, lower, region.known))
        own = done & (rows < 0)
        self.policy = np.where(rows >= 0, rows, region.choice)
        self.policy[own] = packed.origin[bounds.choice[node[own]]]

    def _general(
        self, bounds: NodeBounds, first: int, last: int, width: float, rows: IntArray
    ) -> bool:
        """Settle the components first..last together; their policy goes to `rows`.

        Returns False if some bound is infinite though nothing stopped it.
        """
        region, node, task = self.region, self.packed.node, self.task
        value, lower, upper = bounds.value, bounds.lower, bounds.upper
        settled = region.open & (node < self.packed.component_ptr[first])
        known = np.where(settled, value[node], region.known)
        below = np.where(settled, lower[node], known), np.where(settled, upper[node], known)
        part = region.part(np.sort(self.numbers[first:last]), known)
        limits = replace(task.limits, precision=max(width, FLOOR), measure=Measure.RELATIVE)
        interest = part.open
        if last == len(self.numbers):  # the end: only what is asked for has to be that precise
            limits = replace(task.limits, precision=max(0.5 * width / self.share, FLOOR))
            asked = part.open & task.interest
            interest = asked if asked.any() else part.open
        warm = value[node] if self._warm or self._proven else None
        found = solve_general(replace(task, limits=limits, interest=interest), part, below, warm)
        states = part.components.states
        nodes = node[states]
        lower[nodes], upper[nodes] = np.inf, -np.inf
        np.minimum.at(lower, nodes, np.maximum(found.lower[states], 0.0))
        np.maximum.at(upper, nodes, found.upper[states])
        value[nodes] = 0.5 * (lower[nodes] + upper[nodes])
        rows[states] = found.choice[states]
        self.stopped = found.stopped
        finite = np.isfinite(lower[nodes]).all() and np.isfinite(upper[nodes]).all()
        return bool(self.stopped or finite)


def _in_phases(region: Region, general: BoolArray) -> tuple[IntArray, list[tuple[int, int, bool]]]:
    """Return components (C,) in the order of the walk, and its blocks (first, last, general)."""
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
