"""Tiny random models with every kind of trouble, and every objective on them."""

from functools import cache

import numpy as np

from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import (
    MAX,
    MIN,
    Cumulative,
    Discounted,
    Globally,
    Instantaneous,
    Next,
    Reach,
    ReachReward,
    Spec,
    Total,
    Until,
)  # fmt: skip
from rfmdp.sets.families import Interval, L1Ball, Polytope, Singleton

PAIRS = [(a, n) for a in (MAX, MIN) for n in (MAX, MIN)]


def tiny_set(rng: np.random.Generator, size: int):
    """Return a set with few vertices, many of whose bounds are 0."""
    kind = rng.integers(5)
    if size == 1:
        return Singleton([1.0])
    if kind == 0:
        point = rng.integers(1, 5, size).astype(float)
        return Singleton(point / point.sum())
    if kind == 1 and size == 2:
        return L1Ball([0.25, 0.75], float(rng.choice([0.25, 0.5, 1.0])))
    while True:
        lower = rng.choice([0.0, 0.0, 0.125, 0.25], size)
        upper = np.maximum(lower, rng.choice([0.25, 0.5, 0.75, 1.0], size))
        if lower.sum() <= 1.0 <= upper.sum():
            return Interval(lower, upper)


def bent_set(rng: np.random.Generator, size: int):
    """Return a set of any family with few vertices, most of whose outcomes can be emptied."""
    kind = rng.integers(6)
    point = rng.integers(0, 4, size).astype(float)
    point[rng.integers(size)] += 1
    if kind == 0:
        return Singleton(point / point.sum())  # often with impossible outcomes
    if kind == 1:
        return L1Ball(point / point.sum(), float(rng.choice([0.25, 0.5, 1.0, 2.0])))
    if kind == 2:
        corners = rng.integers(0, 3, (2, size)).astype(float)
        corners[:, rng.integers(size)] += 1
        return Polytope(corners / corners.sum(axis=1, keepdims=True))
    while True:
        lower = rng.choice([0.0, 0.0, 0.0, 0.125], size)
        upper = np.maximum(lower, rng.choice([0.0, 0.25, 0.5, 1.0, 1.0], size))
        if lower.sum() <= 1.0 <= upper.sum():
            return Interval(lower, upper)


@cache  # models are immutable, and many tests ask for the same ones
def tiny_model(seed: int) -> FactoredMDP:
    """Return 2 to 4 states, one or two rows each, up to two small factors; rewards often 0.

    Every second model has sets that nature can bend wherever it likes and hardly any reward, so
    that everybody may linger.
    """
    rng = np.random.default_rng(seed)
    states, bent = int(rng.integers(2, 5)), seed % 2 == 1
    draw = bent_set if bent else tiny_set
    sets = [draw(rng, int(rng.choice([2, 2, 3]))) for _ in range(3)]
    lines = []
    for s in range(states):
        rows = []
        for _ in range(rng.integers(1, 3)):
            factors = rng.choice([0, 1, 1, 1, 2])
            chosen = rng.integers(0, 3, factors)
            if factors == 2 and max(sets[j].size for j in chosen) > 2:
                chosen = chosen[:1]
            size = int(np.prod([sets[j].size for j in chosen]))
            pool = rng.choice([s, *range(states)], int(rng.integers(2, 4)))
            rows.append((chosen.tolist(), rng.choice(pool, size).tolist()))
        lines.append(rows)
    count = sum(map(len, lines))
    rewards = {
        "some": Rewards(
            rng.choice([0.0, 0.0, 1.0, 2.5], states) * (not bent),
            rng.choice([0.0, 0.0, 0.0, 1.0] if bent else [0.0, 1.0], count),
        ),
        "signed": Rewards(rng.normal(0.0, 1.0, states), rng.choice([0.0, -1.0, 3.0], count)),
    }
    goal = np.zeros(states, dtype=bool)
    goal[rng.integers(states)] = True
    safe = rng.random(states) < 0.8
    labels = {"goal": goal, "safe": safe}
    initial = rng.choice(states, int(rng.integers(1, states + 1)), replace=False)
    return FactoredMDP.from_rows(lines, sets, labels=labels, rewards=rewards, initial=initial)


OBJECTIVES = {
    "reach": Reach("goal"),
    "until": Until("safe", "goal"),
    "bounded": Until("safe", "goal", 3),
    "window": Until("safe", "goal", 4, 2),
    "late": Until("safe", "goal", None, 2),
    "globally": Globally("safe"),
    "globally bounded": Globally("safe", 3, 1),
    "globally late": Globally("safe", None, 2),
    "next": Next("goal"),
    "to target": ReachReward("goal", "some"),
    "cumulative": Cumulative(3, "signed"),
    "cumulative discounted": Cumulative(3, "signed", 0.9),
    "instantaneous": Instantaneous(2, "signed"),
    "discounted": Discounted(0.9, "signed"),
    "total": Total("some"),
}


def specs():
    """Yield (name, spec) of all objectives and directions."""
    for name, objective in OBJECTIVES.items():
        for agent, nature in PAIRS:
            yield f"{name} {agent.name}{nature.name}", Spec(objective, agent, nature)
