"""The Python builder: a description of variables, actions and moves becomes a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError
from rfmdp.model.arrays import FactoredMDP, Rewards, Variable, require_all_values
from rfmdp.model.description import (
    Action,
    Amount,
    Predicate,
    States,
    booleans,
    numbers,
    seeing_arrays,
    select,
)
from rfmdp.model.expander import Expander
from rfmdp.model.frontier import NO_ACTION, Progress, finished, with_used_marginals
from rfmdp.model.packing import Packing
from rfmdp.sets.marginals import Marginals
from rfmdp.types import BoolArray, FloatArray, IntArray


def build(
    variables: Mapping[str, tuple[int, int]] | Iterable[Variable],
    actions: Sequence[Action],
    *,
    initial: Mapping[str, ArrayLike],
    labels: Mapping[str, Predicate] | None = None,
    rewards: Mapping[str, Amount] | None = None,
    progress: Progress | None = None,
) -> FactoredMDP:
    """Return the reachable part of a described model.

    All functions of a description are vectorised: they see many states at once (`States`) and
    give one array entry per state. A reachable state where no action is enabled gets a self-loop
    and the label "deadlock".

    Parameters
    ----------
    variables : name -> (low, high), or `Variable`s; the first is most significant in the order
        of states
    actions : the agent's choices
    initial : variable -> value, or (I,) values for several initial states
    labels : name -> where it holds
    rewards : structure -> what a state pays; what an action pays is said by `Action`
    progress : called now and then, see `frontier.Progress`

    Raises
    ------
    ModelError
        If a value leaves its variable's range (names variable, value, state and action), two
        moves set one variable, a function gives the wrong type or shape, and so on.

    Examples
    --------
    Two machines; one that runs fails more often while the other is down; one can be repaired.

    >>> import numpy as np
    >>> from rfmdp.model.description import Action, Move
    >>> from rfmdp.sets.families import Interval, Singleton
    >>> sets = {  # outcomes: 0 is down, 1 is up
    ...     "calm": Interval([0.05, 0.85], [0.15, 0.95]),
    ...     "stressed": Interval([0.50, 0.30], [0.70, 0.50]),
    ...     "down": Singleton([1.0]),
    ... }
    >>> def machine(me, other, repaired):
    ...     def identify(s):
    ...         return np.where(s[me] == 0, 2, np.where(s[other] == 1, 0, 1))
    ...     def effect(s, identifier, outcome):
    ...         return {me: np.where(identifier == 2, repaired == me, outcome)}
    ...     return Move(me, sets, effect, identify)
    >>> model = build(
    ...     {"a": (0, 1), "b": (0, 1)},
    ...     [Action(f"repair_{x}", [machine("a", "b", x), machine("b", "a", x)]) for x in "ab"],
    ...     initial={"a": 1, "b": 1},
    ...     labels={"outage": lambda s: (s.a == 0) & (s.b == 0)},
    ...     rewards={"running": lambda s: s.a + s.b},
    ... )
    >>> model.states, model.rows, model.transitions, model.marginal_names
    (4, 8, 18, ('calm', 'stressed'))
    >>> model.rewards["running"].state.tolist()
    [0.0, 1.0, 1.0, 2.0]
    """
    packing = Packing(_variables(variables))
    packing.require_one_word()
    expander = Expander(packing, actions)
    start = _initial_codes(packing, initial)
    with seeing_arrays("build"):
        model = expander.run(start, progress)
        states = States(packing.variables, model.valuations)
        structures = _rewards(model, states, expander.actions, rewards or {})
        where = _labels(states, labels or {})
    model, used = with_used_marginals(model)
    model, action_names = _by_name(model, expander.actions)
    names = list(expander.names)
    return finished(
        model,
        action_names,
        where,
        marginals=Marginals.from_sets(expander.sets[j] for j in used),
        factors=tuple(expander.factors),
        rewards=structures,
        marginal_names=tuple(names[j] for j in used),
    )


def _variables(described: Mapping[str, tuple[int, int]] | Iterable[Variable]) -> list[Variable]:
    if isinstance(described, Mapping):
        return [Variable(name, int(low), int(high)) for name, (low, high) in described.items()]
    listed = list(described)
    for name, count in Counter(v.name for v in listed).items():
        if count > 1:
            raise ModelError(f"Variable {name} must be defined once, found it twice; rename one.")
    return listed


def _initial_codes(packing: Packing, initial: Mapping[str, ArrayLike]) -> IntArray:
    """Check and pack the initial states."""
    require_all_values(packing.variables, initial)
    if not initial:
        return np.zeros(1, dtype=np.int64)
    columns = [np.atleast_1d(np.asarray(initial[v.name])) for v in packing.variables]
    try:
        values = np.stack(np.broadcast_arrays(*columns), axis=1)
    except ValueError:
        values = np.empty(0)
    if values.dtype.kind not in "iub" or values.ndim != 2 or not len(values):
        raise ModelError(
            "Initial states: every variable must have one integer, or equally many of them; got "
            f"{dict(initial)!r:.200}."
        )
    for variable, column in zip(packing.variables, values.T, strict=True):
        wrong = (column < variable.low) | (column > variable.high)
        if wrong.any():
            raise ModelError(
                f"Initial state: {variable.name} is {column[wrong][0]}, must be within "
                f"{variable.low}..{variable.high}."
            )
    return packing.pack(values)[:, 0]


def _labels(states: States, labels: Mapping[str, Predicate]) -> dict[str, BoolArray]:
    for name in ("init", "deadlock"):
        if name in labels:
            raise ModelError(f'Label "{name}" is always defined; use another name.')
    return {
        name: np.array(booleans(where(states), states, f'Label "{name}"'))
        for name, where in labels.items()
    }


def _rewards(
    model: FactoredMDP,
    states: States,
    actions: Sequence[Action],
    rewards: Mapping[str, Amount],
) -> dict[str, Rewards]:
    """Evaluate all reward structures; `row_actions` still numbers the actions as given."""
    names = list(dict.fromkeys([*rewards, *(name for a in actions for name in a.rewards)]))
    row_states = model.row_states if any(a.rewards for a in actions) else None
    structures: dict[str, Rewards] = {}
    for name in names:
        per_state = np.zeros(model.states)
        if name in rewards:
            per_state[:] = _evaluated(rewards[name], states, f'Reward "{name}"')
        per_row = np.zeros(len(model.row_actions))
        for number, action in enumerate(actions):
            if row_states is not None and name in action.rewards:
                rows = np.flatnonzero(model.row_actions == number)
                there = select(states, row_states[rows])
                where = f'Reward "{name}", action {action.name!r}'
                per_row[rows] = _evaluated(action.rewards[name], there, where)
        structures[name] = Rewards(state=per_state, row=per_row)
    return structures


def _evaluated(amount: Amount, states: States, where: str) -> FloatArray:
    """Return a number, or a function of states, as (N,) numbers."""
    return numbers(amount(states) if callable(amount) else amount, states, where)


def _by_name(model: FactoredMDP, actions: Sequence[Action]) -> tuple[FactoredMDP, list[str]]:
    """Let actions of the same name share their index."""
    names = list(dict.fromkeys(action.name for action in actions))
    if len(names) == len(actions):
        return model, names
    index = np.array([names.index(a.name) for a in actions] + [NO_ACTION], dtype=np.int32)
    return replace(model, row_actions=index[model.row_actions]), names
