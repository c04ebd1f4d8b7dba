"""Save and load models and results: one file each, versioned, checked, written atomically.

A file is a zip archive without compression: `header.json` and one `.npy` array per entry, nothing
pickled. Its last 64 bytes are the SHA-256 digest of all others, so that a file altered anywhere is
noticed. It is written beside its final place and moved there when complete: whoever reads sees the
old file or the new one, whatever interrupts.

Further types join by two lines: a registration of `to_record` for the type, in its own module, and
an entry in `READERS`, which names the function that makes the object again.

>>> @to_record.register  # doctest: +SKIP
... def _(policy: Policy) -> Record:
...     return "policy", {"horizon": 3}, {"choices": policy.choices}
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from rfmdp import __version__
from rfmdp.errors import FileError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.record import Record, to_record
from rfmdp.types import AnyArray
from rfmdp.writing import replacing

FORMAT = "rfmdp"
FORMAT_VERSION = 1
HEADER = "header.json"
MARK = b"rfmdp sha256 "
DIGEST = 64  # hexadecimal digits at the end of a file
BLOCK = 1 << 22
EPOCH = (1980, 1, 1, 0, 0, 0)  # of all entries: equal objects give equal files

SAVED = ".rfmdp"
EXPLICIT: dict[str, str] = {  # ending -> "module:function" of (path)
    ".drn": "rfmdp.formats.drn:read_drn",
    ".tra": "rfmdp.formats.prism_explicit:read_prism_explicit",
}
PRISM: dict[str, str] = dict.fromkeys(
    (".prism", ".nm", ".pm", ".sm", ".imdp", ".idtmc", ".mdp", ".dtmc"),
    "rfmdp.language.load:load_prism",
)
READERS: dict[str, str] = {  # kind -> "module:function" of (header, arrays)
    "model": "rfmdp.model.record:model_from_record",
    "learning run": "rfmdp.learning.run:run_from_record",
    "transitions": "rfmdp.sources.recorded:transitions_from_record",
    "solution": "rfmdp.outer.record:solution_from_record",
    "policy": "rfmdp.outer.record:policy_from_record",
}


@to_record.register
def _(model: FactoredMDP) -> Record:
    from rfmdp.model.record import model_to_record

    return model_to_record(model)


def save(obj: object, path: str | os.PathLike[str]) -> None:
    """Write an object to a file, which is replaced only when all is written.

    Raises
    ------
    UnsupportedError
        If the type has no record.
    FileError
        If the file cannot be written.
    """
    kind, header, arrays = to_record(obj)
    place = Path(path)
    with replacing(place) as part, part.open("x+b") as file:
        _write(file, kind, header, arrays)
        _sign(file)
        file.flush()
        os.fsync(file.fileno())
    _sync_directory(place.parent)


def load(path: str | os.PathLike[str], kind: str | None = None) -> Any:
    """Return the object in a file that `save` wrote, or the model in one of another tool.

    Parameters
    ----------
    path
        The file. `.tra`, `.drn` and the endings of the PRISM language are models; any other file
        must be one that `save` wrote.
    kind
        What must be in it, "model" for instance; by default anything.

    Raises
    ------
    FileError
        If the file is missing, damaged, truncated, of another kind, or from a newer version.
    """
    place = Path(path)
    foreign = (EXPLICIT | PRISM).get(place.suffix)
    found, header, arrays = ("model", {}, {}) if foreign else load_record(place)
    if kind is not None and found != kind:
        raise FileError(f"{place}: must hold a {kind}, holds a {found}; give another file.")
    if foreign:
        return _named(foreign)(place)
    if found not in READERS:
        raise FileError(
            f"{place}: holds a {found}, which this version of rfmdp cannot read; it reads: "
            f"{', '.join(sorted(READERS))}."
        )
    try:
        return _named(READERS[found])(header, arrays)
    except KeyError as error:
        raise FileError(f"{place}: holds a {found} without {error}; make it again.") from error


def _named(place: str) -> Callable[..., Any]:
    """Return the function at "module:function"; imported when it is needed."""
    module, function = place.split(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


def load_record(path: str | os.PathLike[str]) -> Record:
    """Return what is in a file, checked but not yet made an object."""
    place = Path(path)
    try:
        with place.open("rb") as file:
            _check_digest(place, file)
            with zipfile.ZipFile(file) as archive:
                return _read(place, archive)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise FileError(f"{place}: cannot be read ({reason}); check the name.") from error
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{place}: is damaged ({error}); make it again.") from error


def _write(
    file: BinaryIO, kind: str, header: Mapping[str, Any], arrays: Mapping[str, AnyArray]
) -> None:
    """Write the archive, with a place for the digest at its end."""
    top = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": kind,
        "package_version": __version__,
        "arrays": list(arrays),
        "content": dict(header),
    }
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.comment = MARK + b"0" * DIGEST
        archive.writestr(zipfile.ZipInfo(HEADER, EPOCH), json.dumps(top, indent=1))
        for i, array in enumerate(arrays.values()):
            entry = zipfile.ZipInfo(f"{i}.npy", EPOCH)
            with archive.open(entry, "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.ascontiguousarray(array), allow_pickle=False)


def _read(place: Path, archive: zipfile.ZipFile) -> Record:
    """Return the record in an archive whose digest was right."""
    top = json.loads(archive.read(HEADER))
    if not isinstance(top, dict) or top.get("format") != FORMAT:
        raise FileError(f"{place}: is not a file of rfmdp.")
    if top["format_version"] > FORMAT_VERSION:
        raise FileError(
            f"{place}: was written by rfmdp {top['package_version']} in format version "
            f"{top['format_version']}; this is rfmdp {__version__}, which reads up to version "
            f"{FORMAT_VERSION}; upgrade rfmdp."
        )
    arrays = {}
    for i, name in enumerate(top["arrays"]):
        with archive.open(f"{i}.npy") as stream:
            arrays[name] = np.lib.format.read_array(stream, allow_pickle=False)
    return top["kind"], top["content"], arrays


def _digest(file: BinaryIO, length: int) -> bytes:
    """Return the digest of the first bytes of a file."""
    file.seek(0)
    digest = hashlib.sha256()
    while length > 0:
        block = file.read(min(BLOCK, length))
        if not block:
            break
        digest.update(block)
        length -= len(block)
    return digest.hexdigest().encode()


def _sign(file: BinaryIO) -> None:
    """Replace the last bytes of a file by the digest of the others."""
    file.flush()
    length = file.seek(0, os.SEEK_END) - DIGEST
    found = _digest(file, length)
    file.seek(length)
    file.write(found)


def _check_digest(place: Path, file: BinaryIO) -> None:
    """Raise a FileError unless the file is whole and unchanged."""
    start = file.read(2)
    length = file.seek(0, os.SEEK_END) - DIGEST
    if start != b"PK":
        raise FileError(f"{place}: is not a file of rfmdp; give one that `save` wrote.")
    file.seek(max(0, length - len(MARK)))
    if file.read(len(MARK)) != MARK:
        raise FileError(
            f"{place}: is truncated, or not a file of rfmdp: no checksum at its end; make it again."
        )
    stored = file.read()
    if _digest(file, length) != stored:
        raise FileError(f"{place}: is damaged: its checksum is wrong; make it again.")
    file.seek(0)


def _sync_directory(directory: Path) -> None:
    """Make a replacement durable where directories can be synced."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
