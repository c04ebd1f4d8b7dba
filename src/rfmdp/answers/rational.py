"""A small part of a model in fractions: its rows, and the values of chains.

A float of a text stands for the number that was written: 0.1 is 1/10, and what was computed as
1/3 is 1/3. So every number is read as the short decimal or simple fraction that it is next to.
Probabilities that do not sum to one when they are read so are refused.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MIN, Direction
from rfmdp.ragged import entries, segment, segment_lengths
from rfmdp.sets.marginals import Kind
from rfmdp.sets.rational import Vector, box_vertices, product, product_minimum
from rfmdp.types import BoolArray, IntArray

NEAR = Fraction(1, 2**50)  # relative distance of a float from the number that it stands for
DIGITS = 12  # a decimal of at most so many digits is taken for what was written
SIMPLE = 10**6  # denominators up to this are simple
LARGEST = 1 << 13  # bits of a denominator
OUTCOMES = 8  # of a box
CORNERS = 256  # products of vertices that are tried in a row
TRANSITIONS = 20_000  # of the part that is solved in fractions
OPERATIONS = 300_000  # on fractions of a few digits; longer ones count more


class TooHardError(Exception):
    """Fractions do not lead to an answer here, or not within reason."""


class OperationLimit:
    """Counts operations on fractions, and gives up when they are too many."""

    def __init__(self) -> None:
        self._left = float(OPERATIONS)

    def spend(self, number: Fraction) -> Fraction:
        """Return the result of an operation, after a look at its cost."""
        digits = number.denominator.bit_length()
        self._left -= 1.0 + digits / 64
        if self._left < 0.0 or digits > LARGEST:
            raise TooHardError
        return number


def read(number: float) -> Fraction:
    """Return the number that a float stands for.

    >>> str(read(0.1)), str(read(1 / 3)), str(read(1 - 0.1 - 0.2))
    ('1/10', '1/3', '7/10')
    """
    written = repr(float(number))
    if not math.isfinite(number):
        raise TooHardError
    exact = Fraction(written)
    if len(written.partition("e")[0].replace(".", "").strip("-0")) <= DIGITS:
        return exact
    simple = exact.limit_denominator(SIMPLE)
    return simple if abs(simple - exact) <= NEAR * abs(exact) else exact


class FractionModel:
    """Some states of a model, with their rows and sets in fractions.

    Raises
    ------
    TooHardError
        If the part is too large, or has sets that are neither known nor boxes.
    """

    def __init__(self, model: FactoredMDP, states: IntArray, nature: Direction) -> None:
        self.model = model
        self.states = states.tolist()
        self.limit = OperationLimit()
        self.sign = 1 if nature is MIN else -1
        ends = model.row_ptr.tolist()
        self.rows = {s: range(ends[s], ends[s + 1]) for s in self.states}
        self.targets: dict[int, list[int]] = {
            r: model.successors[segment(model.successor_ptr, r)].tolist()
            for rows in self.rows.values()
            for r in rows
        }
        self._sets: dict[int, list[Vector]] = {}

    def respond(self, row: int, value: dict[int, Fraction]) -> tuple[Fraction, Vector]:
        """Return nature's best answer to values: the expectation, and the joint distribution."""
        tensor = [self.sign * value[t] for t in self.targets[row]]
        best, points = product_minimum(self.sets(row), tensor)
        for entry in tensor:
            self.limit.spend(entry)
        return self.sign * best, product(points)

    def certain(self, row: int) -> list[int]:
        """Return the successors of a row that nature cannot avoid."""
        least = product([tuple(map(min, zip(*s, strict=True))) for s in self.sets(row)])
        return [t for t, p in zip(self.targets[row], least, strict=True) if p > 0]

    def sets(self, row: int) -> list[list[Vector]]:
        """Return the vertices of the marginals of a row."""
        ids = self.model.row_marginals[segment(self.model.marginal_ptr, row)]
        sets = [self._vertices(int(j)) for j in ids]
        if np.prod([float(len(s)) for s in sets]) > CORNERS:
            raise TooHardError
        return sets

    def _vertices(self, j: int) -> list[Vector]:
        if j not in self._sets:
            marginals = self.model.marginals
            part = segment(marginals.outcome_ptr, j)
            sides = marginals.lower[part], marginals.upper[part]
            lower, upper = (tuple(read(x) for x in side) for side in sides)
            known = marginals.kind[j] == Kind.SINGLETON
            small_box = len(lower) <= OUTCOMES
            if not (known or (marginals.kind[j] == Kind.BOX and small_box)):
                raise TooHardError
            if not sum(lower) <= 1 <= sum(upper):
                raise TooHardError
            self._sets[j] = [lower] if known else box_vertices(lower, upper)
        return self._sets[j]


def reachable(model: FactoredMDP, start: BoolArray, terminal: BoolArray) -> IntArray:
    """Return the states (N,) that can follow some (S,), without passing through terminal ones (S,).

    Raises
    ------
    TooHardError
        If these are many.
    """
    by_state = model.successor_ptr[model.row_ptr]  # where the successors of every state begin
    states = start & ~terminal
    frontier = np.flatnonzero(start & ~terminal)
    while frontier.size:
        if segment_lengths(by_state)[states].sum() > TRANSITIONS:
            raise TooHardError
        after = np.zeros(model.states, dtype=np.bool_)
        after[model.successors[entries(by_state, frontier)]] = True
        after &= ~states & ~terminal
        states = states | after
        frontier = np.flatnonzero(after)
    return np.flatnonzero(states)


def chain_values(
    moves: dict[int, dict[int, Fraction]], paid: dict[int, Fraction], limit: OperationLimit
) -> dict[int, Fraction]:
    """Return the solution of x[s] = paid[s] + sum of moves[s][t] x[t], by elimination.

    Parameters
    ----------
    moves : weights between the states; what leads elsewhere is in `paid`

    Raises
    ------
    TooHardError
        If there is no unique solution, or the numbers grow too large.

    Examples
    --------
    >>> half = Fraction(1, 2)
    >>> moves = {0: {0: half, 1: half}, 1: {0: half}}
    >>> str(chain_values(moves, {0: 0 * half, 1: half}, OperationLimit())[0])
    '1'
    """
    rows = {s: dict(row) for s, row in moves.items()}
    value = dict(paid)
    before: dict[int, set[int]] = {s: set() for s in rows}
    for s, row in rows.items():
        for t in row:
            before[t].add(s)
    order = _bottom_up(rows)
    gone = set[int]()
    for s in order:
        row = rows[s]
        loop = rows[s].pop(s, Fraction(0))
        if loop == 1:
            raise TooHardError
        scale = 1 / (1 - loop)
        value[s] *= scale
        for t in row:
            row[t] *= scale
        gone.add(s)
        for p in before[s] - gone:  # the rows of those that are gone are filled in at the end
            weight = rows[p].pop(s, None)
            if weight is None:
                continue
            value[p] = limit.spend(value[p] + weight * value[s])
            for t, q in row.items():
                rows[p][t] = limit.spend(rows[p].get(t, Fraction(0)) + weight * q)
                before[t].add(p)
    for s in reversed(order):
        value[s] += sum((q * value[t] for t, q in rows[s].items()), Fraction(0))
    return value


def _bottom_up(rows: dict[int, dict[int, Fraction]]) -> list[int]:
    """Return the states so that those of later components come first."""
    from scipy.sparse import csr_array  # seldom needed, and slow to import
    from scipy.sparse.csgraph import connected_components

    states = list(rows)
    place = {s: k for k, s in enumerate(states)}
    edges = [(place[s], place[t]) for s, row in rows.items() for t in row]
    heads, tails = zip(*edges, strict=True) if edges else ((), ())
    graph = csr_array((np.ones(len(edges)), (heads, tails)), shape=(len(states), len(states)))
    # scipy numbers strong components from the bottom up (Pearce's algorithm)
    _, component = connected_components(graph, connection="strong")
    return [states[k] for k in np.argsort(component, kind="stable")]
