"""Save and load: round trips, atomic replacement, and every kind of damage."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass, fields, replace

import numpy as np
import pytest

from formats.models import random_model
from rfmdp.errors import FileError, UnsupportedError
from rfmdp.formats import files
from rfmdp.formats.files import FORMAT_VERSION, READERS, load, load_record, save
from rfmdp.formats.records import NAMES
from rfmdp.language.ast import Expr
from rfmdp.language.expressions import write_expression
from rfmdp.language.parse import parse_expression
from rfmdp.model.arrays import FactoredMDP, Variable
from rfmdp.model.validate import ARRAYS
from rfmdp.record import Record, to_record
from rfmdp.sets.families import Interval, L1Ball, LpBall, Polytope, Singleton
from rfmdp.sets.marginals import Marginals


@dataclass(frozen=True)
class Note:
    """A type that only these tests save."""

    text: str
    numbers: np.ndarray


@to_record.register
def _(note: Note) -> Record:
    return "note", {"text": note.text}, {"numbers": note.numbers}


def read_note(header, arrays):
    """Make a note again; named in READERS by the fixture."""
    return Note(header["text"], arrays["numbers"])


@pytest.fixture
def notes(monkeypatch):
    """Let files hold notes."""
    monkeypatch.setitem(READERS, "note", f"{__name__}:read_note")


@pytest.fixture
def small():
    """Return a tiny model."""
    return FactoredMDP.from_rows([[([0], [0, 1])], [([], [1])]], [Singleton([0.5, 0.5])])


def assert_equal(found, expected):
    """Assert that two models agree in everything, types of arrays included."""
    for name in ARRAYS:
        a, b = getattr(found, name), getattr(expected, name)
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)
        assert not a.flags.writeable
    for field in fields(Marginals):
        a, b = (getattr(m.marginals, field.name) for m in (found, expected))
        if a is None or b is None:
            assert a is b
            continue
        assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    assert all(getattr(found, name) == getattr(expected, name) for name in ("factors", *NAMES))
    assert found.variables == expected.variables
    assert list(found.labels) == list(expected.labels)
    assert all(np.array_equal(found.labels[k], v) for k, v in expected.labels.items())
    assert list(found.rewards) == list(expected.rewards)
    for name, rewards in expected.rewards.items():
        assert np.array_equal(found.rewards[name].state, rewards.state)
        assert np.array_equal(found.rewards[name].row, rewards.row)


@pytest.mark.parametrize("kind", ["known", "box", "l1"])
@pytest.mark.parametrize("name", ["model.rfmdp", "model", "model.npz"])
def test_models_come_back(tmp_path, kind, name):
    """A model comes back bit by bit, whatever the ending of the file."""
    model = random_model(np.random.default_rng(1), kind, factors=3)
    save(model, tmp_path / name)
    assert_equal(load(tmp_path / name), model)
    assert_equal(load(tmp_path / name, kind="model"), model)


def test_all_sets_and_names_come_back(tmp_path):
    """Every family of sets, names with any letters, and an empty model of variables."""
    sets = [
        Singleton([0.5, 0.5]),
        Interval([0.0, 0.5], [0.5, 1.0]),
        L1Ball([0.5, 0.5], 0.2),
        LpBall([0.5, 0.5], 0.2, 2.0),
        Polytope([[0.2, 0.8], [0.6, 0.4]]),
    ]
    rows = [[([j], [0, 0], f"schön {j}") for j in range(len(sets))]]
    model = replace(
        FactoredMDP.from_rows(rows, sets, labels={'a "b" / ü': [True]}),
        variables=(Variable("x", 0, 3),),
        valuations=np.array([[2]], dtype=np.int32),
        marginal_names=tuple("vwxyz"),
        outcome_names=tuple(f"o{i}" for i in range(10)),
    )
    save(model, tmp_path / "m")
    assert_equal(load(tmp_path / "m"), model)


def test_formulas_come_back(tmp_path, small):
    """Constants keep their type, expressions their text."""
    formula = parse_expression("x > 2 & (b | N = 3)")
    model = replace(small, formulas={"N": 3, "p": 0.1, "t": True, "far": formula})
    save(model, tmp_path / "m")
    found = load(tmp_path / "m").formulas
    assert [(k, type(v)) for k, v in found.items() if not isinstance(v, Expr)] == [
        ("N", int),
        ("p", float),
        ("t", bool),
    ]
    assert write_expression(found["far"]) == write_expression(formula)
    with pytest.raises(UnsupportedError, match="formula 'f' must be a number"):
        save(replace(small, formulas={"f": object()}), tmp_path / "m")


def test_equal_models_give_equal_files(tmp_path, small):
    """Nothing in a file depends on the time or the place of writing."""
    save(small, tmp_path / "a")
    save(small, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_any_zip_reader_can_look_inside(tmp_path, small):
    """The header is JSON and the arrays are those of NumPy."""
    save(small, tmp_path / "m.rfmdp")
    with zipfile.ZipFile(tmp_path / "m.rfmdp") as archive:
        assert archive.testzip() is None
        header = json.loads(archive.read("header.json"))
    assert header["format"] == "rfmdp"
    assert header["format_version"] == FORMAT_VERSION
    assert header["kind"] == "model"
    assert header["arrays"][0] == "row_ptr"


def test_other_types_join(tmp_path, notes):
    """A registered type is saved and loaded; another one is refused by name."""
    save(Note("hello", np.arange(3)), tmp_path / "n")
    found = load(tmp_path / "n")
    assert (found.text, found.numbers.tolist()) == ("hello", [0, 1, 2])
    with pytest.raises(FileError, match="n: must hold a model, holds a note"):
        load(tmp_path / "n", kind="model")
    with pytest.raises(UnsupportedError, match=r"cannot write a dict.*FactoredMDP"):
        save({}, tmp_path / "d")


def test_unknown_kind(tmp_path):
    """A kind that no reader is named for is told."""
    save(Note("", np.zeros(1)), tmp_path / "n")
    with pytest.raises(
        FileError, match=r"n: must hold a learning run or model or .*, holds a note"
    ):
        load(tmp_path / "n")


def test_objects_are_never_pickled(tmp_path):
    """An array of objects is refused, and no file appears."""
    with pytest.raises(ValueError, match="Object arrays"):
        save(Note("", np.array([object()])), tmp_path / "n")
    assert list(tmp_path.iterdir()) == []


def test_newer_versions_are_refused(tmp_path, small, monkeypatch):
    """A file of a later format names both versions and says to upgrade."""
    monkeypatch.setattr(files, "FORMAT_VERSION", FORMAT_VERSION + 1)
    save(small, tmp_path / "m")
    monkeypatch.undo()
    told = rf"m: was written by rfmdp .* version {FORMAT_VERSION}.*upgrade rfmdp"
    with pytest.raises(FileError, match=told):
        load(tmp_path / "m")


@pytest.mark.parametrize("content", [b"", b"P", b"hello", b"PK", b"PK\x03\x04" + b"x" * 500])
def test_other_files_are_refused(tmp_path, content):
    """Whatever is no file of rfmdp is told by name, without a traceback of zipfile."""
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(FileError, match="m: is "):
        load(tmp_path / "m")


def test_missing_files_and_folders(tmp_path, small):
    """A file that does not exist, and one that cannot be made, are named."""
    with pytest.raises(FileError, match="none: cannot be read"):
        load(tmp_path / "none")
    with pytest.raises(FileError, match="cannot be written"):
        save(small, tmp_path / "no" / "such" / "folder")


def test_a_foreign_archive_is_refused(tmp_path):
    """A plain zip file has no checksum of ours."""
    np.savez(tmp_path / "m.npz", a=np.zeros(3))
    with pytest.raises(FileError, match="no checksum"):
        load(tmp_path / "m.npz")


def test_every_altered_byte_is_noticed(tmp_path, small):
    """One changed bit anywhere, in a sample of places that covers both ends, is an error."""
    save(small, tmp_path / "m")
    content = (tmp_path / "m").read_bytes()
    rng = np.random.default_rng(0)
    places = {*range(64), *range(len(content) - 128, len(content))}
    places |= set(rng.integers(0, len(content), 400).tolist())
    for place in sorted(places):
        changed = bytearray(content)
        changed[place] ^= 1 << int(rng.integers(8))
        (tmp_path / "m").write_bytes(changed)
        with pytest.raises(FileError, match="m: is "):
            load(tmp_path / "m")


def test_every_truncation_is_noticed(tmp_path, small):
    """A file cut anywhere, or with something appended, is an error."""
    save(small, tmp_path / "m")
    content = (tmp_path / "m").read_bytes()
    lengths = [*range(0, len(content), 97), len(content) - 1]
    for changed in [*(content[:n] for n in lengths), content + b"\n"]:
        (tmp_path / "m").write_bytes(changed)
        with pytest.raises(FileError, match="m: is "):
            load(tmp_path / "m")


@pytest.mark.parametrize("step", ["write_archive", "sign", "os.fsync", "os.replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_interrupted_save_keeps_the_old_file(tmp_path, small, monkeypatch, step, error):
    """Whatever stops a save, the old file stays whole and nothing is left beside it."""
    save(small, tmp_path / "m")
    before = (tmp_path / "m").read_bytes()

    def stop(*args):
        raise error

    owner = files.os if step.startswith("os.") else files
    monkeypatch.setattr(owner, step.removeprefix("os."), stop)
    expected = FileError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        save(replace(small, actions=("other",)), tmp_path / "m")
    monkeypatch.undo()
    assert (tmp_path / "m").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m"]
    assert_equal(load(tmp_path / "m"), small)


def test_save_replaces(tmp_path, small):
    """Saving again gives the new object."""
    save(small, tmp_path / "m")
    save(small.with_radius(0.1), tmp_path / "m")
    assert load(tmp_path / "m").marginals.lower.tolist() == [0.4, 0.4]


def test_records_without_objects(tmp_path, small):
    """A record can be looked at without making the object."""
    save(small, tmp_path / "m")
    kind, header, arrays = load_record(tmp_path / "m")
    assert kind == "model"
    assert header["actions"] == ["a0"]
    assert arrays["successors"].tolist() == [0, 1, 1]


def test_incomplete_records(tmp_path, notes, monkeypatch):
    """A whole file that lacks what its kind needs is an error that names it."""
    save(Note("", np.zeros(1)), tmp_path / "n")
    monkeypatch.setitem(READERS, "note", "rfmdp.formats.records:model_from_record")
    with pytest.raises(FileError, match="n: holds a note without 'row_ptr'"):
        load(tmp_path / "n")
