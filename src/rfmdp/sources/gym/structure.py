"""Structures of environments, made from their spaces."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.model.arrays import FactoredMDP, Variable
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
from rfmdp.sources.gym.spaces import actions_of, entries_of, make_env
from rfmdp.sources.structure import MOST, unknown_move


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
    entries = _named_entries(env, names)
    domains = {e.name: (e.low, e.high) for e in entries}
    dependencies, masks = dict(parents or {}), dict(available or {})
    choices = list(actions or (f"a{i}" for i in range(len(actions_of(env.action_space)))))
    _require_within("parents", dependencies, domains, "entries")
    _require_within("shared", shared, domains, "entries")
    _require_within("available", masks, choices, "actions")

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


def _named_entries(env: Any, names: Sequence[str] | None) -> tuple[Variable, ...]:
    """Return the entries of the observation, with other names if there are some."""
    entries = entries_of(env.observation_space)
    if names is None:
        return entries
    if len(names) != len(entries) or len(set(names)) < len(names):
        raise ModelError(
            f"gym_structure: names must be {len(entries)} different ones, found {', '.join(names)}."
        )
    return tuple(replace(e, name=name) for e, name in zip(entries, names, strict=True))


def _require_within(what: str, words: Iterable[str], allowed: Iterable[str], kind: str) -> None:
    """Raise if a word is no name of an entry or action."""
    for word in words:
        if word not in set(allowed):
            raise ModelError(
                f"gym_structure: {what} must be those of the {kind} {', '.join(allowed)}, found "
                f"{word}."
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
