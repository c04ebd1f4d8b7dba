"""Dask schedulers with worker processes, for tests."""

import json
from contextlib import ExitStack, contextmanager

from processes import process, wait_until

QUIET = ["--no-dashboard", "--host", "127.0.0.1"]


@contextmanager
def cluster(folder, workers, *options):
    """Start a scheduler and workers; yield its address, its process and theirs."""
    file = folder / "scheduler.json"
    where = ["--scheduler-file", str(file), *QUIET]
    with ExitStack() as stack:
        log = stack.enter_context((folder / "log").open("w"))
        words = ["-m", "distributed.cli.dask_scheduler", "--port", "0", *where]
        scheduler = stack.enter_context(process(words, stdout=log, stderr=log))
        assert wait_until(lambda: file.exists() and file.stat().st_size > 0, scheduler)
        words = ["-m", "distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", *where]
        words += ["--local-directory", str(folder), *options]
        started = [
            stack.enter_context(process(words, stdout=log, stderr=log)) for _ in range(workers)
        ]
        yield json.loads(file.read_text())["address"], scheduler, started
