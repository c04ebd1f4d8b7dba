"""The solving campaign on its smallest domain: records, resuming, files, command line."""

import csv
import json
import shutil
from dataclasses import replace

import pytest

from rfmdp.campaign.records import RecordFolder
from rfmdp.campaign.runner import make_runner
from rfmdp.cli.main import run as rfmdp
from rfmdp.domains import DOMAINS
from rfmdp.errors import ModelError
from rfmdp.paper.learning.campaign import report_learning
from rfmdp.paper.published import EXPLAINED, RADII, Published, published_table
from rfmdp.paper.solving.campaign import report_solving, reproduce_solving, solving_plan
from rfmdp.paper.solving.runs import SolvingRecord, SolvingTask


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    """Return a folder with the Chain domain solved at two radii by all methods, and its table."""
    folder = tmp_path_factory.mktemp("solving")
    plan = solving_plan(domains=["chain"], radii=[0.025, 0.1])
    return folder, plan, reproduce_solving(plan, folder, runner=make_runner(jobs=1))


@pytest.fixture
def undrawn(monkeypatch):
    """Draw no figure: that takes as long as solving, and other tests look at it."""
    monkeypatch.setattr("rfmdp.paper.solving.report.figure", lambda _: (b"<svg/>", b""))


def test_published_table_is_complete():
    """Seven domains, six radii, three columns."""
    table = published_table()
    assert set(table) == {
        (name, radius, column)
        for name in DOMAINS
        for radius in RADII
        for column in ("exact", "interval", "mccormick")
    }
    assert set(EXPLAINED) <= set(table)


def test_agreement_is_by_the_printed_digits():
    """Rounding, not cutting, and as many digits as were printed."""
    assert Published("0.004", 1.0).agrees(0.004177)
    assert Published("243.60", 1.0).agrees(243.5951)
    assert not Published("451.28", 1.0).agrees(451.2863)


def test_every_method_lies_on_its_side(campaign):
    """Exact equals vertices; relaxations are above, the printed programme is loosest."""
    _, _, table = campaign
    value = {record.method: record.value for record in table.records if record.radius == 0.025}
    assert value["exact"] == pytest.approx(331.34029034, rel=1e-8)
    assert value["vertices"] == pytest.approx(value["exact"], rel=1e-8)
    assert value["mccormick"] == pytest.approx(value["exact"], rel=1e-7)
    assert value["mccormick:simplex"] == pytest.approx(value["exact"], rel=1e-7)
    assert value["mccormick:printed"] == pytest.approx(348.72, abs=5e-3)
    assert value["interval"] == pytest.approx(451.2863, abs=1e-3)


def test_differences_are_explained(campaign):
    """No printed value of Chain differs without a reason."""
    _, _, table = campaign
    wrong = [record for record in table.records if record.agrees is False]
    assert len(wrong) == 4
    assert all(record.explanation for record in wrong)


@pytest.mark.usefixtures("undrawn")
def test_finished_runs_are_not_repeated(campaign, tmp_path):
    """A second call runs only what has no record, or a damaged one."""
    folder, plan = shutil.copytree(campaign[0], tmp_path / "again"), campaign[1]
    (folder / "records" / "chain_0.1_exact.json").write_text('{"domain": "ch')
    ran = []
    reproduce_solving(plan, folder, done=lambda task, *_: ran.append(task.key))
    assert ran == ["chain_0.1_exact"]
    assert not list((folder / "records").glob(".*"))


@pytest.mark.usefixtures("undrawn")
def test_a_report_is_about_all_records_of_the_folder(campaign, tmp_path):
    """From the records alone come the same lines in the same order, and no other files."""
    folder, _, table = campaign
    shutil.copytree(folder / "records", tmp_path / "records")
    assert report_solving(tmp_path).records == table.records
    assert (tmp_path / "solving.csv").read_bytes() == (folder / "solving.csv").read_bytes()
    assert report_learning(tmp_path).curves == ()
    assert not list(tmp_path.glob("learning*"))


@pytest.mark.usefixtures("undrawn")
def test_side_by_side_gives_the_same_values(campaign, tmp_path):
    """Two processes write the records of one, apart from the seconds."""
    _, _, table = campaign
    plan = solving_plan(domains=["chain"], radii=[0.025], methods=["exact", "interval", "vertices"])
    beside = reproduce_solving(plan, tmp_path, runner=make_runner(jobs=2))
    own = {record.method: record for record in table.records if record.radius == 0.025}
    assert len(beside.records) == 3
    for record in beside.records:
        twin = own[record.method]
        assert (record.lower, record.upper) == (twin.lower, twin.upper)


def test_a_run_that_hit_its_limit_is_repeated_with_a_longer_one(campaign):
    """Limits are part of a record."""
    folder, _, _ = campaign
    task = SolvingTask("chain", 0.025, "exact", timeout=10.0)
    record = RecordFolder(folder / "records", SolvingRecord).read(task)
    assert record.settles(task)
    stopped = replace(record, status="TIME_LIMIT", timeout=5.0)
    assert not stopped.settles(task)
    assert stopped.settles(SolvingTask("chain", 0.025, "exact", timeout=5.0))
    assert not replace(record, model="another model").settles(task)


def test_files_tell_the_same(campaign):
    """CSV has a line per run; page and Markdown have the values and the reasons."""
    folder, plan, _ = campaign
    with (folder / "solving.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(plan.tasks) == 12
    assert {row["agrees"] for row in rows} == {"True", "False", ""}
    page, text = ((folder / name).read_text() for name in ("solving.html", "solving.md"))
    for words in ("1019.710222", "1019.70", "stopping error", "McCormick, as printed"):
        assert words in page
        assert words in text
    assert "<svg" in page
    assert "http://" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace("http://creativecommons.org", "")  # fmt: skip  # noqa: E501
    assert (folder / "solving.png").read_bytes().startswith(b"\x89PNG")


def test_what_takes_long_runs_only_if_named():
    """LPs on Drone are left out with a reason, unless both are asked for."""
    plan = solving_plan()
    assert {x.domain for x in plan.left_out} == {"drone", "frozen_lake", "sysadmin"}
    assert len([t for t in plan.tasks if t.method == "exact"]) == 42
    asked = solving_plan(domains=["drone"], methods=["mccormick"], radii=[0.025])
    assert [task.key for task in asked.tasks] == ["drone_0.025_mccormick"]
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


def test_command_line(tmp_path, capsys):
    """`rfmdp reproduce solving` prints the summary and writes into the folder."""
    words = ["reproduce", "solving", "--domains", "chain", "--radii", "0.02"]
    assert rfmdp([*words, "--methods", "exact,interval", "--jobs", "1", "-o", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "2 of 2 printed values agree" in out
    assert (tmp_path / "solving.html").exists()
    assert rfmdp(["reproduce", "lunch", "-o", str(tmp_path)]) == 1


def test_domains_on_the_command_line(capsys):
    """`rfmdp domains` lists sizes; of one domain all constants, or the text."""
    assert rfmdp(["domains"]) == 0
    assert "21,694,720" in capsys.readouterr().out
    assert rfmdp(["domains", "chain"]) == 0
    assert "--const M=10,slow=0.4,fast=0.6,as_published=true" in capsys.readouterr().out
    assert rfmdp(["domains", "chain", "--text"]) == 0
    assert "module chain1" in capsys.readouterr().out
    assert rfmdp(["domains", "--json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {record["domain"] for record in records} == set(DOMAINS)
    assert rfmdp(["domains", "moon"]) == 1
