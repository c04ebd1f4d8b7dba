"""Model files that somebody damaged or forged: a model or one line, never anything else."""

from __future__ import annotations

import io
import json
import tarfile

import numpy as np
import pytest

import rfmdp as rf
from rfmdp import memory
from rfmdp.errors import FileError, ResourceError, RfmdpError
from rfmdp.formats.prism_explicit import read_prism_explicit, write_prism_explicit
from rfmdp.model.validate import validate

from .models import random_model


@pytest.fixture
def one_gigabyte(monkeypatch):
    """Let there be one gigabyte of memory, so that nothing is tried that takes more."""
    monkeypatch.setattr(memory, "available_memory", lambda: 10**9)


def damaged(rng, data):
    """Return a text with one to three changes: cut, bytes replaced, lines repeated or removed."""
    for _ in range(rng.integers(1, 4)):
        act, at = rng.integers(5), int(rng.integers(max(1, len(data))))
        if act == 0:
            data = data[:at]
        elif act == 1:
            data = data[:at] + bytes([rng.integers(256)]) + data[at + 1 :]
        elif act == 2:
            junk = [b"-1", b"nan", b"1e999", b"9" * 40, b"[1,", b'"', b"$", b"\x00", b"_", b"//["]
            data = data[:at] + junk[rng.integers(len(junk))] + data[at:]
        else:
            lines = data.split(b"\n")
            i = int(rng.integers(len(lines)))
            data = b"\n".join(
                lines[:i] + (lines[i : i + 1] * 2 if act == 3 else []) + lines[i + 1 :]
            )
    return data


@pytest.mark.filterwarnings("ignore::rfmdp.errors.PrismWarning")
@pytest.mark.parametrize("kind", ["known", "box"])
@pytest.mark.parametrize("ending", [".tra", ".lab", ".sta", "1.srew", "1.trew"])
def test_damaged_texts_end_in_a_model_or_one_line(tmp_path, one_gigabyte, ending, kind):
    """Whatever is changed: no other exception, no second line, and every model is one."""
    rng = np.random.default_rng(3)
    model = random_model(rng, kind)
    write_prism_explicit(model, tmp_path / "m")
    path = tmp_path / f"m{ending}"
    data, lines = path.read_bytes(), []
    for _ in range(60):
        path.write_bytes(damaged(rng, data))
        try:
            assert not validate(read_prism_explicit(tmp_path / "m"))
        except RfmdpError as error:
            lines.append(str(error))
    assert len(lines) > 10
    assert all(line.startswith(str(tmp_path / "m")) and "\n" not in line for line in lines)


def test_sizes_that_a_file_only_claims(tmp_path, one_gigabyte):
    """Labels that no state has take no memory that is not there."""
    many = 40_000
    lines = "".join(f"{s} {s} 1\n" for s in range(many))
    (tmp_path / "m.tra").write_text(f"{many} {many}\n{lines}")
    names = " ".join(f'{i}="l{i}"' for i in range(many))
    (tmp_path / "m.lab").write_text(f"{names}\n0: 0\n")
    with pytest.raises(ResourceError, match=r"m\.lab: 40000 labels of 40000 states: needs"):
        read_prism_explicit(tmp_path / "m")


@pytest.mark.parametrize("entity", ["states", "choices", "branches", "choice-actions"])
@pytest.mark.parametrize("size", [10**9, 10**15, 2**63, 2**70])
def test_an_index_without_its_arrays(tmp_path, one_gigabyte, entity, size):
    """The arrays of a UMB file may be missing; a forged size must not make them."""
    path = tmp_path / "m.umb"
    rf.write_umb(random_model(np.random.default_rng(5)), path)
    with tarfile.open(path) as tar:
        index = json.loads(tar.extractfile("index.json").read())
    sizes = index["transition-system"]
    sizes |= {f"#{name}": size for name in ("states", "choices", "branches")}
    sizes[f"#{entity}"] = size
    for absent in ("annotations", "valuations"):
        index.pop(absent, None)
    data = json.dumps(index).encode()
    with tarfile.open(path, "w") as tar:
        entry = tarfile.TarInfo("index.json")
        entry.size = len(data)
        tar.addfile(entry, io.BytesIO(data))
    with pytest.raises((FileError, ResourceError)) as caught:
        rf.read_umb(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
