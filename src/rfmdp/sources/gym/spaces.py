"""Gymnasium's discrete spaces as vectors of integers, one entry per variable."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
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
    entries = tuple(_entries(space, ""))
    names = [e.name for e in entries]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UnsupportedError(
            f"Environment: entries must have different names, found {twice[0]} twice; wrap it."
        )
    return entries


def _inner(space: Any) -> dict[Any, Any] | None:
    """Return the spaces within a Dict or Tuple by their keys; None for what has none."""
    spaces = require_gymnasium().spaces
    if isinstance(space, spaces.Dict):
        return dict(space.spaces)
    return dict(enumerate(space.spaces)) if isinstance(space, spaces.Tuple) else None


def named(space: Any) -> bool:
    """Return whether the entries of a space have names of their own."""
    spaces = require_gymnasium().spaces
    return isinstance(space, spaces.Dict) or any(map(named, (_inner(space) or {}).values()))


def _entries(space: Any, name: str) -> Iterator[Variable]:
    spaces, label = require_gymnasium().spaces, name or "x"
    inner = _inner(space)
    if inner is not None:
        prefix = name if isinstance(space, spaces.Dict) else label
        for key, one in inner.items():
            yield from _entries(one, f"{prefix}_{key}" if prefix else str(key))
    elif isinstance(space, spaces.Discrete):
        yield Variable(label, int(space.start), int(space.start + space.n - 1))
    elif isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        binary = isinstance(space, spaces.MultiBinary)
        sizes = np.reshape(np.full(space.shape, 2) if binary else space.nvec, -1)
        lows = np.broadcast_to(np.reshape(0 if binary else space.start, -1), sizes.shape)
        for i, (n, low) in enumerate(zip(sizes.tolist(), lows.tolist(), strict=True)):
            yield Variable(f"{label}_{i}", low, low + n - 1)
    else:
        raise UnsupportedError(
            f"Environment: spaces must be Discrete, MultiDiscrete, MultiBinary, or a Tuple or Dict "
            f"of these, found {type(space).__name__}; wrap the environment."
        )


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
    inner = _inner(space)
    if inner is not None:
        kind = Mapping if isinstance(space, require_gymnasium().spaces.Dict) else Sequence
        keys = element if kind is Mapping else range(len(inner))
        fits = isinstance(element, kind) and len(element) == len(inner)
        if not fits or set(keys) != set(inner):
            raise _unlike(f"the entries {', '.join(map(str, inner))}", element)
        return [value for key, one in inner.items() for value in read(one, element[key])]
    size = int(np.prod(space.shape))
    try:
        values = list(np.asarray(element).reshape(-1).tolist())
    except ValueError:  # lists of different lengths
        values = []
    if len(values) != size:
        raise _unlike(f"{size} values", element)
    return values


def _unlike(content: str, element: Any) -> ModelError:
    return ModelError(f"Environment: an observation must have {content}, found {element!r}.")


def actions_of(space: Any) -> list[int]:
    """Return all actions of an environment."""
    if not isinstance(space, require_gymnasium().spaces.Discrete):
        raise UnsupportedError(
            f"Environment: actions must be Discrete, found {type(space).__name__}; wrap it, with a "
            "list of all ACTIONS: gymnasium.wrappers.TransformAction(env, ACTIONS.__getitem__, "
            "Discrete(len(ACTIONS)))."
        )
    return list(range(int(space.start), int(space.start + space.n)))
