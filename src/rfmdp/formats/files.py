"""Save and load models, results and policies: one file each, checked, written atomically.

A file is a zip archive without compression: `header.json` and one `.npy` array per entry, nothing
pickled. The last 64 bytes are the SHA-256 digest of all others, so that a file altered anywhere is
noticed. That is no proof of good will: whoever alters a file can sign it again. So nothing in it is
believed before it is checked: an archive never unpacks to more than its own size, an array to no
more than its entry has, and `records` looks at what they say.

A further type needs two things: a registration of `to_record` in its own module, and an entry in
`READERS`, which names the function that makes the object again.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import zipfile
from importlib import import_module
from pathlib import Path
from tokenize import TokenError
from typing import Any, BinaryIO

import numpy as np

from rfmdp import __version__
from rfmdp.errors import FileError, ResourceError, RfmdpError
from rfmdp.memory import require_memory
from rfmdp.record import Record, field, to_record
from rfmdp.types import AnyArray
from rfmdp.writing import replacing

SAVED = ".rfmdp"
RECORDS = "rfmdp.formats.records"  # loaded when an object is saved or made
READERS: dict[str, str] = {  # kind -> "module:function" of (header, arrays)
    "model": f"{RECORDS}:model_from_record",
    "solution": f"{RECORDS}:solution_from_record",
    "policy": f"{RECORDS}:policy_from_record",
    "learning run": "rfmdp.learning.run:run_from_record",
}
FORMAT = "rfmdp"
FORMAT_VERSION = 3  # history: docs/formats.md
HEADER = "header.json"
MARK = b"rfmdp sha256 "
DIGEST = 64  # hexadecimal digits at the end of a file
BLOCK = 1 << 22
EPOCH = (1980, 1, 1, 0, 0, 0)  # of all entries: equal objects give equal files
KINDS = "biufU"  # of arrays: booleans, numbers and texts


def save(obj: object, path: str | os.PathLike[str]) -> None:
    """Write an object to a file, which is replaced only when all is written.

    Raises UnsupportedError if the type has no record, FileError if the file cannot be written.
    """
    record = record_of(obj)
    with replacing(path) as temporary, temporary.open("x+b") as file:
        write_archive(file, record)
        sign(file)
        file.flush()
        os.fsync(file.fileno())


def record_of(obj: object) -> Record:
    """Return (kind, header, arrays) of an object, as `to_record` does once all are registered."""
    import_module(RECORDS)
    return to_record(obj)


def load(path: str | os.PathLike[str], kind: str | None = None) -> Any:
    """Return the object in a file that `save` wrote; `open_model` also reads other formats.

    `kind` is what must be in it, "model" for instance; by default anything.

    Raises
    ------
    FileError
        If the file is missing, damaged, truncated, of another kind, or from a newer version.
    """
    place = Path(path)
    content, header, arrays = load_record(place)
    wanted = sorted(READERS) if kind is None else [kind]
    if content not in wanted:
        listed = " or ".join(wanted)
        raise FileError(f"{place}: must hold a {listed}, holds a {content}; give another file.")
    module, function = READERS[content].split(":")
    try:
        return getattr(import_module(module), function)(header, arrays)
    except KeyError as error:
        raise FileError(f"{place}: holds a {content} without {error}; make it again.") from error
    except ResourceError:
        raise
    except (
        RfmdpError, ArithmeticError, TypeError, ValueError, AttributeError, IndexError,
        RecursionError,
    ) as error:  # fmt: skip
        # whoever altered and signed a file may have put anything anywhere
        lines = [line.strip() for line in (str(error) or type(error).__name__).splitlines()]
        reason = " ".join(lines[:2]).rstrip(".")
        raise FileError(
            f"{place}: holds a {content} that is not well formed ({reason})."
        ) from error


def write_archive(file: BinaryIO, record: Record) -> None:
    """Write a record, with a place for the digest at its end."""
    kind, header, arrays = record
    top = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": kind,
        "package_version": __version__,
        "arrays": list(arrays),
        "content": header,
    }
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.comment = MARK + b"0" * DIGEST
        archive.writestr(zipfile.ZipInfo(HEADER, EPOCH), json.dumps(top, indent=1))
        for i, array in enumerate(arrays.values()):
            entry = zipfile.ZipInfo(f"{i}.npy", EPOCH)
            with archive.open(entry, "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.ascontiguousarray(array), allow_pickle=False)


def sign(file: BinaryIO) -> None:
    """Replace the last bytes of a file by the digest of the others."""
    file.flush()
    length = file.seek(0, os.SEEK_END) - DIGEST
    digest = _digest(file, length)
    file.seek(length)
    file.write(digest)


def load_record(path: str | os.PathLike[str]) -> Record:
    """Return what is in a file, checked but not yet made an object.

    Raises
    ------
    FileError
        If anything in it is not as `write_archive` and `sign` leave it.
    """
    place = Path(path)
    try:
        with place.open("rb") as file:
            _check_digest(file)
            with zipfile.ZipFile(file) as archive:
                size, length = 0, file.seek(0, os.SEEK_END)
                for entry in archive.infolist():
                    size += entry.file_size
                    if size > length or entry.compress_type != zipfile.ZIP_STORED:
                        raise ValueError(
                            f"it would unpack to more than its {length:,} bytes; files of rfmdp "
                            "are not compressed"
                        )
                require_memory(size, f"{place}: its arrays")
                kind, content, names = _read_header(archive)
                arrays = {n: _read_array(archive, f"{i}.npy") for i, n in enumerate(names)}
    except ResourceError:
        raise
    except FileError as error:
        raise FileError(f"{place}: {error}") from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise FileError(f"{place}: cannot be read ({reason}); check the name.") from error
    except (
        zipfile.BadZipFile, NotImplementedError, LookupError, ValueError, EOFError, RecursionError,
        MemoryError, RuntimeError, OverflowError, SyntaxError, TokenError,
    ) as error:  # fmt: skip
        reason = " ".join(str(error).split()) or type(error).__name__
        raise FileError(f"{place}: is damaged ({reason}); make it again.") from error
    return kind, content, arrays


def _read_header(archive: zipfile.ZipFile) -> tuple[str, dict[str, Any], list[str]]:
    """Return the kind, the content and the names of the arrays that a header tells."""
    top = json.loads(archive.read(HEADER))
    if field(top, "format", str) != FORMAT:
        raise FileError("is not a file of rfmdp.")
    version, names = field(top, "format_version", int), field(top, "arrays", list)
    if version != FORMAT_VERSION:
        advice = "upgrade rfmdp" if version > FORMAT_VERSION else "make it again"
        raise FileError(
            f"was written by rfmdp {top.get('package_version')!s:.20} in format version {version}; "
            f"this is rfmdp {__version__}, which reads version {FORMAT_VERSION}; {advice}, or use "
            "that rfmdp."
        )
    count = len(archive.infolist()) - 1
    texts = all(isinstance(name, str) for name in names)
    if not texts or not len(names) == len(set(names)) == count:
        raise ValueError(f"the header names {len(names)} arrays, needs {count} different names")
    return field(top, "kind", str), field(top, "content", dict), names


def _read_array(archive: zipfile.ZipFile, name: str) -> AnyArray:
    """Return an array whose declared size is that of its entry."""
    with archive.open(name) as stream:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError(f"{name} must have version 1.0 of NumPy's format")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
        data = bytearray(stream.read())  # so that the array may be written to
    size = math.prod(shape) * dtype.itemsize
    plain = dtype.kind in KINDS and not dtype.shape and not fortran
    if not plain or size != len(data) or any(side < 0 for side in shape):
        raise ValueError(
            f"{name} declares {size:,} bytes of {dtype} in the shape {shape}, has {len(data):,}; "
            "it must hold numbers, booleans or texts in C order"
        )
    return np.frombuffer(data, dtype=dtype).reshape(shape)


def _digest(file: BinaryIO, length: int) -> bytes:
    """Return the digest of the first bytes of a file."""
    file.seek(0)
    digest = hashlib.sha256()
    for start in range(0, length, BLOCK):
        digest.update(file.read(min(BLOCK, length - start)))
    return digest.hexdigest().encode()


def _check_digest(file: BinaryIO) -> None:
    """Raise a FileError unless a file is whole and unchanged."""
    length = file.seek(0, os.SEEK_END) - DIGEST
    file.seek(max(0, length - len(MARK)))
    if file.read(len(MARK)) != MARK:
        raise FileError(
            "is not a file of rfmdp, or truncated: no checksum at its end; give one that `-o`, or "
            "`save` in Python, wrote; `open_model` reads models of other tools."
        )
    if file.read() != _digest(file, length):
        raise FileError("is damaged: its checksum is wrong; make it again.")
