"""The distributions of commands, each with its identifier.

A command has one marginal per vector of probabilities (or of bounds) that it has in some state.
The outcomes of a marginal are the updates that can happen, so rows of different states share it.
A vector in which one update is certain needs no marginal.

Several choices in one state of a DTMC are taken with the same probability each, as in PRISM: the
row of such a state is one marginal with the outcomes of all choices. That is exact for known
probabilities. With intervals the factors would no longer have independent sets, so an interval DTMC
may have such states only where probabilities are known.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from rfmdp.errors import PrismWarning
from rfmdp.language.ast import Command, Update
from rfmdp.language.source import NOWHERE, Position
from rfmdp.language.states import State
from rfmdp.language.write import write_expression
from rfmdp.ragged import starts
from rfmdp.rounding import SUM_TOLERANCE
from rfmdp.sets.boxes import box_centres
from rfmdp.sets.marginals import Marginals
from rfmdp.types import FloatArray, IntArray

RANDOM_FACTOR = "(random choice)"
SCALED_WITHIN = 1e-5  # how far from 1 a sum may be: PRISM's own limit


@dataclass(frozen=True, slots=True, eq=False)
class NamedBox:
    """A marginal: its bounds and what it is called."""

    lower: FloatArray  # (X,)
    upper: FloatArray  # (X,)
    name: str
    position: Position  # of the command
    outcomes: tuple[str, ...]  # their names


def packed(boxes: Sequence[NamedBox]) -> tuple[Marginals, list[str], list[str]]:
    """Return the marginals of a model, their names and those of their outcomes."""
    pointers = starts([len(box.lower) for box in boxes])
    lower = np.concatenate([np.empty(0), *(box.lower for box in boxes)])
    upper = np.concatenate([np.empty(0), *(box.upper for box in boxes)])
    centre = box_centres(pointers, lower, upper)
    marginals = Marginals.from_boxes(pointers, lower, upper, centre)
    if not (np.array_equal(marginals.lower, lower) and np.array_equal(marginals.upper, upper)):
        marginals = replace(marginals, stated=np.stack([lower, upper]))
    return marginals, _distinct(boxes), [name for box in boxes for name in box.outcomes]


def command_distribution(
    command: Command, module: str, lower: FloatArray, upper: FloatArray, state: State
) -> tuple[IntArray, NamedBox | None]:
    """Return what a command does with a vector of bounds: updates that can happen, its marginal.

    An update that is certain has no marginal.

    lower, upper : (updates,) the same numbers if the command has no intervals
    state : where it is met first
    """
    interval = not np.array_equal(lower, upper)
    for update, low, high in zip(command.updates, lower, upper, strict=True):
        if not (0.0 <= low <= 1.0 + SUM_TOLERANCE and 0.0 <= high <= 1.0 + SUM_TOLERANCE):
            wrong = high if 0.0 <= low <= 1.0 + SUM_TOLERANCE else low
            reason = f"a probability must be in [0, 1], found {wrong:.9g}"
            raise state.error(update.position, reason)
        if low > high:
            reason = f"an interval must not be empty, found [{low:.9g}, {high:.9g}]"
            raise state.error(update.position, reason)
    lower, upper = np.minimum(lower, 1.0), np.minimum(upper, 1.0)
    place, least, most = command.updates[0].position, math.fsum(lower), math.fsum(upper)
    if not interval:
        lower = upper = _checked_sum(place, lower, state)
    elif least > 1.0 + SUM_TOLERANCE:
        reason = f"the lower bounds of a command must sum to at most 1, found {least:.9g}"
        raise state.error(place, reason)
    elif most < 1.0 - SUM_TOLERANCE:
        reason = f"the upper bounds of a command must sum to at least 1, found {most:.9g}"
        raise state.error(place, reason)
    certain = np.flatnonzero(lower >= 1.0)
    possible = np.flatnonzero(upper > 0.0)
    if certain.size or (possible.size == 1 and not interval):
        return (certain[:1] if certain.size else possible), None
    name = f"{module}: [{command.action or ''}] line {command.position.line}"
    outcomes = tuple(update_text(command.updates[k]) for k in possible)
    box = NamedBox(lower[possible], upper[possible], name, command.position, outcomes)
    return possible, box


def _checked_sum(place: Position, vector: FloatArray, state: State) -> FloatArray:
    """Return probabilities that sum to 1, scaled with a warning if PRISM would take them."""
    total = math.fsum(vector)
    if abs(total - 1.0) <= SUM_TOLERANCE:
        return vector
    reason = f"the probabilities of a command must sum to 1, found {total:.9g}"
    if abs(total - 1.0) > SCALED_WITHIN:
        raise state.error(place, reason)
    scaled = state.error(place, f"{reason}; they are scaled to sum to 1")
    warnings.warn(str(scaled), PrismWarning, stacklevel=2)
    return vector / total


def random_choice(choices: Sequence[tuple[str, Sequence[NamedBox]]], state: State) -> NamedBox:
    """Return the marginal of a random choice; it must have no intervals.

    choices : action and marginals of every choice
    state : where it is met first
    """
    vectors, outcomes = [], []
    for action, boxes in choices:
        vector = np.ones(1)
        for box in boxes:
            if not np.array_equal(box.lower, box.upper):
                reason = (
                    "an interval command of an idtmc must be the only choice, found several; "
                    "make guards exclude each other, or declare the model an imdp"
                )
                raise state.error(box.position, reason)
            vector = np.outer(vector, box.lower).ravel()
        vectors.append(vector)
        texts = product(*(box.outcomes for box in boxes))
        outcomes += [f"[{action}] {' & '.join(text)}".rstrip() for text in texts]
    mixed = np.concatenate(vectors) / len(choices)
    name = f"random choice of {len(choices)}"
    return NamedBox(mixed, mixed, name, NOWHERE, tuple(outcomes))


def update_text(update: Update) -> str:
    """Return what an update does, as it is written, without its probability."""
    assignments = [
        f"({a.variable}'={write_expression(a.written or a.value)})" for a in update.assignments
    ]
    return " & ".join(assignments) or "true"


def _distinct(boxes: Sequence[NamedBox]) -> list[str]:
    """Return a name per marginal, numbered where several have one."""
    many = Counter(box.name for box in boxes)
    counts: Counter[str] = Counter()
    names = []
    for box in boxes:
        counts[box.name] += 1
        names.append(f"{box.name} #{counts[box.name]}" if many[box.name] > 1 else box.name)
    return names
