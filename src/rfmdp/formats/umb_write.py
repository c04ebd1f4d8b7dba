"""Write UMB (see `umb`); a factored model is flattened for it."""

from __future__ import annotations

import io
import json
import os
import re
import tarfile
from collections.abc import Collection
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

import rfmdp
from rfmdp.formats.table import ModelTable, Written, to_table
from rfmdp.formats.umb import ACTIONS, VALUATIONS
from rfmdp.model.arrays import FactoredMDP
from rfmdp.ragged import starts
from rfmdp.types import AnyArray, BoolArray
from rfmdp.writing import replacing

WORD = 8  # bytes that truth values are padded to
LEVEL = 1  # of gzip: files are a fifth larger than at level 9, and written ten times as fast


def write_umb(model: FactoredMDP, path: str | os.PathLike[str]) -> Written:
    """Write a model as a UMB file, with labels, rewards, actions and valuations.

    Numbers are written bit by bit, intervals as intervals. A dtmc is written if every state has
    one choice and all probabilities are known, else an mdp: Storm solves intervals in mdps only.

    Parameters
    ----------
    model
        Any model; several marginals of a row are multiplied out by `flatten`.
    path
        The file; it is compressed by gzip.

    Returns
    -------
    Written
        The file, and a note that says what flattening changed.
    """
    table, note = to_table(model)
    write_table(table, path, players=0 if table.chain and table.known else 1, known=table.known)
    return Written((Path(path),), note)


def write_table(
    table: ModelTable, path: str | os.PathLike[str], *, players: int, known: bool
) -> None:
    """Write a UMB file of a table, with numbers if all are known, else intervals."""
    text = [name.encode() for name in table.actions]
    ends = table.lower if known else np.stack([table.lower, table.upper], axis=1)
    index: dict[str, Any] = {
        "format-version": 0,
        "format-revision": 1,
        "file-data": {"tool": "rfmdp", "tool-version": rfmdp.__version__},
        "transition-system": {
            "time": "discrete",
            "#players": players,
            "#states": table.states,
            "#initial-states": len(table.initial),
            "#choices": table.rows,
            "#choice-actions": len(table.actions),
            "#branches": len(table.successors),
            "#branch-actions": 0,
            "#observations": 0,
            "branch-probability-type": (
                {"type": "double", "size": 64}
                if known
                else {"type": "double-interval", "size": 128}
            ),
        },
        "annotations": {},
    }
    arrays: dict[str, AnyArray] = {
        "state-is-initial.bin": _bits(table.labels["init"]),
        "state-to-choices.bin": table.row_ptr.astype("<u8"),
        "choice-to-branches.bin": table.successor_ptr.astype("<u8"),
        "branch-to-target.bin": table.successors.astype("<u8"),
        "branch-to-probability.bin": ends.astype("<f8"),
        f"{ACTIONS}values.bin": table.row_actions.astype("<u4"),
        f"{ACTIONS}strings.bin": np.frombuffer(b"".join(text), np.uint8),
        f"{ACTIONS}string-mapping.bin": starts([len(name) for name in text]).astype("<u8"),
        **_annotation_arrays(table, index),
        **_valuation_arrays(table, index),
    }
    # the index is the first entry, as the format wants it
    files = {"index.json": json.dumps(index).encode()}
    files |= {name: np.ascontiguousarray(array).tobytes() for name, array in arrays.items()}
    with (
        replacing(path) as unfinished,
        tarfile.open(unfinished, "w:gz", compresslevel=LEVEL) as tar,
    ):
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def _annotation_arrays(table: ModelTable, index: dict[str, Any]) -> dict[str, AnyArray]:
    """Return the arrays of labels and rewards, and describe them in the index."""
    groups: dict[str, dict[str, dict[str, AnyArray]]] = {
        "aps": {
            name: {"states": _bits(where)} for name, where in table.labels.items() if name != "init"
        },
        "rewards": {
            name: {"states": paid.state.astype("<f8"), "choices": paid.row.astype("<f8")}
            for name, paid in table.rewards.items()
        },
    }
    types = {"aps": {"type": "bool", "size": 1}, "rewards": {"type": "double", "size": 64}}
    arrays = {}
    for group, members in groups.items():
        described: dict[str, Any] = {}
        for name, values in members.items():
            identifier = _identifier(name, described)
            described[identifier] = {
                "alias": name, "applies-to": list(values), "type": types[group],
            }  # fmt: skip
            for entity, array in values.items():
                arrays[f"annotations/{group}/{identifier}/{entity}/values.bin"] = array
        if described:
            index["annotations"][group] = described
    return arrays


def _valuation_arrays(table: ModelTable, index: dict[str, Any]) -> dict[str, AnyArray]:
    """Return the values of the variables, one record per state, and describe them in the index."""
    variables, valuations = table.variables
    if valuations is None:
        return {}
    described: list[dict[str, Any]] = []
    for variable in variables:
        if variable.boolean:
            described.append({"name": variable.name, "type": {"type": "bool", "size": 1}})
            described.append({"padding": 7})
        else:
            ends = {"lower": variable.low, "upper": variable.high}
            kind = {"type": "int", "size": 32}
            described.append({"name": variable.name, "type": kind, **ends})
    kinds = [(f"{i}", "u1" if v.boolean else "<i4") for i, v in enumerate(variables)]
    records = np.empty(table.states, dtype=kinds)
    for (field, _), values in zip(kinds, valuations.T, strict=True):
        records[field] = values
    unique = len(np.unique(valuations, axis=0)) == table.states
    index["valuations"] = {"states": {"unique": unique, "classes": [{"variables": described}]}}
    return {VALUATIONS: records}


def _bits(where: BoolArray) -> AnyArray:
    """Return truth values as bits, padded to whole words."""
    packed = np.packbits(where, bitorder="little")
    return np.pad(packed, (0, -len(packed) % WORD))


def _identifier(name: str, others: Collection[str]) -> str:
    """Return an identifier of the format for any name, different from others."""
    plain = re.sub(r"[^0-9a-z_-]", "_", name.lower()) or "_"
    numbered = (plain if i == 1 else f"{plain}-{i}" for i in count(1))
    return next(identifier for identifier in numbered if identifier not in others)
