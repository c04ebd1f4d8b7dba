"""The p-norm, safe for very small and very large entries and exponents."""

from __future__ import annotations

import math

import numpy as np

from rfmdp.types import FloatArray


def p_norm(vector: FloatArray, exponent: float) -> float:
    """Return (sum |v_i|^p)^(1/p), or max |v_i| for p = inf.

    Entries are scaled by the largest one first, so that no power under- or overflows.

    Examples
    --------
    >>> p_norm(np.array([3.0, -4.0]), 2.0)
    5.0
    """
    size = np.abs(vector)
    top = float(size.max(initial=0.0))
    if top == 0.0 or math.isinf(exponent):
        return top
    if exponent == 1.0:
        return float(size.sum())
    return top * math.pow(float(((size / top) ** exponent).sum()), 1.0 / exponent)
