"""Observed transitions: found among the states and rows of a model, and counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.packing import Packing
from rfmdp.ragged import entries, find, owners, segment_all, segment_lengths, starts
from rfmdp.types import AnyArray, BoolArray, IntArray

DENSE = 1 << 25  # entries of a table; larger ones are searched


def numbering(keys: IntArray, size: int) -> Callable[[AnyArray], AnyArray]:
    """Return what finds the numbers (N,) of keys, -1 for one that is missing.

    The keys are different and below `size`; they are looked up in a table, or searched.
    """
    if size <= DENSE:
        table = np.full(size, -1, dtype=np.int32)
        table[keys] = np.arange(len(keys), dtype=np.int32)
        return lambda wanted: table[wanted]
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]

    def search(wanted: AnyArray) -> AnyArray:
        at = find(ordered, wanted)
        return np.where(at < 0, -1, order[at])

    return search


class SuccessorPairs:
    """The different (row, successor) pairs of a model, numbered."""

    def __init__(self, model: FactoredMDP) -> None:
        self._states = model.states
        row = owners(model.successor_ptr)
        keys = np.sort(row * model.states + model.successors)  # np.unique takes ten times as long
        keys = keys[np.append(True, keys[1:] != keys[:-1])]
        self.rows: IntArray = keys // model.states
        self.successors: IntArray = keys % model.states
        self._numbers = numbering(keys, model.rows * model.states)

    def find(self, rows: AnyArray, successors: AnyArray) -> AnyArray:
        """Return the numbers of pairs (N,), -1 where the row does not lead to the successor."""
        return self._numbers(rows * np.int64(self._states) + successors)


class Index:
    """The states and rows of a model, by what is observed."""

    def __init__(self, model: FactoredMDP) -> None:
        if not model.variables:
            raise ModelError("Structure: must have variables, by which its states are observed.")
        self.packing = Packing(model.variables)
        self.packing.require_one_word()
        codes = self.packing.pack(model.valuations)[:, 0]
        self.coded = numbering(codes, self.packing.domain)  # states by their words
        rows, at = np.arange(model.rows), (model.row_states, model.row_actions)
        # (S, actions) the row of every state and action; -1 where it is not enabled
        self.rows = np.full((model.states, len(model.actions)), -1, dtype=np.int32)
        self.rows[at] = rows
        other = self.rows[at] != rows
        if other.any():
            row = model.row_name(int(np.argmax(other)))
            raise ModelError(
                f"Structure: {row} must be one choice, found several of that name; give them "
                "different names, so that an observed action says which it is."
            )

    def state(self, values: Sequence[int]) -> int:
        """Return the state with these values of the variables; -1 if there is none."""
        packing, line = self.packing, np.array([values], dtype=np.int64)
        inside = ((line >= packing.low) & (line < packing.low + packing.radix)).all()
        return int(self.coded(packing.pack(line)[:, 0])[0]) if inside else -1


def absorbing(model: FactoredMDP) -> BoolArray:
    """Return the states that no row leaves, (S,)."""
    stays = model.successors == model.row_states[owners(model.successor_ptr)]
    return segment_all(segment_all(stays, model.successor_ptr), model.row_ptr)


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Counts per outcome, identifier and row; the arrays are added to in place."""

    counts: IntArray  # (O,)
    totals: IntArray  # (M,) samples of every identifier
    visits: IntArray  # (R,) times a row was taken; empty if nobody asks
    starts: IntArray  # (I,) episodes that began in each initial state; empty if nobody asks

    @staticmethod
    def empty(model: FactoredMDP, visits: bool = False, starts: bool = False) -> Tally:
        """Return zeros for the identifiers of a learning model."""
        outcomes = len(model.marginals.nominal)
        identifiers = len(model.marginals)
        begin = len(model.initial) if starts else 0
        sizes = (outcomes, identifiers, model.rows if visits else 0, begin)
        return Tally(*(np.zeros(size, dtype=np.int64) for size in sizes))

    def add(
        self, model: FactoredMDP, rows: IntArray, successors: AnyArray, times: int | IntArray = 1
    ) -> None:
        """Count the outcomes of rows (N,) that were taken, with the states that followed.

        model : the learning model, whose marginals are counted
        times : how often each of them was seen, (N,)

        ModelError: a successor is none of its row's, so guarantees are void.
        """
        pair, slots, outcomes, _ = shown_outcomes(model, rows, successors)
        each = np.broadcast_to(times, len(rows))
        identifiers = model.row_marginals[slots]
        np.add.at(self.counts, model.marginals.outcome_ptr[identifiers] + outcomes, each[pair])
        np.add.at(self.totals, identifiers, each[pair])
        if len(self.visits):
            np.add.at(self.visits, rows, each)

    @property
    def kernel(self) -> tuple[IntArray, IntArray, IntArray]:
        """All but the starts, in the order of the kernels."""
        return self.counts, self.totals, self.visits

    @property
    def arrays(self) -> dict[str, AnyArray]:
        """What a saved run keeps."""
        return {name: getattr(self, name) for name in self.__slots__}


def shown_outcomes(
    model: FactoredMDP, rows: IntArray, successors: AnyArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return the outcomes that N pairs of a row and its successor show, one per marginal, (K,).

    Of each: of which pair, in which slot (index into `row_marginals`), which one, and how many
    slots of the row are behind it. In a learning model a successor tells all of them.
    """
    used, owner = np.unique(rows, return_inverse=True)
    at = entries(model.successor_ptr, used)
    ptr = starts(segment_lengths(model.successor_ptr)[used])
    keys = owners(ptr) * model.states + model.successors[at]
    different, first = np.unique(keys, return_index=True)
    at = find(different, owner * model.states + successors)
    if np.any(at < 0):
        fault = int(np.argmax(at < 0))
        raise ModelError(
            f"Transitions: {model.row_name(int(rows[fault]))} must lead to one of its declared "
            f"successors, found {model.state_name(int(successors[fault]))}. Guarantees from this "
            "data are void: declare the outcome."
        )
    rest = first[at] - ptr[owner]
    begin, end = model.marginal_ptr[rows], model.marginal_ptr[rows + 1]
    parts = [(np.empty(0, dtype=np.int64),) * 4]
    for back in range(int((end - begin).max(initial=0))):
        has = np.flatnonzero(begin < end - back)
        slot = end[has] - 1 - back
        size = model.marginals.sizes[model.row_marginals[slot]]
        parts.append((has, slot, rest[has] % size, np.full(len(has), back)))
        rest[has] //= size
    pair, slots, outcomes, behind = (np.concatenate(part) for part in zip(*parts, strict=True))
    return pair, slots, outcomes, behind
