"""Many tasks: side by side on the cores of this machine, or on an existing Dask cluster.

    results = run_many(work, tasks, jobs=4, done=write_record)

On this machine Ctrl-C belongs to the parent. Processes are born with the signal blocked, and then
ignore it. The parent only takes a note, which the one place that waits for results looks at
several times a second; so nothing that the caller does in `done` is hit half-way. Processes hold
the reading end of a pipe, and leave when its other end is closed, which the parent does when it
wants no more of them, and the system if the parent is killed.
"""

from __future__ import annotations

import logging
import math
import os
import pickle
import signal
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from rfmdp.errors import ModelError, RfmdpError, SolverError, UnsupportedError
from rfmdp.threads import set_threads
from rfmdp.writing import handling_interrupts, leave_now

POLL = 0.1  # seconds between two looks at the note of Ctrl-C
CONNECT = 10.0  # seconds to wait for the answer of a scheduler
LOOK = 1.0  # seconds between two looks at the workers of a scheduler


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What became of a task: its value, or the error that ended it."""

    number: int
    task: Any
    value: Any = None
    error: Exception | None = None

    def require(self) -> Any:
        """Return the value, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.value


Work = Callable[[Any], Any]
Done = Callable[[TaskResult], None]
Numbered = tuple[int, Any]  # a task with its number


def run_many(
    work: Work,
    tasks: Iterable[Any],
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    patience: float = math.inf,
    done: Done | None = None,
) -> list[TaskResult]:
    """Call `work(task)` for every task, in other processes; return the results in order.

    A task that fails, or whose process is ended from outside, has an error as its result; the
    others go on.

    Parameters
    ----------
    work
        A function of a module, or a `functools.partial` of one; it travels once per process.
    tasks
        Started in this order. Tasks and values travel between processes.
    jobs
        Processes on this machine; one per core by default. A single one is this process, and uses
        all cores; several use one core each.
    scheduler
        Address of a Dask scheduler, `tcp://HOST:PORT`, in place of this machine. Both sides load
        pickled objects of the other, so it must be a cluster that you trust.
    patience
        Seconds to wait for workers while the scheduler has none.
    done
        Called in this process with every result, in the order of the tasks, as soon as it is its
        turn; also after Ctrl-C and errors, with what is finished.

    Raises
    ------
    SolverError
        If the scheduler does not answer, or has no workers for too long.
    KeyboardInterrupt
        After Ctrl-C, when all processes have ended; `done` was called to its end.
    """
    results: dict[int, TaskResult] = {}
    turn = 0

    def finish(result: TaskResult) -> None:
        results[result.number] = result
        while turn in results:
            tell(turn)

    def tell(number: int) -> None:
        nonlocal turn
        turn = number + 1
        if done is not None:
            done(results[number])

    waiting = deque(enumerate(tasks))
    count = min(jobs or os.cpu_count() or 1, len(waiting))
    if scheduler is not None and jobs is not None:
        raise ModelError(
            "`jobs` counts local processes; leave it out, a scheduler has its own workers."
        )
    try:
        if scheduler is not None:
            _run_on_cluster(scheduler, work, waiting, patience, finish)
        elif count > 1:
            _run_on_cores(work, waiting, count, finish)
        else:
            for number, task in waiting:
                finish(_result(work, number, task))
    except (KeyboardInterrupt, RfmdpError):
        for number in sorted(number for number in results if number >= turn):
            tell(number)
        raise
    return [results[number] for number in sorted(results)]


def _result(work: Work, number: int, task: Any) -> TaskResult:
    try:
        return TaskResult(number, task, work(task))
    except Exception as error:
        return TaskResult(number, task, error=error)


def _run_on_cores(work: Work, waiting: deque[Numbered], jobs: int, finish: Done) -> None:
    """Do tasks in processes; those that were under way when one was lost are done again, alone."""
    payload = pickle.dumps(work)
    with _noted_interrupts() as interrupted:
        while waiting:
            for number, task in _run_in_pool(payload, waiting, jobs, finish, interrupted):
                alone = deque([(number, task)])
                if _run_in_pool(payload, alone, 1, finish, interrupted):
                    text = "Its process was ended from outside, perhaps for lack of memory; try "
                    finish(TaskResult(number, task, error=SolverError(text + "fewer jobs.")))


def _run_in_pool(
    payload: bytes,
    waiting: deque[Numbered],
    jobs: int,
    finish: Done,
    interrupted: threading.Event,
) -> list[Numbered]:
    """Do tasks until none waits or a process is lost; return the tasks that were lost with it."""
    context = get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(jobs, context, _begin, (reader, payload))
    running: dict[Future[bytes], Numbered] = {}
    lost: list[Numbered] = []
    try:
        while running or (waiting and not lost):
            while waiting and not lost and len(running) < jobs:
                number, task = waiting.popleft()
                try:
                    with _blocked_interrupts():
                        running[pool.submit(_reply_here, pickle.dumps(task))] = (number, task)
                except BrokenProcessPool:
                    lost.append((number, task))
            finished, _ = wait(running, POLL, FIRST_COMPLETED)
            if interrupted.is_set():
                raise KeyboardInterrupt
            for future in finished:
                number, task = running.pop(future)
                if isinstance(future.exception(), BrokenProcessPool):
                    lost.append((number, task))
                else:
                    finish(TaskResult(number, task, *pickle.loads(future.result())))
    finally:
        writer.close()  # processes leave
        pool.shutdown()
        reader.close()
    return lost


_work: list[bytes] = []  # of this process, packed


def _begin(reader: Connection, payload: bytes) -> None:
    """Prepare a process: it does not hear Ctrl-C, and leaves when nobody wants it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # an exception could be swallowed, or printed, wherever it strikes
    signal.signal(signal.SIGTERM, lambda *_: leave_now(1))
    threading.Thread(target=_leave_at_end, args=(reader,), daemon=True).start()
    _work[:] = [payload]


def _leave_at_end(reader: Connection) -> None:
    with suppress(EOFError, OSError):
        reader.recv_bytes()
    leave_now(1)


def _reply_here(task: bytes) -> bytes:
    return _reply(_work[0], task)


def _reply(work: bytes, task: bytes) -> bytes:
    """Do a task in another process; return its value and its error, one of them None, packed.

    It has one thread: the other cores do other tasks, which use them better.
    """
    set_threads(1)
    try:
        return pickle.dumps((_unpacked(work)(pickle.loads(task)), None))
    except Exception as error:
        return pickle.dumps((None, portable(error)))


@lru_cache(maxsize=1)
def _unpacked(work: bytes) -> Work:
    unpacked: Work = pickle.loads(work)
    return unpacked


def portable(error: Exception) -> Exception:
    """Return an error that survives the way to another process; a bug keeps its traceback."""
    if isinstance(error, MemoryError):
        return MemoryError()
    for kind in type(error).__mro__:  # an error with a place in a text cannot be made again
        if issubclass(kind, RfmdpError) and kind.__module__ == RfmdpError.__module__:
            return kind(str(error))
    return SolverError(f"{error!r}; this is a bug.\n{''.join(traceback.format_exception(error))}")


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


def _run_on_cluster(
    address: str, work: Work, waiting: deque[Numbered], patience: float, finish: Done
) -> None:
    """Do tasks on the workers of a scheduler, which gives those of a lost worker to another."""
    client = connected(address)
    try:
        with _noted_interrupts() as interrupted:
            # a task of its own: unlike scattered data it is made again when its worker is lost
            held = client.submit(bytes, pickle.dumps(work), pure=False)
            running = {
                client.submit(_reply, held, pickle.dumps(task), pure=False): (number, task)
                for number, task in waiting
            }
            look = last_seen = time.monotonic()
            while running:
                for future in [future for future in running if future.done()]:
                    reply = _received(address, future)
                    if reply is not None:
                        finish(TaskResult(*running.pop(future), *reply))
                if interrupted.wait(POLL):
                    raise KeyboardInterrupt
                if time.monotonic() >= look:
                    last_seen = _last_seen(address, client, last_seen, patience)
                    look = time.monotonic() + LOOK
    finally:
        client.close(timeout=2)  # nobody wants what is not finished


def gathered(client: Any, address: str, futures: Sequence[Any], patience: float) -> list[Any]:
    """Return the results of futures, waiting for workers while there are none.

    Raises
    ------
    SolverError
        If the scheduler is gone, has no workers or no answer for too long, or lost a task several
        times.
    RfmdpError
        That of a task.
    """
    import asyncio

    from distributed import KilledWorker, wait as wait_for

    begun = last_seen = time.monotonic()
    while True:
        try:
            with client.as_current():
                wait_for(futures, timeout=LOOK)
            return list(client.gather(futures))
        except TimeoutError:
            last_seen = _last_seen(address, client, last_seen, patience)
            if time.monotonic() - begun > patience:
                raise SolverError(
                    f"{address}: no answer within {patience:.2g} s; workers that are short of "
                    "memory pause, give them more, or more time."
                ) from None
        except KilledWorker:
            raise SolverError(
                "A worker was lost several times, perhaps for lack of memory; give workers more."
            ) from None
        except (CancelledError, asyncio.CancelledError, OSError):
            raise _gone(address) from None


def worker_memory(client: Any, address: str, patience: float) -> float:
    """Return how many bytes all workers of a scheduler may take; waits for the first one."""
    last_seen = time.monotonic()
    while not (workers := client.scheduler_info()["workers"]):
        last_seen = _last_seen(address, client, last_seen, patience)
        time.sleep(POLL)
    limits = [worker["memory_limit"] or 0 for worker in workers.values()]
    return float(sum(limits)) if all(limits) else math.inf


def _received(address: str, future: Any) -> tuple[Any, Exception | None] | None:
    """Return the value and the error of a task, one of them None.

    Returns None if the worker that had it is lost, and another one has to do it again.
    """
    import asyncio

    from distributed import KilledWorker

    try:
        reply: tuple[Any, Exception | None] = pickle.loads(future.result(timeout=LOOK))
    except KilledWorker:
        return None, SolverError("Its worker was lost several times, perhaps for lack of memory.")
    except TimeoutError:
        return None
    except (CancelledError, asyncio.CancelledError, OSError):
        raise _gone(address) from None
    return reply


def _last_seen(address: str, client: Any, since: float, patience: float) -> float:
    """Return when the scheduler had workers; raise SolverError if that is too long ago."""
    try:
        workers = client.scheduler_info()["workers"]
    except OSError:
        raise _gone(address) from None
    now = time.monotonic()
    if workers:
        return now
    if now - since > patience:
        raise SolverError(
            f"{address} has had no workers for {patience:.2g} s; start some with "
            f"`dask worker {address}`."
        )
    if now - since < LOOK:
        logging.getLogger(__name__).warning("%s has no workers yet; waiting for one.", address)
    return since


def _gone(address: str) -> SolverError:
    return SolverError(f"{address}: the scheduler is gone; what is finished is kept.")


def connected(address: str) -> Any:
    """Return a client of a scheduler."""
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise UnsupportedError(
            "A scheduler needs Dask; install it with pip install 'rfmdp[cluster]'."
        ) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # different versions of Python or NumPy elsewhere
            return Client(address, timeout=CONNECT, set_as_default=False)
    except ValueError as error:
        raise ModelError(f"{address}: must be tcp://HOST:PORT of a scheduler ({error}).") from None
    except OSError:
        raise SolverError(
            f"{address}: no Dask scheduler answers there; start one with `dask scheduler`, and "
            "workers with `dask worker ADDRESS`."
        ) from None
