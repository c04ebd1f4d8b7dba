"""Many products of vertices: branch over one set after the other, and cut what cannot matter.

A node has fixed vertices of the first sets. Its bound lets nature choose the others one by one,
each after it has seen the outcomes of those before. A node whose bound reaches the target needs no
more than that; the others get all vertices of the next set. Vertices that differ in their last
digits only, as those of boxes of equal numbers do, count as one, at a price.
"""

from __future__ import annotations

import numpy as np

from rfmdp.types import FloatArray
from rfmdp.verification.linear import NORMAL, UNIT, VAGUE, Axis, slack

Vertices = tuple[list[int], list[FloatArray]]
"""The places of a row's sets in some order, and the vertices of all but the last of them."""

NODES = 1 << 22  # numbers of the nodes of one level
DIGITS = 48  # bits of vertices that are told apart


class Branching:
    """Rows whose products are too many to be listed; what was found is kept."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[int, ...], bytes], tuple[float, float, float]] = {}

    def bounds(
        self, ids: tuple[int, ...], vertices: Vertices, axes: list[Axis], values: FloatArray,
        target: FloatArray,
    ) -> tuple[FloatArray, FloatArray] | None:  # fmt: skip
        """Return bounds (b,) of the least mean of values (b, K), from below cut at a target (b,).

        None if there are too many nodes, or numbers too small.
        """
        low, high = target.copy(), np.full(len(values), np.inf)
        for i, line in enumerate(values):
            # two values only, as of an event: all of them are the same problem, scaled
            scale = float(line[np.argmax(np.abs(line))])
            scale = abs(scale) if ((line == 0.0) | (line == scale)).all() else 1.0
            own = [axis.take(np.array([i])) for axis in axes]
            found = self._find(ids, vertices, own, line / scale, float(target[i]) / scale)
            if found is None:
                return None
            low[i] = min(scale * (found[0] - 2.0 * UNIT * abs(found[0])), target[i])
            high[i] = scale * (found[1] + 2.0 * UNIT * abs(found[1]))
        return low, high

    def _find(
        self, ids: tuple[int, ...], vertices: Vertices, axes: list[Axis], line: FloatArray,
        target: float,
    ) -> tuple[float, float] | None:  # fmt: skip
        """Return bounds of the least mean of a row, perhaps those of another time."""
        key = ids, line.tobytes()
        if key in self._known:
            low, high, cut = self._known[key]
            if low < cut or low >= target - 2.0**-44 * abs(target):
                return low, high
        order, matrices = vertices[0], [_merged(matrix) for matrix in vertices[1]]
        weights = [float(matrix[matrix > 0.0].min()) for matrix in matrices]
        least = np.abs(line[line != 0.0]).min(initial=np.inf)
        if min(weights) < NORMAL or least * float(np.prod(weights)) < VAGUE:
            return None
        tensor = line.reshape([axis.size for axis in axes]).transpose(order)
        found = _least(tensor, matrices, [axes[k] for k in order], target)
        if found is not None:
            self._known[key] = (*found, target)
        return found


def _least(
    tensor: FloatArray, matrices: list[FloatArray], axes: list[Axis], target: float
) -> tuple[float, float] | None:
    """Return bounds of the least mean of a tensor, from below at most the target."""
    nodes, mass = tensor[None], np.abs(tensor)[None]
    one_sign = bool((tensor >= 0.0).all() or (tensor <= 0.0).all())
    error = slack(sum(tensor.shape)) + len(matrices) * 2.0 ** (1 - DIGITS)
    bound = np.empty(0)
    for depth, matrix in enumerate(matrices):
        if nodes[:, 0].size * len(matrix) > NODES:
            return None
        nodes = _spread(nodes, matrix)
        mass = np.abs(nodes) if one_sign else _spread(mass, matrix)
        rest = nodes - error * mass
        for axis in reversed(axes[depth + 1 :]):
            rest = axis.least(rest.reshape(1, -1, axis.size)).reshape(rest.shape[:-1])
        open_ = ~(rest >= target)
        nodes, mass, bound = nodes[open_], mass[open_], rest[open_]
    if not len(bound):
        return target, np.inf
    best = int(np.argmin(bound))
    reached = axes[-1].least((nodes[best] + error * mass[best])[None, None], 1.0)
    return float(bound[best]), float(reached[0, 0])


def _spread(nodes: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return nodes (N, X, ...) averaged by every line of a matrix (V, X), (N * V, ...)."""
    mixed = np.moveaxis(np.tensordot(nodes, matrix, ([1], [1])), -1, 1)
    return mixed.reshape(-1, *mixed.shape[2:])


def _merged(matrix: FloatArray) -> FloatArray:
    """Return vertices (V, X) with their last digits rounded, each once."""
    mantissa, exponent = np.frexp(matrix)
    return np.unique(np.ldexp(np.rint(np.ldexp(mantissa, DIGITS)), exponent - DIGITS), axis=0)
