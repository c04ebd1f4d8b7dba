"""The guarantee is that of the returned policy, and a helping nature keeps away from infinity."""

from dataclasses import dataclass

import numpy as np
import pytest

from rfmdp.inner.protocol import PreparedInner, Side
from rfmdp.inner.solvers import Exact
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import MAX, MIN, Reach, ReachReward, Spec
from rfmdp.outer.task import Limits
from rfmdp.sets.families import Interval, Singleton
from rfmdp.solving import evaluate, solve
from set_twins import packed_vertices as vertices


@dataclass(frozen=True)
class Loose:
    """Exact bounds, made wider by numbers per row: still bounds, but of different quality."""

    wider: tuple[tuple[float, float], ...]  # (R, 2) below and above
    name: str = "loose"

    def prepare(self, model, nature):
        """Bind the exact solver."""
        rows = Exact().prepare(model, nature)
        off = np.array(self.wider)

        def backup(value, which, below, above):
            rows.backup(value, which, below, above)
            below[which] -= off[which, 0]
            above[which] += off[which, 1]

        return PreparedInner(Side.BOTH, backup, rows.respond)


@pytest.mark.parametrize("agent", [MAX, MIN])
def test_acyclic_bounds_belong_to_the_policy(agent):
    """In a state that is hardly ever met, each side of the bounds has another best row.

    Once per side is enough then: the rare state's error no longer counts in the initial one. The
    policy has to be that of the guarantee's side, in all states.
    """
    good, bad = Interval([0.5, 0.2], [0.8, 0.5]), Interval([0.4, 0.3], [0.7, 0.6])
    if agent is MIN:
        good, bad = bad, good
    rare = Interval([1.0 - 2e-5, 1e-5], [1.0 - 1e-5, 2e-5])
    rows = [
        [([2, 2], [3, 3, 3, 1])],
        [([0, 0], [3, 2, 2, 2]), ([1, 1], [3, 2, 2, 2])],
        [([], [2])],
        [([], [3])],
    ]
    goal = [False, False, False, True]
    model = FactoredMDP.from_rows(rows, [good, bad, rare], labels={"goal": goal})
    spec = Spec(Reach("goal"), agent, agent.opposite)
    sides = ((0.0, 0.0), (0.01, 0.01), (0.4, 0.4), (0.0, 0.0), (0.0, 0.0))
    result = solve(model, spec, inner=Loose(sides)).require_certified()
    everywhere = np.ones(model.states, dtype=bool)
    attained = evaluate(model, result.policy, spec, states=everywhere).require_certified()
    if agent is MAX:
        assert np.all(result.lower <= attained.upper)
    else:
        assert np.all(result.upper >= attained.lower)


def pitted_grid(size: int, radius: float) -> tuple[FactoredMDP, np.ndarray]:
    """Return a grid with pits, and the pits; a helping nature can always slip past them."""
    sets = [Singleton([0.8, 0.2]), Singleton([0.8, 0.1, 0.1])]
    pits = [(2, 2), (1, size - 2), (size - 3, 1)]
    goal = (size - 1, size - 1)
    rows = []
    for x in range(size):
        for y in range(size):
            if (x, y) == goal or (x, y) in pits:
                rows.append([([], [x * size + y])])
                continue
            line = []
            for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                ends = []
                for goes in (1, 0):
                    for slip in (0, 1, -1):
                        a = min(max(x + goes * dx + slip * (dx == 0), 0), size - 1)
                        b = min(max(y + goes * dy + slip * (dx != 0), 0), size - 1)
                        ends.append(a * size + b)
                line.append(([0, 1], ends))
            rows.append(line)
    at_goal = np.arange(size * size) == goal[0] * size + goal[1]
    in_pit = np.isin(np.arange(size * size), [x * size + y for x, y in pits])
    count = sum(map(len, rows))
    model = FactoredMDP.from_rows(
        rows, sets, labels={"goal": at_goal},
        rewards={"time": Rewards(np.where(at_goal, 0.0, 1.0), np.zeros(count))},
    )  # fmt: skip
    return model.with_radius(radius), in_pit


def times_by_vertices(model: FactoredMDP, pits: np.ndarray) -> np.ndarray:
    """Return the least expected times (S,): plain value iteration from 0, all products of vertices.

    From below, with every step paid, it converges to the least solution, which is the value.
    """
    corners = [vertices(model.marginals[j]) for j in range(2)]
    choices = [(a, b) for a in corners[0] for b in corners[1]]
    products = np.array([np.outer(a, b).ravel() for a, b in choices])
    moving = np.flatnonzero(np.diff(model.marginal_ptr) == 2)
    successor = np.array([model.successors[slice(*model.successor_ptr[r : r + 2])] for r in moving])
    owner = model.row_states[moving]
    value = np.where(pits, np.inf, 0.0)
    for _ in range(2000):
        there = value[successor]
        means = np.where(products[:, None] > 0.0, products[:, None] * there, 0.0).sum(axis=2)
        after = np.where(pits | model.labels["goal"], value, np.inf)
        np.minimum.at(after, owner, 1.0 + means.min(axis=0))
        value = after
    return value


@pytest.mark.filterwarnings("ignore:invalid value encountered in multiply")
@pytest.mark.parametrize("radius", [0.1, 0.15])
def test_a_helping_nature_avoids_infinite_states(radius):
    """Values begin below, so that no number is ever as large as one that stands for infinity.

    From the nominal nature, which falls into pits, the same took twenty times as many sweeps, and
    after a limit the value was 1e29.
    """
    model, pits = pitted_grid(7, radius)
    spec = Spec(ReachReward("goal", "time"), MIN, MIN)
    truth = times_by_vertices(model, pits)[0]
    result = solve(model, spec).require_certified()
    assert result.at_initial().lower <= truth * (1.0 + 1e-9)  # the twin rounds, and ends somewhere
    assert result.at_initial().upper >= truth * (1.0 - 1e-9)
    assert result.stats.robust_sweeps <= 100
    early = solve(model, spec, limits=Limits(sweeps=5))
    assert early.at_initial().upper < 2.0 * truth
    assert early.value[0] < 2.0 * truth
