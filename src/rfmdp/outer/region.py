"""What graph analysis settles before any number is computed, per form of problem.

Nature minimising may empty outcomes whose lower bound is 0, so all questions are asked of the
game that `graph` describes. Besides the states of known value it says which rows the agent must
not take, which states share one value (end components that the agent would love to stay in), and
a first policy that makes progress.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.objective import MAX, MIN
from rfmdp.outer.components import Components, components, end_components
from rfmdp.outer.graph import Graph
from rfmdp.outer.lingering import Groups
from rfmdp.outer.operator import rows_of
from rfmdp.outer.problem import Form, Problem
from rfmdp.types import BoolArray, FloatArray, IntArray

FAR = 1 << 40


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """The open part of a problem, and what is known of the rest."""

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
    choice: IntArray  # (S,) a policy that makes progress

    @property
    def groups(self) -> Groups:
        """The groups in the form that certificates use."""
        label = np.full(len(self.open), -1, dtype=np.int64)
        sizes = np.diff(self.group_ptr)
        label[self.members] = np.repeat(np.arange(len(sizes)), sizes)
        return Groups(label, self.inner_rows)

    @property
    def cyclic(self) -> bool:
        """Whether some open state can come back to itself."""
        return not bool(self.components.trivial.all())


def analyse(problem: Problem) -> Region:
    """Classify the states of an unbounded problem."""
    graph = Graph(problem.model)
    known = np.zeros(problem.model.states)
    allowed = np.ones(problem.model.rows, dtype=np.bool_)
    sure = np.zeros(problem.model.states, dtype=np.bool_)
    agent, nature = problem.agent, problem.nature
    if problem.form is Form.REACH:
        target, stay = problem.target, problem.stay
        positive = graph.positive(target, stay, agent=agent, nature=nature)
        sure = graph.almost_sure(target, stay, agent=agent, nature=nature)
        known[sure | target] = 1.0
        open_ = positive & ~sure & ~target
        progress = target | sure
    elif problem.form is Form.TO_TARGET:
        finite = graph.almost_sure(problem.target, agent=agent.opposite, nature=nature.opposite)
        known[~finite] = np.inf
        zero = _free_of_cost(graph, problem)
        open_ = finite & ~zero
        allowed = _staying_rows(graph, finite, problem)
        progress = zero
    else:
        paying = problem.reward > 0.0
        infinite = graph.recurrent_positive(paying, agent=agent, nature=nature)
        zero = graph.zero_total(paying, agent=agent, nature=nature)
        known[infinite] = np.inf
        open_ = ~infinite & ~zero
        allowed = _staying_rows(graph, ~infinite, problem)
        progress = zero
    group_ptr, members, inner_rows = _groups(graph, problem, open_, allowed)
    parts = components(graph.with_rows(allowed), open_)
    choice = _first_policy(graph, problem, open_, allowed & ~inner_rows, progress)
    return Region(
        graph, known, open_, sure, allowed, allowed & ~inner_rows, parts, group_ptr, members,
        inner_rows, choice,
    )  # fmt: skip


def _free_of_cost(graph: Graph, problem: Problem) -> BoolArray:
    """Return where the target is reached almost surely without paying: reward to it is 0."""
    paying, model = problem.reward > 0.0, problem.model
    stay = np.ones(model.states, dtype=np.bool_)
    if problem.agent is MAX:  # one row that pays is enough for the agent
        stay[model.row_states[paying]] = False
    else:
        graph = graph.with_rows(~paying)
    towards = {"agent": problem.agent.opposite, "nature": problem.nature.opposite}
    return graph.almost_sure(problem.target, stay, **towards)


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
    free = allowed & (problem.reward == 0.0)
    if not loops or not open_.any() or not free.any():
        return *nothing, np.zeros(len(allowed), dtype=np.bool_)
    if problem.nature is MIN:
        free &= ~graph.flexible  # nature could cut the way through
    ends = end_components(graph.with_rows(free), open_)
    members = np.flatnonzero(ends.component >= 0)
    members = members[np.argsort(ends.component[members], kind="stable")]
    sizes = np.bincount(ends.component[members], minlength=ends.count)
    return np.concatenate([[0], np.cumsum(sizes)]), members, ends.rows


def _first_policy(
    graph: Graph, problem: Problem, open_: BoolArray, allowed: BoolArray, target: BoolArray
) -> IntArray:
    """Return a policy whose rows may come closer to the target, first rows elsewhere."""
    from rfmdp.kernels.sweep import distances, nearest_rows

    model = problem.model
    distance = np.where(target, 0, FAR).astype(np.int64)
    usable = certain_transitions(problem)
    arrays = model.row_ptr, model.successor_ptr, model.successors
    distances(*arrays, allowed, usable, open_, distance)
    choice = model.row_ptr[:-1].copy()
    states = np.flatnonzero(open_)
    nearest_rows(*arrays, allowed, usable, states, distance, choice)
    return choice


def certain_transitions(problem: Problem) -> BoolArray:
    """Return the transitions (K,) that nature cannot remove, or can take if it helps progress."""
    from rfmdp.kernels.sweep import joint_positive

    model, marginals = problem.model, problem.model.marginals
    opposed = problem.nature is (MAX if problem.form is Form.TO_TARGET else MIN)
    bound = marginals.lower if opposed else marginals.upper
    out = np.empty(model.transitions, dtype=np.bool_)
    joint_positive(
        model.marginal_ptr, model.row_marginals, model.successor_ptr, marginals.outcome_ptr,
        bound, out,
    )  # fmt: skip
    return out


def finish_policy(problem: Problem, region: Region, choice: IntArray) -> IntArray:
    """Complete a policy of the open states: known states, and the way through groups."""
    from rfmdp.kernels.sweep import nearest_rows

    model, graph = problem.model, region.graph
    choice = choice.copy()
    _walk_groups(problem, region, choice)
    if problem.form is Form.REACH:
        if problem.agent is MAX:
            inside = region.sure & ~problem.target
            stay = region.sure | problem.target
            rows = (
                graph.rows_must_stay(stay) if problem.nature is MIN else graph.rows_can_stay(stay)
            )
            _approach(problem, inside, rows, problem.target, choice)
        else:
            zero = ~region.open & (region.known == 0.0)
            rows = (
                graph.rows_can_stay(zero) if problem.nature is MIN else graph.rows_must_stay(zero)
            )
            states = np.flatnonzero(zero & problem.stay)
            usable = np.zeros(model.transitions, dtype=np.bool_)
            distance = np.full(model.states, FAR, dtype=np.int64)
            arrays = model.row_ptr, model.successor_ptr, model.successors
            nearest_rows(*arrays, rows, usable, states, distance, choice)
    elif problem.form is Form.TO_TARGET and problem.agent is MIN:
        zero = ~region.open & (region.known == 0.0)
        rows = graph.rows_can_stay(zero) if problem.nature is MIN else graph.rows_must_stay(zero)
        inside = zero & ~problem.target
        _approach(problem, inside, rows & (problem.reward == 0.0), problem.target, choice)
    elif problem.form is Form.TOTAL and problem.agent is MIN:
        zero = ~region.open & (region.known == 0.0)
        rows = graph.rows_can_stay(zero) if problem.nature is MIN else graph.rows_must_stay(zero)
        _approach(problem, zero, rows & (problem.reward == 0.0), ~zero & False, choice)
    return choice


def _walk_groups(problem: Problem, region: Region, choice: IntArray) -> None:
    """Let the members of a group walk to the one whose row leaves it."""
    model = problem.model
    if not len(region.members):
        return
    exits = np.zeros(model.states, dtype=np.bool_)
    owner = np.searchsorted(model.row_ptr, choice[region.members], side="right") - 1
    exits[owner] = True
    others = np.zeros(model.states, dtype=np.bool_)
    others[region.members] = True
    others &= ~exits
    _approach(problem, others, region.inner_rows, exits, choice)


def _approach(
    problem: Problem, states: BoolArray, rows: BoolArray, target: BoolArray, choice: IntArray
) -> None:
    """Fill choice on `states` with rows of a mask that come closer to the target."""
    from rfmdp.kernels.sweep import distances, nearest_rows

    model = problem.model
    usable = certain_transitions(problem)
    distance = np.where(target, 0, FAR).astype(np.int64)
    arrays = model.row_ptr, model.successor_ptr, model.successors
    distances(*arrays, rows, usable, states, distance)
    nearest_rows(*arrays, rows, usable, np.flatnonzero(states), distance, choice)


def ranks(problem: Problem, states: BoolArray, rows: IntArray, target: BoolArray) -> FloatArray:
    """Return the fewest steps (S,) to the target by the rows of a policy, as nature may help."""
    from rfmdp.kernels.sweep import distances

    model = problem.model
    chosen = np.zeros(model.rows, dtype=np.bool_)
    chosen[rows] = True
    distance = np.where(target, 0, FAR).astype(np.int64)
    usable = certain_transitions(problem)
    distances(
        model.row_ptr, model.successor_ptr, model.successors, chosen, usable, states, distance
    )
    return distance.astype(np.float64)


def open_rows(problem: Problem, region: Region) -> IntArray:
    """Return all rows of the open states."""
    return rows_of(problem.model.row_ptr, np.flatnonzero(region.open))
