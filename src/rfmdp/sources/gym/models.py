"""Models of environments: exact ones of tables `P`, and structures made of spaces.

FrozenLake, CliffWalking and Taxi have variables in place of numbered states, and a marginal is an
effect: in FrozenLake all moves share one distribution over (left of the direction, straight on,
right of it). Other tables have one marginal per state and action.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.model.build import build
from rfmdp.model.description import (
    Action,
    Amount,
    Move,
    Predicate,
    States,
    booleans,
    seeing_arrays,
)
from rfmdp.sets.families import Singleton
from rfmdp.sources.gym.spaces import actions_of, entries_of, make_env
from rfmdp.sources.source import MOST, unknown_move

REWARD = "reward"  # the reward structure that an environment's own rewards are compared with
EXPECTED = "expected_reward"  # of environments whose reward depends on the successor


class KnownTable(NamedTuple):
    """What is known of an environment that shows its transitions."""

    transitions: Any  # by state and action: lists of (probability, successor, reward, terminated)
    variables: tuple[Variable, ...]
    values: Callable[[int], Iterable[int]]  # of the variables, by state
    actions: tuple[str, ...]
    shared: bool  # whether rows with the same list of probabilities have the same unknown


def gym_model(env: Any) -> FactoredMDP:
    """Return an environment (or its name) with a table `P` as an exact model.

    States in which episodes terminate are left by no action (label `terminal`); all states in which
    they may start are initial. The reward structure is `reward`, or `expected_reward` if what is
    paid depends on the successor. That one is made of probabilities, so `learn` refuses it as a
    known reward.

    Examples
    --------
    >>> import rfmdp as rf
    >>> lake = gym_model("FrozenLake-v1")
    >>> lake.states, lake.marginal_names
    (16, ('move',))
    >>> round(rf.check(lake, 'Pmax=? [ F "goal" ]').value, 4)
    0.8235
    """
    env = make_env(env)
    table = known_table(env)
    bare = env.unwrapped
    if table is None:
        raise UnsupportedError(
            f"gym_model: {type(bare).__name__} must have a table P of its transitions; learn from "
            "it instead (`GymSource`)."
        )
    initial = np.flatnonzero(bare.initial_state_distrib).tolist()
    ends, order = _explored(table.transitions, initial)
    model = _rows(table, ends, order, initial)
    if type(bare).__name__ == "FrozenLakeEnv":
        letters = bare.desc.ravel()[order]
        labels = {**model.labels, "goal": letters == b"G", "hole": letters == b"H"}
        model = replace(model, labels=labels)
    return model


def _explored(transitions: Any, initial: list[int]) -> tuple[set[int], list[int]]:
    """Return the states in which episodes terminate, and all that are reached, ascending."""
    ends: set[int] = set()
    entered: set[int] = set(initial)
    open_ = list(initial)
    while open_:
        s = open_.pop()
        for entries in transitions[s].values():
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


def _rows(table: KnownTable, ends: set[int], order: list[int], initial: list[int]) -> FactoredMDP:
    """Return the model of the reached states, in their order."""
    number = {s: i for i, s in enumerate(order)}
    sets: dict[Any, int] = {}
    points: list[Singleton] = []
    names: list[str] = []
    states: list[Any] = []
    paid: list[float] = []
    varies, actions = False, (*table.actions, "")
    for s in order:
        rows: list[Any] = []
        staying = {-1: [(1.0, s, 0.0, True)]}
        for a, entries in (staying if s in ends else table.transitions[s]).items():
            p = [e[0] for e in entries]
            targets = [number[e[1]] for e in entries]
            varies |= len({e[2] for e in entries if e[0] > 0.0}) > 1
            paid.append(float(sum(e[0] * e[2] for e in entries)))
            if len(set(targets)) == 1:
                rows.append(([], targets[:1], actions[a]))
                continue
            key = tuple(p) if table.shared else (s, a)
            if key not in sets:
                sets[key] = len(points)
                points.append(Singleton(np.array(p)))
                name = "move" if table.shared else f"{actions[a]} in {s}"
                names.append(name if name not in names else f"{name} ({len(names)})")
            rows.append(([sets[key]], targets, actions[a]))
        states.append(rows)
    over = np.array([s in ends for s in order], dtype=np.bool_)
    rewards = Rewards(np.zeros(len(states)), np.array(paid))
    model = FactoredMDP.from_rows(
        states, points, initial=[number[s] for s in initial],
        labels={"terminal": over, "deadlock": over},
        rewards={EXPECTED if varies else REWARD: rewards},
    )  # fmt: skip
    return replace(
        model,
        variables=table.variables,
        valuations=np.array([[*table.values(s)] for s in order], dtype=np.int32),
        marginal_names=tuple(names),
    )


def known_table(env: Any) -> KnownTable | None:
    """Return what is known of an environment; None if it does not show its transitions."""
    bare = env.unwrapped
    table, kind = getattr(bare, "P", None), type(bare).__name__
    if table is None:
        return None
    grids: dict[str, tuple[str, ...]] = {
        "FrozenLakeEnv": ("left", "down", "right", "up"),
        "CliffWalkingEnv": ("up", "right", "down", "left"),
    }
    if kind in grids:
        rows, columns = (bare.nrow, bare.ncol) if kind == "FrozenLakeEnv" else bare.shape
        cells = (Variable("row", 0, rows - 1), Variable("column", 0, columns - 1))
        return KnownTable(table, cells, lambda s: divmod(s, columns), grids[kind], True)
    if kind == "TaxiEnv":
        sizes = {"row": 4, "column": 4, "passenger": 4, "destination": 3}
        variables = tuple(Variable(name, 0, high) for name, high in sizes.items())
        actions = ("south", "north", "east", "west", "pickup", "dropoff")
        return KnownTable(table, variables, bare.decode, actions, True)
    count = max(len(by_action) for by_action in table.values())
    names = tuple(f"a{i}" for i in range(count))
    return KnownTable(table, (Variable("x", 0, max(table)),), lambda s: [s], names, False)


def gym_structure(
    env: Any,
    *,
    names: Sequence[str] | None = None,
    parents: Mapping[str, Sequence[str]] | None = None,
    shared: Collection[str] = (),
    available: Mapping[str, Predicate] | None = None,
    terminal: Predicate | None = None,
    initial: Mapping[str, ArrayLike] | Predicate | None = None,
    actions: Sequence[str] | None = None,
    labels: Mapping[str, Predicate] | None = None,
    rewards: Mapping[str, Amount] | None = None,
) -> FactoredMDP:
    """Return the structure of an environment by its spaces: every entry may take every value.

    It says that entries move independently of each other, given the state and the action; `learn`
    tests that, and that nothing else matters.

    Parameters
    ----------
    env
        A Gymnasium environment, or the name of a registered one.
    names
        Names of the entries of the observation, in their order. By default entries of Dict spaces
        have their names, others are called x, or x_0, x_1 and so on.
    parents
        For each entry of the observation the entries on which its next value depends; all by
        default, also for entries that are left out.
    shared
        Entries that move in the same way whatever the action is: samples of all actions count
        together.
    available
        For each action the states in which it may be taken; all by default, also for actions that
        are left out. No action may be taken in terminal states.
    terminal
        Where episodes terminate; nowhere by default.
    initial
        Where episodes may start: values, arrays of values for several states, or a function of
        states. By default everywhere but in terminal states. Of several starts a guarantee is for
        the worst, and beside it for their mean.
    actions
        Names of the actions; by default a0, a1, and so on.
    labels, rewards
        As `build` takes them. Rewards of the structure are those of states.

    Examples
    --------
    >>> lake = gym_structure("FrozenLake-v1", initial={"x": 0}, terminal=lambda s: s.x >= 15)
    >>> lake.states, lake.rows
    (16, 61)
    """
    env = make_env(env)
    entries = entries_of(env.observation_space)
    called = [e.name for e in entries] if names is None else list(names)
    if len(called) != len(entries) or len(set(called)) < len(called):
        raise ModelError(
            f"gym_structure: names must be {len(entries)} different ones, found "
            f"{', '.join(called)}."
        )
    entries = tuple(replace(e, name=name) for e, name in zip(entries, called, strict=True))
    domains = {e.name: (e.low, e.high) for e in entries}
    dependencies, masks = dict(parents or {}), dict(available or {})
    choices = list(actions or (f"a{i}" for i in range(len(actions_of(env.action_space)))))
    for what, words, allowed in (
        ("parents must be those of the entries", dependencies, called),
        ("shared must be those of the entries", shared, called),
        ("available must be those of the actions", masks, choices),
    ):
        if other := [word for word in words if word not in allowed]:
            raise ModelError(f"gym_structure: {what} {', '.join(allowed)}, found {other[0]}.")

    def over(states: States) -> Any:
        ended = np.zeros(len(states), dtype=np.bool_) if terminal is None else terminal(states)
        return booleans(ended, states, "gym_structure, terminal")

    def move(name: str) -> Move:
        return unknown_move(domains, name, parents=dependencies.get(name, list(domains)))

    common = {name: move(name) for name in shared}

    def action(name: str) -> Action:
        def enabled(states: States) -> Any:
            allowed = masks[name](states) if name in masks else True
            return ~over(states) & booleans(allowed, states, f"gym_structure, available, {name}")

        return Action(name, [common.get(entry) or move(entry) for entry in domains], guard=enabled)

    if not isinstance(initial, Mapping):
        initial = _starts(entries, over, initial)
    return build(
        domains,
        [action(name) for name in choices],
        initial=initial,
        labels={"terminal": over, **(labels or {})},
        rewards=rewards,
    )


def _starts(
    entries: Sequence[Variable], over: Predicate, initial: Predicate | None
) -> dict[str, ArrayLike]:
    """Return all states in which an episode is not over, or those of them that a function takes."""
    sizes = [e.high - e.low + 1 for e in entries]
    if math.prod(sizes) > MOST:
        raise UnsupportedError(
            f"gym_structure: a random start must have at most {MOST} outcomes, found "
            f"{math.prod(sizes)}; give `initial`, or describe the structure with `build`."
        )
    places = np.indices(sizes).reshape(len(sizes), -1).T
    states = States(entries, places + np.array([e.low for e in entries]))
    with seeing_arrays("gym_structure"):
        starts = ~np.asarray(over(states))
        if initial is not None:
            starts &= booleans(initial(states), states, "gym_structure, initial")
    return {e.name: states[e.name][starts] for e in entries}
