"""In which order factors are contracted.

Contracting a factor needs the current values of what it reads, and every later array is made once
for each of them. So the next factor is one that reads little that is not read already; of those
the one that shrinks the arrays most. A clock comes first: few of its local states can follow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from rfmdp.model.lattice import FORBIDDEN, LatticeMDP
from rfmdp.ragged import segment
from rfmdp.types import BoolArray, IntArray

LONGEST = 1 << 12  # local states of a clock


@dataclass(frozen=True, slots=True, eq=False)
class Clock:
    """A factor that never comes back to a local state that it left, except to stay for ever.

    Its local states have levels: those of level 0 stay, the others lead to lower levels only.
    """

    factor: int
    level: IntArray  # (local states,)

    def states(self, model: LatticeMDP, level: int) -> BoolArray:
        """Return the states of a level, (S,)."""
        before = math.prod(model.sizes[: self.factor])
        after = math.prod(model.sizes[self.factor + 1 :])
        return np.tile(np.repeat(self.level == level, after), before)

    def lasting(self, model: LatticeMDP) -> BoolArray:
        """Return the states (S,) in which it stays where it is."""
        lasting = self.states(model, 0)
        return lasting if model.deadlocks is None else lasting | model.deadlocks


def clock_of(model: LatticeMDP) -> Clock | None:
    """Return the clock with the most levels; None: no factor is one."""
    levels = ((d, _levels(model, d)) for d in range(len(model.factors)))
    clocks = [Clock(d, level) for d, level in levels if level is not None]
    return max(clocks, key=lambda clock: int(clock.level.max()), default=None)


def _levels(model: LatticeMDP, d: int) -> IntArray | None:
    """Return the levels of a factor's local states, by which lead to which in any context.

    None if there are too many, if they form a cycle, or if all of them stay.
    """
    factor, size = model.factors[d], model.sizes[d]
    if size > LONGEST:
        return None
    radix = [model.radix(c) for c in factor.reads]
    digits = np.indices(radix).reshape(len(radix), len(factor.moves))
    local = np.zeros(len(factor.moves), dtype=np.int64)
    for column in factor.columns:
        local = local * model.radix(column) + digits[factor.reads.index(column)]
    leads = np.zeros((size, size), dtype=np.bool_)
    pairs = local[:, None] * len(model.moves.marginal) + factor.moves
    pairs = np.unique(pairs[factor.moves != FORBIDDEN])
    for here, move in zip(*np.divmod(pairs, len(model.moves.marginal)), strict=True):
        leads[here, model.moves.targets[segment(model.moves.target_ptr, move)]] = True
    level = np.full(size, -1)
    level[~(leads & ~np.eye(size, dtype=np.bool_)).any(axis=1)] = 0
    while (level < 0).any():
        ready = (level < 0) & ~leads[:, level < 0].any(axis=1)
        if not ready.any():
            return None
        level[ready] = int(level.max()) + 1
    return level if level.max() > 0 else None


def in_good_order(model: LatticeMDP) -> LatticeMDP:
    """Return the model with its factors in the order in which they are best contracted."""
    candidates = list(range(len(model.factors)))
    order: list[int] = []
    decided: set[int] = set()
    clock = clock_of(model)
    if clock is not None:
        order.append(clock.factor)
        candidates.remove(clock.factor)
        decided |= set(model.factors[clock.factor].reads)

    def growth(d: int) -> float:
        """Return by how much deciding what a factor reads multiplies what is left to do."""
        fresh = set(model.factors[d].reads) - decided
        return math.prod(float(model.radix(c)) for c in fresh) / model.sizes[d]

    while candidates:
        best = min(candidates, key=lambda d: (growth(d), -model.sizes[d], d))
        decided |= set(model.factors[best].reads)
        candidates.remove(best)
        order.append(best)
    return replace(model, factors=tuple(model.factors[d] for d in order))


def postponed(model: LatticeMDP) -> int:
    """Return how many outcomes of the first factor are picked, to be contracted last; 0: none.

    A clock is: what it leads to differs in more than its own worth, so that hardly one answer of
    nature would fit all that the other factors may do.
    """
    if _levels(model, 0) is None:
        return 0
    table = model.factors[0].moves
    moves = np.unique(table[table != FORBIDDEN])
    outcomes = int(np.max(np.diff(model.moves.target_ptr)[moves], initial=1))
    return outcomes if 1 < outcomes < model.sizes[0] else 0


def contractions(model: LatticeMDP) -> float:
    """Return about how many numbers a backward step contracts, whatever actions are possible.

    A depth contracts as many arrays as the variables decided before it have values, once per move
    that differs; an array has the states of all later factors.
    """
    total, decided = 0.0, set[int]()
    states = float(model.states)
    for factor, size in zip(model.factors, model.sizes, strict=True):
        fresh = [c for c in factor.reads if c not in decided]
        arrays = math.prod(float(model.radix(c)) for c in decided)
        shape = [model.radix(c) for c in factor.reads]
        axes = [k for k, c in enumerate(factor.reads) if c in decided]
        axes += [k for k, c in enumerate(factor.reads) if c in fresh]
        table = factor.moves.reshape(*shape, -1).transpose(*axes, len(shape))
        codes = int(np.prod([model.radix(c) for c in factor.reads if c in decided], dtype=int))
        moves = table.reshape(codes, -1)
        uncertain = (moves != FORBIDDEN) & (model.moves.marginal[moves] >= 0)
        different = np.mean(
            [len(np.unique(row[u])) for row, u in zip(moves, uncertain, strict=True)]
        )
        states /= size
        if not decided:
            states *= max(postponed(model), 1)
        total += arrays * float(different) * states
        decided |= set(factor.reads)
    return total
