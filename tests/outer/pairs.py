"""Small games by all pairs of memoryless strategies, each an explicit chain.

Vertices are fractions, so what is possible is exact, and so are the closed classes of a chain.
Values are computed in floats first; where these do not decide, in fractions.
"""

import itertools
from fractions import Fraction

import numpy as np

from rfmdp.objective import MAX, MIN
from set_twins import vertices

MOST = 4_000  # pairs of strategies of a game
TAME = 1e5  # a condition of equations that costs less than 1e-10 by rounding; others are exact
ERROR = 1e-9  # of values in floats


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


def pairs_of(kind, model, numbers, agent, nature):
    """Return all pairs of a game with some numbers per state or row; None if they are too many."""
    moves = moves_of(model)
    count = np.prod([sum(map(len, rows)) for rows in moves], dtype=float)
    return kind(moves, np.asarray(numbers), agent, nature) if count <= MOST else None


class Pairs:
    """The chains (N, S, S) of all pairs, those of a policy one after the other.

    What a play is worth in the end depends on the closed class that it comes to. A subclass says
    what classes are worth, in floats (N, S) and in fractions.
    """

    def __init__(self, moves, numbers, agent, nature):
        self.numbers, self.agent, self.nature = numbers, agent, nature
        self.chains, self.rules, first = [], [], []
        row_ptr = np.cumsum([0, *map(len, moves)])
        for rule in itertools.product(*(range(len(rows)) for rows in moves)):
            answers = itertools.product(*(rows[k] for rows, k in zip(moves, rule, strict=True)))
            first.append(len(self.chains))
            self.chains += answers
            self.rules += [row_ptr[:-1] + rule] * (len(self.chains) - first[-1])
        self.first = np.array(first)
        floats = np.array(self.chains, dtype=float)
        size = floats.shape[1]
        # an entry that is positive, however small, is one
        possible = np.array([[[x > 0 for x in line] for line in c] for c in self.chains])
        self.reach = possible | np.eye(size, dtype=bool)
        for _ in range(size):
            self.reach = self.reach @ self.reach
        self.mutual = self.reach & self.reach.transpose(0, 2, 1)
        self.closed = ~(self.reach & ~self.mutual).any(axis=2)
        ends = np.where(self.closed, self.ends(floats), 0.0)
        left = np.where(self.closed[:, :, None] | self.closed[:, None, :], 0.0, floats)
        left = np.eye(size) - left
        right = np.where(self.closed, ends, (floats * ends[:, None, :]).sum(axis=2))
        self.values = np.linalg.solve(left, right[:, :, None])[:, :, 0]
        for n in np.flatnonzero(np.linalg.cond(left) > TAME):
            self.values[n] = [float(self._outcome(n, s)) for s in range(size)]
        self.value = self._optimum(self.values)

    def _optimum(self, outcomes):
        """Return the best of the agent's worst cases, (S,) of (N, S)."""
        return REDUCE[self.agent].reduce(REDUCE[self.nature].reduceat(outcomes, self.first))

    def within(self, lower, upper):
        """Return whether bounds (S,) enclose the value; where floats do not tell, by fractions."""
        if not np.all((lower - ERROR <= self.value) & (self.value <= upper + ERROR)):
            return False
        close = (self.value < lower + ERROR) | (self.value > upper - ERROR)
        return all(lower[s] <= self.exactly(s) <= upper[s] for s in np.flatnonzero(close))

    def exactly(self, state):
        """Return the value of a state as a fraction, from the pairs that may have it."""
        column = self.values[:, state]
        worst = REDUCE[self.nature].reduceat(column, self.first)
        ends = np.append(self.first, len(column))
        answers = []
        for policy in np.flatnonzero(np.abs(worst - self.value[state]) <= 2 * ERROR):
            pairs = np.arange(*ends[policy : policy + 2])
            pairs = pairs[np.abs(column[pairs] - worst[policy]) <= 2 * ERROR]
            different = {self._play(n, state): n for n in pairs}
            answers.append(BEST[self.nature](self._outcome(n, state) for n in different.values()))
        return BEST[self.agent](answers)

    def _play(self, n, state):
        """Return what counts of a chain that starts in a state."""
        return tuple(self.chains[n][s] for s in np.flatnonzero(self.reach[n, state]))

    def _outcome(self, n, state):
        """Return what a chain is worth, as a fraction."""
        if self.closed[n, state]:
            return self.end(n, state)
        chain = self.chains[n]
        inside = self.reach[n, state]
        states = np.flatnonzero(inside & ~self.closed[n]).tolist()
        ends = {int(t): self.end(n, t) for t in np.flatnonzero(inside & self.closed[n])}
        table = [
            [Fraction(int(s == t)) - chain[s][t] for t in states]
            + [sum((chain[s][t] * end for t, end in ends.items()), Fraction(0))]
            for s in states
        ]
        return eliminated(table)[states.index(state)]


REDUCE = {MAX: np.maximum, MIN: np.minimum}
BEST = {MAX: max, MIN: min}


class ParityPairs(Pairs):
    """A class is worth 1 if its largest priority, of those (S,) of its states, is even."""

    def ends(self, floats):
        """Return which states are in classes that are won."""
        del floats
        self.won = self.closed & (np.where(self.mutual, self.numbers, -1).max(axis=2) % 2 == 0)
        return self.won

    def end(self, n, state):
        """Return whether a class is won."""
        return Fraction(int(self.won[n, state]))

    def sure(self, side):
        """Return where (S,) it is won (MAX), or lost (MIN), almost surely; decided by supports."""
        other = self.closed & (self.won if side is MIN else ~self.won)
        surely = ~(self.reach & other[:, None, :]).any(axis=2)
        return self._optimum(surely if side is MAX else ~surely) == (side is MAX)


class MeanPairs(Pairs):
    """A class is worth the mean of the rewards (R,) of its rows."""

    def ends(self, floats):
        """Return the mean rewards of the classes of states."""
        means = np.zeros(self.closed.shape)
        for n, chain in enumerate(floats):
            classes = {tuple(np.flatnonzero(line)) for line in self.mutual[n][self.closed[n]]}
            for at in map(list, classes):
                block = chain[np.ix_(at, at)].T - np.eye(len(at))
                block[0] = 1.0
                share = np.linalg.solve(block, np.eye(len(at))[0])
                means[n, at] = share @ self.numbers[self.rules[n][at]]
        return means

    def end(self, n, state):
        """Return the mean reward of a class."""
        states = np.flatnonzero(self.mutual[n, state]).tolist()
        chain = self.chains[n]
        table = [
            [chain[t][s] - Fraction(int(s == t)) for t in states] + [Fraction(0)] for s in states
        ]
        table[0] = [Fraction(1)] * (len(states) + 1)
        share = eliminated(table)
        paid = [Fraction(float(self.numbers[self.rules[n][s]])) for s in states]
        return sum((x * y for x, y in zip(share, paid, strict=True)), Fraction(0))


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
