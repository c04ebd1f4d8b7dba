"""Models in which nature has no choice, or that of one box per row: swept component by component.

Rows of several uncertain marginals need an inner solver; all others are packed once as sparse
arrays, with the free end components of `region` as one node each, and solved in compiled code
(`kernels.walk`) that carries proven bounds from component to component.

Why loose checks are enough here. Nature cannot empty an outcome of these rows, so whether a play
goes on for ever is up to the agent alone. Where it could go on at no reward, in an end component
of free rows, all its states are one node, from which only the rows that may leave are taken. What
goes on for ever then pays infinitely much, and only an agent who minimises could be so foolish:

- L <= T(L): unrolled along a policy that ends (the best one does), L is at most its value; and if
  the agent maximises, the rows that are best for L are such a policy.
- U >= T(U), U finite and not negative: unrolled along the rows that are best for U, all that is
  ever paid is at most U, so they end, and U bounds their value; if the agent maximises, it bounds
  that of all policies.

So an inductive bound of a component, given bounds of all below it, is a bound, and the rows that
are best for it on the side of the guarantee are a policy that keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rfmdp.kernels import packed as packing
from rfmdp.kernels import walk as kernels
from rfmdp.objective import MAX
from rfmdp.outer.problem import Problem
from rfmdp.outer.region import Region
from rfmdp.outer.settings import Clock
from rfmdp.ragged import owners, segment_any, segment_sum, starts
from rfmdp.sets.marginals import Kind
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse.linalg import SuperLU

ZERO, ONE, FIRST = 0, 1, 2  # nodes of known value, and the first of the others
LARGEST_BOX = 32  # outcomes; larger ones are not worth an insertion sort
BUDGET = 20_000_000  # entries between two looks at the clock
DIRECT = 20_000  # nodes of a component whose chain is worth an elimination
ANSWERED = 60  # times that a component is helped so


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """The open part of a problem as sparse arrays; see `kernels.packed` and `kernels.walk`."""

    nodes: tuple[IntArray, IntArray]
    rows: tuple[AnyArray, ...]
    single: BoolArray  # (C,) components of one node, nature not deciding how long to stay
    origin: IntArray  # (R',) the model's row
    node: IntArray  # (S,) of every state; that of an infinite state is ZERO and means nothing
    order: IntArray  # memory to sort one box


def plain_rows(problem: Problem) -> BoolArray:
    """Return the rows (R,) in which nature has no choice, or that of one small box."""
    model = problem.model
    marginals, ptr = model.marginals, model.marginal_ptr
    choice = marginals.kind != Kind.SINGLETON
    wide = marginals.sizes > 1
    fits = (marginals.kind == Kind.BOX) & (marginals.sizes <= LARGEST_BOX)
    ids = model.row_marginals
    choices = segment_sum(choice[ids].astype(np.float64), ptr)
    sizes = segment_sum(wide[ids].astype(np.float64), ptr)
    box: BoolArray = (choices == 1.0) & (sizes == 1.0) & ~segment_any((choice & ~fits)[ids], ptr)
    either: BoolArray = box | (choices == 0.0)
    return either


def pack(problem: Problem, region: Region) -> Packed | None:
    """Return the open part packed, or None if some row needs more."""
    model = problem.model
    used = region.allowed & region.open[region.graph.edges.row_state]
    if not np.all(plain_rows(problem)[used]) or np.any(region.graph.flexible[used]):
        return None
    members, node, component_ptr = _nodes(region)
    counts = segment_sum(used.astype(np.float64), model.row_ptr)
    per_node = np.bincount(node[members], counts[members], minlength=int(component_ptr[-1]))
    row_ptr = starts(per_node.astype(np.int64))
    found = _pack_rows(problem, members, node, used, whole=False)
    if found is None:
        return None
    rows, origin, loops = found
    single = (np.diff(component_ptr) == 1) & ~segment_any(loops, row_ptr[component_ptr])
    return Packed((component_ptr, row_ptr), rows, single, origin, node, box_memory())


def box_memory() -> IntArray:
    """Return memory to sort one box."""
    return np.empty(LARGEST_BOX + 1, dtype=np.int64)


def pack_all(problem: Problem) -> tuple[AnyArray, ...] | None:
    """Return all rows of the model packed, none left out, or None if some row needs more."""
    model = problem.model
    if not np.all(plain_rows(problem)):
        return None
    states, rows = np.arange(model.states), np.ones(model.rows, dtype=np.bool_)
    found = _pack_rows(problem, states, states, rows, whole=True)
    return None if found is None else found[0]


def _pack_rows(
    problem: Problem, members: IntArray, node: IntArray, used: BoolArray, whole: bool
) -> tuple[tuple[AnyArray, ...], IntArray, BoolArray] | None:
    """Return (rows, the model's row of each, whether nature decides how much of it stays)."""
    model, marginals = problem.model, problem.model.marginals
    sizes = np.diff(model.successor_ptr)
    count, entries = int(np.count_nonzero(used)), int(sizes[used].sum())
    boxes = bool(np.any(marginals.kind[model.row_marginals] == Kind.BOX))
    rows: tuple[AnyArray, ...] = (
        np.zeros(count + 1, dtype=np.int64),
        np.empty(entries, dtype=np.int32),
        np.empty(entries),
        np.empty(entries if boxes else 0),
        *(np.empty(count) for _ in range(5)),
    )
    origin, loops = np.empty(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
    free = np.maximum(0.0, 1.0 - segment_sum(marginals.lower, marginals.outcome_ptr))
    free[marginals.kind == Kind.SINGLETON] = 0.0
    found = packing.pack(
        members, node, used, problem.reward,
        (model.row_ptr, model.marginal_ptr, model.row_marginals, model.successor_ptr,
         model.successors),
        (marginals.outcome_ptr, marginals.nominal, marginals.lower, marginals.upper, free),
        np.full(int(node.max(initial=0)) + 1, -1, dtype=np.int64),
        np.empty(int(sizes.max(initial=1)) + 1), rows, origin, loops, whole,
    )  # fmt: skip
    return None if found < 0 else (rows, origin, loops)


def _nodes(region: Region) -> tuple[IntArray, IntArray, IntArray]:
    """Return (open states by node, node of every state, nodes of every component)."""
    parts, label = region.components, region.groups.label
    states = parts.states
    first = np.arange(len(states))
    grouped = np.flatnonzero(label[states] >= 0)
    lead = np.full(int(label.max(initial=-1)) + 1, len(states))
    np.minimum.at(lead, label[states[grouped]], grouped)
    first[grouped] = lead[label[states[grouped]]]
    order = np.argsort(first, kind="stable")
    members = states[order]
    leads = first[order] == order
    node = np.where(region.known == 1.0, ONE, ZERO)
    node[members] = FIRST - 1 + np.cumsum(leads)
    counts = np.bincount(owners(parts.component_ptr)[order[leads]], minlength=len(parts.trivial))
    return members, node, FIRST + starts(counts)


class Walk:
    """Bounds of all nodes, made better round by round; `lower`, `upper`, `choice` are proven."""

    def __init__(self, problem: Problem, packed: Packed, clock: Clock, top: float) -> None:
        self.problem, self.packed, self.clock = problem, packed, clock
        size = int(packed.nodes[0][-1])
        self.value = np.zeros(size)
        self.lower, self.upper = np.zeros(size), np.full(size, top)
        self.choice = packed.nodes[1][:-1].copy()
        for bound in (self.value, self.lower, self.upper):
            bound[ZERO], bound[ONE] = 0.0, 1.0

    def run(self, width: float) -> bool:
        """Settle all components to about a relative width each; returns whether all could be.

        Values that leave the floats cannot: they are finite, and infinity is no bound of them.
        What an interrupted run has proven is kept only if nothing was proven before.
        """
        p, sign = self.packed, self.problem.agent.sign
        nature = 1.0 if self.problem.nature is MAX else -1.0
        place, pace = np.zeros(6, dtype=np.int64), np.array([1.0, 0.0, 0.0, 0.0])
        helped, at = 0, 0
        bounds = (
            self.value, self.lower.copy(), self.upper.copy(), self.choice.copy(),
            np.zeros(len(self.value)), self.choice.copy(),
        )  # fmt: skip
        while True:
            found = kernels.walk(
                p.nodes, p.rows, bounds, p.single, place, pace, p.order, sign, nature, width,
                BUDGET, DIRECT if helped < ANSWERED else 0,
            )  # fmt: skip
            if place[kernels.COMPONENT] != at:
                at, helped = int(place[kernels.COMPONENT]), 0
            if found == kernels.SETTLED:
                break
            if found == kernels.FAILED:
                return False
            if found == kernels.SLOW:
                helped += 1
                if place[kernels.PHASE] >= kernels.LOWER:
                    side = -1.0 if place[kernels.PHASE] == kernels.LOWER else 1.0
                    tried = width * 0.125 ** place[kernels.TRIES]
                    self._solve_side(bounds, pace, at, nature, side, tried)
                elif not self._solve_chain(bounds, pace, at, nature):
                    self._make_progress(bounds, at)
                    self._solve_chain(bounds, pace, at, nature)
            self.clock.tick("solve", float(pace[kernels.CHANGE]))
        if not (np.isfinite(bounds[1]).all() and np.isfinite(bounds[2]).all()):
            return False
        _, self.lower, self.upper, self.choice = bounds[:4]
        return True

    def spread(
        self, region: Region, low: FloatArray, high: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the bounds of all states, no wider than the given ones (S,)."""
        node = self.packed.node
        lower = np.where(region.open, np.maximum(self.lower[node], low), low)
        return lower, np.where(region.open, np.minimum(self.upper[node], high), high)

    def _make_progress(self, bounds: tuple[AnyArray, ...], component: int) -> None:
        """Choose rows of a component whose chain ends, at more than 0 where there is a way."""
        p = self.packed
        first, last = (int(n) for n in p.nodes[0][component : component + 2])
        reached = np.zeros(last - first, dtype=np.bool_)
        kernels.make_progress(p.nodes, p.rows, bounds, first, last, reached)

    def _solve_chain(
        self, bounds: tuple[AnyArray, ...], pace: FloatArray, component: int, nature: float
    ) -> bool:
        """Give the nodes of a component the value of the chain at hand, if there is one.

        And the expected sum of these values along it, which says how errors add up. Returns False
        for a chain that does not end, or is worth nothing: one that values of no meaning led to.
        """
        first, last = (int(n) for n in self.packed.nodes[0][component : component + 2])
        try:
            factors, paid = self._chain((bounds[0], bounds[3]), first, last, nature)
            value = np.maximum(factors.solve(paid, "T"), 0.0)
            size = value + kernels.FLOOR * float(value.max())
            total = factors.solve(size, "T")
        except RuntimeError:  # singular: a trap of this chain
            return False
        if not (np.isfinite(value).all() and np.isfinite(total).all() and np.all(total > 0.0)):
            return False
        bounds[0][first:last], bounds[4][first:last] = value, total
        pace[kernels.STEPS] = float(np.max(total / size))
        pace[kernels.RATE] = 1.0 - 1.0 / max(pace[kernels.STEPS], 1.0)
        return True

    def _solve_side(
        self,
        bounds: tuple[AnyArray, ...],
        pace: FloatArray,
        component: int,
        nature: float,
        side: float,
        width: float,
    ) -> None:
        """Give a bound of a component its limit along the rows that are best for it now.

        Every step pushes it outwards. Where other rows are as good as those of the value but lead
        through more steps, the chain of the value says too little of how errors add up; this one
        says more with every change of its rows.
        """
        first, last = (int(n) for n in self.packed.nodes[0][component : component + 2])
        x = bounds[1] if side < 0.0 else bounds[2]
        size = bounds[0][first:last] + kernels.FLOOR * pace[kernels.SCALE]
        try:
            factors, paid = self._chain((x, bounds[5]), first, last, nature)
            value, total = factors.solve(paid, "T"), factors.solve(size, "T")
        except RuntimeError:  # singular: a trap of this chain
            return
        if np.isfinite(value).all() and np.isfinite(total).all() and np.all(total > 0.0):
            # the push never grows again: rows that settle for one push may not for another
            pace[kernels.STEPS] = max(float(np.max(total / size)), pace[kernels.STEPS])
            step = max(width / pace[kernels.STEPS], 8.0 * kernels.LEAST)
            x[first:last] = np.maximum(value + side * step * total, 0.0)

    def _chain(
        self, at: tuple[FloatArray, IntArray], first: int, last: int, nature: float
    ) -> tuple[SuperLU, FloatArray]:
        """Return (factors, right side) of the chain of rows at[1]; other nodes are worth at[0].

        The factors are of the transpose: rows are columns to SciPy.
        """
        from scipy.sparse import csc_array
        from scipy.sparse.linalg import splu

        p, count, choice = self.packed, last - first, at[1][first:last]
        most = count + int(np.sum(p.rows[0][choice + 1] - p.rows[0][choice]))
        ptr, inside = np.empty(count + 1, dtype=np.int32), np.empty(most, dtype=np.int32)
        entry, known = np.empty(most), np.empty(count)
        found = kernels.chain(p.rows, *at, first, last, nature, p.order, ptr, inside, entry, known)
        turned = csc_array((entry[:found], inside[:found], ptr), shape=(count, count))
        return splu(turned), p.rows[7][choice] + known
