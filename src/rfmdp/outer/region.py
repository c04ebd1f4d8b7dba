"""What graph analysis settles before any number is computed, per form of problem.

Nature minimising may empty outcomes whose lower bound is 0, so all questions are asked of the
game that `graph` describes. Besides the states of known value it says which rows the agent must
not take, and which states share one value (end components in which the agent may stay for free).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from rfmdp.kernels import graph as kernels
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, MIN, Direction
from rfmdp.outer.graph import Edges, Graph
from rfmdp.outer.problem import Form, Problem
from rfmdp.outer.task import Clock, Limits
from rfmdp.ragged import starts
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """Strongly connected components by level, bottom first.

    Level l is the components `level_ptr[l] : level_ptr[l + 1]`; component c is the states
    `states[component_ptr[c] : component_ptr[c + 1]]`. Edges lead to lower levels only, or stay
    within a component, or leave the analysed states.
    """

    component: IntArray  # (S,) -1 for states that were not analysed
    states: IntArray  # (N,) by level, then by component
    component_ptr: IntArray  # (C + 1,)
    level_ptr: IntArray  # (L + 1,)
    trivial: BoolArray  # (C,) a single state that cannot move to itself

    def levels(self) -> list[IntArray]:
        """Return the states (N,) of every level, bottom first."""
        ends = self.component_ptr[self.level_ptr].tolist()
        return [self.states[first:last] for first, last in pairwise(ends)]


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Disjoint sets of states, and the rows that can stay in them."""

    label: IntArray  # (S,) number of the group, -1 outside of all
    rows: BoolArray  # (R,) that can stay in the group of their state

    @property
    def count(self) -> int:
        """Number of groups."""
        return int(self.label.max(initial=-1)) + 1

    @property
    def members(self) -> tuple[IntArray, IntArray]:
        """The states of all groups, one group after the other: pointers (G + 1,) and states."""
        states = np.flatnonzero(self.label >= 0)
        states = states[np.argsort(self.label[states], kind="stable")]
        return starts(np.bincount(self.label[states])), states


def no_groups(model: FactoredMDP) -> Groups:
    """Return no group at all."""
    return Groups(np.full(model.states, -1, dtype=np.int64), np.zeros(model.rows, dtype=np.bool_))


def components(graph: Graph, states: BoolArray | None = None) -> Components:
    """Return the strongly connected components of possible moves among `states` (all if None).

    Tarjan's algorithm, then the longest way down as level of a component. O(K).
    """
    inside = np.ones(graph.model.states, dtype=np.bool_) if states is None else states
    component, order, count = strong_components(graph.edges.forward, inside, graph.rows)
    level, loop = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
    size, kinds = np.bincount(component[order], minlength=count), np.arange(count)
    edges = graph.edges.forward
    kernels.component_levels(edges, graph.rows, component, order, kinds, level, loop)
    rank = np.argsort(level, kind="stable")
    number = np.empty(count + 1, dtype=np.int64)
    number[rank] = np.arange(count)
    number[-1] = -1  # so that -1 stays -1
    component = number[component]
    # Tarjan's list is grouped by the old numbers: sorting by the new ones moves whole groups
    order = order[np.argsort(component[order], kind="stable")]
    return Components(
        component=component,
        states=order,
        component_ptr=starts(size[rank]),
        level_ptr=starts(np.bincount(level)),
        trivial=((size == 1) & ~loop)[rank],
    )


def end_components(edges: Edges, rows: BoolArray, states: BoolArray) -> Groups:
    """Return the maximal end components of some rows (R,) among `states` (S,): where one can stay.

    A row counts as one that makes all of its moves. Rounds of Tarjan's algorithm: rows that may
    leave their component go, then all states that cannot avoid states without rows; components
    that lost nothing are done.
    """
    state = edges.row_state
    still = states
    label = np.full(len(states), -1, dtype=np.int64)
    stay = np.zeros_like(rows)
    result = 0
    while True:
        still, rows = edges.closed(still, rows)
        if not still.any():
            return Groups(label, stay)
        component, _, count = strong_components(edges.forward, still, rows)
        kept = rows.copy()
        kernels.rows_within(edges.forward, component, kept)
        changed = np.zeros(count, dtype=np.bool_)
        changed[component[state[rows & ~kept]]] = True
        done = still & ~changed[component]
        numbers, renamed = np.unique(component[done], return_inverse=True)
        label[done] = result + renamed
        result += len(numbers)
        stay |= rows & done[state]
        still &= ~done
        rows = kept & still[state]


def strong_components(
    edges: tuple[AnyArray, ...], inside: BoolArray, rows: BoolArray
) -> tuple[IntArray, IntArray, int]:
    """Return (component (S,), states grouped by component, number), bottom first.

    `edges` as in `kernels.graph`; only states `inside` and some rows are looked at.
    """
    size = len(inside)
    index = np.where(inside, kernels.UNSEEN, kernels.OUTSIDE).astype(np.int64)
    component = np.full(size, -1, dtype=np.int64)
    low, row, edge, path, order = (np.empty(size, dtype=np.int64) for _ in range(5))
    visits = index, low, row, edge
    count = kernels.strong_components(edges, rows, visits, path, order, component)
    return component, order[: np.count_nonzero(inside)], count


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """The open part of a problem, and what is known of the rest."""

    problem: Problem
    graph: Graph
    known: FloatArray  # (S,) value of states that are not open; inf allowed
    open: BoolArray  # (S,)
    finite_rows: BoolArray  # (R,) rows that are not certainly infinite
    components: Components  # of the open states over these rows
    groups: Groups  # states that share one value, and rows that never leave their group
    choice: IntArray  # (S,) a policy, final where nothing is open

    @property
    def allowed(self) -> BoolArray:
        """The rows (R,) that are finite and leave their group: what the agent iterates on."""
        return self.finite_rows & ~self.groups.rows

    @property
    def cyclic(self) -> bool:
        """Whether some open state can come back to itself."""
        return not bool(self.components.trivial.all())

    def trivial_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the bounds (S,) that hold without any computation."""
        top = 1.0 if self.problem.form is Form.REACH else np.inf
        least = -np.inf if self.problem.form is Form.MIXED else 0.0
        return np.where(self.open, least, self.known), np.where(self.open, top, self.known)

    def with_first_policy(self) -> Region:
        """Return the region with a first policy of the open states.

        It takes rows that come closer to what is known, and allowed ones where there are none.
        """
        graph = self.graph
        choice = self.choice.copy()
        owner = graph.edges.row_state
        rows = np.flatnonzero(self.allowed & self.open[owner])[::-1]
        choice[owner[rows]] = rows
        end = 1.0 if self.problem.form is Form.REACH else 0.0
        graph.with_rows(self.allowed).positive(
            ~self.open & (self.known == end), self.open,
            agent=MAX, nature=_nature_to_end(self.problem), choice=choice,
        )  # fmt: skip
        return replace(self, choice=choice)

    def finish_policy(self, choice: IntArray) -> IntArray:
        """Return a policy (S,) of the open states, completed.

        Settled states get their rows, and the states of a group the way to its exit.
        """
        choice = np.where(self.open, choice, self.choice)
        grouped = self.groups.label >= 0
        if grouped.any():
            exits = np.zeros_like(grouped)
            exits[self.graph.edges.row_state[choice[grouped]]] = True
            inside = self.graph.with_rows(self.groups.rows)
            nature = _nature_to_end(self.problem)
            inside.positive(exits, grouped & ~exits, agent=MAX, nature=nature, choice=choice)
        return choice


def analyse(problem: Problem, clock: Clock | None = None) -> Region:
    """Classify the states of an unbounded problem; a clock may end it by `LimitReached`."""
    look = (clock or Clock(Limits())).check_overdue
    graph, agent, nature = Graph(problem.model), problem.agent, problem.nature
    look()
    known = np.zeros(problem.model.states)
    finite_rows = np.ones(problem.model.rows, dtype=np.bool_)
    choice = problem.model.row_ptr[:-1].copy()
    to_win, to_dodge = (choice, None) if agent is MAX else (None, choice)
    if problem.form is Form.REACH:
        target, stay = problem.target, problem.stay
        positive = graph.positive(target, stay, agent=agent, nature=nature, choice=choice)
        look()
        sure = graph.almost_sure(
            target, stay, agent=agent, nature=nature, choice=to_win, positive=positive
        )
        known[sure | target] = 1.0
        open_ = positive & ~sure & ~target
    elif problem.form in (Form.TO_TARGET, Form.MIXED):
        ends, helps = agent.opposite, nature.opposite
        finite = graph.almost_sure(problem.target, agent=ends, nature=helps, choice=choice)
        known[~finite] = np.inf
        look()
        mixed = problem.form is Form.MIXED
        zero = problem.target if mixed else _free_of_cost(graph, problem, choice)
        open_ = finite & ~zero
    else:
        paying = problem.reward > 0.0
        infinite = graph.recurrent_positive(paying, agent=agent, nature=nature, choice=to_win)
        look()
        known[infinite] = np.inf
        nowhere = problem.target
        paid = graph.positive(nowhere, agent=agent, nature=nature, choice=to_dodge, rows=paying)
        open_ = ~infinite & paid
    if problem.form is not Form.REACH:  # rows that nature must not, or need not move to infinity
        infinite = np.isinf(known)
        must = nature is MAX
        finite_rows = ~graph.rows_possible(infinite) if must else graph.rows_can_stay(~infinite)
    look()
    groups = _groups(graph, problem, open_, finite_rows)
    look()
    parts = components(graph.with_rows(finite_rows), open_)
    return Region(problem, graph, known, open_, finite_rows, parts, groups, choice)


def _free_of_cost(graph: Graph, problem: Problem, choice: IntArray) -> BoolArray:
    """Return where the target is reached almost surely without paying: reward to it is 0.

    An agent that minimises gets the rows for it.
    """
    paying, model = problem.reward > 0.0, problem.model
    stay = np.ones(model.states, dtype=np.bool_)
    if problem.agent is MAX:  # one row that pays is enough for the agent
        stay[model.row_states[paying]] = False
    else:
        graph = graph.with_rows(~paying)
    agent, nature = problem.agent.opposite, problem.nature.opposite
    costless = choice.copy()
    zero = graph.almost_sure(problem.target, stay, agent=agent, nature=nature, choice=costless)
    if problem.agent is MIN:
        choice[zero] = costless[zero]
    return zero


def _groups(graph: Graph, problem: Problem, open_: BoolArray, finite_rows: BoolArray) -> Groups:
    """Return end components of free rows, in which the agent may wander at no cost.

    Staying pays nothing and loses nothing, so all states of one have the same value, and an
    inductive bound must be constant on it. Only where the fixed point is not unique because of it:
    a maximiser who reaches or collects, a minimiser who could dodge the target.
    """
    ends = graph.agent_has_no_choice and not graph.flexible.any()  # a chain leaves where it is open
    free = finite_rows & (problem.reward == 0.0)
    ends |= problem.form is Form.MIXED  # proofs there are strict
    if problem.agent is not problem.lingerer or ends or not open_.any() or not free.any():
        return no_groups(problem.model)
    if problem.nature is not problem.agent:
        free &= ~graph.flexible  # nature could cut the way through
    return end_components(graph.edges, free, open_)


def _nature_to_end(problem: Problem) -> Direction:
    """Return MAX if nature helps the plays to end, MIN if it hinders them."""
    return MAX if problem.nature is problem.lingerer else MIN
