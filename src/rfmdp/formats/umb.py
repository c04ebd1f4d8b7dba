"""UMB, the binary format that PRISM, Storm and mcsta exchange models in.

A `.umb` file is a tar archive: `index.json` says what is there, and every array is a file of
bytes, which is decoded all at once. https://pmc-tools.github.io/umb/
"""

from __future__ import annotations

import io
import json
import lzma
import os
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from rfmdp import __version__
from rfmdp.errors import FileError, RfmdpError, UnsupportedError
from rfmdp.formats.table import Columns, Written, make_model, to_columns
from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.ragged import segment_lengths, starts
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.writing import replacing

COPIES = 3  # of the bytes of an archive that are in memory at a time
ENTITIES = ("states", "choices", "branches")
PLAIN = {"double": "<f8", "int": "<i8", "uint": "<u8"}  # numbers of the default size, for NumPy
INTEGERS = {"bool": 1, "int": 64, "uint": 64}  # types of variables, with their bits by default
ACTIONS = "actions/choices/"
VALUATIONS = "valuations/states/valuations.bin"
WORD = 8  # bytes that truth values are padded to
LEVEL = 1  # of gzip: files are a fifth larger than at level 9, and written ten times as fast


def read_umb(path: str | os.PathLike[str], name: str = "") -> FactoredMDP:
    """Return the model in a UMB file; rows with equal distributions share a marginal.

    The file is plain, or compressed by gzip or xz. Messages call it `name`, by default its path.

    Raises
    ------
    FileError
        For whatever is not as it must be.
    ModelError
        For states without a choice, and choices without a distribution.
    UnsupportedError
        For models that are no DTMCs, MDPs or interval versions of them, and for rewards of
        branches (their expectation would depend on nature).
    """
    name, files = name or str(path), {}
    try:
        with tarfile.open(path) as tar:
            for member in tar:
                if member.isfile() and (data := tar.extractfile(member)) is not None:
                    require_memory(COPIES * member.size, f"{name}: reading {member.name}")
                    files[member.name.removeprefix("./")] = data.read()
        return _model(Archive(name, files, json.loads(files["index.json"])))
    except RfmdpError:
        raise
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise FileError(f"{name}: cannot be read ({reason}); check the name.") from error
    except (
        tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, LookupError, TypeError, ValueError,
        AttributeError, ArithmeticError, RecursionError,
    ) as error:  # fmt: skip
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise FileError(
            f"{name}: must be a UMB file, a tar archive with a sound index ({reason})."
        ) from error


@dataclass(frozen=True, slots=True, eq=False)
class Archive:
    """The files of an archive, and how to decode them."""

    name: str
    files: Mapping[str, bytes]
    index: dict[str, Any]

    def count(self, entity: str) -> int:
        """Return the number of states, choices, branches or actions."""
        size = self.index["transition-system"].get(f"#{entity}", 0)
        return range(size).stop  # refuses what is no integer

    def array(self, file: str, kind: str, size: int) -> AnyArray:
        """Return a file as `size` numbers of a NumPy type; zeros if there is no such file."""
        data, needed = self.files.get(file), size * np.dtype(kind).itemsize
        if data is None:
            return np.zeros(size, dtype=kind)
        if len(data) != needed:
            self.fail(f"{file} must have {needed} bytes for {size} entries, has {len(data)}.")
        return np.frombuffer(data, dtype=kind)

    def pointers(self, file: str, size: int, last: int, least: int = 0) -> IntArray:
        """Return where the segments of `size` owners start; by default one entry each."""
        named = file in self.files
        ptr = self.array(file, "<u8", size + 1).astype(np.int64) if named else np.arange(size + 1)
        if ptr[0] != 0 or ptr[-1] != last or np.any(segment_lengths(ptr) < least):
            self.fail(f"{file} must rise from 0 to {last}, by {least} at least each time.")
        return ptr

    def bits(self, file: str, size: int) -> BoolArray:
        """Return a file as `size` truth values; all false if there is no such file."""
        data = self.files.get(file, bytes(-(-size // 8)))
        if 8 * len(data) < size:
            self.fail(f"{file} must have {size} bits, has {8 * len(data)}.")
        bits = np.unpackbits(np.frombuffer(data, np.uint8), count=size, bitorder="little")
        return bits.astype(np.bool_)

    def numbers(self, file: str, kind: Mapping[str, Any], size: int) -> FloatArray:
        """Return the ends (2, size) of numbers or intervals; by default zeros."""
        base, _, interval = kind["type"].partition("-")
        if base not in PLAIN:
            raise UnsupportedError(
                f"{self.name}: {file} must be floats or integers, found {kind['type']}; export "
                "doubles."
            )
        width = 2 if interval else 1
        ends = self.array(file, PLAIN[base], size * width).astype(np.float64)
        return np.stack([ends[::width], ends[width - 1 :: width]])

    def annotations(self, group: str) -> Iterator[tuple[str, str, Any]]:
        """Yield name, folder and description of the annotations of a group."""
        for identifier, described in self.index.get("annotations", {}).get(group, {}).items():
            folder = f"annotations/{group}/{identifier}"
            yield described.get("alias", identifier), folder, described

    def fail(self, message: str) -> NoReturn:
        """Raise a FileError."""
        raise FileError(f"{self.name}: {message}")


def _model(archive: Archive) -> FactoredMDP:
    """Return the model in an archive."""
    system = archive.index["transition-system"]
    if system["time"] != "discrete" or system["#players"] > 1 or system.get("#observations", 0):
        raise UnsupportedError(
            f"{archive.name}: must be a DTMC or MDP, perhaps with intervals; found "
            f"{system['time']} time, {system['#players']} players, "
            f"{system.get('#observations', 0)} observations."
        )
    states, choices, branches = map(archive.count, ENTITIES)
    size = 64.0 * states + 48.0 * choices + 32.0 * branches
    require_memory(size, f"{archive.name}: a model of {states} states, {branches} branches")
    row_ptr = archive.pointers("state-to-choices.bin", states, choices)
    ptr = archive.pointers("choice-to-branches.bin", choices, branches, least=1)

    kind = system.get("branch-probability-type")
    if kind is None:
        raise UnsupportedError(f"{archive.name}: must have probabilities, has none.")
    lower, upper = archive.numbers("branch-to-probability.bin", kind, branches)
    initial = np.flatnonzero(archive.bits("state-is-initial.bin", states))
    promised = archive.count("initial-states")
    if not len(initial) or len(initial) != promised:
        archive.fail(f"some state must be initial, {len(initial)} are, {promised} promised.")
    targets = archive.array("branch-to-target.bin", "<u8", branches).astype(np.int64)
    return make_model(
        Columns(row_ptr, ptr, targets, lower, upper, *_actions(archive, choices)),
        archive.name,
        initial=initial,
        labels={
            label: archive.bits(f"{folder}/states/values.bin", states)
            for label, folder, _ in archive.annotations("aps")
            if label != "init"
        },
        rewards=dict(_rewards(archive)),
        **_valuations(archive, states),
    )


def _actions(archive: Archive, choices: int) -> tuple[IntArray, tuple[str, ...]]:
    """Return the action of every choice, and the names of the actions."""
    size = archive.count("choice-actions")
    if size == 0:
        return np.zeros(choices, dtype=np.int64), ("",)
    actions = archive.array(f"{ACTIONS}values.bin", "<u4", choices).astype(np.int64)
    if np.any(actions >= size):
        archive.fail(f"choice actions must be below {size}.")
    require_memory(80.0 * size, f"{archive.name}: {size} actions")
    text = archive.files.get(f"{ACTIONS}strings.bin")
    if text is None:
        return actions, tuple(f"a{i}" for i in range(size))
    ptr = archive.pointers(f"{ACTIONS}string-mapping.bin", size, len(text))
    return actions, tuple(text[begin:end].decode() for begin, end in pairwise(ptr.tolist()))


def _rewards(archive: Archive) -> Iterator[tuple[str, Rewards]]:
    """Yield the reward structures with their names."""
    for name, folder, described in archive.annotations("rewards"):
        paid = {entity: np.zeros(archive.count(entity)) for entity in ENTITIES}
        for entity in described.get("applies-to", ()):
            file, size = f"{folder}/{entity}/values.bin", archive.count(entity)
            paid[entity], upper = archive.numbers(file, described["type"], size)
            if np.any(paid[entity] != upper) or (entity == "branches" and np.any(upper)):
                raise UnsupportedError(
                    f'{archive.name}: reward structure "{name}" has intervals, or pays per branch: '
                    "the expected reward would depend on nature; let states or choices pay numbers."
                )
        yield name, Rewards(paid["states"], paid["choices"])


def _valuations(archive: Archive, states: int) -> dict[str, Any]:
    """Return the fields of variables; none if one is neither boolean nor integer."""
    classes = archive.index.get("valuations", {}).get("states", {}).get("classes", ())
    if len(classes) != 1 or VALUATIONS not in archive.files:
        return {}
    columns = classes[0]["variables"]
    sizes = []
    for column in columns:
        kind = column.get("type", {"type": "uint", "size": column.get("padding")})
        bits = kind.get("size", INTEGERS.get(kind["type"], 0))
        if kind["type"] not in INTEGERS or column.get("is-optional") or not 0 <= bits <= 64:
            return {}
        sizes.append(bits)
    ptr = starts(sizes).tolist()
    packed = archive.array(VALUATIONS, "u1", states * -(-ptr[-1] // 8)).reshape(states, -1)
    variables, values = [], []
    for column, (first, last) in zip(columns, pairwise(ptr), strict=True):
        if "padding" in column:
            continue
        kind = column["type"]["type"]
        value = _integers(packed, first, last, signed=kind == "int") + column.get("offset", 0)
        low, high = (0, 1) if kind == "bool" else (int(value.min()), int(value.max()))
        low, high = min(low, column.get("lower", low)), max(high, column.get("upper", high))
        if low < -(2**31) or high >= 2**31:
            return {}
        variables.append(Variable(column["name"], int(low), int(high), kind == "bool"))
        values.append((value != 0 if kind == "bool" else value).astype(np.int32))
    return {"variables": tuple(variables), "valuations": np.stack(values, axis=1)} if values else {}


def _integers(packed: AnyArray, first: int, last: int, *, signed: bool) -> IntArray:
    """Return the numbers in the bits first..last - 1 of every row of bytes, (S,)."""
    begin, end = first // 8, -(-last // 8)
    bits = np.unpackbits(packed[:, begin:end], axis=1, bitorder="little")
    bits = bits[:, first - 8 * begin : last - 8 * begin]
    rest = np.zeros((len(packed), 64 - (last - first)), dtype=np.uint8)
    if signed:
        rest |= bits[:, -1:].any(axis=1, keepdims=True)
    words = np.packbits(np.append(bits, rest, axis=1), axis=1, bitorder="little")
    return words.view("<i8")[:, 0].astype(np.int64)


def write_umb(
    model: FactoredMDP, path: str | os.PathLike[str], *, always_mdp: bool = False
) -> Written:
    """Write a model as a UMB file, with labels, rewards, actions and valuations.

    Numbers are written bit by bit, intervals as intervals. A dtmc is written if every state has
    one choice and all probabilities are known, unless it must be an mdp: Storm solves intervals in
    mdps only.
    Several marginals of a row are multiplied out by `flatten`; the note says what that changed.
    """
    flat, table, note = to_columns(model)
    text = [name.encode() for name in table.actions]
    ends = table.lower if table.known else np.stack([table.lower, table.upper], axis=1)
    kind = {"type": "double", "size": 64}
    index: dict[str, Any] = {
        "format-version": 0,
        "format-revision": 1,
        "file-data": {"tool": "rfmdp", "tool-version": __version__},
        "transition-system": {
            "time": "discrete",
            "#players": 0 if table.rows == table.states and table.known and not always_mdp else 1,
            "#states": table.states,
            "#initial-states": len(flat.initial),
            "#choices": table.rows,
            "#choice-actions": len(table.actions),
            "#branches": len(table.successors),
            "#branch-actions": 0,
            "#observations": 0,
            "branch-probability-type": (
                kind if table.known else {"type": "double-interval", "size": 128}
            ),
        },
        "annotations": {},
    }
    arrays: dict[str, AnyArray] = {
        "state-is-initial.bin": _bits(flat.label("init")),
        "state-to-choices.bin": table.row_ptr.astype("<u8"),
        "choice-to-branches.bin": table.successor_ptr.astype("<u8"),
        "branch-to-target.bin": table.successors.astype("<u8"),
        "branch-to-probability.bin": ends.astype("<f8"),
        f"{ACTIONS}values.bin": table.row_actions.astype("<u4"),
        f"{ACTIONS}strings.bin": np.frombuffer(b"".join(text), np.uint8),
        f"{ACTIONS}string-mapping.bin": starts([len(name) for name in text]).astype("<u8"),
    }

    def annotate(group: str, name: str, kind: object, **values: AnyArray) -> None:
        described = index["annotations"].setdefault(group, {})
        plain = re.sub(r"[^0-9a-z_-]", "_", name.lower()) or "_"
        numbered = (plain if i == 1 else f"{plain}-{i}" for i in count(1))
        identifier = next(text for text in numbered if text not in described)
        described[identifier] = {"alias": name, "applies-to": list(values), "type": kind}
        for entity, array in values.items():
            arrays[f"annotations/{group}/{identifier}/{entity}/values.bin"] = array

    for name, holds in flat.labels.items():
        if name != "init":
            annotate("aps", name, {"type": "bool", "size": 1}, states=_bits(holds))
    for name, paid in flat.rewards.items():
        rewards = {"states": paid.state.astype("<f8"), "choices": paid.row.astype("<f8")}
        annotate("rewards", name, kind, **rewards)
    if flat.variables:
        described, kind = [], {"type": "int", "size": 32}
        for v in flat.variables:  # a byte or four each
            if v.boolean:
                described += [{"name": v.name, "type": {"type": "bool", "size": 1}}, {"padding": 7}]
            else:
                described.append({"name": v.name, "type": kind, "lower": v.low, "upper": v.high})
        formats = ["u1" if v.boolean else "<i4" for v in flat.variables]
        arrays[VALUATIONS] = np.rec.fromarrays([*flat.valuations.T], formats=formats)
        unique = len(np.unique(arrays[VALUATIONS])) == table.states
        index["valuations"] = {"states": {"unique": unique, "classes": [{"variables": described}]}}
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
    return Written((Path(path),), note)


def _bits(where: BoolArray) -> AnyArray:
    """Return truth values as bits, padded to whole words."""
    packed = np.packbits(where, bitorder="little")
    return np.pad(packed, (0, -len(packed) % WORD))
