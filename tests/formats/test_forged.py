"""Files that were altered and signed again: one clear line each, no memory, no crash."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile

import numpy as np
import pytest

import rfmdp as rf
from formats.forge import npy, npy_header, record_bytes, rewritten, saved_bytes, with_header, zipped
from rfmdp.errors import FileError
from rfmdp.formats.files import HEADER, load, record_of


@pytest.fixture(scope="module")
def model():
    """Return one uncertain step."""
    return rf.FactoredMDP.from_rows(
        [[([0], [1, 2])], [([], [1])], [([], [2])]],
        [rf.Interval([0.2, 0.4], [0.6, 0.8])],
        labels={"goal": [False, True, False]},
        rewards={"cost": rf.Rewards(np.ones(3), np.zeros(3))},
    )


def refused(tmp_path, content, *words):
    """Assert that a file is refused in one line with some words, and return the line."""
    path = tmp_path / "m.rfmdp"
    path.write_bytes(content)
    with pytest.raises(FileError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    for word in words:
        assert word in message
    return message


HEADERS = [
    (lambda top: top.update(format_version="1"), "format_version must be a int, found '1'"),
    (lambda top: top.update(format_version=True), "format_version must be a int, found True"),
    (lambda top: top.update(kind=["model"]), "kind must be a str"),
    (lambda top: top.update(arrays="row_ptr"), "arrays must be a list"),
    (lambda top: top.update(arrays=["row_ptr"] * len(top["arrays"])), "different names"),
    (lambda top: top["arrays"].append("more"), "the header names"),
    (lambda top: top.update(content=[]), "content must be a dict"),
    (lambda top: top.pop("content"), "is damaged ('content')"),
    (lambda top: top["content"].update(actions="a0"), "actions must be a list"),
    (lambda top: top["content"].update(actions=[1]), "actions must be texts"),
    (lambda top: top["content"].update(variables=[3]), "must stand in an object"),
    (lambda top: top["content"].update(variables=[{"name": "x"}]), "without 'low'"),
    (lambda top: top["content"].update(formulas={"f": []}), "formula 'f' must be a number"),
    (lambda top: top["content"].update(formulas={"f": {"expression": "1 +"}}), "not well formed"),
    (lambda top: top["content"].update(formulas={"f": {"expression": 5}}), "must be a str"),
]


@pytest.mark.parametrize(("edit", "words"), HEADERS)
def test_crafted_headers(tmp_path, model, edit, words):
    """Every field of another type is told."""
    content = with_header(saved_bytes(model), edit)
    refused(tmp_path, content, words)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_deep_headers(tmp_path, model, opening):
    """A header nested very deep is refused."""

    def change(entries):
        entries[HEADER] = (opening * 100_000).encode()

    refused(tmp_path, rewritten(saved_bytes(model), change), "is damaged")


def test_headers_that_are_no_json(tmp_path, model):
    """Bytes that are no text, no JSON, or no object are damage."""
    for data in (b"\xff\xfe", b"{", b"[]", b"1", b"", b'{"format": 1}'):
        refused(tmp_path, rewritten(saved_bytes(model), lambda e, d=data: e.update({HEADER: d})))
    refused(tmp_path, zipped({}), "is damaged")


ARRAYS = [
    npy_header("{'descr': '<i8', 'fortran_order': False, 'shape': (1099511627776,), }"),
    npy_header("{'descr': '<i8', 'fortran_order': False, 'shape': (-4,), }"),
    npy_header("{'descr': '<i8', 'fortran_order': False, 'shape': (2, 2), }", b"x" * 24),
    npy_header("{'descr': '<i8', 'fortran_order': True, 'shape': (2, 2), }", b"x" * 32),
    npy_header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"x" * 8),
    npy_header("{'descr': [('a', '<i8')], 'fortran_order': False, 'shape': (1,), }", b"x" * 8),
    npy_header("{'descr': ('<i8', (4,)), 'fortran_order': False, 'shape': (1,), }", b"x" * 32),
    npy_header("{'descr': '<V0', 'fortran_order': False, 'shape': (9,), }"),
    npy_header("(" * 4000),
    npy_header("{'descr': '<i8', 'fortran_order': False, 'shape': ('a',), }"),
    npy_header("{'descr': '<q9', 'fortran_order': False, 'shape': (1,), }"),
    b"\x93NUMPY\x07\x00",
    b"",
    b"text",
    npy(np.array([None])),
]


@pytest.mark.parametrize("data", ARRAYS, ids=range(len(ARRAYS)))
def test_crafted_arrays(tmp_path, model, data):
    """Shapes, types and orders that the data do not have are refused before memory is taken."""
    content = rewritten(saved_bytes(model), lambda entries: entries.update({"0.npy": data}))
    tracemalloc.start()
    refused(tmp_path, content, "is damaged")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000


def test_archives_that_unpack_to_more(tmp_path, model):
    """A megabyte of zeros in a kilobyte is refused by its declared size, unopened."""

    def change(entries):
        entries["0.npy"] = npy(np.zeros(1 << 20))

    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        content = rewritten(saved_bytes(model), change, method)
        refused(tmp_path, content, "would unpack to", "files of rfmdp are not compressed")


def test_entries_that_share_their_bytes(tmp_path):
    """A directory that names the same bytes many times is refused."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(HEADER, "{}")
        archive.writestr("0.npy", npy(np.zeros(1 << 12)))
        for i in range(1, 40):
            entry = zipfile.ZipInfo(f"{i}.npy")
            first = archive.getinfo("0.npy")
            for name in ("header_offset", "file_size", "compress_size", "CRC"):
                setattr(entry, name, getattr(first, name))
            archive.filelist.append(entry)
            archive.NameToInfo[entry.filename] = entry
        archive.comment = b"rfmdp sha256 " + b"0" * 64
    from rfmdp.formats.files import sign

    sign(file)
    refused(tmp_path, file.getvalue(), "would unpack to")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_entries_that_stand_twice(tmp_path):
    """One name, two entries: which one counts is nobody's guess."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.comment = b"rfmdp sha256 " + b"0" * 64
        archive.writestr(HEADER, "{}")
        archive.writestr(HEADER, "{}")
    from rfmdp.formats.files import sign

    sign(file)
    refused(tmp_path, file.getvalue(), "is damaged")


SETS = [
    ("marginals.lower", np.array([-3.0, 0.4]), "outcome 0 has -3.0"),
    ("marginals.upper", np.array([0.6, 7.0]), "7.0; and sums"),
    (
        "marginals.kind",
        np.array([99], dtype=np.int8),
        "must be a box, a ball or a list of vertices",
    ),
    ("marginals.nominal", np.array([0.6, np.nan]), "nan, "),
    ("marginals.nominal", np.array([0.5, 0.6]), "and sums of at most 1, of 1"),
    ("row_reward.0", np.array([0.0, np.inf, 0.0]), "row 1 has inf"),
    ("successors", np.array([1, 9, 1, 2], dtype=np.int32), "successors must be within 0..2"),
    ("successors", np.array([1.0, 2.0, 1.0, 2.0]), "successors: must be int32"),
    ("row_ptr", np.array([0, 2**62, 1, 3]), "row_ptr"),
    ("initial", np.array([], dtype=np.int64), "Initial states: there must be at least one"),
    ("label.0", np.zeros((3, 1), dtype=np.bool_), "got the shape (3, 1)"),
    ("label.0", np.array(True), "must have one entry per state (3), got 1"),
]


@pytest.mark.parametrize(("name", "array", "words"), SETS)
def test_altered_numbers(tmp_path, model, name, array, words):
    """A model in a file is validated like one that was built, its sets included."""
    kind, header, arrays = record_of(model)
    assert name in arrays
    refused(tmp_path, record_bytes(kind, header, arrays | {name: array}), words)


SOLUTIONS = [
    ({"status": "PERFECT"}, {}, "'PERFECT'"),
    ({"agent": "BOTH"}, {}, "'BOTH'"),
    ({"precision": "high"}, {}, "precision must be a float"),
    ({"witness": 1}, {}, "witness must be a bool"),
    ({"stats": {}}, {}, "without 'seconds'"),
    ({"objective": {"type": "Spec"}}, {}, "does not know the objective 'Spec'"),
    ({"objective": {"type": "Reach"}}, {}, "target"),
    ({"objective": {"type": "Reach", "target": "nowhere"}}, {}, 'Label "nowhere"'),
    ({"objective": {"type": "Reach", "target": 5}}, {}, "target"),
    ({"objective": {"type": "Discounted", "discount": -5.0}}, {}, "discount"),
    ({"objective": {"type": "Discounted", "discount": "0.9"}}, {}, "discount"),
    ({"objective": {"type": "Cumulative", "steps": 2.5}}, {}, "steps"),
    ({"objective": {"type": "Total", "reward": 3}}, {}, "reward"),
    ({"objective": {"type": "Total", "reward": "gold"}}, {}, "gold"),
    ({}, {"value": np.zeros(2)}, "value must have one number per state (3)"),
    ({}, {"lower": np.full(3, np.nan)}, "lower must have one number per state"),
    ({}, {"policy": np.array([[0, 1, 7]])}, "policy must choose rows of the states themselves"),
    ({}, {"policy": np.array([0, 1, 2])}, "policy must be integers >= 0 of the shape (steps, 3)"),
]


@pytest.mark.parametrize(("changes", "new", "words"), SOLUTIONS)
def test_altered_solutions(tmp_path, model, changes, new, words):
    """The fields of a solution have their types and fit its model."""
    kind, header, arrays = record_of(rf.solve(model, rf.Spec(rf.Reach("goal"))))
    changed = json.loads(json.dumps(header | changes))
    refused(tmp_path, record_bytes(kind, changed, arrays | new), words)


def test_altered_policies(tmp_path):
    """A policy has a row per state and step."""
    for rows in (np.zeros(3, dtype=np.int64), np.zeros((1, 3)), np.full((1, 3), -1)):
        refused(
            tmp_path, record_bytes("policy", {}, {"rows": rows}), "policy must be integers >= 0"
        )
