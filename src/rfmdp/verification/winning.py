"""Where a parity objective is won almost surely, by which successors are possible.

The largest priority p of an arena decides. If it is good for those whose win is claimed: what they
keep coming to is won, unless they come to a part, away from p, that the others win. If it is bad:
what is won where the others cannot come to p takes the place of p. Nature has two questions asked
per row: can she stay inside, and can she stay inside and touch something.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.ragged import segment_any
from rfmdp.types import BoolArray, IntArray
from rfmdp.verification.exact import Undecided
from rfmdp.verification.forcing import attract
from rfmdp.verification.game import Game
from rfmdp.verification.sets import LP


@dataclass(frozen=True, slots=True, eq=False)
class _Arena:
    states: BoolArray  # (S,)
    rows: BoolArray  # (R,)


class Winning:
    """The game from the side (+1 or -1) of those whose win is claimed.

    `doubt` says whether some question had no answer; then nothing is proven.
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
        states = inside
        rows = self.game.open_rows(~states, self.rule)
        while True:
            for row in np.flatnonzero(rows & self.rows.touch(~states)):
                within = states[self.rows.successors(int(row))]
                try:
                    rows[row] = not self.rows.rigid[row] and self.rows.can(int(row), within, None)
                except Undecided:
                    self.doubt = True
            left = np.zeros_like(states)
            left[self.rows.state[rows]] = True
            if np.array_equal(left, states):
                break
            states = left
            rows &= states[self.rows.state]
        won = self._won(_Arena(states, rows))
        self.game.agent, self.game.nature = agent, nature
        return not won.any() and not self.doubt

    def everywhere(self) -> BoolArray:
        """Return where the side wins with probability one, (S,)."""
        states = np.ones(self.game.model.states, dtype=np.bool_)
        return self._won(_Arena(states, self.game.open_rows(~states, self.rule)))

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
