"""Write UMB (see `umb`); a factored model is flattened for it."""

from __future__ import annotations

import io
import os
import re
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import rfmdp
from rfmdp.formats.table import ModelTable, Written, to_table
from rfmdp.formats.umb import umbi
from rfmdp.model.arrays import FactoredMDP
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

    Raises
    ------
    UnsupportedError
        If `umbi` is not installed.
    """
    library = umbi()
    table, note = to_table(model)
    index = _index(library, table)
    arrays = {
        "state-is-initial.bin": _bits(table.labels["init"]),
        "state-to-choices.bin": table.row_ptr.astype("<u8"),
        "choice-to-branches.bin": table.successor_ptr.astype("<u8"),
        "branch-to-target.bin": table.successors.astype("<u8"),
        "branch-to-probability.bin": (
            table.lower if table.known else np.stack([table.lower, table.upper], axis=1)
        ).astype("<f8"),
        "actions/choices/values.bin": table.row_actions.astype("<u4"),
        **_annotation_arrays(library, table, index),
    }
    if model.variables:
        arrays |= _valuation_arrays(library, model, index)
    index.validate()
    files = library.tar.TarCoder()
    files.add_json("index.json", index.to_json())  # the first entry, as the format wants it
    for name, content in arrays.items():
        files.add_file(name, np.ascontiguousarray(content).tobytes())
    names = "actions/choices/strings.bin", "actions/choices/string-mapping.bin"
    files.add_strings(names[0], table.actions, names[1])
    with replacing(path) as part, tarfile.open(part, "w:gz", compresslevel=LEVEL) as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return Written((Path(path),), note)


def _index(library: Any, table: ModelTable) -> Any:
    """Return the index: sizes and types."""
    parts = library.umb.index
    return parts.UmbIndex(
        format_version=0,
        format_revision=1,
        file_data=parts.FileData(tool="rfmdp", tool_version=rfmdp.__version__),
        transition_system=parts.TransitionSystem(
            time="discrete",
            num_players=0 if table.chain and table.known else 1,
            num_states=table.states,
            num_initial_states=len(table.initial),
            num_choices=table.rows,
            num_choice_actions=len(table.actions),
            num_branches=len(table.successors),
            branch_probability_type=_type(library, "double" if table.known else "double-interval"),
        ),
        annotations={},
    )


def _type(library: Any, word: str, bits: int | None = None) -> Any:
    """Return a type of umbi; by default of its default size."""
    kinds = library.datatypes
    kind: Any = {
        "bool": kinds.PrimitiveType.BOOL,
        "int": kinds.NumericPrimitiveType.INT,
        "double": kinds.NumericPrimitiveType.DOUBLE,
        "double-interval": kinds.IntervalType(kinds.NumericPrimitiveType.DOUBLE),
    }[word]
    sized = library.binary.SizedType
    return sized.for_type(kind) if bits is None else sized(kind, bits)


def _annotation_arrays(library: Any, table: ModelTable, index: Any) -> dict[str, AnyArray]:
    """Return the arrays of labels and rewards, and describe them in the index."""
    described, arrays = library.umb.index.AnnotationDescription, {}
    groups: Mapping[str, Mapping[str, Any]] = {
        "aps": {name: where for name, where in table.labels.items() if name != "init"},
        "rewards": table.rewards,
    }
    for group, members in groups.items():
        taken: set[str] = set()
        for name, values in members.items():
            identifier = _identifier(name, taken)
            paid = (
                {"states": _bits(values)}
                if group == "aps"
                else {"states": values.state.astype("<f8"), "choices": values.row.astype("<f8")}
            )
            index.annotations.setdefault(group, {})[identifier] = described(
                alias=name,
                applies_to=list(paid),
                type=_type(library, "bool" if group == "aps" else "double"),
            )
            for entity, content in paid.items():
                arrays[f"annotations/{group}/{identifier}/{entity}/values.bin"] = content
    return arrays


def _valuation_arrays(library: Any, model: FactoredMDP, index: Any) -> dict[str, AnyArray]:
    """Return the values of the variables, packed bit by bit, and describe them in the index."""
    fields = library.binary.StructType()
    columns = []
    for variable, column in zip(model.variables, model.valuations.T, strict=True):
        bits = 1 if variable.boolean else _width(variable.low, variable.high)
        word = "bool" if variable.boolean else "int"
        fields.add_attribute(variable.name, _type(library, word, bits))
        if not variable.boolean:
            fields.attributes[-1].lower = variable.low
            fields.attributes[-1].upper = variable.high
        columns.append((column.astype(np.int64)[:, None] >> np.arange(bits)) & 1)
    fields.pad_to_byte()
    index.valuations = {
        "states": library.umb.index.ValuationDescription(
            unique=len(np.unique(model.valuations, axis=0)) == model.states, classes=[fields]
        )
    }
    bits_of = np.concatenate(columns, axis=1).astype(np.uint8)
    return {"valuations/states/valuations.bin": np.packbits(bits_of, axis=1, bitorder="little")}


def _width(low: int, high: int) -> int:
    """Return the bits of a signed integer that holds low..high."""
    return 1 + max((-low - 1).bit_length() if low < 0 else low.bit_length(), high.bit_length())


def _bits(where: BoolArray) -> AnyArray:
    """Return truth values as bits, padded to whole words."""
    packed = np.packbits(where, bitorder="little")
    return np.pad(packed, (0, -len(packed) % WORD))


def _identifier(name: str, taken: set[str]) -> str:
    """Return an identifier of the format for any name, different from those that are taken."""
    plain = re.sub(r"[^0-9a-z_-]", "_", name.lower()) or "_"
    identifier, number = plain, 1
    while identifier in taken:
        number += 1
        identifier = f"{plain}-{number}"
    taken.add(identifier)
    return identifier
