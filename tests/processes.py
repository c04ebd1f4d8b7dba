"""Processes of tests: every one is waited for with a limit, and killed at the end."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

TESTS = Path(__file__).parent
LIMIT = 600.0  # seconds that no process of a test takes, even if all cores compile kernels
# `rfmdp` with more time to end after Ctrl-C than the five seconds at a terminal:
# a machine that is busy needs them
PATIENT = f"""
from rfmdp.__main__ import main
from rfmdp.cli import terminal

if __name__ == "__main__":
    terminal.GRACE = {LIMIT / 4.0}
    main()
"""


def python(code, *words, **options):
    """Run a text as a Python process to its end; returns it with all that it printed."""
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, **options)


@contextmanager
def process(words, **options):
    """Start a Python process with a group of its own; whatever happens, the group ends."""
    paths = [str(TESTS), str(TESTS.parent / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    started = subprocess.Popen(
        [sys.executable, *words],
        env=environment,
        start_new_session=True,
        preexec_fn=_hear_ctrl_c,
        **options,
    )
    try:
        yield started
    finally:
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.communicate(timeout=LIMIT)


def _hear_ctrl_c():
    """Undo what a shell does to jobs in the background, which tests may be."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_until(condition, *processes):
    """Wait for a condition while processes live; return whether it came true."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline and all(p.poll() is None for p in processes):
        if condition():
            return True
        time.sleep(0.01)
    return condition()


def wait_for_line(words, started):
    """Read what a process prints up to a line with these words, and return the line."""
    too_late = threading.Timer(LIMIT, started.kill)
    too_late.start()
    try:
        line = started.stdout.readline()
        while line and words not in line:
            line = started.stdout.readline()
    finally:
        too_late.cancel()
    assert line, f"no line with {words!r}"
    return line


def group_is_gone(leader):
    """Return whether no process of a group is left, but for the dead that nobody asked about."""
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return True
    return set(_states(leader)) == {"Z"}  # the first process of some containers asks late


def _states(group):
    """Give the states of the processes of a group, as `ps` has them, where there is /proc."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # ended meanwhile
            state, _, own = file.read_text().rpartition(")")[2].split()[:3]
            if int(own) == group:
                yield state
