"""The command `rfmdp`, also as `python -m rfmdp`."""

import atexit
import gc
import os
import sys
import threading
from contextlib import suppress

INTERRUPTED = 130


def main() -> None:
    """Run the command line and leave the process; Ctrl-C is heard from the first import on."""
    _open_streams()
    gc.set_threshold(250_000, 20, 20)  # a small solve makes 160,000 objects, hardly any garbage
    code = INTERRUPTED
    try:
        from rfmdp.cli.main import run

        code = run()
        if code != INTERRUPTED:
            atexit._run_exitfuncs()
            if _others_at_work():
                sys.exit(code)
    except KeyboardInterrupt:
        code = INTERRUPTED
    # Interrupted, Python would kill itself by the signal where it struck in certain places, and
    # wait for threads. Otherwise it would take a quarter of a second to free what ends anyway.
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # a full disk: `run` has said so
            stream.flush()
    os._exit(code)


def _open_streams() -> None:
    """Put the null device in place of standard streams that are closed: Python has None there.

    Opened first, it also takes their numbers, which files must not get.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def _others_at_work() -> bool:
    """Return whether a thread is left that Python would wait for."""
    return any(
        not thread.daemon and thread is not threading.main_thread()
        for thread in threading.enumerate()
    )


if __name__ == "__main__":
    main()
