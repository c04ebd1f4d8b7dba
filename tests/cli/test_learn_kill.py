"""A killed `rfmdp learn` goes on from its file and ends as if nothing had happened."""

import os
import signal
import subprocess
import sys
import time

import numpy as np

from rfmdp.formats.files import load

WORDS = [
    *("learn", "m.prism", "--const", "N=3", "--prop", 'Pmaxmin=? [ F "top" ]'),
    *("--length", "20", "--seed", "5", "--per-decade", "40"),
]


def start(folder, *more):
    """Start the command line as a process of its own."""
    code = "from rfmdp.cli.main import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *WORDS, *more], cwd=folder, stdout=subprocess.DEVNULL
    )


def test_ctrl_c_ends_all_processes_quietly(folder):
    """Ctrl-C at a terminal reaches every process; one says so, in two lines, and no file is cut."""
    code = "from rfmdp.cli.main import main; main()"
    words = [*WORDS, "--trajectories", "100000000", "--seeds", "2", "-o", "a.rfmdp"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    while not (folder / "a-5.rfmdp").exists() and process.poll() is None:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "--resume" in error.splitlines()[0]
    assert error.splitlines()[1:] == [
        "rfmdp: error: interrupted; files are as they were, or complete."
    ]
    assert load(folder / "a-5.rfmdp").history


def test_a_killed_run_resumes_to_the_same_result(folder):
    """SIGKILL after the first saved evaluation; the resumed run equals an uninterrupted one."""
    file, more = folder / "a.rfmdp", ["--method", "rollout", "--trajectories"]
    process = start(folder, *more, "100000000", "-o", "a.rfmdp")
    while not file.exists() and process.poll() is None:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    done = load(file).history[-1].trajectories
    goal = str(4 * done)
    assert start(folder, *more, goal, "-o", "a.rfmdp", "--resume").wait() == 0
    assert start(folder, *more, goal, "-o", "b.rfmdp").wait() == 0
    resumed, whole = load(file), load(folder / "b.rfmdp")
    assert resumed.history[-1].trajectories == 4 * done
    assert np.array_equal(resumed.counts, whole.counts)
    assert np.array_equal(resumed.policy.rows, whole.policy.rows)
    for name in ("guarantee", "performance", "optimistic", "rollout", "replans", "steps"):
        assert np.array_equal(resumed.column(name), whole.column(name), equal_nan=True)
    assert [c.bound for c in resumed.rollouts] == [c.bound for c in whole.rollouts]
