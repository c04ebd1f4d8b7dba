"""Thresholds that bounds do not decide, decided in fractions where the model is small.

Bounds carry a rounding error, so they never show that a value *is* the threshold. A finite number
of steps is done again in fractions. Else the simple fractions next to the computed values are the
values if they are a fixed point and there is no other: "Thresholds" in docs/soundness.md.

A float of a text stands for the number that was written: 0.1 is 1/10, and what was computed as
1/3 is 1/3. So every number is read as the short decimal or simple fraction that it is next to.
Probabilities that do not sum to one when they are read so are refused.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import chain, compress, product as combinations
from typing import NamedTuple

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, MIN
from rfmdp.outer.problem import Form, Problem, pose
from rfmdp.outer.solution import Solution
from rfmdp.ragged import segment
from rfmdp.sets.marginals import Kind
from rfmdp.sets.vertices import Vector, box_vertices, product
from rfmdp.types import BoolArray

NEAR = Fraction(1, 2**50)  # relative distance of a float from the number that it stands for
DIGITS = 12  # a decimal of at most so many digits is taken for what was written
SIMPLE = 10**6  # denominators up to this are simple
OUTCOMES = 8  # of a box
TRANSITIONS = 20_000  # of the part that is looked at, once per vertex of their row
BITS = 1 << 23  # of all numbers
ROUNDS = 3
ZERO = Fraction(0)

Values = dict[int, Fraction]


class TooHardError(Exception):
    """Fractions do not lead to an answer here, or not within reason."""


def read(number: float) -> Fraction:
    """Return the number that a float stands for.

    >>> str(read(0.1)), str(read(1 / 3)), str(read(1 - 0.1 - 0.2))
    ('1/10', '1/3', '7/10')
    """
    written = repr(float(number))
    exact = Fraction(written)
    if len(written.partition("e")[0].replace(".", "").strip("-0")) <= DIGITS:
        return exact
    simple = exact.limit_denominator(SIMPLE)
    return simple if abs(simple - exact) <= NEAR * abs(exact) else exact


def exact_values(solution: Solution, where: BoolArray) -> Values:
    """Return the exact values of some states (S,); of none if that is too hard."""
    objective = solution.spec.objective
    if not objective.plain or objective.endless or not isinstance(solution.model, FactoredMDP):
        return {}
    problem = pose(solution.model, solution.spec)
    find = _after_steps if problem.form is Form.STEPS else _fixed_point
    try:
        value = find(problem, solution, where)
    except TooHardError:
        return {}
    return {
        s: 1 - value[s] if problem.flipped else value[s] for s in np.flatnonzero(where).tolist()
    }


class _Row(NamedTuple):
    """A row in fractions."""

    paid: Fraction
    targets: list[int]
    sets: list[list[Vector]]  # by their vertices
    certain: set[int]  # successors that nature cannot avoid


class _Game:
    """The states of a problem that can follow some (S,) without passing settled ones (S,)."""

    def __init__(
        self, problem: Problem, solution: Solution, start: BoolArray, settled: BoolArray
    ) -> None:
        self._problem, self._bits, self._transitions = problem, BITS, TRANSITIONS
        self._reward = solution.spec.objective.reward_name
        self._vertices: dict[int, list[Vector]] = {}
        self.rows: dict[int, list[_Row]] = {}  # of every state
        states: list[int] = np.flatnonzero(start & ~settled).tolist()
        for s in states:  # which grow
            if s in self.rows:
                continue
            numbers = range(*problem.model.row_ptr[s : s + 2])
            self.rows[s] = [self._row(r, s) for r in numbers]
            states += [t for row in self.rows[s] for t in row.targets if not settled[t]]

    def worth(self, row: _Row, value: Values) -> Fraction:
        """Return what a row is worth if states are worth so much; give up after much work."""
        sign = 1 if self._problem.nature is MIN else -1
        values = [sign * value[t] for t in row.targets]
        points = map(product, combinations(*row.sets))
        least = min(sum((p * v for p, v in zip(x, values, strict=True)), ZERO) for x in points)
        self._bits -= 64 + least.denominator.bit_length()
        if self._bits < 0:
            raise TooHardError
        return row.paid + read(self._problem.discount) * sign * least

    def best(self, state: int, value: Values) -> Fraction:
        """Return what a state is worth if others are worth so much."""
        pick = max if self._problem.agent is MAX else min
        return pick(self.worth(row, value) for row in self.rows[state])

    def _row(self, row: int, state: int) -> _Row:
        model, paid = self._problem.model, read(self._problem.reward[row])
        if self._problem.rounded:  # a sum that was rounded is that of its terms
            rewards = model.reward(self._reward)
            paid = read(rewards.row[row]) + read(rewards.state[state])
        ids = model.row_marginals[segment(model.marginal_ptr, row)].tolist()
        targets = model.successors[segment(model.successor_ptr, row)].tolist()
        sets = [self._set(j) for j in ids]
        self._transitions -= len(targets) * math.prod(map(len, sets))
        if self._transitions < 0:
            raise TooHardError
        supports = (set(compress(targets, product(p))) for p in combinations(*sets))
        return _Row(paid, targets, sets, set.intersection(*supports))

    def _set(self, j: int) -> list[Vector]:
        if j not in self._vertices:
            sets = self._problem.model.marginals
            outcomes, known = segment(sets.outcome_ptr, j), sets.kind[j] == Kind.SINGLETON
            lower, upper = (tuple(map(read, x[outcomes])) for x in (sets.lower, sets.upper))
            small_box = sets.kind[j] == Kind.BOX and len(lower) <= OUTCOMES
            if not (known or small_box) or not sum(lower) <= 1 <= sum(upper):
                raise TooHardError
            self._vertices[j] = [lower] if known else box_vertices(lower, upper)
        return self._vertices[j]


def _after_steps(problem: Problem, solution: Solution, where: BoolArray) -> Values:
    game = _Game(problem, solution, where, np.zeros_like(where))
    value = {s: read(problem.start[s]) for s in game.rows}
    for step in problem.steps:
        value = {
            s: read(step.given[s]) if step.fixed[s] else game.best(s, value) for s in game.rows
        }
    return value


def _fixed_point(problem: Problem, solution: Solution, where: BoolArray) -> Values:
    """Return the fixed point next to a solution, if it is the only one."""
    lower, upper, near = solution.lower, solution.upper, solution.value
    if lower is None or upper is None or problem.form is Form.MIXED or problem.steps:
        raise TooHardError  # steps before an until: the bounds are not those of the until alone
    if problem.flipped:
        lower, upper, near = 1.0 - upper, 1.0 - lower, 1.0 - near
    extremes = [0.0, 1.0 if problem.probability else np.inf]
    settled = ((lower == upper) & np.isin(lower, extremes)) | problem.terminal
    game = _Game(problem, solution, where, settled)
    rows = game.rows
    ends = {t for row in chain(*rows.values()) for t in row.targets} - rows.keys()
    known = {t: Fraction(lower[t]) for t in ends if np.isfinite(lower[t])}
    value = known | {s: Fraction(near[s]).limit_denominator(SIMPLE) for s in rows}
    for s in rows:
        if problem.agent is MIN:  # who takes no row that costs infinitely much
            rows[s] = [row for row in rows[s] if row.certain <= value.keys()]
        if not rows[s] or any(not value.keys() >= set(row.targets) for row in rows[s]):
            raise TooHardError
    for _ in range(ROUNDS):  # outside of cycles the guess need not be right
        before = dict(value)
        for s in reversed(rows):
            value[s] = game.best(s, value)
    if value != before:
        raise TooHardError
    if problem.form is Form.DISCOUNTED:
        return value
    # nobody may keep away from what is known, if those who could gain by it play as they do here
    ranging, enough = problem.lingerer.opposite, all
    if problem.agent is not ranging:
        enough = any
        rows = {s: [row for row in rows[s] if game.worth(row, value) == value[s]] for s in rows}
    arrived = {s for s in value if s in known or (ranging is MIN and value[s] == 0)}
    while arrived != value.keys():
        count = len(arrived)
        for s in reversed(rows):
            if enough(not row.certain.isdisjoint(arrived) for row in rows[s]):
                arrived.add(s)
        if len(arrived) == count:
            raise TooHardError
    return value
