"""What commands say beside their results: exit codes, lines on standard error, progress."""

from __future__ import annotations

import re
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from shutil import get_terminal_size

from rfmdp.writing import handling_interrupts, leave_now

CERTIFIED, USER_ERROR, NOT_CERTIFIED = 0, 1, 2  # exit codes
PATIENCE = 1.0  # seconds before progress is shown at a terminal
REFRESH = 0.1  # seconds between two updates there
ERASE = "\r\033[K"  # the line, at a terminal
PLAIN = 20.0  # seconds between two lines elsewhere
INTERRUPTED = 130  # exit code
GRACE = 5.0  # seconds for what is under way to end
COMPILING = "preparing compiled code, which takes a minute once after installation"
_noted = threading.Event()


OPTIONS = {  # what the library advises, and what the command line has for it
    "`resume=`": "--resume",
    "`length=`": "--length",
    "`stop=StopWhen(guarantee=...)`": "--target",
    "`LpBall`s instead of `with_radius`": "--radius l1:R",
    "`Exact()`": "--inner exact",
    "`automaton=read_automaton(FILE)`": "--automaton FILE",
    "`p_min=`": "--p-min",
    "`rewards=`": "--rewards",
    '`selection="none"`': "--selection none",
    "`columns={'reward': None}`": "--column reward=",
    "`rewards=RewardRange(low, high)`": "--rewards LOW:HIGH",
}


def as_options(message: str) -> str:
    """Return a message of the library with the words of the command line."""
    for python, option in OPTIONS.items():
        message = message.replace(python, option)
    message = re.sub(r"`columns=\{(['\"])(.*?)\1: NAME\}`", r"--column \2=NAME", message)
    for constants, names in re.findall(r"(`constants=\{(.*?)\}`)", message):
        values = ",".join(f"{name}=..." for name in re.findall(r'"(\w+)"', names))
        message = message.replace(constants, f"--const {values}")
    return message


def complain(message: str, kind: str = "error") -> None:
    """Print one line on standard error; at a terminal also the source line and caret."""
    message = as_options(message)
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


class ShownProgress:
    """Shows how far a long step has come: a line that changes at a terminal, elsewhere a new one.

    A quiet one shows nothing: several runs may go side by side.
    """

    def __init__(self, what: str, quiet: bool) -> None:
        self._what, self._quiet, self.text = what, quiet, ""
        self._started, self._shown = time.monotonic(), 0.0
        self._lock, self._terminal = threading.Lock(), sys.stderr.isatty() and not quiet

    def building(self, states: int, transitions: int) -> None:
        """Take note of states and transitions so far."""
        self.say(f"{states:,} states, {transitions:,} transitions")

    def solving(self, phase: str, sweeps: int, width: float) -> None:
        """Take note of sweeps so far, and of what is left."""
        self.say(f"{phase}, sweep {sweeps:,}, {width:.2e} left")

    def say(self, text: str) -> None:
        """Take note of what is done; it is shown if it is time for that."""
        self.text, now = text, time.monotonic()
        patience, pause = (PATIENCE, REFRESH) if self._terminal else (PLAIN, PLAIN)
        if self._quiet or now - self._started < patience or now - self._shown < pause:
            return
        with self._lock:
            self._shown = now
            line = f"{self._what}: {now - self._started:.0f} s{', ' if text else ''}{text}"
            if self._terminal:  # a line that is too long would not be written over
                line = f"{ERASE}{line[: get_terminal_size().columns - 1]}"
            print(line, end="" if self._terminal else "\n", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Remove the line that changes."""
        with self._lock:
            if self._terminal and self._shown:
                print(ERASE, end="", file=sys.stderr, flush=True)


@contextmanager
def showing_progress(what: str, *, quiet: bool = False) -> Iterator[ShownProgress]:
    """Show progress while something runs; seconds go on while it reports nothing."""
    shown, ended = ShownProgress(what, quiet), threading.Event()

    def tick() -> None:
        while not ended.wait(PATIENCE or REFRESH):
            shown.say(shown.text)

    clock = threading.Thread(target=tick, daemon=True)
    clock.start()
    with ExitStack() as stack:
        for end in (shown.clear, clock.join, ended.set):  # the last one comes first
            stack.callback(end)
        if "rfmdp.kernels.decorator" in sys.modules:
            from rfmdp.kernels.decorator import when_compiling

            stack.enter_context(when_compiling(lambda: shown.say(COMPILING)))
        yield shown


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
