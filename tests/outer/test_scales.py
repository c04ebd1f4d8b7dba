"""Many tiny problems at all scales, solved together: bounds against exact values, and verified.

A problem is one state whose rows lead to itself, the goal or the sink. With a row and a product
of vertices fixed, its value is a quotient of integers; optima over rows and vertices are the
optima over all policies and natures. Problems share nothing, so that thousands of them are one
model: solving and verifying cost less a problem the more there are together.
"""

import itertools
import math
import os
from fractions import Fraction

import numpy as np
import pytest

import rfmdp
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.objective import MAX, MIN, Discounted, Instantaneous, Reach, ReachReward, Spec
from rfmdp.sets.families import Interval, Singleton
from rfmdp.solving import solve
from scales import corners, random_set

TOGETHER = 2500
EXPERIMENT = int(os.environ.get("RFMDP_PROBLEMS", "1000000"))
OBJECTIVES = ("reach", "steps", "discounted", "next")


class Problems:
    """Random problems for one objective, as a model and as integers.

    Plain ones have one marginal per row, a point or a box: all of them are swept by `kernels.walk`
    and stepped back by `kernels.packed`, which one row of another kind would prevent for horizons.
    """

    def __init__(self, seed, count, objective, plain):
        self.rng, self.count, self.objective = np.random.default_rng(seed), count, objective
        self.plain = plain
        self.sets, self.cost, states = [], [], []
        # where a row can lead to: itself, goal, sink; a value of their own for "next"
        self.worth = self._numbers((count, 3))
        self.rows = []  # per problem: [(cost, [integers of every marginal], moves)]
        for number in range(count):
            lines = [self._row(number) for _ in range(self.rng.integers(1, 3))]
            self.rows.append(lines)
            states.append([(ids, self._states(number, moves)) for _, ids, moves in lines])
        ends = [self._states(n, [k]) for n in range(count) for k in (1, 2)]
        states += [[([], end)] for end in ends]
        cost = [c for lines in self.rows for c, _, _ in lines] + [0.0] * 2 * count
        worth = np.concatenate([self.worth[:, 0], self.worth[:, 1:].ravel()])
        goal = np.arange(3 * count) >= count
        goal[count + 1 :: 2] = False
        self.model = FactoredMDP.from_rows(
            states,
            self.sets,
            labels={"goal": goal},
            rewards={
                "cost": Rewards(np.zeros(3 * count), np.array(cost)),
                "worth": Rewards(worth, np.zeros(len(cost))),
            },
        )
        self.corners = [corners(uset) for uset in self.sets]

    def _states(self, number, moves):
        """Return the states for itself, goal and sink of a problem."""
        own = [number, self.count + 2 * number, self.count + 2 * number + 1]
        return [own[k] for k in moves]

    def _row(self, number):
        sizes = self.rng.integers(1, 4, 1 if self.plain else self.rng.integers(1, 3))
        ids = []
        for size in sizes:
            ids.append(len(self.sets))
            self.sets.append(self._set(int(size)))
        moves = self.rng.integers(0, 3, int(np.prod(sizes)))
        return float(abs(self._numbers(()))), ids, moves.tolist()

    def _set(self, size):
        while True:
            found = random_set(self.rng, size)
            if not self.plain or isinstance(found, Singleton | Interval):
                return found

    def _numbers(self, shape):
        """Return rewards at all scales whose sums and products with probabilities are finite."""
        scale = 10.0 ** self.rng.choice([-300.0, -20.0, 0.0, 0.0, 20.0, 99.0], shape)
        return scale * self.rng.choice([0.0, 0.5, 1.0, 1.0 + 2.0**-52, 0.1], shape)

    def spec(self, agent, nature):
        """Return the question."""
        return Spec(
            {
                "reach": Reach("goal"),
                "steps": ReachReward("goal", "cost"),
                "discounted": Discounted(0.75, "cost"),
                "next": Instantaneous(1, "worth"),
            }[self.objective],
            agent,
            nature,
        )

    def value(self, number, agent, nature):
        """Return the exact value of a problem, a fraction or infinity."""
        best = {MAX: max, MIN: min}
        answers = []
        for cost, ids, moves in self.rows[number]:
            products = itertools.product(*(self.corners[j] for j in ids))
            answers.append(best[nature](self._play(number, cost, p, moves) for p in products))
        return best[agent](answers)

    def _play(self, number, cost, points, moves):
        """Return the value of a row with a product of distributions, for ever."""
        share = [0, 0, 0]
        for outcome, entry in enumerate(itertools.product(*points)):
            share[moves[outcome]] += math.prod(entry)
        total = sum(share)
        stay, goal, sink = share
        if self.objective == "reach":
            return Fraction(goal, total - stay) if goal else Fraction(0)
        if self.objective == "steps":
            if sink or stay == total:
                return float("inf")
            return Fraction(cost) * Fraction(total, total - stay)
        if self.objective == "discounted":
            return Fraction(cost) / (1 - Fraction(3 * stay, 4 * total))
        worth = [Fraction(float(x)) for x in self.worth[number]]
        return sum(Fraction(k, total) * w for k, w in zip(share, worth, strict=True))


def examine(seed, count, objective, plain):
    """Solve problems in all four directions; no bound may be false, and `verify` accepts all."""
    problems = Problems(seed, count, objective, plain)
    for agent, nature in itertools.product((MAX, MIN), repeat=2):
        solution = solve(problems.model, problems.spec(agent, nature))
        for number in range(count):
            exact = problems.value(number, agent, nature)
            where = (seed, objective, agent.name, nature.name, number)
            for side, bound in ((-1, solution.lower), (1, solution.upper)):
                if bound is not None and np.isfinite(bound[number]):
                    assert side * (Fraction(float(bound[number])) - exact) >= 0, where
                elif bound is not None:
                    assert bound[number] == side * np.inf or bound[number] == exact, where
        verdict = rfmdp.verify(solution)
        assert verdict.valid, (seed, objective, agent.name, nature.name, str(verdict))


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_no_bound_is_false(objective, plain):
    """Bounds hold the exact value of each of many random problems."""
    examine([0, 1], 25, objective, plain)


@pytest.mark.slow
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_no_bound_is_false_at_length(objective):
    """The same for RFMDP_PROBLEMS (10^6) problems in all; a failure names its seed."""
    together = min(TOGETHER, EXPERIMENT // (4 * len(OBJECTIVES)))  # four directions each
    rounds = EXPERIMENT // (4 * len(OBJECTIVES) * together)
    for seed in range(rounds):
        print(f"{objective}: seed {seed} of {rounds}, {4 * together} problems", flush=True)
        examine([seed, 2], together, objective, plain=seed % 2 == 1)
