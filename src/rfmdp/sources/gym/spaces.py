"""Gymnasium's discrete spaces as vectors of integers, one entry per variable."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from functools import reduce
from operator import getitem
from typing import Any

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.model.arrays import Variable

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
            f"Environment: actions must be Discrete, found {type(space).__name__}; wrap it, with a "
            "list of all ACTIONS: gymnasium.wrappers.TransformAction(env, ACTIONS.__getitem__, "
            "Discrete(len(ACTIONS)))."
        )
    return list(range(int(space.start), int(space.start + space.n)))
