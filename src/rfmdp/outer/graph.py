"""Qualitative analysis: what can, must and cannot happen, whatever the exact probabilities.

An rf-MDP is a game of agent and nature played over supports. In a row nature picks a product of
members, and where a lower bound is 0 it may empty an outcome. For a row r and states X, Y:

possible     some product gives X positive probability
certain      every product gives X positive probability
can stay     some product has its support within Y
must stay    every product has its support within Y

`agent` and `nature` say who works for the event: MAX wants it, MIN wants to avoid it. The
answers are exact: positive(...) is where the value is > 0, almost_sure(...) where it is 1,
because turn-based games with finitely many choices have optimal memoryless strategies (an Lp
ball with 1 < p < inf that touches a face in one point may approach a value without attaining it).

>>> from rfmdp.objective import MAX, MIN
>>> from rfmdp.sets.families import Interval
>>> step = Interval([0.0, 0.5], [0.5, 1.0])                    # nature may block the move
>>> model = FactoredMDP.from_rows([[([0], [1, 0])], [([], [1])]], [step])
>>> graph, goal = Graph(model), np.array([False, True])
>>> graph.positive(goal, agent=MAX, nature=MIN).tolist()       # Pmaxmin > 0
[False, True]
>>> graph.almost_sure(goal, agent=MAX, nature=MAX).tolist()    # Pmaxmax = 1
[True, True]
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from rfmdp.kernels import graph as kernels
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, MIN, Direction
from rfmdp.ragged import owners, segment_any, segment_lengths, starts
from rfmdp.sets.supports import supports
from rfmdp.types import AnyArray, BoolArray, Int32Array, IntArray, frozen


class Edges:
    """The transitions that can occur, forwards and, when first needed, backwards."""

    def __init__(self, row_ptr: IntArray, successor_ptr: IntArray, successors: Int32Array) -> None:
        self.row_state: Int32Array = frozen(owners(row_ptr).astype(np.int32))
        arrays = row_ptr, self.row_state, successor_ptr, successors
        self.forward: tuple[AnyArray, ...] = tuple(frozen(array) for array in arrays)

    @cached_property
    def backward(self) -> tuple[IntArray, Int32Array]:
        """The rows that may move to every state, each once: pointers (S + 1,) and rows."""
        size = len(self.forward[0]) - 1
        last = np.full(size, -1, dtype=np.int32)
        count = np.zeros(size, dtype=np.int64)
        kernels.list_predecessors(self.forward, last, count, np.empty(0, dtype=np.int32))
        pred_ptr = starts(count)
        pred_rows = np.empty(pred_ptr[-1], dtype=np.int32)
        last[:] = -1
        kernels.list_predecessors(self.forward, last, pred_ptr[:-1].copy(), pred_rows)
        return pred_ptr, pred_rows

    def closed(self, states: BoolArray, rows: BoolArray) -> tuple[BoolArray, BoolArray]:
        """Return the largest part of states (S,) and rows (R,) that has a row in every state.

        A row in it leads to states of it only, by all of its moves.
        """
        status = np.where(rows & states[self.row_state], kernels.WAITING, kernels.CLOSED)
        missing = np.diff(starts(status == kernels.WAITING)[self.forward[0]])
        gone, status = ~states | (missing == 0), status.astype(np.int8)
        marks = status, missing.astype(np.int32), gone, ~gone, np.empty(len(gone), dtype=np.int64)
        work = _work(self, 1, 1)
        kernels.attract(self.row_state, self.backward, _RIGID, work, kernels.ANY, marks)
        return ~gone, status == kernels.WAITING


_RIGID = tuple(frozen(np.zeros(0, dtype=kind)) for kind in "?qiqiqqqiq")  # nature has no choice


def _work(edges: Edges, depth: int, size: int) -> tuple[AnyArray, ...]:
    """Return memory for the kernels: codes, cursor, queue, pending."""
    return (
        np.empty((depth, size), dtype=np.uint8),
        np.empty(depth, dtype=np.int64),
        np.empty(len(edges.forward[0]) - 1, dtype=np.int32),
        np.empty(len(edges.row_state), dtype=np.int32),
    )


class Graph:
    """A model prepared for qualitative analysis; predecessor lists are built when first needed.

    `with_rows` fixes or restricts the agent: a new graph on which all questions can be asked. A
    state without rows left stays where it is.
    """

    def __init__(self, model: FactoredMDP) -> None:
        self.model, self.agent_has_no_choice = model, model.rows == model.states
        self.rows: BoolArray = np.ones(model.rows, dtype=np.bool_)
        if model not in _ANALYSED:
            _ANALYSED[model] = _edges_and_nature(model)
        self.edges, self._nature = _ANALYSED[model]

    def with_rows(self, rows: BoolArray | IntArray) -> Graph:
        """Return the graph in which the agent may take only some rows: booleans (R,) or a policy.

        A policy (S,) is a row of every state, -1 for none.
        """
        other, allowed = copy(self), rows.astype(np.bool_)
        if rows.dtype != np.bool_:
            allowed = np.zeros(self.model.rows, dtype=np.bool_)
            allowed[rows[rows >= 0]] = True
        other.rows = self.rows & allowed
        return other

    @property
    def flexible(self) -> BoolArray:
        """Rows (R,) in which nature can remove edges."""
        return self._nature[kernels.FLEXIBLE]

    def rows_possible(self, target: BoolArray) -> BoolArray:
        """Return the rows (R,) in which nature can move to `target` with positive probability."""
        _, _, successor_ptr, successors = self.edges.forward
        hits: BoolArray = np.logical_or.reduceat(target[successors], successor_ptr[:-1])
        return hits

    def rows_can_stay(self, stay: BoolArray) -> BoolArray:
        """Return the rows (R,) in which nature can keep all probability within `stay`."""
        inside = np.array(stay, dtype=np.bool_)
        out = np.empty(self.model.rows, dtype=np.bool_)
        kernels.rows_stay(self.edges.forward, self._nature, self._work(), inside, out)
        return out

    def positive(
        self,
        target: BoolArray,
        stay: BoolArray | None = None,
        *,
        agent: Direction,
        nature: Direction,
        choice: IntArray | None = None,
        rows: BoolArray | None = None,
    ) -> BoolArray:
        """Return where `target` is reached through `stay` with positive probability, (S,).

        The least X with X = target or (stay and a row (MAX) or all rows (MIN) move to X with
        positive probability: possibly (MAX) or certainly (MIN)). The value is 0 elsewhere. Taking
        one of some `rows` (R,) counts as reaching it: those who minimise avoid them elsewhere.
        `choice` (S,), if given, is filled with rows that give the agent what it wants: within X
        if that is MAX, outside of X if it is MIN.
        """
        reached = np.array(target, dtype=np.bool_)
        if rows is None and not reached.any():
            return reached
        status = self._status(self.rows, np.zeros_like(self.rows) if rows is None else rows)
        mode = kernels.ANY if nature is MAX else kernels.CERTAIN
        agent = MAX if self.agent_has_no_choice else agent
        grow = ~reached if stay is None else stay & ~reached
        self._attract(reached, grow, status, agent, mode, ~reached, choice)
        return reached

    def almost_sure(
        self,
        target: BoolArray,
        stay: BoolArray | None = None,
        *,
        agent: Direction,
        nature: Direction,
        choice: IntArray | None = None,
        positive: BoolArray | None = None,
    ) -> BoolArray:
        """Return where `target` is reached through `stay` with probability one, (S,).

        The greatest Y with Y = the least X with X = target or (stay and a row (MAX) or all rows
        (MIN) move to X with positive probability without leaving Y). `choice` as in `positive`,
        whose answer to the same question may be given.
        """
        target = np.array(target, dtype=np.bool_)
        if positive is None:
            positive = self.positive(target, stay, agent=agent, nature=nature, choice=choice)
        if positive.all() or np.array_equal(positive, target):
            return positive.copy()
        if (agent is MIN or self.agent_has_no_choice) and not self.flexible.any():
            # no way to where it is 0
            return ~self.positive(~positive, ~target, agent=MAX, nature=MAX, choice=choice)
        nothing = np.zeros_like(target)
        none = np.zeros_like(self.rows)
        return self._nested(target, nothing, positive, none, agent, nature, choice)

    def attract(
        self,
        target: BoolArray,
        states: BoolArray,
        rows: BoolArray,
        grow: BoolArray,
        *,
        agent: Direction,
        nature: Direction,
        choice: IntArray | None = None,
    ) -> tuple[BoolArray, BoolArray]:
        """Return where `target` is reached with positive probability in an arena, and by what rows.

        All moves take some `rows` (R,) and have their supports within `states` (S,); every row must
        have such a move. Only states of `grow` join the target. Directions and `choice` as in
        `positive`.
        """
        reached = target & states
        status = self._status(self.rows & rows, np.zeros_like(rows))
        mode = kernels.TOGETHER if nature is MAX else kernels.CERTAIN
        inside = states.copy() if nature is MAX else states & ~reached
        self._attract(reached, grow & states & ~reached, status, agent, mode, inside, choice)
        return reached, status == kernels.FIRED

    def recurrent_positive(
        self,
        positive_rows: BoolArray,
        *,
        agent: Direction,
        nature: Direction,
        choice: IntArray | None = None,
    ) -> BoolArray:
        """Return the states (S,) of infinite total reward.

        There those who maximise can force, with positive probability, that rows of positive
        reward are taken infinitely often. It is the least Z that contains every state from which
        they can force "a move to Z with positive probability, or else positive rows for ever": a
        minimiser who must choose between the two loses either way, so Z grows until it is stable.
        `choice` (S,), if given, is filled within Z if the agent is MAX.
        """
        positive_rows = np.asarray(positive_rows, dtype=np.bool_)
        everywhere = np.ones(self.model.states, dtype=np.bool_)
        won = ~everywhere
        latest = np.empty(self.model.states, dtype=np.int64)
        while True:
            more = self._nested(won, won, everywhere, positive_rows, agent, nature, latest)
            if np.array_equal(more, won):
                return won
            new = self.positive(more, agent=agent, nature=nature, choice=latest)
            if choice is not None:
                choice[new & ~won] = latest[new & ~won]
            won = new

    def _nested(
        self,
        base: BoolArray,
        excused: BoolArray,
        within: BoolArray,
        fire: BoolArray,
        agent: Direction,
        nature: Direction,
        choice: IntArray | None,
    ) -> BoolArray:
        """Return the greatest Y inside `within` that is the least X with the following property.

        X contains `base`, and every state from which those who maximise can force that a move
        meets `excused`, or that it stays in Y and (meets X or takes a row of `fire`). `choice` is
        filled within Y if the agent is MAX; if it is MIN, with the rows by which states were lost.
        """
        immune = np.zeros_like(self.rows)
        if excused.any():
            possible = nature is MAX
            immune = self.rows_possible(excused) if possible else ~self.rows_can_stay(~excused)
        # leaving Y: possible for a minimising nature, if only without meeting what excuses it
        leave = kernels.CERTAIN if nature is MAX else kernels.TOGETHER
        if nature is MIN and not excused.any():
            leave = kernels.ANY
        advance = kernels.TOGETHER if nature is MAX else kernels.CERTAIN
        rows = self.rows.copy()
        stay = within
        while True:
            lost = ~stay
            if lost.any():
                inside = stay.copy() if nature is MAX else ~excused
                status = self._status(rows, np.zeros_like(rows))
                status[immune] = kernels.CLOSED
                missing = self._missing(stay & ~base, rows, agent.opposite)
                self._run(lost, missing, status, leave, inside, choice if agent is MIN else None)
                rows &= status != kernels.FIRED
                stay = ~lost
            reached = base.copy()
            inside = stay.copy() if nature is MAX else ~reached
            status = self._status(rows, fire | immune)
            self._attract(reached, stay & ~base, status, agent, advance, inside, choice)
            if np.array_equal(reached, stay):
                return stay
            stay = reached

    def _attract(
        self,
        reached: BoolArray,
        grow: BoolArray,
        status: AnyArray,
        agent: Direction,
        mode: int,
        inside: BoolArray,
        choice: IntArray | None,
    ) -> None:
        """Grow `reached` within `grow`, see `kernels.attract`."""
        missing = self._missing(grow, status != kernels.CLOSED, agent)
        self._run(reached, missing, status, mode, inside, choice if agent is MAX else None)
        if choice is not None and agent is MIN:
            owner = self.edges.row_state
            idle = np.flatnonzero((status == kernels.WAITING) & (grow & ~reached)[owner])[::-1]
            choice[owner[idle]] = idle  # the first row that does not help

    def _run(
        self,
        reached: BoolArray,
        missing: AnyArray,
        status: AnyArray,
        mode: int,
        inside: BoolArray,
        choice: IntArray | None,
    ) -> None:
        choice = np.empty(self.model.states, dtype=np.int64) if choice is None else choice
        arrays = (status, missing, reached, inside, choice)
        kernels.attract(
            self.edges.row_state, self.edges.backward, self._nature, self._work(), mode, arrays
        )

    def _missing(self, grow: BoolArray, rows: BoolArray, agent: Direction) -> Int32Array:
        """Return how many rows of a state must fire: one (MAX), all (MIN); 0 outside of `grow`."""
        if agent is MAX:
            return grow.astype(np.int32)
        count = np.diff(starts(rows)[self.model.row_ptr])
        return np.where(grow, count, 0).astype(np.int32)

    def _status(self, rows: BoolArray, fire: BoolArray) -> AnyArray:
        status = np.full(len(rows), kernels.CLOSED, dtype=np.int8)
        status[rows] = kernels.WAITING
        status[rows & fire] = kernels.FIRED
        return status

    def _work(self) -> tuple[AnyArray, ...]:
        model = self.model
        depth = int(np.max(segment_lengths(model.marginal_ptr), initial=0)) + 1
        size = int(np.max(segment_lengths(model.successor_ptr), initial=1))
        return _work(self.edges, *((depth, size) if self.flexible.any() else (1, 1)))


_ANALYSED: WeakKeyDictionary[FactoredMDP, tuple[Edges, tuple[AnyArray, ...]]]
_ANALYSED = WeakKeyDictionary()  # for the next question to a model; holds its arrays, never itself


def _edges_and_nature(model: FactoredMDP) -> tuple[Edges, tuple[AnyArray, ...]]:
    """Return the transitions that can occur and nature's choices, both for the kernels."""
    result = supports(model.marginals)
    nature = (
        segment_any(result.flexible[model.row_marginals], model.marginal_ptr),
        model.successor_ptr,
        model.successors,
        model.marginal_ptr,
        model.row_marginals,
        result.support_ptr,
        result.minimal_end,
        result.member_ptr,
        result.members,
        model.marginals.sizes,
    )
    pointers, successors = model.successor_ptr, model.successors
    used = np.zeros(len(model.marginals), dtype=np.bool_)
    used[model.row_marginals] = True
    if not result.possible[np.repeat(used, model.marginals.sizes)].all():  # some cannot be taken
        present = np.empty(model.transitions, dtype=np.bool_)
        kernels.mark_present(model.structure, frozen(result.possible), present)
        pointers, successors = starts(present)[pointers], successors[present]
    edges = Edges(model.row_ptr, pointers, successors)
    return edges, tuple(frozen(array) for array in nature)
