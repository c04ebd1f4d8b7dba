"""The command `rfmdp`, also as `python -m rfmdp`."""

import os
import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command line and leave the process; Ctrl-C is heard from the first import on."""
    try:
        from rfmdp.cli.main import run

        code = run()
        if code != INTERRUPTED:
            sys.exit(code)
    except KeyboardInterrupt:
        pass
    # Python would kill itself by the signal where it struck in certain places, and wait for threads
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
