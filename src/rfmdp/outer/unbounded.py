"""Reachability, reward to a target and total reward: graph, components, loops."""

from __future__ import annotations

import numpy as np

from rfmdp.inner.protocol import Side
from rfmdp.outer.general import solve_general
from rfmdp.outer.loops import settle_loops
from rfmdp.outer.plain import general_components
from rfmdp.outer.region import Region, analyse
from rfmdp.outer.solution import Status
from rfmdp.outer.task import Found, Task
from rfmdp.outer.walk import walk
from rfmdp.types import BoolArray, FloatArray


def solve_unbounded(task: Task, warm: FloatArray | None = None) -> Found:
    """Return bounds of all states, from a first guess (S,) of their values."""
    with task.stats.phase("graph"):
        region = analyse(task.problem, task.clock)
        if not region.open.any():  # the graph knows it all
            return Found(region.known, region.known, region.known, region.choice)
        general = general_components(region)
    task.stats.components = len(region.components.trivial)
    task.stats.levels = len(region.components.level_ptr) - 1
    found = walk(task, region, general, warm) if _worth_a_walk(task, region, general) else None
    if found is None:
        task.clock.check_overdue()
        found = solve_general(task, region, (region.known, region.known), warm)
    close = task.closed(found.lower, found.upper, found.value)
    if found.status is Status.CERTIFIED and task.proves == Side.BOTH and not close:
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
