"""What KL balls and subset sets can do: bounds, membership, minimisers."""

from __future__ import annotations

import numpy as np

from rfmdp.sets.bounds import bounds, nominal
from rfmdp.sets.families import KLBall, SubsetSet
from rfmdp.sets.membership import register as register_membership
from rfmdp.sets.minimiser import register as register_minimiser
from rfmdp.types import FloatArray


def kl_bounds(centre: FloatArray, radius: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return attainable bounds of entries: {q : kl(centre_i, q) <= radius}, from outside.

    kl(p, q) = p ln(p/q) + (1-p) ln((1-p)/(1-q)): the rest of the mass is scaled alike. Both
    arrays have one entry per outcome.

    Examples
    --------
    >>> low, high = kl_bounds(np.array([0.0, 1.0]), np.array([0.1, 0.1]))
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0, 0.9048], [0.0952, 1.0])
    """
    lower = _kl_lower(centre, radius)
    return lower, 1.0 - _kl_lower(1.0 - centre, radius)


def _kl_lower(p: FloatArray, radius: FloatArray) -> FloatArray:
    """Bisect for the smallest q <= p with kl(p, q) <= radius; the end outside is returned."""
    outside, inside = np.zeros(len(p)), p.copy()
    rest = 1.0 - p
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(60):
            q = 0.5 * (outside + inside)
            kl = np.where(p > 0.0, p * np.log(p / q), 0.0)
            kl = kl + np.where(rest > 0.0, rest * np.log(rest / (1.0 - q)), 0.0)
            # rounding of the two terms, which nearly cancel for small radii
            far = kl - 1e-15 > radius
            outside, inside = np.where(far, q, outside), np.where(far, inside, q)
    return np.where(np.isinf(radius) | (p == 0.0), 0.0, outside)


@bounds.register
def _(uset: KLBall) -> tuple[FloatArray, FloatArray]:
    return kl_bounds(uset.nominal, np.full(uset.size, uset.radius))


@bounds.register
def _(uset: SubsetSet) -> tuple[FloatArray, FloatArray]:
    single = 1 << np.arange(uset.size)
    return uset.lower[single], 1.0 - uset.lower[2**uset.size - 1 - single]


@nominal.register(KLBall)
@nominal.register(SubsetSet)
def _(uset: KLBall | SubsetSet) -> FloatArray:
    return uset.nominal


@register_membership
def _(uset: KLBall, p: FloatArray, tolerance: float) -> bool:
    seen = uset.nominal > 0.0
    if np.any(p[seen] <= 0.0):
        return bool(np.isinf(uset.radius))
    distance = float(np.sum(uset.nominal[seen] * np.log(uset.nominal[seen] / p[seen])))
    return distance <= uset.radius + tolerance


@register_membership
def _(uset: SubsetSet, p: FloatArray, tolerance: float) -> bool:
    bits = (np.arange(2**uset.size)[:, None] >> np.arange(uset.size)) & 1
    return bool(np.all(bits @ p >= uset.lower - tolerance))


@register_minimiser
def _(uset: KLBall, values: FloatArray) -> tuple[float, FloatArray]:
    from rfmdp.kernels.statistical import kl_minimum

    witness = np.empty(uset.size)
    value = kl_minimum(np.array(uset.nominal), uset.radius, np.array(values), witness)
    return float(value), witness


@register_minimiser
def _(uset: SubsetSet, values: FloatArray) -> tuple[float, FloatArray]:
    from rfmdp.kernels.statistical import choquet_minimum

    witness, order = np.empty(uset.size), np.empty(uset.size, dtype=np.int64)
    value = choquet_minimum(np.array(uset.lower), np.array(values), order, witness)
    return float(value), witness
