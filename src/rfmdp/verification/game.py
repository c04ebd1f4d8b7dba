"""The game behind a claim: its rows, what they are worth, and what a bound gains in them.

A bound b is looked at from its own side: its *gain* in a row is -side * (T(b) - b), and nature
helps (side and direction differ) or opposes. Signs of gains are proven by floats rounded outwards,
else by which successors are possible, else in fractions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from fractions import Fraction
from functools import cached_property

import numpy as np

from rfmdp import ragged
from rfmdp.ragged import segment, segment_any, segment_lengths
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.verification.margins import UNIT, directed, scaled, two_sum
from rfmdp.verification.means import RoundedSets
from rfmdp.verification.products import Batch
from rfmdp.verification.reading import Model
from rfmdp.verification.sets import BOX, L1, LP, SINGLETON, SUM_OFF, ExactRows, Undecided

GAIN, HOLD, FAIL, UNKNOWN = 1, 0, -1, -2  # what is proven of the gain of a row
FRACTIONS = 20_000  # rows of one check that are decided one by one
FAR = 2.0**980  # stands for an infinite lower bound: more than others that floats handle
LARGEST = Fraction(float(np.finfo(np.float64).max))
BATCH = 1 << 18  # numbers handled at a time


class Game:
    """A model whose sets are settled here, who pulls which way (+1 maximises), and what rows pay.

    A row pays `reward` and `rest`, which is less than a unit in the last place of `reward`.
    """

    def __init__(
        self, model: Model, agent: int, nature: int, paid: tuple[FloatArray, FloatArray] | None
    ) -> None:
        self.model, self.agent, self.nature = model, agent, nature
        self.sets = model.sets.settled()
        self.exact = ExactRows(self.sets)
        self.state = ragged.owners(model.row_ptr)
        nothing = np.zeros(model.rows)
        self.reward, self.rest = (nothing, nothing) if paid is None else paid
        self.allowed: BoolArray = np.ones(model.rows, dtype=np.bool_)  # what the agent may take

    @cached_property
    def rounded(self) -> RoundedSets:
        """The sets in floats."""
        return RoundedSets(self.sets, self.exact)

    @cached_property
    def blocks(self) -> list[tuple[IntArray, IntArray]]:
        """Rows (B,) and their sets (B, n), those with sets of the same shape together."""
        ptr, sets = self.model.marginal_ptr, self.model.row_marginals
        certain = np.flatnonzero(segment_lengths(ptr) == 0)
        blocks = [(certain, np.empty((len(certain), 0), dtype=np.int64))] if len(certain) else []
        return blocks + [(rows, sets[at]) for rows, at in ragged.alike(self.sets.shapes[sets], ptr)]

    def batches(self, chosen: BoolArray) -> Iterator[Batch]:
        """Yield the rows that are asked for."""
        ptr, whole = self.model.successor_ptr, bool(self._held.all())
        for rows, ids in self.blocks if chosen.any() else ():
            places = np.flatnonzero(chosen[rows])
            inside = np.arange(ptr[rows[0] + 1] - ptr[rows[0]])
            step = max(1, BATCH // len(inside))
            for some in (places[i : i + step] for i in range(0, len(places), step)):
                at = ptr[rows[some]][:, None] + inside
                axes = [self.rounded.axis(place) for place in ids[some].T]
                possible = None if whole else self.possible[at]
                yield Batch(rows[some], axes, self.model.successors[at], possible)

    @cached_property
    def rigid(self) -> BoolArray:
        """Rows (R,) all of whose products have the same successors."""
        return ragged.segment_all(self._firm()[self.model.row_marginals], self.model.marginal_ptr)

    def _firm(self) -> BoolArray:
        """Return the sets (M,) all of whose members have the same outcomes."""
        sets, box = self.sets, self.sets.kind == BOX
        empties = (sets.lower == 0.0) & (sets.upper > 0.0)
        others = np.repeat(ragged.segment_sum(sets.upper, sets.ptr), sets.sizes) - sets.upper
        firm = (sets.kind == SINGLETON) | (box & ~segment_any(empties, sets.ptr))
        bends = box & segment_any(empties & (others > 1.0 + SUM_OFF), sets.ptr)
        for j in np.flatnonzero(~firm & ~bends):
            with suppress(Undecided):
                firm[j] = self.exact[int(j)].firm
        return np.asarray(firm)

    @cached_property
    def _held(self) -> BoolArray:
        """The outcomes (O,) of all sets that some member has, or more."""
        sets = self.sets
        kind = np.repeat(sets.kind, sets.sizes)
        most = np.where(kind == SINGLETON, sets.nominal, sets.upper)
        return np.asarray((most > 0.0) | (kind == L1) | (kind == LP))

    @cached_property
    def possible(self) -> BoolArray:
        """Which entries (T,) of successors some product has, or more."""
        model, sets, held = self.model, self.sets, self._held
        possible = np.ones(len(model.successors), dtype=np.bool_)
        for rows, ids in self.blocks if not held.all() else ():
            some = np.ones((len(rows), 1), dtype=np.bool_)
            for place in ids.T:
                each = held[sets.ptr[place][:, None] + np.arange(sets.sizes[place[0]])]
                some = (some[:, :, None] & each[:, None]).reshape(len(rows), -1)
            possible[model.successor_ptr[rows][:, None] + np.arange(some.shape[1])] = some
        return possible

    def touch(self, states: BoolArray) -> BoolArray:
        """Return the rows (R,) that can lead to some of the states."""
        hit = states[self.model.successors] & self.possible
        return segment_any(hit, self.model.successor_ptr)

    def can(self, row: int, allowed: BoolArray | None, hit: BoolArray | None) -> bool:
        """Return whether nature can keep a row within allowed successors (K,) and hit some.

        Without any given, all are allowed, or each is a hit.
        """
        full = np.ones(len(self.successors(row)), dtype=np.bool_)
        allowed, hit = full if allowed is None else allowed, full if hit is None else hit
        return self.exact.can(self.ids(row), allowed, hit)

    def successors(self, row: int) -> IntArray:
        """Return the successors (K,) of a row."""
        return self.model.successors[segment(self.model.successor_ptr, row)]

    def ids(self, row: int) -> tuple[int, ...]:
        """Return the sets of a row."""
        return tuple(self.model.row_marginals[segment(self.model.marginal_ptr, row)].tolist())

    def allow(self, rule: IntArray | None) -> None:
        """Let the agent take the rows of a rule only, or all."""
        self.allowed[:] = rule is None
        if rule is not None:
            self.allowed[rule] = True

    def open_rows(self, settled: BoolArray) -> BoolArray:
        """Return the rows (R,) that the agent may take in states that are not settled."""
        return self.allowed & ~settled[self.state]

    def enough(self, good: BoolArray, helps: bool, there: BoolArray) -> BoolArray:
        """Return the states (S,) with good rows among those that are there: all, or one if enough.

        A helping agent takes a good one; one that opposes must not have any other.
        """
        some = np.logical_or.reduceat(good & there, self.model.row_ptr[:-1])
        bad = np.logical_or.reduceat(there & ~good, self.model.row_ptr[:-1])
        return np.asarray(some if helps else some & ~bad)

    def backup(
        self, value: FloatArray, side: int, discount: float, rows: BoolArray, exact: bool
    ) -> FloatArray:
        """Return bounds (S,), on a side, of what the agent's best of the rows asked for is worth.

        If `exact`, means are counted in fractions and rounded once.
        """
        q = np.full(self.model.rows, -self.agent * np.inf)
        with np.errstate(all="ignore"):
            for batch in self.batches(rows):
                there = _possible(batch, value)
                base = there.min(axis=1)
                wide, towards = self._seen(there - base[:, None], side), -self.nature * side
                mean = batch.bound(wide, towards)
                if len(batch.free) > 1:
                    room = 2.0**-46 * np.abs(wide).max(axis=1)  # as near as anybody wants it
                    other = batch.bound(self._seen(there - base[:, None], -side), -towards)
                    cut = mean.copy() if towards > 0 else other - room
                    some = np.arange(len(mean))
                    batch.refine(some, wide, mean, towards, other + towards * room, cut)
                avoided = (mean > 0.0) & (mean <= 2.0**-40 * np.abs(wide).max(axis=1)) & (side > 0)
                mean = directed(base, -self.nature * mean, side)
                mean = np.clip(mean, base, there.max(axis=1))
                for i in np.flatnonzero(avoided | exact)[:FRACTIONS]:
                    mean[i] = self._rounded(int(batch.rows[i]), there[i], float(mean[i]), side)
                paid = directed(self.reward[batch.rows], self.rest[batch.rows], side)
                q[batch.rows] = directed(paid, scaled(discount, mean, side), side)
        best = np.maximum if self.agent > 0 else np.minimum
        return best.reduceat(q, self.model.row_ptr[:-1])

    def _seen(self, values: FloatArray, side: int) -> FloatArray:
        """Return values as a nature who minimises sees them; twice their rounding is paid."""
        return -self.nature * (values + 2.0 * UNIT * side * np.abs(values))

    def _rounded(self, row: int, values: FloatArray, bound: float, side: int) -> float:
        """Return nature's best mean of values (K,) in fractions, rounded to a side, or `bound`."""
        with suppress(Undecided, OverflowError, ValueError):
            best = float((self.nature * values).max() * self.nature)
            if self.can(row, values == best, None):
                return best
            numbers = [(-self.nature * Fraction(x),) for x in values.tolist()]
            mean = -self.nature * self.exact.minimum(self.ids(row), numbers)[0]
            number = float(mean)
            fits = side * Fraction(number) >= side * mean
            return number if fits else math.nextafter(number, side * math.inf)
        return bound

    def signs(self, bound: FloatArray, side: int, discount: float, rows: BoolArray) -> AnyArray:
        """Return what is proven of the gain of every row asked for; `UNKNOWN` of the others."""
        result = np.full(self.model.rows, UNKNOWN, dtype=np.int8)
        left = FRACTIONS
        with np.errstate(all="ignore"):
            for batch in self.batches(rows):
                result[batch.rows], faint = self._by_floats(batch, bound, side, discount)
                doubts = batch.rows[(result[batch.rows] == UNKNOWN) | faint][:left]
                left -= len(doubts)
                for row in doubts.tolist():
                    with suppress(Undecided):
                        sign = self.decide(row, bound, side, discount)
                        result[row] = max(result[row], sign)
        return result

    def _by_floats(
        self, batch: Batch, bound: FloatArray, side: int, discount: float
    ) -> tuple[AnyArray, BoolArray]:
        """Return signs (b,), and which may be gains that floats cannot tell from nothing."""
        rows, there = batch.rows, _possible(batch, bound)
        here = bound[self.state[rows]]
        infinite = np.isposinf(there)
        near = np.where(infinite & (side < 0), FAR, there) - here[:, None]

        def rest(side: int) -> FloatArray:
            """Return what a row pays, less what the bound here loses by discounting."""
            paid = directed(self.reward[rows], self.rest[rows], side)
            lost = directed(scaled(discount, here, side), -here, side)
            return directed(paid, lost, side)

        def excess(mean: FloatArray, rest: FloatArray, side: int) -> FloatArray:
            return directed(rest, scaled(discount, -self.nature * mean, side), side)

        wide = self._seen(near, side)
        towards, beyond = -self.nature * side, rest(side)
        mean = towards * (towards * wide).max(axis=1)  # wherever it goes
        doubt = np.flatnonzero(~(side * excess(mean, beyond, side) < 0.0))
        mean[doubt] = batch.take(doubt).bound(wide[doubt], towards)
        doubt = np.flatnonzero(~(side * excess(mean, beyond, side) <= 0.0))
        other = batch.take(doubt).bound(self._seen(near[doubt], -side), -towards)
        fails = side * excess(other, rest(-side)[doubt], -side) > 0.0
        fails &= ~infinite[doubt].any(axis=1)
        aim = self.nature * beyond / discount
        cut = aim + 2.0**-50 * np.abs(wide).max(axis=1)
        batch.refine(doubt[~fails], wide, mean, towards, aim, cut)
        beyond = side * excess(mean, beyond, side)
        signs = np.full(len(rows), UNKNOWN, dtype=np.int8)
        signs[beyond <= 0.0] = HOLD
        signs[beyond < 0.0] = GAIN
        signs[doubt[fails]] = FAIL
        signs[~np.isfinite(here)] = FAIL
        # where an opposing nature has a choice, it mostly has one that gains nothing
        able = self.nature == -side or not batch.free
        return signs, (signs == HOLD) & able & (near != 0.0).any(axis=1)

    def decide(
        self, row: int, bound: FloatArray, side: int, discount: float, hit: BoolArray | None = None
    ) -> int:
        """Return the sign of the gain that nature makes; if nothing, whether she hits some states.

        By which successors are possible, if that tells, else by fractions.
        """
        helps, successors = self.nature == -side, self.successors(row)
        there = bound[successors]
        hits = np.zeros(len(there), dtype=np.int64) if hit is None else 1 * hit[successors]
        paid = Fraction(float(self.reward[row])) + Fraction(float(self.rest[row]))
        # what successors are worth that gain nothing; floats compare with it as with its rounding
        even = (Fraction(float(bound[self.state[row]])) - paid) / Fraction(discount)
        near = float(max(min(even, LARGEST), -LARGEST))
        tie = (Fraction(near) > even) - (Fraction(near) < even)
        signs = -side * np.where(there == near, tie, 1 * (there > near) - (there < near))
        signs = np.where(signs == 0, hits, signs)
        with suppress(Undecided):
            if helps and self.can(row, signs >= 0, signs > 0):
                return GAIN
            if not helps and not self.can(row, None, signs < 0):
                return HOLD if self.can(row, signs == 0, None) else GAIN
            if not (signs > 0).any():
                return HOLD if helps and self.can(row, signs == 0, None) else FAIL
        turn = -1 if helps else 1
        gains = [  # how many times infinity, what is left, and hits
            (0, side * (even - Fraction(x)), k) if math.isfinite(x) else (sign, 0, k)
            for x, sign, k in zip(there.tolist(), signs.tolist(), hits.tolist(), strict=True)
        ]
        numbers = [tuple(turn * Fraction(part) for part in gain) for gain in gains]
        least = self.exact.minimum(self.ids(row), numbers)
        best = next((turn * x for x in least if x), Fraction(0))
        return GAIN if best > 0 else FAIL if best < 0 else HOLD


def long_run(
    game: Game, bound: FloatArray, bias: FloatArray, side: int
) -> tuple[BoolArray, BoolArray]:
    """Return the states (S,) where a bound of a mean is proven, and where it may yet be one.

    Seen from an upper bound u (lower ones are turned round first) with its witness h, rows climb or
    keep as docs/soundness.md says, in the worst case if nature opposes the bound. If it helps, one
    member has to do: for `keep`, one that leads only to states whose u is at most u here.
    """
    turned = copy(game)
    turned.agent, turned.nature = side * game.agent, side * game.nature
    u, h = side * bound, side * bias
    model, state = game.model, game.state
    turned.reward = turned.rest = np.zeros(model.rows)
    climbs = turned.signs(u, 1, 1.0, game.allowed)
    todo = game.allowed & (climbs != GAIN)
    # what a row pays beyond u, exactly or more
    first, error = two_sum(side * game.reward, -u[state])
    turned.reward, turned.rest = first, directed(error, side * game.rest, 1.0)
    keeps = turned.signs(h, 1, 1.0, todo)
    if turned.nature == 1:
        keeps = np.minimum(keeps, climbs)
    else:  # prove rows again that may lead to states with a larger u, without these
        most = np.maximum.reduceat(u[model.successors], model.successor_ptr[:-1])
        again = todo & (most > u[state])
        for level in np.unique(u[state[again]]):
            chosen = again & (u[state] == level)
            keeps[chosen] = turned.signs(np.where(u > level, np.inf, h), 1, 1.0, chosen)[chosen]
    good = (climbs == GAIN) | (keeps >= HOLD)
    open_ = good | (climbs == UNKNOWN) | (keeps == UNKNOWN)
    helps = turned.agent == -1
    return turned.enough(good, helps, game.allowed), turned.enough(open_, helps, game.allowed)


def _possible(batch: Batch, values: FloatArray) -> FloatArray:
    """Return values (b, K) of successors; what cannot happen has the least of the others."""
    there = values[batch.successors]
    if batch.possible is None:
        return there
    least = np.where(batch.possible, there, np.inf).min(axis=1)
    return np.where(batch.possible, there, least[:, None])
