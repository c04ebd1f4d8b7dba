"""Tasks on an existing Dask cluster: `dask scheduler` somewhere, `dask worker` on many machines.

The scheduler gives the task of a lost worker to another one. Workers need the same version of
rfmdp, and nothing else: models travel with the tasks.
"""

from __future__ import annotations

import pickle
import sys
import uuid
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rfmdp.campaign.runner import Done, Work, packed_result, unpacked_result
from rfmdp.errors import ModelError, SolverError, UnsupportedError

CONNECT = 10.0  # seconds to wait for the scheduler's answer


@dataclass(frozen=True, slots=True)
class Cluster:
    """The workers of a Dask scheduler."""

    address: str

    def run(self, work: Work, shared: Any, tasks: Sequence[Any], done: Done) -> None:
        """Do all tasks; see `Runner`.

        Raises
        ------
        SolverError
            If there is no such scheduler, or a task was lost with its worker several times.
        """
        client = _connected(self.address)
        futures: dict[Any, int] = {}
        try:
            if not client.scheduler_info()["workers"]:
                print(f"{self.address} has no workers yet; waiting for one.", file=sys.stderr)
            name = f"rfmdp-{uuid.uuid4().hex}"
            # a task of its own: unlike scattered data it is made again when its worker is lost
            held = client.submit(bytes, pickle.dumps((work, shared)), key=f"{name}-shared")
            for number, task in enumerate(tasks):
                future = client.submit(_call, held, pickle.dumps(task), key=f"{name}-{number}")
                futures[future] = number
            with client.as_current():
                self._collect(futures, done)
        finally:
            client.close(timeout=2)  # what is not finished is wanted by nobody, and dropped

    def _collect(self, futures: dict[Any, int], done: Done) -> None:
        from distributed import CancelledError, KilledWorker, as_completed
        from distributed.comm import CommClosedError

        for future in as_completed(list(futures)):
            try:
                reply = future.result()
            except (CancelledError, CommClosedError):
                raise SolverError(
                    f"{self.address}: the scheduler is gone; what is finished is kept."
                ) from None
            except KilledWorker as error:
                raise SolverError(
                    f"{self.address}: a task was lost with its worker several times, perhaps for "
                    f"lack of memory ({error.task}); what is finished is kept."
                ) from None
            done(futures[future], unpacked_result(reply))
            future.release()


def _connected(address: str) -> Any:
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise UnsupportedError(
            "--scheduler needs Dask; install it with pip install 'rfmdp[cluster]'."
        ) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # different versions of Python or NumPy elsewhere
            return Client(address, timeout=CONNECT, set_as_default=False)
    except ValueError as error:
        raise ModelError(
            f"--scheduler must be tcp://HOST:PORT, got '{address}': {error}."
        ) from None
    except OSError:
        raise SolverError(
            f"{address}: no Dask scheduler answers there; start one with `dask scheduler`, and "
            "workers with `dask worker ADDRESS`."
        ) from None


def _call(held: bytes, task: bytes) -> bytes:
    """Do a task on a worker."""
    work, shared = pickle.loads(held)
    return packed_result(work, shared, pickle.loads(task))
