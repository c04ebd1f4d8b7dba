"""Files that are complete or untouched, whatever interrupts; and who hears Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from uuid import uuid4

from rfmdp.errors import FileError

_unfinished: set[Path] = set()


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a place beside `path` to write to; what is there takes its place at the end.

    It is a FileError if it cannot be written.
    """
    place = Path(path)
    temporary = place.with_name(f".{place.name}.{uuid4().hex}.part")
    _unfinished.add(temporary)
    try:
        yield temporary
        os.replace(temporary, place)
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise FileError(f"{place}: cannot be written ({reason}).") from error
    finally:
        with suppress(OSError):
            temporary.unlink()
        _unfinished.discard(temporary)


@contextmanager
def handling_interrupts(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Let a handler hear Ctrl-C, if this process does.

    Signals go to the main thread; a job in the background hears none.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def leave_now(code: int) -> None:
    """End this process at once, from within a signal handler say; unfinished files are removed."""
    for temporary in tuple(_unfinished):
        with suppress(OSError):
            temporary.unlink()
    os._exit(code)


def check_writable(*paths: str | os.PathLike[str] | None) -> None:
    """Raise FileError before long work if files could not be written after it; None is no file."""
    for place in (Path(path) for path in paths if path is not None):
        if place.is_dir():
            raise FileError(f"{place}: cannot be written (it is a folder); name a file.")
        if not place.parent.is_dir():
            raise FileError(f"{place}: cannot be written (there is no folder {place.parent}).")
        if not os.access(place.parent, os.W_OK):
            raise FileError(f"{place}: cannot be written (no permission in {place.parent}).")
