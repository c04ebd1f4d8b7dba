"""Tiny models for tests of inner solvers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.sets.families import Interval, UncertaintySet
from rfmdp.sets.marginals import Marginals
from rfmdp.types import FloatArray
from row_problems import RowProblem


def one_row_model(sets: Sequence[UncertaintySet], values_count: int) -> FactoredMDP:
    """Return a model whose row 0 has these marginals and the successors 0..values_count - 1.

    Joint outcome k of row 0 leads to state k (modulo `values_count`, so that fewer states than
    joint outcomes make outcomes meet). State 0 owns row 0; every other state has a certain move
    to itself, without marginals.
    """
    joint = int(np.prod([s.size for s in sets])) if sets else 1
    others = values_count - 1
    return FactoredMDP(
        row_ptr=np.arange(values_count + 1),
        marginal_ptr=np.concatenate([[0], np.full(values_count, len(sets))]),
        row_marginals=np.arange(len(sets), dtype=np.int32),
        successor_ptr=np.concatenate([[0], joint + np.arange(others + 1)]),
        successors=np.concatenate(
            [np.arange(joint) % values_count, np.arange(1, values_count)]
        ).astype(np.int32),
        marginals=Marginals.from_sets(sets),
        initial=np.array([0]),
        row_actions=np.zeros(values_count, dtype=np.int32),
        actions=("go",),
    )


def rows_model(
    rows: Sequence[Sequence[int]], sets: Sequence[UncertaintySet], states: int
) -> FactoredMDP:
    """Return a model whose state 0 owns `rows` (marginal ids each), successors drawn in turn."""
    sizes = [s.size for s in sets]
    joints = [int(np.prod([sizes[j] for j in row])) if row else 1 for row in rows]
    ends = np.concatenate([[0], np.cumsum([*joints, *[1] * (states - 1)])])
    certain = [[] for _ in range(states - 1)]
    counts = [len(row) for row in [*rows, *certain]]
    inner = np.arange(sum(joints)) * 7 % states
    return FactoredMDP(
        row_ptr=np.concatenate([[0], len(rows) + np.arange(states)]),
        marginal_ptr=np.concatenate([[0], np.cumsum(counts)]),
        row_marginals=np.array([j for row in rows for j in row], dtype=np.int32),
        successor_ptr=ends,
        successors=np.concatenate([inner, np.arange(1, states)]).astype(np.int32),
        marginals=Marginals.from_sets(sets),
        initial=np.array([0]),
        row_actions=np.zeros(len(counts), dtype=np.int32),
        actions=("go",),
    )


def product_tensor(points: Sequence[FloatArray]) -> FloatArray:
    """Return the product distribution of some marginals, flat in C order."""
    joint: FloatArray = np.ones(1)
    for point in points:
        joint = np.multiply.outer(joint, point).ravel()
    return joint


SHAPES = [
    (2, 2),
    (3, 3),
    (2, 4),
    (5, 3),
    (1, 4),
    (2, 2, 2),
    (3, 2, 3),
    (2, 2, 2, 2),
    (2, 1, 2, 3, 2),
]


def random_box(rng: np.random.Generator, size: int, radius: float = 0.2) -> Interval:
    """Return a box around a random distribution, with some entries that may vanish."""
    p = rng.dirichlet(np.ones(size))
    return Interval(np.maximum(p - radius * rng.random(size), 0.0),
                    np.minimum(p + radius * rng.random(size), 1.0), p)  # fmt: skip


def random_problems(count: int, rng: np.random.Generator, radius: float = 0.2) -> list[RowProblem]:
    """Return rows of boxes of several shapes with random values: most of them must branch."""
    problems = []
    for number in range(count):
        shape = SHAPES[number % len(SHAPES)]
        total = int(np.prod(shape))
        sets = tuple(random_box(rng, size, radius) for size in shape)
        problems.append(RowProblem(sets, np.arange(total), rng.random(total)))
    return problems
