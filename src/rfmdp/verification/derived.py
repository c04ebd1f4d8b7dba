"""Models made of the model of a file: with sets that nature keeps to, or unfolded by payments."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from rfmdp.ragged import segment, segment_lengths, segment_sum, starts
from rfmdp.types import FloatArray, IntArray
from rfmdp.verification.fields import Fields, need
from rfmdp.verification.reading import Claim, Model
from rfmdp.verification.sets import BOX, L1, LP, SUM_OFF, ExactSet, Sets, Undecided


def restricted(model: Model, fields: Fields) -> Model:
    """Return the model with boxes of a file in place of some sets, each inside of the set there.

    That bounds on nature's side hold of smaller sets too is in docs/soundness.md. That every box is
    inside is decided in fractions, by its bounds or vertices, or it is `Undecided`.
    """
    places = fields.integers("places", end=len(model.row_marginals))
    need((np.diff(places) > 0).all(), "restriction: places must rise")
    replaced = model.row_marginals[places]
    sizes = model.sets.sizes[replaced]
    ptr = starts(sizes)
    lower, upper = (fields.floats(name, int(ptr[-1])) for name in ("lower", "upper"))
    fits = ((lower >= 0.0) & (lower <= upper) & (upper <= 1.0)).all()
    need(fits, "restriction: must have bounds lower <= upper in [0, 1]")
    low, high = (segment_sum(side, ptr) - 1.0 for side in (lower, upper))
    need((low <= SUM_OFF).all() and (high >= -SUM_OFF).all(), "restriction: has an empty box")
    sets = _joined(model.sets, ptr, lower, upper)
    settled = sets.settled()
    proven: set[tuple[int, bytes, bytes]] = set()
    for k, j in enumerate(replaced.tolist()):
        at = segment(ptr, k)
        box = j, lower[at].tobytes(), upper[at].tobytes()
        if box not in proven:
            inner, outer = ExactSet(settled, len(model.sets.kind) + k), ExactSet(settled, j)
            need(_inside(inner, outer), f"restriction: box {k} is not inside of its set")
            proven.add(box)
    taken: IntArray = model.row_marginals.copy()
    taken[places] = len(model.sets.kind) + np.arange(len(places))
    return replace(model, row_marginals=taken, sets=sets)


def _joined(sets: Sets, ptr: IntArray, lower: FloatArray, upper: FloatArray) -> Sets:
    """Return the sets, and some boxes after them."""
    count = len(ptr) - 1
    nothing = np.full(count, np.nan)
    return Sets(
        np.append(sets.ptr, sets.ptr[-1] + ptr[1:]), np.append(sets.kind, np.full(count, BOX)),
        np.append(sets.nominal, upper), np.append(sets.lower, lower), np.append(sets.upper, upper),
        np.append(sets.radius, nothing), np.append(sets.exponent, nothing),
        np.append(sets.corner_ptr, np.full(count, sets.corner_ptr[-1])), sets.corners,
    )  # fmt: skip


def _inside(inner: ExactSet, outer: ExactSet) -> bool:
    """Return whether a box or a point has members of a set only."""
    if inner.kind == BOX:
        bounds = zip(inner.lower, inner.upper, outer.lower, outer.upper, strict=True)
        if outer.kind == BOX and all(a <= low and high <= b for low, high, a, b in bounds):
            return True
    if not inner.vertices:
        raise Undecided
    return all(_has(outer, vertex) for vertex in inner.vertices)


def _has(uset: ExactSet, point: list[Fraction]) -> bool:
    """Return whether a set has a point; of polytopes only their corners are known."""
    if uset.kind == BOX:
        bounds = zip(uset.lower, point, uset.upper, strict=True)
        return all(low <= x <= high for low, x, high in bounds)
    if uset.kind not in (L1, LP):
        return point in uset.corners
    return uset.reaches([x - c for x, c in zip(point, uset.centre, strict=True)])


def unfolded(claim: Claim) -> Claim:
    """Return the claim that the witness of an until within a budget makes of an unfolded model.

    The file holds inductive bounds of every state and amount paid, and a rule per amount. The model
    is unfolded by these, so that the ordinary proof of an until applies. Its last state has lost.
    """
    model, layers = claim.written, int(claim.objective["budget"]) + 1
    need(set(claim.witness) == set(claim.bounds), "witness: must have the sides that are claimed")
    paid, rest = claim.paid()
    whole = (paid >= 0.0) & (paid == np.floor(paid)) & (rest == 0.0)
    need(whole.all(), "rewards: must be whole numbers >= 0 under a budget")
    states, rows, lost = model.states, model.rows, layers * model.states
    spent = np.arange(layers)[:, None] + np.minimum(paid, layers).astype(np.int64)
    spent = np.repeat(spent, segment_lengths(model.successor_ptr), axis=1)
    moves = np.where(spent < layers, spent * states + model.successors, lost)
    end = np.full(int(model.successor_ptr[1]), lost)  # a row of the model, which stays there
    copies = model.taking(
        np.append(np.tile(np.arange(rows), layers), 0),
        np.append(np.tile(segment_lengths(model.row_ptr), layers), 1),
        np.append(moves, end),
    )
    copies = replace(copies, labels={}, rewards={}, variables={}, formulas={}, provenance=None)
    rule = claim.policy + rows * np.arange(layers)[:, None]
    bounds = {side: np.append(bound, 0.0) for side, bound in claim.witness.items()}
    return replace(
        claim, model=copies, objective={"type": "Until"}, bounds=bounds, witness={},
        states={name: np.append(np.tile(inside, layers), False)
                for name, inside in claim.states.items()},
        policy=np.append(rule.ravel(), layers * rows)[None, :], status="GAP_OPEN",
        value=next(iter(bounds.values()), np.zeros(lost + 1)), texts={},
    )  # fmt: skip
