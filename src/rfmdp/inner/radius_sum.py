"""One ball around the nominal product: the relaxation for Lp balls (Theorem 2 of the paper).

If every marginal of a row lies within eps_i of its nominal distribution in the Lp norm, the
product lies within eps_1 + ... + eps_n of the nominal product, for every 1 <= p <= inf, because
||P x Q||_p = ||P||_p ||Q||_p and ||P||_p <= 1. Nature then picks one distribution of that ball
over all joint outcomes. Two distributions are never farther apart than 2**(1/p), so every radius
is capped there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.inner.packing import joint_relaxation
from rfmdp.inner.protocol import PreparedInner
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Direction
from rfmdp.ragged import owners, segment_lengths
from rfmdp.rounding import UNIT
from rfmdp.sets.marginals import Kind
from rfmdp.types import FloatArray


@dataclass(frozen=True, slots=True)
class RadiusSum:
    """One Lp ball around the nominal product: a relaxation, and a loose one."""

    name: ClassVar[str] = "radius-sum"  # as on the command line

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedInner:
        """Bind to a model of Lp balls.

        Raises
        ------
        UnsupportedError
            If a row has a marginal that is no Lp ball, or balls of different exponents.
            Singletons, and balls of radius zero, fit every exponent.
        """
        radius, exponent = _row_balls(model)
        kind = np.select(
            [radius == 0.0, exponent == 1.0, np.isinf(exponent)],
            [Kind.SINGLETON, Kind.L1, Kind.BOX],
            Kind.LP,
        )
        return joint_relaxation(model, nature, (kind.astype(np.int64), radius, exponent))


def _row_balls(model: FactoredMDP) -> tuple[FloatArray, FloatArray]:
    """Return radius and exponent of every row's ball (R,); exponent 1 where the radius is 0."""
    marginals, ids, rows = model.marginals, model.row_marginals, owners(model.marginal_ptr)
    ball = (marginals.kind != Kind.SINGLETON) & (marginals.radius != 0.0)
    other = np.flatnonzero((ball & np.isnan(marginals.exponent))[ids])
    if len(other):
        j = int(ids[other[0]])
        raise UnsupportedError(
            f"radius-sum needs Lp balls, but the set of '{model.marginal_name(j)}' in "
            f"{model.row_name(int(rows[other[0]]))}, is of type {type(marginals[j]).__name__}; "
            "give balls (`LpBall`s instead of `with_radius`), or use `Exact()`."
        )
    used = np.flatnonzero(ball[ids])  # places of balls
    least, most = np.full(model.rows, math.inf), np.ones(model.rows)
    np.minimum.at(least, rows[used], marginals.exponent[ids[used]])
    np.maximum.at(most, rows[used], marginals.exponent[ids[used]])
    clash = used[least[rows[used]] != most[rows[used]]]
    clash = clash[marginals.exponent[ids[clash]] == most[rows[clash]]]
    if len(clash):
        row = int(rows[clash[0]])
        raise UnsupportedError(
            f"radius-sum needs one exponent per row: the set of "
            f"'{model.marginal_name(int(ids[clash[0]]))}' in {model.row_name(row)}, is an "
            f"L{most[row]:g} ball, another one is an L{least[row]:g} ball; use the exact method."
        )
    cap = 2.0 ** (1.0 / np.where(ball, marginals.exponent, 1.0))
    radius = np.where(ball, np.minimum(marginals.radius, cap), 0.0)
    total = np.bincount(rows, weights=radius[ids], minlength=model.rows)
    # the radius is rounded once per factor; a ball that is larger by that is still a relaxation
    factors = segment_lengths(model.marginal_ptr)
    total = np.where(total > 0.0, total + 4.0 * UNIT * (factors + 1.0), 0.0)
    return np.minimum(total, 2.0 ** (1.0 / most)), most
