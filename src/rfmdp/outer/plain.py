"""Rows in which nature has no choice, or that of one box, packed as sparse arrays.

Rows of several uncertain marginals need an inner solver; a component without them is solved in
compiled code (`kernels.walk`) that carries proven bounds from component to component, with the
free end components of `region` as one node each. Where a component mixes slowly the compiled code
stops, the chain of the rows at hand is solved by elimination, and sweeps go on from its value.

Loose checks are enough there (docs/soundness.md), as no play can go on for ever without paying: a
component in which nature could keep one, by emptying outcomes, is not plain. So an inductive bound
of a component, given bounds of all below it, is a bound, and the rows that are best for it on the
side of the guarantee are a policy that keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rfmdp.kernels import packed as packing, walk as kernels
from rfmdp.kernels.decorator import budget, expect
from rfmdp.objective import MAX, MIN
from rfmdp.outer.policy_iteration import elimination
from rfmdp.outer.problem import Form, Problem
from rfmdp.outer.region import Region
from rfmdp.outer.solution import Status
from rfmdp.outer.task import BUDGET, STOPS, Clock, LimitReached, StateBounds, Task, status_of
from rfmdp.ragged import owners, segment_any, segment_lengths, segment_sum, starts
from rfmdp.rounding import TINY
from rfmdp.sets.marginals import Kind
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray

ZERO, ONE, FIRST = 0, 1, 2  # nodes of known value, and the first of the others
LARGEST_BOX = 32  # outcomes; larger ones are not worth an insertion sort
DIRECT = 20_000  # nodes of a component whose chain is worth an elimination
ANSWERED = 60  # times that a component is helped so
ATTEMPTS = 8  # rounds
COARSE = 1.0  # relative width of bounds that are better than none
FLOOR = 2.0**-44  # of the relative residual that is asked for
RESERVE = 0.3  # of the time, for a last proof
SMALLEST = 1e-299  # probability of a row's rarest move that floats multiply without loss


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """The open part of a problem as sparse arrays; see `kernels.packed` and `kernels.walk`."""

    component_ptr: IntArray  # (C + 1,) nodes of every component
    row_ptr: IntArray  # (N + 1,) rows of every node
    single: BoolArray  # (C,) components of one node; nature does not decide how long to stay
    rows: tuple[AnyArray, ...]  # of R' rows, see `kernels.packed`
    origin: IntArray  # (R',) the model's row
    node: IntArray  # (S,) of every state; that of an infinite state is ZERO and means nothing

    @property
    def nodes(self) -> tuple[IntArray, IntArray, BoolArray]:
        """The arrays that kernels know by this name."""
        return self.component_ptr, self.row_ptr, self.single


def plain_rows(problem: Problem) -> BoolArray:
    """Return the rows (R,) in which nature has no choice, or that of one small box."""
    model = problem.model
    marginals, ptr, ids = model.marginals, model.marginal_ptr, model.row_marginals
    uncertain = marginals.kind != Kind.SINGLETON
    if not np.any(uncertain[ids]):
        return _representable(problem)
    small_box = (marginals.kind == Kind.BOX) & (marginals.sizes <= LARGEST_BOX)
    choices = segment_sum(uncertain[ids].astype(np.float64), ptr)
    moving = segment_sum((marginals.sizes > 1)[ids].astype(np.float64), ptr)
    others = segment_any((uncertain & ~small_box)[ids], ptr)
    one_box = (choices == 1.0) & (moving <= 1.0) & ~others
    plain: BoolArray = _representable(problem) & ((choices == 0.0) | one_box)
    return plain


def _representable(problem: Problem) -> BoolArray:
    """Return the rows (R,) whose rarest move has a probability that floats can hold."""
    model, marginals = problem.model, problem.model.marginals
    given = np.where(marginals.nominal > 0.0, marginals.nominal, 1.0)
    least = np.log(np.minimum.reduceat(given, marginals.outcome_ptr[:-1])) if given.size else given
    most = int(np.max(segment_lengths(model.marginal_ptr), initial=0))
    if most * float(np.min(least, initial=0.0)) > np.log(SMALLEST):
        return np.ones(model.rows, dtype=np.bool_)
    rare: BoolArray = segment_sum(least[model.row_marginals], model.marginal_ptr) > np.log(SMALLEST)
    return rare


def is_plain(region: Region) -> bool:
    """Return whether the open part of a region is for compiled code, see above."""
    problem, graph = region.problem, region.graph
    used = region.allowed & region.open[graph.edges.row_state]
    if np.any(used & ~plain_rows(problem)):
        return False
    bends = used & graph.flexible
    if not bends.any():
        return True
    infinite = np.isinf(region.known)
    dodges = problem.nature is MIN and bool(np.any(bends & graph.rows_possible(infinite)))
    return not dodges and not _lingering(region, bends)


def _lingering(region: Region, bends: BoolArray) -> bool:
    """Return whether rows `bends` (R,) may keep a play for ever where it pays nothing."""
    problem, parts, graph = region.problem, region.components, region.graph
    state, free = graph.edges.row_state, region.finite_rows & (problem.reward == 0.0)
    number = parts.component[state]
    suspect: BoolArray = bends & free & ~parts.trivial[number]
    if not suspect.any():
        return False
    chosen = np.zeros(len(parts.trivial), dtype=np.bool_)
    chosen[number[suspect]] = True
    inside = region.open & chosen[parts.component]
    stuck = inside & ~segment_any(free, problem.model.row_ptr)
    leaves = graph.with_rows(free).positive(~inside | stuck, inside, agent=MIN, nature=MIN)
    return bool(np.any(suspect & ~leaves[state] & graph.rows_can_stay(inside & ~leaves)))


def pack(region: Region) -> Packed:
    """Return the open part of a region, in which all rows are plain."""
    model = region.problem.model
    used = region.allowed & region.open[region.graph.edges.row_state]
    members, node, component_ptr = _nodes(region)
    counts = segment_sum(used.astype(np.float64), model.row_ptr)
    per_node = np.bincount(node[members], counts[members], minlength=int(component_ptr[-1]))
    row_ptr = starts(per_node.astype(np.int64))
    rows, origin, loops = _pack_rows(region.problem, members, node, used, whole=False)
    single = (segment_lengths(component_ptr) == 1) & ~segment_any(loops, row_ptr[component_ptr])
    return Packed(component_ptr, row_ptr, single, rows, origin, node)


def players(problem: Problem) -> tuple[float, float, IntArray]:
    """Return both directions, and memory to sort one box: see `kernels.packed`."""
    return problem.agent.sign, problem.nature.sign, np.empty(LARGEST_BOX + 1, dtype=np.int64)


def pack_all(problem: Problem) -> tuple[AnyArray, ...] | None:
    """Return all rows of the model packed, or None if some row is not plain."""
    model = problem.model
    if not np.all(plain_rows(problem)):
        return None
    states, rows = np.arange(model.states), np.ones(model.rows, dtype=np.bool_)
    return _pack_rows(problem, states, states, rows, whole=True)[0]


def _pack_rows(
    problem: Problem, members: IntArray, node: IntArray, used: BoolArray, whole: bool
) -> tuple[tuple[AnyArray, ...], IntArray, BoolArray]:
    """Return packed rows, the model's row of each, and where nature decides how much of it stays.

    members : states in the order of their nodes
    node : (S,)
    used : (R,) rows to pack
    whole : whether moves back to a row's own node are kept as entries
    """
    model, marginals = problem.model, problem.model.marginals
    sizes = segment_lengths(model.successor_ptr)
    count = int(np.count_nonzero(used))
    entries = int(sizes[used].sum())
    boxes = bool(np.any(marginals.kind[model.row_marginals] == Kind.BOX))
    rows: tuple[AnyArray, ...] = (
        np.zeros(count + 1, dtype=np.int64),
        np.empty(entries, dtype=np.int32),
        np.empty(entries),
        np.empty(entries if boxes else 0),
        *(np.empty(count) for _ in range(5)),
    )
    origin, loops = np.empty(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
    # a box stays one if its free mass is less than the sum of its lower bounds can tell: the error
    # of a drift counts what is left of it in full
    bends = segment_any(marginals.upper > marginals.lower, marginals.outcome_ptr)
    mass = 1.0 - segment_sum(marginals.lower, marginals.outcome_ptr)
    free = np.maximum(np.where(bends, TINY, 0.0), mass)
    free[marginals.kind == Kind.SINGLETON] = 0.0
    sets = marginals.nominal, marginals.lower, marginals.upper, free
    seen = np.full(int(node.max(initial=0)) + 1, -1, dtype=np.int64)
    work = seen, np.empty(int(sizes.max(initial=1)) + 1)
    chosen = members, node, used
    packing.pack(chosen, problem.reward, model.structure, sets, work, rows, origin, loops, whole)
    return rows, origin, loops


def _nodes(region: Region) -> tuple[IntArray, IntArray, IntArray]:
    """Return (open states by node, node of every state, nodes of every component).

    Groups are one node each.
    """
    parts, label = region.components, region.groups.label
    states, node = parts.states, np.where(region.known == 1.0, ONE, ZERO)
    if label.max(initial=-1) < 0:
        node[states] = np.arange(FIRST, FIRST + len(states))
        return states, node, FIRST + parts.component_ptr
    first = np.arange(len(states))
    grouped = np.flatnonzero(label[states] >= 0)
    lead = np.full(int(label.max(initial=-1)) + 1, len(states))
    np.minimum.at(lead, label[states[grouped]], grouped)
    first[grouped] = lead[label[states[grouped]]]
    order = np.argsort(first, kind="stable")
    members = states[order]
    leads = first[order] == order
    node[members] = FIRST - 1 + np.cumsum(leads)
    component = owners(parts.component_ptr)[order[leads]]
    return members, node, FIRST + starts(np.bincount(component, minlength=len(parts.trivial)))


class NodeBounds(NamedTuple):
    """What a walk fills in for every node, arrays (N,); see `kernels.walk`."""

    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    choice: IntArray  # packed row that is best for the value
    shape: FloatArray  # how errors of values add up
    rule: IntArray  # packed row that is best for the bound at hand


class PlainWalk:
    """A walk through packed components from a first `value` (N,); `bounds` are what it proves."""

    def __init__(self, packed: Packed, problem: Problem, value: FloatArray) -> None:
        self.packed = packed
        self._players = players(problem)
        size = len(value)
        top = 1.0 if problem.form is Form.REACH else np.inf
        choice = packed.row_ptr[:-1]
        self.bounds = NodeBounds(
            value, np.zeros(size), np.full(size, top), choice.copy(), np.zeros(size), choice.copy()
        )
        for node, number in ((ZERO, 0.0), (ONE, 1.0)):
            value[node] = self.bounds.lower[node] = self.bounds.upper[node] = number
        self._place = np.zeros(6, dtype=np.int64)
        self._pace = np.array([1.0, 0.0, 0.0, 0.0])

    @property
    def component(self) -> int:
        """Where it stands: all components before are settled."""
        return int(self._place[kernels.COMPONENT])

    @property
    def done(self) -> bool:
        """Whether all components are settled."""
        return self.component == len(self.packed.single)

    def run(self, width: float, clock: Clock) -> None:
        """Settle all components to a relative width; it stands at one that needs more."""
        p, helped, at = self.packed, 0, self.component
        while True:
            end = kernels.walk(
                p.nodes, p.rows, self._players, tuple(self.bounds), (self._place, self._pace),
                len(p.single), width, budget(BUDGET), DIRECT if helped < ANSWERED else 0,
            )  # fmt: skip
            if self.component != at:
                at, helped = self.component, 0
            if end in (kernels.SETTLED, kernels.FAILED):
                return
            if end == kernels.PAUSED:
                expect(BUDGET)
            if end == kernels.PAUSED and helped >= ANSWERED:
                return
            if end == kernels.SLOW:  # the value of the chain helps; bounds begin around it
                helped += 1
                if self._place[kernels.PHASE] < kernels.LOWER and not self._solve_chain():
                    self.make_progress(at)
                    self._solve_chain()
            clock.tick("solve", float(self._pace[kernels.CHANGE]))

    def make_progress(self, component: int) -> None:
        """Choose rows of a component whose chain ends, at more than 0 where there is a way."""
        p, (first, last) = self.packed, self._nodes(component)
        reached = np.zeros(last - first, dtype=np.bool_)
        packing.make_progress(p.nodes, p.rows, tuple(self.bounds), first, last, reached)

    def _nodes(self, component: int) -> tuple[int, int]:
        first, last = self.packed.component_ptr[component : component + 2].tolist()
        return first, last

    def _solve_chain(self) -> bool:
        """Give the nodes of the component the value of their chain; return whether it has one.

        `shape` becomes the expected sum of these values along the chain, which says how errors add
        up. A chain that does not end, or is worth nothing, came from meaningless values.
        """
        bounds, pace, (first, last) = self.bounds, self._pace, self._nodes(self.component)
        rows, count, chosen = self.packed.rows, last - first, bounds.choice[first:last]
        entry_ptr, reward = rows[0], rows[7]
        most = count + int(np.sum(entry_ptr[chosen + 1] - entry_ptr[chosen]))
        ptr = np.empty(count + 1, dtype=np.int32)  # I - P by rows: pointers, columns, entries
        inside, entry = np.empty(most, dtype=np.int32), np.empty(most)
        constant = np.empty(count)  # what moves to other nodes are worth
        out = ptr, inside, entry, constant
        used = packing.chain(rows, self._players, bounds.value, bounds.choice, first, last, out)
        away = entry[ptr[:-1]]  # how likely nodes are left; SciPy sorts the entries in place
        solve = elimination(ptr, inside[:used], entry[:used], panel=1)
        value = None if solve is None else solve(reward[chosen] + constant)
        if solve is None or value is None:
            return False
        value = np.maximum(value, 0.0)
        size = value + kernels.FLOOR * float(value.max())
        total = solve(away * size)
        if total is None or not np.all(total > 0.0):
            return False
        bounds.value[first:last], bounds.shape[first:last] = value, total
        pace[kernels.STEPS] = float(np.max(total / size))
        pace[kernels.RATE] = 1.0 - 1.0 / max(pace[kernels.STEPS], 1.0)
        return True


class Rounds:
    """Walks through plain components; `result` is what is proven, `stuck` says that one cannot be.

    `share` is the part of a precision that the width of one component may take.
    """

    def __init__(self, task: Task, region: Region, warm: FloatArray | None) -> None:
        self.task, self.region, self.packed = task, region, pack(region)
        # widths add up over levels with components that are more than one node
        levels = segment_any(~self.packed.single, region.components.level_ptr)
        self.share = 0.5 / max(int(np.count_nonzero(levels)), 2)
        lower, upper = region.trivial_bounds()
        self.result = StateBounds(lower, upper, lower, region.choice)
        self.stuck = False
        self._proven = False
        self._value = np.zeros(int(self.packed.component_ptr[-1]))
        if warm is not None:
            self._value[self.packed.node[region.open]] = warm[region.open]

    def settle(self) -> None:
        """Settle all components, again with less width each until the bounds are close."""
        task = self.task
        width = max(self.share * task.limits.precision, FLOOR)
        try:
            for attempt in range(ATTEMPTS):
                self._first_round(width) if attempt == 0 else self._run(width)
                excess = task.excess(self.result.lower, self.result.upper)
                if self.stuck or excess <= 1.0 or width <= FLOOR:
                    break
                width = max(width / max(3.0 * min(excess, 1e6), 4.0), FLOOR)
            task.clock.tick("solve", width)
        except STOPS as stop:
            self.result.stopped = status_of(stop)

    def _first_round(self, width: float) -> None:
        """Settle all components; if most of the time is over before that, coarsely first.

        Sweeps keep their values, so coarse bounds take a fraction of the time of precise ones.
        """
        clock = self.task.clock
        clock.reserve = RESERVE
        try:
            self._run(width)
        except LimitReached as stop:
            clock.last_chance()
            self._run(COARSE)
            if stop.status is Status.SWEEP_LIMIT:
                raise
            self._run(width)
        clock.reserve = 0.0

    def _run(self, width: float) -> None:
        """Settle all components to about a relative width each.

        What a stopped round has proven is kept only if nothing was proven before.
        """
        walk = PlainWalk(self.packed, self.task.problem, self._value)
        try:
            walk.run(width, self.task.clock)
            self.stuck = not walk.done
        finally:
            if walk.done or not self._proven:
                self._keep(walk)
        self.task.stats.robust_sweeps += 1

    def _keep(self, walk: PlainWalk) -> None:
        """Take the bounds of all settled components; the guarantee is that of one round."""
        packed, region, bounds, before = self.packed, self.region, walk.bounds, self.result
        node = packed.node
        settled = region.open & (node < packed.component_ptr[walk.component])
        settled &= np.isfinite(bounds.lower[node])
        lower = np.where(settled, bounds.lower[node], before.lower)
        upper = np.where(settled, bounds.upper[node], before.upper)
        if region.problem.agent is MAX:
            upper = np.minimum(upper, before.upper)
        else:
            lower = np.maximum(lower, before.lower)
        value = np.where(settled, bounds.value[node], before.lower)
        choice = region.choice.copy()
        choice[settled] = packed.origin[bounds.choice[node[settled]]]
        self._proven, self.result = True, StateBounds(lower, upper, value, choice)
