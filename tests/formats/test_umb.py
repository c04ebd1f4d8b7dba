"""UMB files: there and back, read by Storm, written by umbi, and damaged in every way."""

from __future__ import annotations

import contextlib
import io
import json
import tarfile
from fractions import Fraction

import numpy as np
import pytest

import rfmdp as rf
from rfmdp.errors import FileError, ModelError, RfmdpError, UnsupportedError
from rfmdp.formats.libraries import from_stormpy
from rfmdp.formats.umb import read_umb, write_umb
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.model.derived import flatten
from rfmdp.sets.families import Singleton

from .models import assert_same, random_model

umbi = pytest.importorskip("umbi")


def unpacked(path):
    """Return the files of an archive."""
    with tarfile.open(path) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar}


def pack(path, files, mode="w:gz"):
    """Write an archive."""
    with tarfile.open(path, mode) as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


@pytest.fixture
def file(tmp_path):
    """Return a file with an interval model."""
    path = tmp_path / "model.umb"
    write_umb(random_model(np.random.default_rng(5)), path)
    return path


@pytest.mark.parametrize("kind", ["known", "box", "l1"])
@pytest.mark.parametrize("seed", range(4))
def test_there_and_back(kind, seed, tmp_path):
    """A model comes back flattened, to the last bit, variables included."""
    model = random_model(np.random.default_rng(seed), kind)
    written = write_umb(model, tmp_path / "m.umb")
    assert written.paths == (tmp_path / "m.umb",)
    assert_same(read_umb(tmp_path / "m.umb"), flatten(model))


@pytest.mark.parametrize("kind", ["known", "box"])
def test_storm_reads_what_we_write(kind, tmp_path):
    """Storm's own reader finds the same model, intervals included."""
    stormpy = pytest.importorskip("stormpy")
    model = random_model(np.random.default_rng(7), kind)
    write_umb(model, tmp_path / "m.umb")
    found = stormpy.build_model_from_umb(str(tmp_path / "m.umb"))
    assert_same(from_stormpy(found), flatten(model), variables=False)


def index_of_pairs(kind, bits):
    """Return the index of two states with two branches each, a label and a reward."""
    system = {
        "time": "discrete", "#players": 1, "#states": 2, "#initial-states": 1, "#choices": 2,
        "#choice-actions": 0, "#branches": 4, "#branch-actions": 0, "#observations": 0,
        "branch-probability-type": {"type": kind, "size": bits},
    }  # fmt: skip
    goal = {"applies-to": ["states"], "type": {"type": "bool", "size": 1}}
    cost = {"applies-to": ["choices"], "type": {"type": "int", "size": 64}}
    return umbi.umb.index.UmbIndex.from_json(
        {
            "format-version": 0,
            "format-revision": 0,
            "transition-system": system,
            "annotations": {"aps": {"goal": goal}, "rewards": {"cost": cost}},
        }
    )


def written_by_umbi(path, kind, bits, branches):
    """Let umbi write two states with the same two branches each."""
    umb = umbi.umb.ExplicitUmb(
        index_of_pairs(kind, bits),
        state_is_initial=[True, False],
        state_to_choices=[0, 1, 2],
        choice_to_branches=[0, 2, 4],
        branch_to_target=[0, 1, 0, 1],
        branch_to_probability=2 * branches,
        annotations={
            "aps": {"goal": {"states": [False, True]}},
            "rewards": {"cost": {"choices": [2, 3]}},
        },
    )
    umbi.umb.write(umb, path)


def test_we_read_what_umbi_writes(tmp_path):
    """Numbers and intervals, labels and rewards that are integers."""
    interval = umbi.datatypes.Interval
    ends = [(0.25, 0.5), (0.5, 0.75)]
    written_by_umbi(tmp_path / "p.umb", "double", 64, [0.25, 0.75])
    written_by_umbi(tmp_path / "i.umb", "double-interval", 128, [interval(*pair) for pair in ends])
    for name, lower, upper in (("p", [0.25, 0.75], [0.25, 0.75]), ("i", [0.25, 0.5], [0.5, 0.75])):
        model = read_umb(tmp_path / f"{name}.umb")
        assert len(model.marginals) == 1
        assert model.marginals.lower.tolist() == lower
        assert model.marginals.upper.tolist() == upper
        assert model.labels["goal"].tolist() == [False, True]
        assert model.rewards["cost"].row.tolist() == [2.0, 3.0]


def test_fractions_are_refused(tmp_path):
    """One line says what to export instead."""
    third = Fraction(1, 3)
    written_by_umbi(tmp_path / "m.umb", "rational", 128, [third, 1 - third])
    with pytest.raises(UnsupportedError, match="found rational; export doubles"):
        read_umb(tmp_path / "m.umb")


def test_umbi_reads_what_we_write(tmp_path):
    """Umbi's own decoder finds the same numbers."""
    coin = FactoredMDP.from_rows(
        [[([0], [0, 1], "toss")], [([], [1], "stay")]],
        [rf.Interval([0.25, 0.5], [0.5, 0.75])],
        labels={"Goal state!": [False, True]},
        rewards={"cost": Rewards(np.array([1.5, 0.0]), np.array([0.0, 2.0]))},
    )
    write_umb(coin, tmp_path / "coin.umb")
    found = umbi.umb.read(tmp_path / "coin.umb", strict=True)
    assert [(p.left, p.right) for p in found.branch_to_probability] == [
        (0.25, 0.5), (0.5, 0.75), (1.0, 1.0)
    ]  # fmt: skip
    assert found.branch_to_target == [0, 1, 1]
    assert found.choice_action_to_string == ["toss", "stay"]
    assert found.annotations["aps"]["goal_state_"]["states"] == [False, True]
    assert found.index.annotations["aps"]["goal_state_"].alias == "Goal state!"
    assert read_umb(tmp_path / "coin.umb").labels.keys() == {"Goal state!"}


def test_a_chain_is_a_dtmc(tmp_path):
    """One choice per state, and known probabilities: no player."""
    chain = FactoredMDP.from_rows([[([0], [0, 1])], [([], [1])]], [Singleton([0.5, 0.5])])
    write_umb(chain, tmp_path / "c.umb")
    index = json.loads(unpacked(tmp_path / "c.umb")["index.json"])
    assert index["transition-system"]["#players"] == 0


def test_negative_and_wide_variables(tmp_path):
    """Numbers of any sign and width are packed bit by bit and come back."""
    from dataclasses import replace

    chain = FactoredMDP.from_rows([[([0], [0, 1])], [([], [1])]], [Singleton([0.5, 0.5])])
    variables = (
        rf.Variable("low", -(2**31), -5), rf.Variable("b", 0, 1, True),
        rf.Variable("high", 0, 2**31 - 1), rf.Variable("one", 0, 0),
    )  # fmt: skip
    values = np.array([[-(2**31), 1, 2**31 - 1, 0], [-5, 0, 0, 0]], dtype=np.int32)
    write_umb(replace(chain, variables=variables, valuations=values), tmp_path / "c.umb")
    found = read_umb(tmp_path / "c.umb")
    assert found.variables == variables
    assert found.valuations.tolist() == values.tolist()


def test_states_without_choice(file):
    """They are refused."""
    files = unpacked(file)
    index = json.loads(files["index.json"])
    index["transition-system"] |= {"#states": 7}
    del index["valuations"], index["annotations"]
    files = {n: d for n, d in files.items() if n.startswith(("state", "choice", "branch", "act"))}
    pointers = np.frombuffer(files["state-to-choices.bin"], "<u8")
    files["state-to-choices.bin"] = np.append(pointers, pointers[-1]).tobytes()
    pack(file, {"index.json": json.dumps(index).encode(), **files})
    with pytest.raises(ModelError, match="the first is 6"):
        read_umb(file)


def test_branches_to_one_state_add_up(tmp_path):
    """The format allows them; explicit models have one entry per successor."""
    coin = FactoredMDP.from_rows([[([0], [0, 1])], [([], [1])]], [Singleton([0.5, 0.5])])
    write_umb(coin, tmp_path / "c.umb")
    files = unpacked(tmp_path / "c.umb")
    files["branch-to-target.bin"] = np.array([1, 1, 1], "<u8").tobytes()
    pack(tmp_path / "c.umb", files)
    model = read_umb(tmp_path / "c.umb")
    assert model.successors.tolist() == [1, 1]


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_compressions(file, mode):
    """Plain, gzip and xz."""
    expected = read_umb(file)
    pack(file, unpacked(file), mode)
    assert_same(read_umb(file), expected)


def test_load_and_convert(file, tmp_path):
    """`open_model` and `convert` know the ending."""
    from rfmdp.cli.main import run

    assert_same(rf.open_model(file), read_umb(file))
    assert run(["convert", str(file), str(tmp_path / "copy.umb")]) == 0
    assert_same(rf.open_model(tmp_path / "copy.umb"), read_umb(file))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time": "stochastic"}, "must be a DTMC or MDP"),
        ({"#players": 2, "player-names": ["a", "b"]}, "must be a DTMC or MDP"),
        ({"#observations": 1, "observations-apply-to": "states"}, "1 observations"),
        ({"#branches": 3}, "must rise from 0 to 3"),
        ({"#states": 99}, "must have 800 bytes"),
        ({"#choice-actions": 1}, "choice actions must be below 1"),
        ({"#initial-states": 99}, "some state must be initial"),
    ],
)
def test_an_index_that_does_not_fit(file, change, message):
    """What the index says is compared with what is there."""
    files = unpacked(file)
    index = json.loads(files["index.json"])
    index["transition-system"] |= change
    pack(file, files | {"index.json": json.dumps(index).encode()})
    with pytest.raises((FileError, UnsupportedError), match=message) as caught:
        read_umb(file)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "branch-to-target.bin",
            lambda a: a.view("<u8") + 6,
            r"state \d.*: The target state must be within 0..5, found \d",
        ),
        ("branch-to-probability.bin", lambda a: -a.view("<f8"), "must satisfy 0 <= l <= u <= 1"),
        ("branch-to-probability.bin", lambda a: a.view("<f8") * 0.1, "state 0.*: The"),
        (
            "branch-to-probability.bin",
            lambda a: a.view("<f8") * np.nan,
            "must satisfy 0 <= l <= u <= 1",
        ),
        ("choice-to-branches.bin", lambda a: a.view("<u8")[::-1], "must rise"),
        ("state-is-initial.bin", lambda a: a * 0, "some state must be initial"),
        ("state-is-initial.bin", lambda a: a[:0], "must have 6 bits"),
        ("index.json", lambda a: a[:-9], "must be a UMB file"),
    ],
)
def test_arrays_that_do_not_fit(file, name, content, message):
    """Damaged arrays are told by their name or their choice."""
    files = unpacked(file)
    array = np.frombuffer(files[name], np.uint8)
    files[name] = np.ascontiguousarray(content(array)).tobytes()
    pack(file, files)
    with pytest.raises((FileError, ModelError), match=message):
        read_umb(file)


def test_no_archive_at_all(tmp_path):
    """Other files, and no file, are told in one line."""
    (tmp_path / "m.umb").write_text("mdp\nmodule m\nendmodule\n")
    with pytest.raises(FileError, match="must be a UMB file, a tar archive"):
        read_umb(tmp_path / "m.umb")
    with pytest.raises(FileError, match="cannot be read"):
        read_umb(tmp_path / "none.umb")


def test_any_altered_byte_ends_in_a_model_or_one_line(file):
    """Cut and flipped files never end in anything else."""
    data, rng = file.read_bytes(), np.random.default_rng(0)
    plain = unpacked(file)
    for _ in range(60):
        altered = dict(plain)
        name = rng.choice(list(altered))
        content = bytearray(altered[name])
        if content:
            content[rng.integers(len(content))] ^= 1 << rng.integers(8)
        altered[name] = bytes(content[: len(content) - int(rng.integers(2))])
        pack(file, altered, "w")
        with contextlib.suppress(RfmdpError):
            read_umb(file)
    for _ in range(20):
        file.write_bytes(data[: rng.integers(len(data))])
        with pytest.raises(RfmdpError):
            read_umb(file)
