"""Probability of a parity objective, with proven bounds: the largest priority for ever is even.

Regions of the graph are won, or lost, almost surely. Among the other states, staying in a component
for ever is *won* or *lost* whatever happens there, if no play of it can do otherwise. In a *mixed*
component it depends on the players: lower bounds count staying there as lost, upper bounds as won.
Where the two stay apart, strategies of both players are tried, and both are in the result, for the
checker (`strategies`).

A *block* is a union of components, numbered bottom first; values of those before it are known. A
lost one is a total reward: what is paid is the value where the play leaves, and a play that stays
is paid nothing. A won one is one minus a lost one, with both players pushing the other way. The
solver of today proves both, from below with lower bounds of what follows, from above with upper
ones. Why all of it holds stands in docs/soundness.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.model.derived import Restriction, bare, restrict, taking
from rfmdp.objective import MAX, MIN, Direction, Parity, Reach, Spec, Total
from rfmdp.outer.graph import Graph
from rfmdp.outer.solution import Policy, Solution, Stats, Status
from rfmdp.outer.task import Limits, Measure
from rfmdp.ragged import entries, segment_lengths
from rfmdp.rounding import one_minus
from rfmdp.sets.families import LpBall
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.temporal.strategies import (
    CurvedSets,
    Regions,
    better_policy,
    nature_answers,
    number_blocks,
    stays,
)
from rfmdp.types import BoolArray, FloatArray, IntArray

SHARPEST = 1e-13  # precision asked of a block
ATTEMPTS = 3  # each with bounds a hundred times as close
SHARP = 1e-11  # precision of the values of strategies
ROUNDS = 40  # of better policies
ROUNDED = 1e-12  # of a radius of polytopes
PAYOFF = "payoff"
WON = 1  # a block with an odd number is won by staying, one with an even number is lost

Solve = Callable[..., Solution]  # called as solve(model, spec, limits=limits, states=states)


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

    def closed(self, sides: Sides) -> bool:
        """Return whether bounds are as close as wanted."""
        return self.limits.closed(sides[MAX].lower, sides[MIN].upper, self.interest, 1.0)


@dataclass(slots=True, eq=False)
class BlockBounds:
    """Proven bounds (S,) of all states, the rows that keep them, and the proofs behind them."""

    lower: FloatArray
    upper: FloatArray
    choice: IntArray
    block: IntArray  # (S,) its number; -1 where the value was known before
    proof: tuple[FloatArray, FloatArray]  # what proves `lower` and `upper`, see `_settle`
    below: bool = True  # whether the method proves lower bounds, and upper ones
    above: bool = True
    stopped: Status | None = None
    restriction: Restriction | None = None  # what nature keeps to where these are her guarantee


Sides: TypeAlias = dict[Direction, BlockBounds]
"""By player: of MAX the lower bounds are proven for a game, of MIN the upper ones."""


def solve_parity(
    model: FactoredMDP, spec: Spec, interest: BoolArray, method: str, limits: Limits, solve: Solve
) -> Solution:
    """Return proven bounds of a parity objective, and a policy."""
    assert isinstance(spec.objective, Parity)
    priority = spec.objective.priority
    game = ParityGame(model, spec, priority, interest, limits, solve, time.monotonic())
    stats, sides = Stats(), None
    with stats.phase("solve"):
        with suppress(CurvedSets):
            sides = _closed_sides(game)
        proven_again = sides is not None
        curved = bool((model.marginals.kind == Kind.LP).any())
        if sides is None or (curved and not game.closed(sides)):
            enclosed = _enclosed(game)
            if sides is None or game.closed(enclosed):
                sides, proven_again = enclosed, False
    below, above = sides[MAX], sides[MIN]
    status, precision = below.stopped or above.stopped or Status.GAP_OPEN, limits.precision
    if below.below and above.above and game.closed(sides):
        status, precision = Status.CERTIFIED, limits.reached(below.lower, above.upper, interest)
    lower = below.lower if below.below else None
    upper = above.upper if above.above else None
    value: FloatArray = 0.5 * (below.lower + above.upper)
    if lower is None or upper is None:
        value = above.upper if lower is None else lower
    return Solution(
        model, spec, method, status, lower, upper, value, Policy(sides[spec.agent].choice[None]),
        precision, stats, (below.proof[0], above.proof[1]) if proven_again else None,
        limits.measure.name, interest, block=np.stack([below.block, above.block]),
        restriction=sides[spec.nature].restriction if proven_again else None,
    )  # fmt: skip


def _enclosed(game: ParityGame) -> Sides:
    """Return bounds of two games with polytopes, inside of Lp balls and around them.

    Nature who minimises gets the larger sets for the lower bound, the smaller ones for the upper.
    """
    model, minimises = game.model, game.spec.nature is MIN
    return {
        side: _closed_sides(replace(game, model=replace(model, marginals=sets)))[side]
        for side, sets in (
            (MAX, polytopes(model, outside=minimises)),
            (MIN, polytopes(model, outside=not minimises)),
        )
    }


def polytopes(model: FactoredMDP, outside: bool) -> Marginals:
    """Return the sets with L1 balls in place of Lp balls that may empty an outcome.

    They are inside of these, or around them (docs/soundness.md); radii leave room for rounding.
    """
    sets = list(model.marginals)
    for j in np.flatnonzero(model.marginals.kind == Kind.LP):
        ball = sets[j]
        assert isinstance(ball, LpBall)
        if ball.nominal.min() > ball.radius:  # too small to empty anything
            continue
        spread = 1.0 - 1.0 / ball.exponent
        factor = ball.size**spread * (1.0 + ROUNDED) if outside else 2.0**spread * (1.0 - ROUNDED)
        sets[j] = LpBall(ball.nominal, float(factor * ball.radius), 1.0)
    return Marginals.from_sets(sets)


def _bounds(game: ParityGame) -> Sides:
    """Return the bounds that regions and blocks prove."""
    graph, spec = Graph(game.model), game.spec
    everywhere = np.ones(game.model.states, dtype=np.bool_)
    won, lost = stays(graph, game.priority, everywhere)
    if (won | lost).all():
        first = game.model.row_ptr[:-1]
        below = _closer_and_closer(game, number_blocks(graph, won, everywhere), ~everywhere, first)
        if below.stopped or game.closed({MAX: below, MIN: below}):
            return {MAX: below, MIN: below}  # else regions tell what is exactly 0 or 1
    winning, losing = (
        Regions(graph, game.priority, spec.agent, spec.nature, side) for side in (MAX, MIN)
    )
    sure, never = winning.almost_sure(), losing.almost_sure()
    open_ = ~(sure | never)
    choice = np.where(never, losing.choice, winning.choice)
    won, lost = stays(graph, game.priority, open_)
    below = _closer_and_closer(game, number_blocks(graph, won, open_), sure, choice)
    if (open_ & ~won & ~lost).any():
        above = _closer_and_closer(game, number_blocks(graph, ~lost, open_), sure, choice)
        return {MAX: below, MIN: above}
    return {MAX: below, MIN: below}


def _closer_and_closer(
    game: ParityGame, block: IntArray, sure: BoolArray, choice: IntArray
) -> BlockBounds:
    """Return bounds of a game in blocks, each solved more precisely until they are close.

    Blocks (S,) are those of `number_blocks`; what is in none is won where `sure`, by rows `choice`.
    """
    precision = game.limits.precision / (4.0 * (block.max(initial=0) + 1))
    lower, upper = np.where(block < 0, sure, 0.0), np.where(block < 0, sure, 1.0)
    for _ in range(ATTEMPTS):
        sharper = max(precision, SHARPEST)
        proof = lower.copy(), upper.copy()
        bounds = BlockBounds(lower.copy(), upper.copy(), choice.copy(), block, proof)
        for number in np.unique(block[block >= 0]):
            _settle(game, np.flatnonzero(block == number), number % 2 == WON, bounds, sharper)
        if game.closed({MAX: bounds, MIN: bounds}) or bounds.stopped or sharper == SHARPEST:
            break
        precision *= 0.01
    return bounds


def _settle(
    game: ParityGame, states: IntArray, won: bool, bounds: BlockBounds, precision: float
) -> None:
    """Settle one block, in place.

    Of a won block `low` and `high` are bounds of losing it; lower bounds are proven by `high`.
    """
    submodel, exits = _submodel(game.model, states)
    low, high = bounds.lower[exits], bounds.upper[exits]
    spec = game.spec
    if won:
        low, high = one_minus(high, -1.0), one_minus(low, 1.0)
        spec = replace(spec, agent=spec.agent.opposite, nature=spec.nature.opposite)
    from_below = from_above = _solved(game, submodel, low, spec, precision)
    if not np.array_equal(low, high):
        from_above = _solved(game, submodel, high, spec, precision)
    low, high = np.zeros(len(states)), np.ones(len(states))
    if from_below.lower is not None:
        low = np.clip(from_below.lower[: len(states)], 0.0, 1.0)
    if from_above.upper is not None:
        high = np.clip(from_above.upper[: len(states)], 0.0, 1.0)
    bounds.proof[0][states], bounds.proof[1][states] = (high, low) if won else (low, high)
    if won:
        low, high = one_minus(high, -1.0), one_minus(low, 1.0)
    bounds.below &= (from_above.upper if won else from_below.lower) is not None
    bounds.above &= (from_below.lower if won else from_above.upper) is not None
    bounds.lower[states], bounds.upper[states] = low, high
    guarantee = from_below if (game.spec.agent is MAX) is not won else from_above
    rows = guarantee.policy.rows[0][: len(states)]
    bounds.choice[states] = rows - submodel.row_ptr[: len(states)] + game.model.row_ptr[states]
    for solution in (from_below, from_above):
        if solution.status not in (Status.CERTIFIED, Status.GAP_OPEN):
            bounds.stopped = solution.status


def _submodel(model: FactoredMDP, states: IntArray) -> tuple[FactoredMDP, IntArray]:
    """Return the model of some states (n,), then those (m,) that they lead to, then an end.

    From the states that they lead to all moves go to the end, and there it stays: each has a row of
    the model, all of whose successors are the end.
    """
    inside = entries(model.row_ptr, states)
    following = model.successors[entries(model.successor_ptr, inside)]
    number = np.full(model.states, -1, dtype=np.int64)
    number[states] = np.arange(len(states))
    exits = np.unique(following[number[following] < 0]).astype(np.int64)
    number[exits] = len(states) + np.arange(len(exits))
    counts = np.append(segment_lengths(model.row_ptr)[states], np.ones(len(exits) + 1))
    rows = np.concatenate([inside, model.row_ptr[exits], [0]])
    size = int(segment_lengths(model.successor_ptr)[rows].sum())
    successors = np.full(size, len(counts) - 1)
    successors[: len(following)] = number[following]
    initial = np.array([0])
    return taking(bare(model), slice(None), rows, counts, successors, initial=initial), exits


def _solved(
    game: ParityGame, submodel: FactoredMDP, payoff: FloatArray, spec: Spec, precision: float
) -> Solution:
    """Return the solution of a block if the states that it leads to pay (m,).

    Where all pay 0 or 1 that is a probability to reach, of which the graph knows more.
    """
    exits = slice(-1 - len(payoff), -1)  # of states and rows
    if np.isin(payoff, (0.0, 1.0)).all():
        target = np.zeros(submodel.states, dtype=np.bool_)
        target[exits] = payoff == 1.0
        spec = replace(spec, objective=Reach(target))
    else:
        paid = np.zeros(submodel.rows)
        paid[exits] = payoff
        rewards = {PAYOFF: Rewards(np.zeros(submodel.states), paid)}
        submodel, spec = replace(submodel, rewards=rewards), replace(spec, objective=Total(PAYOFF))
    seconds = max(game.limits.seconds - (time.monotonic() - game.begun), 1e-9)
    limits = replace(game.limits, precision=precision, measure=Measure.ABSOLUTE, seconds=seconds)
    everywhere = np.ones(submodel.states, dtype=np.bool_)
    return game.solve(submodel, spec, limits=limits, states=everywhere)


def _closed_sides(game: ParityGame) -> Sides:
    """Return bounds of regions and blocks, and if they stay apart of strategies of both players.

    Those are better and better policies, then nature's answers to the best one.
    """
    sides = _bounds(game)
    below, above, agent = sides[MAX], sides[MIN], game.spec.agent
    open_ = (below.block >= 0) & (below.block % 2 != above.block % 2)
    # elsewhere no strategy changes what staying is worth
    if below.stopped or above.stopped or game.closed(sides) or not open_.any():
        return sides
    limits = replace(game.limits, precision=SHARP, measure=Measure.ABSOLUTE)
    sharp = replace(game, interest=np.ones_like(open_), limits=limits)
    policy: IntArray | None = sides[agent].choice
    value = below.lower
    for _ in range(ROUNDS):
        if policy is None or game.closed(sides):
            break
        bounds = _bounds(replace(sharp, model=restrict(game.model, policy)))[agent]
        if bounds.stopped:
            return sides
        bounds.choice = policy
        sides = _better(sides, agent, bounds)
        value = bounds.lower if agent is MAX else bounds.upper
        policy = better_policy(game, policy, value, open_)
    restriction = None if game.closed(sides) else nature_answers(game, value, open_)
    if restriction is None:
        return sides
    bounds = _bounds(replace(sharp, model=restriction.on(game.model)))[game.spec.nature]
    bounds.restriction = restriction
    return sides if bounds.stopped else _better(sides, game.spec.nature, bounds)


def _better(sides: Sides, player: Direction, bounds: BlockBounds) -> Sides:
    """Return the bounds with others that a player guarantees, if they are better."""
    old = sides[player]
    gain = bounds.lower - old.lower if player is MAX else old.upper - bounds.upper
    return sides | {player: bounds} if gain.sum() > 0.0 else sides
