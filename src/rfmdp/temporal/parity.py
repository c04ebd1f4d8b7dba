"""Probability of a parity objective, with proven bounds: the largest priority for ever is even.

In a component of the graph whose priorities all have one parity, staying for ever is won or lost
whatever happens there. If all components are such, the game is one of `blocks`, and solved.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Parity, Spec
from rfmdp.outer.graph.components import components
from rfmdp.outer.graph.graph import Graph
from rfmdp.outer.settings import Limits, Measure
from rfmdp.outer.solution import Policy, Solution, Stats, Status
from rfmdp.temporal.blocks import BlockBounds, number_blocks, solve_blocks
from rfmdp.types import BoolArray, FloatArray, IntArray

SHARPEST = 1e-13  # precision asked of a block
ATTEMPTS = 3  # each with bounds a hundred times as close

Solve = Callable[..., Solution]
"""Called as solve(model, specification, limits=limits, states=states)."""


def solve_parity(
    model: FactoredMDP, spec: Spec, interest: BoolArray, method: str, limits: Limits, solve: Solve
) -> Solution:
    """Return proven bounds of a parity objective, and a policy."""
    objective = spec.objective
    assert isinstance(objective, Parity)
    stats = Stats()
    with stats.phase("solve"):
        graph = Graph(model)
        even, _ = pure_components(graph, objective.priority)
        block = number_blocks(graph, even, np.ones(model.states, dtype=np.bool_))
        bounds = _closer_and_closer(model, spec, block, interest, limits, solve)
    return to_solution(model, spec, bounds, interest, method, limits, stats)


def pure_components(graph: Graph, priority: IntArray) -> tuple[BoolArray, BoolArray]:
    """Return the states (S,) of components whose priorities are all even, and all odd."""
    parts = components(graph)
    count = len(parts.trivial)
    odds = np.bincount(parts.component[priority % 2 == 1], minlength=count) > 0
    evens = np.bincount(parts.component[priority % 2 == 0], minlength=count) > 0
    return ~odds[parts.component], ~evens[parts.component]


def _closer_and_closer(
    model: FactoredMDP,
    spec: Spec,
    block: IntArray,
    interest: BoolArray,
    limits: Limits,
    solve: Solve,
) -> BlockBounds:
    """Return bounds of a game in blocks, each solved more precisely until they are close."""
    begun = time.monotonic()
    precision = limits.precision / (4.0 * (block.max(initial=0) + 1))
    for _ in range(ATTEMPTS):
        precision = max(precision, SHARPEST)

        def solve_part(part: FactoredMDP, pull: Spec, precision: float = precision) -> Solution:
            left = max(limits.seconds - (time.monotonic() - begun), 1e-9)
            closer = replace(limits, precision=precision, measure=Measure.ABSOLUTE, seconds=left)
            return solve(part, pull, limits=closer, states=np.ones(part.states, dtype=np.bool_))

        bounds = solve_blocks(model, spec, block, np.zeros(model.states), solve_part)
        closed = limits.closed(bounds.lower, bounds.upper, interest, 1.0)
        if closed or bounds.stopped or precision == SHARPEST:
            break
        precision *= 0.01
    return bounds


def to_solution(
    model: FactoredMDP,
    spec: Spec,
    bounds: BlockBounds,
    interest: BoolArray,
    method: str,
    limits: Limits,
    stats: Stats,
) -> Solution:
    """Return bounds as a solution, which says how it ended."""
    lower, upper = bounds.lower, bounds.upper
    both = bounds.below and bounds.above
    status = bounds.stopped or Status.GAP_OPEN
    precision = limits.precision
    if both and limits.closed(lower, upper, interest, 1.0):
        status, precision = Status.CERTIFIED, limits.reached(lower, upper, interest)
    value: FloatArray = 0.5 * (lower + upper)
    if not both:
        value = lower if bounds.below else upper
    return Solution(
        model, spec, method, status, lower if bounds.below else None,
        upper if bounds.above else None, value, Policy(bounds.choice[None]), precision, stats,
        bounds.proof, limits.measure.name, interest, block=bounds.block,
    )  # fmt: skip
