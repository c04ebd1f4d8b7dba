"""Means over all steps in the long run, with a proof for every state.

A bound u (S,) of a side has a witness h (S,). Those who help the bound have answers so that in
every state, whatever the others do, one of two things holds (for an upper bound; lower ones are
its mirror image):

    keep   the mean of u over the successors is at most u here, and reward + mean of h <= u + h here
    climb  the mean of u over the successors is less than u here

Why. u never grows on average, so the climbs, each of which lowers it by some d > 0, are finitely
many on average. All other steps add up to: rewards of n steps <= the sum of u over the states seen,
plus a constant; and that sum is at most n times u of the first state. Nothing has to end, and h may
be any numbers. Where nature helps, one answer must do both parts of `keep`. That is asked of
answers whose successors all have u at most u here; the mean then follows.

Candidates come from policy iteration. The chain of both players' choices has a gain g, the mean of
every state, and a bias h with g + h = reward + mean of h; both are solved for, so neither periods
nor slow mixing matter. Rows and answers are best for h + price * g: it prices moves between states
of different gain. States of one g get one u. Where a proof fails u is moved outwards: states that
only climb by the time that they take, others by what they lack.

States to which no cycle leads are passed once at most, and what is paid there counts for nothing.
They come last, bottom first: u is the mean of u over the successors, and h is so far out that no
reward matters.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rfmdp.inner.protocol import successor_starts
from rfmdp.kernels.sweep import row_span
from rfmdp.outer.chain import Chain, Nodes
from rfmdp.outer.discounted import all_open
from rfmdp.outer.graph.components import components, strong_components
from rfmdp.outer.graph.region import Region
from rfmdp.outer.proofs.faces import Faces
from rfmdp.outer.settings import STOPS, largest, status_of
from rfmdp.outer.task import Operator, StateBounds, Task
from rfmdp.ragged import entries, segment_all, segment_any, segment_sum, starts
from rfmdp.rounding import UNIT, reward_margin
from rfmdp.types import BoolArray, FloatArray, IntArray

PRICES = (1e3, 1e5, 1e7)  # of gain, in bias: how many steps the choice of a better one is worth
POLICIES, ANSWERS = 60, 6  # of policy iteration at one price; nature's to one policy
RARE = 1e-12  # probability that an answer means to be none
FIRST = 100  # sweeps to a first policy, at most
STILL = 1e-12  # of the largest value: a smaller change is none
SAME = 0.01  # of the width that is wanted: gains of classes that differ by less are one
EXACT = 1e-12  # of the largest gain: rounding of a gain that is met almost surely
CLIMB = 1e-3  # of the width that is wanted: what a step climbs at least
OUT = 1e-6  # how much farther out than needed a witness is where nothing depends on it
TIE = 1e-12  # of the values of a row: means this near to u are looked at by vertices
ROUNDS, SWEEPS = 60, 2000  # of moving u outwards; of the chain that says how long climbs take


def solve_average(task: Task, warm: FloatArray | None = None) -> StateBounds:
    """Return bounds of all states, with their witnesses."""
    problem, states = task.problem, task.problem.model.states
    least, most = float(problem.reward.min()), float(problem.reward.max())
    slack = 0.0 if problem.lost is None else 2.0 * largest(problem.lost)
    lower, upper = np.full(states, least - slack), np.full(states, most + slack)
    result = StateBounds(lower, upper, lower, problem.model.row_ptr[:-1].copy())
    nothing = np.zeros(states)
    witness = {-1.0: nothing, 1.0: nothing}
    passage = Passage(all_open(problem))
    search = GainIteration(task, passage)
    try:
        for price in PRICES:
            search.improve(price)
            with task.stats.phase("certify"):
                for side in (-1.0, 1.0):
                    _improve(Gains(task, passage, search, side), result, witness)
            if task.closed(result.lower, result.upper, result.value) or search.equal:
                break
    except STOPS as stop:
        result.stopped = status_of(stop)
    result.value = 0.5 * result.lower + 0.5 * result.upper
    result.witness = witness[-1.0], witness[1.0]
    return result


class GainIteration:
    """Policy iteration: `choice` (S,), with `gain`, `bias` and `passing` of its chain, (S,) each.

    `passing` is how many steps a state takes before it can come back for ever.
    """

    def __init__(self, task: Task, passage: Passage) -> None:
        self.task, self.model = task, task.problem.model
        self.choice = self.model.row_ptr[:-1].copy()
        self.gain, self.bias, self.passing = np.zeros((3, self.model.states))
        self.price = 0.0
        self._latest = np.empty(0)  # rows and answers
        self._states = np.flatnonzero(~passage.once)
        self._rows = entries(self.model.row_ptr, self._states)
        self._every = np.ones(self.model.rows, dtype=np.bool_)

    @property
    def equal(self) -> bool:
        """Whether all states have one gain, so that no price matters."""
        return bool(np.ptp(self.gain[self._states]) == 0.0) if len(self._states) else True

    @property
    def width(self) -> float:
        """How close bounds have to be."""
        scale = max(largest(self.gain), 1e-3 * largest(self.task.problem.reward))
        return self.task.limits.precision * scale

    @property
    def value(self) -> FloatArray:
        """What choices are made by, (S,): the bias, and the gain at its price."""
        least = float(self.gain[self._states].min()) if len(self._states) else 0.0
        return self.bias + self.price * (self.gain - least)

    def improve(self, price: float) -> None:
        """Take best rows against nature's best answers until that changes nothing."""
        if not self.price:
            value = self.value
            for _ in range(min(FIRST, (len(self._rows) - len(self._states)) // 10)):
                self._choose(value, 0.0)
        self.price = price
        for _ in range(POLICIES if len(self._states) else 0):
            value = self.value
            same = max(STILL * largest(value), 0.1 * SAME * self.width)
            self._choose(value.copy(), same)
            for _ in range(ANSWERS):
                latest = self.value
                self.task.clock.tick("solve", 0.0)
                self._evaluate()
                if largest(self.value - latest) <= same:
                    break
            if largest(self.value - value) <= same:
                return

    def _choose(self, value: FloatArray, slack: float) -> None:
        """Take the rows that are best for a value (S,), which is swept so, in place."""
        operator = self.task.operator
        operator.backup(value, self._rows)
        q = operator.middle(self._rows, self._every)
        operator.choose(q, self._states, self.choice, value, slack)
        operator.stats.robust_sweeps += 1

    def _evaluate(self) -> None:
        """Find gain and bias of the chain of the policy and nature's best answers to it.

        They are what is paid, and how long it takes, until the play meets one state of a class, for
        every class of states that come back for ever.
        """
        model, states, count = self.model, self._states, len(self._states)
        rows = self.choice[states]
        answers = self.task.operator.inner.respond(self.value, rows)
        latest, self._latest = self._latest, np.append(rows, answers)
        if np.array_equal(latest, self._latest):
            return
        begin = successor_starts(model, rows)
        number = np.full(model.states, -1, dtype=np.int32)
        number[states] = np.arange(count)
        taken = answers > RARE
        answers[~taken] = 0.0
        pointers = starts(taken)[begin]
        after = number[model.successors[entries(model.successor_ptr, rows)]][taken]
        one_row, every = np.arange(count + 1), np.ones(count, dtype=np.bool_)
        edges = one_row, one_row[:-1], pointers, after
        label, _, classes = strong_components(edges, every, every)
        home = np.repeat(label, np.diff(pointers))
        closed = np.ones(classes, dtype=np.bool_)
        closed[home[home != label[after]]] = False
        first = np.full(classes, count)
        np.minimum.at(first, label, np.arange(count))
        meets = np.flatnonzero(closed)
        met = np.zeros(count, dtype=np.bool_)
        met[first[meets]] = True
        going = np.flatnonzero(~met)
        chain = Chain(
            model, Nodes.alone(states[going]), self.choice, answers[entries(begin, going)],
            np.zeros(model.states), np.zeros(model.rows),
        )  # fmt: skip

        def total(paid: FloatArray, ends: FloatArray) -> FloatArray:
            """Return what is paid (n,) until a place is met, plus what is paid there (n,)."""
            value, reward = np.zeros(model.states), np.zeros(model.rows)
            value[states[met]], reward[rows] = ends[met], paid
            chain.pay(value, reward)
            accuracy = np.full(len(going), 1e-9 * max(largest(paid), largest(ends)))
            if not (chain.direct and chain.solve()):
                chain.settle(self.task.clock, self.task.stats, SWEEPS, accuracy)
            chain.put(value)
            return value[states]

        reward, nothing = self.task.problem.reward[rows], np.zeros(count)
        length, paid = (
            each[met] + segment_sum(answers[taken] * total(each, nothing)[after], pointers)[met]
            for each in (np.ones(count), reward)
        )
        recurs = closed[label]
        class_gain = np.zeros(classes)
        class_gain[label[met]] = self._alike(paid / length)
        gain = total(nothing, class_gain[label])
        gain = np.where(recurs, class_gain[label], self._snapped(gain, class_gain[meets]))
        self.gain[states] = gain
        self.bias[states] = total(np.where(met, 0.0, reward - gain), nothing)
        self.passing[states] = total(np.where(recurs, 0.0, 1.0), nothing)

    def _alike(self, gain: FloatArray) -> FloatArray:
        """Return gains of classes, one number for those that are nearly the same."""
        order = np.argsort(gain)
        level = np.concatenate([[0], np.cumsum(np.diff(gain[order]) > SAME * self.width)])
        alike = np.empty_like(gain)
        alike[order] = gain[order][np.searchsorted(level, level)]
        return alike

    def _snapped(self, gain: FloatArray, exact: FloatArray) -> FloatArray:
        """Return gains of which those near to that of a class have no rounding."""
        near = np.sort(exact)
        place = np.clip(np.searchsorted(near, gain), 1, max(len(near) - 1, 1))
        below, above = near[place - 1], near[np.minimum(place, len(near) - 1)]
        nearest = np.where(gain - below <= above - gain, below, above)
        return np.where(np.abs(gain - nearest) <= EXACT * largest(exact), nearest, gain)


def _improve(gains: Gains, result: StateBounds, witness: dict[float, FloatArray]) -> None:
    """Take a bound with its witness and policy if it is proven and better where it counts."""
    task, side = gains.task, gains.side
    bound = gains.prove() if task.can_prove(side) else None
    if bound is None or side * float((bound - result.side(side))[task.interest].sum()) > 0.0:
        return
    result.put(side, bound)
    witness[side] = gains.bias
    if gains.fixed is not None:
        result.choice = gains.fixed
    result.value = bound


class Gains:
    """The search for a bound of one side (+1 upper) with a given witness."""

    def __init__(self, task: Task, passage: Passage, search: GainIteration, side: float) -> None:
        problem = task.problem
        self.task, self.side, self.model = task, side, problem.model
        self.passage, self.gain = passage, search.gain
        # on the way to where they stay states may lose a little, so that rounding costs nothing
        self.width = max(search.width, 1e4 * UNIT * largest(search.value))
        shift = 0.1 * self.width / max(largest(search.passing), 1.0)
        self.bias = bias = search.value + side * shift * search.passing
        self.fixed = search.choice.copy() if side == -problem.agent.sign else None
        self.helps = problem.nature.sign == -side
        rows = np.arange(self.model.rows) if self.fixed is None else self.fixed
        self.rows = rows[~passage.once[self.model.row_states[rows]]]
        self.owner = self.model.row_states[self.rows]
        self._first = np.flatnonzero(np.diff(self.owner, prepend=-1))
        inner, stats = task.operator.inner, task.stats
        self.operator = Operator(problem, inner, stats)
        plain = replace(problem, reward=np.zeros(self.model.rows), lost=None)
        self.plain = Operator(plain, inner, stats)
        self.lost = 0.0 if problem.lost is None else 2.0 * largest(problem.lost)
        self.operator.backup(bias, self.rows)
        self.paid = self._surplus(np.arange(len(self.rows)), self.operator.side(side)[self.rows])
        self._moves = passage.graph.edges.forward[2:]
        self._faces: Faces | None = None
        self._means = np.empty(0)

    def _surplus(self, listed: IntArray, q: FloatArray) -> FloatArray:
        """Return what u must be at least (seen from the side), for rows worth q by the witness."""
        here = self.bias[self.owner[listed]]
        surplus = q - here
        shift = surplus - q  # the error of a sum is a float [Knuth]
        exact = (q - (surplus - shift)) + (-here - shift) == 0.0
        surplus = np.where(exact, surplus, np.nextafter(surplus, self.side * np.inf))
        return surplus + self.side * self.lost if self.lost else surplus

    def prove(self) -> FloatArray | None:
        """Return a bound (S,), or None if none was proven."""
        task, side = self.task, self.side
        width = self.width
        label = np.unique(self.gain, return_inverse=True)[1]
        need = np.where(self.passage.once, self.gain, self._best(self.paid))
        near = side * (need - self.gain) <= 0.5 * width
        u = self._spread(
            np.where(near, side * np.maximum(side * need, side * self.gain), self.gain), label
        )
        for _ in range(ROUNDS):
            task.clock.tick("certify", width)
            keep, climb = self._needs(u, CLIMB * width)
            each = np.minimum(side * keep, side * climb) * side
            need = self._best(each)
            short = side * (need - u) > 0.0
            if not short.any():
                return self._pass(u, CLIMB * width)
            climbing = short & ~np.isfinite(self._best(keep))
            u = u + side * self._time(u, climbing, each, CLIMB * width)
            need = np.where(climbing, u, need)
            u = self._spread(np.where(side * (need - u) > 0.0, need, u), label)
        return None

    def _best(self, need: FloatArray) -> FloatArray:
        """Return what all rows (n,) that count need, per state (S,); infinitely little if none."""
        reduce = np.maximum if self.side > 0.0 else np.minimum
        worst = np.full(self.model.states, -self.side * np.inf)
        worst[self.owner[self._first]] = reduce.reduceat(need, self._first)
        return worst

    def _spread(self, u: FloatArray, label: IntArray) -> FloatArray:
        """Return numbers (S,) with the farthest one of every cluster for all its states."""
        far = np.full(int(label.max()) + 1, -self.side * np.inf)
        (np.maximum if self.side > 0.0 else np.minimum).at(far, label, u)
        return far[label]

    def _needs(self, u: FloatArray, least: float) -> tuple[FloatArray, FloatArray]:
        """Return what u would have to be for rows (n,) to keep, and to climb; infinite if never."""
        side = self.side
        self.plain.backup(u, self.rows)
        low, high = np.empty(len(self.rows)), np.empty(len(self.rows))
        row_span(self.rows, *self._moves, u, low, high)
        mean = np.clip(self.plain.side(side)[self.rows], low, high)  # a mean is between extremes
        here = u[self.owner]
        climb = mean + side * least
        if not self.helps:
            falls = side * (mean - here) <= 0.0
            ties = ~falls & (side * (mean - here) <= TIE * np.maximum(np.abs(low), np.abs(high)))
            if ties.any():
                falls[ties] = self._falls(u, self.rows[ties])
            return np.where(falls, self.paid, side * np.inf), climb
        keep = self.paid.copy()
        worse = self._worse(u)
        if worse.any():
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

    def _worse(self, u: FloatArray) -> BoolArray:
        """Return the rows (n,) that may lead to states with u beyond that of their own."""
        pointers, successors = self._moves
        here = np.repeat(u[self.model.row_states], np.diff(pointers))
        return segment_any(self.side * (u[successors] - here) > 0.0, pointers)[self.rows]

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

    def _time(
        self, u: FloatArray, climbing: BoolArray, need: FloatArray, least: float
    ) -> FloatArray:
        """Return twice `least` for every step (S,) that climbing states take, on average.

        need : (n,) what u would have to be, by rows; an agent who opposes takes the worst one
        """
        nodes = np.flatnonzero(climbing)
        once = np.where(climbing, 2.0 * least, 0.0)
        if not len(nodes):
            return once
        choice = self.model.row_ptr[:-1].copy() if self.fixed is None else self.fixed
        if self.fixed is None:
            worst = np.flatnonzero(need == self._best(need)[self.owner])[::-1]
            choice[self.owner[worst]] = self.rows[worst]
        answers = self.plain.inner.respond(u, choice[nodes])
        each = np.full(self.model.rows, 2.0 * least)
        steps = np.zeros(self.model.states)
        chain = Chain(self.model, Nodes.alone(nodes), choice, answers, steps, each)
        accuracy = np.full(len(nodes), 0.1 * least)
        settled = chain.settle(self.task.clock, self.task.stats, SWEEPS, accuracy)
        if not settled and not (chain.direct and chain.solve()):
            return once
        chain.put(steps)
        return np.where(np.isfinite(steps), np.maximum(steps, once), once)

    def _pass(self, u: FloatArray, least: float) -> FloatArray:
        """Return a bound with numbers for the states that are passed once; they get a witness."""
        side, bias, reward = self.side, self.bias, self.task.problem.reward
        sign = self.task.problem.agent.sign
        for states in self.passage.levels:
            self.task.clock.tick("certify", least)
            rows = entries(self.model.row_ptr, states)
            owner = self.model.row_states[rows]
            first = np.flatnonzero(np.diff(owner, prepend=-1))
            self.plain.backup(u, rows)
            low, high, worth = (np.empty(len(rows)) for _ in range(3))
            row_span(rows, *self._moves, u, low, high)
            mean = np.clip(self.plain.side(side)[rows], low, high)
            worth = np.where(low == high, mean, mean + side * least)
            u[states] = sign * np.maximum.reduceat(sign * worth, first)
            if self.fixed is not None:
                best = np.flatnonzero(worth == u[owner])[::-1]
                self.fixed[owner[best]] = rows[best]
            row_span(rows, *self._moves, bias, low, high)
            far = side * (reward[rows] - u[owner]) + np.maximum(side * low, side * high)
            far += self.lost + OUT * (np.abs(reward[rows]) + np.abs(far) + np.abs(u[owner]))
            bias[states] = side * np.maximum.reduceat(far, first)
        return u


class Passage:
    """The states to which no cycle leads, by level, and the region of all others."""

    def __init__(self, everywhere: Region) -> None:
        self.graph = graph = everywhere.graph
        parts = everywhere.components
        self.component = parts.component
        pointers, successors = graph.edges.forward[2:]
        by_state = pointers[graph.model.row_ptr]
        self.once = parts.trivial[parts.component]  # (S,)
        self.levels: list[IntArray] = []  # bottom first
        for level in reversed(parts.levels()):
            once = self.once[level]
            self.once[successors[entries(by_state, level[~once])]] = False
            if once.any():
                self.levels.insert(0, np.sort(level[once]))
        again = ~self.once
        self.region = replace(everywhere, open=again, components=components(graph, again))
