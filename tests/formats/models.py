"""Small random models for round trips."""

from __future__ import annotations

import numpy as np

from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.sets.families import Interval, L1Ball, Singleton


def random_set(rng, size, kind):
    """Return a known distribution, a box without zeros, or an L1 ball."""
    p = rng.dirichlet(np.ones(size)) * 0.8 + 0.2 / size
    if kind == "known":
        return Singleton(p)
    if kind == "l1":
        return L1Ball(p, 0.1)
    radius = 0.5 * p.min() * rng.random(size)
    return Interval(p - radius, np.minimum(p + radius, 1.0), p)


def random_model(rng, kind="box", states=6, marginals=4, factors=2, certain=0.2):
    """Return a model with labels, rewards and, in the first factors, shared marginals."""
    sets = [random_set(rng, int(rng.integers(2, 4)), kind) for _ in range(marginals)]
    rows = []
    for _ in range(states):
        choices = []
        for a in range(int(rng.integers(1, 4))):
            count = 0 if rng.random() < certain else int(rng.integers(1, factors + 1))
            ids = rng.integers(0, marginals, count).tolist()
            size = int(np.prod([sets[j].size for j in ids], dtype=np.int64))
            choices.append((ids, rng.integers(0, states, size), ["", "go", "stay"][a]))
        rows.append(choices)
    total = sum(len(choices) for choices in rows)
    goal = np.zeros(states, dtype=np.bool_)
    goal[-1] = True
    model = FactoredMDP.from_rows(
        rows,
        sets,
        initial=int(rng.integers(states)),
        labels={"goal": goal, "odd": np.arange(states) % 2 == 1},
        rewards={
            "cost": Rewards(rng.integers(0, 3, states) / 4, rng.random(total)),
            "time": Rewards(np.ones(states), np.zeros(total)),
        },
    )
    return with_variables(model)


def with_variables(model):
    """Return the model with an integer and a boolean variable."""
    from dataclasses import replace

    numbers = np.arange(model.states)
    return replace(
        model,
        variables=(
            Variable("x", -1, int(numbers.max() // 2) - 1),
            Variable("b", 0, 1, True),
        ),
        valuations=np.stack([numbers // 2 - 1, numbers % 2], axis=1).astype(np.int32),
    )


def rows_of(model):
    """Return per row: state, action name, and {successor: (lower, upper)}; for flat models."""
    result = []
    for r, state in enumerate(model.row_states.tolist()):
        targets = model.successors[model.successor_ptr[r] : model.successor_ptr[r + 1]].tolist()
        ids = model.row_marginals[model.marginal_ptr[r] : model.marginal_ptr[r + 1]].tolist()
        assert len(ids) <= 1
        bounds = [(1.0, 1.0)]
        if ids:
            part = slice(*model.marginals.outcome_ptr[ids[0] : ids[0] + 2])
            low, high = model.marginals.lower[part], model.marginals.upper[part]
            bounds = list(zip(low.tolist(), high.tolist(), strict=True))
        action = model.actions[model.row_actions[r]]
        result.append((state, action, dict(zip(targets, bounds, strict=True))))
    return result


def assert_same(found, expected, *, variables=True):
    """Assert that two flat models are equal to the last bit."""
    assert rows_of(found) == rows_of(expected)
    assert found.initial.tolist() == expected.initial.tolist()
    assert {k: v.tolist() for k, v in found.labels.items()} == {
        k: v.tolist() for k, v in expected.labels.items()
    }
    assert set(found.rewards) == set(expected.rewards)
    for name, rewards in expected.rewards.items():
        assert found.rewards[name].state.tolist() == rewards.state.tolist()
        assert found.rewards[name].row.tolist() == rewards.row.tolist()
    if variables:
        assert found.variables == expected.variables
        assert found.valuations.tolist() == expected.valuations.tolist()
