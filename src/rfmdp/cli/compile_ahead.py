"""The first run after installation: a second process compiles what solving needs.

Compiling takes seconds, once. The command compiles a kernel when it comes to it, the second process
begins with those that come last: they meet in the middle. Of two processes that need a kernel at
once, one waits for the other.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rfmdp.model.arrays import FactoredMDP

MARK = "compiled-ahead"  # in the folder of the kernels: this has been tried, whatever came of it
COMMAND = "from rfmdp.cli.compile_ahead import compile_backwards; compile_backwards()"


@contextmanager
def compiling_ahead() -> Iterator[None]:
    """Compile the kernels of `solve` on another core if nobody has done so; end with the block.

    It begins when the first kernel is needed: a tiny model needs none.
    """
    from rfmdp.kernels.decorator import interpreting, when_compiling

    processes: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        if (os.cpu_count() or 1) >= 2 and _first():
            processes.append(_compiler())

    try:
        with interpreting(), when_compiling(start):
            yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _compiler() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C at the terminal is for the command
    )


def compile_backwards() -> None:
    """Compile what solving the examples calls: one model after the other, its last call first."""
    from rfmdp.kernels.decorator import recorded
    from rfmdp.objective import MAX, MIN, Reach, Spec
    from rfmdp.solving import solve

    gc.disable()  # compiling makes little garbage, and looking for it is a tenth of the time
    for model in examples():
        with recorded() as calls:
            solve(model, Spec(Reach("goal"), MAX, MIN))
        for kernel, types in reversed(calls):
            kernel.compile(types)


def examples() -> Iterator[FactoredMDP]:
    """Yield two tiny models, that need kernels for points and boxes, and for their products."""
    import numpy as np

    from rfmdp.model.arrays import FactoredMDP
    from rfmdp.sets.families import Interval, Singleton, UncertaintySet

    half = np.array([0.5, 0.5])
    coin = Singleton(half)
    box = Interval(half - 0.1, half + 0.1)
    rows: list[list[UncertaintySet]] = [[coin], [box, box]]
    for sets in rows:
        parts = list(range(len(sets)))
        there, back = [1, 2] * len(sets), [0, 3] * len(sets)
        goal = [False, False, True, False]
        yield FactoredMDP.from_rows(
            [[(parts, there)], [(parts, back)], [([], [2])], [([], [3])]],
            sets,
            labels={"goal": goal},
        )


def _first() -> bool:
    """Return whether kernels have never been compiled ahead here, and take note that they are."""
    from rfmdp.kernels.decorator import cache_folder

    folder = cache_folder()
    try:
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, MARK), "x"):
            return True
    except OSError:  # it exists, or cannot be made
        return False
