"""What `learn` can be asked for: anything else is refused, with what must be given."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.learning.identifiers import Granularity
from rfmdp.learning.methods import METHODS, Method, find_method
from rfmdp.learning.rewards import RewardFamily
from rfmdp.learning.schedule import StopWhen
from rfmdp.learning.support import Support
from rfmdp.learning.transition_rewards import TransitionReward
from rfmdp.model.arrays import FactoredMDP
from rfmdp.outer.settings import Limits
from rfmdp.sources.source import Simulated, Source
from rfmdp.sources.structure import Structure


def whole_number(name: str, given: Any, least: int, why: str = "") -> int:
    """Return a whole number that is large enough, as an integer.

    Raises
    ------
    ModelError
        If it is none; `name` says what was given, `why` what else is to be said.
    """
    number = isinstance(given, int | float | np.integer | np.floating)
    if number and float(given).is_integer() and given >= least:
        return int(given)
    raise ModelError(
        f"learn: {name} must be a whole number, at least {least}, found {given!r}{why}."
    )


def probability(name: str, given: object, *, zero: bool = False) -> float:
    """Return a number between 0 and 1, both excluded; `zero`: 0 is allowed.

    Raises
    ------
    ModelError
        If it is none; `name` says what was given.
    """
    if isinstance(given, int | float | np.integer | np.floating):
        found = float(given)
        if 0.0 < found < 1.0 or (zero and found == 0.0):
            return found
    least = "at least 0" if zero else "larger than 0"
    shown = "NaN" if isinstance(given, float) and math.isnan(given) else repr(given)
    raise ModelError(f"learn: {name} must be a number {least} and less than 1, found {shown}.")


def as_source(given: Any) -> Source:
    """Return what samples come from; a model is simulated.

    Raises
    ------
    UnsupportedError
        If it is no source; the message says how to make one of it.
    """
    if isinstance(given, FactoredMDP):
        return Simulated(given)
    if isinstance(getattr(given, "structure", None), Structure):
        return given  # type: ignore[no-any-return]  # a source by its protocol
    advice = "give a model, GymSource(env, model), read_log(model, ...) or Recorded(model, ...)"
    if hasattr(given, "reset") and hasattr(given, "step"):
        advice = "give GymSource(env, model), where the model says what is known of it"
    elif isinstance(given, str):
        advice = f"give a model, open_model({given!r}), or a source that is made of one"
    raise UnsupportedError(f"learn: cannot sample {_shown(given)}; {advice}.")


def as_method(given: Any) -> Method:
    """Return a method, also by its name.

    Raises
    ------
    ModelError, UnsupportedError
        If there is no such method, or it is something else.
    """
    if isinstance(given, str):
        return find_method(given)
    if not isinstance(given, Method):
        raise UnsupportedError(
            f"learn: the method must be a Method or its name, found {_shown(given)}; the names are "
            f"{', '.join(METHODS)}."
        )
    return given


def _shown(given: Any) -> str:
    """Return a text or a number as it is, and of all else the type."""
    plain = given is None or isinstance(given, str | int | float)
    return repr(given) if plain else f"a {type(given).__name__}"


PARTS: dict[str, tuple[Any, str]] = {  # what parts can do, or what they are, and examples
    "confidence": ("validity", "Mixture(), ClopperPearson(), Weissman()"),
    "budget": ("ledger", "EqualEvents(), PerProbability()"),
    "exploration": ("plan", "Optimistic(), GapDirected()"),
    "schedule": ("limits", "Doubling(), Geometric()"),
    "granularity": (Granularity, "Granularity.EFFECT, Granularity.LOCAL"),
    "inner": ("prepare", "Exact(), IntervalArithmetic()"),
    "stop": (StopWhen, "StopWhen(trajectories=200)"),
    "points": ("next", "LogSpaced(8)"),
    "support": (Support, "DeclaredSupport(), SparseSupport(0.05)"),
    "rewards": (
        RewardFamily | TransitionReward,
        "MixtureReward(RewardRange(0, 1)), DeterministicReward(RewardRange(0, 1))",
    ),
    "limits": (Limits, "Limits(precision=1e-4)"),
}


def require_parts(**given: Any) -> None:
    """Raise UnsupportedError unless parts, by name, are what `PARTS` says, or None."""
    for name, part in given.items():
        wanted, examples = PARTS[name]
        if part is None:
            continue
        fits = hasattr(part, wanted) if isinstance(wanted, str) else isinstance(part, wanted)
        if not fits or isinstance(part, str | type):
            raise UnsupportedError(
                f"learn: {name} must be an object like {examples}, found {_shown(part)}."
            )
