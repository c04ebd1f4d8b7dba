"""Finds states by values of variables, rows by states and actions, and pairs; many at once."""

from __future__ import annotations

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.packing import Packing
from rfmdp.ragged import find, owners, segment_all
from rfmdp.types import AnyArray, BoolArray, IntArray

DENSE = 1 << 25  # entries of a table; larger ones are searched


class KeyNumbers:
    """Finds the numbers of different keys, all below `size`: by a table, or by search."""

    def __init__(self, keys: IntArray, size: int) -> None:
        self._table: AnyArray | None = None
        if size <= DENSE:
            self._table = np.full(size, -1, dtype=np.int32)
            self._table[keys] = np.arange(len(keys), dtype=np.int32)
        else:
            self._order = np.argsort(keys, kind="stable")
            self._keys = keys[self._order]

    def find(self, keys: AnyArray) -> AnyArray:
        """Return the numbers of keys (N,), -1 for a key that is missing."""
        if self._table is not None:
            return np.asarray(self._table[keys])
        at = find(self._keys, keys)
        return np.where(at < 0, -1, self._order[at])


class SuccessorPairs:
    """The different (row, successor) pairs of a model, numbered."""

    def __init__(self, model: FactoredMDP) -> None:
        self._states = model.states
        row = owners(model.successor_ptr)
        keys = np.sort(row * model.states + model.successors)  # np.unique takes ten times as long
        self._keys = keys[np.append(True, keys[1:] != keys[:-1])]
        self.rows: IntArray = self._keys // model.states
        self.successors: IntArray = self._keys % model.states
        self._numbers = KeyNumbers(self._keys, model.rows * model.states)

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, rows: AnyArray, successors: AnyArray) -> AnyArray:
        """Return the numbers of pairs (N,), -1 where the row does not lead to the successor."""
        return self._numbers.find(rows * np.int64(self._states) + successors)


class Index:
    """The states and rows of a model, by what is observed."""

    def __init__(self, model: FactoredMDP) -> None:
        if not model.variables:
            raise ModelError("Structure: must have variables, by which its states are observed.")
        self.model = model
        self.packing = Packing(model.variables)
        self.packing.require_one_word()
        codes = self.packing.pack(model.valuations)[:, 0]
        self.coded = KeyNumbers(codes, self.packing.domain).find  # states by their words
        self._rows: AnyArray | None = None  # made when it is first asked for

    def states(self, values: AnyArray) -> IntArray:
        """Return the states (N,) with the given values (N, variables); -1 where there is none."""
        packing = self.packing
        numbers = np.asarray(values, dtype=np.int64)
        inside = ((numbers >= packing.low) & (numbers < packing.low + packing.radix)).all(axis=1)
        codes = np.where(inside, packing.pack(numbers)[:, 0], 0)
        return np.where(inside, self.coded(codes), -1).astype(np.int64)

    def rows(self, states: AnyArray, actions: AnyArray) -> IntArray:
        """Return the rows (N,) of actions (index into `model.actions`); -1 where not enabled."""
        if self._rows is None:
            self._rows = _row_table(self.model)
        return np.asarray(self._rows[states, actions], dtype=np.int64)


def _row_table(model: FactoredMDP) -> AnyArray:
    """Return the row of every state and action (S, A), -1 where there is none."""
    rows = np.arange(model.rows)
    at = (model.row_states, model.row_actions)
    table = np.full((model.states, len(model.actions)), -1, dtype=np.int32)
    table[at] = rows
    other = table[at] != rows
    if other.any():
        row = int(np.argmax(other))
        raise ModelError(
            f"Structure: {model.row_name(row)} must be one choice, found several of that name; "
            "give them different names, so that an observed action says which it is."
        )
    return table


def absorbing(model: FactoredMDP) -> BoolArray:
    """Return the states that no row leaves, (S,)."""
    stays = model.successors == model.row_states[owners(model.successor_ptr)]
    return segment_all(segment_all(stays, model.successor_ptr), model.row_ptr)
