"""The command `rfmdp`, also as `python -m rfmdp`."""

import gc
import os
import sys
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
    except KeyboardInterrupt:
        pass
    if code == INTERRUPTED:  # `sys.exit` would wait for threads at work
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):  # a full disk: `run` has said so
                stream.flush()
        os._exit(code)
    gc.disable()
    gc.freeze()  # or Python looks for a quarter of a second for garbage in what ends anyway
    sys.exit(code)


def _open_streams() -> None:
    """Put the null device in place of standard streams that are closed: Python has None there.

    Opened first, it also takes their numbers, which files must not get.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


if __name__ == "__main__":
    main()
