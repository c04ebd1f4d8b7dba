"""Many tasks: side by side on the cores of this machine, or on an existing Dask cluster.

    results = run_many(work, tasks, jobs=4, done=write_record)

On this machine Ctrl-C belongs to the parent: processes never hear it, and the parent takes a note,
which the one place that waits for results looks at. So nothing that the caller does in `done` is
hit half-way. Processes leave when the pipe closes of which they hold the reading end.
"""

from __future__ import annotations

import logging
import math
import os
import pickle
import signal
import threading
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
LOOK = 1.0  # seconds to wait for the value of a task that is done
LOST = "A worker was lost several times, perhaps for lack of memory; give workers more."


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
        A function of a module, or a `functools.partial` of one; it travels to the processes.
    tasks
        Started in this order. Tasks and values travel between processes.
    jobs
        Processes on this machine; one per core by default. A single one is this process, and uses
        all cores; several use one core each.
    scheduler
        Address of a Dask scheduler, `tcp://HOST:PORT`, in place of this machine. Both sides load
        pickled objects of the other, so it must be a cluster that you trust.
    patience
        Seconds to wait for the first worker of the scheduler.
    done
        Called in this process with every result, in the order of the tasks, as soon as it is its
        turn; also after Ctrl-C and errors, with what is finished.

    Raises
    ------
    SolverError
        If the scheduler does not answer, or has no worker for too long.
    KeyboardInterrupt
        After Ctrl-C, when all processes have ended; `done` was called to its end.
    """
    if scheduler is not None and jobs is not None:
        raise ModelError(
            "`jobs` counts local processes; leave it out, a scheduler has its own workers."
        )
    results: dict[int, TaskResult] = {}
    told: list[TaskResult] = []

    def tell(result: TaskResult) -> None:
        told.append(result)
        if done is not None:
            done(result)

    def finish(result: TaskResult) -> None:
        results[result.number] = result
        while len(told) in results:
            tell(results[len(told)])

    waiting = deque(enumerate(tasks))
    count = min(jobs or os.cpu_count() or 1, len(waiting))
    try:
        if scheduler is not None:
            _run_on_cluster(scheduler, work, waiting, patience, finish)
        elif count > 1:
            _run_on_cores(work, waiting, count, finish)
        else:
            for number, task in waiting:
                finish(_result(work, number, task))
    except (KeyboardInterrupt, RfmdpError):
        for number in sorted(results)[len(told) :]:
            tell(results[number])
        raise
    return told


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
    pool = ProcessPoolExecutor(jobs, context, _begin, (reader,))
    running: dict[Future[bytes], Numbered] = {}
    lost: list[Numbered] = []
    try:
        while running or (waiting and not lost):
            while waiting and not lost and len(running) < jobs:
                number, task = waiting.popleft()
                try:
                    with _blocked_interrupts():
                        future = pool.submit(_reply, payload, pickle.dumps(task))
                    running[future] = number, task
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


def _begin(reader: Connection) -> None:
    """Prepare a process: it does not hear Ctrl-C, and leaves when nobody wants it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # an exception could be swallowed, or printed, wherever it strikes
    signal.signal(signal.SIGTERM, lambda *_: leave_now(1))
    threading.Thread(target=_leave_at_end, args=(reader,), daemon=True).start()


def _leave_at_end(reader: Connection) -> None:
    with suppress(EOFError, OSError):
        reader.recv_bytes()
    leave_now(1)


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
    client = connected(address, patience)
    from distributed import KilledWorker

    try:
        with _noted_interrupts() as interrupted:
            # a task of its own: unlike scattered data it is made again when its worker is lost
            held = client.submit(bytes, pickle.dumps(work), pure=False)
            running = {
                client.submit(_reply, held, pickle.dumps(task), pure=False): (number, task)
                for number, task in waiting
            }
            while running:
                for future in [future for future in running if future.done()]:
                    try:
                        with _lost_schedulers(address):
                            reply = pickle.loads(future.result(timeout=LOOK))
                    except TimeoutError:  # its worker is lost, another one does it again
                        continue
                    except KilledWorker:
                        reply = None, SolverError(LOST)
                    finish(TaskResult(*running.pop(future), *reply))
                if interrupted.wait(POLL):
                    raise KeyboardInterrupt
    finally:
        client.close(timeout=2)  # nobody wants what is not finished


def gathered(client: Any, address: str, futures: Sequence[Any], patience: float) -> list[Any]:
    """Return the results of futures; raise the error of a task, or SolverError for a lost one."""
    from distributed import KilledWorker, wait as wait_for

    try:
        with _lost_schedulers(address), client.as_current():
            wait_for(futures, timeout=None if patience == math.inf else patience)
            return list(client.gather(futures))
    except TimeoutError:
        raise SolverError(
            f"{address}: no answer within {patience:.2g} s; workers that are short of memory pause "
            "or end: give them more, or more time."
        ) from None
    except KilledWorker:
        raise SolverError(LOST) from None


@contextmanager
def _lost_schedulers(address: str) -> Iterator[None]:
    """Say in one line that a scheduler is gone."""
    import asyncio

    try:
        yield
    except TimeoutError:  # an OSError, too
        raise
    except (CancelledError, asyncio.CancelledError, OSError):
        gone = f"{address}: the scheduler is gone; what is finished is kept."
        raise SolverError(gone) from None


def connected(address: str, patience: float) -> Any:
    """Return a client of a scheduler that has a worker; wait for the first one."""
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise UnsupportedError(
            "A scheduler needs Dask; install it with pip install 'rfmdp[cluster]'."
        ) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # different versions of Python or NumPy elsewhere
            client = Client(address, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError):
        raise SolverError(
            f"{address}: must be tcp://HOST:PORT of a Dask scheduler that answers; start one with "
            "`dask scheduler`, and workers with `dask worker ADDRESS`."
        ) from None
    if not client.scheduler_info()["workers"]:
        logging.getLogger(__name__).warning("%s has no workers yet; waiting for one.", address)
    try:
        client.wait_for_workers(1, timeout=None if patience == math.inf else patience)
    except TimeoutError:
        client.close(timeout=2)
        raise SolverError(
            f"{address} has had no workers for {patience:.2g} s; start some with "
            f"`dask worker {address}`."
        ) from None
    return client
