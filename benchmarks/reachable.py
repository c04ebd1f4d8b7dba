"""What contraction would cost if it knew which states of a lattice are reachable.

    python benchmarks/reachable.py

A model by its factors is contracted in all states of its lattice. This counts, for models whose
factors are known, the numbers that a step has to contract (times outcomes), over the transitions
that would be written out: in all states, and in the reachable ones alone, where only rows of
reachable states are walked and only those entries kept that some of them needs.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np

from rfmdp.domains import DOMAINS, checked_domain
from rfmdp.language.build import build_model
from rfmdp.language.check import CheckedModel, check_model
from rfmdp.language.lattice import NoLattice, build_lattice
from rfmdp.language.parse import parse_model
from rfmdp.model.lattice import FORBIDDEN, LatticeMDP
from rfmdp.model.lattice_order import contractions, in_good_order

sys.path.insert(0, str(Path(__file__).parent / "shapes"))
from models import SHAPES

COUNTED = 3_000_000  # transitions up to which reachable states are counted alone


def main() -> None:
    """Print one line per model."""
    warnings.simplefilter("ignore")
    print(
        f"{'model':16} {'lattice':>9} {'reachable':>9} {'transitions':>11} {'all':>7} {'alone':>7}"
    )
    for domain in DOMAINS:
        _look(domain, checked_domain(domain, {}))
    for name, shape in SHAPES.items():
        _look(name, check_model(parse_model(shape.text(**shape.sizes[0]), name), {}))


def _look(name: str, checked: CheckedModel) -> None:
    try:
        lattice = in_good_order(build_lattice(checked))
    except NoLattice as reason:
        print(f"{name:16} no lattice: {reason}")
        return
    model = build_model(checked)
    names = [variable.name for variable in model.variables]
    order = [names.index(variable.name) for variable in lattice.variables]
    low = np.array([variable.low for variable in lattice.variables])
    states = np.unique((model.valuations[:, order].astype(np.int64) - low) @ lattice.strides)
    whole = contractions(lattice) / model.transitions
    alone = "-"
    if model.transitions <= COUNTED:
        alone = f"{_contractions_of(lattice, states) / model.transitions:.2f}"
    print(f"{name:16} {lattice.states:9,} {len(states):9,} {model.transitions:11,} "
          f"{whole:7.2f} {alone:>7}")  # fmt: skip


def _contractions_of(lattice: LatticeMDP, states: np.ndarray) -> int:
    """Return how many numbers a step contracts, times outcomes, for the rows of some states."""
    moves = [
        lattice.row_moves(states, np.full(len(states), a)) for a in range(len(lattice.actions))
    ]
    rows = np.concatenate([some[(some != FORBIDDEN).all(axis=1)] for some in moves])
    rows = np.unique(rows, axis=0)  # rows with the same moves are one
    ptr, targets = lattice.moves.target_ptr, lattice.moves.targets
    outcomes = np.diff(ptr)
    nodes = [np.zeros(len(rows), dtype=np.int64)]  # of the trie, after each factor
    for column in rows.T:
        pair = np.stack([nodes[-1], column])
        nodes.append(np.unique(pair, axis=1, return_inverse=True)[1].reshape(-1))
    total, stride = 0, 1
    row, rest = np.arange(len(rows)), np.zeros(len(rows), dtype=np.int64)  # of what is left over
    for d in reversed(range(len(lattice.factors))):
        needed = np.unique(np.stack([nodes[d + 1][row], rest]), axis=1)
        move = np.zeros(len(rows), dtype=np.int64)
        move[nodes[d + 1]] = rows[:, d]
        total += int(outcomes[move[needed[0]]].sum())
        own = rows[row, d]
        count = outcomes[own]
        offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        target = targets[np.repeat(ptr[own], count) + offset]
        row, rest = np.repeat(row, count), np.repeat(rest, count) + target * stride
        stride *= lattice.sizes[d]
        first = np.unique(np.stack([nodes[d][row], rest]), axis=1, return_index=True)[1]
        row, rest = row[first], rest[first]
    return total


if __name__ == "__main__":
    main()
