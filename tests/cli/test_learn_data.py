"""`rfmdp learn --data` by argv."""

from __future__ import annotations

import json
from importlib import import_module
from types import SimpleNamespace

import pytest

from rfmdp.cli.main import run
from rfmdp.formats.files import load
from rfmdp.verification.solution import verify

pytest.importorskip("pyarrow")
MODEL = ["m.prism", "--const", "N=3"]
REACH = ["--prop", 'Pmaxmin=? [ F<=4 "top" ]']


@pytest.fixture
def log(folder, capsys):
    """Write a log of the model."""
    words = ["--trajectories", "600", "--length", "6", "--record", "log.parquet"]
    assert run(["simulate", *MODEL, *REACH, *words]) == 0
    capsys.readouterr()
    return folder / "log.parquet"


def test_a_log_gives_a_guarantee(log, capsys):
    """It is proven again; coverage and checks are printed."""
    words = ["--data", "log.parquet", "--selection", "none", "-o", "log.run"]
    assert run(["learn", *MODEL, *REACH, *words]) == 0
    out = capsys.readouterr().out
    assert "Coverage: 2 identifiers, 0 without samples" in out
    assert out.count("no alarm (") == 3
    assert "independently of each other: not tested, nothing to compare" in out
    assert load("log.run").guarantee > 0.1
    assert verify("log.run").valid


def test_json_has_everything_about_the_data(log, capsys):
    """Steps, and what to collect next."""
    words = ["--data", str(log), "--selection", "none", "--json"]
    assert run(["learn", *MODEL, *REACH, *words]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["data"]["steps"] > 600
    assert len(record["checks"]) == 4
    assert all(w["gain"] >= 0.0 for w in record["data"]["collect_next"])


def test_words_about_columns(log, capsys):
    """Options say what stands where."""
    import pyarrow.parquet as pq

    table = pq.read_table(log)
    names = {"x": "place", "next_x": "place2", "action": "what"}
    pq.write_table(table.rename_columns([names.get(n, n) for n in table.column_names]), "l.parquet")
    words = ["--data", "l.parquet", "--selection", "none", "--column", "x'=place2"]
    words += ["--column", "x=place"]
    assert run(["learn", *MODEL, *REACH, *words, "--column", "action=what"]) == 0
    assert "With probability" in capsys.readouterr().out


def test_an_alarm_ends_with_code_2(folder, capsys):
    """Data that change their mind in the middle guarantee nothing."""
    lines = ["x,action,next_x"]
    lines += ["0,up,0"] * 300 + ["0,up,1"] * 300
    (folder / "log.csv").write_text("\n".join(lines) + "\n")
    assert run(["learn", *MODEL, *REACH, "--data", "log.csv", "--selection", "none"]) == 2
    out = capsys.readouterr().out
    assert "ALARM: an identifier has the same distribution early and late" in out
    assert "Result:" not in out
    assert "With probability" not in out
    words = ["--data", "log.csv", "--selection", "none", "--json"]
    assert run(["learn", *MODEL, *REACH, *words]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["guarantee"] == "-Infinity"
    assert "early and late" in found["alarms"][0]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "their selection is 'unknown'"),
        (["--selection", "outcome"], "their selection is 'outcome'"),
        (["--selection", "all"], "selection: must be one of none, unknown, outcome"),
        (["--selection", "none", "--column", "x"], "--column must be NAME=COLUMN"),
        (["--selection", "none", "--column", "y=x"], "columns: 'y' must be one of x, x'"),
        (["--selection", "none", "--seeds", "2"], "leave out --seeds"),
        (["--data", "d.rfmdp"], "d.rfmdp: cannot be read"),
    ],
)
def test_wrong_words_are_one_line(log, capsys, words, complaint):
    """User errors end with code 1."""
    assert run(["learn", *MODEL, *REACH, "--data", str(log), *words]) == 1
    err = capsys.readouterr().err
    assert complaint in err
    assert err.count("\n") == 1


def test_bad_rows_are_told(log, capsys):
    """Row numbers stand in the complaint."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = pq.read_table(log).to_pydict()
    content["x"][4] = None
    pq.write_table(pa.table(content), "bad.parquet")
    words = ["learn", *MODEL, *REACH, "--data", "bad.parquet", "--selection", "none"]
    assert run(words) == 1
    assert (
        "bad.parquet, 1 row(s) that have no value in column 'x' (row 4)" in capsys.readouterr().err
    )


def test_reading_counts_as_time(log, monkeypatch):
    """What is left of --timeout after reading is what a run may take."""
    import sys

    import_module("rfmdp.cli.learn")
    command = sys.modules["rfmdp.cli.learn"]
    now = [100.0]
    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=lambda: now[0]))
    read = command.read_data

    def slowly(*words):
        now[0] += 40.0
        return read(*words)

    monkeypatch.setattr(command, "read_data", slowly)
    seen = []
    seeds = import_module("rfmdp.learning.learn")
    monkeypatch.setattr(
        seeds, "learn_seeds", lambda *_, stop, **__: seen.append(stop.seconds) or []
    )
    words = ["--data", str(log), "--selection", "none", "--timeout", "100"]
    run(["learn", *MODEL, *REACH, *words])  # there is no run to print
    assert seen == [60.0]
