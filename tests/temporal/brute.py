"""Small parity games by all pairs of memoryless strategies, each an explicit chain.

The sets are polytopes, so both players have optimal memoryless strategies, nature one of vertices.
Vertices are fractions, so what is possible is exact, and so is where a chain wins or loses almost
surely. Values are computed in floats first; where these do not decide, in fractions.
"""

import itertools
from fractions import Fraction

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, MIN
from rfmdp.sets.families import Interval, L1Ball, Polytope, Singleton
from rfmdp.sets.rational import vertices

PAIRS = 4_000  # of strategies, at most
ERROR = 1e-9  # of values in floats; `Pairs` asserts that systems are as tame as that needs


def moves_of(model):
    """Return per state its rows, per row nature's choices, each a tuple (S,) of fractions."""
    moves = []
    for first, last in itertools.pairwise(model.row_ptr):
        moves.append([])
        for r in range(first, last):
            after = model.successors[model.successor_ptr[r] : model.successor_ptr[r + 1]].tolist()
            ids = model.row_marginals[model.marginal_ptr[r] : model.marginal_ptr[r + 1]]
            lines = set()
            for corners in itertools.product(*(vertices(model.marginals[int(j)]) for j in ids)):
                line = [Fraction(0)] * model.states
                chances = itertools.product(*corners)
                for s, chance in zip(after, chances, strict=True):
                    line[s] += np.prod([Fraction(1), *chance])
                lines.add(tuple(line))
            moves[-1].append(sorted(lines))
    return moves


def pairs_of(model, priority, agent, nature):
    """Return all pairs of a game; None if they are too many."""
    moves = moves_of(model)
    most = np.prod([sum(map(len, rows)) for rows in moves], dtype=float)
    return Pairs(moves, np.asarray(priority), agent, nature) if most <= PAIRS else None


class Pairs:
    """The chains (N, S, S) of all pairs, those of a policy one after the other."""

    def __init__(self, moves, priority, agent, nature):
        self.priority, self.agent, self.nature = priority, agent, nature
        self.chains, policies = [], []
        for rule in itertools.product(*moves):
            answers = list(itertools.product(*rule))
            policies += [len(self.chains)] * len(answers)
            self.chains += answers
        self.first, self.policy = np.unique(policies, return_inverse=True)
        chains = np.array(self.chains, dtype=float)
        size = len(priority)
        # an entry that is positive, however small, is one
        possible = np.array([[[x > 0 for x in line] for line in c] for c in self.chains])
        reach = possible | np.eye(size, dtype=bool)
        for _ in range(size):
            reach = reach @ reach
        mutual = reach & reach.transpose(0, 2, 1)
        self.closed = ~(reach & ~mutual).any(axis=2)
        top = np.where(mutual, priority, -1).max(axis=2)
        self.won = self.closed & (top % 2 == 0)
        self._reach = reach
        # coming to a closed class that is won
        left = np.where(self.closed[:, :, None] | self.closed[:, None, :], 0.0, chains)
        right = np.where(self.closed, 0.0, (chains * self.won[:, None, :]).sum(axis=2))
        left = np.eye(size) - left
        assert np.linalg.cond(left).max() < 1e5  # so rounding costs less than 1e-10
        values = np.linalg.solve(left, right[:, :, None])[:, :, 0]
        self.values = np.where(self.closed, self.won, values)  # (N, S)
        self.value = self._optimum(self.values)

    def _optimum(self, outcomes):
        """Return the best of the agent's worst cases, (S,) of (N, S)."""
        reduce = {MAX: np.maximum, MIN: np.minimum}
        worst = reduce[self.nature].reduceat(outcomes, self.first)
        return reduce[self.agent].reduce(worst)

    def sure(self, side):
        """Return where (S,) it is won (MAX), or lost (MIN), almost surely; decided by supports."""
        other = self.closed & (self.won if side is MIN else ~self.won)
        surely = ~(self._reach & other[:, None, :]).any(axis=2)
        return self._optimum(surely if side is MAX else ~surely) == (side is MAX)

    def within(self, lower, upper):
        """Return whether bounds (S,) enclose the value; where floats do not tell, by fractions."""
        if not np.all((lower - ERROR <= self.value) & (self.value <= upper + ERROR)):
            return False
        close = (self.value < lower + ERROR) | (self.value > upper - ERROR)
        return all(lower[s] <= self.exactly(s) <= upper[s] for s in np.flatnonzero(close))

    def exactly(self, state):
        """Return the value of a state as a fraction, from the pairs that may have it."""
        best = {MAX: max, MIN: min}
        column = self.values[:, state]
        reduce = {MAX: np.maximum, MIN: np.minimum}
        worst = reduce[self.nature].reduceat(column, self.first)
        near = np.abs(worst - self.value[state]) <= 2 * ERROR
        answers = []
        for policy in np.flatnonzero(near):
            pairs = np.flatnonzero(self.policy == policy)
            pairs = pairs[np.abs(column[pairs] - worst[policy]) <= 2 * ERROR]
            seen = {self._key(n, state): n for n in pairs}
            answers.append(best[self.nature](self._outcome(n, state) for n in seen.values()))
        return best[self.agent](answers)

    def _key(self, n, state):
        """Return what counts of a chain that starts in a state."""
        return tuple(self.chains[n][s] for s in np.flatnonzero(self._reach[n, state]))

    def _outcome(self, n, state):
        """Return the probability that a chain wins, as a fraction."""
        if self.closed[n, state]:
            return Fraction(int(self.won[n, state]))
        chain, closed, won = self.chains[n], self.closed[n], self.won[n]
        states = [int(s) for s in np.flatnonzero(self._reach[n, state] & ~closed)]
        table = [
            [Fraction(int(s == t)) - chain[s][t] for t in states]
            + [sum((chain[s][t] for t in np.flatnonzero(won)), Fraction(0))]
            for s in states
        ]
        return eliminated(table)[states.index(state)]


def eliminated(table):
    """Return the solution of linear equations (n, n + 1) in fractions."""
    size = len(table)
    for k in range(size):
        pivot = next(i for i in range(k, size) if table[i][k])
        table[k], table[pivot] = table[pivot], table[k]
        table[k] = [x / table[k][k] for x in table[k]]
        for i in range(size):
            if i != k and table[i][k]:
                factor = table[i][k]
                table[i] = [x - factor * y for x, y in zip(table[i], table[k], strict=True)]
    return [line[-1] for line in table]


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
