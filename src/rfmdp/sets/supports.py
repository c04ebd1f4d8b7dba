"""Which outcomes nature can empty: the supports of the members of every marginal set, exactly.

Qualitative questions depend on supports only. For each marginal two families answer them all:
the *minimal* supports, and for every outcome the minimal supports that contain it.

    Interval([0.7, 0.0], [1.0, 0.3])             minimal {0};            all {0}, {0, 1}
    Interval([0.0, 0.0, 0.0], [0.5, 0.5, 0.5])   minimal = all: {0, 1}, {0, 2}, {1, 2}

A set in which no outcome can be emptied is *rigid*: it has one support. Everything is decided by
exact sums of the numbers that are stored, or by theorem; `docs/soundness.md` lists how. Only for Lp
balls whose exponent is no integer there is a doubt, where powers agree to rounding: that raises
`DoubtfulSupport`, and `decided` has balls a little larger or smaller, of which floats can tell.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.kernels.supports import BITS, enumerate_supports
from rfmdp.ragged import entries, owners, segment, segment_any, segment_lengths, starts
from rfmdp.rounding import UNIT
from rfmdp.sets.boxes import excess, needed
from rfmdp.sets.families import LpBall, bounds
from rfmdp.sets.marginals import Kind, Marginals
from rfmdp.types import BoolArray, FloatArray, Int32Array, IntArray

SUPPORT_LIMIT = 1 << 17  # per marginal
FREE_LIMIT = 62  # bits of a mask
FIRST_MOVE = 2.0**-42  # of a radius, where floats cannot tell; doubled until they can


class DoubtfulSupport(UnsupportedError):
    """Floats cannot tell which outcomes of an Lp ball nature can empty."""


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
    """Some of the supports."""

    owner: IntArray  # (B,) the marginal of each
    minimal: BoolArray  # (B,)
    counts: IntArray  # (B,) its number of outcomes
    members: IntArray  # (sum of counts,) these outcomes


def supports(marginals: Marginals) -> Supports:
    """Return the families of supports of every marginal.

    Raises
    ------
    UnsupportedError
        For a box, L1 or Lp ball that has more than 131072 supports, or of which nature can empty
        more than 62 outcomes one at a time, but neither all of them nor all but any one.

    Examples
    --------
    >>> from rfmdp.sets.families import Interval
    >>> families = supports(Marginals.from_sets([Interval([0.7, 0.0], [1.0, 0.3])]))
    >>> families.member_ptr.tolist(), families.members.tolist()  # {0} and {0, 1}
    ([0, 1, 3], [0, 0, 1])
    """
    possible, required = outcome_flags(marginals)
    ptr, kind = marginals.outcome_ptr, marginals.kind
    flexible = segment_any(possible & ~required, ptr)

    def chosen(condition: BoolArray) -> IntArray:
        return np.flatnonzero(flexible & condition)

    simplex = _whole_simplex(marginals)
    summed = (kind == Kind.BOX) | ((kind == Kind.L1) & ~simplex)
    free = possible & ~required
    families = [
        _any_one(ptr, free, possible, np.flatnonzero(~flexible), True),
        _any_one(ptr, free, required, chosen(simplex), False),
        *_by_sums(marginals, free, required, chosen(summed)),
    ]
    families += [_smooth_ball(marginals, required, int(j)) for j in chosen(kind == Kind.LP)]
    families += [_polytope(marginals, int(j)) for j in chosen(kind == Kind.POLYTOPE)]
    return _assemble(possible, flexible, families)


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
        kept &= np.repeat(~_whole_simplex(marginals), sizes)
        required = np.where(np.repeat(ball, sizes), kept, required)
        for j in np.flatnonzero(kind == Kind.LP):
            smooth = _ball(marginals, j)
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


def _whole_simplex(marginals: Marginals) -> BoolArray:
    """Return the balls (M,) that are so large that they are the whole simplex, by definition."""
    whole: BoolArray = (marginals.kind == Kind.L1) & (marginals.radius >= 2.0)
    return whole


def _any_one(
    ptr: IntArray, free: BoolArray, required: BoolArray, which: IntArray, none: bool
) -> _Family:
    """Return the supports of sets that need any one of their free outcomes, or even none.

    The free ones are taken one at a time; all required ones are in every support.
    """
    place = entries(ptr, which)
    place = place[free[place]]
    owner = owners(ptr)[place]
    bare = which if none else which[:0]
    return _with_required(
        ptr,
        required,
        np.concatenate([bare, owner]),
        np.repeat([True, not none], [len(bare), len(owner)]),
        np.arange(len(owner)) + len(bare),
        place,
    )


def _with_required(
    ptr: IntArray,
    required: BoolArray,
    owner: IntArray,
    minimal: BoolArray,
    support: IntArray,
    place: IntArray,
) -> _Family:
    """Return supports with the required outcomes of their sets and some others.

    owner, minimal : (B,) of every support
    support, place : of every other outcome, the number of its support and where it is among all
    """
    every = entries(ptr, owner)
    home = np.repeat(np.arange(len(owner)), segment_lengths(ptr)[owner])[required[every]]
    support = np.concatenate([support, home])
    place = np.concatenate([place, every[required[every]]])
    order = np.argsort(support * ptr[-1] + place, kind="stable")  # mostly in order already
    counts = np.bincount(support, minlength=len(owner))
    return _Family(owner, minimal, counts, (place - ptr[owner[support]])[order])


def _by_sums(
    marginals: Marginals, free: BoolArray, required: BoolArray, which: IntArray
) -> Iterator[_Family]:
    """Yield the supports of boxes and L1 balls, which are questions of sums.

    A box needs upper bounds of one in all; an L1 ball may lose twice its weights up to the radius.
    """
    ball = marginals.kind == Kind.L1
    numbers = np.where(np.repeat(ball, marginals.sizes), 2.0 * marginals.nominal, marginals.upper)
    least = np.where(numbers > 0.0, numbers, 1.0)
    exponent = np.frexp(np.minimum.reduceat(least, marginals.outcome_ptr[:-1]))[1][which]
    exponent = np.minimum(exponent, np.frexp(np.where(ball, marginals.radius, 1.0))[1][which])
    # sets whose numbers have equally many digits are enumerated together
    length = (53 - exponent + BITS - 1) // BITS
    large = np.add.reduceat(free, marginals.outcome_ptr[:-1], dtype=np.int64)[which] > FREE_LIMIT
    for i in np.flatnonzero(large):
        family = _none_or_any_one(marginals, numbers, free, required, int(which[i]))
        if family is not None:
            yield family
            length[i] = 0
    for digit_count in sorted(set(length[length > 0].tolist())):
        group = which[length == digit_count]
        yield from _enumerate(marginals, numbers, free, required, group)


def _none_or_any_one(
    marginals: Marginals, numbers: FloatArray, free: BoolArray, required: BoolArray, j: int
) -> _Family | None:
    """Return the supports of set j if it needs none of its free outcomes, or any one; else None.

    There is at most one more than free outcomes, so that a large set is no problem.
    """
    outcomes = segment(marginals.outcome_ptr, j)
    weights = numbers[outcomes]
    may = np.flatnonzero(free[outcomes])
    must = required[outcomes]
    if marginals.kind[j] == Kind.L1:
        threshold = sum(map(Fraction, weights[may].tolist())) - Fraction(float(marginals.radius[j]))
    else:
        threshold = 1 - sum(map(Fraction, weights[must].tolist()), Fraction(0))
    none = threshold <= 0 and bool(must.any())
    if not none and Fraction(float(weights[may].min())) < threshold:
        return None
    return _any_one(marginals.outcome_ptr, free, required, np.array([j]), none)


def _enumerate(
    marginals: Marginals, numbers: FloatArray, free: BoolArray, required: BoolArray, which: IntArray
) -> Iterator[_Family]:
    """Yield the supports of some boxes and L1 balls, see `_by_sums`."""
    ptr = marginals.outcome_ptr
    every = entries(ptr, which)
    home = np.repeat(np.arange(len(which)), segment_lengths(ptr)[which])
    may = np.flatnonzero(free[every])
    may = may[np.lexsort((every[may], -numbers[every[may]], home[may]))]  # by descending weight
    place = every[may]
    ends = starts(np.bincount(home[may], minlength=len(which)))
    large = np.flatnonzero(segment_lengths(ends) > FREE_LIMIT)
    if len(large):
        raise UnsupportedError(
            f"Marginal {which[large[0]]}: nature can empty {segment_lengths(ends)[large[0]]} of "
            f"its outcomes, but neither all of them nor all but any one; that is analysed for at "
            f"most {FREE_LIMIT}. Give them positive lower bounds (`p_min=` when learning), ask for "
            "a number of steps (F<=k), or split the marginal."
        )
    # a box asks for one less its required bounds, a ball for its free weights less the radius
    ball = marginals.kind[which] == Kind.L1
    limit = np.where(ball, marginals.radius[which], 1.0)
    weight, threshold = np.split(
        digits(np.concatenate([numbers[every], limit]), BITS), [len(every)]
    )
    threshold[ball] *= -1
    sign = np.where(ball[home], free[every].astype(np.int64), -required[every].astype(np.int64))
    np.add.at(threshold, home, sign[:, None] * weight)
    weight = weight[may]
    bare = ~segment_any(required, ptr)[which]
    masks = np.empty(SUPPORT_LIMIT, dtype=np.int64)
    scratch = np.empty((3, 64), dtype=np.int64)
    done = 0
    while done < len(which):
        family_ends = np.zeros((len(which) - done, 2), dtype=np.int64)
        first = ends[done]
        arrays = (ends[done:] - first, bare[done:], weight[first:], threshold[done:])
        count = enumerate_supports(*arrays, scratch, masks, family_ends)
        if count == 0:
            raise UnsupportedError(_too_many(int(which[done])))
        total = np.diff(family_ends[:count, 1], prepend=0)
        home_of = np.repeat(np.arange(count), total)
        minimal = np.arange(len(home_of)) < family_ends[home_of, 0]
        codes = masks[: len(home_of)]
        support, bit = np.nonzero(codes[:, None] >> np.arange(int(codes.max()).bit_length()) & 1)
        outcome = place[ends[done + home_of[support]] + bit]
        yield _with_required(ptr, required, which[done + home_of], minimal, support, outcome)
        done += count


def digits(values: FloatArray, base_bits: int) -> IntArray:
    """Return numbers in [0, 2] to a base, exactly: (N, L), the highest digit first.

    The first digit counts 2^-base_bits, the next one that to the square, and so on; as many as
    the numbers need.

    Examples
    --------
    >>> digits(np.array([0.5, 1.0, 2.0**-33]), 32).tolist()
    [[2147483648, 0], [4294967296, 0], [0, 2147483648]]
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


def decided(marginals: Marginals, side: float) -> Marginals:
    """Return sets without doubtful supports: such balls made larger (side +1) or smaller (-1)."""
    lower, upper, radius = (
        np.array(a) for a in (marginals.lower, marginals.upper, marginals.radius)
    )
    for j in np.flatnonzero(marginals.kind == Kind.LP):
        ball, move = _ball(marginals, j), side * FIRST_MOVE
        while _is_doubtful(ball):
            ball = replace(ball, radius=float(radius[j]) * (1.0 + move))
            move *= 2.0
        if ball.radius != radius[j]:
            radius[j] = ball.radius
            outcomes = segment(marginals.outcome_ptr, j)
            lower[outcomes], upper[outcomes] = bounds(ball)
    return replace(marginals, lower=lower, upper=upper, radius=radius)


def _is_doubtful(ball: LpBall) -> bool:
    try:
        supports(Marginals.from_sets([ball]))
    except DoubtfulSupport:
        return True
    return False


def _can_lose(ball: LpBall, lost: Sequence[float]) -> bool:
    """Return whether a ball, 1 < p < inf, has a member with nothing of the weights `lost`.

    The nearest one spreads the lost mass a evenly over the k outcomes that are kept, so that the
    question is whether

        sum lost_i^p + a^p k^(1-p) <= radius^p.

    Logarithms answer it: with M the largest of them, those of both sides are off by less than
    16 u (M + ln k + 4). Nearer ones are decided by powers of fractions if p is an integer.

    Raises
    ------
    DoubtfulSupport
        If p is none.
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
    if p.is_integer() and p <= 64.0:
        power, exact = int(p), [Fraction(x) for x in weights]
        side = sum(x**power for x in exact) * kept ** (power - 1) + sum(exact) ** power
        return bool(side <= Fraction(ball.radius) ** power * kept ** (power - 1))
    raise DoubtfulSupport(
        f"An Lp ball of radius {ball.radius!r} and exponent {p:g}: floats cannot tell whether "
        "nature can empty outcomes of it. Change the radius by one part in 10^12."
    )


def _ball(marginals: Marginals, j: int | np.integer) -> LpBall:
    """Return an Lp ball with 1 < p < inf as it is stored."""
    nominal = marginals.nominal[segment(marginals.outcome_ptr, j)]
    return LpBall(nominal, float(marginals.radius[j]), float(marginals.exponent[j]))


def _smooth_ball(marginals: Marginals, required: BoolArray, j: int) -> _Family:
    """Return the supports of an Lp ball with 1 < p < inf."""
    ball, fixed = _ball(marginals, j), required[segment(marginals.outcome_ptr, j)]
    free = np.flatnonzero(~fixed)
    free = free[np.argsort(-ball.nominal[free], kind="stable")]
    weight = ball.nominal[free].tolist()

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
        raise UnsupportedError(_too_many(j))
    lines = np.repeat(fixed[None, :], len(masks), axis=0)
    for line, mask in zip(lines, masks, strict=True):
        line[free] = [bool(mask >> i & 1) for i in range(len(free))]
    return _of_lines(j, lines, few)


def _polytope(marginals: Marginals, j: int) -> _Family:
    """Return the supports of one polytope: of its vertices, those minimal for some outcome."""
    corners = marginals.corners[segment(marginals.corner_ptr, j)]
    return _families(j, corners.reshape(-1, int(marginals.sizes[j])) > 0.0)


def _families(j: int, lines: BoolArray) -> _Family:
    """Return the minimal supports of a list (B, X), and those minimal for some outcome."""
    masks = {int.from_bytes(np.packbits(line, bitorder="little").tobytes(), "little"): line
             for line in lines}  # fmt: skip
    minimal = _minimal(sorted(masks))
    chosen = set(minimal)
    for outcome in range(lines.shape[1]):
        chosen.update(_minimal([mask for mask in sorted(masks) if mask >> outcome & 1]))
    ordered = minimal + sorted(chosen - set(minimal))
    return _of_lines(j, np.array([masks[mask] for mask in ordered]), len(minimal))


def _minimal(masks: list[int]) -> list[int]:
    """Return the sets that contain no other set of the list."""
    return [a for a in masks if not any(b != a and b & a == b for b in masks)]


def _of_lines(j: int, lines: BoolArray, minimal: int) -> _Family:
    """Return supports of marginal j given as booleans (B, X), the first ones minimal."""
    first = np.arange(len(lines)) < minimal
    return _Family(np.full(len(lines), j), first, lines.sum(axis=1), np.nonzero(lines)[1])


def _too_many(j: int) -> str:
    return (
        f"Marginal {j}: nature can choose among more than {SUPPORT_LIMIT} supports. "
        "Give its outcomes positive lower bounds (`p_min=` when learning), ask for a number of "
        "steps (F<=k), or split the marginal."
    )


def _assemble(possible: BoolArray, flexible: BoolArray, families: list[_Family]) -> Supports:
    """Sort the supports of all parts by marginal."""
    owner, minimal, counts, members = map(np.concatenate, zip(*families, strict=True))
    order = np.argsort(owner, kind="stable")
    support_ptr = starts(np.bincount(owner, minlength=len(flexible)))
    few = np.bincount(owner[minimal], minlength=len(flexible))
    return Supports(
        possible=possible,
        flexible=flexible,
        support_ptr=support_ptr,
        minimal_end=support_ptr[:-1] + few,
        member_ptr=starts(counts[order]),
        members=members[entries(starts(counts), order)].astype(np.int32),
    )
