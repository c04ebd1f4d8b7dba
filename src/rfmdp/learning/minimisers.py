"""Linear minimisers over the sets that learning adds: min of v.P over one marginal's set.

Each returns a `Minimum`: a value that is proven to be at most the true minimum (float error
included) and, where one exists, a member of the set that attains it up to rounding. Maximise by
negating v and the value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.kernels.statistical import choquet_minimum, kl_minimum
from rfmdp.learning.bounds import KLHistory
from rfmdp.sets import L1Ball
from rfmdp.sets.minimiser import minimise
from rfmdp.types import FloatArray

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class Minimum:
    """A lower bound of a minimum, and a distribution that attains it (None: not known)."""

    value: float
    witness: FloatArray | None  # (X,)


def minimise_l1(nominal: FloatArray, radius: float, values: FloatArray) -> Minimum:
    """Minimise v.P over {P : ||P - nominal||_1 <= radius}, exactly.

    Moves min(radius/2, 1 - nominal_i) onto the lowest value, taken from the highest ones.

    Examples
    --------
    >>> nominal, values = np.array([0.55, 0.3, 0.1, 0.05]), np.array([0.9, 0.2, 0.7, 0.4])
    >>> print(f"{minimise_l1(nominal, 0.2, values).value:.6f}")
    0.575000
    """
    nominal, values = _pair(nominal, values)
    attained, witness = minimise(L1Ball(nominal, float(radius)), values)
    slack = 4.0 * _EPS * len(values) * float(np.max(np.abs(values)) + np.ptp(values))
    return Minimum(attained - slack, witness)


def minimise_kl(nominal: FloatArray, rho: float, values: FloatArray) -> Minimum:
    """Minimise v.P over {P : KL(nominal || P) <= rho}; the value is a dual bound.

    For every mu <= min v and every member P, v.P >= mu + exp(sum_i nominal_i ln(v_i - mu) - rho)
    (Jensen). The value is that bound at the best mu found, which any checker can repeat in O(X);
    the witness is the primal solution at the same mu [FilippiCappeGarivier2010].

    Examples
    --------
    >>> nominal, values = np.array([0.55, 0.3, 0.1, 0.05]), np.array([0.9, 0.2, 0.7, 0.4])
    >>> print(f"{minimise_kl(nominal, 0.0260149201997, values).value:.9f}")
    0.571062792
    """
    nominal, values = _pair(nominal, values)
    if not rho >= 0.0:
        raise ModelError(f"KL ball: rho must be at least 0, found {rho}.")
    witness = np.empty(len(values))
    value = float(kl_minimum(nominal, float(rho), values, witness))
    return Minimum(value, witness)


def minimise_kl_history(history: KLHistory, marginal: int, values: FloatArray) -> Minimum:
    """Return the largest of the minima over the stored balls of one marginal.

    A lower bound of the minimum over their intersection. The witness attains the value in its
    own ball, and is dropped because it need not lie in the others, unless there is one ball.
    """
    minima = []
    for ball in history.balls:
        part = slice(ball.outcome_ptr[marginal], ball.outcome_ptr[marginal + 1])
        minima.append(minimise_kl(ball.nominal[part], float(ball.rho[marginal]), values))
    if len(minima) == 1:
        return minima[0]
    return Minimum(max(m.value for m in minima), None)


def minimise_subsets(lower: FloatArray, values: FloatArray) -> Minimum:
    """Minimise v.P over {P : P(A) >= lower[A] for every bitmask A} by a Choquet integral.

    value = v_(1) + sum_{m>=2} (v_(m) - v_(m-1)) lower[{i : v_i >= v_(m)}], at most the true
    minimum for any lower bounds, equal to it if they are supermodular. The witness is given only
    if it satisfies all 2^X bounds.

    Parameters
    ----------
    lower : FloatArray
        (2**X,) lower probabilities, indexed by bitmask.
    values : FloatArray
        (X,)
    """
    values = np.ascontiguousarray(values, dtype=np.float64)
    size = len(values)
    if len(lower) != 2**size:
        raise ModelError(
            f"Subset bounds: {2**size} entries must be given for {size} outcomes, "
            f"found {len(lower)}."
        )
    witness = np.empty(size)
    order = np.empty(size, dtype=np.int64)
    table = np.ascontiguousarray(lower, dtype=np.float64)
    value = float(choquet_minimum(table, values, order, witness))
    bits = (np.arange(2**size)[:, None] >> np.arange(size)) & 1
    feasible = bool(np.all(bits @ witness >= table - 1e-12))
    return Minimum(value, witness if feasible else None)


def kl_divergence(nominal: FloatArray, other: FloatArray) -> float:
    """Return KL(nominal || other) = sum_i nominal_i ln(nominal_i / other_i)."""
    seen = nominal > 0
    return float(np.sum(nominal[seen] * np.log(nominal[seen] / other[seen])))


def _pair(nominal: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Contiguous arrays of one length, checked."""
    centre = np.ascontiguousarray(nominal, dtype=np.float64)
    value = np.ascontiguousarray(values, dtype=np.float64)
    if len(centre) != len(value) or len(value) == 0:
        raise ModelError(
            f"Minimiser: nominal and values must have one length, at least 1, "
            f"found {len(centre)} and {len(value)}."
        )
    return centre, value
