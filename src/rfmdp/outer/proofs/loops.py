"""Components of one state, in integers: where sweeps leave a gap, a quotient closes it.

A state that is hardly ever left has a value that no sweep can tell: what it gains in a step is
less than the last digit. But a play that stays and stays leaves in the end by one of its other
moves. With a row of reward c and a product of vertices fixed for ever, it is worth

    (c + sum over t of p_t b_t) / (sum over t of p_t),    t the successors other than itself,

b their bounds, of which each side takes its own. A product that never leaves is worth nothing
(infinitely much if it pays for ever, or if a target has to be reached). Any product of members
mixes products of vertices, its two sums are mixed alike, and a quotient of mixtures lies between
the least and the largest quotient: so nature's best is one of the vertices, and the agent's best
is one of the rows. Sums of integers; only the quotient is rounded, outwards.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.objective import MAX, Direction
from rfmdp.outer.graph.region import Region
from rfmdp.outer.problem import Form
from rfmdp.outer.settings import STOPS, Clock, status_of
from rfmdp.outer.task import StateBounds, Task
from rfmdp.ragged import segment, segment_lengths
from rfmdp.sets.rational import vertices
from rfmdp.types import AnyArray, FloatArray, IntArray

PRODUCTS = 1 << 13  # vertices times outcomes of a row
OUTCOMES = 8  # of one set

Number: TypeAlias = Fraction | float  # the float is infinity
Corners: TypeAlias = list[AnyArray]  # integers (X,) each, a distribution times any number


@dataclass(slots=True, eq=False)
class Worth:
    """What a row is worth."""

    value: Number
    flat: bool  # whether all that it may leave to is worth the same, and it pays nothing itself


def settle_loops(task: Task, region: Region, result: StateBounds) -> None:
    """Make the bounds of single states that stayed apart better, bottom first, in place."""
    parts = region.components
    loops = Loops(region, task.clock)
    result.lower = np.where(region.open, result.lower, region.known)  # what they build upon
    result.upper = np.where(region.open, result.upper, region.known)
    states = np.flatnonzero(region.open)
    low, high = result.lower[states], result.upper[states]
    wide = np.unique(parts.component[states[high - low > task.limits.tolerance(low, 0.0)]])
    single = wide[segment_lengths(parts.component_ptr)[wide] == 1]
    try:
        for state in parts.states[parts.component_ptr[single]].tolist():
            loops.improve(state, result.lower, result.upper, result.choice)
            middle = 0.5 * result.lower[state] + 0.5 * result.upper[state]
            result.value[state] = middle if np.isfinite(middle) else result.lower[state]
    except STOPS as stop:
        result.stopped = status_of(stop)


class Loops:
    """Values of components of one state, given bounds of all others."""

    def __init__(self, region: Region, clock: Clock) -> None:
        self.problem, self.region, self.clock = region.problem, region, clock
        self._corners: dict[int, Corners] = {}

    def improve(self, state: int, lower: FloatArray, upper: FloatArray, choice: IntArray) -> None:
        """Make the bounds (S,) of a state better, in place; its choice follows the guarantee.

        Nothing happens if a row has too many vertices, or none.
        """
        self.clock.check()
        try:
            best = [
                self._bound(state, bound, side) for side, bound in ((-1.0, lower), (1.0, upper))
            ]
        except UnsupportedError:
            return
        for (result, row), side, bound in zip(best, (-1.0, 1.0), (lower, upper), strict=True):
            if side * result < side * bound[state]:
                bound[state] = result
                if side == -self.problem.agent.sign:
                    choice[state] = row

    def _bound(self, state: int, bound: FloatArray, side: float) -> tuple[float, int]:
        """Return the value of a state, rounded to a side, and the best row."""
        model, agent = self.problem.model, self.problem.agent
        rows = range(int(model.row_ptr[state]), int(model.row_ptr[state + 1]))
        worths = [self._row(state, r, bound) for r in rows]
        best = _best(agent, worths)
        return _rounded(worths[best], side), rows[best]

    def _row(self, state: int, row: int, bound: FloatArray) -> Worth:
        """Return nature's best quotient in a row."""
        if not self.region.finite_rows[row]:
            return Worth(math.inf, False)
        model = self.problem.model
        moves = model.successors[segment(model.successor_ptr, row)]
        away = moves != state
        there = bound[moves[away]]
        far = np.isinf(there)
        worth, unit = _integers(np.where(far, 0.0, there))
        reward = Fraction(float(self.problem.reward[row]))
        result = []
        for weight in self._products(row):
            leaving = weight[away]
            total = int(weight.sum())
            share = int(leaving.sum())
            if not share:
                result.append(self._staying(reward))
            elif leaving[far].any():
                result.append(Worth(math.inf, False))
            else:
                mean = Fraction(int(leaving @ worth), share * unit)
                flat = len(set(there[leaving > 0].tolist())) == 1 and reward == 0
                result.append(Worth(mean + reward * Fraction(total, share), flat))
        return result[_best(self.problem.nature, result)]

    def _staying(self, reward: Fraction) -> Worth:
        """Return what it is worth never to leave."""
        endless = self.problem.form is Form.TO_TARGET or reward > 0
        return Worth(math.inf if endless else Fraction(0), True)

    def _products(self, row: int) -> list[AnyArray]:
        """Return the products (K,) of vertices of a row, in integers."""
        model = self.problem.model
        ids = model.row_marginals[segment(model.marginal_ptr, row)]
        sets = [self._integer_vertices(j) for j in ids.tolist()]
        if math.prod(len(corners) * len(corners[0]) for corners in sets) > PRODUCTS:
            raise UnsupportedError("The row has too many products of vertices.")
        result: list[AnyArray] = [np.ones(1, dtype=object)]
        for corners in sets:
            result = [np.multiply.outer(p, q).ravel() for p in result for q in corners]
        return result

    def _integer_vertices(self, marginal: int) -> Corners:
        """Return the vertices of a set in integers."""
        if marginal not in self._corners:
            sets = self.problem.model.marginals
            if sets.sizes[marginal] > OUTCOMES:
                raise UnsupportedError("The set has too many outcomes.")
            corners: Corners = []
            for corner in vertices(sets[marginal]):
                one = math.lcm(*(x.denominator for x in corner))
                whole = [x.numerator * (one // x.denominator) for x in corner]
                corners.append(np.array(whole, dtype=object))
            self._corners[marginal] = corners  # only now: a set without a list has none
        return self._corners[marginal]


def _best(player: Direction, worths: list[Worth]) -> int:
    """Return the place of the best worth for a player."""
    pick = max if player is MAX else min
    return pick(range(len(worths)), key=lambda i: worths[i].value)


def _integers(numbers: FloatArray) -> tuple[AnyArray, int]:
    """Return finite floats as integers, all times one power of two, and that power."""
    ratios = [x.as_integer_ratio() for x in numbers.tolist()]
    unit = max((divisor for _, divisor in ratios), default=1)
    whole = np.array([number * (unit // divisor) for number, divisor in ratios], dtype=object)
    return whole, unit


def _rounded(worth: Worth, side: float) -> float:
    """Return a value as a float, rounded to a side.

    A value that is a float itself is moved one float outwards, unless it is flat: then the bound
    gains in every step, and who checks it need not look where the row leads to.
    """
    if isinstance(worth.value, float):
        return math.inf
    try:
        number = float(worth.value)
    except OverflowError:
        return math.inf if side > 0.0 else sys.float_info.max
    off = Fraction(number) - worth.value  # no float: it may be less than the least of them
    outwards = off > 0 if side > 0.0 else off < 0
    if outwards or (off == 0 and (worth.flat or number == 0.0)):
        return number
    return max(math.nextafter(number, side * math.inf), 0.0)
