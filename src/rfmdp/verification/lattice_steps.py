"""Backward steps of a model that is kept by its factors, factor by factor.

The numbers W of what follows are indexed by the next local states of the factors that are left, and
by the current values that were read so far. Contracting a factor takes nature's choice in its set:

from below  she chooses for every fibre (what the other factors do) by itself, which is more than
            she may: W is no more than the least mean
from above  she has one member for all fibres, so that W is attained

A clock is a factor that never comes back to a local state that it left. Of one that stands first
only outcomes are picked at first; they are the least significant digit, and are contracted last.

Everything is done for nature who minimises; for one who maximises values change their sign. Rows in
which the two sides differ are written out and bounded by `products`, as far as they are not too
many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rfmdp.ragged import alike, segment_lengths
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.verification.fields import need
from rfmdp.verification.lattice_model import FORBIDDEN, Depth, Lattice
from rfmdp.verification.margins import TINY, UNIT, two_sum
from rfmdp.verification.means import RoundedSets
from rfmdp.verification.products import Batch
from rfmdp.verification.sets import BOX, L1, ExactRows

AT_ONCE = 1 << 19  # numbers of W that are contracted together, or a line more
FEW = 6  # outcomes of boxes and L1 balls whose vertices are all tried
WRITTEN = 1 << 24  # successors of rows that are written out in a step

Sides = dict[int, FloatArray]
"""Bounds (S,): -1 from below, +1 from above."""


@dataclass(slots=True, eq=False)
class _Part:
    """Some rows on their way through the factors: a line per values that were read so far."""

    low: FloatArray  # (N, states of the factors left)
    high: FloatArray  # the same array as long as one answer of nature fitted all fibres
    states: IntArray  # (N,) what the values add to the number of a state
    codes: list[IntArray]  # (N,) what they add to the context of the next depth and of later ones
    actions: IntArray  # whose moves were the same so far


class Rows(NamedTuple):
    """Rows and their bounds for nature who minimises."""

    states: IntArray  # (N,)
    actions: IntArray
    low: FloatArray
    high: FloatArray

    def take(self, some: AnyArray) -> Rows:
        """Return some of them."""
        return Rows(self.states[some], self.actions[some], self.low[some], self.high[some])


class Contraction:
    """Backward steps of a lattice, rounded outwards. What is paid, if anything, is a reward."""

    def __init__(
        self, model: Lattice, agent: int, nature: int, paid: tuple[Any, ...] | None = None,
        discount: float = 1.0,
    ) -> None:  # fmt: skip
        self.model, self.agent, self.nature, self.discount = model, agent, nature, discount
        nothing = np.zeros(model.states), np.zeros(model.actions, dtype=np.int64), np.zeros(1)
        of_states, self.classes, of_classes = nothing if paid is None else paid
        total, lost = two_sum(of_classes, of_states)
        self.pays = np.stack([*total.reshape(-1, model.states), of_states])  # of stuck states last
        self._exact = not lost.any()  # else no float holds some sums
        self.rounded = RoundedSets(model.sets, ExactRows(model.sets))
        self._corners: dict[int, FloatArray] = {}
        terms = (5.0 * width + 4.0 for width in model.widths if width > 1)
        self._rounding = UNIT * sum(terms)  # of the span
        self._written = 0

    def back(
        self, after: Sides, rule: IntArray, by_policy: Callable[[int], bool],
        level: int | None = None,
    ) -> Sides:  # fmt: skip
        """Return bounds before a step; by the rule's actions only on sides that ask for it.

        With a level of the clock, those of its states alone; others stay infinite.
        """
        sign, model = -self.nature, self.model
        low, high = (after[-1], after[1]) if sign > 0 else (-after[1], -after[-1])
        size = max(float(np.abs(low).max()), float(np.abs(high).max()))
        middle = 0.5 * (low + high)
        half = max(float((high - middle).max()), float((middle - low).max()))
        base = float(middle.min())  # errors are relative to the span
        margin = self._rounding * (float(middle.max()) - base)
        margin += (len(model.factors) + 4.0) * UNIT * size + TINY * (size > 0.0)
        # a step does not widen bounds around the middle, so that alone is contracted
        before: Sides = {side: np.full(model.states, -self.agent * np.inf) for side in (-1, 1)}
        best = np.maximum if self.agent > 0 else np.minimum

        def enter(rows: Rows) -> None:
            """Compare what some rows are worth with the best so far; one row per state."""
            for side, worth in self._worth(rows, half + margin).items():
                some = rule[rows.states] == rows.actions if by_policy(side) else slice(None)
                at = rows.states[some]
                before[side][at] = best(before[side][at], worth[some])

        loose: list[Rows] = []
        for part in self._leaves(self._whole(middle - base), level=level):
            for action in part.actions.tolist():
                rows = Rows(part.states, np.full(len(part.states), action),
                            part.low[:, 0] + base, part.high[:, 0] + base)  # fmt: skip
                if part.high is not part.low:
                    wide = rows.high - rows.low > margin
                    loose.append(rows.take(wide))
                    rows = rows.take(~wide)
                enter(rows)
        if loose:  # rows whose sides differ are written out, if they may be better, or of the rule
            rows = Rows(*map(np.concatenate, zip(*loose, strict=True)))
            self._written = 0
            ruled = rule[rows.states] == rows.actions
            for some in (rows.take(ruled), rows.take(~ruled)):
                worth = self._worth(some, half + margin)[self.agent]
                better = self.agent * (worth - before[-self.agent][some.states]) > 0.0
                for group in self.alike(some.take(better | (rule[some.states] == some.actions))):
                    enter(self.repaired(group, middle))
        stuck = model.stuck
        here = slice(None) if level is None else model.level_states(level)
        for side in (-1, 1):
            before[side][stuck] = self._paid(self.pays[-1, stuck], after[side][stuck], side)
            finite = np.isfinite(before[side][here]).all()  # else the rule takes no possible action
            need(finite, "policy: must take actions that are possible")
        return before

    def may_lead(self, states: BoolArray, rule: IntArray | None = None) -> BoolArray:
        """Return where (S,) some action, or a rule's, may lead into some states by some members.

        Everywhere if probabilities are so small that floats may lose them.
        """
        if self.model.faint or not states.any():
            return np.full(len(states), bool(states.any()))
        where = np.zeros_like(states)
        for part in self._leaves(self._whole(-states.astype(np.float64))):
            some = part.low[:, 0] < 0.0
            if rule is not None:
                some &= np.isin(rule[part.states], part.actions)
            where[part.states[some]] = True
        return where

    def _paid(self, pays: FloatArray, mean: FloatArray, side: int) -> FloatArray:
        """Return what rows pay and what follows, rounded to a side."""
        later = self.discount * mean
        error = 4.0 * UNIT * (np.abs(pays) + np.abs(later)) + TINY * (self.discount != 1.0)
        exact = ((pays == 0.0) & (self.discount == 1.0)) | ((mean == 0.0) & self._exact)
        return np.asarray(pays + later + side * np.where(exact, 0.0, error))

    def _whole(self, values: FloatArray) -> _Part:
        """Return values (S,) of what follows, before any factor is contracted."""
        zero = np.zeros(1, dtype=np.int64)
        actions = np.arange(self.model.actions)
        return _Part(values[None], values[None], zero, [zero] * len(self.model.depths), actions)

    def _leaves(self, part: _Part, depth: int = 0, level: int | None = None) -> Iterator[_Part]:
        """Yield what is left after all factors: a number per state, or of a level, and action."""
        if depth == len(self.model.depths):
            yield part
            return
        here = self.model.depths[depth]
        branches = np.arange(len(here.states))
        if level is not None and depth == 0:
            branches = np.flatnonzero(self.model.level_states(level)[here.states])
        table = here.moves[:, part.actions]
        group = np.unique(table, axis=1, return_inverse=True)[1].reshape(-1)
        for k in range(int(group.max()) + 1):
            for after in self._contracted(here, part, part.actions[group == k], branches):
                yield from self._leaves(after, depth + 1)

    def _contracted(
        self, depth: Depth, part: _Part, actions: IntArray, branches: IntArray
    ) -> Iterator[_Part]:
        """Yield a part after one more depth, for actions that move it alike, piece by piece."""
        count = len(branches)
        inner = part.low.shape[1] // depth.size
        step = max(1, AT_ONCE // (inner * max(depth.picks, 1) * count))
        for first in range(0, len(part.states), step):
            lines = np.arange(first, min(first + step, len(part.states)))
            line, branch = np.repeat(lines, count), np.tile(branches, len(lines))
            moves = depth.moves[part.codes[0][line] + depth.codes[0][branch], actions[0]]
            able = np.flatnonzero(moves != FORBIDDEN)
            line, branch, moves = line[able], branch[able], moves[able]
            low, high = self._sides(depth, part, line, moves, inner)
            codes = [
                before[line] + more[branch]
                for before, more in zip(part.codes[1:], depth.codes[1:], strict=True)
            ]
            yield _Part(low, high, part.states[line] + depth.states[branch], codes, actions)

    def _sides(
        self, depth: Depth, part: _Part, line: IntArray, moves: IntArray, inner: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return W from below and from above after some lines made moves; perhaps the same."""
        low = np.empty((len(line), inner * max(depth.picks, 1)))
        higher: list[tuple[IntArray, FloatArray]] = []
        for move in np.flatnonzero(np.bincount(moves)).tolist():
            at, targets = np.flatnonzero(moves == move), self.model.move_targets(move)
            targets = np.arange(len(targets)) if depth.picked else targets
            sides = (part.low,) if part.high is part.low else (part.low, part.high)
            # (outcomes, lines, what is left)
            picked = [side.reshape(-1, depth.size, inner)[line[at], targets[:, None]]
                      for side in sides]  # fmt: skip
            if depth.picks:  # of the only line that there is at first; the last fills the others
                ranks = np.minimum(np.arange(depth.picks), len(targets) - 1)
                low[at] = picked[0][ranks].transpose(1, 2, 0).reshape(len(at), -1)
                continue
            below, above = self._means(int(self.model.move_sets[move]), picked[0], picked[-1])
            low[at] = below
            if above is not below:
                higher.append((at, above))
        if part.high is part.low and not higher:
            return low, low
        high = low.copy()
        for at, above in higher:
            high[at] = above
        return low, high

    def _means(self, j: int, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return W (N, fibres) from values (outcomes, N, fibres) by a set; -1: a certain move.

        Rounding is not added here: `back` does that once for all factors.
        """
        if j < 0:
            return low[0], low[0] if high is low else high[0]
        if j not in self._corners:
            few = self.model.sets.sizes[j] <= FEW or self.model.sets.kind[j] not in (BOX, L1)
            listed = self.rounded.exact[j].vertices if few else []
            self._corners[j] = np.array(listed, dtype=np.float64)
        corners, shape = self._corners[j], low.shape[1:]
        if len(corners):

            def worth(values: FloatArray) -> FloatArray:  # not by BLAS: corners are few and small
                flat = np.einsum("vx,xm->vm", corners, values.reshape(len(values), -1))
                return np.asarray(flat).reshape(-1, *shape)

            each = worth(low)
            below, each = each.min(axis=0), each if high is low else worth(high)
            above = each[np.einsum("vnf->vn", each).argmin(axis=0), np.arange(shape[0])]
        else:

            def mean(chosen: FloatArray, values: FloatArray) -> FloatArray:
                """Return means by the members that are best for some values (outcomes, ...)."""
                lines = chosen.reshape(len(chosen), -1).T
                p, _ = self.rounded.axis(np.full(len(lines), j)).point(lines)
                p = np.repeat(p, values[0].size // len(p), axis=0)
                flat = np.einsum("mx,xm->m", p, values.reshape(len(values), -1))
                return np.asarray(flat).reshape(shape)

            below, above = mean(low, low), mean(high.sum(axis=2), high)
        return below, below if high is low and np.array_equal(below, above) else above

    def _worth(self, rows: Rows, error: float) -> Sides:
        """Return bounds of what rows pay and what follows them."""
        sign = -self.nature
        pays = self.pays[self.classes[rows.actions], rows.states]
        worth = {}
        for side in (-1, 1):
            mean = sign * (rows.low if sign * side < 0 else rows.high)
            worth[side] = self._paid(pays, mean + side * error, side)
        return worth

    def alike(self, rows: Rows) -> Iterator[Rows]:
        """Yield rows of one action whose sets have the same shapes, some at a time."""
        model = self.model
        moves = np.stack([t[np.arange(len(rows.states)), rows.actions]
                          for t in model.moves_of(rows.states)], axis=1)  # fmt: skip
        shapes = np.append(1 + model.sets.shapes, 0)[model.move_sets[moves]]
        codes = np.column_stack([rows.actions, shapes])
        ptr = np.arange(0, codes.size + 1, codes.shape[1])
        for some, _ in alike(codes.reshape(-1), ptr):
            size = np.prod(segment_lengths(model.target_ptr)[moves[some[0]]])
            step = max(1, AT_ONCE // int(size))
            for first in range(0, len(some), step):
                yield rows.take(some[first : first + step])

    def repaired(self, rows: Rows, values: FloatArray) -> Rows:
        """Return rows with better bounds, by their sets together; too many stay as they are."""
        ids, successors = self.model.rows(rows.states, int(rows.actions[0]))
        if not ids.shape[1]:  # a certain row
            mean = values[successors[:, 0]]
            return Rows(rows.states, rows.actions, mean, mean)
        self._written += successors.size
        if self._written > WRITTEN:
            return rows
        many = np.arange(len(successors))
        axes = [self.rounded.axis(some) for some in ids.T]
        batch = Batch(many, axes, np.empty((len(many), 0), dtype=np.int64), None)
        follows = values[successors]
        base = follows.min(axis=1)  # errors are relative to the span; `back` covers this rounding
        follows -= base[:, None]
        ends = []
        for side in (-1, 1):
            least, aim = batch.bound(follows, side), batch.bound(follows, -side)
            if len(axes) > 1:
                batch.refine(many, follows, least, side, aim, np.full(len(many), np.inf))
            ends.append(least + base)
        return Rows(rows.states, rows.actions, np.maximum(rows.low, ends[0]),
                     np.minimum(rows.high, ends[1]))  # fmt: skip
