"""Tasks on the cores of this machine, in processes of their own.

Ctrl-C belongs to the parent. Children are born with the signal blocked and then ignore it, so that
no moment of their start is open to it. While they live, the parent's handler only takes a note;
the one place that waits for results looks at the note several times a second, ends the children
and raises KeyboardInterrupt. Nothing else in the parent can be hit half-way. Should the parent die
without a word, the children notice and leave.
"""

from __future__ import annotations

import pickle
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any

from rfmdp.campaign.runner import Done, Work, packed_result, unpacked_result
from rfmdp.errors import SolverError
from rfmdp.signals import handling_interrupts
from rfmdp.writing import leave_now

POLL = 0.1  # seconds between two looks at the note of Ctrl-C
GRACE = 1.0  # seconds for children to leave by themselves


@dataclass(frozen=True, slots=True)
class LocalCores:
    """Up to `jobs` processes; a single job is done in this one."""

    jobs: int

    def run(self, work: Work, shared: Any, tasks: Sequence[Any], done: Done) -> None:
        """Do all tasks; see `Runner`.

        Raises
        ------
        SolverError
            If a process was ended from outside.
        KeyboardInterrupt
            After Ctrl-C, when all processes have ended.
        """
        jobs = min(self.jobs, len(tasks))
        if jobs <= 1:
            for number, task in enumerate(tasks):
                done(number, work(shared, task))
            return
        with _noted_interrupts() as interrupted:
            pool = _Pool(pickle.dumps((work, shared)), list(tasks))
            try:
                pool.start(jobs)
                while pool.working:
                    if interrupted.is_set():
                        raise KeyboardInterrupt
                    for number, result in pool.results():
                        done(number, result)
            finally:
                pool.end()


class _Pool:
    """Processes and what they do at the moment."""

    def __init__(self, payload: bytes, tasks: list[Any]) -> None:
        self._payload, self._tasks, self._next = payload, tasks, 0
        self._children: dict[Connection, Any] = {}
        self.working: set[Connection] = set()

    def start(self, jobs: int) -> None:
        """Start processes that never hear Ctrl-C."""
        context = get_context("spawn")
        resource_tracker.ensure_running()  # starting it would unblock the signal
        with _blocked_interrupts():
            for _ in range(jobs):
                ours, theirs = context.Pipe()
                child = context.Process(target=_serve, args=(theirs,), daemon=True)
                child.start()
                theirs.close()
                self._children[ours] = child
                self.working.add(ours)

    def results(self) -> Iterator[tuple[int, Any]]:
        """Wait a moment; give the results that came, and new tasks to whoever is free."""
        for connection in wait(self.working, POLL):
            assert isinstance(connection, Connection)
            try:
                number, reply = connection.recv()
                if number is None:  # it has started
                    connection.send_bytes(self._payload)
                else:
                    yield number, unpacked_result(reply)
                self._give(connection)
            except (EOFError, ConnectionError):
                raise SolverError(
                    "A process was ended from outside, perhaps for lack of memory; what is "
                    "finished is kept. Try a smaller --jobs."
                ) from None

    def _give(self, connection: Connection) -> None:
        if self._next == len(self._tasks):
            self.working.discard(connection)
            return
        connection.send((self._next, self._tasks[self._next]))
        self._next += 1

    def end(self) -> None:
        """End all processes: politely, so that they remove unfinished files, then for good."""
        with _blocked_interrupts():
            for child in self._children.values():
                child.terminate()
            deadline = time.monotonic() + GRACE
            for child in self._children.values():
                child.join(max(deadline - time.monotonic(), 0.0))
                if child.exitcode is None:
                    child.kill()
                    child.join()


def _serve(connection: Connection) -> None:
    """Do tasks until there are no more: the life of a child."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)
    threading.Thread(target=_follow_parent, daemon=True).start()
    with suppress(EOFError, ConnectionError):  # the parent is gone
        connection.send((None, b""))
        work, shared = pickle.loads(connection.recv_bytes())
        while True:
            number, task = connection.recv()
            connection.send((number, packed_result(work, shared, task)))


def _leave(*_: object) -> None:
    leave_now(1)  # an exception could be swallowed, or printed, wherever it strikes


def _follow_parent() -> None:
    """Leave when the parent is gone, whatever this process is doing."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        leave_now(1)


@contextmanager
def _noted_interrupts() -> Iterator[threading.Event]:
    """Take a note of Ctrl-C instead of raising; whoever waits looks at it."""
    noted = threading.Event()
    with handling_interrupts(lambda *_: noted.set()):
        yield noted
    if noted.is_set():
        raise KeyboardInterrupt


@contextmanager
def _blocked_interrupts() -> Iterator[None]:
    """Let Ctrl-C wait; processes that are started meanwhile inherit this."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
