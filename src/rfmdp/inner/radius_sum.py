"""One ball around the nominal product: the relaxation for Lp balls (Theorem 2 of the paper).

If every marginal of a row lies within eps_i of its nominal distribution in the Lp norm, the
product lies within eps_1 + ... + eps_n of the nominal product, for every 1 <= p <= inf, because
||P x Q||_p = ||P||_p ||Q||_p and ||P||_p <= 1. Nature then picks one distribution of that ball
over all joint outcomes. Two distributions are never farther apart than 2**(1/p), so every radius
is capped there. In the L1 norm, coupling the factors one by one proves the smaller radius
2 (1 - prod_i (1 - eps_i / 2)).

    RadiusSum()                                  # L1: the coupled radius; other norms: the sum
    RadiusSum(composition=Composition.SUM)       # the theorem as published, for every norm
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.inner.packing import NO_ANSWERS, PackedModel, ball_scratch
from rfmdp.inner.protocol import PreparedRows, relaxation_side, successor_starts
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Direction
from rfmdp.ragged import owner, owners, segment, segment_lengths
from rfmdp.rounding import UNIT
from rfmdp.sets.marginals import Kind
from rfmdp.types import BoolArray, FloatArray, IntArray


class Composition(Enum):
    """How the radii of a row's marginals become the radius of their product."""

    SUM = "sum"  # eps_1 + ... + eps_n, any norm
    COUPLED = "coupled"  # 2 (1 - prod(1 - eps_i / 2)) in the L1 norm, the sum in others


@dataclass(frozen=True, slots=True)
class RadiusSum:
    """One Lp ball around the nominal product: a relaxation, and a loose one.

    Parameters
    ----------
    composition
        The coupled radius (default) is never larger than the sum; `Composition.SUM` gives the
        published baseline.
    """

    name: ClassVar[str] = "radius-sum"  # as on the command line

    composition: Composition = Composition.COUPLED

    def prepare(self, model: FactoredMDP, nature: Direction) -> PreparedRows:
        """Bind to a model of Lp balls.

        Raises
        ------
        UnsupportedError
            If a row has a marginal that is no Lp ball, or balls of different exponents.
            Singletons, and balls of radius zero, fit every exponent.
        """
        from rfmdp.kernels.products import radius_sum_rows

        radius, exponent = _row_balls(model, self.composition)
        nominals = model.marginals.outcome_ptr, model.marginals.nominal
        kind = np.select(
            [radius == 0.0, exponent == 1.0, np.isinf(exponent)],
            [Kind.SINGLETON, Kind.L1, Kind.BOX],
            Kind.LP,
        )
        balls = kind.astype(np.int64), radius, exponent
        packed = PackedModel(model, nature, memory=lambda model: ball_scratch(model, kind))

        def backup(value: FloatArray, rows: IntArray, *bounds: FloatArray) -> None:
            packed.run(radius_sum_rows, value, rows, balls, nominals, NO_ANSWERS, bounds)

        def respond(value: FloatArray, rows: IntArray) -> FloatArray:
            begin = successor_starts(model, rows)
            answers = (begin, np.empty(begin[-1]))
            ignored = tuple(np.empty((2, model.rows)))
            packed.run(radius_sum_rows, value, rows, balls, nominals, answers, ignored)
            return answers[1]

        return PreparedRows(relaxation_side(nature), backup, respond)


def _row_balls(model: FactoredMDP, composition: Composition) -> tuple[FloatArray, FloatArray]:
    """Return radius and exponent of every row's ball (R,); exponent 1 where the radius is 0."""
    marginals = model.marginals
    point = (marginals.kind == Kind.SINGLETON) | (marginals.radius == 0.0)
    exponent = np.where(point, np.nan, marginals.exponent)
    _refuse_other_sets(model, ~point & np.isnan(exponent))
    cap = 2.0 ** (1.0 / np.where(point, 1.0, exponent))
    radius = np.where(point, 0.0, np.minimum(marginals.radius, cap))
    row_exponent = _common_exponent(model, exponent)
    ids = model.row_marginals
    rows = owners(model.marginal_ptr)
    total = np.bincount(rows, weights=radius[ids], minlength=model.rows)
    if composition is Composition.COUPLED:
        kept = np.ones(model.rows)
        np.multiply.at(kept, rows, 1.0 - 0.5 * np.minimum(radius[ids], 2.0))
        total = np.where(row_exponent == 1.0, np.minimum(total, 2.0 * (1.0 - kept)), total)
    # the radius is rounded once per factor; a ball that is larger by that is still a relaxation
    factors = segment_lengths(model.marginal_ptr)
    total = np.where(total > 0.0, total + 4.0 * UNIT * (factors + 1.0), 0.0)
    return np.minimum(total, 2.0 ** (1.0 / row_exponent)), row_exponent


def _refuse_other_sets(model: FactoredMDP, other: BoolArray) -> None:
    """Raise if a marginal that is no Lp ball is used by a row."""
    used = np.flatnonzero(other[model.row_marginals])
    if not len(used):
        return
    j = int(model.row_marginals[used[0]])
    row = owner(model.marginal_ptr, used[0])
    raise UnsupportedError(
        f"radius-sum needs Lp balls, but the set of '{model.marginal_name(j)}' in "
        f"{model.row_name(row)}, is of type {type(model.marginals[j]).__name__}; give balls "
        "(`LpBall`s instead of `with_radius`), or use `Exact()`."
    )


def _common_exponent(model: FactoredMDP, exponent: FloatArray) -> FloatArray:
    """Return the exponent that the marginals of every row share (R,); 1 for rows of points."""
    ids = model.row_marginals
    rows = owners(model.marginal_ptr)
    ball = ~np.isnan(exponent[ids])
    least = np.full(model.rows, math.inf)
    most = np.full(model.rows, 1.0)
    np.minimum.at(least, rows[ball], exponent[ids[ball]])
    np.maximum.at(most, rows[ball], exponent[ids[ball]])
    none = np.ones(model.rows, dtype=np.bool_)
    none[rows[ball]] = False
    clash = np.flatnonzero(~none & (least != most))
    if len(clash):
        row = int(clash[0])
        mine = ids[segment(model.marginal_ptr, row)]
        j = next(int(m) for m in mine if exponent[m] == most[row])
        raise UnsupportedError(
            f"radius-sum needs one exponent per row: the set of '{model.marginal_name(j)}' in "
            f"{model.row_name(row)}, is an L{most[row]:g} ball, another one is an "
            f"L{least[row]:g} ball; use the exact method."
        )
    return np.where(none, 1.0, most)
