"""The McCormick programme of one row shape, in variables that all live in [0, 1].

A marginal p_i in [l_i, u_i] is written p_i = l_i + w_i x_i, the prefix product h_I of the first
factors (bounds by interval arithmetic) h_I = L_I + W_I xi_I, and the bilinear term of a pair is
t_Ij = xi_I x_j. The four McCormick inequalities become, for every pair of every level,

    0 <= t,   t <= xi,   t <= x,   xi + x - t <= 1,

with entries that never change; xi of the next level is the convex combination of x, xi and t
with weights L_I w_j, W_I l_j, W_I w_j over their sum (for two factors there is none: xi is x of
the first factor). Let F = 1 - sum l and G = 1 - sum L; then the rows of the variants are

    PRINTED       sum h = 1 over the last level
    SIMPLEX       and sum_i (w_i / F) x_i = 1 for every marginal
    MARGINALISED  and, at every level, sum_j (w_j / F) t_Ij = xi_I for all I (that is, sum_j h_Ij
                  = h_I) and sum_I (W_I / G) t_Ij = x_j for all j (sum_I h_Ij = p_j)

Where simplex rows make parts of sum h = 1 constant, those parts are taken out; with all
marginalisation rows, one simplex row implies the others and sum h = 1, which are left out. The
scaling keeps sets of radius 1e-9 as well conditioned as those of radius 0.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from rfmdp.kernels import mccormick as kernels
from rfmdp.ragged import starts
from rfmdp.types import FloatArray, Int32Array, IntArray


class Variant(Enum):
    """Which equations accompany the McCormick inequalities."""

    PRINTED = kernels.PRINTED  # sum h = 1 only
    SIMPLEX = kernels.SIMPLEX  # and sum p = 1 for every marginal
    MARGINALISED = kernels.MARGINALISED  # and sums of h over one factor


@dataclass(frozen=True, slots=True, eq=False)
class Programme:
    """min c.z subject to A z = rhs (first `equalities` rows), A z <= rhs (others), 0 <= z <= 1.

    Only `data[:changing]` depends on the marginals; it is rewritten in place.
    """

    columns: int
    equalities: int
    ptr: Int32Array  # (rows + 1,)
    indices: Int32Array  # (entries,)
    data: FloatArray  # (entries,)
    rhs: FloatArray  # (rows,)
    changing: int

    @property
    def rows(self) -> int:
        """Number of rows of the matrix."""
        return len(self.rhs)


@dataclass(frozen=True, slots=True)
class LevelColumns:
    """Columns of one level: prefix I, outcome j of the next marginal, their products."""

    xi: IntArray  # (P,)
    x: IntArray  # (d,)
    t: IntArray  # (P, d)
    product: IntArray | None  # (P * d,) the next level's xi; None at the last level


def levels_of(sizes: tuple[int, ...]) -> tuple[list[LevelColumns], IntArray, int]:
    """Return the levels of a shape, where marginals begin (n + 1,), and the number of columns."""
    first = starts(sizes)
    free = int(first[-1])
    xi = np.arange(sizes[0])
    levels = []
    for k in range(1, len(sizes)):
        count = len(xi) * sizes[k]
        t = np.arange(free, free + count).reshape(len(xi), sizes[k])
        free += count
        product = None
        if k < len(sizes) - 1:
            product = np.arange(free, free + count)
            free += count
        levels.append(LevelColumns(xi, np.arange(first[k], first[k + 1]), t, product))
        if product is not None:
            xi = product
    return levels, first, free


def programme(sizes: tuple[int, ...], variant: Variant) -> Programme:
    """Return the programme of rows with marginals of these sizes (at least two)."""
    levels, first, columns = levels_of(sizes)
    count = {Variant.PRINTED: 0, Variant.SIMPLEX: len(sizes), Variant.MARGINALISED: 1}[variant]
    rows = [np.arange(first[k], first[k + 1]) for k in range(count)]
    rhs = [1.0] * count
    for level in levels:
        extra = _equations(level, variant)
        rows += extra
        # the row of sum h = 1 is the last one and the only one with a right-hand side
        rhs += [0.0] * len(extra)
        if level.product is None and variant is not Variant.MARGINALISED:
            rhs[-1] = 1.0
    equalities = len(rows)
    data = np.zeros(sum(len(row) for row in rows))
    entries = [data]
    bounds = [np.array(rhs)]
    for level in levels:
        envelope, signs = _envelope(level)
        rows += list(envelope)
        entries.append(signs.ravel())
        bounds.append(np.tile([0.0, 0.0, 1.0], level.t.size))
    return Programme(
        columns=columns,
        equalities=equalities,
        ptr=starts([len(row) for row in rows]).astype(np.int32),
        indices=np.concatenate(rows).astype(np.int32),
        data=np.concatenate(entries),
        rhs=np.concatenate(bounds),
        changing=len(data),
    )


def _equations(level: LevelColumns, variant: Variant) -> list[IntArray]:
    """Return the columns of a level's equations, in the order in which the kernel fills them."""
    rows: list[IntArray] = []
    if variant is Variant.MARGINALISED:
        rows += [np.append(level.t[i], level.xi[i]) for i in range(len(level.xi))]
        rows += [np.append(level.t[:, j], level.x[j]) for j in range(len(level.x))]
    if level.product is not None:
        x = np.tile(level.x, len(level.xi))
        xi = np.repeat(level.xi, len(level.x))
        rows += list(np.stack([level.product, x, xi, level.t.ravel()], axis=1))
    elif variant is not Variant.MARGINALISED:
        rows.append(np.concatenate([level.x, level.xi, level.t.ravel()]))
    return rows


def _envelope(level: LevelColumns) -> tuple[list[IntArray], FloatArray]:
    """Return columns and entries of t - xi <= 0, t - x <= 0, xi + x - t <= 1 for every pair."""
    xi, x = np.repeat(level.xi, len(level.x)), np.tile(level.x, len(level.xi))
    rows: list[IntArray] = []
    for t, u, v in zip(level.t.ravel(), xi, x, strict=True):
        rows += [np.array([t, u]), np.array([t, v]), np.array([u, v, t])]
    signs = np.tile([1.0, -1.0, 1.0, -1.0, 1.0, 1.0, -1.0], level.t.size)
    return rows, signs
