"""What the two commands share: options, their words, and how a command ends."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from rfmdp.errors import FileError, ModelError, RfmdpError

DONE, WRONG, DIFFERENT, INTERRUPTED = 0, 1, 2, 130  # exit codes


def options(name: str, about: str, timeout: float) -> argparse.ArgumentParser:
    """Return a parser with the options of both commands."""
    parser = argparse.ArgumentParser(prog=f"python -m experiments.{name}", description=about)
    parser.add_argument("--domains", default="", help="aircraft,drone,...; default: all")
    parser.add_argument("--methods", default="", help="default: those of the published table")
    parser.add_argument("--quick", action="store_true", help="a few minutes")
    parser.add_argument("--timeout", type=positive, default=timeout, help="seconds per run")
    parser.add_argument("--jobs", type=int, help="processes; default: all cores")
    parser.add_argument("--scheduler", help="Dask scheduler, tcp://HOST:PORT")
    parser.add_argument("-o", "--output", default="reproduced", help="folder to write to")
    parser.add_argument("--records", help=f"table of records; default: OUTPUT/{name}.parquet")
    parser.add_argument("--report", action="store_true", help="no runs: tables and figures only")
    return parser


def records_file(given: argparse.Namespace, name: str) -> Path:
    """Return the table of records; to report on, it must be there."""
    file = Path(given.records or Path(given.output) / f"{name}.parquet")
    if given.report and not file.exists():
        raise FileError(f"{file}: must be a table of records, found no file; run first.")
    return file


def positive(text: str) -> float:
    """Return a number above 0."""
    number = float(text)
    if not number > 0.0:
        raise argparse.ArgumentTypeError(f"must be above 0, got {text}")
    return number


def words(text: str) -> list[str]:
    """Return the words between commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


def seeds(text: str) -> list[int]:
    """Return the seeds of `3` (the first three) or `0,4,5`."""
    listed = words(text)
    if not listed or not all(word.isdecimal() for word in listed) or text.strip() == "0":
        raise ModelError(f"--seeds must be a number, or seeds with commas, got '{text}'.")
    numbers = [int(word) for word in listed]
    return numbers if "," in text else list(range(numbers[0]))


def ending(command: Callable[[], int]) -> int:
    """Return the exit code of a command; errors are one line."""
    try:
        return command()
    except RfmdpError as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here.", file=sys.stderr)
        return INTERRUPTED


def say(text: str) -> None:
    """Print a line about the progress."""
    print(text, file=sys.stderr, flush=True)
