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
        found = solve_general(task, region, None, warm)
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
    return Found(rounds.low, rounds.high, rounds.middle, rounds.choice, rounds.stopped)


class Walk:
    """Bounds made better round by round; `low`, `high` (S,) are proven, `choice` keeps them.

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
        self.middle, self.choice = self.low, region.choice
        self.stopped: Status | None = None
        self._proven, self._warm = False, warm is not None
        self._value = np.zeros(int(self.packed.component_ptr[-1]))
        if warm is not None:
            open_ = region.open
            self._value[self.packed.node[open_]] = warm[open_]

    def run(self, width: float) -> bool:
        """Settle all components to about a relative width each, unless it is stopped in between.

        Returns False if that cannot be done (a value too large for floats is finite, but no float
        bounds it). What a stopped run has proven is kept only if nothing was proven before.
        """
        plain = PlainWalk(self.packed, self.task.problem, self._value)
        choice = np.full(len(self.region.open), -1, dtype=np.int64)  # of general components
        try:
            for _, last, hard in self.blocks:
                while not self.stopped and plain.component < last:
                    if not hard and plain.run(last, width, self.task.clock):
                        break
                    if not hard and self.task.proves != Side.BOTH:
                        return False
                    end = last if hard else plain.component + 1  # one that sweeps cannot settle
                    if not self._general(plain.bounds, plain.component, end, width, choice):
                        return False
                    plain.go_to(end)
        except STOPS:
            self._keep(plain.bounds, choice, plain.component)
            raise
        finite = np.isfinite(plain.bounds.lower) & np.isfinite(plain.bounds.upper)
        if not (self.stopped or finite.all()):
            return False
        self._keep(plain.bounds, choice, plain.component)
        return True

    def _keep(self, bounds: NodeBounds, choice: IntArray, count: int) -> None:
        """Take the bounds of the first `count` components; the guarantee is that of one run."""
        packed, region = self.packed, self.region
        if count < len(packed.single) and self._proven:
            return
        self._proven = True
        node = packed.node
        done = region.open & (node < packed.component_ptr[count]) & np.isfinite(bounds.lower[node])
        lower = np.where(done, bounds.lower[node], self.low)
        upper = np.where(done, bounds.upper[node], self.high)
        if region.problem.agent is MAX:
            upper = np.minimum(upper, self.high)
        else:
            lower = np.maximum(lower, self.low)
        self.low, self.high = lower, upper
        self.middle = np.where(done, bounds.value[node], np.where(region.open, lower, region.known))
        own = done & (choice < 0)
        self.choice = np.where(choice >= 0, choice, region.choice)
        self.choice[own] = packed.origin[bounds.choice[node[own]]]

    def _general(
        self, bounds: NodeBounds, first: int, last: int, width: float, choice: IntArray
    ) -> bool:
        """Settle the components first..last together; their policy goes to `choice` (S,).

        Returns False if some bound is infinite though nothing stopped it.
        """
        region, node, value = self.region, self.packed.node, bounds.value
        done = region.open & (node < self.packed.component_ptr[first])
        known = np.where(done, value[node], region.known)
        settled = (
            np.where(done, bounds.lower[node], known),
            np.where(done, bounds.upper[node], known),
        )
        part = region.part(np.sort(self.numbers[first:last]), known)
        task = self._part_of_task(part, width, at_end=last == len(self.numbers))
        warm = value[node] if self._warm or self._proven else None
        found = solve_general(task, part, settled, warm)
        states = part.components.states
        choice[states] = found.choice[states]
        self.stopped = found.stopped
        finite = _merge(bounds, node[states], found.lower[states], found.upper[states])
        return bool(self.stopped or finite)

    def _part_of_task(self, part: Region, width: float, at_end: bool) -> Task:
        """Return the task of a part: all of it to a width; at the end, what is asked for."""
        task = self.task
        if not at_end:
            limits = replace(task.limits, precision=max(width, FLOOR), measure=Measure.RELATIVE)
            return replace(task, limits=limits, interest=part.open)
        limits = replace(task.limits, precision=max(0.5 * width / self.share, FLOOR))
        asked = part.open & task.interest
        return replace(task, limits=limits, interest=asked if asked.any() else part.open)


def _merge(bounds: NodeBounds, nodes: IntArray, low: FloatArray, high: FloatArray) -> bool:
    """Give nodes (n,) the widest bounds low, high (n,) of their states, in place.

    Returns whether all are finite.
    """
    value, lower, upper = bounds.value, bounds.lower, bounds.upper
    lower[nodes], upper[nodes] = np.inf, -np.inf
    np.minimum.at(lower, nodes, np.maximum(low, 0.0))
    np.maximum.at(upper, nodes, high)
    value[nodes] = 0.5 * (lower[nodes] + upper[nodes])
    return bool(np.isfinite(lower[nodes]).all() and np.isfinite(upper[nodes]).all())


def _in_phases(region: Region, general: BoolArray) -> tuple[IntArray, list[tuple[int, int, bool]]]:
    """Return components (C,) in the order of the walk, and its blocks (first, last, general)."""
    count = len(general)
    parts = region.components
    graph = region.graph
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
