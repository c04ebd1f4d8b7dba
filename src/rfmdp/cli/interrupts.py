"""Ctrl-C on the command line: the first ends the command cleanly, a second one at once.

A solver that is interrupted returns the bounds it had; whoever asks several questions in a row
must then stop asking, so a note is taken. Should the exception get lost on its way, the process
leaves a few seconds later all the same.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rfmdp.signals import handling_interrupts
from rfmdp.writing import leave_now

INTERRUPTED = 130  # exit code
GRACE = 5.0  # seconds for what is under way to end

_noted = threading.Event()


@contextmanager
def noted() -> Iterator[None]:
    """Take a note of Ctrl-C besides raising KeyboardInterrupt."""
    _noted.clear()
    late = threading.Timer(GRACE, leave_now, [INTERRUPTED])
    late.daemon = True

    def note(*_: object) -> None:
        if _noted.is_set():
            leave_now(INTERRUPTED)
        _noted.set()
        late.start()
        raise KeyboardInterrupt

    try:
        with handling_interrupts(note):
            yield
    finally:
        late.cancel()


def stop_if_interrupted() -> None:
    """Raise KeyboardInterrupt if Ctrl-C was pressed, even where it was caught before."""
    if _noted.is_set():
        raise KeyboardInterrupt
