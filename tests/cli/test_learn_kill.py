"""A stopped `rfmdp learn` goes on from its file and ends as if nothing had happened."""

import os
import signal
import subprocess

import numpy as np

from processes import LIMIT, PATIENT, group_is_gone, process, wait_until
from rfmdp.cli.main import run
from rfmdp.formats.files import load

WORDS = [
    *("learn", "m.prism", "--const", "N=3", "--prop", 'Pmaxmin=? [ F "top" ]'),
    *("--length", "20", "--seed", "5"),
]

KILLED = """
import os, signal, sys
from rfmdp.cli.main import run
from rfmdp.learning import learner

save = learner.save

def save_two(found, file):
    if len(found.history) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    save(found, file)

learner.save = save_two
run(sys.argv[1:])
"""


def test_ctrl_c_ends_all_processes_quietly(folder):
    """Ctrl-C at a terminal reaches every process; one says so, in two lines, and no file is cut."""
    words = [*WORDS, "--trajectories", "100000000", "--seeds", "2", "--jobs", "2", "-o", "a.rfmdp"]
    file = folder / "a-5.rfmdp"
    command = ["-c", PATIENT, *words]
    with process(command, cwd=folder, stderr=subprocess.PIPE, text=True) as parent:
        assert wait_until(lambda: file.exists() and len(load(file).history) > 0, parent)
        os.killpg(parent.pid, signal.SIGINT)
        _, error = parent.communicate(timeout=LIMIT)
        assert parent.returncode == 130
        # a slow machine has told its progress before
        told = [line for line in error.splitlines() if not line.startswith("learning: ")]
        assert "--resume" in told[0]
        assert told[1:] == ["rfmdp: error: interrupted; files are as they were, or complete."]
        assert wait_until(lambda: group_is_gone(parent.pid))
    assert load(file).history


def test_a_killed_run_resumes_to_the_same_result(folder):
    """SIGKILL between the second saved evaluation and the third; nothing of it is left to see."""
    words = [*WORDS, "--method", "tied", "--trajectories"]
    with process(["-c", KILLED, *words, "1000", "-o", "a.rfmdp"], cwd=folder) as started:
        assert started.wait(LIMIT) == -signal.SIGKILL
    done = load(folder / "a.rfmdp").history[-1].trajectories
    goal = str(4 * done)
    assert run([*words, goal, "-o", "a.rfmdp", "--resume"]) == 0
    assert run([*words, goal, "-o", "b.rfmdp"]) == 0
    resumed, whole = load(folder / "a.rfmdp"), load(folder / "b.rfmdp")
    assert resumed.history[-1].trajectories == 4 * done
    assert np.array_equal(resumed.counts, whole.counts)
    assert np.array_equal(resumed.policy.rows, whole.policy.rows)
    for name in ("guarantee", "performance", "optimistic", "replans", "steps"):
        assert np.array_equal(resumed.column(name), whole.column(name), equal_nan=True)
