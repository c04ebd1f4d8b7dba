"""Small models with known optima for tests of learning, and evaluations where a test wants them."""

from dataclasses import dataclass, replace

import numpy as np

from rfmdp.learning.identifiers import Granularity, Identifiers, identify
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import MAX, MIN, Reach, ReachReward, Spec
from rfmdp.sets.families import Singleton
from rfmdp.sources.source import Structure, counted_truth

REACH = Spec(Reach("goal"), MAX, MIN)
COST = Spec(ReachReward("goal", "cost"), MIN, MAX)


@dataclass(frozen=True)
class AtTrajectories:
    """Evaluation points given one by one, ascending."""

    points: tuple[int, ...]

    def next(self, trajectories: int) -> int:
        """Return the first point after some trajectories, or no limit."""
        return min((p for p in self.points if p > trajectories), default=2**62)


def identified(
    model: FactoredMDP, granularity: Granularity = Granularity.EFFECT, **words
) -> Identifiers:
    """Return the identifiers of a model, the learning model with the model's probabilities."""
    ids = identify(Structure.of(model), granularity, **words)
    return replace(ids, model=counted_truth(model, ids.model))


def bernoulli(p: float) -> FactoredMDP:
    """One state, one unknown coin: goal or trap."""
    return FactoredMDP.from_rows(
        [[([0], [1, 2], "try")], [([], [1], "stay")], [([], [2], "stay")]],
        [Singleton([p, 1 - p])],
        labels={"goal": [False, True, False]},
    )


def two_arms(p: float, q: float) -> FactoredMDP:
    """Two actions that reach the goal with unknown probabilities."""
    return FactoredMDP.from_rows(
        [
            [([0], [1, 2], "left"), ([1], [1, 2], "right")],
            [([], [1], "stay")],
            [([], [2], "stay")],
        ],
        [Singleton([p, 1 - p]), Singleton([q, 1 - q])],
        labels={"goal": [False, True, False]},
    )


def random_factored(seed: int) -> FactoredMDP:
    """Six states in layers, two actions of two marginals each, goal and trap at the end."""
    rng = np.random.default_rng(seed)
    sets = [Singleton(rng.dirichlet(np.ones(d))) for d in (2, 3, 2, 3)]
    states = []
    for s in range(4):
        later = [t for t in range(s + 1, 6)] if s < 3 else [4, 5]
        rows = []
        for name, pair in (("a", (0, 1)), ("b", (2, 3)), ("c", (0, 3))):
            rows.append((list(pair), rng.choice(later, 6), name))
        states.append(rows)
    states += [[([], [4], "stay")], [([], [5], "stay")]]
    return FactoredMDP.from_rows(
        states, sets, labels={"goal": [s == 4 for s in range(6)]},
        rewards={"cost": Rewards(np.ones(6), np.zeros(14))},
    )  # fmt: skip


def distinct_factored(seed: int) -> FactoredMDP:
    """Two factors whose outcomes can always be told: (x, y) on a small grid, reset at the end."""
    rng = np.random.default_rng(seed)
    sets = [Singleton(rng.dirichlet(np.full(3, 2.0))) for _ in range(4)]
    cells = [(x, y) for x in range(3) for y in range(3)]
    goal, trap = 9, 10
    states = []
    for cell, _ in enumerate(cells):
        rows = []
        for name, (j, k) in (("a", (0, 1)), ("b", (2, 3))):
            if cell == 0:
                rows.append(([j, k], list(range(9)), name))
            else:
                targets = [goal if (cell + o + (name == "b")) % 3 else trap for o in range(3)]
                rows.append(([j], targets, name))
        states.append(rows)
    states += [[([], [goal], "stay")], [([], [trap], "stay")]]
    return FactoredMDP.from_rows(states, sets, labels={"goal": [s == goal for s in range(11)]})


def loop_to_goal(p: float) -> FactoredMDP:
    """Try until success; every try costs one."""
    return FactoredMDP.from_rows(
        [[([0], [1, 0], "try")], [([], [1], "stay")]],
        [Singleton([p, 1 - p])],
        labels={"goal": [False, True]},
        rewards={"cost": Rewards(np.array([1.0, 0.0]), np.zeros(2))},
    )
