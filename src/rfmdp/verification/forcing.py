"""What players can force: fixpoints over which successors are possible.

Where these means do not tell what nature can do (`Undecided`), the answer is the one that proves
less. `Winning` says where a parity objective is won almost surely; to reach a target, and to be
paid for ever, are such objectives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rfmdp.ragged import entries, segment_any, segment_lengths, stable_order, starts
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.verification.game import GAIN, HOLD, Game
from rfmdp.verification.sets import LP, Undecided

Leads = Callable[[int, BoolArray], bool]
"""Whether a row leads into a set of states."""


def gaining(
    game: Game, signs: AnyArray, bound: FloatArray, trivial: BoolArray, side: int
) -> BoolArray:
    """Return from where the bound gains or ends, whatever the opposing do.

    The least set of states whose rows gain, or hold and lead into the set.
    """
    if trivial.all():
        return trivial

    def leads(row: int, inside: BoolArray) -> bool:
        """Return whether nature makes a gain, or none and comes into the set."""
        try:
            return game.decide(row, bound, side, 1.0, inside) == GAIN
        except Undecided:
            return False

    helps = game.agent == -side
    return attract(game, trivial, signs == GAIN, signs == HOLD, leads, helps)


def attract(
    game: Game, start: BoolArray, good: BoolArray, open_: BoolArray, leads: Leads, helps: bool,
    there: BoolArray | None = None,
) -> BoolArray:  # fmt: skip
    """Return the least set: `start`, and states whose rows are good or lead into the set.

    Of the rows that are there (by default all that the agent may take), an agent that helps needs
    one such row; if it opposes, all must be such. Open rows may lead into the set. Those that are
    rigid, where nature has no choice of successors, do if one of their successors is in it; of the
    others `leads` says so.
    """
    model = game.model
    there = game.allowed if there is None else there
    good = good & there
    chosen = np.flatnonzero(open_ & ~good & ~start[game.state])
    places = entries(model.successor_ptr, chosen)
    held = game.possible[places]
    after = model.successors[places][held]
    into = np.repeat(chosen, segment_lengths(model.successor_ptr)[chosen])[held]
    into, ptr = into[stable_order(after)], starts(np.bincount(after, minlength=model.states))
    inside = start | game.enough(good, helps, there)
    lacking = np.add.reduceat((there & ~good).astype(np.int64), model.row_ptr[:-1])
    new = np.flatnonzero(inside)
    while len(new):
        new_rows = into[entries(ptr, new)]
        new_rows = np.unique(new_rows[~good[new_rows]])
        won = game.rigid[new_rows].copy()
        for i in np.flatnonzero(~won):
            won[i] = leads(int(new_rows[i]), inside)
        good[new_rows[won]] = True
        states = game.state[new_rows[won]]
        if not helps:
            np.subtract.at(lacking, states, 1)
            states = states[lacking[states] == 0]
        new = np.unique(states[~inside[states]])
        inside[new] = True
    return inside


class _Arena(NamedTuple):
    states: BoolArray  # (S,)
    rows: BoolArray  # (R,)


class Winning:
    """A parity objective from the side (+1 or -1) of those whose win is claimed.

    By the recursion over priorities in docs/soundness.md, with two questions about nature per row.
    `doubt` says whether some question had no answer; then nothing is proven.
    """

    def __init__(self, game: Game, priority: IntArray, side: int) -> None:
        self.game, self.side = game, side
        self.priority = priority if side > 0 else priority + 1
        self.doubt = False
        self._whole = _Arena(np.ones(game.model.states, dtype=np.bool_), game.allowed)

    def nowhere(self, inside: BoolArray) -> bool:
        """Return whether no play that stays inside some states (S,) is won, if all help the side.

        Then a play that stays there for ever is lost by the side almost surely.
        """
        agent, nature = self.game.agent, self.game.nature
        self.game.agent = self.game.nature = self.side
        leaving = self._near(self._whole, ~inside, np.zeros_like(inside), False)
        won = self._won(self._without(self._whole, leaving, False))
        self.game.agent, self.game.nature = agent, nature
        return not won.any() and not self.doubt and not self._curved()

    def everywhere(self) -> BoolArray:
        """Return where the side wins with probability one, (S,)."""
        self.doubt |= self._curved()
        return self._won(self._whole)

    def reaching(self, target: BoolArray) -> BoolArray:
        """Return where the side reaches a target with probability one, (S,); priorities are bad."""
        return self._around(self._whole, target, target)

    def _curved(self) -> bool:
        """Return whether sets may touch a face in a point: supports do not tell what is won."""
        curved = self.game.sets.kind[self.game.model.row_marginals] == LP
        rows = segment_any(curved, self.game.model.marginal_ptr)
        return bool((rows & ~self.game.rigid).any())

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
        open_ = arena.rows & (arena.states & ~ends)[self.game.state]
        return attract(
            self.game, target, np.zeros_like(open_), open_,
            lambda row, inside: self._leads(arena, row, inside, helping),
            (self.game.agent == self.side) == helping, arena.rows,
        )  # fmt: skip

    def _leads(self, arena: _Arena, row: int, inside: BoolArray, helping: bool) -> bool:
        """Return whether nature, if she helps, can touch a set, or else cannot avoid it."""
        successors = self.game.successors(row)
        within, hit = arena.states[successors], inside[successors]
        try:
            if (self.game.nature == self.side) == helping:
                return self.game.can(row, within, hit)
            return not self.game.can(row, within & ~hit, None)
        except Undecided:
            self.doubt = True
            return False

    def _without(self, arena: _Arena, gone: BoolArray, helping: bool) -> _Arena:
        """Return an arena without the states that come to a target, and the rows that do."""
        states = arena.states & ~gone
        rows = arena.rows & states[self.game.state]
        leads = rows & self.game.touch(gone)
        for row in np.flatnonzero(leads & ~self.game.rigid):
            leads[row] = self._leads(arena, int(row), gone, helping)
        return _Arena(states, rows & ~leads)


def missing(game: Game, target: BoolArray) -> tuple[BoolArray, bool]:
    """Return where (S,) those who minimise do not reach a target surely, and if that is open."""
    winning = Winning(game, np.zeros(game.model.states, dtype=np.int64), -1)
    return ~winning.reaching(target), winning.doubt


def recurrent(game: Game, fire: BoolArray) -> tuple[BoolArray, bool]:
    """Return where (S,) those who maximise are paid for ever, perhaps, and if that is open.

    The others cannot surely put an end to it, in the game in which row r is a state S + r as well.
    """
    model = game.model
    every = np.arange(model.rows)
    split = replace(
        model,
        row_ptr=np.append(model.row_ptr, model.rows + 1 + every),
        marginal_ptr=np.append(0 * every, model.marginal_ptr),
        successor_ptr=np.append(every, model.rows + model.successor_ptr),
        successors=np.append(model.states + every, model.successors),
    )
    ending = Game(split, game.agent, game.nature, None)
    ending.allowed[: model.rows] = game.allowed
    priority = np.append(np.ones(model.states, dtype=np.int64), 1 + fire)
    winning = Winning(ending, priority, -1)
    return ~winning.everywhere()[: model.states], winning.doubt
