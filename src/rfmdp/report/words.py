"""Specifications and numbers as people read them."""

from __future__ import annotations

import math

import numpy as np

from rfmdp.objective import (
    MAX,
    Cumulative,
    Discounted,
    Globally,
    Instantaneous,
    Next,
    Reach,
    ReachReward,
    Spec,
    States,
    Total,
    Until,
)
from rfmdp.outer.solution import written


def in_words(spec: Spec) -> str:
    """Return a specification in the notation of properties; unnamed sets of states by size.

    >>> in_words(Spec(Until("safe", "goal", latest=5)))
    'Pmaxmin=? [ "safe" U<=5 "goal" ]'
    >>> in_words(Spec(Next(np.array([True, False, True]))))
    'Pmaxmin=? [ X (2 states) ]'
    """
    agent, nature = (("max" if side is MAX else "min") for side in (spec.agent, spec.nature))
    name = getattr(spec.objective, "reward", None)
    reward = f'R{{"{name}"}}' if name else "R"
    match spec.objective:
        case Reach(target):
            kind, path = "P", f"F {_set(target)}"
        case Until(stay, target, latest, earliest):
            kind, path = "P", f"{_set(stay)} U{_times(latest, earliest)} {_set(target)}"
        case Globally(stay, latest, earliest):
            kind, path = "P", f"G{_times(latest, earliest)} {_set(stay)}"
        case Next(target):
            kind, path = "P", f"X {_set(target)}"
        case ReachReward(target):
            kind, path = reward, f"F {_set(target)}"
        case Cumulative(steps):
            kind, path = reward, f"C<={steps}"
        case Instantaneous(step):
            kind, path = reward, f"I={step}"
        case Discounted(discount):
            kind, path = reward, f"C, discount {discount:g}"
        case Total():
            kind, path = reward, "C"
    return f"{kind}{agent}{nature}=? [ {path} ]"


def _set(states: States) -> str:
    if isinstance(states, str):
        return f'"{states}"'
    if isinstance(states, np.ndarray):
        return f"({np.count_nonzero(states)} states)"
    return f"({getattr(states, 'text', '...')})"


def _times(latest: int | None, earliest: int) -> str:
    if latest is None:
        return f">={earliest}" if earliest else ""
    return f"[{earliest},{latest}]" if earliest else f"<={latest}"


def proven(lower: float, upper: float) -> str:
    """Return the digits that two bounds prove, or the bounds if they share none.

    >>> proven(0.726009315208811, 0.7260093152143634), proven(0.25, 0.75), proven(1.0, 1.0)
    ('0.72600931521', '[0.25, 0.75]', '1.0')
    >>> proven(0.16666666666665, 0.16666666666668), proven(0.5, float("inf"))
    ('0.1666666666667', 'at least 0.5')
    """
    if math.isinf(lower) != math.isinf(upper):
        below = math.isfinite(lower)
        return f"at least {written(lower, -1.0)}" if below else f"at most {written(upper, 1.0)}"
    return shared_digits(lower, upper) or f"[{written(lower, -1.0)}, {written(upper, 1.0)}]"


def shared_digits(lower: float, upper: float) -> str | None:
    """Return the number that both bounds are, to as many digits as they agree in; None: in none."""
    if lower == upper:
        return repr(lower)
    for digits in range(16, 1, -1):
        low, high = float(f"{lower:.{digits}g}"), float(f"{upper:.{digits}g}")
        if low == high:
            return repr(low)
    return None
