"""Numbers as people read them."""

from __future__ import annotations

import math

from rfmdp.outer.solution import written


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
