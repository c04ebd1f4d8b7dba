"""Learning with many seeds, side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rfmdp.answers.property import Property
from rfmdp.campaign.local import LocalCores
from rfmdp.campaign.runner import Runner
from rfmdp.errors import FileError
from rfmdp.formats.files import save
from rfmdp.learning.learn import learn
from rfmdp.learning.run import Progress, Run
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Spec
from rfmdp.sources.source import Source

SeedProgress = Callable[[int, Progress], None]
"""Called with a seed and what its run is doing."""


class LearnCall(NamedTuple):
    """What is asked of `learn` with every seed."""

    source: FactoredMDP | Source
    spec: Spec | Property
    settings: Mapping[str, Any]  # of `learn`
    resume: bool
    progress: SeedProgress | None


class SeedTask(NamedTuple):
    """One run: its seed, its file here, and what that file holds for a worker elsewhere."""

    seed: int
    file: str | None
    saved: bytes | None = None


def learn_seeds(
    source: FactoredMDP | Source,
    spec: Spec | Property,
    seeds: Sequence[int],
    runner: Runner,
    *,
    file: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: SeedProgress | None = None,
    **settings: Any,
) -> list[Run]:
    """Return the runs of `learn` with several seeds, in their order.

    Parameters
    ----------
    source, spec, settings
        As for `learn`.
    seeds, runner
        Which seeds, and where they are run.
    file
        Run file; with several seeds each has its own, NAME-SEED. On local cores it is saved at
        every evaluation, from a cluster when a run is finished.
    resume
        Go on with the run files that are there; one of them must be. Without it none may be.
    progress
        Called in the process that learns, with the seed and what it is doing.
    """
    tasks = [SeedTask(n, None if file is None else seed_file(file, n, seeds)) for n in seeds]
    _check_files([task.file for task in tasks if task.file is not None], resume)
    shared = LearnCall(source, spec, settings, resume, progress)
    here = isinstance(runner, LocalCores)  # elsewhere nobody sees the run files
    runs: dict[int, Run] = {}

    def finish(number: int, run: Run) -> None:
        runs[number] = run
        file = tasks[number].file
        if file is not None and not here:
            save(run, file)

    sent = tasks if here else [
        task._replace(file=None, saved=_bytes(task.file, resume)) for task in tasks
    ]  # fmt: skip
    runner.run(learn_seed, shared, sent, finish)
    return [runs[number] for number in range(len(tasks))]


def seed_file(file: str | os.PathLike[str], seed: int, seeds: Sequence[int]) -> str:
    """Return the run file of a seed.

    >>> seed_file("run.rfmdp", 3, range(5))
    'run-3.rfmdp'
    """
    path = Path(file)
    return str(path if len(seeds) == 1 else path.with_name(f"{path.stem}-{seed}{path.suffix}"))


def learn_seed(shared: LearnCall, task: SeedTask) -> Run:
    """Learn with one seed; a saved run goes on, also on a machine that does not see its file."""
    if task.saved is not None:
        with TemporaryDirectory() as folder:
            place = Path(folder) / "run.rfmdp"
            place.write_bytes(task.saved)
            return learn_seed(shared, task._replace(file=str(place), saved=None))
    resumed = shared.resume and task.file is not None and Path(task.file).exists()
    return learn(
        shared.source,
        shared.spec,
        seed=task.seed,
        output=task.file,
        resume=task.file if resumed else None,
        progress=None if shared.progress is None else partial(shared.progress, task.seed),
        **shared.settings,
    )


def _check_files(files: Sequence[str], resume: bool) -> None:
    """Refuse to go on with nothing, and to write over runs, before any process starts."""
    there = [file for file in files if Path(file).exists()]
    if resume and not there:
        raise FileError(
            f"Resume: {next(iter(files), None)} must be a saved run, found no file; start without "
            "it."
        )
    if there and not resume:
        raise FileError(
            f"{there[0]}: must not exist, a run would be lost; resume it (--resume), or name "
            "another file."
        )


def _bytes(file: str | None, resume: bool) -> bytes | None:
    """Return what a run file holds, if it is to be resumed and is there."""
    if file is None or not resume or not Path(file).exists():
        return None
    return Path(file).read_bytes()
