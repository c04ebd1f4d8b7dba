"""Write UMB (see `umb`); a factored model is flattened for it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import rfmdp
from rfmdp.formats.explicit import ExplicitType, FlatModel, Written
from rfmdp.formats.umb import umbi
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.flat import transition_bounds
from rfmdp.model.flatten import is_known
from rfmdp.types import AnyArray, BoolArray
from rfmdp.writing import replacing

WORD = 8  # bytes that truth values are padded to


def write_umb(
    model: FactoredMDP, path: str | os.PathLike[str], *, type: ExplicitType | None = None
) -> Written:
    """Write a model as a UMB file, with labels, rewards, actions and valuations.

    Numbers are written bit by bit. Intervals stay intervals.

    Parameters
    ----------
    model
        Any model; several marginals of a row are multiplied out by `flatten`.
    path
        The file; it is compressed by gzip.
    type
        By default a dtmc if every state has one choice, else an mdp. Storm solves intervals in
        mdps only, so an interval model becomes an mdp unless asked otherwise.

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
    if type is None and not is_known(model):
        type = ExplicitType.MDP
    flat = FlatModel.of(model, type)
    files = library.tar.TarCoder()
    index = _index(library, flat)
    arrays = {**_transitions(flat), **_annotations(library, flat.model, index)}
    if flat.model.variables:
        arrays |= _valuations(library, flat.model, index)
    index.validate()
    files.add_json("index.json", index.to_json())  # the first entry, as the format wants it
    for name, content in arrays.items():
        files.add_file(name, np.ascontiguousarray(content).tobytes())
    if flat.model.actions:
        folder = "actions/choices"
        files.add_strings(
            f"{folder}/strings.bin", flat.model.actions, f"{folder}/string-mapping.bin"
        )
    place = Path(path)
    with replacing(place) as part:
        files.write(part)
    return Written((place,), flat.note)


def _index(library: Any, flat: FlatModel) -> Any:
    """Return the index: sizes and types."""
    parts, model = library.umb.index, flat.model
    return parts.UmbIndex(
        format_version=0,
        format_revision=1,
        file_data=parts.FileData(tool="rfmdp", tool_version=rfmdp.__version__),
        transition_system=parts.TransitionSystem(
            time="discrete",
            num_players=0 if flat.type is ExplicitType.DTMC else 1,
            num_states=model.states,
            num_initial_states=len(model.initial),
            num_choices=model.rows,
            num_choice_actions=len(model.actions),
            num_branches=model.transitions,
            branch_probability_type=_type(library, "double" if flat.known else "double-interval"),
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


def _transitions(flat: FlatModel) -> dict[str, AnyArray]:
    """Return the arrays of states, choices and branches."""
    model = flat.model
    lower, upper = transition_bounds(model)
    numbers = lower if flat.known else np.stack([lower, upper], axis=1)
    return {
        "state-is-initial.bin": _bits(model.label("init")),
        "state-to-choices.bin": model.row_ptr.astype("<u8"),
        "choice-to-branches.bin": model.successor_ptr.astype("<u8"),
        "branch-to-target.bin": model.successors.astype("<u8"),
        "branch-to-probability.bin": numbers.astype("<f8"),
        "actions/choices/values.bin": model.row_actions.astype("<u4"),
    }


def _annotations(library: Any, model: FactoredMDP, index: Any) -> dict[str, AnyArray]:
    """Return the arrays of labels and rewards, and describe them in the index."""
    described, arrays = library.umb.index.AnnotationDescription, {}
    groups: Mapping[str, Mapping[str, Any]] = {"aps": model.labels, "rewards": model.rewards}
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


def _valuations(library: Any, model: FactoredMDP, index: Any) -> dict[str, AnyArray]:
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
    found, number = plain, 1
    while found in taken:
        number += 1
        found = f"{plain}-{number}"
    taken.add(found)
    return found
