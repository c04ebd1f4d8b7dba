"""What `learn` can be asked for: anything else is refused, with what must be given."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfmdp.errors import ModelError


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
