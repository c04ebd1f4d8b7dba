"""Files as somebody else would write them: any header, any entries, signed as if they were ours."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np

from rfmdp.formats.files import DIGEST, HEADER, MARK, record_of, sign, write_archive


def record_bytes(kind, header, arrays):
    """Return the file of a record."""
    file = io.BytesIO()
    write_archive(file, (kind, header, arrays))
    sign(file)
    return file.getvalue()


def saved_bytes(obj):
    """Return the file of an object."""
    return record_bytes(*record_of(obj))


def rewritten(content, change, compression=zipfile.ZIP_STORED):
    """Return a file with its entries changed and signed again.

    change : edits a dictionary of entries, name to bytes, in place
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    change(entries)
    return zipped(entries, compression)


def zipped(entries, compression=zipfile.ZIP_STORED):
    """Return a signed archive of some entries."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.comment = MARK + b"0" * DIGEST
        for name, data in entries.items():
            archive.writestr(name, data)
    sign(file)
    return file.getvalue()


def with_header(content, edit):
    """Return a file whose header, as a dictionary, was edited in place."""

    def change(entries):
        top = json.loads(entries[HEADER])
        edit(top)
        entries[HEADER] = json.dumps(top).encode()

    return rewritten(content, change)


def npy(array):
    """Return an array in NumPy's format."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), allow_pickle=True)
    return stream.getvalue()


def npy_header(text, data=b""):
    """Return what NumPy's format looks like with a header of our own."""
    body = text.encode()
    body += b" " * (63 - (len(body) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body + data
