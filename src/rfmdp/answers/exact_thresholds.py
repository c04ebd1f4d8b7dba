"""Thresholds that bounds do not decide, decided in fractions where the model is small.

Bounds carry a rounding error, so they never show that a value *is* the threshold. A finite number
of steps is simply done again in fractions. For the other forms a candidate v is computed and then
proven to be the value V:

1. The agent's policy and nature's answers make a chain. Its values v are the solution of linear
   equations, found exactly.
2. If a row or a distribution does better against v, it is taken, and 1 is done again. If none
   does, v is a fixed point: T(v) = v, where T is the Bellman operator.
3. Discounted rewards have one fixed point only, so V = v. The others need one more argument:

   - Probabilities and total rewards are least fixed points, so V <= v. Suppose V < v somewhere, and
     look at the states where v - V is largest: optimal play never leaves them. But there is no such
     set if a settled state is reached with positive probability from everywhere, while all who
     maximise play as chosen and all who minimise play anything. Then V = v.
   - Rewards to a target are infinite for who never arrives, so T(v) >= v is enough for V >= v. For
     V <= v all who maximise must arrive whatever they play, while all who minimise play as chosen.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rfmdp.answers.rational import FractionModel, TooHardError, chain_values, reachable, read
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, MIN, Direction
from rfmdp.outer.problem import Form, Problem, pose
from rfmdp.outer.solution import Solution
from rfmdp.sets.rational import Vector
from rfmdp.types import BoolArray

COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
ROUNDS = 20  # of exact policy iteration from a policy that is nearly always the right one

Values = dict[int, Fraction]


@dataclass(frozen=True, slots=True)
class ExactValues:
    """Exact numbers in some states, and which sides of the true values they are proven to bound."""

    value: Values
    below: bool  # no true value is smaller
    above: bool  # no true value is larger

    def one_minus(self) -> ExactValues:
        """Return 1 - x, which turns the sides."""
        return ExactValues({s: 1 - x for s, x in self.value.items()}, self.above, self.below)

    def decide(self, sign: str, threshold: Fraction, state: int) -> bool | None:
        """Return whether the true value meets a bound, None if that is not known."""
        met = COMPARISONS[sign](self.value[state], threshold)
        # x >= c holds for all larger values too, and fails for all smaller ones
        proven = self.below if met is sign.startswith(">") else self.above
        return met if proven else None


def exact_values(solution: Solution, where: BoolArray) -> ExactValues | None:
    """Return exact values in some states, None if fractions do not lead there."""
    objective = solution.spec.objective
    proven = solution.lower is not None and solution.upper is not None
    if not proven or not objective.plain or objective.endless:
        return None
    if not isinstance(solution.model, FactoredMDP):
        return None
    problem = pose(solution.model, solution.spec)
    if problem.form is Form.MIXED:
        return None
    try:
        values = _steps(problem, where) if problem.form is Form.STEPS else None
        if values is None:
            values = _fixed_point(problem, solution, where)
    except TooHardError:
        return None
    return values.one_minus() if problem.flipped else values


def _steps(problem: Problem, where: BoolArray) -> ExactValues:
    """Step back exactly."""
    none = np.zeros(problem.model.states, dtype=np.bool_)
    part = FractionModel(problem.model, reachable(problem.model, where, none), problem.nature)
    value = {s: read(problem.start[s]) for s in part.states}
    for step in problem.steps:
        value = {
            s: read(step.given[s]) if step.fixed[s] else _best(problem, part, s, value)
            for s in part.states
        }
    return ExactValues(value, below=True, above=True)


def _best(problem: Problem, part: FractionModel, state: int, value: Values) -> Fraction:
    pick = max if problem.agent is MAX else min
    return part.limit.spend(pick(_row(problem, part, r, value)[0] for r in part.rows[state]))


def _row(problem: Problem, part: FractionModel, row: int, value: Values) -> tuple[Fraction, Vector]:
    """Return what a row is worth against nature's best answer, and the answer."""
    expected, point = part.respond(row, value)
    return _paid(problem, row) + read(problem.discount) * expected, point


def _paid(problem: Problem, row: int) -> Fraction:
    """Return exactly what a row and its state pay."""
    paid = read(problem.reward[row])
    return paid if problem.lost is None else paid + read(problem.lost[row])


def _fixed_point(problem: Problem, solution: Solution, where: BoolArray) -> ExactValues:
    lower, upper = solution.lower, solution.upper
    assert lower is not None  # `exact_values` asked
    assert upper is not None
    if problem.flipped:
        lower, upper = 1.0 - upper, 1.0 - lower
    if problem.steps:  # the bounds are those before the steps; only the witness knows the others
        raise TooHardError
    most = 1.0 if problem.probability else np.inf
    settled = ((lower == upper) & ((lower == 0.0) | (lower == most))) | problem.terminal
    part = FractionModel(problem.model, reachable(problem.model, where, settled), problem.nature)
    known = {
        int(t): read(lower[t])
        for t in {t for targets in part.targets.values() for t in targets}
        if settled[t] and np.isfinite(lower[t])
    }
    rows = {s: [r for r in part.rows[s] if _finite(part, r, known)] for s in part.states}
    if any(not chosen for chosen in rows.values()):
        raise TooHardError
    if problem.agent is MAX and any(len(rows[s]) < len(part.rows[s]) for s in part.states):
        raise TooHardError
    play = _Play(problem, part, rows, known, solution)
    play.improve()
    value = {s: play.value[s] for s in part.states}
    both = problem.form is Form.DISCOUNTED
    to_target = problem.form is Form.TO_TARGET
    below = both or to_target or play.arrives(MIN)
    above = both or not to_target or play.arrives(MAX)
    return ExactValues(value, below, above)


def _finite(part: FractionModel, row: int, known: Values) -> bool:
    """Return whether all successors of a row have a finite value.

    Raises
    ------
    TooHardError
        If nature may avoid those that have none.
    """
    infinite = {t for t in part.targets[row] if t not in known and t not in part.rows}
    if infinite and not infinite & set(part.certain(row)):
        raise TooHardError
    return not infinite


class _Play:
    """A policy of the agent with nature's answers, improved until nobody can do better."""

    def __init__(
        self,
        problem: Problem,
        part: FractionModel,
        rows: dict[int, list[int]],
        known: Values,
        solution: Solution,
    ) -> None:
        self.problem, self.part, self.rows, self.known = problem, part, rows, known
        near = 1.0 - solution.value if problem.flipped else solution.value
        self.value: Values = {**known, **{s: Fraction(near[s]) for s in part.states}}
        self.choice = {s: int(solution.policy.rows[-1, s]) for s in part.states}
        if any(self.choice[s] not in rows[s] for s in part.states):
            raise TooHardError
        self.point = {s: part.respond(r, self.value)[1] for s, r in self.choice.items()}

    def improve(self) -> None:
        """Run exact policy iteration; afterwards `value` is a fixed point."""
        for _ in range(ROUNDS):
            self._evaluate()
            if not [s for s in self.part.states if self._improved(s)]:
                return
        raise TooHardError

    def arrives(self, ranging: Direction) -> bool:
        """Return whether a settled state is reached with positive probability from everywhere.

        Whoever has the direction `ranging` plays anything, the other plays as chosen.
        """
        least = self.problem.form is not Form.TO_TARGET  # a least fixed point is 0 where v is
        arrived = {s for s, x in self.value.items() if s in self.known or (least and x == 0)}
        rows = {s: self._moves(s, ranging) for s in self.part.states if s not in arrived}
        before: dict[int, list[tuple[int, int]]] = {}
        for s, moves in rows.items():
            for k, after in enumerate(moves):
                for t in after:
                    before.setdefault(t, []).append((s, k))
        missing = {s: set(range(len(moves))) for s, moves in rows.items()}
        queue = list(arrived)
        while queue:
            for s, k in before.get(queue.pop(), ()):
                if k in missing[s]:
                    missing[s].remove(k)
                    queue += [] if missing[s] else [s]
        return not any(missing.values())

    def _moves(self, state: int, ranging: Direction) -> list[list[int]]:
        """Return the successors that cannot be avoided, per row that may be played."""
        row = self.choice[state]
        played = self.rows[state] if self.problem.agent is ranging else [row]
        moves = {r: self.part.certain(r) for r in played}
        if self.problem.nature is not ranging and row in moves:
            pairs = zip(self.part.targets[row], self.point[state], strict=True)
            moves[row] = [t for t, p in pairs if p > 0]
        return list(moves.values())

    def _evaluate(self) -> None:
        """Solve the chain of the choices."""
        discount = read(self.problem.discount)
        moves: dict[int, dict[int, Fraction]] = {s: {} for s in self.part.states}
        paid: Values = {}
        for s, row in self.choice.items():
            paid[s] = _paid(self.problem, row)
            for t, p in zip(self.part.targets[row], self.point[s], strict=True):
                if p and t in moves:
                    moves[s][t] = moves[s].get(t, 0) + discount * p
                elif p:
                    paid[s] += discount * p * self.known[t]
        self.value = {**self.known, **chain_values(moves, paid, self.part.limit)}

    def _improved(self, state: int) -> bool:
        """Let agent and nature do better in a state if they can."""
        sign = 1 if self.problem.agent is MAX else -1
        worth = {r: _row(self.problem, self.part, r, self.value) for r in self.rows[state]}
        best = max(worth, key=lambda r: sign * worth[r][0])
        if worth[best][0] == worth[self.choice[state]][0]:
            best = self.choice[state]
        if worth[best][0] == self.value[state]:
            return False
        self.choice[state], self.point[state] = best, worth[best][1]
        return True
