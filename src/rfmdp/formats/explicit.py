"""What the explicit formats share: transitions as columns, and the model they make."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn, Protocol

import numpy as np

from rfmdp.errors import ModelError, PrismWarning
from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.model.flat import FlatBoxes, flat_model, joint_outcomes
from rfmdp.model.flatten import flatten, flatten_note, is_known
from rfmdp.model.frontier import Deadlock
from rfmdp.ragged import segment_lengths, segment_sum, starts
from rfmdp.rounding import SUM_TOLERANCE
from rfmdp.types import BoolArray, FloatArray, Int32Array, IntArray
from rfmdp.writing import replacing

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
LINES = 1 << 16  # lines that are put together before they are written


class ExplicitType(Enum):
    """Whether a file has choices; the interval types follow from the probabilities."""

    DTMC = "dtmc"
    MDP = "mdp"


@dataclass(frozen=True, slots=True)
class Written:
    """What a writer did: the files, and what of the model they cannot say (may be empty)."""

    paths: tuple[Path, ...]
    note: str


class Origin(Protocol):
    """The file that rows come from, and how it complains about one of them."""

    @property
    def path(self) -> Path:
        """The file."""

    def fail(self, line: int, message: str) -> NoReturn:
        """Raise a FileError that names the place."""


@dataclass(frozen=True, slots=True, eq=False)
class FileRows:
    """The rows of a file, in order of their states, successors row after row."""

    text: Origin
    row_states: IntArray  # (R,) ascending
    row_lines: IntArray  # (R,) where a row starts
    row_actions: IntArray  # (R,) index into `actions`
    actions: tuple[str, ...]
    successor_ptr: IntArray  # (R + 1,)
    successors: IntArray  # (K,)
    lower: FloatArray  # (K,)
    upper: FloatArray  # (K,)

    @property
    def sizes(self) -> IntArray:
        """Number of successors of every row."""
        return segment_lengths(self.successor_ptr)

    def check(self) -> None:
        """Raise a FileError at the first row whose probabilities do not fit together."""
        low = segment_sum(self.lower, self.successor_ptr)
        high = segment_sum(self.upper, self.successor_ptr)
        bad = np.flatnonzero((low > 1.0 + SUM_TOLERANCE) | (high < 1.0 - SUM_TOLERANCE))
        if not bad.size:
            return
        row = int(bad[0])
        where = f"of state {self.row_states[row]}"
        if low[row] == high[row]:
            message = (
                f"The probabilities {where} sum to {low[row]:.12g} in the row that starts here, "
                "must sum to 1; write them with more digits (17 lose nothing)."
            )
        else:
            message = (
                f"The intervals {where} admit no distribution in the row that starts here: lower "
                f"bounds sum to {low[row]:.12g}, upper bounds to {high[row]:.12g}, 1 must lie "
                "between."
            )
        self.text.fail(int(self.row_lines[row]), message)

    def model(
        self,
        states: int,
        deadlock: Deadlock,
        *,
        initial: IntArray,
        labels: Mapping[str, BoolArray],
        rewards: Mapping[str, Rewards] = MappingProxyType({}),
        variables: Sequence[Variable] = (),
        valuations: Int32Array | None = None,
    ) -> FactoredMDP:
        """Return the model of these rows, and of what else is in the file.

        A state without a row gets a self-loop, which pays nothing, and the label "deadlock".
        """
        self.check()
        stuck = np.bincount(self.row_states, minlength=states) == 0
        rows = self
        if stuck.any():
            alone = np.flatnonzero(stuck)
            rows = self._with_loops(alone, deadlock)
            at = np.searchsorted(self.row_states, alone)
            labels = {**labels, "deadlock": stuck | labels.get("deadlock", stuck)}
            rewards = {k: Rewards(r.state, np.insert(r.row, at, 0.0)) for k, r in rewards.items()}
        return flat_model(
            starts(np.bincount(rows.row_states, minlength=states)),
            rows.successors.astype(np.int32),
            *FlatBoxes.centred(rows.successor_ptr, rows.lower, rows.upper).shared(),
            initial=initial,
            row_actions=rows.row_actions,
            actions=rows.actions,
            labels=labels,
            rewards=rewards,
            variables=variables,
            valuations=valuations,
        )

    def _with_loops(self, alone: IntArray, deadlock: Deadlock) -> FileRows:
        """Return the rows with a self-loop for some states, unless that is an error."""
        if deadlock is Deadlock.ERROR:
            raise ModelError(
                f"{self.text.path}: {len(alone)} states have no transition, the first is "
                f"{alone[0]}; give them one, or read with deadlock=Deadlock.LOOP."
            )
        warnings.warn(
            f"{self.text.path}: {len(alone)} state(s) have no transition, the first is {alone[0]}; "
            'each gets a self-loop and the label "deadlock".',
            PrismWarning,
            stacklevel=4,
        )
        at = np.searchsorted(self.row_states, alone)
        places = self.successor_ptr[at]
        actions = self.actions if "" in self.actions else (*self.actions, "")
        return replace(
            self,
            row_states=np.insert(self.row_states, at, alone),
            row_lines=np.insert(self.row_lines, at, 1),
            row_actions=np.insert(self.row_actions, at, actions.index("")),
            actions=actions,
            successor_ptr=starts(np.insert(self.sizes, at, 1)),
            successors=np.insert(self.successors, places, alone),
            lower=np.insert(self.lower, places, 1.0),
            upper=np.insert(self.upper, places, 1.0),
        )


@dataclass(frozen=True, slots=True, eq=False)
class FlatModel:
    """A flat model, the type it is written as, and what flattening changed."""

    model: FactoredMDP
    type: ExplicitType
    note: str

    @staticmethod
    def of(model: FactoredMDP, type: ExplicitType | None) -> FlatModel:
        """Flatten a model for writing."""
        flat = flatten(model)
        single = bool(np.all(segment_lengths(flat.row_ptr) == 1))
        if type is ExplicitType.DTMC and not single:
            raise ModelError("A dtmc must have one choice per state; write this model as an mdp.")
        if type is None:
            type = ExplicitType.DTMC if single else ExplicitType.MDP
        note = " ".join(filter(None, [flatten_note(model), _zero_note(flat)]))
        return FlatModel(flat, type, note)

    @property
    def known(self) -> bool:
        """Whether all probabilities are known, so that no interval is written."""
        return is_known(self.model)

    def probabilities(self, separator: str) -> list[str]:
        """Return the texts of all outcomes and of a certain move, see `joint_outcomes`.

        Intervals are written `[l<separator>u]`.
        """
        sets = self.model.marginals
        if self.known:
            return [number(x) for x in [*sets.nominal.tolist(), 1.0]]
        pairs = zip([*sets.lower.tolist(), 1.0], [*sets.upper.tolist(), 1.0], strict=True)
        return [f"[{number(low)}{separator}{number(high)}]" for low, high in pairs]

    def transitions(self) -> Iterator[tuple[list[int], list[int], list[int]]]:
        """Return rows, successors and outcomes, some transitions at a time."""
        model = self.model
        outcome = joint_outcomes(self.model)
        for begin in range(0, model.transitions, LINES):
            at = np.arange(begin, min(begin + LINES, model.transitions))
            rows = np.searchsorted(model.successor_ptr, at, side="right") - 1
            yield rows.tolist(), model.successors[at].tolist(), outcome[at].tolist()

    def actions(self, unlabelled: str, before: str = "") -> list[str]:
        """Return the text of every action; names that the formats cannot hold are refused."""
        for name in self.model.actions:
            if name and (re.search(r"\s", name) or '"' in name):
                raise ModelError(
                    f"Action {name!r} cannot be written: names must have no blanks or quotes; "
                    "rename it."
                )
        return [before + name if name else unlabelled for name in self.model.actions]


def state_variables(
    columns: Iterable[tuple[str, IntArray, bool]],
) -> tuple[tuple[Variable, ...], Int32Array | None]:
    """Return variables with the ranges that occur, and the valuations of states.

    None if there are no variables, or if a value needs more than 32 bits.

    columns : name, values (S,) and whether they are booleans
    """
    variables, valuations = [], []
    for name, values, boolean in columns:
        low, high = (0, 1) if boolean else (int(values.min()), int(values.max()))
        if low <= -(1 << 31) or high >= 1 << 31:
            return (), None
        variables.append(Variable(name, low, high, boolean))
        valuations.append(values.astype(np.int32))
    return tuple(variables), np.stack(valuations, axis=1) if valuations else None


def number(x: float) -> str:
    """Return the shortest text that reads back as x; integers without a point."""
    return repr(x).removesuffix(".0")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a file, many at a time; it is complete or untouched."""
    rest = iter(lines)
    with replacing(path) as part, part.open("x", encoding="utf-8", newline="\n") as file:
        while block := list(islice(rest, LINES)):
            file.write("\n".join(block) + "\n")


def _zero_note(flat: FactoredMDP) -> str:
    """Return a warning about what PRISM and Storm refuse."""
    zeros = int(np.count_nonzero(flat.marginals.lower == 0.0))
    if is_known(flat) or not zeros:
        return ""
    return f"{zeros} intervals have the lower bound 0, which PRISM and Storm refuse."
