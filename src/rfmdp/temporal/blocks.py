"""Games in which staying for ever is worth 1 in some components and 0 in the others.

The states split into *blocks*, bottom first: every move from a block stays in it or leads to one
before it, and staying in it for ever is won, or lost, whatever happens there. Let the values of the
blocks before it be known. A lost block is a total reward: what is paid is the value where the play
leaves, and a play that stays is paid nothing (a probability to reach, if all values are 0 or 1). A
won block is one minus a lost one, with both players pushing the other way. So the solver of today
solves a block, and proves it; from below with lower bounds of what follows, from above with upper
ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from rfmdp.kernels.graph import component_levels
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.model.derived import bare, taking
from rfmdp.objective import MAX, Direction, Reach, Spec, Total
from rfmdp.outer.graph import Graph
from rfmdp.outer.region import components
from rfmdp.outer.solution import Solution, Status
from rfmdp.ragged import entries, segment_lengths
from rfmdp.rounding import one_minus
from rfmdp.types import BoolArray, FloatArray, IntArray

PAYOFF = "payoff"
WON = 1  # a block with an odd number is won by staying, one with an even number is lost

SolveTotal = Callable[[FactoredMDP, Spec], Solution]
"""Called as solve(model, specification); bounds have to be close in all states."""


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


def number_blocks(graph: Graph, won: BoolArray, open_: BoolArray) -> IntArray:
    """Return the blocks (S,) of open states, -1 elsewhere; staying is won where `won` (S,) is.

    Parameters
    ----------
    won : the same in all states of a component that one can stay in
    """
    if not open_.any():
        return np.full(len(open_), -1, dtype=np.int64)
    parts = components(graph, open_)
    kind = np.zeros(len(parts.trivial), dtype=np.int64)
    kind[parts.component[open_]] = won[open_]
    phase, loop = kind.copy(), np.zeros(len(kind), dtype=np.bool_)
    edges = graph.edges.forward
    component_levels(edges, graph.rows, parts.component, parts.states, kind, phase, loop)
    return np.where(open_, phase[parts.component], -1)


def solve_blocks(
    model: FactoredMDP,
    spec: Spec,
    block: IntArray,
    values: FloatArray,
    choice: IntArray,
    solve: SolveTotal,
) -> BlockBounds:
    """Return bounds of a game in blocks.

    Parameters
    ----------
    block : (S,)
        As `number_blocks` makes them: those with odd numbers are won by staying.
    values : (S,)
        Those of states that are in no block.
    choice : (S,)
        The rows there.
    """
    settled = block < 0
    bounds = BlockBounds(
        np.where(settled, values, 0.0), np.where(settled, values, 1.0), choice.copy(),
        block, (np.where(settled, values, 0.0), np.where(settled, values, 1.0)),
    )  # fmt: skip
    for number in range(int(block.max(initial=-1)) + 1):
        states = np.flatnonzero(block == number)
        if len(states):
            _settle(model, spec, states, number % 2 == WON, bounds, solve)
    return bounds


def _settle(
    model: FactoredMDP,
    spec: Spec,
    states: IntArray,
    won: bool,
    bounds: BlockBounds,
    solve: SolveTotal,
) -> None:
    """Settle one block, in place.

    Of a won block `low` and `high` are bounds of losing it; lower bounds are proven by `high`.
    """
    submodel, exits = _submodel(model, states)
    low, high = bounds.lower[exits], bounds.upper[exits]
    agent, nature = spec.agent, spec.nature
    if won:
        low, high = one_minus(high, -1.0), one_minus(low, 1.0)
        agent, nature = agent.opposite, nature.opposite
    from_below = solve(*_paying(submodel, len(states), low, agent, nature))
    from_above = from_below
    if not np.array_equal(low, high):
        from_above = solve(*_paying(submodel, len(states), high, agent, nature))
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
    guarantee = from_below if (spec.agent is MAX) is not won else from_above
    rows = guarantee.policy.rows[0][: len(states)]
    bounds.choice[states] = rows - submodel.row_ptr[: len(states)] + model.row_ptr[states]
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


def _paying(
    submodel: FactoredMDP, states: int, payoff: FloatArray, agent: Direction, nature: Direction
) -> tuple[FactoredMDP, Spec]:
    """Return the submodel in which the states that it leads to pay (m,), and what is asked of it.

    Where all pay 0 or 1 that is a probability to reach, of which the graph knows more.
    """
    if np.isin(payoff, (0.0, 1.0)).all():
        target = np.zeros(submodel.states, dtype=np.bool_)
        target[states:-1] = payoff == 1.0
        return submodel, Spec(Reach(target), agent, nature)
    row = np.zeros(submodel.rows)
    row[submodel.row_ptr[states] : submodel.row_ptr[states] + len(payoff)] = payoff
    rewards = {PAYOFF: Rewards(np.zeros(submodel.states), row)}
    return replace(submodel, rewards=rewards), Spec(Total(PAYOFF), agent, nature)
