"""Learning with many seeds, side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from rfmdp.formats.files import save
from rfmdp.learning.learn import learn, saving_place
from rfmdp.learning.run import Progress
from rfmdp.running import TaskResult, run_many

if TYPE_CHECKING:
    from rfmdp.answers.property import Property
    from rfmdp.learning.run import Run
    from rfmdp.model.arrays import FactoredMDP
    from rfmdp.objective import Spec
    from rfmdp.sources.source import Source

SeedProgress = Callable[[int, Progress], None]
"""Called with a seed and what its run is doing."""


class SeedTask(NamedTuple):
    """One run: its seed, its file, and what that file holds for a worker that does not see it."""

    seed: int
    file: str | None
    saved: bytes | None = None


def learn_seeds(
    source: FactoredMDP | Source,
    spec: Spec | Property,
    seeds: Sequence[int],
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    patience: float = float("inf"),
    file: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: SeedProgress | None = None,
    done: Callable[[TaskResult], None] | None = None,
    **settings: Any,
) -> list[TaskResult]:
    """Return what `learn` gives with several seeds, in their order.

    source, spec, settings : as for `learn`
    jobs, scheduler, patience : where runs go, as for `run_many`
    file : run file; with several seeds each has its own, NAME-SEED. On local cores it is saved at
        every evaluation, from a cluster when a run is finished
    resume : go on with the run files that are there, one at least; without it none may be
    progress : called in the process that learns, with the seed and what it is doing
    done : called here with every result, in the order of the seeds, as soon as it is its turn
    """
    files = [None if file is None else seed_file(file, seed, seeds) for seed in seeds]
    saved = [name for name in files if name is not None and Path(name).exists()]
    for name in [] if resume else files:  # refused before any process starts
        saving_place(name, None)
    if resume and not saved:
        saving_place(None, files[0] or "a file")
    tasks = [SeedTask(*pair) for pair in zip(seeds, files, strict=True)]
    if scheduler is not None:  # workers may not see files
        there = {name: Path(name).read_bytes() for name in saved}
        tasks = [SeedTask(task.seed, None, there.get(task.file or "")) for task in tasks]

    def keep(result: TaskResult) -> None:
        place = files[result.number]
        if scheduler is not None and place is not None and result.error is None:
            save(result.value, place)
        if done is not None:
            done(result)

    work = partial(learn_seed, partial(learn, source, spec, **settings), progress)
    return run_many(work, tasks, jobs=jobs, scheduler=scheduler, patience=patience, done=keep)


def seed_file(file: str | os.PathLike[str], seed: int, seeds: Sequence[int]) -> str:
    """Return the run file of a seed.

    >>> seed_file("run.rfmdp", 3, range(5))
    'run-3.rfmdp'
    """
    path = Path(file)
    return str(path if len(seeds) == 1 else path.with_name(f"{path.stem}-{seed}{path.suffix}"))


def learn_seed(learner: Callable[..., Run], progress: SeedProgress | None, task: SeedTask) -> Run:
    """Learn with one seed; a saved run goes on, also on a machine that does not see its file.

    A file that is there is one to go on with, or one that a lost process left.
    """
    if task.saved is not None:
        with TemporaryDirectory() as folder:
            place = Path(folder) / "run.rfmdp"
            place.write_bytes(task.saved)
            return learn_seed(learner, progress, task._replace(file=str(place), saved=None))
    tell = None if progress is None else partial(progress, task.seed)
    resume = task.file if task.file is not None and Path(task.file).exists() else None
    return learner(seed=task.seed, output=task.file, resume=resume, progress=tell)
