"""Which outcomes nature can empty: the supports of the members of every marginal set, exactly.

Qualitative questions depend on supports only. For each marginal two families answer them all:
the *minimal* supports, and for every outcome the minimal supports that contain it.

    Interval([0.7, 0.0], [1.0, 0.3])             minimal {0};            all {0}, {0, 1}
    Interval([0.0, 0.0, 0.0], [0.5, 0.5, 0.5])   minimal = all: {0, 1}, {0, 2}, {1, 2}

A set in which no outcome can be emptied is *rigid*: it has one support. Everything is decided by
exact sums of the numbers that are stored, or by theorem; `docs/soundness.md` lists how. Only for Lp
balls whose exponent is no integer there is a doubt, where powers agree to rounding: they are
refused.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import NamedTuple, cast

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.kernels.graph import BITS, enumerate_supports
from rfmdp.ragged import entries, owners, segment, segment_any, segment_lengths, starts
from rfmdp.rounding import UNIT
from rfmdp.sets.boxes import excess, needed
from rfmdp.sets.families import LpBall
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.types import BoolArray, FloatArray, Int32Array, IntArray

SUPPORT_LIMIT = 1 << 17  # per marginal
FREE_LIMIT = 62  # bits of a mask
WHOLE = 2.0  # L1 balls so large are the whole simplex, by definition


@dataclass(frozen=True, slots=True, eq=False)
class Supports:
    """The two families of all marginals; support b has the outcomes of `member_ptr[b : b + 2]`."""

    possible: BoolArray  # (O,) outcomes that some member takes
    flexible: BoolArray  # (M,) marginals with more than one support
    support_ptr: IntArray  # (M + 1,)
    minimal_end: IntArray  # (M,) minimal supports come first
    member_ptr: IntArray  # (number of supports + 1,)
    members: Int32Array  # outcomes of all supports, numbered within their marginal


class _Family(NamedTuple):
    """Some of the supports, without the outcomes that every member of a set takes."""

    owner: IntArray  # (B,) the marginal of each
    minimal: BoolArray  # (B,)
    support: IntArray  # of every other outcome in one of them: the number of this support,
    place: IntArray  # and the outcome's number among those of all marginals


def supports(marginals: Marginals) -> Supports:
    """Return the families of supports of every marginal.

    Raises
    ------
    UnsupportedError
        For a box, L1 or Lp ball that has more than 131072 supports, or of which nature can empty
        more than 62 outcomes one at a time, but neither all of them nor all but any one.
    """
    possible, required = outcome_flags(marginals)
    ptr, kind = marginals.outcome_ptr, marginals.kind
    free = possible & ~required
    flexible = segment_any(free, ptr)
    rigid, none = np.flatnonzero(~flexible), np.empty(0, dtype=np.int64)
    summed = flexible & ((kind == Kind.BOX) | (kind == Kind.L1))
    families = [_Family(rigid, np.ones(len(rigid), dtype=np.bool_), none, none)]
    families += _by_sums(marginals, free, required, np.flatnonzero(summed))
    for j in np.flatnonzero(flexible & ~summed).tolist():
        of_kind = _smooth_ball if kind[j] == Kind.LP else _polytope
        families.append(of_kind(marginals, j, free))
    owner, minimal = (np.concatenate([f[k] for f in families]) for k in (0, 1))
    before = starts([len(family.owner) for family in families])
    support = np.concatenate([f.support + n for f, n in zip(families, before, strict=False)])
    place = np.concatenate([family.place for family in families])
    every = entries(ptr, owner)
    home = owners(starts(marginals.sizes[owner]))[required[every]]
    support = np.concatenate([support, home])
    place = np.concatenate([place, every[required[every]]])
    number = np.argsort(owner, kind="stable")  # mostly in order already
    rank = np.empty(len(owner), dtype=np.int64)
    rank[number] = np.arange(len(owner))
    order = np.argsort(rank[support] * ptr[-1] + place, kind="stable")
    counts = np.bincount(support, minlength=len(owner))
    support_ptr = starts(np.bincount(owner, minlength=len(flexible)))
    few = np.bincount(owner[minimal], minlength=len(flexible))
    return Supports(
        possible=possible,
        flexible=flexible,
        support_ptr=support_ptr,
        minimal_end=support_ptr[:-1] + few,
        member_ptr=starts(counts[number]),
        members=(place - ptr[owner[support]])[order].astype(np.int32),
    )


def outcome_flags(marginals: Marginals) -> tuple[BoolArray, BoolArray]:
    """Return the outcomes (O,) that some member takes, and those that every member takes."""
    sizes, kind = marginals.sizes, marginals.kind
    possible, required = marginals.upper > 0.0, marginals.lower > 0.0
    ball = np.isin(kind, [Kind.L1, Kind.LP])
    if ball.any():
        moves = np.repeat(ball & (marginals.radius > 0.0), sizes)
        seen = marginals.nominal > 0.0
        possible = np.where(np.repeat(ball, sizes), moves | seen, possible)
        radius = np.repeat(marginals.radius, sizes)
        kept = np.where(np.repeat(kind == Kind.L1, sizes), 2.0 * marginals.nominal > radius, seen)
        kept &= np.repeat((kind != Kind.L1) | (marginals.radius < WHOLE), sizes)
        required = np.where(np.repeat(ball, sizes), kept, required)
        for j in np.flatnonzero(kind == Kind.LP).tolist():
            smooth = cast(LpBall, marginals[j])
            lost = [not _can_lose(smooth, [x]) for x in smooth.nominal.tolist()]
            required[segment(marginals.outcome_ptr, j)] = lost
    # boxes with positive lower bounds everywhere are rigid, whatever their upper ones are
    loose = segment_any(possible & ~required, marginals.outcome_ptr) & (kind == Kind.BOX)
    which = np.flatnonzero(loose)
    if len(which):
        place = entries(marginals.outcome_ptr, which)
        ends = starts(sizes[which])
        lower, upper = marginals.lower[place], marginals.upper[place]
        full = np.repeat(excess(lower, ends) >= 0.0, sizes[which])
        scant = np.repeat(excess(upper, ends) <= 0.0, sizes[which])
        possible[place] = np.where(full, lower, upper) > 0.0
        required[place] = possible[place] & (full | scant | (lower > 0.0) | needed(upper, ends))
    return possible, required | np.repeat(sizes == 1, sizes)


def _by_sums(
    marginals: Marginals, free: BoolArray, required: BoolArray, which: IntArray
) -> Iterator[_Family]:
    """Yield the supports of boxes and L1 balls, which are questions of sums.

    A box needs upper bounds of one in all; an L1 ball may lose twice its weights up to the radius.
    """
    ptr, ball = marginals.outcome_ptr, (marginals.kind == Kind.L1)[which]
    every = entries(ptr, which)
    home = owners(starts(marginals.sizes[which]))
    numbers = np.where(ball[home], 2.0 * marginals.nominal[every], marginals.upper[every])
    may = np.flatnonzero(free[every])
    may = may[np.lexsort((every[may], -numbers[may], home[may]))]  # by descending weight
    place, ends = every[may], starts(np.bincount(home[may], minlength=len(which)))
    # a box asks for one less its required bounds, a ball for its free weights less the radius
    radius = np.where(marginals.radius[which] >= WHOLE, 4.0, marginals.radius[which])
    numbers = np.concatenate([numbers, np.where(ball, radius, 1.0)])
    weight, threshold = np.split(digits(numbers, BITS), [len(every)])
    threshold[ball] *= -1
    sign = np.where(ball[home], free[every].astype(np.int64), -required[every].astype(np.int64))
    np.add.at(threshold, home, sign[:, None] * weight)
    weight, bare = weight[may], ~segment_any(required, ptr)[which]
    masks, scratch = np.empty(SUPPORT_LIMIT, dtype=np.int64), np.empty((3, 64), dtype=np.int64)
    large = np.append(np.flatnonzero(segment_lengths(ends) > FREE_LIMIT), len(which)).tolist()
    done = 0
    while done < len(which):
        if done == large[0]:
            outcomes, need = segment(ends, done), _number(threshold[done])
            none = need <= 0 and not bare[done]
            if not none and _number(weight[outcomes][-1]) < need:
                raise _too_many(int(which[done]))
            yield _any_one(int(which[done]), place[outcomes], none)
            large, done = large[1:], done + 1
            continue
        sets, first = slice(done, large[0]), ends[done]
        family_ends = np.zeros((large[0] - done, 2), dtype=np.int64)
        numbers_of = ends[done : large[0] + 1] - first, bare[sets], weight[first:], threshold[sets]
        count = enumerate_supports(*numbers_of, scratch, masks, family_ends)
        if count == 0:
            raise _too_many(int(which[done]))
        home_of = owners(starts(np.diff(family_ends[:count, 1], prepend=0)))
        minimal = np.arange(len(home_of)) < family_ends[home_of, 0]
        codes = masks[: len(home_of)]
        support, bit = np.nonzero(codes[:, None] >> np.arange(int(codes.max()).bit_length()) & 1)
        outcome = place[ends[done + home_of[support]] + bit]
        yield _Family(which[done + home_of], minimal, support, outcome)
        done += count


def _number(row: IntArray) -> int:
    """Return the integer that some `digits` stand for."""
    return sum(digit << BITS * k for k, digit in enumerate(row[::-1].tolist()))


def _any_one(j: int, place: IntArray, none: bool) -> _Family:
    """Return the supports of a set that needs any one of its free outcomes, or even none.

    There is at most one more than these, so that a large set is no problem.
    """
    count, extra = len(place), int(none)
    minimal = np.full(count + extra, not none)
    minimal[:extra] = True
    return _Family(np.full(count + extra, j), minimal, np.arange(count) + extra, place)


def digits(values: FloatArray, base_bits: int) -> IntArray:
    """Return numbers in [0, 2] to a base, exactly: (N, L), the highest digit first.

    The first digit counts 2^-base_bits, the next one that to the square, and so on; as many as
    the numbers need.
    """
    base = 2.0**base_bits
    rest = values.astype(np.float64)
    columns: list[IntArray] = []
    while not columns or rest.any():
        scaled = rest * base
        whole = np.floor(scaled)
        columns.append(whole.astype(np.int64))
        rest = scaled - whole
    return np.stack(columns, axis=1)


def _can_lose(ball: LpBall, lost: Sequence[float]) -> bool:
    """Return whether a ball, 1 < p < inf, has a member with nothing of the weights `lost`.

    The nearest one spreads the lost mass a evenly over the k outcomes that are kept, so that the
    question is whether

        sum lost_i^p + a^p k^(1-p) <= radius^p.

    Logarithms answer it: with M the largest of them, those of both sides are off by less than
    16 u (M + ln k + 4). Nearer ones are decided by powers of fractions if p is an integer.
    """
    kept, p = ball.size - len(lost), ball.exponent
    weights = [x for x in lost if x > 0.0]
    if kept == 0 or not weights or ball.radius == 0.0:
        return kept > 0 and not weights
    spread = math.log(math.fsum(weights)) - (1.0 - 1.0 / p) * math.log(kept)
    logs = [*map(math.log, weights), spread]
    top = max(logs)
    norm = top + math.log(math.fsum(math.exp(p * (x - top)) for x in logs)) / p
    radius = math.log(ball.radius)
    largest = max(map(abs, [*logs, radius])) + math.log(kept) + 4.0
    if abs(norm - radius) > 16.0 * UNIT * largest:
        return norm < radius
    if p.is_integer() and p <= 4096.0:
        power, exact = int(p), [Fraction(x) for x in weights]
        side = sum(x**power for x in exact) * kept ** (power - 1) + sum(exact) ** power
        return bool(side <= Fraction(ball.radius) ** power * kept ** (power - 1))
    raise UnsupportedError(
        f"An Lp ball of radius {ball.radius!r} and exponent {p:g}: floats cannot tell whether "
        "nature can empty outcomes of it. Change the radius by one part in 10^12."
    )


def _smooth_ball(marginals: Marginals, j: int, free: BoolArray) -> _Family:
    """Return the supports of an Lp ball with 1 < p < inf."""
    ball, at = cast(LpBall, marginals[j]), segment(marginals.outcome_ptr, j)
    place = at.start + np.flatnonzero(free[at])
    place = place[np.argsort(-marginals.nominal[place], kind="stable")]
    weight = marginals.nominal[place].tolist()

    @cache
    def feasible(mask: int) -> bool:
        return _can_lose(ball, [x for i, x in enumerate(weight) if not mask >> i & 1])

    def grow(mask: int, i: int) -> Iterator[int]:
        if feasible(mask):
            yield mask
            return
        for k in range(i, len(weight)):
            if not feasible(mask | ((1 << len(weight)) - (1 << k))):
                return
            if not mask >> k & 1:
                yield from grow(mask | 1 << k, k + 1)

    masks = list(itertools.islice(grow(0, 0), SUPPORT_LIMIT + 1))
    few = len(masks)
    for e in range(len(weight)):
        more = (mask for mask in grow(1 << e, 0) if feasible(mask ^ 1 << e))
        masks += itertools.islice(more, SUPPORT_LIMIT + 1 - len(masks))
    if len(masks) > SUPPORT_LIMIT:
        raise _too_many(j)
    return _of_masks(j, masks, few, place)


def _polytope(marginals: Marginals, j: int, free: BoolArray) -> _Family:
    """Return the supports of one polytope: of its vertices, those minimal for some outcome."""
    at = segment(marginals.outcome_ptr, j)
    corners = marginals.corners[segment(marginals.corner_ptr, j)].reshape(-1, at.stop - at.start)
    place = at.start + np.flatnonzero(free[at])
    masks = sorted(
        {sum(1 << int(i) for i in np.flatnonzero(line)) for line in corners[:, free[at]]}
    )
    minimal = _minimal(masks)
    chosen = {m for i in range(len(place)) for m in _minimal([m for m in masks if m >> i & 1])}
    return _of_masks(j, minimal + sorted(chosen - set(minimal)), len(minimal), place)


def _minimal(masks: list[int]) -> list[int]:
    """Return the sets that contain no other set of the list."""
    return [a for a in masks if not any(b != a and b & a == b for b in masks)]


def _of_masks(j: int, masks: list[int], minimal: int, place: IntArray) -> _Family:
    """Return supports of marginal j given as masks of free outcomes, the first ones minimal."""
    lines = np.array([[mask >> i & 1 for i in range(len(place))] for mask in masks])
    support, outcome = np.nonzero(lines)
    first = np.arange(len(masks)) < minimal
    return _Family(np.full(len(masks), j), first, support, place[outcome])


def _too_many(j: int) -> UnsupportedError:
    return UnsupportedError(
        f"Marginal {j}: nature can choose among more than {SUPPORT_LIMIT} supports, or empty more "
        f"than {FREE_LIMIT} outcomes, but neither all of them nor all but any one. Give its "
        "outcomes positive lower bounds (`p_min=` when learning), ask for a number of steps "
        "(F<=k), or split the marginal."
    )
