"""Rows of a McCormick solver by what they share: their marginals, and their shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, TypeAlias

import numpy as np

from rfmdp.inner.mccormick.programme import Programme, Variant, programme
from rfmdp.kernels import mccormick as kernels
from rfmdp.model.arrays import FactoredMDP
from rfmdp.ragged import segment, segment_sum
from rfmdp.rounding import KNOWN
from rfmdp.sets.marginals import Marginals
from rfmdp.types import AnyArray, FloatArray, IntArray

BATCH = 256  # rows whose costs and multipliers are held at once, fewer if they are large
NUMBERS = 2**20


class Session(Protocol):
    """A solver's model of one programme, kept between rows."""

    def load(self) -> None:
        """Take over the entries of the programme."""
        ...

    def solve(self, cost: FloatArray) -> str | None:
        """Minimise; None if optimal, else what happened."""
        ...

    def dual(self, out: FloatArray) -> None:
        """Fill the multipliers of the rows."""
        ...

    def primal(self, out: FloatArray) -> None:
        """Fill the values of the columns."""
        ...


Opener: TypeAlias = Callable[[Programme], Session]


class Shape:
    """What rows with uncertain marginals of the same sizes share: programme, solver, memory."""

    def __init__(self, sizes: tuple[int, ...], variant: Variant, opener: Opener) -> None:
        self.lp = programme(sizes, variant)
        self.session = opener(self.lp)
        rows, columns = self.lp.rows, self.lp.columns
        self.batch = max(1, min(BATCH, NUMBERS // (rows + columns)))
        self.cost = np.empty((self.batch, columns))
        self.dual = np.empty((self.batch, rows))
        self.head = np.empty((self.batch, 5))
        self.reduced = np.empty(columns)
        self.error = np.zeros(rows)
        lp = self.lp
        self.matrix = (lp.ptr, lp.indices, lp.data, lp.rhs, lp.equalities, self.error)
        total = sum(sizes)
        d = sizes[-1]
        prefixes = np.cumprod(sizes[:-1])
        prefix = int(prefixes[-1])
        all_prefixes = int(prefixes.sum())
        self.tensor = np.empty(prefix * d)
        # numba passes tuples by value: arrays here are shared with the kernels
        self.box = tuple(
            np.empty(count)
            for count in (total, total, total, len(sizes), len(sizes), all_prefixes, all_prefixes)
        )
        t = columns - prefix * d
        self.places = (
            *(total - d, all_prefixes - prefix, total - d),
            *(0 if len(sizes) == 2 else t - prefix, t, d, prefix),
        )
        self._sizes = np.array(sizes, dtype=np.int64)
        self._variant = variant
        self._loaded: bytes | None = None

    def load(self, ids: IntArray, marginals: Marginals) -> None:
        """Make the programme that of these marginals; nothing to do if it already is."""
        key = ids.tobytes()
        if key == self._loaded:
            return
        bounds = (marginals.outcome_ptr, marginals.lower, marginals.upper)
        kernels.coefficients(
            self._variant.value, self._sizes, ids, bounds, self.box, self.lp.data, self.error
        )
        self.session.load()
        self._loaded = key


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Rows that have one tuple of marginals, and how their tensors are contracted."""

    rows: IntArray  # (N,)
    places: IntArray  # (N,) where these rows stand in the request
    uncertain: IntArray  # (n,) marginals that are not known
    sizes: tuple[int, ...]  # their numbers of outcomes
    tensors: tuple[AnyArray, ...]  # see `kernels.mccormick`
    charged: tuple[float, int, float]  # likewise


class RowGroups:
    """The rows of a model, classed by their tuple of marginals."""

    def __init__(self, model: FactoredMDP) -> None:
        self._model = model
        marginals = model.marginals
        self._top = segment_sum(marginals.upper, marginals.outcome_ptr)
        mass = segment_sum(marginals.lower, marginals.outcome_ptr)
        self._free = np.minimum(np.maximum(1.0 - mass, 0.0), self._top - mass)
        self._known = self._free <= KNOWN
        self._sizes = marginals.sizes
        self._ids = model.row_marginals.astype(np.int64)
        self._class = _classes(model)
        self._tables: dict[tuple[tuple[int, ...], bytes], IntArray] = {}

    def of(self, rows: IntArray) -> Iterator[Group]:
        """Yield the rows in groups; groups of the same uncertain marginals are neighbours."""
        if not len(rows):
            return
        order = np.argsort(self._class[rows], kind="stable")
        cuts = np.flatnonzero(np.diff(self._class[rows][order])) + 1
        for places in np.split(order, cuts):
            yield self._group(np.ascontiguousarray(rows[places], dtype=np.int64), places)

    def box(self, group: Group) -> tuple[FloatArray, int, int, float]:
        """Return a group's only uncertain marginal, if any, as a box of `kernels.boxes`."""
        if not len(group.uncertain):
            return np.array([1.0, 0.0]), 0, 1, 0.0
        j = int(group.uncertain[0])
        marginals = self._model.marginals
        part = segment(marginals.outcome_ptr, j)
        lower, upper = marginals.lower[part], marginals.upper[part]
        return np.concatenate([lower, upper - lower]), 0, len(lower), float(self._free[j])

    def _group(self, rows: IntArray, places: IntArray) -> Group:
        ids = self._ids[segment(self._model.marginal_ptr, rows[0])]
        known = self._known[ids]
        sizes = tuple(self._sizes[ids].tolist())
        key = (sizes, known.tobytes())
        if key not in self._tables:
            self._tables[key] = _contraction(sizes, known.tolist())
        table = self._tables[key]
        slack = 0.0
        uncertain = ids
        weight = np.ones(len(table))
        if known.any():
            marginals = self._model.marginals
            kernels.known_weights(ids, known, marginals.outcome_ptr, marginals.lower, weight)
            slack = float(self._free[ids[known]].sum())
            uncertain = ids[~known]
        return Group(
            rows=rows,
            places=places,
            uncertain=uncertain,
            sizes=tuple(self._sizes[uncertain].tolist()),
            tensors=(self._model.successor_ptr, self._model.successors, table, weight),
            charged=(slack, sum(sizes), math.prod(self._top[ids].tolist(), start=1.0)),
        )


def _contraction(sizes: tuple[int, ...], known: list[bool]) -> IntArray:
    """Return, for every joint outcome, its place when the known axes are summed over."""
    kept = [1 if k else s for s, k in zip(sizes, known, strict=True)]
    places = np.arange(math.prod(kept), dtype=np.int64).reshape(kept)
    return np.broadcast_to(places, sizes).ravel().copy()


def _classes(model: FactoredMDP) -> IntArray:
    """Return a number per row (R,), equal for rows with the same tuple of marginals."""
    found: dict[bytes, int] = {}
    ids = model.row_marginals
    ptr = model.marginal_ptr.tolist()
    keys = [ids[a:b].tobytes() for a, b in pairwise(ptr)]
    for key in sorted(set(keys)):
        found[key] = len(found)
    return np.array([found[key] for key in keys], dtype=np.int64)
