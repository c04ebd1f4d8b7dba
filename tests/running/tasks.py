"""Work for runners; processes elsewhere import it by name."""

import os
import signal
import time
from pathlib import Path

from rfmdp.errors import ModelError


def add_square(offset, task):
    """Return a number that depends on both arguments."""
    return offset + task * task


def fail(task):
    """Fail on one task, with an error that is a user's, one with a place in a text, or a bug."""
    if task == "user":
        raise ModelError("this must hold.")
    if task == "text":
        from rfmdp.language.build import parse_prism  # heavy; no other task needs it

        parse_prism("mdp module m x:[0..1] endmodule")
    if task == "bug":
        raise ZeroDivisionError
    return task


def die(folder, deaths, task):
    """Kill the process that does task 1, so many times; leave a trace of every call."""
    (Path(folder) / f"{task}-{time.time_ns()}").touch()
    if task == 1 and len(list(Path(folder).glob("1-*"))) <= deaths:
        os.kill(os.getpid(), signal.SIGKILL)
    return task * 10


def hang(folder, task):
    """Say that a task has begun, and never end it."""
    (Path(folder) / f"begun-{task}").touch()
    while True:
        time.sleep(60)
