"""What graph analysis settles before any number is computed, per form of problem.

Nature minimising may empty outcomes whose lower bound is 0, so all questions are asked of the
game that `graph` describes. Besides the states of known value it says which rows the agent must
not take, and which states share one value (end components that the agent would love to stay in).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rfmdp.objective import MAX, MIN, Direction
from rfmdp.outer.components import Components, components, end_components
from rfmdp.outer.graph import Graph
from rfmdp.outer.lingering import Groups
from rfmdp.outer.operator import rows_of
from rfmdp.outer.problem import Form, Problem
from rfmdp.outer.settings import Clock
from rfmdp.ragged import owners, starts
from rfmdp.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """The open part of a problem, and what is known of the rest."""

    problem: Problem
    graph: Graph
    known: FloatArray  # (S,) value of states that are not open; inf allowed
    open: BoolArray  # (S,)
    sure: BoolArray  # (S,) open no more, because the graph proves the value one
    finite_rows: BoolArray  # (R,) rows that are not certainly infinite
    allowed: BoolArray  # (R,) of these, rows that leave their group: what the agent iterates on
    components: Components  # of the open states over allowed rows
    group_ptr: IntArray  # (G + 1,) states that share one value
    members: IntArray
    inner_rows: BoolArray  # (R,) rows that never leave their group
    choice: IntArray  # (S,) a policy, final where nothing is open

    @property
    def groups(self) -> Groups:
        """The groups in the form that certificates use."""
        label = np.full(len(self.open), -1, dtype=np.int64)
        sizes = np.diff(self.group_ptr)
        label[self.members] = np.repeat(np.arange(len(sizes)), sizes)
        return Groups(label, self.inner_rows)

    def part(self, numbers: IntArray, known: FloatArray) -> Region:
        """Return the region in which only some components are open, with values (S,) elsewhere."""
        parts = self.components.part(numbers)
        open_ = np.zeros_like(self.open)
        open_[parts.states] = True
        kept = open_[self.members]
        sizes = np.diff(self.group_ptr)
        counts = np.bincount(owners(self.group_ptr)[kept], minlength=len(sizes))
        return replace(
            self, known=known, open=open_, components=parts, members=self.members[kept],
            group_ptr=starts(counts[counts > 0]),
        )  # fmt: skip

    @property
    def cyclic(self) -> bool:
        """Whether some open state can come back to itself."""
        return not bool(self.components.trivial.all())

    @property
    def open_rows(self) -> IntArray:
        """All rows of the open states."""
        return rows_of(self.problem.model.row_ptr, np.flatnonzero(self.open))

    def trivial_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return what holds without any computation."""
        top = 1.0 if self.problem.form is Form.REACH else np.inf
        return np.where(self.open, 0.0, self.known), np.where(self.open, top, self.known)

    def with_first_policy(self) -> Region:
        """Return the region with open rows that come closer to what is known, or allowed ones."""
        graph, choice = self.graph, self.choice.copy()
        owner = graph.edges.row_state
        rows = np.flatnonzero(self.allowed & self.open[owner])[::-1]
        choice[owner[rows]] = rows
        end = 1.0 if self.problem.form is Form.REACH else 0.0
        graph.with_rows(self.allowed).positive(
            ~self.open & (self.known == end), self.open, agent=MAX, nature=_ally(self.problem),
            choice=choice,
        )  # fmt: skip
        return replace(self, choice=choice)

    def finish_policy(self, choice: IntArray) -> IntArray:
        """Complete a policy of the open states: settled states, and the way through groups."""
        choice = np.where(self.open, choice, self.choice)
        if len(self.members):
            exits = np.zeros(len(self.open), dtype=np.bool_)
            exits[self.graph.edges.row_state[choice[self.members]]] = True
            others = np.zeros_like(exits)
            others[self.members] = True
            inside, ally = self.graph.with_rows(self.inner_rows), _ally(self.problem)
            inside.positive(exits, others & ~exits, agent=MAX, nature=ally, choice=choice)
        return choice


def analyse(problem: Problem, clock: Clock | None = None) -> Region:
    """Classify the states of an unbounded problem; a clock may end it by `LimitReached`."""
    look = clock.check_overdue if clock is not None else _nothing
    graph, agent, nature = Graph(problem.model), problem.agent, problem.nature
    look()
    known = np.zeros(problem.model.states)
    allowed = np.ones(problem.model.rows, dtype=np.bool_)
    sure = np.zeros(problem.model.states, dtype=np.bool_)
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
    elif problem.form is Form.TO_TARGET:
        ends, helps = agent.opposite, nature.opposite
        finite = graph.almost_sure(problem.target, agent=ends, nature=helps, choice=choice)
        known[~finite] = np.inf
        look()
        zero = _free_of_cost(graph, problem, choice)
        open_ = finite & ~zero
        allowed = _staying_rows(graph, finite, problem)
    else:
        paying = problem.reward > 0.0
        infinite = graph.recurrent_positive(paying, agent=agent, nature=nature, choice=to_win)
        look()
        zero = graph.zero_total(paying, agent=agent, nature=nature, choice=to_dodge)
        known[infinite] = np.inf
        open_ = ~infinite & ~zero
        allowed = _staying_rows(graph, ~infinite, problem)
    look()
    group_ptr, members, inner_rows = _groups(graph, problem, open_, allowed)
    look()
    parts = components(graph.with_rows(allowed), open_)
    return Region(
        problem, graph, known, open_, sure, allowed, allowed & ~inner_rows, parts, group_ptr,
        members, inner_rows, choice,
    )  # fmt: skip


def _nothing() -> None:
    """Do nothing: no clock is looked at."""


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
    rule = choice.copy()
    zero = graph.almost_sure(problem.target, stay, agent=agent, nature=nature, choice=rule)
    if problem.agent is MIN:
        choice[zero] = rule[zero]
    return zero


def _staying_rows(graph: Graph, finite: BoolArray, problem: Problem) -> BoolArray:
    """Return the rows with a finite value: nature MAX would use any leak, nature MIN must."""
    if problem.nature is MAX:
        return graph.rows_must_stay(finite)
    return graph.rows_can_stay(finite)


def _groups(
    graph: Graph, problem: Problem, open_: BoolArray, allowed: BoolArray
) -> tuple[IntArray, IntArray, BoolArray]:
    """Return end components of free rows, in which the agent may wander at no cost.

    Staying pays nothing and loses nothing, so all states of one have the same value, and an
    inductive bound must be constant on it. Only where the fixed point is not unique because of it:
    a maximiser who reaches or collects, a minimiser who could dodge the target.
    """
    nothing = np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int64)
    loops = problem.agent is (MIN if problem.form is Form.TO_TARGET else MAX)
    loops = loops and not (
        graph.chain and not graph.flexible.any()
    )  # a chain ends where it is open
    free = allowed & (problem.reward == 0.0)
    if not loops or not open_.any() or not free.any():
        return *nothing, np.zeros(len(allowed), dtype=np.bool_)
    if problem.nature is not problem.agent:
        free &= ~graph.flexible  # nature could cut the way through
    ends = end_components(graph.with_rows(free), open_)
    members = np.flatnonzero(ends.component >= 0)
    members = members[np.argsort(ends.component[members], kind="stable")]
    sizes = np.bincount(ends.component[members], minlength=ends.count)
    return np.concatenate([[0], np.cumsum(sizes)]), members, ends.rows


def _ally(problem: Problem) -> Direction:
    """Return MAX if nature helps the plays to end, MIN if it hinders them."""
    return MIN if problem.nature is (MAX if problem.form is Form.TO_TARGET else MIN) else MAX
