"""What is known of an environment: its spaces, an exact model of its table `P`, a structure.

An element of a discrete space is a vector of integers, one entry per variable.

FrozenLake, CliffWalking and Taxi have variables in place of numbered states, and a marginal is an
effect: in FrozenLake all moves share one distribution over (left of the direction, straight on,
right of it). Other tables have one marginal per state and action.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import getitem
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.model.build import build
from rfmdp.model.description import Action, Amount, Move, Predicate, States, booleans, seeing_arrays
from rfmdp.sets.families import Singleton
from rfmdp.sources.source import MOST, unknown_move

REWARD = "reward"  # the reward structure that an environment's own rewards are compared with
EXPECTED = "expected_reward"  # of environments whose reward depends on the successor
MISTAKES = (SyntaxError, ValueError, TypeError, KeyError, ImportError, AttributeError)


def require_gymnasium() -> Any:
    """Return the package, or say how to get it."""
    try:
        import gymnasium
    except ImportError:
        raise UnsupportedError("Environments need gymnasium: pip install 'rfmdp[gym]'.") from None
    return gymnasium


def make_env(env: Any) -> Any:
    """Return an environment: as it is given, or by a text like `FrozenLake-v1(map_name='8x8')`."""
    gymnasium = require_gymnasium()
    if not isinstance(env, str):
        return env
    name, parenthesis, rest = env.partition("(")
    try:
        call = ast.parse(f"f({rest}" if parenthesis else "f()", mode="eval").body
        assert isinstance(call, ast.Call)
        options = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
        if call.args:
            raise ValueError("options must have names")
        return gymnasium.make(name, **options)
    except (*MISTAKES, gymnasium.error.Error) as error:
        reason = " ".join(str(error).split())
        raise ModelError(
            f"Environment: {env!r} must be the name of a registered one, with options like "
            f"FrozenLake-v1(map_name='8x8'): {reason}"
        ) from error


def entries_of(space: Any) -> tuple[Variable, ...]:
    """Return the integers that an element of a discrete space consists of, in their order.

    Entries of a Dict have the names of its keys, those of a Dict within it of both keys; others
    are numbered.
    """
    spaces, entries = require_gymnasium().spaces, list[Variable]()
    for name, _, leaf in _leaves(space):
        if isinstance(leaf, spaces.Discrete):
            entries.append(Variable(name, int(leaf.start), int(leaf.start + leaf.n - 1)))
        elif isinstance(leaf, spaces.MultiDiscrete | spaces.MultiBinary):
            binary = isinstance(leaf, spaces.MultiBinary)
            sizes = np.reshape(np.full(leaf.shape, 2) if binary else leaf.nvec, -1)
            lows = np.broadcast_to(np.reshape(0 if binary else leaf.start, -1), sizes.shape)
            for i, (n, low) in enumerate(zip(sizes.tolist(), lows.tolist(), strict=True)):
                entries.append(Variable(f"{name}_{i}", low, low + n - 1))
        else:
            raise UnsupportedError(
                f"Environment: spaces must be Discrete, MultiDiscrete, MultiBinary, or a Tuple or "
                f"Dict of these, found {type(leaf).__name__}; wrap the environment."
            )
    names = [e.name for e in entries]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UnsupportedError(
            f"Environment: entries must have different names, found {twice[0]} twice; wrap it."
        )
    return tuple(entries)


def _leaves(space: Any, name: str = "") -> Iterator[tuple[str, tuple[Any, ...], Any]]:
    """Yield the names, keys and spaces of what a space consists of, within Dicts and Tuples."""
    spaces = require_gymnasium().spaces
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        yield name or "x", (), space
        return
    has_names = isinstance(space, spaces.Dict)
    prefix = name if has_names else name or "x"
    for key, inner in space.spaces.items() if has_names else enumerate(space.spaces):
        for label, keys, leaf in _leaves(inner, f"{prefix}_{key}" if prefix else str(key)):
            yield label, (key, *keys), leaf


def named(space: Any) -> bool:
    """Return whether the entries of a space have names of their own."""
    return any(isinstance(key, str) for _, keys, _ in _leaves(space) for key in keys)


def whole(value: Any, what: str) -> int:
    """Return a whole number as an integer, whatever its type; `what` says where it stands."""
    array = np.asarray(value)
    if array.size == 1 and array.dtype.kind in "iubf" and float(array.item()).is_integer():
        return int(array.item())
    raise ModelError(
        f"Environment: {what} must be a whole number, found {value!r}. Real numbers that are cut "
        "to whole ones do not follow a Markov process; wrap the environment, or give `observe`."
    )


def read(space: Any, element: Any) -> list[Any]:
    """Return the values of an element of a discrete space, as they are: integers, if it is one."""
    values = []
    for name, keys, leaf in _leaves(space):
        try:
            part = np.asarray(reduce(getitem, keys, element)).reshape(-1).tolist()
        except (LookupError, TypeError, ValueError):
            part = []
        size = math.prod(leaf.shape)
        if len(part) != size:
            raise ModelError(
                f"Environment: an observation must have {size} value(s) of {name}, found "
                f"{element!r}."
            )
        values += part
    return values


def actions_of(space: Any) -> list[int]:
    """Return all actions of an environment."""
    if not isinstance(space, require_gymnasium().spaces.Discrete):
        raise UnsupportedError(
            f"Environment: actions must be Discrete, found {type(space).__name__}; take one copy "
            "of a vectorised environment, or wrap it, with a list of all ACTIONS: "
            "gymnasium.wrappers.TransformAction(env, ACTIONS.__getitem__, Discrete(len(ACTIONS)))."
        )
    return list(range(int(space.start), int(space.start + space.n)))


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
