"""Tasks on local cores: results once, errors, lost processes, and Ctrl-C at every moment."""

import os
import signal
import subprocess
import threading

import pytest

from campaign.tasks import die_once, fail, square
from processes import LIMIT, group_is_gone, process, wait_until
from rfmdp.campaign.local import LocalCores
from rfmdp.campaign.runner import make_runner
from rfmdp.errors import ModelError, PrismError, SolverError

INTERRUPTED = """
import os, signal, sys
from multiprocessing.process import BaseProcess
from campaign.tasks import hang
from rfmdp.campaign.local import LocalCores

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
        LocalCores(2).run(hang, folder, [1, 2, 3], print)
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.parametrize("jobs", [1, 3])
def test_every_result_arrives_once(jobs):
    """Whatever the number of processes, each task has one result, with its number."""
    found = []
    LocalCores(jobs).run(
        square, 100, range(7), lambda number, result: found.append((number, result))
    )
    assert sorted(found) == [(n, 100 + n * n) for n in range(7)]


def test_no_tasks():
    """Nothing is started for nothing."""
    make_runner().run(square, 0, [], pytest.fail)


def test_works_beside_the_main_thread():
    """Signals belong to the main thread; a campaign in another one leaves them alone."""
    found = []
    thread = threading.Thread(
        target=LocalCores(2).run,
        args=(square, 0, [1, 2], lambda _, result: found.append(result)),
        daemon=True,
    )
    thread.start()
    thread.join(LIMIT)
    assert sorted(found) == [1, 4]


@pytest.mark.parametrize(
    ("tasks", "error", "words"),
    [
        (["user", "fine"], ModelError, "^this must hold.$"),
        (["fine", "text", "fine"], PrismError, "<model>:1:"),
        (["fine", "bug", "fine"], SolverError, "ZeroDivisionError(.|\n)*tasks.py"),
    ],
)
def test_errors_arrive(tasks, error, words):
    """An error of a task is raised here with its text; a bug brings its traceback."""
    with pytest.raises(error, match=words):
        LocalCores(2).run(fail, None, tasks, lambda *_: None)


def test_a_killed_process_is_told(tmp_path):
    """Whoever ends a process from outside gets an error, and nobody waits for ever."""
    with pytest.raises(SolverError, match="ended from outside"):
        LocalCores(2).run(die_once, str(tmp_path), [0, 1, 2], lambda *_: None)


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
