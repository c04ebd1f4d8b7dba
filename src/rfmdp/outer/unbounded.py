"""Reachability, reward to a target and total reward: graph, components, loops.

Components are settled bottom first, with proven bounds from one to the next, again with less width
each until the bounds are close. How a component is settled is said by this table, and nowhere else:

component                                engine                    proof of its bounds
every row plain, nature cannot keep a    `PlainWalk`, compiled     loose checks, see `plain`
play for ever at no reward, nor has to
dodge infinite states
without cycles, nothing to dodge         `general`, one sweep      errors add up level by level
any other                                `general`, policy         `certify`; where that fails,
                                         iteration                 `approach`

Components of the second and third kind are settled many at once: all are put into blocks, plain and
general in turn, each of which needs only those before it. It is one block, everything together and
general, if

- no component is plain, or
- some are general and the inner solver proves one side only: blocks hand over both, or
- most are general and nothing is cyclic: levels are swept at once, a few plain ones gain nothing.

A plain component that compiled code cannot settle becomes general. Where a general block is left
without a finite bound, and where a one-sided solver would have to go on with a general component,
all that is not settled yet is settled together.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rfmdp.inner.protocol import Side
from rfmdp.kernels.graph import component_phases
from rfmdp.objective import MAX
from rfmdp.outer.general import ATTEMPTS, FLOOR, RESERVE, solve_general
from rfmdp.outer.graph.region import Region, analyse
from rfmdp.outer.plain import PlainWalk, general_components, pack
from rfmdp.outer.settings import STOPS, LimitReached, Measure, status_of
from rfmdp.outer.solution import Status
from rfmdp.outer.task import StateBounds, Task
from rfmdp.ragged import segment_any
from rfmdp.types import BoolArray, FloatArray, IntArray

PHASES = 12  # at most; all components beyond are general ones
COARSE = 1.0  # relative width of bounds that are better than none


def solve_unbounded(task: Task, warm: FloatArray | None = None) -> StateBounds:
    """Return bounds of all states, from a first guess (S,) of their values."""
    with task.stats.phase("graph"):
        region = analyse(task.problem, task.clock)
        if not region.open.any():  # the graph knows it all
            return StateBounds(region.known, region.known, region.known, region.choice)
        blocks = _blocks(region, _general(task, region))
    task.stats.components = len(region.components.trivial)
    task.stats.levels = len(region.components.level_ptr) - 1
    if blocks.together:
        task.clock.check_overdue()
        result = solve_general(task, region, None, warm)
    else:
        result = _in_rounds(Walk(task, region, blocks, warm))
    result.choice = region.finish_policy(result.choice)
    return result


def _general(task: Task, region: Region) -> BoolArray:
    """Return the components (C,) that are settled as general ones, see the table."""
    general = general_components(region)
    some, count = bool(general.any()), int(np.count_nonzero(general))
    few_plain = not region.cyclic and 2 * count > len(general)
    if some and (task.proves != Side.BOTH or few_plain):
        general[:] = True
    return general


class Blocks(NamedTuple):
    """Components in the order to settle them, in blocks of one engine each."""

    numbers: IntArray  # (C,) components
    parts: list[tuple[int, int, bool]]  # first, last, whether general

    @property
    def together(self) -> bool:
        """Whether all components are one general block."""
        return len(self.parts) == 1 and self.parts[0][2]


def _blocks(region: Region, general: BoolArray) -> Blocks:
    """Return all components in blocks, of which each needs only those before it."""
    phase = general.astype(np.int64)
    if general.any() and not general.all():
        parts, edges = region.components, region.graph.edges.forward
        component_phases(edges, region.finite_rows, parts.component, parts.states, general, phase)
        np.minimum(phase, PHASES + 1 - PHASES % 2, out=phase)  # an odd one: general
    numbers = np.argsort(phase, kind="stable")
    ends = [0, *(np.flatnonzero(np.diff(phase[numbers])) + 1).tolist(), len(general)]
    blocks = [(a, b, bool(phase[numbers[a]] % 2)) for a, b in pairwise(ends) if a < b]
    return Blocks(numbers, blocks)


def _in_rounds(walk: Walk) -> StateBounds:
    """Settle all components, again with less width each until the bounds are close."""
    task = walk.task
    width = max(walk.share * task.limits.precision, FLOOR)
    try:
        for attempt in range(ATTEMPTS):
            _first_round(walk, width) if attempt == 0 else walk.run(width)
            task.stats.robust_sweeps += 1
            excess = task.excess(walk.low, walk.high)
            if walk.stopped or walk.finished or excess <= 1.0 or width <= FLOOR:
                break
            width = max(width / max(3.0 * min(excess, 1e6), 4.0), FLOOR)
        task.clock.tick("solve", width)
    except STOPS as stop:
        walk.stopped = status_of(stop)
    return StateBounds(walk.low, walk.high, walk.middle, walk.choice, walk.stopped)


def _first_round(walk: Walk, width: float) -> None:
    """Settle all components; if most of the time is over before that, coarsely first.

    Sweeps keep their values, so coarse bounds take a fraction of the time that precise ones take.
    """
    clock = walk.task.clock
    clock.reserve = RESERVE
    try:
        walk.run(width)
    except LimitReached as stop:
        clock.last_chance()
        walk.run(COARSE)
        if stop.status is Status.SWEEP_LIMIT:
            raise
        walk.run(width)
    clock.reserve = 0.0


class Walk:
    """Bounds made better round by round; `low`, `high` (S,) are proven, `choice` keeps them.

    `stopped` is the limit that ended a round, if one did; `finished` says whether another round
    would not change anything.
    """

    def __init__(self, task: Task, region: Region, blocks: Blocks, warm: FloatArray | None) -> None:
        self.task, self.region, self.blocks = task, region, blocks
        later = np.zeros(len(blocks.numbers), dtype=np.bool_)
        for first, last, general in blocks.parts:
            later[blocks.numbers[first:last]] = general
        self.packed = pack(region, blocks.numbers, later)
        slow = later & ~region.components.trivial
        slow[blocks.numbers] |= ~self.packed.single
        levels = segment_any(slow, region.components.level_ptr)  # widths add up over these
        self.share = 0.5 / max(int(np.count_nonzero(levels)), 2)
        self.low, self.high = region.trivial_bounds()
        self.middle, self.choice = self.low, region.choice
        self.stopped: Status | None = None
        self.finished = False
        self._proven, self._warm = False, warm is not None
        self._value = np.zeros(int(self.packed.component_ptr[-1]))
        if warm is not None:
            self._value[self.packed.node[region.open]] = warm[region.open]

    def run(self, width: float) -> None:
        """Settle all components to about a relative width each, unless it is stopped in between.

        What a stopped round has proven is kept only if nothing was proven before.
        """
        task = self.task
        plain = PlainWalk(self.packed, task.problem, self._value)
        general = GeneralBounds(self.low, self.high, self.region.choice)
        try:
            for _, last, hard in self.blocks.parts:
                while not (self.stopped or self.finished) and plain.component < last:
                    if not hard:
                        plain.run(last, width, task.clock)
                    if plain.component < last:
                        # one that sweeps cannot settle is general; of one side, so are all others
                        end = last if hard else plain.component + 1
                        end = end if task.proves == Side.BOTH else len(self.blocks.numbers)
                        self._settle(plain, general, end, width)
        except STOPS:
            self._keep(plain, general)
            raise
        self._keep(plain, general)

    def _settle(self, plain: PlainWalk, general: GeneralBounds, end: int, width: float) -> None:
        """Settle the components from where the walk stands to `end` together, as general ones.

        If some bound stays infinite though nothing stopped it, all that is left joins them.
        """
        node, bounds, last = self.packed.node, plain.bounds, len(self.blocks.numbers)
        while True:
            component, settled = self._part(plain, end)
            task = self._part_of_task(component, width, at_end=end == last)
            warm = bounds.value[node] if self._warm or self._proven else None
            result = solve_general(task, component, settled, warm)
            self.stopped = result.stopped
            states = component.components.states
            finite = np.isfinite(result.lower[states]) & np.isfinite(result.upper[states])
            if self.stopped or end == last or (finite.all() and task.proves == Side.BOTH):
                break
            end = last
        general.take(states, result)
        self.finished = not bool(finite.all()) or task.proves != Side.BOTH
        _merge(plain, node[states], result.lower[states], result.upper[states])
        plain.go_to(end)

    def _part(
        self, plain: PlainWalk, end: int
    ) -> tuple[Region, tuple[FloatArray, FloatArray] | None]:
        """Return the region of the next components, and the bounds of all that is settled."""
        region, node, bounds, first = self.region, self.packed.node, plain.bounds, plain.component
        if first == 0 and end == len(self.blocks.numbers):
            return region, None
        done = region.open & (node < self.packed.component_ptr[first])
        known = np.where(done, bounds.value[node], region.known)
        settled = (
            np.where(done, bounds.lower[node], known),
            np.where(done, bounds.upper[node], known),
        )
        return region.part(np.sort(self.blocks.numbers[first:end]), known), settled

    def _part_of_task(self, part: Region, width: float, at_end: bool) -> Task:
        """Return the task of a part: all of it to a width; at the end, what is asked for."""
        task = self.task
        if not at_end:
            limits = replace(task.limits, precision=max(width, FLOOR), measure=Measure.RELATIVE)
            return replace(task, limits=limits, interest=part.open)
        limits = task.limits
        if part is not self.region:
            limits = replace(limits, precision=max(0.5 * width / self.share, FLOOR))
        interest = part.open & task.interest
        return replace(task, limits=limits, interest=interest if interest.any() else part.open)

    def _keep(self, plain: PlainWalk, general: GeneralBounds) -> None:
        """Take the bounds of all settled components; the guarantee is that of one round."""
        packed, region, bounds = self.packed, self.region, plain.bounds
        complete = plain.component == len(packed.single) and not self.stopped
        if not complete and self._proven:
            return
        self._proven = True
        node = packed.node
        done = region.open & (node < packed.component_ptr[plain.component])
        done &= ~general.settled & np.isfinite(bounds.lower[node])
        lower = np.where(done, bounds.lower[node], general.lower)
        upper = np.where(done, bounds.upper[node], general.upper)
        if region.problem.agent is MAX:
            upper = np.minimum(upper, self.high)
        else:
            lower = np.maximum(lower, self.low)
        self.low, self.high = lower, upper
        self.middle = np.where(done, bounds.value[node], general.value)
        self.choice = general.choice
        self.choice[done] = packed.origin[bounds.choice[node[done]]]


class GeneralBounds:
    """What one round has proven of states (S,) of general components; of others, what was known."""

    def __init__(self, lower: FloatArray, upper: FloatArray, choice: IntArray) -> None:
        self.settled: BoolArray = np.zeros(len(lower), dtype=np.bool_)
        self.lower, self.upper, self.value = lower.copy(), upper.copy(), lower.copy()
        self.choice = choice.copy()

    def take(self, states: IntArray, result: StateBounds) -> None:
        """Take what was proven of some states (N,)."""
        lower, upper = np.maximum(result.lower[states], 0.0), result.upper[states]
        middle = 0.5 * (lower + upper)
        self.settled[states] = True
        self.lower[states], self.upper[states] = lower, upper
        self.value[states] = np.where(np.isfinite(middle), middle, result.value[states])
        self.choice[states] = result.choice[states]


def _merge(plain: PlainWalk, nodes: IntArray, low: FloatArray, high: FloatArray) -> None:
    """Give nodes (n,) the widest bounds low, high (n,) of their states, in place."""
    value, lower, upper = plain.bounds.value, plain.bounds.lower, plain.bounds.upper
    lower[nodes], upper[nodes] = np.inf, -np.inf
    np.minimum.at(lower, nodes, np.maximum(low, 0.0))
    np.maximum.at(upper, nodes, high)
    value[nodes] = 0.5 * (lower[nodes] + upper[nodes])
