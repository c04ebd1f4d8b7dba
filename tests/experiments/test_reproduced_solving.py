"""The solving table on its smallest domain: records, resuming, files, the command."""

import csv
from dataclasses import replace

import pytest

from chain_cost import chain_cost
from experiments.command import ending
from experiments.published import RADII, STOPPED, Published, published_table
from experiments.records import RecordTable
from experiments.solving.__main__ import main, report_solving, solving_plan
from experiments.solving.runs import SolvingRecord, SolvingTask, run_task
from rfmdp.domains import DOMAINS
from rfmdp.errors import FileError, ModelError


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """Return a folder with the Chain domain solved at two radii by all methods, and its table."""
    folder = tmp_path_factory.mktemp("solving")
    plan = solving_plan(domains=["chain"], radii=[0.025, 0.1])
    file = folder / "solving.parquet"
    assert RecordTable(file, SolvingRecord).run_missing(plan.tasks, run_task, jobs=1) == []
    return file, plan, report_solving(file, folder)


@pytest.fixture
def undrawn(monkeypatch):
    """Draw no figure: that takes as long as solving, and other tests look at it."""
    monkeypatch.setattr("experiments.solving.report.figure", lambda _: (b"<svg/>", b""))


def test_published_table_is_complete():
    """Seven domains, six radii, three columns."""
    table = published_table()
    assert set(table) == {
        (name, radius, column)
        for name in DOMAINS
        for radius in RADII
        for column in ("exact", "interval", "mccormick")
    }
    assert set(table) >= STOPPED


def test_agreement_is_by_the_printed_digits():
    """Rounding, not cutting, and as many digits as were printed."""
    assert Published("0.004", 1.0).agrees(0.004177)
    assert Published("243.60", 1.0).agrees(243.5951)
    assert not Published("451.28", 1.0).agrees(451.2863)


def test_every_method_lies_on_its_side(solved):
    """Exact equals vertices and the closed form; the printed programme is the loosest McCormick."""
    _, _, table = solved
    value = {record.method: record.value for record in table.records if record.radius == 0.025}
    cost = float(chain_cost("0.025"))
    assert cost * (1.0 - 1e-12) <= value["exact"] <= cost * (1.0 + 1e-8)
    assert value["vertices"] == pytest.approx(value["exact"], rel=1e-8)
    assert value["mccormick"] == pytest.approx(value["exact"], rel=1e-7)
    assert value["mccormick:simplex"] == pytest.approx(value["exact"], rel=1e-7)
    assert 1.01 * value["exact"] < value["mccormick:printed"] < 0.99 * value["interval"]
    # robust value iteration of Storm (stormpy 2.0.0) on the flattened intervals
    assert value["interval"] == pytest.approx(451.28631435, rel=1e-6)


def test_differences_are_explained(solved):
    """No printed value of Chain differs without a reason."""
    _, _, table = solved
    wrong = [record for record in table.records if record.agrees is False]
    assert len(wrong) == 4
    assert all(record.explanation for record in wrong)


def test_finished_runs_are_not_repeated(solved, tmp_path):
    """A second call runs only what has no record; what other versions wrote does not count."""
    file, plan, table = solved
    again = RecordTable(tmp_path / "solving.parquet", SolvingRecord)
    again.add([record for record in table.records if record.key != "chain 0.1 exact"])
    ran = []
    again.run_missing(plan.tasks, run_task, lambda result, *_: ran.append(result.task.key), jobs=1)
    assert ran == ["chain 0.1 exact"]
    assert set(again.read()) == set(RecordTable(file, SolvingRecord).read())
    assert RecordTable(file, SolvingTask).read() == {}
    assert [path.name for path in tmp_path.iterdir()] == ["solving.parquet"]


def test_a_damaged_table_is_refused_and_not_written_over(tmp_path):
    """Hours of runs may be in it."""
    file = tmp_path / "solving.parquet"
    file.write_bytes(b"PAR1, and nothing else")
    with pytest.raises(FileError, match="must be a table of records"):
        RecordTable(file, SolvingRecord).run_missing([], run_task)
    assert file.read_bytes() == b"PAR1, and nothing else"


def test_what_arrived_stays_when_the_rest_is_interrupted(solved, tmp_path):
    """A record is in the file before the next run ends; Ctrl-C leaves a whole table."""
    _, plan, _ = solved
    table = RecordTable(tmp_path / "solving.parquet", SolvingRecord)

    def interrupt(_, number, tasks):
        assert (number, tasks) == (len(table.read()), len(plan.tasks))
        if number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.run_missing(plan.tasks, run_task, interrupt, jobs=1)
    assert sorted(table.read()) == sorted(task.key for task in plan.tasks[:2])


@pytest.mark.usefixtures("undrawn")
def test_a_report_is_about_all_records_of_the_file(solved, tmp_path):
    """From the records alone come the same lines in the same order, and no other files."""
    file, _, table = solved
    assert report_solving(file, tmp_path).records == table.records
    assert (tmp_path / "solving.csv").read_bytes() == (file.parent / "solving.csv").read_bytes()
    assert report_solving(tmp_path / "none.parquet", tmp_path / "none").records == ()
    assert not (tmp_path / "none").exists()


def test_side_by_side_gives_the_same_values(solved, tmp_path):
    """Two processes write the records of one, apart from the seconds."""
    _, _, table = solved
    plan = solving_plan(domains=["chain"], radii=[0.025], methods=["exact", "interval", "vertices"])
    beside = RecordTable(tmp_path / "beside.parquet", SolvingRecord)
    beside.run_missing(plan.tasks, run_task, jobs=2)
    alone = {record.key: record for record in table.records}
    assert len(beside.read()) == 3
    for key, record in beside.read().items():
        assert (record.lower, record.upper) == (alone[key].lower, alone[key].upper)


def test_a_run_that_hit_its_limit_is_repeated_with_a_longer_one(solved):
    """Limits are part of a record."""
    file, _, _ = solved
    task = SolvingTask("chain", 0.025, "exact", timeout=10.0)
    record = RecordTable(file, SolvingRecord).read()[task.key]
    assert record.settles(task)
    stopped = replace(record, status="TIME_LIMIT", timeout=5.0)
    assert not stopped.settles(task)
    assert stopped.settles(SolvingTask("chain", 0.025, "exact", timeout=5.0))
    assert not replace(record, model="another model").settles(task)


def test_files_tell_the_same(solved):
    """CSV has a line per run; Markdown has the values and the reasons."""
    file, plan, _ = solved
    with (file.parent / "solving.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == len(plan.tasks) == 12
    assert {row["agrees"] for row in rows} == {"True", "False", ""}
    text = (file.parent / "solving.md").read_text()
    for words in ("1019.710222", "1019.70", "stopped early", "McCormick, as printed"):
        assert words in text
    assert (file.parent / "solving.svg").read_bytes().startswith(b"<?xml")
    assert (file.parent / "solving.png").read_bytes().startswith(b"\x89PNG")


def test_a_reason_is_told_only_where_it_holds(solved):
    """A printed cost above the certified one is not that of an iteration from below."""
    _, _, table = solved
    (record,) = [record for record in table.records if record.key == "chain 0.1 exact"]
    assert record.explanation
    assert not replace(record, value=1019.0, upper=1019.0).explanation
    assert not replace(record, value=1019.7).explanation


def test_what_takes_long_runs_only_if_named():
    """LPs on Drone are left out with a reason, unless both are asked for."""
    plan = solving_plan()
    assert {x.domain for x in plan.left_out} == {"drone", "frozen_lake", "sysadmin"}
    assert len([t for t in plan.tasks if t.method == "exact"]) == 42
    asked = solving_plan(domains=["drone"], methods=["mccormick"], radii=[0.025])
    assert [task.key for task in asked.tasks] == ["drone 0.025 mccormick"]
    quick = solving_plan(quick=True)
    assert {task.radius for task in quick.tasks} == {0.025}
    assert {t.domain for t in quick.tasks if t.method == "exact"} == set(DOMAINS)


def test_wrong_words_are_refused():
    """Unknown domains, methods and radii are named."""
    with pytest.raises(ModelError, match="there are: aircraft"):
        solving_plan(domains=["moon"])
    with pytest.raises(ModelError, match="there are: exact"):
        solving_plan(methods=["magic"])
    with pytest.raises(ModelError, match="between 0 and 1"):
        solving_plan(radii=[2.0])


def test_the_command(tmp_path, capsys):
    """It prints the summary, writes into the folder, and reports again without runs."""
    words = ["--domains", "chain", "--radii", "0.02", "--methods", "exact,interval"]
    assert main([*words, "--jobs", "1", "-o", str(tmp_path)]) == 0
    summary = capsys.readouterr().out
    assert "2 of 2 printed values agree" in summary
    assert (tmp_path / "solving.md").exists()
    assert main([*words, "--report", "-o", str(tmp_path)]) == 0
    assert capsys.readouterr().out == summary
    assert ending(lambda: main(["--report", "-o", str(tmp_path / "none")])) == 1
    assert "found no file" in capsys.readouterr().err
    assert ending(lambda: main(["--domains", "moon"])) == 1
    assert "there are: aircraft" in capsys.readouterr().err
