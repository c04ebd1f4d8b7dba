"""Structures of environments, made from their spaces; templates of such structures to be edited."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.build import build
from rfmdp.model.description import Action, Amount, Assignment, Move, Predicate, States
from rfmdp.sources.gym.source import START
from rfmdp.sources.gym.spaces import actions_of, entries_of, make_env
from rfmdp.sources.structure import MOST, Domains, unknown, unknown_move
from rfmdp.types import IntArray


def gym_structure(
    env: Any,
    *,
    parents: Mapping[str, Sequence[str]] | None = None,
    terminal: Predicate | None = None,
    initial: Mapping[str, int] | None = None,
    actions: Sequence[str] | None = None,
    labels: Mapping[str, Predicate] | None = None,
    rewards: Mapping[str, Amount] | None = None,
) -> FactoredMDP:
    """Return the structure of an environment by its spaces: every entry may take every value.

    Parameters
    ----------
    env
        A Gymnasium environment, or the name of a registered one.
    parents
        For each entry of the observation the entries on which its next value depends; all by
        default, also for entries that are left out. Entries of Dict spaces have their names,
        others are called x, or x_0, x_1 and so on.
    terminal
        Where episodes terminate; nowhere by default.
    initial
        Values in which all episodes start; by default the start is random, and learned.
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
    variables = {e.name: (e.low, e.high) for e in entries_of(env.observation_space)}
    names = list(actions or [f"a{i}" for i in range(len(actions_of(env.action_space)))])
    everything = list(variables)

    def begun(states: States) -> Any:
        return states[START] == 0 if initial is None else np.ones(len(states), dtype=np.bool_)

    def over(states: States) -> Any:
        return begun(states) & (False if terminal is None else np.asarray(terminal(states)))

    def moves() -> list[Move]:
        return [
            unknown_move(variables, name, parents=(parents or {}).get(name, everything))
            for name in variables
        ]

    found = [Action(name, moves(), guard=lambda s: begun(s) & ~over(s)) for name in names]
    domains = dict(variables)
    start = initial
    if initial is None:
        found.append(_random_start(variables))
        domains[START] = (0, 1)
        start = {**{name: low for name, (low, _) in variables.items()}, START: 1}
    return build(
        domains,
        found,
        initial=start or {},
        labels={"terminal": over, **(labels or {})},
        rewards=rewards,
    )


def _random_start(variables: Domains) -> Action:
    """Return the action whose outcomes are all combinations of values."""
    sizes = [high - low + 1 for low, high in variables.values()]
    if math.prod(sizes) > MOST:
        raise UnsupportedError(
            f"gym_structure: a random start must have at most {MOST} outcomes, found "
            f"{math.prod(sizes)}; give `initial`, or describe the structure with `build`."
        )

    def effect(states: States, identifier: IntArray, outcome: int) -> Assignment:
        places = np.unravel_index(outcome, sizes)
        values = {
            name: int(place) + low
            for (name, (low, _)), place in zip(variables.items(), places, strict=True)
        }
        return {**values, START: 0}

    move = Move(START, unknown(math.prod(sizes)), effect)
    return Action("reset", [move], guard=lambda s: s[START] == 1)


TEMPLATE = '''"""The structure of {name}: remove what an entry does not depend on."""

import numpy as np

import rfmdp as rf

variables = {variables}
parents = {{  # on what the next value of an entry depends, beside the action
{parents}}}


def terminal(s):  # where episodes terminate
    return np.zeros(len(s), dtype=bool)


def moves():
    return [rf.unknown_move(variables, v, parents=parents[v]) for v in variables]


structure = rf.build(
    variables,
    [rf.Action(name, moves(), lambda s: ~terminal(s)) for name in {actions}],
    initial={initial},  # where episodes start
    labels={{"terminal": terminal}},
)
'''


def template(env: Any) -> str:
    """Return a Python text that builds the structure of an environment, to be edited.

    Examples
    --------
    >>> "unknown_move(variables, v, parents=parents[v])" in template("FrozenLake-v1")
    True
    """
    env = make_env(env)
    entries = entries_of(env.observation_space)
    names = [e.name for e in entries]
    return TEMPLATE.format(
        name=env.spec.id if env.spec is not None else type(env.unwrapped).__name__,
        variables={e.name: (e.low, e.high) for e in entries},
        parents="".join(f"    {name!r}: {names},\n" for name in names),
        actions=[f"a{i}" for i in range(len(actions_of(env.action_space)))],
        initial={e.name: e.low for e in entries},
    )
