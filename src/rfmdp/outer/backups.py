"""T(value) on the open states from its proven side, exact where rounding must not decide.

A loose inductive bound (see `certify`) must be constant where those who may linger can move about
for ever at no reward, for staying proves any constant. Who lingers is on the side that the bound
limits; the other player is fixed to its answer to the value at hand. Then such a group of states is
a maximal end component of explicit choices: a row of the agent together with a support of nature.
"""

from __future__ import annotations

import math
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.kernels import sweep as kernels
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX
from rfmdp.outer.graph import Edges
from rfmdp.outer.region import Groups, Region, end_components, no_groups
from rfmdp.outer.task import Operator
from rfmdp.ragged import entries, owners, segment, segment_all, segment_lengths, starts
from rfmdp.rounding import expectation_margin, reward_margin
from rfmdp.sets.vertices import vertices_bulk
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray

BUDGET = 1 << 22  # entries of all listed products together


class VertexProducts(NamedTuple):
    """Products of vertices over the successors of a row, and which of these they take."""

    probability: FloatArray  # (N, K)
    taken: BoolArray  # (N, K)


NOTHING = VertexProducts(np.empty((0, 0)), np.empty((0, 0), dtype=np.bool_))


class Faces:
    """All vertex products of the rows that fit the budget; the others are not in `rows`."""

    def __init__(self, model: FactoredMDP, rows: IntArray) -> None:
        blocks: dict[tuple[int, ...], VertexProducts] = {}
        corners: dict[int, FloatArray | None] = {}
        parts: list[VertexProducts] = []
        kept: list[int] = []
        left = BUDGET
        for row in rows:
            ids = tuple(model.row_marginals[segment(model.marginal_ptr, row)].tolist())
            if ids not in blocks:
                blocks[ids] = _products(model, ids, left, corners)
            left -= blocks[ids].probability.size
            if left < 0:
                break
            if blocks[ids].probability.size:
                kept.append(int(row))
                parts.append(blocks[ids])
        self.rows = np.array(kept, dtype=np.int64)  # (N,) ascending if given so
        self.vertex_ptr = starts([len(p.taken) for p in parts])  # (N + 1,) vertices of every row
        self.owner = owners(self.vertex_ptr)  # (V,) row of every vertex
        chosen = self.rows[self.owner]
        self.entry_ptr = starts(segment_lengths(model.successor_ptr)[chosen])  # (V + 1,)
        self.successor = model.successors[entries(model.successor_ptr, chosen)].astype(np.int64)
        listed = [*parts, NOTHING]
        self.probability = np.concatenate([p.probability.ravel() for p in listed])
        # of the factors and not of their product, which may be too small for a float
        self.taken = np.concatenate([p.taken.ravel() for p in listed])

    def __len__(self) -> int:
        return len(self.rows)

    def staying(self, label: IntArray, home: IntArray) -> BoolArray:
        """Return the vertices (V,) that move only to states whose label is that of their row."""
        homes = np.repeat(home[self.owner], segment_lengths(self.entry_ptr))
        return segment_all(~self.taken | (label[self.successor] == homes), self.entry_ptr)

    def expectations(self, value: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the expected value of every vertex and a bound of its rounding, (V,) each."""
        if not len(self.rows):
            return np.empty(0), np.empty(0)
        first = self.entry_ptr[:-1]
        given = np.where(self.taken, value[self.successor], np.nan)
        high, low = np.fmax.reduceat(given, first), np.fmin.reduceat(given, first)
        sizes = segment_lengths(self.entry_ptr)
        change = np.where(self.taken, given - np.repeat(low, sizes), 0.0)
        mean = low + np.add.reduceat(self.probability * change, first)
        return np.clip(mean, low, high), expectation_margin(sizes, low, high)

    def best(self, q: FloatArray, chosen: BoolArray, sign: float) -> tuple[FloatArray, IntArray]:
        """Return the best number q (V,) of the chosen vertices of every row (N,), and that vertex.

        The best is the largest if `sign` is +1. A row without chosen vertices has -sign * inf and
        vertex -1.
        """
        if not len(self.rows):
            return np.empty(0), np.empty(0, dtype=np.int64)
        given = np.where(chosen, q, -sign * np.inf)
        reduce = np.maximum if sign > 0.0 else np.minimum
        result: FloatArray = reduce.reduceat(given, self.vertex_ptr[:-1])
        hit = chosen & (given == result[self.owner])
        place = np.where(hit, np.arange(len(hit)), len(hit))
        first = np.minimum.reduceat(place, self.vertex_ptr[:-1])
        return result, np.where(first < len(hit), first, -1)

    def distribution(self, vertex: int) -> FloatArray:
        """Return the joint distribution (K,) of a vertex over the successors of its row."""
        return self.probability[segment(self.entry_ptr, vertex)]


def _products(
    model: FactoredMDP, ids: tuple[int, ...], left: int, corners: dict[int, FloatArray | None]
) -> VertexProducts:
    """Return all vertex products (N, K) of some marginals; none if they are too many.

    `corners` has the vertices of marginals that were met before, None for those without.
    """
    for j in ids:
        if j not in corners:
            size, corners[j] = int(model.marginals.sizes[j]), None
            with suppress(UnsupportedError):  # it has none, or too many
                points = vertices_bulk(model.marginals, np.array([j]), max(left // size, 1))[1]
                corners[j] = points.reshape(-1, size)
    factors = [result for j in ids if (result := corners[j]) is not None]
    if len(factors) < len(ids) or math.prod(f.size for f in factors) > left:
        return NOTHING
    joint: FloatArray = np.ones((1, 1))
    taken: BoolArray = np.ones((1, 1), dtype=np.bool_)
    for factor in factors:
        width = joint.shape[1] * factor.shape[1]
        # products and outcomes both in C order
        joint = (joint[:, None, :, None] * factor[None, :, None, :]).reshape(-1, width)
        taken = (taken[:, None, :, None] & (factor > 0.0)[None, :, None, :]).reshape(-1, width)
    return VertexProducts(joint, taken)


GUESSED = 1e-12  # nature takes what its answer gives more than this; a guess, checked later


class ProvenBackups:
    """Backups of bounds: side +1 from above, -1 from below.

    Three things are settled by structure and not by numbers: rows that certainly meet an
    infinite state are infinite; a minimising nature keeps away from infinite states; and in a
    group of equal values a product that stays gives exactly that value.
    """

    def __init__(self, region: Region, operator: Operator) -> None:
        self.problem = problem = region.problem
        self.region, self.operator, self.model = region, operator, problem.model
        self.row_state = region.graph.edges.row_state
        self.states = np.flatnonzero(region.open)
        self.open_rows = entries(self.model.row_ptr, self.states)
        self.nature_lingers = problem.nature is problem.lingerer
        self._infinite = np.isinf(region.known)
        self._dodging = self._meeting_infinity()

    @cached_property
    def faces(self) -> Faces:
        """Vertices of all rows without reward in which nature has a choice of supports."""
        rows = self.open_rows
        bends = self.region.graph.flexible[rows] & (self.problem.reward[rows] == 0.0)
        return Faces(self.model, rows[bends & self.region.finite_rows[rows]])

    def _meeting_infinity(self) -> Faces | None:
        """Return the faces of rows where a minimising nature has to dodge infinite states."""
        if self.problem.nature is MAX or not self._infinite.any():
            return None
        rows = self.open_rows[self.region.finite_rows[self.open_rows]]
        meets = self.region.graph.rows_possible(self._infinite)[rows]
        return Faces(self.model, rows[meets]) if meets.any() else None

    def _dodge(
        self, faces: Faces, q: FloatArray, value: FloatArray, rows: IntArray, side: float
    ) -> None:
        """Replace rows in which nature avoids infinite states by their best vertex that does."""
        if side > 0.0:  # rows beyond the budget stay unproven
            q[rows[self.region.graph.rows_possible(self._infinite)[rows]]] = np.inf
        stays = faces.staying(self._infinite.astype(np.int64), np.zeros_like(faces.rows))
        mean, margin = faces.expectations(np.where(self._infinite, 0.0, value))
        best, _ = faces.best(mean + side * margin, stays, -1.0)
        fine = np.isfinite(best) & np.isin(faces.rows, rows)
        listed, best = faces.rows[fine], best[fine]
        reward = self.problem.reward[listed]
        slack = np.where(reward != 0.0, reward_margin(reward, best), 0.0)
        q[listed] = reward + best + side * slack

    def of(
        self, value: FloatArray, side: float, fixed: IntArray | None, groups: Groups
    ) -> FloatArray:
        """Return the image (N,) of the open states, for a fixed choice (S,) or the best rows."""
        rows = self.open_rows if fixed is None else fixed[self.states]
        needed = rows
        if self._dodging is None:  # `_stay` settles rows that cannot leave their group
            settled = groups.rows & ~self.region.graph.flexible
            needed = rows[(self.region.finite_rows & ~settled)[rows]]
        self.operator.backup(value, needed)
        q = self.operator.side(side).copy()
        if self._dodging is not None:
            self._dodge(self._dodging, q, value, rows, side)
        q[rows[~self.region.finite_rows[rows]]] = np.inf
        if groups.count:
            self._stay(q, value, rows, side, groups)
        if fixed is not None:
            return q[rows]
        return self.operator.best(q, self.states)

    def _stay(
        self, q: FloatArray, value: FloatArray, rows: IntArray, side: float, groups: Groups
    ) -> None:
        """Settle rows that can stay in their group, in place: staying gives its value exactly."""
        free = rows[self.problem.reward[rows] == 0.0]
        low, high = np.empty(len(free)), np.empty(len(free))
        kernels.row_span(free, self.model.successor_ptr, self.model.successors, value, low, high)
        q[free] = np.clip(q[free], low, high)  # a mean lies between the extremes
        rigid = free[groups.rows[free] & ~self.region.graph.flexible[free]]
        q[rigid] = value[self.row_state[rigid]]  # these never leave
        stays, leave, _ = self.leaving(value, side, groups)
        listed = self.faces.rows
        here = value[self.row_state[listed]]
        if self.nature_lingers:
            settled = np.maximum(here, leave) if side > 0.0 else np.minimum(here, leave)
        else:
            settled = np.minimum(q[listed], here) if side > 0.0 else np.maximum(q[listed], here)
        q[listed[stays]] = settled[stays]

    def leaving(
        self, value: FloatArray, side: float, groups: Groups
    ) -> tuple[BoolArray, FloatArray, IntArray]:
        """Return which rows of `faces` can stay in their group, and their best ways out.

        Returns stays (F,), the best proven value of leaving (F,), infinite if there is none, and
        its vertex (F,), or -1.
        """
        faces = self.faces
        home = groups.label[self.row_state[faces.rows]]
        inside = faces.staying(groups.label, home) & groups.rows[faces.rows][faces.owner]
        inside &= home[faces.owner] >= 0
        mean, margin = faces.expectations(value)
        leave, vertex = faces.best(mean + side * margin, ~inside, side)
        stays = np.zeros(len(faces), dtype=np.bool_)
        stays[faces.owner[inside]] = True
        return stays, leave, vertex


def lingering_groups(backups: ProvenBackups, value: FloatArray, choice: IntArray) -> Groups:
    """Return the groups in which the lingerer can stay, the other player fixed.

    An agent who does not linger follows its choice (S,), nature gives its answers to the value.
    """
    problem, region, graph = backups.problem, backups.region, backups.region.graph
    lingers = problem.agent is problem.lingerer
    rows = backups.open_rows if lingers else choice[backups.states]
    rows = rows[(problem.reward[rows] == 0.0) & region.finite_rows[rows]]
    bends = graph.flexible[rows]
    if not bends.any():
        return region.groups if lingers else no_groups(problem.model)
    # explicit choices: a row of the agent each, and the states that it moves to
    model, (pointer, successor), rigid = problem.model, graph.edges.forward[2:], rows[~bends]
    if backups.nature_lingers:  # one per vertex
        faces = backups.faces
        vertices = np.flatnonzero(np.isin(faces.rows, rows[bends])[faces.owner])
        bent, places = faces.rows[faces.owner[vertices]], entries(faces.entry_ptr, vertices)
        ends = starts(segment_lengths(faces.entry_ptr)[vertices])
        moves: AnyArray = faces.successor[places]
        taken = faces.taken[places]
    else:
        bent = rows[bends]
        ends = starts(segment_lengths(model.successor_ptr)[bent])
        moves = model.successors[entries(model.successor_ptr, bent)]
        taken = backups.operator.inner.respond(value, bent) > GUESSED
    row = np.concatenate([rigid, bent])
    sizes = np.concatenate([segment_lengths(pointer)[rigid], np.diff(starts(taken)[ends])])
    to = np.concatenate([successor[entries(pointer, rigid)], moves[taken]]).astype(np.int32)
    order = np.argsort(row, kind="stable")
    to, row = to[entries(starts(sizes), order)], row[order]
    row_ptr = starts(np.bincount(model.row_states[row], minlength=model.states))
    edges = Edges(row_ptr, starts(sizes[order]), to)
    result = end_components(edges, np.ones(len(row), dtype=np.bool_), region.open)
    stays = np.zeros(model.rows, dtype=np.bool_)
    stays[row[result.rows]] = True
    return Groups(result.label, stays)
