"""Bounds that say something: enclosing a value is no feat for 0 and 1, or for infinities."""

import numpy as np


def require_narrow(solution, states=None):
    """Return a solution after a check that its bounds are as close as `certified` claims.

    That is, in the states of interest (or others), up to the precision relative to the value, or
    to what floats leave of the largest one; two infinite bounds that are equal are close.
    """
    if states is None:
        states = solution.interest
    if states is None:
        states = solution.model.label("init")
    lower, upper = solution.lower[states], solution.upper[states]
    same = lower == upper
    assert np.isfinite(lower[~same]).all()
    assert np.isfinite(upper[~same]).all()
    size = np.where(same, 0.0, np.maximum(np.abs(lower), np.abs(upper)))
    with np.errstate(invalid="ignore"):
        width = np.where(same, 0.0, upper - lower)
    floor = 1e-12 * max(1.0, float(size.max(initial=0.0)))
    assert np.all(width <= np.maximum(1.01 * solution.precision * size, floor)), (lower, upper)
    return solution
