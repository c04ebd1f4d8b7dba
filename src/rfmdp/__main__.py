"""The command `rfmdp`, also as `python -m rfmdp`."""

import sys


def main() -> None:
    """Run the command line and leave the process; Ctrl-C is heard from the first import on."""
    try:
        from rfmdp.cli.main import run

        code = run()
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
