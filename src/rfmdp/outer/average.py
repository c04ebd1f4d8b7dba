"""Means over all steps in the long run, with a proof for every state.

A bound u (S,) of a side has a witness h (S,). Those who help the bound have answers so that in
every state, whatever the others do, one of two things holds (for an upper bound; lower ones are
its mirror image):

    keep   the mean of u over the successors is at most u here, and reward + mean of h <= u + h here
    climb  the mean of u over the successors is less than u here

Why stands in docs/soundness.md. Where nature helps, one answer must do both parts of `keep`. That
is asked of answers whose successors all have u at most u here; the mean then follows.

Candidates come from policy iteration. The chain of both players' choices has a gain g, the mean of
every state, and a bias h with g + h = reward + mean of h; both are solved for, so neither periods
nor slow mixing matter. Rows and answers are best for h + price * g: it prices moves between states
of different gain. States of one g get one u. Where a proof fails u is moved outwards: states that
only climb by the time that they take, others by what they lack.

States to which no cycle leads are passed once at most, and what is paid there counts for nothing:
their h is so far out that no reward matters.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rfmdp.inner.protocol import successor_starts
from rfmdp.kernels.sweep import row_span
from rfmdp.outer.backups import Faces
from rfmdp.outer.graph import Graph
from rfmdp.outer.policy_iteration import Chain, Nodes
from rfmdp.outer.region import components, strong_components
from rfmdp.outer.task import STOPS, Operator, StateBounds, Task, largest, status_of
from rfmdp.ragged import entries, segment_all, segment_sum, starts
from rfmdp.rounding import UNIT, reward_margin
from rfmdp.types import BoolArray, FloatArray, IntArray

PRICES = (1e3, 1e5, 1e7)  # of gain, in bias: how many steps the choice of a better one is worth
POLICIES, ANSWERS = 60, 6  # of policy iteration at one price; nature's to one policy
RARE = 1e-12  # probability that an answer means to be none
STILL = 1e-12  # of the largest value: a smaller change is none
SAME = 0.01  # of the width that is wanted: gains of classes that differ by less are one
EXACT = 1e-12  # of the largest gain: rounding of a gain that is met almost surely
CLIMB = 1e-4  # of the width that is wanted: what a step climbs at least
OUT = 1e-6  # how much farther out than needed a witness is where nothing depends on it
TIE = 1e-12  # of the values of a row: means this near to u are looked at by vertices
ROUNDS, SWEEPS = 60, 2000  # of moving u outwards; of a chain that is too large to be solved


def solve_average(task: Task, warm: FloatArray | None = None) -> StateBounds:
    """Return bounds of all states, with their witnesses."""
    problem, states = task.problem, task.problem.model.states
    least, most = float(problem.reward.min()), float(problem.reward.max())
    if problem.rounded:
        least, most = np.nextafter(least, -np.inf), np.nextafter(most, np.inf)
    lower, upper = np.full(states, least), np.full(states, most)
    result = StateBounds(lower, upper, lower, problem.model.row_ptr[:-1].copy())
    nothing = np.zeros(states)
    witness = {-1.0: nothing, 1.0: nothing}
    search = GainIteration(task)
    try:
        for price in PRICES:
            search.improve(price)
            with task.stats.phase("certify"):
                for side in (-1.0, 1.0):
                    if task.can_prove(side):
                        _improve(Gains(task, search, side), result, witness)
            if task.closed(result.lower, result.upper, result.value) or not np.ptp(search.gain):
                break  # or all states have one gain, so that no price matters
    except STOPS as stop:
        result.stopped = status_of(stop)
    result.value = 0.5 * result.lower + 0.5 * result.upper
    result.witness = witness[-1.0], witness[1.0]
    return result


class GainIteration:
    """Policy iteration: `choice` (S,), with `gain`, `bias` and `passing` of its chain, (S,) each.

    `passing` is how many steps a state takes before it can come back for ever.
    """

    def __init__(self, task: Task) -> None:
        self.task, self.model = task, task.problem.model
        self.choice = self.model.row_ptr[:-1].copy()
        self.gain, self.bias, self.passing = np.zeros((3, self.model.states))
        self.price = 0.0
        self._evaluated = np.empty(0, dtype=np.int64)  # rows
        self._answers = np.zeros(self.model.transitions)  # nature's last ones, of all rows
        self._states, self._rows = np.arange(self.model.states), np.arange(self.model.rows)
        self._every = np.ones(self.model.rows, dtype=np.bool_)

    @property
    def width(self) -> float:
        """How close bounds have to be."""
        scale = max(largest(self.gain), 1e-3 * largest(self.task.problem.reward))
        return self.task.limits.precision * scale

    @property
    def value(self) -> FloatArray:
        """What choices are made by, (S,): the bias, and the gain at its price."""
        value: FloatArray = self.bias + self.price * (self.gain - self.gain.min())
        return value

    def improve(self, price: float) -> None:
        """Take best rows against nature's best answers until that changes nothing."""
        self.price, task = price, self.task
        for _ in range(POLICIES):
            value, before = self.value, self.choice.copy()
            same = max(STILL * largest(value), 0.1 * SAME * self.width)
            task.backup(value, self._rows)
            q = task.middle(self._rows, self._every)
            task.choose(q, self._states, self.choice, value.copy(), same)
            task.stats.robust_sweeps += 1
            for _ in range(ANSWERS):
                task.clock.tick("solve", 0.0)
                if not self._evaluate(same):
                    break
            if np.array_equal(before, self.choice) and largest(self.value - value) <= same:
                return

    def _evaluate(self, slack: float) -> bool:
        """Find gain and bias of the chain of policy and answers; return whether it is a new one.

        Answers change if they get better by more than `slack`: equal ones would come and go. A gain
        is what is paid, over the steps, until the play is back at one state of its class.
        """
        model, rows, count = self.model, self.choice, self.model.states
        answers = self.task.inner.respond(self.value, rows)
        begin, places = successor_starts(model, rows), entries(model.successor_ptr, rows)
        answers[answers <= RARE] = 0.0
        before, here = self._answers[places], self.value[model.successors[places]]
        better = (
            segment_sum((answers - before) * here, begin) * self.task.problem.nature.sign > slack
        )
        better |= segment_sum(before, begin) == 0.0
        if not better.any() and np.array_equal(rows, self._evaluated):
            return False
        answers = np.where(np.repeat(better, np.diff(begin)), answers, before)
        self._evaluated, self._answers[places] = rows.copy(), answers
        taken = answers > 0.0
        pointers = starts(taken)[begin]
        after = model.successors[places][taken].astype(np.int64)
        one_row, every = np.arange(count + 1), np.ones(count, dtype=np.bool_)
        edges = one_row, one_row[:-1], pointers, after
        label, _, classes = strong_components(edges, every, every)
        home = np.repeat(label, np.diff(pointers))
        closed = np.ones(classes, dtype=np.bool_)
        closed[home[home != label[after]]] = False
        first = np.full(classes, count)
        np.minimum.at(first, label, self._states)
        recurs, met = closed[label], np.zeros(count, dtype=np.bool_)
        met[first[closed]] = True
        reward, nothing = self.task.problem.reward[rows], np.zeros(count)
        chain, bias = self._until(met, answers, begin), nothing
        class_gain = np.zeros(classes)
        if chain.direct:
            length, paid = (
                each
                + segment_sum(answers[taken] * self._total(chain, each, nothing)[after], pointers)
                for each in (np.ones(count), reward)
            )
            class_gain[label[met]] = _alike(paid[met] / length[met], SAME * self.width)
        else:
            met, bias = recurs, nothing.copy()
            chain = self._until(met, answers, begin)
            for _ in range(SWEEPS):
                rise = reward + segment_sum(answers[taken] * bias[after], pointers) - bias
                class_gain = np.bincount(label, rise) / np.bincount(label)
                change = np.where(recurs, rise - class_gain[label], 0.0)
                if largest(change) <= SAME * self.width:
                    break
                bias += 0.5 * change
                self.task.clock.check()
        ends = class_gain[label]
        gain = np.where(recurs, ends, self._total(chain, nothing, np.where(met, ends, 0.0)))
        self.gain = gain = _alike(gain, EXACT * largest(gain))
        self.bias = self._total(chain, reward - gain, bias)
        self.passing = self._total(chain, np.where(recurs, 0.0, 1.0), nothing)
        return True

    def _until(self, met: BoolArray, answers: FloatArray, begin: IntArray) -> Chain:
        """Return the chain of the policy until some places (S,) are met."""
        going, nothing = np.flatnonzero(~met), np.zeros(len(met))
        return Chain(
            self.model, Nodes.alone(going), self.choice, answers[entries(begin, going)],
            nothing, np.zeros(self.model.rows),
        )  # fmt: skip

    def _total(self, chain: Chain, paid: FloatArray, ends: FloatArray) -> FloatArray:
        """Return what a chain pays (S,) until a place is met, plus the number (S,) of that."""
        value, reward = ends.copy(), np.zeros(self.model.rows)
        value[chain.nodes.states], reward[self.choice] = 0.0, paid
        chain.pay(value, reward)
        accuracy = np.full(len(chain.x), 1e-9 * max(largest(paid), largest(ends)))
        if not (chain.direct and chain.solve()):
            chain.settle(self.task.clock, self.task.stats, SWEEPS, accuracy)
        chain.put(value)
        return value


def _alike(number: FloatArray, width: float) -> FloatArray:
    """Return numbers (N,), the least one in place of those that follow each other closely."""
    order = np.argsort(number)
    level = np.concatenate([[0], np.cumsum(np.diff(number[order]) > width)])
    alike = np.empty_like(number)
    alike[order] = number[order][np.searchsorted(level, level)]
    return alike


def _improve(gains: Gains, result: StateBounds, witness: dict[float, FloatArray]) -> None:
    """Take a bound with its witness and policy if it is proven and better where it counts."""
    task, side = gains.task, gains.side
    bound = gains.prove()
    if bound is None or side * float((bound - result.side(side))[task.interest].sum()) > 0.0:
        return
    result.put(side, bound)
    witness[side] = gains.bias
    if gains.fixed is not None:
        result.choice = gains.fixed
    result.value = bound


class Gains:
    """The search for a bound of one side (+1 upper) with a given witness."""

    def __init__(self, task: Task, search: GainIteration, side: float) -> None:
        problem = task.problem
        self.task, self.side, self.model = task, side, problem.model
        self._far = np.maximum if side > 0.0 else np.minimum  # the farther out of two bounds
        self.gain, self.passing = search.gain, search.passing
        graph = Graph(problem.model)
        # on the way to where they stay states may lose a little, so that rounding costs nothing
        self.width = max(search.width, 1e4 * UNIT * largest(search.value))
        shift = 0.1 * self.width / max(largest(search.passing), 1.0)
        loss = np.where(_passed_once(graph), OUT * largest(problem.reward), shift)
        self.bias = bias = search.value + side * loss * search.passing
        self.fixed = search.choice.copy() if side == -problem.agent.sign else None
        self.helps = problem.nature.sign == -side
        self.rows = np.arange(self.model.rows) if self.fixed is None else self.fixed
        self.owner = self.model.row_states[self.rows]
        self._first = np.flatnonzero(np.diff(self.owner, prepend=-1))
        plain = replace(problem, reward=np.zeros(self.model.rows))
        self.plain = Operator(plain, task.inner, task.stats)
        task.backup(bias, self.rows)
        self.paid = self._surplus(np.arange(len(self.rows)), task.side(side)[self.rows])
        self._moves = graph.edges.forward[2:]
        self._faces: Faces | None = None
        self._means = np.empty(0)

    def _surplus(self, listed: IntArray, q: FloatArray) -> FloatArray:
        """Return what u must be at least (seen from the side), for rows worth q by the witness."""
        here = self.bias[self.owner[listed]]
        surplus = q - here
        shift = surplus - q  # the error of a sum is a float [Knuth]
        exact = (q - (surplus - shift)) + (-here - shift) == 0.0
        return np.where(exact, surplus, np.nextafter(surplus, self.side * np.inf))

    def prove(self) -> FloatArray | None:
        """Return a bound (S,), or None if none was proven."""
        side, least = self.side, CLIMB * self.width
        label = np.unique(self.gain, return_inverse=True)[1]
        need = self._best(self.paid)
        near = side * (need - self.gain) <= 0.5 * self.width
        u = self._spread(np.where(near, self._far(need, self.gain), self.gain), label)
        steps = side * 2.0 * least * np.maximum(self.passing, 1.0)
        for _ in range(ROUNDS):
            self.task.clock.tick("certify", self.width)
            keep, climb = self._needs(u, least)
            need = self._best(np.minimum(side * keep, side * climb) * side)
            short = side * (need - u) > 0.0
            if not short.any():
                return u
            climbing = short & ~np.isfinite(self._best(keep))
            u = self._spread(self._far(u, need + np.where(climbing, steps, 0.0)), label)
        return None

    def _best(self, need: FloatArray) -> FloatArray:
        """Return what all rows (n,) that count need, per state (S,); infinitely little if none."""
        worst = np.full(self.model.states, -self.side * np.inf)
        worst[self.owner[self._first]] = self._far.reduceat(need, self._first)
        return worst

    def _spread(self, u: FloatArray, label: IntArray) -> FloatArray:
        """Return numbers (S,) with the farthest one of every cluster for all its states."""
        far = np.full(int(label.max()) + 1, -self.side * np.inf)
        self._far.at(far, label, u)
        return far[label]

    def _needs(self, u: FloatArray, least: float) -> tuple[FloatArray, FloatArray]:
        """Return what u would have to be for rows (n,) to keep, and to climb; infinite if never."""
        side = self.side
        self.plain.backup(u, self.rows)
        low, high = np.empty(len(self.rows)), np.empty(len(self.rows))
        row_span(self.rows, *self._moves, u, low, high)
        mean = np.clip(self.plain.side(side)[self.rows], low, high)  # a mean is between extremes
        here = u[self.owner]
        stuck = (low == here) & (high == here)
        more = np.nextafter(mean + side * least, side * np.inf)  # also where that is too little
        climb = np.where(stuck, side * np.inf, more)
        if not self.helps:
            falls = side * (mean - here) <= 0.0
            ties = ~falls & (side * (mean - here) <= TIE * np.maximum(np.abs(low), np.abs(high)))
            if ties.any():
                falls[ties] = self._falls(u, self.rows[ties])
            return np.where(falls, self.paid, side * np.inf), climb
        keep = self.paid.copy()
        worse = side * ((high if side > 0.0 else low) - here) > 0.0
        if worse.any():  # these may lead to states with u beyond that of their own
            keep[worse] = side * np.inf
            self._stay(u, keep)
        return keep, climb

    def _falls(self, u: FloatArray, rows: IntArray) -> BoolArray:
        """Return the rows (n,) whose mean of u is at most u here at every vertex.

        A vertex that stays among states of one u has that mean exactly; no margin would tell.
        """
        order = np.argsort(rows)
        faces = Faces(self.model, rows[order])
        mean, margin = faces.expectations(self.side * u)
        here = self.side * u[self.model.row_states[faces.rows]][faces.owner]
        falls = np.zeros(len(rows), dtype=np.bool_)
        listed = order[np.searchsorted(rows[order], faces.rows)]
        falls[listed] = segment_all(mean + margin <= here, faces.vertex_ptr)
        return falls

    def _stay(self, u: FloatArray, keep: FloatArray) -> None:
        """Let nature answer by vertices that lead to no state with u beyond, in place."""
        side = self.side
        if self._faces is None:
            self._faces = Faces(self.model, np.sort(self.rows))
            mean, margin = self._faces.expectations(self.bias)
            self._means = mean + side * margin
        faces = self._faces
        place = np.full(self.model.rows, -1, dtype=np.int64)
        place[self.rows] = np.arange(len(self.rows))
        home = u[self.model.row_states[faces.rows]][faces.owner]
        beyond = side * (u[faces.successor] - np.repeat(home, np.diff(faces.entry_ptr))) > 0.0
        inside = segment_all(~faces.taken | ~beyond, faces.entry_ptr)
        best, _ = faces.best(self._means, inside, -side)
        reward = self.task.problem.reward[faces.rows]
        slack = np.where(np.isfinite(best), reward_margin(reward, best), 0.0)
        listed = place[faces.rows]
        taken = np.isinf(keep[listed]) & np.isfinite(best)
        worth = (reward + best + side * slack)[taken]
        keep[listed[taken]] = self._surplus(listed[taken], worth)


def _passed_once(graph: Graph) -> BoolArray:
    """Return the states (S,) to which no cycle leads."""
    parts = components(graph)
    pointers, successors = graph.edges.forward[2:]
    by_state = pointers[graph.model.row_ptr]
    once: BoolArray = parts.trivial[parts.component]
    for level in reversed(parts.levels()):
        once[successors[entries(by_state, level[~once[level]])]] = False
    return once
