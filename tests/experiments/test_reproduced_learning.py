"""The learning curves on their smallest domain: records, resuming, curves, files, the command."""

import csv
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.command import ending
from experiments.learning.__main__ import learning_plan, main, report_learning, run_learning
from experiments.learning.curves import METHODS, LearningTable, curves_of
from experiments.learning.report import count, flat_ends, method_order, overview, runtimes, summary
from experiments.learning.runs import (
    LearningRecord,
    LearningTask,
    RunContext,
    is_due,
    model_digest,
    run_task,
)
from experiments.learning.settings import CODE, SETUPS, TEXT, PseudoCounts, decided
from experiments.published import published_learning
from experiments.records import Plan, RecordTable
from processes import LIMIT
from rfmdp.domains import domain, domain_spec
from rfmdp.errors import ModelError
from rfmdp.learning.confidence import ClopperPearson
from rfmdp.learning.methods import METHODS as LIBRARY

ROOT = Path(__file__).parents[2]
WORDS = ["paper-mccormick", "paper-interval", "tied"]


def small(**other):
    """Return a plan of a second or two."""
    asked = {"domains": ["stock_trading"], "methods": WORDS, "seeds": [0], "trajectories": 250}
    return learning_plan(**{**asked, **other})


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """Return a folder with Stock Trading learned by three methods, the plan and the table."""
    twice = small(methods=["tied"], seeds=[1])
    plan = Plan((*small().tasks, *twice.tasks), ())
    folder = tmp_path_factory.mktemp("learning")
    file = folder / "learning.parquet"
    assert run_learning(plan, file, folder, jobs=1) == []
    return file, plan, report_learning(file, folder)


@pytest.fixture
def undrawn(monkeypatch):
    """Draw no figures: that takes as long as learning, and other tests look at them."""
    monkeypatch.setattr("experiments.learning.report.figure", lambda _: (b"<svg/>", b""))


def untimed(record):
    """Return the evaluations of a record without their seconds."""
    return [{**point, "seconds": 0, "processor": 0} for point in record.history]


def test_published_table_is_complete():
    """Five domains, four columns; more structure always needed fewer trajectories than flat."""
    table = published_learning()
    assert set(table) == set(SETUPS)
    for row in table.values():
        assert set(row.counts) == {"flat", "l1", "interval", "mccormick"}
        assert row.counts["flat"].trajectories == 1_000_000
        assert row.counts["mccormick"].trajectories == min(
            c.trajectories for c in row.counts.values()
        )


def test_the_plan_has_all_cells_first_seeds_first():
    """Five domains, the paper's four methods and ours."""
    plan = learning_plan(seeds=[0, 1])
    assert not plan.left_out
    assert len(plan.tasks) == 2 * len(SETUPS) * len(METHODS)
    assert [task.seed for task in plan.tasks] == sorted(task.seed for task in plan.tasks)
    columns = {method.column for method in METHODS.values()}
    assert columns == {"", "flat", "l1", "interval", "mccormick"}
    assert len({task.key for task in plan.tasks}) == len(plan.tasks)


def test_a_quick_plan_is_short():
    """One seed; all methods only where they are cheap, or asked for."""
    plan = learning_plan(quick=True)
    assert {task.seed for task in plan.tasks} == {0}
    assert {t.domain for t in plan.tasks if t.method == "paper-flat"} == {
        "aircraft", "stock_trading"
    }  # fmt: skip
    assert {t.domain for t in plan.tasks if t.method == "paper-mccormick"} == set(SETUPS)
    asked = learning_plan(quick=True, domains=["drone"], methods=["paper-flat"], trajectories=7)
    assert [(t.method, t.trajectories) for t in asked.tasks] == [("paper-flat", 7)]


def test_wrong_words_are_refused():
    """Unknown domains, domains that were not learned, methods and settings are named."""
    with pytest.raises(ModelError, match="those that were: aircraft"):
        learning_plan(domains=["chain"])
    with pytest.raises(ModelError, match="there are: paper-flat"):
        learning_plan(methods=["magic"])
    with pytest.raises(ModelError, match="there are: text, code"):
        learning_plan(settings=["dream"])


def test_finished_runs_are_not_repeated(learned, tmp_path, capsys):
    """A second call runs only what has no record; it starts from the run file, if there is one."""
    file, plan, table = learned
    key = plan.tasks[0].key
    records = [record for curve in table.curves for record in curve.records]
    again = RecordTable(tmp_path / "learning.parquet", LearningRecord)
    again.add([record for record in records if record.key != key])
    assert run_learning(plan, tmp_path / "learning.parquet", file.parent, jobs=1) == []
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"[1/1] {key}: guarantee")
    assert again.read() == RecordTable(file, LearningRecord).read()  # seconds are those of before


@pytest.mark.usefixtures("undrawn")
def test_a_report_is_about_all_records_of_the_file(learned, tmp_path):
    """From the records alone come the same files, whichever plan was run last."""
    file, _, table = learned
    assert report_learning(file, tmp_path).curves == table.curves
    for name in "learning.csv", "learning.md":
        assert (tmp_path / name).read_bytes() == (file.parent / name).read_bytes()


@pytest.fixture(scope="module")
def repository():
    """Return the records of the repository."""
    return list(RecordTable(ROOT / "experiments/learning.parquet", LearningRecord).read().values())


def test_the_records_of_the_repository_are_complete_and_small(repository):
    """All are of today's models, and went to their end."""
    assert len(repository) == 153
    assert all(record.model == model_digest(record.domain) for record in repository)
    assert all(record.done == record.trajectories == 1_000_000 for record in repository)
    assert (ROOT / "experiments/learning.parquet").stat().st_size < 1_000_000


def test_the_page_shows_the_records_of_the_repository(repository):
    """What the documentation prints is what the records say."""
    tables = LearningTable(curves_of(repository)).by_setting
    page = (ROOT / "docs/learning-results.md").read_text(encoding="utf-8")
    for setting, ours in (("text", True), ("code", False)):  # the paper's code has its own methods
        _, rows = overview(tables[setting])
        shown = [row for row in rows if ours or not row[0].startswith("ours")]
        assert len(shown) >= 4
        for row in shown:
            assert f"| {' | '.join(row)} |" in page
        for sentence in (*method_order(tables[setting]), *flat_ends(tables[setting])):
            assert sentence in page
    for row in runtimes(tables["text"])[1]:
        assert f"| {' | '.join(row)} |" in page


def test_more_trajectories_go_on(tmp_path):
    """A longer plan on the same folder goes on; it ends as an uninterrupted one."""
    file = tmp_path / "learning.parquet"
    short, long = (small(methods=["tied"], seeds=[3], trajectories=n) for n in (115, 205))
    for plan in (short, long):
        run_learning(plan, file, tmp_path, jobs=1)
    (task,) = long.tasks
    both = RecordTable(file, LearningRecord).read()[task.key]
    once = run_task(RunContext(str(tmp_path / "once")), task)
    assert both.done == once.done == 205
    assert untimed(both) == untimed(once)


def test_no_evaluation_is_lost_when_a_run_is_killed(learned, tmp_path):
    """A run that ends in the middle goes on at its last evaluation and gives the same record."""
    _, plan, table = learned
    task = plan.tasks[0]
    seen = []

    def interrupt(_, now):
        if now.point is not None:
            seen.append(now.trajectories)
            if len(seen) == 4:  # told before it is saved
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_task(RunContext(str(tmp_path), interrupt), task)
    first = list(seen)
    again = run_task(RunContext(str(tmp_path), lambda _, now: seen.append(now.trajectories)), task)
    assert min(seen[len(first) :]) >= first[2]
    own = table.of(task.domain, task.method).records[0]
    assert untimed(again) == untimed(own)


def test_a_run_file_that_cannot_be_gone_on_with_is_replaced(learned, tmp_path):
    """A damaged one, or one of other settings, is no reason to give up."""
    _, plan, table = learned
    task = plan.tasks[2]
    context = RunContext(str(tmp_path))
    run_task(context, replace(task, seed=5, trajectories=100))
    context.file(replace(task, seed=5)).rename(context.file(task))  # of another seed
    own = untimed(table.of(task.domain, task.method).records[0])
    assert untimed(run_task(context, task)) == own
    context.file(task).write_bytes(b"nothing")
    assert untimed(run_task(context, task)) == own


def test_other_machines_need_no_folder(learned, tmp_path):
    """A process that does not see the run files learns from the start, and returns the record."""
    _, plan, table = learned
    task = plan.tasks[1]
    record = run_task(RunContext(str(tmp_path / "elsewhere")), task)
    assert untimed(record) == untimed(table.of(task.domain, task.method).records[0])
    assert not (tmp_path / "elsewhere").exists()


def test_a_record_settles_what_it_answers(learned):
    """Trajectories and limits are part of a record, and so is the model."""
    file, plan, _ = learned
    task = plan.tasks[0]
    record = RecordTable(file, LearningRecord).read()[task.key]
    assert record.settles(task)
    assert record.settles(replace(task, trajectories=100))
    assert not record.settles(replace(task, trajectories=251))
    late = replace(record, history=record.history[:2], stopped="time is up")
    assert late.settles(task)  # it had its time
    assert not late.settles(replace(task, timeout=2 * task.timeout))
    assert not replace(record, model="another model").settles(task)
    assert not replace(record, stopped="refused", history=[]).settles(task)


def test_evaluations_of_a_time_out_are_not_shown(tmp_path):
    """When time is up nothing is proven; the record ends with the last evaluation that was due."""
    task = replace(small(seeds=[0]).tasks[0], timeout=1e-6, trajectories=100_000)
    record = run_task(RunContext(str(tmp_path)), task)
    assert record.stopped == "time is up"
    assert all(is_due(point["trajectories"]) for point in record.history)


def made(values, seconds=1.0, method="paper-mccormick", name="stock_trading", seed=0):
    """Return a record with guarantees after 100, 200, ... trajectories."""
    blank = {"performance": None}
    history = [
        {**blank, "trajectories": 100 * (i + 1), "guarantee": value, "processor": seconds * i}
        for i, value in enumerate(values)
    ]
    return LearningRecord(
        domain=name, method=method, setting="text", seed=seed, trajectories=10**6, timeout=1.0,
        stopped="all trajectories run", beta=1e-4, length=10, history=history,
        model=model_digest(name),
    )  # fmt: skip


def test_curves_are_means_over_the_runs_that_go_so_far():
    """Where a run has proven nothing there is no mean; shorter runs leave the mean to others."""
    (curve,) = curves_of([made([None, 2.0, 4.0]), made([1.0, 4.0, 4.5, 5.0], 3.0, seed=1)])
    where, mean, spread = curve.points("guarantee")
    assert where.tolist() == [100, 200, 300, 400]
    np.testing.assert_array_equal(mean, [np.nan, 3.0, 4.25, 5.0])
    np.testing.assert_array_equal(spread[1:], [1.0, 0.25, 0.0])
    reached = curve.reached(3.9)
    assert (reached.trajectories, reached.seconds) == (300, 4.0)
    assert curve.reached(6.0) is None
    assert curve.last() == 5.0


def test_costs_are_reached_from_above():
    """Less is better on Frozen Lake."""
    (curve,) = curves_of([made([None, 100.0, 70.0], name="frozen_lake")])
    assert not curve.maximises
    assert curve.reached(72.84).trajectories == 300
    assert curve.reached(60.0) is None


def test_the_order_of_methods_is_told_as_it_is():
    """Trajectories to the same guarantee, and who does not need more than the one before."""
    curves = curves_of([
        made([4.0]), made([3.0, 4.0], method="paper-interval"), made([4.0], method="paper-l1"),
    ])  # fmt: skip
    (text,) = method_order(LearningTable(curves))
    assert "exact (McCormick) 100, interval arithmetic 200, L1, radii added up 100" in text
    assert "L1, radii added up does not need more than interval arithmetic" in text
    assert "Exact over interval: 0.50 (printed 0.47)" in text
    assert any("in 1 of 1 domains" in text for text in summary(LearningTable(curves)))


def test_files_tell_the_same(learned):
    """CSV has a line per evaluation; Markdown has the counts; figures are there."""
    file, _, table = learned
    with (file.parent / "learning.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == sum(len(r.history) for c in table.curves for r in c.records)
    text = (file.parent / "learning.md").read_text()
    tied = table.of("stock_trading", "tied")
    for words in (count(70_000), f"{tied.last():.4f}", "interval arithmetic", "printed guarantee"):
        assert words in text
    assert (file.parent / "learning-text.png").read_bytes().startswith(b"\x89PNG")
    assert (file.parent / "learning-text.svg").stat().st_size < 500_000


def test_settings_differ_in_what_text_and_code_differ():
    """Beta, lengths, exploration, replanning, floors, pseudo-counts; ours keep their parts."""
    flat, exact, tied = (LIBRARY[w] for w in ("paper-flat", "paper-mccormick", "tied"))
    assert TEXT.method(flat) == flat
    assert TEXT.keywords("aircraft", flat) | {"local": 0} == {
        "method": flat, "beta": 1e-4, "length": 15, "local": 0, "p_min": None
    }  # fmt: skip
    assert CODE.keywords("aircraft", exact) | {"local": 0} == {
        "method": CODE.method(exact), "beta": 1e-3, "length": 11, "local": 0,
        "p_min": 1e-8,
    }  # fmt: skip
    assert CODE.method(exact).exploration.other == 0.1
    assert CODE.method(flat).confidence == PseudoCounts(2)
    assert CODE.method(exact).confidence == ClopperPearson()
    assert CODE.method(tied) == tied
    assert CODE.method(exact).schedule.limits(np.array([0, 5])).tolist() == [1, 30]
    assert TEXT.keywords("sysadmin", flat)["p_min"] == 1e-8  # a thousand successors per row
    assert TEXT.keywords("drone", flat)["p_min"] == 1e-8  # a hundred
    assert TEXT.keywords("drone", exact)["p_min"] is None


def test_pseudo_counts_are_samples_that_were_never_drawn():
    """Boxes of counts (3, 5, 0) are those of (5, 7, 2)."""
    ptr, delta = np.array([0, 3]), np.array([1e-3])
    boxes = PseudoCounts().sets(ptr, np.array([3, 5, 0]), delta)
    twin = ClopperPearson().sets(ptr, np.array([5, 7, 2]), delta)
    np.testing.assert_array_equal(boxes.lower, twin.lower)
    np.testing.assert_array_equal(boxes.upper, twin.upper)


def test_trajectories_of_the_code_end_where_the_value_is_decided():
    """On Stock Trading that is where nothing can be earned any more: at the end, or before."""
    model = domain("stock_trading", instance="learning")
    spec = domain_spec("stock_trading")
    ends = decided(model, spec)
    assert np.all(ends[model.labels["end"]])
    assert ends.sum() < model.states
    words = CODE.source(model, spec).words
    assert words["trajectories end in"].startswith(f"{ends.sum()} states")
    assert "trajectories end in" not in TEXT.source(model, spec).words
    record = run_task(
        RunContext("/nowhere"), LearningTask("stock_trading", "tied", 0, 100, 9.0, "code")
    )
    assert record.length == 11
    assert record.history[-1]["steps"] < 100 * 10


@pytest.mark.usefixtures("undrawn")
def test_the_command(tmp_path, capsys):
    """It prints the summary, writes into the folder, and reports again without runs."""
    words = ["--domains", "stock_trading", "--methods", "tied", "--trajectories", "100"]
    words += ["--seeds", "4,7", "-o", str(tmp_path)]
    assert main([*words, "--jobs", "1"]) == 0
    summary = capsys.readouterr().out
    assert "2 runs, 200 trajectories" in summary
    records = RecordTable(tmp_path / "learning.parquet", LearningRecord).read()
    assert set(records) == {"stock_trading tied text 4", "stock_trading tied text 7"}
    assert main([*words, "--report"]) == 0
    assert capsys.readouterr().out == summary
    assert ending(lambda: main(["--seeds", "many"])) == 1
    assert "--seeds must be" in capsys.readouterr().err


def test_the_command_in_processes(tmp_path):
    """As `make` calls it: what travels to other processes can be unpacked there."""
    words = ["--domains", "stock_trading", "--methods", "tied", "--trajectories", "100"]
    words += ["--seeds", "2", "--jobs", "2", "-o", str(tmp_path)]
    command = [sys.executable, "-m", "experiments.learning", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    assert "2 runs, 200 trajectories" in done.stdout
