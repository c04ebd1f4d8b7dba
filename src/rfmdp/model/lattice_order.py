"""In which order factors are contracted.

Contracting a factor needs the current values of what it reads, and every later array is made once
for each of them. So the next factor is one that reads little that is not read already; of those
the one that shrinks the arrays most.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from rfmdp.model.lattice import FORBIDDEN, LatticeMDP


def in_good_order(model: LatticeMDP) -> LatticeMDP:
    """Return the model with its factors in the order in which they are best contracted."""
    left = list(range(len(model.factors)))
    order: list[int] = []
    decided: set[int] = set()
    while left:
        best = min(left, key=lambda d: (_growth(model, d, decided), -model.sizes[d], d))
        decided |= set(model.factors[best].reads)
        left.remove(best)
        order.append(best)
    return replace(model, factors=tuple(model.factors[d] for d in order))


def _growth(model: LatticeMDP, d: int, decided: set[int]) -> float:
    """Return by how much deciding what a factor reads multiplies what is left to do."""
    growth = 1.0
    for column in set(model.factors[d].reads) - decided:
        growth *= model.radix(column)
    return growth / model.sizes[d]


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
        total += arrays * float(different) * states
        decided |= set(factor.reads)
    return total
