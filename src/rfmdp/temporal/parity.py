"""Probability of a parity objective, with proven bounds: the largest priority for ever is even.

Regions of the graph are won, or lost, almost surely (`regions`). Among the other states, staying in
a component for ever is *won* or *lost* whatever happens there, if no play of it can do otherwise;
such a game is one of `blocks`. In a *mixed* component it depends on the players, and

- lower bounds count staying there as lost: coming to what is won almost surely is what counts;
- upper bounds count it as won: only what is lost almost surely is lost.

If one player alone has a choice, or both pull the same way, no component is mixed: what they can
win there is won almost surely. With two opponents the two bounds may stay apart: then policies are
tried. A policy leaves one player, so its value is exact, and it is a proven bound of the game's
value on the side of the guarantee.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.inner.exact import Exact
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.unroll import restrict
from rfmdp.objective import MAX, MIN, Parity, Spec
from rfmdp.outer.graph.components import components
from rfmdp.outer.graph.graph import Graph
from rfmdp.outer.settings import Limits, Measure
from rfmdp.outer.solution import Policy, Solution, Stats, Status
from rfmdp.ragged import segment_any
from rfmdp.sets.marginals import Kind as SetKind
from rfmdp.sets.supports import DoubtfulSupport
from rfmdp.temporal.blocks import BlockBounds, number_blocks, solve_blocks
from rfmdp.temporal.regions import Arena, Regions
from rfmdp.types import BoolArray, FloatArray, IntArray

SHARPEST = 1e-13  # precision asked of a block
ATTEMPTS = 3  # each with bounds a hundred times as close
ROUNDS = 10  # of better policies
MIXED = 256  # components that are looked at one by one

Solve = Callable[..., Solution]
"""Called as solve(model, specification, limits=limits, states=states)."""


@dataclass(frozen=True, slots=True, eq=False)
class ParityGame:
    """A parity objective on a model, and how to solve parts of it."""

    model: FactoredMDP
    spec: Spec
    priority: IntArray  # (S,)
    interest: BoolArray  # (S,)
    limits: Limits
    solve: Solve
    begun: float

    def solve_part(self, part: FactoredMDP, pull: Spec, precision: float) -> Solution:
        """Return the solution of a block."""
        left = max(self.limits.seconds - (time.monotonic() - self.begun), 1e-9)
        limits = replace(self.limits, precision=precision, measure=Measure.ABSOLUTE, seconds=left)
        return self.solve(part, pull, limits=limits, states=np.ones(part.states, dtype=np.bool_))

    def closed(self, lower: FloatArray, upper: FloatArray) -> bool:
        """Return whether bounds are as close as wanted."""
        return self.limits.closed(lower, upper, self.interest, 1.0)

    def under(self, rows: IntArray) -> ParityGame:
        """Return the game in which the agent keeps to a policy (S,)."""
        return replace(self, model=restrict(self.model, rows))


def solve_parity(
    model: FactoredMDP, spec: Spec, interest: BoolArray, method: str, limits: Limits, solve: Solve
) -> Solution:
    """Return proven bounds of a parity objective, and a policy."""
    assert isinstance(spec.objective, Parity)
    priority = spec.objective.priority
    game = ParityGame(model, spec, priority, interest, limits, solve, time.monotonic())
    stats = Stats()
    with stats.phase("solve"):
        try:
            below, above = _bounds(game)
        except DoubtfulSupport:
            raise UnsupportedError(
                "Floats cannot tell which outcomes nature can empty in this model, so nothing is "
                "proven of a path formula that is neither co-safe nor safe; write the bounds of "
                "its sets with fewer digits."
            ) from None
        if not game.closed(below.lower, above.upper) and not (below.stopped or above.stopped):
            below, above = _try_policies(game, below, above)
    return _to_solution(game, below, above, method, stats)


def _bounds(game: ParityGame) -> tuple[BlockBounds, BlockBounds]:
    """Return bounds whose lower, and whose upper side is proven for the game."""
    graph, spec = Graph(game.model), game.spec
    everywhere = np.ones(game.model.states, dtype=np.bool_)
    won, lost = stays(graph, game.priority, everywhere)
    if (won | lost).all():
        first = game.model.row_ptr[:-1]
        below = _closer_and_closer(game, number_blocks(graph, won, everywhere), ~everywhere, first)
        return below, below
    winning, losing = (
        Regions(graph, game.priority, spec.agent, spec.nature, side) for side in (MAX, MIN)
    )
    sure, never = winning.almost_sure(), losing.almost_sure()
    open_ = ~(sure | never)
    choice = np.where(never, losing.choice, winning.choice)
    won, lost = stays(graph, game.priority, open_)
    below = _closer_and_closer(game, number_blocks(graph, won, open_), sure, choice)
    if (open_ & ~won & ~lost).any():
        return below, _closer_and_closer(game, number_blocks(graph, ~lost, open_), sure, choice)
    return below, below


def _refuse_curved(graph: Graph) -> None:
    """Raise if nature can empty an outcome of an Lp ball: she may approach what she cannot attain.

    A ball with 1 < p < inf may touch a face in one point; possible successors do not tell then.
    """
    model, marginals = graph.model, graph.model.marginals
    curved = (marginals.kind == SetKind.LP)[model.row_marginals]
    if (segment_any(curved, model.marginal_ptr) & graph.flexible).any():
        raise UnsupportedError(
            "A path formula that is neither co-safe nor safe needs sets that are polytopes, or "
            "that keep their outcomes possible; found an Lp ball that can empty one. Try a smaller "
            "radius, or boxes."
        )


def stays(graph: Graph, priority: IntArray, open_: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Return the open states (S,) in whose components staying for ever is won, and is lost.

    It is if priorities have one parity, or if all players together cannot do otherwise.
    """
    if not open_.any():
        return open_, open_
    parts = components(graph, open_)
    count = len(parts.trivial)
    evens, odds = (
        np.bincount(parts.component[open_ & (priority % 2 == p)], minlength=count) > 0
        for p in (0, 1)
    )
    won, lost = ~odds, ~evens
    mixed = np.flatnonzero(~won & ~lost)
    if len(mixed):
        _refuse_curved(graph)
    for number in mixed[:MIXED]:
        inside = parts.component == number
        rows = graph.rows & inside[graph.edges.row_state]
        while True:  # what can stay at all
            rows &= graph.rows_can_stay(inside)
            left = np.zeros_like(inside)
            left[graph.edges.row_state[rows]] = True
            if np.array_equal(left, inside):
                break
            inside = left
            rows &= inside[graph.edges.row_state]
        arena = Arena(inside, rows)
        lost[number], won[number] = (
            not Regions(graph, priority, side, side, side).almost_sure(arena).any()
            for side in (MAX, MIN)
        )
        won[number] &= not lost[number]
    return open_ & won[parts.component], open_ & lost[parts.component]


def _closer_and_closer(
    game: ParityGame, block: IntArray, sure: BoolArray, choice: IntArray
) -> BlockBounds:
    """Return bounds of a game in blocks, each solved more precisely until they are close."""
    precision = game.limits.precision / (4.0 * (block.max(initial=0) + 1))
    known = sure.astype(np.float64)
    for _ in range(ATTEMPTS):
        sharper = max(precision, SHARPEST)
        bounds = solve_blocks(
            game.model, game.spec, block, known, choice,
            partial(game.solve_part, precision=sharper),
        )  # fmt: skip
        if game.closed(bounds.lower, bounds.upper) or bounds.stopped or sharper == SHARPEST:
            break
        precision *= 0.01
    return bounds


def _try_policies(
    game: ParityGame, below: BlockBounds, above: BlockBounds
) -> tuple[BlockBounds, BlockBounds]:
    """Return bounds in which those of the guarantee are of the best of some policies.

    Each policy is the best answer, in every state, to the values of the one before.
    """
    maximal = game.spec.agent is MAX
    nature = Exact().prepare(game.model, game.spec.nature)
    low, high = np.empty((2, game.model.rows))
    rows = np.arange(game.model.rows)
    tried = set[bytes]()
    candidates = [below.choice, above.choice]
    best = below if maximal else above
    for _ in range(ROUNDS):
        policy = next((c for c in candidates if c.tobytes() not in tried), None)
        if policy is None:
            break
        tried.add(policy.tobytes())
        under = _bounds(game.under(policy))[0]
        if under.stopped:
            break
        under.choice = policy
        value = under.lower if maximal else under.upper
        best_value = best.lower if maximal else best.upper
        gain = (value - best_value)[game.interest].sum() * game.spec.agent.sign
        if gain > 0.0:
            best = under
        if game.closed(
            best.lower if maximal else below.lower, above.upper if maximal else best.upper
        ):
            break
        nature.backup(value, rows, low, high)
        candidates.append(_better_rows(game, policy, low if maximal else high))
    return (best, above) if maximal else (below, best)


def _better_rows(game: ParityGame, policy: IntArray, worth: FloatArray) -> IntArray:
    """Return a policy (S,) with rows that are worth more than those of a policy, by (R,)."""
    sign = game.spec.agent.sign
    ptr = game.model.row_ptr
    best = np.maximum.reduceat(sign * worth, ptr[:-1])
    hits = np.flatnonzero(sign * worth == np.repeat(best, ptr[1:] - ptr[:-1]))[::-1]
    first = policy.copy()
    first[game.model.row_states[hits]] = hits
    return np.where(best > sign * worth[policy] + 1e-12, first, policy)


def _to_solution(
    game: ParityGame, below: BlockBounds, above: BlockBounds, method: str, stats: Stats
) -> Solution:
    """Return bounds as a solution, which says how it ended."""
    limits, lower, upper = game.limits, below.lower, above.upper
    both = below.below and above.above
    status = below.stopped or above.stopped or Status.GAP_OPEN
    precision = limits.precision
    if both and game.closed(lower, upper):
        status, precision = Status.CERTIFIED, limits.reached(lower, upper, game.interest)
    value: FloatArray = 0.5 * (lower + upper)
    if not both:
        value = lower if below.below else upper
    choice = (below if game.spec.agent is MAX else above).choice
    return Solution(
        game.model, game.spec, method, status, lower if below.below else None,
        upper if above.above else None, value, Policy(choice[None]), precision, stats,
        (below.proof[0], above.proof[1]), limits.measure.name, game.interest,
        block=np.stack([below.block, above.block]),
    )  # fmt: skip
