"""Tiny random models, and the same as explicit games that are solved by slow, obvious means."""

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, MIN, Direction
from rfmdp.sets.families import Interval, L1Ball, Polytope, Singleton
from set_twins import packed_vertices as vertices

from .random_specs import PAIRS


def random_box(rng: np.random.Generator, size: int) -> Interval:
    """Return a box on a grid of eighths, many of whose bounds are 0 or 1."""
    while True:
        lower = rng.choice([0.0, 0.0, 0.0, 0.125, 0.25], size)
        upper = np.maximum(lower, rng.choice([0.0, 0.375, 0.5, 0.75, 1.0], size))
        if lower.sum() <= 0.95 and upper.sum() >= 1.0:
            return Interval(lower, upper)


def random_set(rng: np.random.Generator, size: int):
    """Return a set of any family with finitely many vertices."""
    point = rng.multinomial(10, rng.dirichlet(np.ones(size))) / 10
    kind = rng.integers(6)
    if kind == 0:
        return Singleton(point)
    if kind == 1:
        return L1Ball(point, float(rng.choice([0.15, 0.55, 1.15, 2.0])))
    if kind == 2:
        corners = rng.integers(0, 3, (3, size)) + 1e-9
        corners = np.where(corners < 0.5, 0.0, corners)
        corners[:, 0] += corners.sum(axis=1) == 0
        return Polytope(corners / corners.sum(axis=1, keepdims=True))
    return random_box(rng, size)


def random_model(seed: int, most: int = 5) -> FactoredMDP:
    """Return a model with up to `most` states, three rows each, up to three small factors."""
    rng = np.random.default_rng(seed)
    states = int(rng.integers(1, most + 1))
    sets = [random_set(rng, int(rng.integers(1, 4))) for _ in range(4)]
    lines = []
    for s in range(states):
        rows = []
        for _ in range(rng.integers(1, 4)):
            chosen = rng.integers(0, len(sets), rng.integers(0, 3 if rng.random() < 0.8 else 4))
            size = int(np.prod([sets[j].size for j in chosen]))
            # few different successors, so that nature can often avoid one of them
            pool = rng.choice([s, *range(states)], rng.integers(2, 5))
            rows.append((chosen.tolist(), rng.choice(pool, size).tolist()))
        lines.append(rows)
    return FactoredMDP.from_rows(lines, sets)


@dataclass
class Game:
    """Per state its rows, per row nature's finite choices, each a (K_r,) distribution."""

    states: int
    rows: list[list[int]]  # row ids per state
    moves: dict[int, list[np.ndarray]]  # (S,) distributions per row

    def supports(self, r: int) -> list[frozenset[int]]:
        """Return nature's choices in row r as sets of states."""
        return self._supports[r]

    @cached_property
    def _supports(self) -> dict[int, list[frozenset[int]]]:
        return {
            r: [frozenset(np.flatnonzero(p > 0).tolist()) for p in choices]
            for r, choices in self.moves.items()
        }


def explicit(model: FactoredMDP, allowed=None, members=None) -> Game:
    """Return the game over all products of `members` of the sets: one per attainable support."""
    members = members or support_members
    moves = {}
    for r in range(model.rows):
        part = slice(model.successor_ptr[r], model.successor_ptr[r + 1])
        target = model.successors[part]
        ids = model.row_marginals[model.marginal_ptr[r] : model.marginal_ptr[r + 1]]
        choices = [members(model.marginals[int(j)]) for j in ids]
        moves[r] = []
        for product in itertools.product(*choices):
            joint = np.ones(1)
            for p in product:
                joint = np.outer(joint, p).ravel()
            dense = np.zeros(model.states)
            np.add.at(dense, target, joint)
            moves[r].append(dense)
    rows = [list(range(a, b)) for a, b in itertools.pairwise(model.row_ptr)]
    if allowed is not None:
        rows = [[r for r in line if allowed[r]] for line in rows]
    return Game(model.states, rows, _distinct(moves))


def corner_members(uset) -> list[np.ndarray]:
    """Return the vertices, with entries that are 0 up to rounding made 0."""
    return list(np.where(vertices(uset) < 1e-12, 0.0, vertices(uset)))


def support_members(uset) -> list[np.ndarray]:
    """Return one member per attainable support: averages of vertices."""
    found = {tuple(p > 0): p for p in corner_members(uset)}
    while True:
        more = {tuple((p + q) > 0): (p + q) / 2 for p in found.values() for q in found.values()}
        if set(more) <= set(found):
            return list(found.values())
        found = {**more, **found}


def _distinct(moves):
    return {
        r: list({tuple(p.round(12)): p for p in choices}.values()) for r, choices in moves.items()
    }


def quantify(direction: Direction):
    """Return `any` for a player who wants the event, `all` for one who does not."""
    return any if direction is MAX else all


def least(game: Game, row_wins, agent: Direction, base: set[int], grow: set[int]) -> set[int]:
    """Return the least X that contains base and every state of grow that wins towards X."""
    reached = set(base)
    while True:
        more = {
            s
            for s in grow - reached
            if game.rows[s] and quantify(agent)(row_wins(r, reached) for r in game.rows[s])
        }
        if not more:
            return reached
        reached |= more


def naive_positive(game, target, stay, agent, nature):
    def wins(r, reached):
        return quantify(nature)(bool(b & reached) for b in game.supports(r))

    return least(game, wins, agent, target, stay)


def naive_almost_sure(game, target, stay, agent, nature):
    within = target | stay
    while True:

        def wins(r, reached, within=within):
            return quantify(nature)(b <= within and bool(b & reached) for b in game.supports(r))

        better = least(game, wins, agent, target, within & stay)
        if better == within:
            return within
        within = better


def naive_recurrent(game, positive_rows, agent, nature):
    """Return mu Z. nu Y. mu X. hit(Z) or (stay(Y) and (positive row or hit(X)))."""
    everything = set(range(game.states))
    won: set[int] = set()
    while True:
        within = everything
        while True:

            def wins(r, reached, within=within, won=won):
                return quantify(nature)(
                    bool(b & won) or (b <= within and bool(positive_rows[r] or b & reached))
                    for b in game.supports(r)
                )

            better = least(game, wins, agent, set(), within)
            if better == within:
                break
            within = better
        if within == won:
            return won
        won = within


def chain_total(matrix: np.ndarray, reward: np.ndarray) -> np.ndarray:
    """Return the total reward of a Markov chain; infinite where it recurs."""
    size = len(matrix)
    step = (matrix > 0) | np.eye(size, dtype=bool)
    for _ in range(size):
        step = step @ step
    recurrent = np.array([all(step[t, s] for t in np.flatnonzero(step[s])) for s in range(size)])
    infinite = (step & (recurrent & (reward > 0))).any(axis=1)
    total = np.zeros(size)
    total[infinite] = np.inf
    rest = ~recurrent & ~infinite
    block = np.eye(rest.sum()) - matrix[np.ix_(rest, rest)]
    total[rest] = np.linalg.solve(block, reward[rest])
    return total


def combinations(game: Game) -> int:
    """Return how many pairs of memoryless strategies there are."""
    return math.prod(sum(len(game.moves[r]) for r in line) for line in game.rows)


def enumerated_total(game: Game, row_reward: np.ndarray) -> dict:
    """Return the value of total reward per pair of directions, by trying all strategies.

    Memoryless strategies are optimal for both players, so the value is the agent's optimum over
    policies of nature's optimum over the choices in the rows of the policy.
    """
    answers: list[np.ndarray] = []
    for policy in itertools.product(*game.rows):
        totals = [
            chain_total(np.array(matrix), row_reward[list(policy)])
            for matrix in itertools.product(*(game.moves[r] for r in policy))
        ]
        answers.append(np.array(totals))
    opt = {MAX: np.max, MIN: np.min}
    return {(a, n): opt[a]([opt[n](t, axis=0) for t in answers], axis=0) for a, n in PAIRS}


def reach_game(game: Game, target: set[int], stay: set[int]) -> tuple[Game, np.ndarray]:
    """Return a game and row rewards whose total reward is the probability of reaching target."""
    size = game.states
    end = np.eye(size + 1)[size]
    rows, moves, reward = [], {}, []
    for s in range(size + 1):
        goes_on = s in stay and s not in target
        choices = (
            [[np.append(p, 0.0) for p in game.moves[r]] for r in game.rows[s]] if goes_on else []
        )
        choices = choices or [[end]]
        rows.append(list(range(len(reward), len(reward) + len(choices))))
        moves.update(zip(rows[-1], choices, strict=True))
        reward += [float(s in target)] * len(choices)
    return Game(size + 1, rows, moves), np.array(reward)
