"""Read UMB, the binary format that PRISM, Storm and mcsta exchange models in (the extra `umb`).

A `.umb` file is a tar archive: an index, which `umbi`, the field's own library, reads and checks,
and arrays of bytes. These are decoded here, all entries of one at once: `umbi` makes a Python
object of every number, which takes seconds per million.
"""

from __future__ import annotations

import logging
import lzma
import os
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from rfmdp.errors import FileError, ResourceError, RfmdpError, UnsupportedError
from rfmdp.formats.table import ModelTable, Variables, make_model
from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.ragged import owner, owners, segment_lengths
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray

COPIES = 3  # of the bytes of an archive that are in memory at a time
ENTITIES = ("states", "choices", "branches")
PLAIN = {"double": "<f8", "int": "<i8", "uint": "<u8"}  # numbers of the default size, for NumPy
WIDEST = 63  # bits of an integer variable


def read_umb(path: str | os.PathLike[str]) -> FactoredMDP:
    """Return the model in a UMB file; rows with equal distributions share a marginal.

    Parameters
    ----------
    path
        The file: plain, or compressed by gzip or xz.

    Raises
    ------
    FileError
        For whatever is not as it must be.
    UnsupportedError
        If `umbi` is not installed; for models that are no DTMCs, MDPs or interval versions of
        them; and for rewards of branches (their expectation would depend on nature).
    """
    library = umbi()
    place = Path(path)
    files = library.tar.TarCoder()
    try:
        files.update(_members(place))
        index = library.umb.index.UmbIndex.from_json(files.read_json("index.json"))
        index.validate()
        _require_mdp(place, index.transition_system)
        return _model(Archive(place, files, index))
    except (RfmdpError, ResourceError):
        raise
    except Exception as error:  # umbi raises what its parts raise, assertions included
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise FileError(f"{path}: must be a UMB file, but {reason}.") from error


def umbi() -> ModuleType:
    """Return umbi, which stays silent, or say how to get it."""
    try:
        import umbi as found
        import umbi.tar
        import umbi.umb
    except ImportError as error:
        raise UnsupportedError(
            "UMB files need umbi, which is not installed; install the extra: pip install "
            "'rfmdp[umb]'."
        ) from error
    logging.getLogger("umbi").addHandler(logging.NullHandler())
    module: ModuleType = found
    return module


@dataclass(frozen=True, slots=True, eq=False)
class Archive:
    """The files of an archive, and how to decode them."""

    path: Path
    files: Any  # umbi's TarCoder: a mapping of names to bytes
    index: Any

    def count(self, entity: str) -> int:
        """Return the number of states, choices or branches."""
        return int(getattr(self.index.transition_system, f"num_{entity}"))

    def fail(self, line: int, message: str) -> NoReturn:
        """Raise a FileError that names a choice, counted from 0."""
        raise FileError(f"{self.path}, choice {line}: {message}")

    def array(self, name: str, kind: str, size: int) -> AnyArray | None:
        """Return a file as `size` numbers of a NumPy type; None if there is no such file."""
        data = self.files.read_file(name, optional=True)
        if data is None:
            return None
        if len(data) != size * np.dtype(kind).itemsize:
            raise FileError(
                f"{self.path}: {name} must have {size * np.dtype(kind).itemsize} bytes for "
                f"{size} entries, has {len(data)}."
            )
        return np.frombuffer(data, dtype=kind)

    def pointers(self, name: str, size: int, last: int) -> IntArray:
        """Return where the segments of `size` owners start; by default one entry each."""
        values = self.array(name, "<u8", size + 1)
        ptr = np.arange(size + 1) if values is None else values.astype(np.int64)
        if ptr[0] != 0 or ptr[-1] != last or np.any(segment_lengths(ptr) < 0):
            raise FileError(f"{self.path}: {name} must rise from 0 to {last}.")
        return ptr

    def bits(self, name: str, size: int) -> BoolArray:
        """Return a file as `size` truth values; all false if there is no such file."""
        data = self.files.read_file(name, optional=True)
        if data is None:
            return np.zeros(size, dtype=np.bool_)
        if 8 * len(data) < size:
            raise FileError(f"{self.path}: {name} must have {size} bits, has {8 * len(data)}.")
        bits = np.unpackbits(np.frombuffer(data, np.uint8), count=size, bitorder="little")
        return bits.astype(np.bool_)

    def numbers(self, name: str, sized: Any, size: int) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper ends of `size` numbers or intervals.

        Fractions become floats: numbers to nearest, intervals outwards.
        """
        kind = _word(sized.type)
        if kind.removesuffix("-interval") in PLAIN:
            width = 1 + kind.endswith("interval")
            entries = self.array(name, PLAIN[kind.removesuffix("-interval")], size * width)
            pairs = np.zeros(size * width) if entries is None else entries.astype(np.float64)
            return pairs[::width].copy(), pairs[width - 1 :: width].copy()
        if kind not in ("rational", "rational-interval"):
            raise UnsupportedError(f"{self.path}: {name} must be numbers, found {kind}.")
        values = self.files.read_vector(name, sized)
        if len(values) != size:
            raise FileError(f"{self.path}: {name} must have {size} numbers, has {len(values)}.")
        if kind == "rational":
            nearest = np.array([float(v) for v in values])
            return nearest, nearest
        ends = [(_rounded(v.left, -np.inf), _rounded(v.right, np.inf)) for v in values]
        pairs = np.array(ends, dtype=np.float64).reshape(-1, 2)
        return pairs[:, 0].copy(), pairs[:, 1].copy()


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an archive; its size is asked for before memory is taken."""
    try:
        with tarfile.open(path) as tar:
            for member in tar:
                if member.isfile():
                    require_memory(COPIES * member.size, f"{path}: reading {member.name}")
                    data = tar.extractfile(member)
                    yield member.name.removeprefix("./"), data.read() if data else b""
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise FileError(
            f"{path}: must be a tar archive, plain or compressed by gzip or xz ({error})."
        ) from error
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise FileError(f"{path}: cannot be read ({reason}); check the name.") from error


def _require_mdp(path: Path, system: Any) -> None:
    """Raise UnsupportedError for other types of models."""
    text = f"{system.time} time, {system.num_players} players"
    if system.time != "discrete" or system.num_players > 1 or system.num_observations:
        also = ", with observations" if system.num_observations else ""
        raise UnsupportedError(
            f"{path}: must be a DTMC or MDP, perhaps with intervals; found {text}{also}."
        )


def _model(archive: Archive) -> FactoredMDP:
    """Return the model in an archive."""
    states, choices, branches = map(archive.count, ENTITIES)
    size = 64.0 * states + 48.0 * choices + 32.0 * branches
    require_memory(size, f"{archive.path}: a model of {states} states, {branches} branches")
    row_ptr = archive.pointers("state-to-choices.bin", states, choices)
    ptr = archive.pointers("choice-to-branches.bin", choices, branches)
    if np.any(segment_lengths(ptr) == 0):
        archive.fail(int(np.argmin(segment_lengths(ptr))), "must have a branch, has none.")
    targets = archive.array("branch-to-target.bin", "<u8", branches)
    initial = np.flatnonzero(archive.bits("state-is-initial.bin", states))
    if not len(initial):
        raise FileError(f"{archive.path}: some state must be initial, none is.")
    table = ModelTable(
        states,
        owners(row_ptr),
        ptr,
        np.zeros(branches, np.int64) if targets is None else targets.astype(np.int64),
        *_probabilities(archive, choices, branches),
        *_actions(archive),
        initial,
        {name: where for name, where in _labels(archive) if name != "init"},
        _rewards(archive),
        _valuations(archive),
    )
    return make_model(table, str(archive.path), lambda i, text: archive.fail(owner(ptr, i), text))


def _probabilities(archive: Archive, choices: int, branches: int) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the probabilities of branches; without any, choices are certain moves."""
    kind = archive.index.transition_system.branch_probability_type
    if kind is not None:
        return archive.numbers("branch-to-probability.bin", kind, branches)
    if branches != choices:
        raise UnsupportedError(f"{archive.path}: must have probabilities, has none.")
    return np.ones(branches), np.ones(branches)


def _actions(archive: Archive) -> tuple[IntArray, tuple[str, ...]]:
    """Return the action of every choice, and the names of the actions."""
    size, number = archive.count("choices"), archive.count("choice_actions")
    if number == 0:
        return np.zeros(size, dtype=np.int64), ("",)
    numbers = archive.array("actions/choices/values.bin", "<u4", size)
    chosen = np.zeros(size, np.int64) if numbers is None else numbers.astype(np.int64)
    if np.any(chosen >= number):
        raise FileError(f"{archive.path}: choice actions must be below {number}.")
    names = archive.files.read_strings(
        "actions/choices/strings.bin",
        optional=True,
        filename_csr="actions/choices/string-mapping.bin",
    )
    if names is None:
        require_memory(80.0 * number, f"{archive.path}: {number} actions")
        names = [f"a{i}" for i in range(number)]
    if len(names) != number:
        raise FileError(f"{archive.path}: must name {number} choice actions, names {len(names)}.")
    return chosen, tuple(names)


def _annotations(index: Any, group: str) -> Iterator[tuple[str, str, Any]]:
    """Yield name, identifier and description of the annotations of a group."""
    for identifier, annotation in ((index.annotations or {}).get(group) or {}).items():
        yield annotation.alias or identifier, identifier, annotation


def _labels(archive: Archive) -> Iterator[tuple[str, BoolArray]]:
    for name, identifier, _ in _annotations(archive.index, "aps"):
        place = f"annotations/aps/{identifier}/states/values.bin"
        yield name, archive.bits(place, archive.count("states"))


def _rewards(archive: Archive) -> dict[str, Rewards]:
    """Return the reward structures."""
    rewards = {}
    for name, identifier, annotation in _annotations(archive.index, "rewards"):
        paid = {entity: np.zeros(archive.count(entity)) for entity in ENTITIES}
        for entity in annotation.applies_to or ():
            place = f"annotations/rewards/{identifier}/{entity}/values.bin"
            size = archive.count(entity)
            paid[entity], upper = archive.numbers(place, annotation.type, size)
            if np.any(paid[entity] != upper):
                raise UnsupportedError(
                    f'{archive.path}: reward structure "{name}" has intervals; rewards must be '
                    "numbers."
                )
        if np.any(paid["branches"]):
            raise UnsupportedError(
                f'{archive.path}: reward structure "{name}" pays per branch: the expected reward '
                "would depend on nature; move it to states or choices."
            )
        rewards[name] = Rewards(paid["states"], paid["choices"])
    return rewards


def _valuations(archive: Archive) -> Variables:
    """Return the variables of the states; none if one is neither boolean nor integer."""
    described = (archive.index.valuations or {}).get("states")
    if described is None or len(described.classes) != 1:
        return (), None
    fields = described.classes[0]
    states = archive.count("states")
    size = fields.size_bytes
    data = archive.array("valuations/states/valuations.bin", "u1", states * size)
    if data is None:
        return (), None
    packed = data.reshape(states, size)
    variables, columns, begin = [], [], 0
    for field in fields:
        first, begin = begin, begin + field.size_bits
        if not hasattr(field, "name"):  # padding
            continue
        kind = _word(field.sized_type.type)
        if kind not in ("bool", "int", "uint") or field.is_optional or begin - first > WIDEST + 1:
            return (), None
        column = _integers(packed, first, begin, signed=kind == "int") + (field.offset or 0)
        if kind == "bool":
            column = (column != 0).astype(np.int64)
            low, high = 0, 1
        else:
            low, high = int(column.min()), int(column.max())
            low = low if field.lower is None else min(int(field.lower), low)
            high = high if field.upper is None else max(int(field.upper), high)
        if low < -(2**31) or high >= 2**31:
            return (), None
        variables.append(Variable(field.name, low, high, kind == "bool"))
        columns.append(column.astype(np.int32))
    return tuple(variables), np.stack(columns, axis=1) if columns else None


def _integers(packed: AnyArray, first: int, last: int, *, signed: bool) -> IntArray:
    """Return the numbers in the bits first..last - 1 of every row of bytes, (S,)."""
    begin, end = first // 8, -(-last // 8)
    bits = np.unpackbits(packed[:, begin:end], axis=1, bitorder="little")
    bits = bits[:, first - 8 * begin : last - 8 * begin]
    value = np.zeros(len(packed), dtype=np.uint64)
    for place in range(last - first):
        value |= bits[:, place].astype(np.uint64) << np.uint64(place)
    number = value.view(np.int64)
    if signed and last - first < 64:
        number = number - ((number >> (last - first - 1)) << (last - first))
    return number


def _word(kind: Any) -> str:
    """Return umbi's name of a type."""
    return str(getattr(kind, "value", kind))


def _rounded(value: Fraction, towards: float) -> float:
    """Return a float on the given side of a fraction, or equal to it."""
    near = float(value)
    beyond = Fraction(near) > value if towards < 0 else Fraction(near) < value
    return float(np.nextafter(near, towards)) if beyond else near
