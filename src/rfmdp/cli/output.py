"""What commands say and leave behind: lines on standard error, progress, complete files."""

from __future__ import annotations

import csv
import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any, TextIO

from rfmdp.writing import replacing

if TYPE_CHECKING:
    from rfmdp.outer.solution import Solution

PATIENCE = 1.0  # seconds before progress is shown at a terminal
REFRESH = 0.1  # seconds between two updates there
PLAIN = 20.0  # seconds between two lines elsewhere


def complain(message: str, kind: str = "error") -> None:
    """Print one line on standard error; at a terminal also the source line and caret."""
    first, _, rest = message.partition("\n")
    if not sys.stderr.isatty():
        # a line that announces others is of no use without them
        message = f"{first} {rest.partition(chr(10))[0].strip()}" if first.endswith(":") else first
    sys.stdout.flush()
    print(f"rfmdp: {kind}: {message}", file=sys.stderr)


@contextmanager
def spoken_warnings() -> Iterator[None]:
    """Print warnings of rfmdp as lines on standard error instead of Python's way."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        complain(str(warning.message), kind="warning")


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        return time.perf_counter() - self._start


@contextmanager
def written(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Open a file for writing that replaces `path` only when all of it is there.

    Raises
    ------
    FileError
        If it cannot be written.
    """
    with replacing(path) as part, part.open("x", encoding="utf-8", newline="") as file:
        yield file


def write_policy(solution: Solution, path: str | os.PathLike[str]) -> None:
    """Write a policy as CSV: the variables of the state, the step if it matters, the action."""
    model, policy = solution.model, solution.policy
    names = [v.name for v in model.variables] or ["state"]
    steps = [] if policy.stationary else ["step"]
    with written(path) as file:
        table = csv.writer(file)
        table.writerow([*names, *steps, "action"])
        for step in range(len(policy.rows)):
            when = [step] if steps else []
            for state, action in enumerate(policy.actions(model, step)):
                values = model.valuations[state].tolist() if model.variables else [state]
                table.writerow([*values, *when, action])


class Watch:
    """Shows how far a long step has come: a bar at a terminal, elsewhere a line now and then."""

    def __init__(self, what: str) -> None:
        self._what, self._started, self._shown = what, time.monotonic(), 0.0
        self._bar: Any = None
        self._lock = Lock()
        self._terminal = sys.stderr.isatty()
        self._timer = Timer(PATIENCE, self._show, [""])  # for steps that report nothing
        self._timer.daemon = True
        if self._terminal:
            self._timer.start()

    def building(self, states: int, transitions: int) -> None:
        """Take note of states and transitions so far."""
        self._show(f"{states:,} states, {transitions:,} transitions")

    def verifying(self, what: str) -> None:
        """Take note of the check that is made."""
        self._show(what)

    def solving(self, phase: str, sweeps: int, width: float) -> None:
        """Take note of sweeps so far, and of what is left."""
        self._show(f"{phase}, sweep {sweeps:,}, {width:.2e} left")

    def compiling(self) -> None:
        """Take note that a kernel is compiled."""
        self._show("compiling, once after installation")

    def close(self) -> None:
        """Remove the bar."""
        if self._terminal:
            self._timer.cancel()
            self._timer.join()
        if self._bar is not None:
            self._bar.stop()

    def _show(self, text: str) -> None:
        now = time.monotonic()
        patience, pause = (PATIENCE, REFRESH) if self._terminal else (PLAIN, PLAIN)
        if now - self._started < patience or now - self._shown < pause:
            return
        with self._lock:
            self._shown = now
            if not self._terminal:
                print(f"{self._what}: {now - self._started:.0f} s, {text}", file=sys.stderr)
                return
            if self._bar is None:
                self._bar = _bar(self._what)
            self._bar.update(self._bar.task_ids[0], detail=text)


@contextmanager
def watching(what: str) -> Iterator[Watch]:
    """Show progress while something runs."""
    watch = Watch(what)
    try:
        with _heard_compiler(watch):
            yield watch
    finally:
        watch.close()


@contextmanager
def _heard_compiler(watch: Watch) -> Iterator[None]:
    """Let the user see that the first minute goes into compiling."""
    if "numba" not in sys.modules:
        yield
        return
    from numba.core import event

    class Compiling(event.Listener):  # type: ignore[misc]
        """Hears when numba compiles a kernel that it has not saved."""

        def on_start(self, _: object) -> None:
            watch.compiling()

        def on_end(self, _: object) -> None:
            pass

    with event.install_listener("numba:compile", Compiling()):
        yield


class Silence:
    """Shows nothing, where several runs go side by side."""

    def building(self, states: int, transitions: int) -> None:
        """Take no note."""

    def solving(self, phase: str, sweeps: int, width: float) -> None:
        """Take no note."""


@contextmanager
def silent(what: str) -> Iterator[Silence]:
    """Show no progress while something runs."""
    yield Silence()


def _bar(what: str) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
        TextColumn("{task.fields[detail]}"),
        console=Console(stderr=True),
        transient=True,
    )
    bar.start()
    bar.add_task(what, total=None, detail="")
    return bar
