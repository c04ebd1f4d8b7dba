"""Which outcomes nature can empty: the supports of the members of every marginal set.

Qualitative questions depend on supports only. For each marginal two families answer them all:
the *minimal* supports, and for every outcome the minimal supports that contain it.

    Interval([0.7, 0.0], [1.0, 0.3])             minimal {0};            all {0}, {0, 1}
    Interval([0.0, 0.0, 0.0], [0.5, 0.5, 0.5])   minimal = all: {0, 1}, {0, 2}, {1, 2}

A set in which no outcome can be emptied is *rigid*: it has one support.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.kernels.supports import SLACK, families
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.types import BoolArray, Int32Array, IntArray

SUPPORT_LIMIT = 1 << 17  # per marginal
OUTCOME_LIMIT = 62  # bits of a mask


@dataclass(frozen=True, slots=True, eq=False)
class Supports:
    """The two families of all marginals; support b has the outcomes of `member_ptr[b : b + 2]`."""

    possible: BoolArray  # (O,) outcomes that some member takes
    flexible: BoolArray  # (M,) marginals with more than one support
    support_ptr: IntArray  # (M + 1,)
    minimal_end: IntArray  # (M,) minimal supports come first
    member_ptr: IntArray  # (number of supports + 1,)
    members: Int32Array  # outcomes, numbered within their marginal

    def of(self, j: int) -> list[tuple[int, ...]]:
        """Return all supports of marginal j, the minimal ones first."""
        bounds = range(self.support_ptr[j], self.support_ptr[j + 1])
        ptr = self.member_ptr
        return [tuple(self.members[ptr[b] : ptr[b + 1]].tolist()) for b in bounds]

    def minimal(self, j: int) -> list[tuple[int, ...]]:
        """Return the minimal supports of marginal j."""
        return self.of(j)[: self.minimal_end[j] - self.support_ptr[j]]


def supports(marginals: Marginals) -> Supports:
    """Return the families of supports of every marginal.

    Exact for singletons, boxes, L1 balls, polytopes and KL balls (which can empty just what was
    never seen). Sums within 1e-12 of one, and distances
    within 1e-12 of a radius, count as equal; any other positive bound counts as it stands.

    Raises
    ------
    UnsupportedError
        For a set that nature can bend with more than 62 outcomes or 131072 supports.

    Examples
    --------
    >>> from rfmdp.sets.families import Interval
    >>> supports(Marginals.from_sets([Interval([0.7, 0.0], [1.0, 0.3])])).of(0)
    [(0,), (0, 1)]
    """
    possible = marginals.upper > 0.0
    required = _required(marginals) & possible
    flexible = np.zeros(len(marginals), dtype=np.bool_)
    if len(marginals):
        flexible = np.logical_or.reduceat(possible & ~required, marginals.outcome_ptr[:-1])
    large = np.flatnonzero(flexible & (marginals.sizes > OUTCOME_LIMIT))
    if large.size:
        raise UnsupportedError(
            f"Marginal {large[0]}: nature can empty some of its {marginals.sizes[large[0]]} "
            f"outcomes; that is analysed for at most {OUTCOME_LIMIT} outcomes. Give them positive "
            "lower bounds, or split the marginal."
        )
    parts = [_rigid(marginals, possible, np.flatnonzero(~flexible))]
    polytope, subsets = marginals.kind == Kind.POLYTOPE, marginals.kind == Kind.SUBSETS
    plain = np.flatnonzero(flexible & ~polytope & ~subsets)
    parts.append(_enumerated(marginals, required, possible, plain))
    parts.extend(_polytope(marginals, int(j)) for j in np.flatnonzero(flexible & polytope))
    parts.extend(_subsets(marginals, int(j)) for j in np.flatnonzero(flexible & subsets))
    return _assemble(possible, flexible, parts)


Part = tuple[IntArray, BoolArray, IntArray, IntArray]
# marginal of every support, whether it is minimal, its number of outcomes; all outcomes


def _required(marginals: Marginals) -> BoolArray:
    """Return the outcomes (O,) that no member can empty, as far as seen one at a time."""
    required: BoolArray = marginals.lower > 0.0
    ball = (marginals.kind == Kind.L1) | (marginals.kind == Kind.LP)
    if ball.any():
        sizes = marginals.sizes
        exponent = np.where(ball, marginals.exponent, 1.0)
        # distance to the face without outcome i is nominal_i times this; none if it is alone
        others = np.maximum(sizes - 1, 1).astype(np.float64)
        factor = (1.0 + others ** (1.0 - exponent)) ** (1.0 / exponent)
        factor[sizes == 1] = np.inf
        reach = np.repeat((np.where(ball, marginals.radius, 0.0) + SLACK) / factor, sizes)
        required = np.where(np.repeat(ball, sizes), marginals.nominal > reach, required)
    return required


def _rigid(marginals: Marginals, possible: BoolArray, which: IntArray) -> Part:
    """Return the one support of each of the given marginals."""
    sizes = marginals.sizes
    owner = np.repeat(np.arange(len(marginals)), sizes)
    within = np.arange(len(possible)) - np.repeat(marginals.outcome_ptr[:-1], sizes)
    wanted = np.zeros(len(marginals), dtype=np.bool_)
    wanted[which] = True
    chosen = wanted[owner] & possible
    counts = np.bincount(owner[chosen], minlength=len(marginals))[which]
    return which, np.ones(len(which), dtype=np.bool_), counts, within[chosen]


def _enumerated(
    marginals: Marginals, required: BoolArray, possible: BoolArray, which: IntArray
) -> Part:
    """Return the supports of boxes and balls."""
    if not len(which):
        return _concatenate([])
    ball = (marginals.kind == Kind.L1) | (marginals.kind == Kind.LP)
    weight = np.where(np.repeat(ball, marginals.sizes), marginals.nominal, marginals.upper)
    exponent = np.where(ball, marginals.exponent, 0.0)
    # upper bounds may miss one by the tolerance of `check_box`; then all of them are needed
    mass = np.minimum(np.add.reduceat(marginals.upper, marginals.outcome_ptr[:-1]), 1.0)
    radius = np.where(ball, marginals.radius, mass)
    masks = np.empty(min(SUPPORT_LIMIT, 1024 + 64 * len(which)), dtype=np.int64)
    scratch = np.empty((3, 64), dtype=np.int64)
    parts = []
    done = 0
    while done < len(which):
        ends = np.zeros((len(which) - done, 2), dtype=np.int64)
        sets = (marginals.outcome_ptr, weight, required, possible, radius, exponent)
        count = families(which[done:], *sets, scratch, masks, ends)
        if count == 0 and len(masks) == SUPPORT_LIMIT:
            raise UnsupportedError(
                f"Marginal {which[done]}: nature can choose among more than {SUPPORT_LIMIT} "
                "supports. Give its outcomes positive lower bounds, or split the marginal."
            )
        if count == 0:
            masks = np.empty(SUPPORT_LIMIT, dtype=np.int64)
            continue
        starts = np.concatenate([[0], ends[: count - 1, 1]])
        totals = ends[:count, 1] - starts
        owner = np.repeat(np.arange(count), totals)
        minimal = np.arange(ends[count - 1, 1]) < ends[owner, 0]
        parts.append(_from_masks(which[done + owner], minimal, masks[: len(owner)]))
        done += count
    return _concatenate(parts)


def _polytope(marginals: Marginals, j: int) -> Part:
    """Return the supports of one polytope: of its vertices, those minimal for some outcome."""
    size = int(marginals.sizes[j])
    corners = marginals.corners[marginals.corner_ptr[j] : marginals.corner_ptr[j + 1]]
    bits = (corners.reshape(-1, size) > 0.0) @ (1 << np.arange(size, dtype=np.int64))
    return _families(j, size, sorted({int(mask) for mask in bits}))


def _subsets(marginals: Marginals, j: int) -> Part:
    """Return the supports of one subset set: whose complement has the lower probability 0.

    Exact if the bounds are supermodular; else nature may be given supports it does not have.
    """
    table = marginals.corners[marginals.corner_ptr[j] : marginals.corner_ptr[j + 1]]
    masks = np.flatnonzero(table[::-1] == 0.0)  # reversed: the complement of every mask
    return _families(j, int(marginals.sizes[j]), masks.tolist())


def _families(j: int, size: int, masks: list[int]) -> Part:
    """Return the minimal sets of a list, and those minimal for some outcome."""
    minimal = _minimal(masks)
    wanted = set(minimal)
    for outcome in range(size):
        wanted.update(_minimal([mask for mask in masks if mask >> outcome & 1]))
    ordered = minimal + sorted(wanted - set(minimal))
    first = np.arange(len(ordered)) < len(minimal)
    return _from_masks(np.full(len(ordered), j), first, np.array(ordered, dtype=np.int64))


def _minimal(masks: list[int]) -> list[int]:
    """Return the sets that contain no other set of the list."""
    return [a for a in masks if not any(b != a and b & a == b for b in masks)]


def _from_masks(owner: IntArray, minimal: BoolArray, masks: IntArray) -> Part:
    """List the outcomes of bit masks."""
    bits = (masks[:, None] >> np.arange(OUTCOME_LIMIT)) & 1 == 1
    return owner, minimal, bits.sum(axis=1), np.nonzero(bits)[1]


def _concatenate(parts: list[Part]) -> Part:
    if not parts:
        empty = np.empty(0, dtype=np.int64)
        return empty, np.empty(0, dtype=np.bool_), empty, empty
    owner, minimal, counts, members = (
        np.concatenate(arrays) for arrays in zip(*parts, strict=True)
    )
    return owner, minimal, counts, members


def _assemble(possible: BoolArray, flexible: BoolArray, parts: list[Part]) -> Supports:
    """Sort the supports of all parts by marginal."""
    owner, minimal, counts, members = _concatenate(parts)
    order = np.argsort(owner, kind="stable")
    starts = np.cumsum(counts) - counts
    member_ptr = np.concatenate([[0], np.cumsum(counts[order])]).astype(np.int64)
    # entry e of the sorted list is entry e - new start + old start of the unsorted one
    shift = np.repeat(starts[order] - member_ptr[:-1], counts[order])
    support_ptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(flexible)))])
    few = np.bincount(owner[minimal], minlength=len(flexible))
    return Supports(
        possible=possible,
        flexible=flexible,
        support_ptr=support_ptr.astype(np.int64),
        minimal_end=(support_ptr[:-1] + few).astype(np.int64),
        member_ptr=member_ptr,
        members=members[np.arange(member_ptr[-1]) + shift].astype(np.int32),
    )
