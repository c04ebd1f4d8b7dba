"""Thresholds that bounds do not decide, decided in fractions where the model is small.

Bounds carry a rounding error, so they never show that a value *is* the threshold. A finite number
of steps is simply done again in fractions. For the other forms a candidate v is computed and then
proven to be the value V:

1. The agent's policy and nature's answers make a chain. Its values v are the solution of linear
   equations, found exactly.
2. If a row or an answer does better against v, it is taken, and 1 is done again. If none does, v is
   a fixed point: T(v) = v, where T is the Bellman operator.
3. Discounted rewards have one fixed point only, so V = v. The others need one more argument:

   - Probabilities and total rewards are least fixed points, so V <= v. Suppose V < v somewhere, and
     look at the states where v - V is largest: optimal play never leaves them. But there is no such
     set if a settled state is reached with positive probability from everywhere, while all who
     maximise play as chosen and all who minimise play anything. Then V = v.
   - Rewards to a target are infinite for who never arrives, so T(v) >= v is enough for V >= v. For
     V <= v all who maximise must arrive whatever they play, while all who minimise play as chosen.

A float of a text stands for the number that was written: 0.1 is 1/10, and what was computed as
1/3 is 1/3. So every number is read as the short decimal or simple fraction that it is next to.
Probabilities that do not sum to one when they are read so are refused.
"""

from __future__ import annotations

import itertools
import math
import operator
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, MIN, Direction
from rfmdp.outer.problem import Form, Problem, pose
from rfmdp.outer.solution import Solution
from rfmdp.ragged import entries, segment, segment_lengths
from rfmdp.sets.marginals import Kind
from rfmdp.sets.vertices import Vector, box_vertices, product
from rfmdp.types import BoolArray, IntArray

NEAR = Fraction(1, 2**50)  # relative distance of a float from the number that it stands for
DIGITS = 12  # a decimal of at most so many digits is taken for what was written
SIMPLE = 10**6  # denominators up to this are simple
LARGEST = 1 << 13  # bits of a denominator
OUTCOMES = 8  # of a box
CORNERS = 256  # products of vertices that are tried in a row
TRANSITIONS = 20_000  # of the part that is solved in fractions
OPERATIONS = 300_000  # on fractions of a few digits; longer ones count more
ROUNDS = 20  # of exact policy iteration from a policy that is nearly always the right one
COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
TURNED = str.maketrans("<>", "><")

Values: TypeAlias = dict[int, Fraction]


class TooHardError(Exception):
    """Fractions do not lead to an answer here, or not within reason."""


class OperationLimit:
    """Counts operations on fractions, and gives up when they are too many."""

    def __init__(self) -> None:
        self._budget = float(OPERATIONS)

    def spend(self, number: Fraction) -> Fraction:
        """Return the result of an operation, after a look at its cost."""
        digits = number.denominator.bit_length()
        self._budget -= 1.0 + digits / 64
        if self._budget < 0.0 or digits > LARGEST:
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


def decided(
    solution: Solution, sign: str, threshold: Fraction, where: BoolArray
) -> dict[int, bool]:
    """Return whether the value meets a threshold, for those of some states where that is proven."""
    objective = solution.spec.objective
    proven = solution.lower is not None and solution.upper is not None
    if not proven or not objective.plain or objective.endless:
        return {}
    if not isinstance(solution.model, FactoredMDP):
        return {}
    problem = pose(solution.model, solution.spec)
    if problem.form is Form.MIXED:
        return {}
    try:
        if problem.form is Form.STEPS:
            value, below, above = _steps(problem, solution, where), True, True
        else:
            value, below, above = _fixed_point(problem, solution, where)
    except TooHardError:
        return {}
    if problem.flipped:
        threshold, sign = 1 - threshold, sign.translate(TURNED)
    met = {s: COMPARISONS[sign](value[s], threshold) for s in np.flatnonzero(where).tolist()}
    # x >= c holds for all larger values too, and fails for all smaller ones
    return {s: yes for s, yes in met.items() if (below if yes is (sign[0] == ">") else above)}


class _Move(NamedTuple):
    """What a row does together with one answer of nature."""

    paid: Fraction  # with what settled successors are worth
    weights: Values  # discounted probabilities of the other successors
    support: frozenset[int]  # all successors

    def worth(self, value: Values) -> Fraction:
        """Return what it is worth if states are worth so much."""
        return self.paid + sum((p * value[t] for t, p in self.weights.items()), Fraction(0))


Row: TypeAlias = list[_Move]  # one per vertex of nature's sets
Play: TypeAlias = dict[int, tuple[int, _Move]]  # the row of every state, and nature's answer


class _Game:
    """Some states of a problem, with all answers of nature written out in fractions.

    It is a TooHardError if they are many, or have sets that are neither known nor boxes.
    """

    def __init__(
        self, problem: Problem, states: IntArray, settled: Values, solution: Solution
    ) -> None:
        self.problem, self.model, self.settled = problem, problem.model, settled
        self._solution = solution
        self.limit = OperationLimit()
        self.states: list[int] = states.tolist()
        self._inside = frozenset(self.states)
        self._discount = read(problem.discount)
        self._sets: dict[int, list[Vector]] = {}
        ends = self.model.row_ptr.tolist()
        self.rows: dict[int, dict[int, Row]] = {
            s: {r: self._row(r, s) for r in range(ends[s], ends[s + 1])} for s in self.states
        }

    def respond(self, row: Row, value: Values) -> tuple[Fraction, _Move]:
        """Return what a row is worth against nature's best answer, and the answer."""
        pick = max if self.problem.nature is MAX else min
        worth, k = pick((move.worth(value), k) for k, move in enumerate(row))
        return self.limit.spend(worth), row[k]

    def best(self, state: int, value: Values) -> Fraction:
        """Return what a state is worth if both do their best in it."""
        pick = max if self.problem.agent is MAX else min
        return pick(self.respond(row, value)[0] for row in self.rows[state].values())

    def _row(self, row: int, state: int) -> Row:
        ids = self.model.row_marginals[segment(self.model.marginal_ptr, row)]
        sets = [self._vertices(int(j)) for j in ids]
        if math.prod(map(len, sets)) > CORNERS:
            raise TooHardError
        targets = self.model.successors[segment(self.model.successor_ptr, row)].tolist()
        paid = self._paid(row, state)
        return [self._move(paid, targets, product(point)) for point in itertools.product(*sets)]

    def _paid(self, row: int, state: int) -> Fraction:
        """Return what a row pays as it was written: a sum that was rounded is that of its terms."""
        if not self.problem.rounded:
            return read(self.problem.reward[row])
        rewards = self.model.reward(self._solution.spec.objective.reward_name)
        return read(rewards.row[row]) + read(rewards.state[state])

    def _move(self, paid: Fraction, targets: list[int], point: Vector) -> _Move:
        weights: Values = {}
        for t, p in zip(targets, point, strict=True):
            if p and t in self._inside:
                weights[t] = self.limit.spend(weights.get(t, 0) + self._discount * p)
            elif p and t in self.settled:
                paid = self.limit.spend(paid + self._discount * p * self.settled[t])
        return _Move(paid, weights, frozenset(t for t, p in zip(targets, point, strict=True) if p))

    def _vertices(self, j: int) -> list[Vector]:
        if j not in self._sets:
            marginals = self.model.marginals
            outcomes = segment(marginals.outcome_ptr, j)
            sides = marginals.lower[outcomes], marginals.upper[outcomes]
            lower, upper = (tuple(read(x) for x in side) for side in sides)
            singleton = marginals.kind[j] == Kind.SINGLETON
            small_box = marginals.kind[j] == Kind.BOX and len(lower) <= OUTCOMES
            if not (singleton or small_box) or not sum(lower) <= 1 <= sum(upper):
                raise TooHardError
            self._sets[j] = [lower] if singleton else box_vertices(lower, upper)
        return self._sets[j]


def _certain(row: Row) -> frozenset[int]:
    """Return the successors of a row that nature cannot avoid."""
    return frozenset.intersection(*(move.support for move in row))


def _reachable(model: FactoredMDP, start: BoolArray, terminal: BoolArray) -> IntArray:
    """Return the states (N,) that can follow some (S,), without passing through terminal ones (S,).

    Too many are a TooHardError.
    """
    by_state = model.successor_ptr[model.row_ptr]  # where the successors of every state begin
    states = start & ~terminal
    frontier = np.flatnonzero(states)
    while frontier.size:
        if segment_lengths(by_state)[states].sum() > TRANSITIONS:
            raise TooHardError
        after = np.zeros(model.states, dtype=np.bool_)
        after[model.successors[entries(by_state, frontier)]] = True
        after &= ~states & ~terminal
        states = states | after
        frontier = np.flatnonzero(after)
    return np.flatnonzero(states)


def _steps(problem: Problem, solution: Solution, where: BoolArray) -> Values:
    """Step back exactly."""
    none = np.zeros(problem.model.states, dtype=np.bool_)
    game = _Game(problem, _reachable(problem.model, where, none), {}, solution)
    value = {s: read(problem.start[s]) for s in game.states}
    for step in problem.steps:
        value = {
            s: read(step.given[s]) if step.fixed[s] else game.best(s, value) for s in game.states
        }
    return value


def _fixed_point(
    problem: Problem, solution: Solution, where: BoolArray
) -> tuple[Values, bool, bool]:
    """Return a fixed point, and whether no true value is smaller, and none larger."""
    lower, upper = solution.lower, solution.upper
    assert lower is not None  # `decided` asked
    assert upper is not None
    if problem.steps:  # the bounds are those before the steps; only the witness knows the others
        raise TooHardError
    near = solution.value
    if problem.flipped:
        lower, upper, near = 1.0 - upper, 1.0 - lower, 1.0 - near
    most = 1.0 if problem.probability else np.inf
    settled = ((lower == upper) & ((lower == 0.0) | (lower == most))) | problem.terminal
    states = _reachable(problem.model, where, settled)
    by_state = problem.model.successor_ptr[problem.model.row_ptr]
    after = np.unique(problem.model.successors[entries(by_state, states)])
    after = after[settled[after] & np.isfinite(lower[after])]
    settled = {t: read(lower[t]) for t in after.tolist()}
    game = _Game(problem, states, settled, solution)
    for s in game.states:
        game.rows[s] = _finite_rows(game, s)
    value: Values = {s: Fraction(near[s]) for s in game.states}
    play: Play = {}
    for s in game.states:
        row = int(solution.policy.rows[-1, s])
        if row not in game.rows[s]:
            raise TooHardError
        play[s] = row, game.respond(game.rows[s][row], value)[1]
    for _ in range(ROUNDS):
        weights = {s: move.weights for s, (_, move) in play.items()}
        value = chain_values(weights, {s: move.paid for s, (_, move) in play.items()}, game.limit)
        play = {s: _improved(game, s, play[s], value) for s in game.states}
        if all(move.worth(value) == value[s] for s, (_, move) in play.items()):
            break
    else:
        raise TooHardError
    both = problem.form is Form.DISCOUNTED
    to_target = problem.form is Form.TO_TARGET
    below = both or to_target or _arrives(game, play, value, MIN)
    above = both or not to_target or _arrives(game, play, value, MAX)
    return value, below, above


def _finite_rows(game: _Game, state: int) -> dict[int, Row]:
    """Return the rows of a state all of whose successors have a finite value.

    It is a TooHardError if there is none, nature may avoid others, or the agent looks for them.
    """
    rows = {}
    for number, row in game.rows[state].items():
        targets: set[int] = set().union(*(move.support for move in row))
        infinite = targets - game.rows.keys() - game.settled.keys()
        if not infinite:
            rows[number] = row
        elif game.problem.agent is MAX or not infinite & _certain(row):
            raise TooHardError
    if not rows:
        raise TooHardError
    return rows


def _improved(
    game: _Game, state: int, played: tuple[int, _Move], value: Values
) -> tuple[int, _Move]:
    """Return the best row of a state and nature's best answer; those played, if they are best."""
    row, move = played
    answers = {r: game.respond(moves, value) for r, moves in game.rows[state].items()}
    pick = max if game.problem.agent is MAX else min
    best = pick(worth for worth, _ in answers.values())
    if answers[row][0] == best == move.worth(value):
        return played
    if answers[row][0] != best:
        row = next(r for r, (worth, _) in answers.items() if worth == best)
    return row, answers[row][1]


def _arrives(game: _Game, play: Play, value: Values, ranging: Direction) -> bool:
    """Return whether a settled state is reached with positive probability from everywhere.

    Whoever has the direction `ranging` plays anything, the other plays as chosen.
    """
    least = game.problem.form is not Form.TO_TARGET  # a least fixed point is 0 where v is
    arrived = {s for s in game.states if least and value[s] == 0} | game.settled.keys()
    before: dict[int, list[tuple[int, int]]] = {}
    missing: dict[int, set[int]] = {}
    for s, (row, move) in play.items():
        rows = game.rows[s] if game.problem.agent is ranging else {row: game.rows[s][row]}
        after = {r: _certain(moves) for r, moves in rows.items()}
        if game.problem.nature is not ranging:
            after[row] = move.support
        missing[s] = set() if s in arrived else set(after)
        for r in missing[s]:
            for t in after[r]:
                before.setdefault(t, []).append((s, r))
    queue = list(arrived)
    while queue:
        for s, r in before.get(queue.pop(), ()):
            if r in missing[s]:
                missing[s].remove(r)
                queue += [] if missing[s] else [s]
    return not any(missing.values())


def chain_values(
    moves: dict[int, dict[int, Fraction]], paid: dict[int, Fraction], limit: OperationLimit
) -> dict[int, Fraction]:
    """Return the solution of x[s] = paid[s] + sum of moves[s][t] x[t], by elimination.

    It is a TooHardError if there is no unique solution, or if numbers grow too large.

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
    order = sorted(rows, reverse=True)  # explorers number states from the initial one on
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
