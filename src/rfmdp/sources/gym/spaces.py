"""Gymnasium's discrete spaces as vectors of integers, one entry per variable."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.model.arrays import Variable
from rfmdp.types import AnyArray

MOST = 100_000  # actions of a space


def require_gymnasium() -> Any:
    """Return the package, or say how to get it."""
    try:
        import gymnasium
    except ImportError:
        raise UnsupportedError("Environments need gymnasium: pip install 'rfmdp[gym]'.") from None
    return gymnasium


def make_env(env: Any) -> Any:
    """Return an environment: as it is given, or by a text like `FrozenLake-v1(map_name='8x8')`.

    Raises
    ------
    ModelError
        If there is no such environment, or it does not take the options.
    """
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
    except (SyntaxError, ValueError, TypeError, KeyError, gymnasium.error.Error) as error:
        reason = " ".join(str(error).split())
        raise ModelError(
            f"Environment: {env!r} must be the name of a registered one, with options like "
            f"FrozenLake-v1(map_name='8x8'): {reason}"
        ) from error


def entries_of(space: Any) -> tuple[Variable, ...]:
    """Return the integers that an element of a discrete space consists of, in their order.

    Entries of a Dict have the names of its keys, others are numbered.

    Raises
    ------
    UnsupportedError
        If a part of the space is not finite.

    Examples
    --------
    >>> from gymnasium.spaces import Dict, Discrete, MultiBinary
    >>> space = Dict({"floor": Discrete(4, start=1), "lit": MultiBinary(2)})
    >>> [(e.name, e.low, e.high) for e in entries_of(space)]
    [('floor', 1, 4), ('lit_0', 0, 1), ('lit_1', 0, 1)]
    """
    return tuple(_entries(space, "x"))


def finite(space: Any) -> bool:
    """Return whether an element of a space consists of some integers."""
    try:
        return bool(entries_of(space))
    except UnsupportedError:
        return False


def _entries(space: Any, name: str) -> Iterator[Variable]:
    spaces = require_gymnasium().spaces
    if isinstance(space, spaces.Discrete):
        yield Variable(name, int(space.start), int(space.start + space.n - 1))
    elif isinstance(space, spaces.MultiDiscrete):
        sizes = np.asarray(space.nvec).reshape(-1)
        begin = np.broadcast_to(np.asarray(space.start).reshape(-1), sizes.shape)
        for i, (n, low) in enumerate(zip(sizes.tolist(), begin.tolist(), strict=True)):
            yield Variable(f"{name}_{i}", low, low + n - 1)
    elif isinstance(space, spaces.MultiBinary):
        for i in range(int(np.prod(space.shape))):
            yield Variable(f"{name}_{i}", 0, 1)
    elif isinstance(space, spaces.Tuple):
        for i, part in enumerate(space.spaces):
            yield from _entries(part, f"{name}_{i}")
    elif isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from _entries(part, str(key))
    else:
        raise UnsupportedError(
            f"Environment: spaces must be Discrete, MultiDiscrete, MultiBinary, or a Tuple or Dict "
            f"of these, found {type(space).__name__}; wrap the environment."
        )


def whole(value: Any, what: str) -> int:
    """Return a whole number as an integer, whatever its type.

    Raises
    ------
    ModelError
        If it is none; `what` says where it stands.
    """
    array = np.asarray(value)
    if array.size == 1 and array.dtype.kind in "iubf" and float(array.item()).is_integer():
        return int(array.item())
    raise ModelError(
        f"Environment: {what} must be a whole number, found {value!r}. Real numbers that are cut "
        "to whole ones do not follow a Markov process; wrap the environment, or give `observe`."
    )


def read(space: Any, element: Any) -> list[Any]:
    """Return the values of an element of a space, as they are: integers, if it is one."""
    spaces = require_gymnasium().spaces
    if isinstance(space, spaces.Tuple):
        parts = zip(space.spaces, element, strict=True)
        return [value for part, own in parts for value in read(part, own)]
    if isinstance(space, spaces.Dict):
        return [v for key, part in space.spaces.items() for v in read(part, element[key])]
    return list(np.asarray(element).reshape(-1).tolist())


def actions_of(space: Any) -> list[Any]:
    """Return all elements of a discrete space of actions: integers, or arrays in C order."""
    spaces = require_gymnasium().spaces
    entries = entries_of(space)
    count = int(np.prod([float(e.high - e.low + 1) for e in entries]))
    if count > MOST:
        raise UnsupportedError(
            f"Environment: there must be at most {MOST} actions, found {count}; wrap it."
        )
    if isinstance(space, spaces.Discrete):
        return list(range(entries[0].low, entries[0].high + 1))
    if not isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        raise UnsupportedError(
            f"Environment: actions must be Discrete, MultiDiscrete or MultiBinary, found "
            f"{type(space).__name__}; wrap the environment."
        )
    ranges = (range(e.low, e.high + 1) for e in entries)
    return [np.array(one, dtype=space.dtype).reshape(space.shape) for one in product(*ranges)]


def stacked(space: Any, actions: Sequence[Any]) -> AnyArray:
    """Return actions as one array, as vectorised environments take them."""
    return np.stack([np.asarray(action, dtype=space.dtype) for action in actions])


def split(env: Any, observations: Any) -> list[Any]:
    """Return the observations of all copies of a vectorised environment."""
    from gymnasium.vector.utils import iterate

    return list(iterate(env.observation_space, observations))
