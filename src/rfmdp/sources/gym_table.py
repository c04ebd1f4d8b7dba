"""Environments that show their transitions (a table `P`), as exact models.

FrozenLake, CliffWalking and Taxi have variables in place of numbered states, and a marginal is an
effect: in FrozenLake all moves share one distribution over (left of the direction, straight on,
right of it). Other tables have one marginal per state and action.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.sets.families import Singleton
from rfmdp.sources.gym import REWARD, START
from rfmdp.sources.spaces import require_gymnasium
from rfmdp.types import BoolArray, IntArray

EXPECTED = "expected reward"  # of environments whose reward depends on the successor

Entries = Sequence[tuple[float, int, float, bool]]  # probability, successor, reward, terminated


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a table beside its numbers."""

    variables: tuple[Variable, ...]
    values: Callable[[int], Sequence[int]]
    actions: tuple[str, ...]
    shared: bool  # whether rows with the same list of probabilities have the same unknown


def gym_model(env: Any) -> FactoredMDP:
    """Return an environment with a table `P` as an exact model.

    States in which episodes terminate are left by no action (label `terminal`). Random starts are
    outcomes of one action `reset` in a state of their own, with the variable `start`. The reward
    structure is `reward`, or `expected reward` if what is paid depends on the successor.

    Parameters
    ----------
    env
        The environment, or the name of a registered one.

    Raises
    ------
    UnsupportedError
        If it has no table, or a state is entered both with and without the end of the episode.

    Examples
    --------
    >>> import rfmdp as rf
    >>> lake = gym_model("FrozenLake-v1")
    >>> lake.states, lake.marginal_names
    (16, ('move',))
    >>> round(rf.check(lake, 'Pmax=? [ F "goal" ]').value, 4)
    0.8235
    """
    env = require_gymnasium().make(env) if isinstance(env, str) else env
    bare = env.unwrapped
    table = getattr(bare, "P", None)
    if table is None:
        raise UnsupportedError(
            f"gym_model: {type(bare).__name__} must have a table P of its transitions; learn from "
            "it instead (`GymSource`)."
        )
    known = _known(bare, table)
    start = np.asarray(bare.initial_state_distrib, dtype=np.float64)
    ends, order = _explored(table, np.flatnonzero(start).tolist())
    model = _rows(table, known, ends, order, start)
    labels = {**model.labels, **_labels(bare, order, model.states)}
    return replace(model, labels=labels)


def _explored(table: Any, initial: list[int]) -> tuple[set[int], list[int]]:
    """Return the states in which episodes terminate, and all that are reached, ascending."""
    ends: set[int] = set()
    entered: set[int] = set(initial)
    open_ = list(initial)
    while open_:
        s = open_.pop()
        for entries in table[s].values():
            for p, successor, _, over in entries:
                if p <= 0.0 or (over and successor == s):
                    continue
                if over:
                    ends.add(successor)
                elif successor not in entered:
                    entered.add(successor)
                    open_.append(successor)
    both = sorted(ends & entered)
    if both:
        raise UnsupportedError(
            f"gym_model: state {both[0]} is entered both with and without the end of the episode; "
            "its number must say whether the episode is over."
        )
    return ends, sorted(ends | entered)


def _rows(table: Any, known: Known, ends: set[int], order: list[int], start: Any) -> FactoredMDP:
    """Return the model of the reached states, in their order; a random start comes last."""
    number = {s: i for i, s in enumerate(order)}
    sets: dict[Any, int] = {}
    points: list[Singleton] = []
    names: list[str] = []
    states: list[Any] = []
    paid: list[float] = []
    varies = False

    def marginal(key: Any, name: str, p: Sequence[float]) -> int:
        if key not in sets:
            sets[key] = len(points)
            points.append(Singleton(np.array(p)))
            names.append(name)
        return sets[key]

    for s in order:
        rows: list[Any] = []
        for a, entries in [] if s in ends else table[s].items():
            p, targets = [e[0] for e in entries], [number[e[1]] for e in entries]
            varies |= len({e[2] for e in entries if e[0] > 0.0}) > 1
            paid.append(float(sum(e[0] * e[2] for e in entries)))
            if len(set(targets)) == 1:
                rows.append(([], targets[:1], known.actions[a]))
                continue
            name = "move" if known.shared else f"{known.actions[a]} in {s}"
            key = tuple(p) if known.shared else (s, a)
            rows.append(([marginal(key, _free(name, names), p)], targets, known.actions[a]))
        if not rows:
            rows = [([], [number[s]], "")]
            paid.append(0.0)
        states.append(rows)
    initial = [number[int(s)] for s in np.flatnonzero(start)]
    random = len(initial) > 1
    if random:
        p = start[start > 0.0].tolist()
        states.append([([marginal(START, START, p)], initial, "reset")])
        paid.append(0.0)
    values = [[*known.values(s), 0] if random else [*known.values(s)] for s in order]
    variables = known.variables
    if random:
        values.append([*(v.low for v in variables), 1])
        variables = (*variables, Variable(START, 0, 1))
    over = np.array([s in ends for s in order] + [False] * random, dtype=np.bool_)
    model = FactoredMDP.from_rows(
        states, points, initial=len(order) if random else initial[0],
        labels={"terminal": over, "deadlock": over},
        rewards={
            EXPECTED if varies else REWARD: Rewards(np.zeros(len(states)), np.array(paid))
        },
    )  # fmt: skip
    return replace(
        model,
        variables=variables,
        valuations=np.array(values, dtype=np.int32),
        marginal_names=tuple(names),
    )


def _free(name: str, taken: Sequence[str]) -> str:
    """Return a name, with a number if it is taken."""
    return name if name not in taken else f"{name} ({len(taken)})"


def _known(bare: Any, table: Any) -> Known:
    """Return variables and names of actions of the environments that are known."""
    kind = type(bare).__name__
    if kind == "FrozenLakeEnv":
        return _grid(bare.nrow, bare.ncol, ("left", "down", "right", "up"))
    if kind == "CliffWalkingEnv":
        rows, columns = bare.shape
        return _grid(rows, columns, ("up", "right", "down", "left"))
    if kind == "TaxiEnv":
        sizes = {"row": 4, "column": 4, "passenger": 4, "destination": 3}
        variables = tuple(Variable(name, 0, high) for name, high in sizes.items())
        actions = ("south", "north", "east", "west", "pickup", "dropoff")
        return Known(variables, bare.decode, actions, True)
    most = max(table)
    count = max(len(by_action) for by_action in table.values())
    names = tuple(f"a{i}" for i in range(count))
    return Known((Variable("x", 0, most),), lambda s: [s], names, False)


def _grid(rows: int, columns: int, actions: tuple[str, ...]) -> Known:
    variables = (Variable("row", 0, rows - 1), Variable("column", 0, columns - 1))
    return Known(variables, lambda s: divmod(s, columns), actions, True)


def _labels(bare: Any, order: list[int], states: int) -> dict[str, BoolArray]:
    """Return the goals of the environments that are known."""
    wanted: dict[str, IntArray] = {}
    if type(bare).__name__ == "FrozenLakeEnv":
        flat = bare.desc.ravel()
        wanted = {"goal": np.flatnonzero(flat == b"G"), "hole": np.flatnonzero(flat == b"H")}
    found = {}
    for name, places in wanted.items():
        at = np.zeros(states, dtype=np.bool_)
        at[: len(order)] = np.isin(order, places)
        found[name] = at
    return found


def gym_observe(env: Any) -> Callable[[Any], Sequence[int]]:
    """Return what `GymSource` needs to read observations of a known environment's variables."""
    bare = env.unwrapped
    table = getattr(bare, "P", None)
    if table is None:
        raise ModelError(f"gym_observe: {type(bare).__name__} must have a table P.")
    values = _known(bare, table).values
    return lambda observation: [int(value) for value in values(int(observation))]
