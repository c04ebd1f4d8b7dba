"""One runner for all that is done many times: seeds, radii, constants, domains by methods.

    make_runner(jobs=4).run(work, shared, tasks, done)
    make_runner(scheduler="tcp://host:8786").run(work, shared, tasks, done)

`work(shared, task)` is called once per task, somewhere; `done(number, result)` is called here, once
per task, as results arrive and in whatever order. So whoever writes a record in `done` writes it
exactly once, and what is written stays when the rest is interrupted. An exception of `work` ends
the campaign and is raised here.
"""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from rfmdp.errors import ModelError, RfmdpError, SolverError

Work = Callable[[Any, Any], Any]
Done = Callable[[int, Any], None]


class Runner(Protocol):
    """Where tasks are done."""

    def run(self, work: Work, shared: Any, tasks: Sequence[Any], done: Done) -> None:
        """Call `done(number, work(shared, task))` for all tasks.

        Parameters
        ----------
        work
            A function of a module; it, `shared`, tasks and results travel between processes.
        shared
            What all tasks need; it travels once per process.
        tasks
            Started in this order.
        done
            Called in this process with the number of a task and its result.
        """


def make_runner(jobs: int | None = None, scheduler: str | None = None) -> Runner:
    """Return a runner: processes on this machine, or an existing Dask cluster.

    Parameters
    ----------
    jobs
        Local processes; all cores by default. One job runs in this process, with all its threads.
    scheduler
        Address of a Dask scheduler, `tcp://host:port`.
    """
    if scheduler is not None:
        from rfmdp.campaign.cluster import Cluster

        if jobs is not None:
            raise ModelError("--jobs is for local cores; the scheduler knows its own workers.")
        return Cluster(scheduler)
    from rfmdp.campaign.local import LocalCores

    return LocalCores(jobs or os.cpu_count() or 1)


def packed_result(work: Work, shared: Any, task: Any) -> bytes:
    """Do a task in another process; return its result or its error, packed to travel back.

    It has one thread: the other cores do other tasks, which use them better.
    """
    from rfmdp.threads import set_threads

    set_threads(1)
    try:
        return pickle.dumps((work(shared, task), None))
    except Exception as error:
        return pickle.dumps((None, _portable(error)))


def unpacked_result(reply: bytes) -> Any:
    """Return the result in a reply of `packed_result`, or raise its error."""
    result, error = pickle.loads(reply)
    if error is not None:
        raise error
    return result


def _portable(error: Exception) -> Exception:
    """Return an error that survives the way to another process; a bug keeps its traceback."""
    if isinstance(error, MemoryError):
        return MemoryError()
    for kind in type(error).__mro__:  # an error with a place in a text cannot be made again
        if issubclass(kind, RfmdpError) and kind.__module__ == RfmdpError.__module__:
            return kind(str(error))
    return SolverError(f"{error!r}; this is a bug.\n{''.join(traceback.format_exception(error))}")
