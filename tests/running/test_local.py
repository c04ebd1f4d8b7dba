"""Tasks on local cores: results once, errors, lost processes, and Ctrl-C at every moment."""

import os
import signal
import subprocess
import threading
from functools import partial

import pytest

from processes import LIMIT, group_is_gone, process, wait_until
from rfmdp.errors import ModelError, PrismError, SolverError
from rfmdp.running import TaskResult, run_many
from running.tasks import add_square, die, fail

INTERRUPTED = """
import os, signal, sys
from functools import partial
from multiprocessing.process import BaseProcess
from rfmdp.running import TaskResult, run_many
from running.tasks import hang

moment, folder = sys.argv[1:]
start, count = BaseProcess.start, 0

def ctrl_c_around(self):
    global count
    if moment == f"before {count}":
        os.killpg(0, signal.SIGINT)
    start(self)
    count += 1
    if moment == f"after {count}":
        os.killpg(0, signal.SIGINT)

if __name__ == "__main__":
    BaseProcess.start = ctrl_c_around
    try:
        run_many(partial(hang, folder), [1, 2, 3], jobs=2, done=print)
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.parametrize("jobs", [1, 3])
def test_every_result_arrives_once(jobs):
    """Whatever the number of processes, each task has one result; the list is in their order."""
    arrived = []
    results = run_many(partial(add_square, 100), range(7), jobs=jobs, done=arrived.append)
    assert [(r.number, r.task, r.require()) for r in results] == [
        (n, n, 100 + n * n) for n in range(7)
    ]
    assert sorted(arrived, key=lambda result: result.number) == results


def test_results_are_told_in_the_order_of_the_tasks(monkeypatch):
    """Whatever comes first; after Ctrl-C what is finished is told, too."""

    def lost(work, waiting, jobs, finish):
        for number in (2, 0, 4):
            finish(TaskResult(number, number))
            moments.append(len(told))
        raise KeyboardInterrupt

    told, moments = [], []
    monkeypatch.setattr("rfmdp.running._run_on_cores", lost)
    with pytest.raises(KeyboardInterrupt):
        run_many(fail, range(5), jobs=2, done=told.append)
    assert [result.number for result in told] == [0, 2, 4]
    assert moments == [0, 1, 1]


def test_no_tasks():
    """Nothing is started for nothing."""
    assert run_many(fail, [], done=pytest.fail) == []


def test_works_beside_the_main_thread():
    """Signals belong to the main thread; many tasks in another one leave them alone."""
    arrived = []
    options = {"jobs": 2, "done": arrived.append}
    thread = threading.Thread(target=run_many, args=(fail, [1, 2]), kwargs=options, daemon=True)
    thread.start()
    thread.join(LIMIT)
    assert sorted(result.value for result in arrived) == [1, 2]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_task_that_fails_is_reported_and_the_others_go_on(jobs):
    """Its error has its text; a bug in another process brings its traceback."""
    tasks = ["fine", "user", "text", "bug", "last"]
    first, *wrong, last = run_many(fail, tasks, jobs=jobs)
    assert (first.require(), last.require()) == ("fine", "last")
    bug = (
        (ZeroDivisionError, None)
        if jobs == 1
        else (SolverError, "ZeroDivisionError(.|\n)*tasks.py")
    )
    kinds = [(ModelError, "^this must hold.$"), (PrismError, "<model>:1:"), bug]
    for result, (kind, words) in zip(wrong, kinds, strict=True):
        with pytest.raises(kind, match=words):
            result.require()


@pytest.mark.parametrize("deaths", [1, 99])
def test_a_killed_process_costs_at_most_its_own_task(tmp_path, deaths):
    """Tasks that were under way are done again, each alone; who dies again is reported."""
    results = run_many(partial(die, str(tmp_path), deaths), range(5), jobs=2)
    assert [r.value for r in results if r.number != 1] == [0, 20, 30, 40]
    if deaths == 1:
        assert results[1].require() == 10
    else:
        with pytest.raises(SolverError, match="ended from outside"):
            results[1].require()


def test_an_error_of_the_caller_ends_the_processes(tmp_path):
    """A record that cannot be written stops everything at once, and comes out."""
    begun = []

    def full(result):
        begun.append(result)
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        run_many(partial(die, str(tmp_path), 0), range(100), jobs=2, done=full)
    assert len(begun) == 1
    assert len(list(tmp_path.iterdir())) < 100


@pytest.mark.parametrize("moment", ["before 0", "before 1", "after 1", "after 2", "working"])
def test_ctrl_c_ends_everything(tmp_path, moment):
    """At a terminal it reaches the whole group, here at any moment of the start or in work."""
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with process([str(script), moment, str(tmp_path)], **pipes) as parent:
        if moment == "working":
            assert wait_until(lambda: len(list(tmp_path.glob("begun-*"))) == 2, parent)
            os.killpg(parent.pid, signal.SIGINT)
        out, error = parent.communicate(timeout=LIMIT)
        assert (parent.returncode, out, error) == (130, "", "")
        assert wait_until(lambda: group_is_gone(parent.pid))


def test_children_follow_a_killed_parent(tmp_path):
    """SIGKILL gives no time to clean up; the children notice by themselves."""
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED)
    with process([str(script), "never", str(tmp_path)]) as parent:
        assert wait_until(lambda: len(list(tmp_path.glob("begun-*"))) == 2, parent)
        parent.kill()
        parent.wait(LIMIT)
        assert wait_until(lambda: group_is_gone(parent.pid))
