"""Games in which players may go round for ever, or leave for a coin."""

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.sets.families import Interval, L1Ball, Polytope, Singleton


def lingering(seed):
    """Return a game in which players may go round for ever, or leave for a coin; and priorities."""
    rng = np.random.default_rng(seed)
    inner = int(rng.integers(2, 5))
    chances = rng.choice(np.arange(1, 8), 2, replace=False) / 8
    sets = [
        *(Singleton([c, 1 - c]) for c in chances),
        Singleton([0.5, 0.5]),
        Interval([0.0, 0.0], [1.0, 1.0]),
        Interval([0.0, 0.25], [0.75, 1.0]),
        Interval([0.0, 0.0, 0.0], [0.5, 0.75, 1.0]),
        L1Ball([0.5, 0.25, 0.25], 0.5),
        Polytope([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.25, 0.75]]),
    ]
    pool = [*range(inner), *range(inner), inner, inner + 1]
    lines = []
    for _ in range(inner):
        rows = []
        for _ in range(rng.integers(1, 4)):
            factors = int(rng.choice([0, 1, 2, 3], p=[0.45, 0.4, 0.1, 0.05]))
            ids = rng.integers(2, len(sets) if factors == 1 else 5, factors)
            size = int(np.prod([sets[j].size for j in ids]))
            rows.append((ids.tolist(), rng.choice(rng.choice(pool, 3), size).tolist()))
        lines.append(rows)
    win = inner + 2
    lines += [[([0], [win, win + 1])], [([1], [win, win + 1])], [([], [win])], [([], [win + 1])]]
    priority = np.concatenate([rng.integers(0, 4, inner), [0, 0, 2, 1]])
    return FactoredMDP.from_rows(lines, sets), priority
