"""Values of tiny models by brute force: the slow, obvious twin of the outer loop.

Agent and nature have optimal memoryless strategies, and nature's may be taken from the products of
vertices of its sets. So the value of an unbounded objective is found by solving the chain of every
pair of strategies; a finite horizon by backward induction over all vertices. The chains are solved
in floats with a known error (`LEEWAY`), their structure is exact; `exact_steps` works in fractions.

>>> from rfmdp.objective import MAX, MIN, Reach
>>> from rfmdp.sets.families import Interval
>>> move = Interval([0.2, 0.4], [0.6, 0.8])
>>> rows = [[([0], [1, 2])], [([], [1])], [([], [2])]]
>>> model = FactoredMDP.from_rows(rows, [move], labels={"goal": [False, True, False]})
>>> true_value(model, Spec(Reach("goal"), MAX, MIN)).tolist()
[0.2, 1.0, 0.0]
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, Direction, Spec
from rfmdp.outer.problem import Form, Problem, pose
from rfmdp.sets.marginals import Marginals
from rfmdp.types import AnyArray, BoolArray, FloatArray
from set_twins import packed_vertices as vertices

CHAINS = 50_000  # pairs of strategies that are tried
LEEWAY = 1e-9  # relative error of a solved chain


def true_value(model: FactoredMDP, spec: Spec) -> FloatArray:
    """Return the exact robust value of every state, up to the rounding of small linear systems.

    Raises
    ------
    UnsupportedError
        If there are too many pairs of strategies.
    """
    problem = pose(model, spec)
    moves = row_vertices(model)
    if problem.form is Form.STEPS:
        value = _steps(problem, moves, problem.start)
    else:
        value = _best(problem, moves, _chain_values(problem, moves))
        value = _steps(problem, moves, value)
    return 1.0 - value if problem.flipped else value


def row_vertices(model: FactoredMDP) -> list[FloatArray]:
    """Return per row the distributions over states that the vertex products induce, (N, S)."""
    corners = _corners(model.marginals)
    found: list[FloatArray] = []
    for r in range(model.rows):
        ids = model.row_marginals[model.marginal_ptr[r] : model.marginal_ptr[r + 1]]
        targets = model.successors[model.successor_ptr[r] : model.successor_ptr[r + 1]]
        lines = []
        for product in itertools.product(*(corners[j] for j in ids)):
            joint = np.ones(1)
            for p in product:
                joint = np.outer(joint, p).ravel()
            lines.append(np.bincount(targets, joint, minlength=model.states))
        distinct: FloatArray = np.unique(np.array(lines, dtype=np.float64), axis=0)
        found.append(distinct)
    return found


@lru_cache(maxsize=64)  # the same sets are asked for under one objective and policy after another
def _corners(marginals: Marginals) -> list[FloatArray]:
    """Return the vertices of every set."""
    return [vertices(m) for m in marginals]


def _steps(problem: Problem, moves: list[FloatArray], value: FloatArray) -> FloatArray:
    """Backward induction over all vertices of every row."""
    for step in problem.steps:
        nature = np.max if problem.nature is MAX else np.min
        q = problem.reward + problem.discount * np.array([nature(m @ value) for m in moves])
        agent = np.maximum if problem.agent is MAX else np.minimum
        value = np.where(step.fixed, step.given, agent.reduceat(q, problem.model.row_ptr[:-1]))
    return value


def exact_steps(problem: Problem, start: list[Any]) -> list[Fraction]:
    """Return backward induction in fractions; only for sets whose vertices are floats."""
    model, value = problem.model, [Fraction(x) for x in start]
    moves = row_vertices(model)
    nature = max if problem.nature is MAX else min
    agent = max if problem.agent is MAX else min
    for step in problem.steps:
        q = [
            Fraction(problem.reward[r])
            + Fraction(problem.discount)
            * nature(
                sum((Fraction(p) * v for p, v in zip(line, value, strict=True)), Fraction(0))
                for line in moves[r].tolist()
            )
            for r in range(model.rows)
        ]
        ends = model.row_ptr.tolist()
        best = [agent(q[a:b]) for a, b in itertools.pairwise(ends)]
        value = [
            Fraction(float(g)) if f else b
            for f, g, b in zip(step.fixed, step.given, best, strict=True)
        ]
    return value


def _chain_values(problem: Problem, moves: list[FloatArray]) -> FloatArray:
    """Return the values (N, S) of the chains of all pairs of strategies, last state fastest."""
    model = problem.model
    lines = []
    for s in range(model.states):
        rows = range(model.row_ptr[s], model.row_ptr[s + 1])
        lines.append([(problem.reward[r], m) for r in rows for m in moves[r]])
    sizes = [len(line) for line in lines]
    if np.prod(np.array(sizes, dtype=np.float64)) > CHAINS:
        raise UnsupportedError(f"More than {CHAINS} pairs of strategies.")
    index = np.indices(sizes).reshape(model.states, -1)
    chain = np.stack([np.array([m for _, m in lines[s]])[index[s]] for s in range(len(sizes))], 1)
    reward = np.stack([np.array([r for r, _ in lines[s]])[index[s]] for s in range(len(sizes))], 1)
    return solve_chains(problem, chain, reward)


def solve_chains(problem: Problem, chain: FloatArray, reward: FloatArray) -> FloatArray:
    """Return the values (N, S) of chains (N, S, S) with rewards (N, S)."""
    if problem.form is Form.DISCOUNTED:
        return _linear(problem.discount * chain, reward)
    chain, reward = chain.copy(), reward.copy()
    if problem.form is Form.REACH:
        chain[:, problem.terminal] = 0.0
        reward[:] = problem.target
        dead = ~_hits(_closure(chain), problem.target)
        return _solve(chain, reward, dead, np.zeros_like(dead))
    if problem.form in (Form.TO_TARGET, Form.MIXED):
        chain[:, problem.target] = np.eye(problem.model.states)[problem.target]
        reward[:, problem.target] = 0.0
        closure = _closure(chain)
        infinite = _hits(closure, ~_hits(closure, problem.target))
        return _solve(chain, reward, np.broadcast_to(problem.target, reward.shape), infinite)
    closure = _closure(chain)
    recurrent = np.all(~closure | closure.transpose(0, 2, 1), axis=2)
    infinite = _hits(closure, recurrent & (reward > 0.0))
    return _solve(chain, reward, recurrent, infinite)


def _solve(chain: AnyArray, reward: AnyArray, zero: AnyArray, infinite: AnyArray) -> FloatArray:
    """Return the values where they are neither zero nor infinite, and these."""
    known = zero | infinite
    left: FloatArray = np.where(known[:, :, None] | known[:, None, :], 0.0, chain)
    value = _linear(left, np.where(known, 0.0, reward))
    return np.where(infinite, np.inf, np.where(zero, 0.0, value))


def _linear(chain: FloatArray, reward: FloatArray) -> FloatArray:
    size = chain.shape[1]
    solved = np.linalg.solve(np.eye(size) - chain, reward[:, :, None])[:, :, 0]
    return solved.astype(np.float64)


def _closure(chain: FloatArray) -> BoolArray:
    """Return which states can reach which, (N, S, S)."""
    size = chain.shape[1]
    reach = (chain > 0.0) | np.eye(size, dtype=np.bool_)
    for _ in range(size.bit_length()):
        reach = (reach.astype(np.float32) @ reach.astype(np.float32)) > 0.0
    return reach


def _hits(closure: BoolArray, states: BoolArray) -> BoolArray:
    """Return from where some of the states (S,) or (N, S) can be reached, (N, S)."""
    where = states[:, None, :] if states.ndim == 2 else states
    hit: BoolArray = np.any(closure & where, axis=2)
    return hit


def _best(problem: Problem, moves: list[FloatArray], values: FloatArray) -> FloatArray:
    """Return the agent's best over policies of nature's best over its answers, per state."""
    model = problem.model
    per_state = [
        [len(moves[r]) for r in range(model.row_ptr[s], model.row_ptr[s + 1])]
        for s in range(model.states)
    ]
    tensor = values.reshape(*map(sum, per_state), model.states)
    for axis, counts in enumerate(per_state):
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        tensor = _reducer(problem.nature).reduceat(tensor, starts, axis=axis)
    axes = tuple(range(model.states))
    best: FloatArray = _reducer(problem.agent).reduce(tensor, axis=axes)
    return best


def _reducer(direction: Direction) -> Any:
    return np.maximum if direction is MAX else np.minimum
