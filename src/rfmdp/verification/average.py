"""Means in the long run: what a bound u of every state and its witness h prove.

Seen from an upper bound (lower ones are turned round first), every row that counts must

    climb  the mean of u over its successors is less than u here, or
    keep   that mean is at most u here, and reward + mean of h <= u + h here

in the worst case if nature opposes the bound. If it helps, one member has to do: for `keep`, one
that leads only to states whose u is at most u here. As u is bounded and falls on average, climbs
are finitely many on average; what all other steps pay is at most the sum of u over the states seen,
up to a constant. So the mean of n rewards is at most u of the first state, plus a constant / n.
"""

from __future__ import annotations

from copy import copy

import numpy as np

from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.verification.game import GAIN, HOLD, UNKNOWN, Game, signs_of
from rfmdp.verification.margins import directed, two_sum

UPPER = 1


def long_run(
    game: Game, bound: FloatArray, bias: FloatArray, side: int, rule: IntArray | None
) -> tuple[BoolArray, BoolArray]:
    """Return the states (S,) where a bound of a side is proven, and where it may yet be one."""
    turned = copy(game)
    turned.agent, turned.nature = side * game.agent, side * game.nature
    u, h = side * bound, side * bias
    nowhere = np.zeros(game.model.states, dtype=np.bool_)
    rows = game.open_rows(nowhere, rule)
    turned.reward = turned.rest = np.zeros(game.model.rows)
    climbs = signs_of(turned, u, UPPER, 1.0, rows)
    todo = rows & (climbs != GAIN)
    # what a row pays beyond u, exactly or more
    first, error = two_sum(side * game.reward, -u[game.rows.state])
    turned.reward, turned.rest = first, directed(error, side * game.rest, 1.0)
    keeps = signs_of(turned, h, UPPER, 1.0, todo)
    if turned.nature == -UPPER:
        _among_lower(turned, u, h, todo, keeps)
    else:
        keeps = np.minimum(keeps, climbs)
    good = (climbs == GAIN) | (keeps >= HOLD)
    open_ = good | (climbs == UNKNOWN) | (keeps == UNKNOWN)
    return turned.enough(good, UPPER, rule), turned.enough(open_, UPPER, rule)


def _among_lower(
    game: Game, u: FloatArray, h: FloatArray, todo: BoolArray, keeps: AnyArray
) -> None:
    """Prove rows again that may lead to states with a larger u, without these, in place."""
    model, rows = game.model, game.rows
    levels, level = np.unique(u, return_inverse=True)
    most = np.maximum.reduceat(level[model.successors], model.successor_ptr[:-1])
    again = todo & (most > level[rows.state])
    for number in np.unique(level[rows.state[again]]):
        chosen = again & (level[rows.state] == number)
        keeps[chosen] = signs_of(game, np.where(u > levels[number], np.inf, h), UPPER, 1.0, chosen)[
            chosen
        ]
