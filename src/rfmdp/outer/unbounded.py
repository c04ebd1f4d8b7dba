"""Reachability, reward to a target and total reward: graph, components, proofs.

The graph says where the value is 0, 1 or infinite. The components of the open part are settled
bottom first. How is said by this table, and nowhere else; the first line that fits is taken:

open part                                engine                    proof of its bounds
every row plain, nature cannot keep a    `PlainWalk`, compiled,    loose checks, see `plain`
play for ever at no reward, nor has to   component by component
dodge infinite states
without cycles, nothing to dodge         `general`, one sweep      errors add up level by level
any other                                `general`, policy         `certify`; where that fails,
                                         iteration                 `approach`

Compiled code hands proven bounds from one component to the next, and goes through them in rounds,
each with less width, until the bounds are close. If it cannot settle a component, the open part is
general.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rfmdp.objective import MAX
from rfmdp.outer.general import ATTEMPTS, FLOOR, RESERVE, solve_general
from rfmdp.outer.graph.region import Region, analyse
from rfmdp.outer.plain import PlainWalk, is_plain, pack
from rfmdp.outer.settings import STOPS, LimitReached, status_of
from rfmdp.outer.solution import Status
from rfmdp.outer.task import StateBounds, Task
from rfmdp.ragged import segment_any
from rfmdp.types import FloatArray

COARSE = 1.0  # relative width of bounds that are better than none


def solve_unbounded(task: Task, warm: FloatArray | None = None) -> StateBounds:
    """Return bounds of all states, from a first guess (S,) of their values."""
    with task.stats.phase("graph"):
        region = analyse(task.problem, task.clock)
        if not region.open.any():  # the graph knows it all
            return StateBounds(region.known, region.known, region.known, region.choice)
        rounds = Rounds(task, region, warm) if is_plain(region) else None
    task.stats.components = len(region.components.trivial)
    task.stats.levels = len(region.components.level_ptr) - 1
    if rounds is None:
        task.clock.check_overdue()
        result = solve_general(task, region, warm)
    else:
        _settle(rounds)
        result = rounds.result
        if rounds.stuck and not result.stopped:
            everywhere = replace(task, interest=region.open)  # as compiled code takes it
            result = solve_general(everywhere, region, result.value)
    result.choice = region.finish_policy(result.choice)
    return result


class Rounds:
    """Walks through plain components; `result` is what is proven, `stuck` says that one cannot be.

    `share` is the part of a precision that the width of one component may take.
    """

    def __init__(self, task: Task, region: Region, warm: FloatArray | None) -> None:
        self.task, self.region, self.packed = task, region, pack(region)
        # widths add up over levels with components that are more than one node
        levels = segment_any(~self.packed.single, region.components.level_ptr)
        self.share = 0.5 / max(int(np.count_nonzero(levels)), 2)
        lower, upper = region.trivial_bounds()
        self.result = StateBounds(lower, upper, lower, region.choice)
        self.stuck = False
        self._proven = False
        self._value = np.zeros(int(self.packed.component_ptr[-1]))
        if warm is not None:
            self._value[self.packed.node[region.open]] = warm[region.open]

    def run(self, width: float) -> None:
        """Settle all components to about a relative width each.

        What a stopped round has proven is kept only if nothing was proven before.
        """
        walk = PlainWalk(self.packed, self.task.problem, self._value)
        try:
            walk.run(width, self.task.clock)
            self.stuck = not walk.done
        finally:
            if walk.done or not self._proven:
                self._keep(walk)
        self.task.stats.robust_sweeps += 1

    def _keep(self, walk: PlainWalk) -> None:
        """Take the bounds of all settled components; the guarantee is that of one round."""
        packed, region, bounds, before = self.packed, self.region, walk.bounds, self.result
        node = packed.node
        settled = region.open & (node < packed.component_ptr[walk.component])
        settled &= np.isfinite(bounds.lower[node])
        lower = np.where(settled, bounds.lower[node], before.lower)
        upper = np.where(settled, bounds.upper[node], before.upper)
        if region.problem.agent is MAX:
            upper = np.minimum(upper, before.upper)
        else:
            lower = np.maximum(lower, before.lower)
        value = np.where(settled, bounds.value[node], before.lower)
        choice = region.choice.copy()
        choice[settled] = packed.origin[bounds.choice[node[settled]]]
        self._proven, self.result = True, StateBounds(lower, upper, value, choice)


def _settle(rounds: Rounds) -> None:
    """Settle all components, again with less width each until the bounds are close."""
    task = rounds.task
    width = max(rounds.share * task.limits.precision, FLOOR)
    try:
        for attempt in range(ATTEMPTS):
            _first_round(rounds, width) if attempt == 0 else rounds.run(width)
            excess = task.excess(rounds.result.lower, rounds.result.upper)
            if rounds.stuck or excess <= 1.0 or width <= FLOOR:
                break
            width = max(width / max(3.0 * min(excess, 1e6), 4.0), FLOOR)
        task.clock.tick("solve", width)
    except STOPS as stop:
        rounds.result.stopped = status_of(stop)


def _first_round(rounds: Rounds, width: float) -> None:
    """Settle all components; if most of the time is over before that, coarsely first.

    Sweeps keep their values, so coarse bounds take a fraction of the time that precise ones take.
    """
    clock = rounds.task.clock
    clock.reserve = RESERVE
    try:
        rounds.run(width)
    except LimitReached as stop:
        clock.last_chance()
        rounds.run(COARSE)
        if stop.status is Status.SWEEP_LIMIT:
            raise
        rounds.run(width)
    clock.reserve = 0.0
