"""Values of small parity games by all pairs of memoryless strategies, each an explicit chain."""

import itertools

import numpy as np

from outer.games import corner_members, explicit
from rfmdp.objective import MAX

PAIRS = 4_000  # of strategies, at most


def choices(model):
    """Return per state its rows, per row nature's vertices (V, S); None if pairs are too many."""
    game = explicit(model, members=corner_members)
    moves = [[np.array(game.moves[r]) for r in rows] for rows in game.rows]
    most = np.prod([sum(len(vertices) for vertices in rows) for rows in moves], dtype=float)
    return moves if most <= PAIRS else None


def parity_values(model, priority, agent, nature):
    """Return the value of every state (S,), the best of the agent's worst cases; None: too large.

    The sets are polytopes, so both have optimal memoryless strategies, nature one of vertices.
    """
    moves = choices(model)
    if moves is None:
        return None
    outcomes = []
    for rule in itertools.product(*[range(len(rows)) for rows in moves]):
        vertices = [rows[r] for rows, r in zip(moves, rule, strict=True)]
        chains = np.array(list(itertools.product(*vertices)))
        values = chain_values(chains, np.asarray(priority))
        outcomes.append(values.max(axis=0) if nature is MAX else values.min(axis=0))
    return np.max(outcomes, axis=0) if agent is MAX else np.min(outcomes, axis=0)


def chain_values(chains, priority):
    """Return the probability (P, S) of an even largest priority for ever, in chains (P, S, S).

    It is that of coming to a closed class whose largest priority is even: a linear system of at
    most five unknowns, whose error is far below 1e-10 for probabilities of a few digits.
    """
    size = chains.shape[1]
    reach = (chains > 0) | np.eye(size, dtype=bool)
    for _ in range(size):
        reach = reach @ reach
    mutual = reach & reach.transpose(0, 2, 1)
    closed = ~(reach & ~mutual).any(axis=2)
    top = np.where(mutual, priority, -1).max(axis=2)
    won = closed & (top % 2 == 0)
    left = np.where(closed[:, :, None], 0.0, chains)
    right = np.where(closed, 0.0, (chains * won[:, None, :]).sum(axis=2))
    left = left * ~closed[:, None, :]
    values = np.linalg.solve(np.eye(size) - left, right[:, :, None])[:, :, 0]
    return np.where(closed, won.astype(float), values)
