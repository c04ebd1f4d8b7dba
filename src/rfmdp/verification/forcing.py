"""What players can force: fixpoints over which successors are possible.

Where these means do not tell what nature can do (`Undecided`), the answer is the one that proves
less. `Winning` says where a parity objective is won almost surely.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rfmdp.ragged import entries, segment_any, segment_lengths, stable_order, starts
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.verification.exact import Undecided
from rfmdp.verification.game import GAIN, HOLD, Game
from rfmdp.verification.rows import Rows
from rfmdp.verification.sets import LP

Leads = Callable[[int, BoolArray], bool]
"""Whether a row leads into a set of states."""


def gaining(
    game: Game, signs: AnyArray, bound: FloatArray, trivial: BoolArray, side: int,
    rule: IntArray | None,
) -> BoolArray:  # fmt: skip
    """Return from where the bound gains or ends, whatever the opposing do.

    The least set of states whose rows gain, or hold and lead into the set.
    """
    if trivial.all():
        return trivial

    def leads(row: int, inside: BoolArray) -> bool:
        """Return whether nature makes a gain, or none and comes into the set."""
        into = inside[game.rows.successors(row)].tolist()
        gains = zip(game.gains(row, bound, side, 1.0), into, strict=True)
        return game.decide(row, [(*gain, Fraction(hit)) for gain, hit in gains], side) == GAIN

    return attract(game, trivial, signs == GAIN, signs == HOLD, leads, side, rule)


def sure(game: Game, target: BoolArray, rule: IntArray | None, unknown: bool = True) -> BoolArray:
    """Return where those who minimise reach the target almost surely.

    Where means do not tell, more states, or fewer if `unknown` is False.
    """
    helps, rows = game.nature < 0, game.rows
    outer = np.ones(game.model.states, dtype=np.bool_)
    none = np.zeros(game.model.rows, dtype=np.bool_)
    while True:
        stays = _stays(rows, outer, helps, unknown)

        def leads(row: int, inside: BoolArray, outer: BoolArray = outer) -> bool:
            successors = rows.successors(row)
            if helps:
                return rows.can(row, outer[successors], inside[successors])
            return not rows.can(row, ~inside[successors], None)

        inner = attract(game, target, none, stays, leads, 1, rule, unknown=unknown)
        if np.array_equal(inner, outer):
            return outer
        outer = inner


def recurrent(game: Game, fire: BoolArray, rule: IntArray | None) -> BoolArray:
    """Return where those who maximise are paid for ever with positive probability, or less."""
    won = np.zeros(game.model.states, dtype=np.bool_)
    while True:
        outer = np.ones_like(won)
        while True:
            inner = _recurrent_step(game, fire, won, outer, rule)
            if np.array_equal(inner, outer):
                break
            outer = inner
        if np.array_equal(outer, won):
            return won
        won = outer


def _recurrent_step(
    game: Game, fire: BoolArray, won: BoolArray, outer: BoolArray, rule: IntArray | None
) -> BoolArray:
    """Return the least set of states that lead into `won`, or stay and pay or lead on."""
    helps, rows, can = game.nature > 0, game.rows, game.rows.can

    def hits(row: int) -> bool:
        past = won[rows.successors(row)]
        return can(row, None, past) if helps else not can(row, ~past, None)

    def leads(row: int, inside: BoolArray) -> bool:
        successors = rows.successors(row)
        past, at, into = won[successors], outer[successors], inside[successors]
        if helps:
            return can(row, None, past) or can(row, at, None if fire[row] else into)
        if can(row, ~past, ~at):
            return False
        return bool(fire[row]) or not can(row, ~past & ~into, None)

    stays = _stays(rows, outer, helps, False)
    good = _each(rows, rows.touch(won), hits, False) | (stays & fire)
    return attract(game, won, good, stays | ~rows.rigid, leads, -1, rule)


def _stays(rows: Rows, states: BoolArray, helps: bool, unknown: bool) -> BoolArray:
    """Return the rows that nature can, or must, keep within the states."""

    def stays(row: int) -> bool:
        at = states[rows.successors(row)]
        return rows.can(row, at, None) if helps else not rows.can(row, None, ~at)

    return _each(rows, ~rows.touch(~states), stays, unknown)


def _each(rows: Rows, known: BoolArray, test: Callable[[int], bool], unknown: bool) -> BoolArray:
    """Return what is known of rigid rows, and what a test says of the others, (R,)."""
    answers = known & rows.rigid
    for row in np.flatnonzero(~rows.rigid):
        try:
            answers[row] = test(int(row))
        except Undecided:
            answers[row] = unknown
    return answers


def attract(
    game: Game, start: BoolArray, good: BoolArray, open_: BoolArray, leads: Leads, side: int,
    rule: IntArray | None, unknown: bool = False,
) -> BoolArray:  # fmt: skip
    """Return the least set: `start`, and states whose rows are good or lead into the set.

    Of a state without a rule, an agent that helps needs one such row; one that opposes must not
    escape by any, so all rows must be such. A rule leaves one row per state, and that is needed.

    Parameters
    ----------
    start, good
        States (S,) that are in the set, and rows (R,) that are enough whatever the set.
    open_
        Rows (R,) that may lead into the set. Those that are rigid, where nature has no choice of
        successors, do if one of their successors is in it; of the others `leads` says so.
    side
        That of the bound which is to be proven, -1 lower, +1 upper: who pulls the other way helps.
    rule
        Rows (S,) that the agent is bound to, or None.
    unknown
        What holds of rows that `leads` cannot decide; it must be what proves less.
    """
    good = good.copy()
    rows = game.rows
    ptr, into = _entering(rows, np.flatnonzero(open_ & game.open_rows(start, rule)))
    inside = start | game.enough(good, side, rule)
    new = np.flatnonzero(inside)
    alone = rule is not None or game.agent == -side
    missing = np.add.reduceat((~good).astype(np.int64), game.model.row_ptr[:-1])
    while len(new):
        new_rows = into[entries(ptr, new)]
        new_rows = np.unique(new_rows[~good[new_rows]])
        won = rows.rigid[new_rows].copy()
        for i in np.flatnonzero(~won):
            try:
                won[i] = leads(int(new_rows[i]), inside)
            except Undecided:
                won[i] = unknown
        new_rows = new_rows[won]
        good[new_rows] = True
        states = rows.state[new_rows]
        if not alone:
            np.subtract.at(missing, states, 1)
            states = states[missing[states] == 0]
        new = np.unique(states[~inside[states]])
        inside[new] = True
    return inside


def _entering(rows: Rows, chosen: IntArray) -> tuple[IntArray, IntArray]:
    """Return pointers (S + 1,) to the chosen rows that can lead to every state, and these."""
    model = rows.model
    ptr = model.successor_ptr
    held = rows.possible(chosen)
    states = model.successors[entries(ptr, chosen)][held]
    into = np.repeat(chosen, segment_lengths(ptr)[chosen])[held]
    return starts(np.bincount(states, minlength=model.states)), into[stable_order(states)]


@dataclass(frozen=True, slots=True, eq=False)
class _Arena:
    states: BoolArray  # (S,)
    rows: BoolArray  # (R,)


class Winning:
    """A parity objective from the side (+1 or -1) of those whose win is claimed.

    The largest priority p of an arena decides. If it is good for the side: what it keeps coming to
    is won, unless it comes to a part, away from p, that the others win. If it is bad: what is won
    where the others cannot come to p takes the place of p. Nature has two questions asked per row:
    can she stay inside, and can she stay inside and touch something. `doubt` says whether some
    question had no answer; then nothing is proven.
    """

    def __init__(self, game: Game, priority: IntArray, side: int, rule: IntArray | None) -> None:
        self.game, self.rows, self.side, self.rule = game, game.rows, side, rule
        self.priority = priority if side > 0 else priority + 1
        # a curved set may touch a face in a point: then supports alone do not tell what is won
        curved = self.rows.sets.kind[game.model.row_marginals] == LP
        self.doubt = bool((segment_any(curved, game.model.marginal_ptr) & ~self.rows.rigid).any())

    def nowhere(self, inside: BoolArray) -> bool:
        """Return whether no play that stays inside some states (S,) is won, if all help the side.

        Then a play that stays there for ever is lost by the side almost surely.
        """
        agent, nature = self.game.agent, self.game.nature
        self.game.agent = self.game.nature = self.side
        leaving = self._near(self._whole, ~inside, np.zeros_like(inside), False)
        won = self._won(self._without(self._whole, leaving, False))
        self.game.agent, self.game.nature = agent, nature
        return not won.any() and not self.doubt

    def everywhere(self) -> BoolArray:
        """Return where the side wins with probability one, (S,)."""
        return self._won(self._whole)

    @property
    def _whole(self) -> _Arena:
        states = np.ones(self.game.model.states, dtype=np.bool_)
        return _Arena(states, self.game.open_rows(~states, self.rule))

    def _won(self, arena: _Arena) -> BoolArray:
        nothing = np.zeros_like(arena.states)
        if not arena.states.any():
            return nothing
        largest = int(self.priority[arena.states].max())
        top = arena.states & (self.priority == largest)
        if largest % 2 == 0:
            return self._around(arena, top, nothing)
        won = self._won(self._without(arena, self._near(arena, top, nothing, False), False))
        return self._around(arena, won, won) if won.any() else won

    def _around(self, arena: _Arena, target: BoolArray, ends: BoolArray) -> BoolArray:
        """Return what is won if coming to a target for ever, or to an end once, is a win."""
        while (target & arena.states).any():
            near = self._near(arena, target & arena.states, ends, True)
            rest = self._without(arena, near, True)
            lost = rest.states & ~self._won(rest)
            if not lost.any():
                return arena.states
            arena = self._without(arena, self._near(arena, lost, ends, False), False)
        return self._won(arena)

    def _near(self, arena: _Arena, target: BoolArray, ends: BoolArray, helping: bool) -> BoolArray:
        """Return from where the side, or the others, come to a target in an arena."""
        open_ = arena.rows & (arena.states & ~ends)[self.rows.state]
        joins = (self.game.agent == self.side) == helping
        others = (arena.states & ~ends & ~target)[self.rows.state] & ~arena.rows
        good = others & (not joins)  # rows that are not there escape nobody
        towards = -self.game.agent if joins else self.game.agent
        return attract(
            self.game, target, good, open_,
            lambda row, inside: self._leads(arena, row, inside, helping), towards, self.rule,
        )  # fmt: skip

    def _leads(self, arena: _Arena, row: int, inside: BoolArray, helping: bool) -> bool:
        """Return whether nature, if she helps, can touch a set, or else cannot avoid it."""
        successors = self.rows.successors(row)
        within, hit = arena.states[successors], inside[successors]
        try:
            if (self.game.nature == self.side) == helping:
                return self.rows.can(row, within, hit)
            return not self.rows.can(row, within & ~hit, None)
        except Undecided:
            self.doubt = True
            return False

    def _without(self, arena: _Arena, gone: BoolArray, helping: bool) -> _Arena:
        """Return an arena without the states that come to a target, and the rows that do."""
        states = arena.states & ~gone
        rows = arena.rows & states[self.rows.state]
        leads = rows & self.rows.touch(gone)
        for row in np.flatnonzero(leads & ~self.rows.rigid):
            leads[row] = self._leads(arena, int(row), gone, helping)
        return _Arena(states, rows & ~leads)
