"""Work on all cores: a kernel is called for parts of its rows, by Python threads.

Kernels release the interpreter's lock. numba's own parallel loops would compile every kernel three
more times over, and abort where two Python threads meet in one of them.

How many threads: `set_threads(n)`, or NUMBA_NUM_THREADS before the start; else one per core. Every
row is computed by itself, so that results do not depend on the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

PART = 20_000  # joint outcomes that are worth a thread: a fraction of a millisecond
PARTS_PER_THREAD = 4  # rows differ in cost
_chosen: list[int] = []


def threads() -> int:
    """Return how many threads kernels may use."""
    if _chosen:
        return _chosen[0]
    from numba import config

    return int(config.NUMBA_NUM_THREADS)


def set_threads(count: int) -> None:
    """Let kernels use this many threads from now on."""
    _chosen[:] = [max(1, count)]


def spread(count: int, weight: float, run: Callable[[int, slice], None]) -> None:
    """Call `run(slot, part)` for slices that cover range(count), in threads if that is worth it.

    Calls with one slot number follow each other. `weight` is the joint outcomes of a typical row.
    """
    slots = int(count * weight / PART)
    slots = min(threads(), slots) if slots > 1 else slots
    if slots <= 1:
        run(0, slice(0, count))
        return
    size = -(-count // (slots * PARTS_PER_THREAD))
    parts = iter([slice(at, min(at + size, count)) for at in range(0, count, size)])

    def work(slot: int) -> None:
        for part in parts:  # list iterators hand out every item once, to whichever thread asks
            run(slot, part)

    side_by_side(slots, work)


def side_by_side(slots: int, work: Callable[[int], None]) -> None:
    """Call work(0), ..., work(slots - 1), each in a thread; the first one in the calling thread."""
    jobs = [_pool().submit(work, slot) for slot in range(1, slots)]
    try:
        work(0)
    finally:
        for job in jobs:
            job.result()


@cache
def _pool() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="rfmdp")


# threads do not survive a fork: the child makes its own
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)
