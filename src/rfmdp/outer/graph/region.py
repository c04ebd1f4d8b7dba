"""What graph analysis settles before any number is computed, per form of problem.

Nature minimising may empty outcomes whose lower bound is 0, so all questions are asked of the
game that `graph` describes. Besides the states of known value it says which rows the agent must
not take, and which states share one value (end components in which the agent may stay for free).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rfmdp.objective import MAX, MIN, Direction
from rfmdp.outer.graph.components import Components, Groups, components, end_components, no_groups
from rfmdp.outer.graph.graph import Graph
from rfmdp.outer.problem import Form, Problem
from rfmdp.outer.settings import Clock, Limits
from rfmdp.types import BoolArray, FloatArray, IntArray


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
    graph = Graph(problem.model)
    agent = problem.agent
    nature = problem.nature
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
        finite_rows = _finite_rows(graph, finite, problem)
    else:
        paying = problem.reward > 0.0
        infinite = graph.recurrent_positive(paying, agent=agent, nature=nature, choice=to_win)
        look()
        zero = graph.zero_total(paying, agent=agent, nature=nature, choice=to_dodge)
        known[infinite] = np.inf
        open_ = ~infinite & ~zero
        finite_rows = _finite_rows(graph, ~infinite, problem)
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


def _finite_rows(graph: Graph, finite: BoolArray, problem: Problem) -> BoolArray:
    """Return the rows (R,) with a finite value.

    If nature maximises, they must not be able to leave the finite states; if it minimises, they
    must be able to stay there.
    """
    if problem.nature is MAX:
        return graph.rows_must_stay(finite)
    return graph.rows_can_stay(finite)


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
