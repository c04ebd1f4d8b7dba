"""In which order factors are contracted.

Contracting a factor needs the current values of what it reads, and every later array is made once
for each of them. So the next factor is one that reads little that is not read already; of those
the one that shrinks the arrays most.
"""

from __future__ import annotations

from dataclasses import replace

from rfmdp.model.lattice import LatticeMDP


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
