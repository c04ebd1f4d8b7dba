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
from rfmdp.model.frontier import CERTAIN
from rfmdp.ragged import starts
from rfmdp.rounding import SUM_TOLERANCE
from rfmdp.sets.families import box_centres
from rfmdp.sets.marginals import Marginals
from rfmdp.types import FloatArray, IntArray

RANDOM_FACTOR = "(random choice)"
SCALED_WITHIN = 1e-5  # how far from 1 a sum may be: PRISM's own limit


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """What a command does in the states where it has one vector."""

    identifier: int  # of the marginal, or CERTAIN
    updates: IntArray  # those that can happen


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A marginal: its bounds and what it is called."""

    lower: FloatArray
    upper: FloatArray
    name: str
    position: Position  # of the command
    outcomes: tuple[str, ...]


class MarginalRegistry:
    """All marginals of a model in the order in which they were met."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def enter(self, entry: Entry) -> int:
        """Give a marginal its identifier."""
        self.entries.append(entry)
        return len(self.entries) - 1

    def exact(self, identifier: int) -> FloatArray | None:
        """Return the probabilities of a marginal, None if it has intervals."""
        entry = self.entries[identifier]
        return entry.lower if np.array_equal(entry.lower, entry.upper) else None

    def marginals(self, used: IntArray) -> tuple[Marginals, list[str], list[str]]:
        """Pack the marginals that a model uses; return them with their and outcomes' names."""
        entries = [self.entries[j] for j in used]
        pointers = starts([len(entry.lower) for entry in entries])
        lower = _joined([entry.lower for entry in entries])
        upper = _joined([entry.upper for entry in entries])
        centre = box_centres(pointers, lower, upper)
        packed = Marginals.from_boxes(pointers, lower, upper, centre)
        if not (np.array_equal(packed.lower, lower) and np.array_equal(packed.upper, upper)):
            packed = replace(packed, stated=np.stack([lower, upper]))
        return packed, _distinct(entries), [name for entry in entries for name in entry.outcomes]


def command_distribution(
    command: Command,
    module: str,
    lower: FloatArray,
    upper: FloatArray,
    identifiers: MarginalRegistry,
    state: State,
) -> Distribution:
    """Return what a command does with a new vector of bounds, and enter its marginal.

    Parameters
    ----------
    lower, upper : per update; twice the same if the command has no intervals
    state : where it is met first

    Raises
    ------
    PrismError
        If it is no distribution.
    """
    interval = not np.array_equal(lower, upper)
    _check_entries(command, lower, upper, state)
    lower, upper = np.minimum(lower, 1.0), np.minimum(upper, 1.0)
    place = command.updates[0].position
    if interval:
        _check_bounds(place, lower, upper, state)
    else:
        lower = upper = _checked_sum(place, lower, state)
    certain = np.flatnonzero(lower >= 1.0)
    possible = np.flatnonzero(upper > 0.0)
    if certain.size or (possible.size == 1 and not interval):
        return Distribution(CERTAIN, certain[:1] if certain.size else possible)
    entry = Entry(
        lower[possible],
        upper[possible],
        f"{module}: [{command.action or ''}] line {command.position.line}",
        command.position,
        tuple(update_text(command.updates[k]) for k in possible),
    )
    return Distribution(identifiers.enter(entry), possible)


def _check_entries(command: Command, lower: FloatArray, upper: FloatArray, state: State) -> None:
    for update, low, high in zip(command.updates, lower, upper, strict=True):
        for value in (low, high):
            if not 0.0 <= value <= 1.0 + SUM_TOLERANCE:
                reason = f"a probability must be in [0, 1], found {value:.9g}"
                raise state.error(update.position, reason)
        if low > high:
            reason = f"an interval must not be empty, found [{low:.9g}, {high:.9g}]"
            raise state.error(update.position, reason)


def _check_bounds(place: Position, lower: FloatArray, upper: FloatArray, state: State) -> None:
    least, most = math.fsum(lower), math.fsum(upper)
    if least > 1.0 + SUM_TOLERANCE:
        reason = f"the lower bounds of a command must sum to at most 1, found {least:.9g}"
        raise state.error(place, reason)
    if most < 1.0 - SUM_TOLERANCE:
        reason = f"the upper bounds of a command must sum to at least 1, found {most:.9g}"
        raise state.error(place, reason)


def _checked_sum(place: Position, vector: FloatArray, state: State) -> FloatArray:
    """Return probabilities that sum to 1, scaled with a warning if PRISM would take them."""
    found = math.fsum(vector)
    if abs(found - 1.0) <= SUM_TOLERANCE:
        return vector
    reason = f"the probabilities of a command must sum to 1, found {found:.9g}"
    error = state.error(place, reason)
    if abs(found - 1.0) > SCALED_WITHIN:
        raise error
    warnings.warn(f"{error}\nThey are scaled to sum to 1.", PrismWarning, stacklevel=2)
    return vector / found


def random_choice(
    choices: list[tuple[str, tuple[int, ...]]], identifiers: MarginalRegistry, state: State
) -> int:
    """Enter the marginal of a random choice and return its identifier.

    Parameters
    ----------
    choices : action and marginals of every choice
    state : where it is met first

    Raises
    ------
    PrismError
        If one of the choices has intervals.
    """
    vectors, outcomes = [], []
    for action, marginals in choices:
        vector = np.ones(1)
        for j in marginals:
            vector = np.outer(vector, _exact(j, identifiers, state)).ravel()
        vectors.append(vector)
        texts = [identifiers.entries[j].outcomes for j in marginals]
        outcomes += [f"[{action}] {' & '.join(t)}".rstrip() for t in product(*texts)]
    mixed = np.concatenate(vectors) / len(choices)
    name = f"random choice of {len(choices)}"
    return identifiers.enter(Entry(mixed, mixed, name, NOWHERE, tuple(outcomes)))


def _exact(marginal: int, identifiers: MarginalRegistry, state: State) -> FloatArray:
    vector = identifiers.exact(marginal)
    if vector is None:
        reason = (
            "an interval command of an idtmc must be the only choice, found several; "
            "make guards exclude each other, or declare the model an imdp"
        )
        raise state.error(identifiers.entries[marginal].position, reason)
    return vector


def update_text(update: Update) -> str:
    """Return what an update does, as it is written, without its probability."""
    parts = [
        f"({a.variable}'={write_expression(a.written or a.value)})" for a in update.assignments
    ]
    return " & ".join(parts) or "true"


def _distinct(entries: Sequence[Entry]) -> list[str]:
    """Return a name per marginal: with the column if two commands share a line, then numbered."""
    places: dict[str, set[int]] = {}
    for entry in entries:
        places.setdefault(entry.name, set()).add(entry.position.column)
    full = [
        e.name + (f", column {e.position.column}" if len(places[e.name]) > 1 else "")
        for e in entries
    ]
    many = {name for name, count in Counter(full).items() if count > 1}
    seen: dict[str, int] = {}
    names = []
    for name in full:
        seen[name] = seen.get(name, 0) + 1
        names.append(f"{name} #{seen[name]}" if name in many else name)
    return names


def _joined(parts: Sequence[FloatArray]) -> FloatArray:
    return np.concatenate(parts) if parts else np.empty(0)
