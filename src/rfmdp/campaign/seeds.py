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
from rfmdp.formats.files import save
from rfmdp.learning.loop import learn
from rfmdp.learning.run import Point, Run
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Spec

Progress = Callable[[int, Point], None]
"""Called with a seed and an evaluation."""


class Hidden(NamedTuple):
    """What all seeds share."""

    model: FactoredMDP
    spec: Spec | Property
    settings: Mapping[str, Any]  # of `learn`
    progress: Progress | None


class Seed(NamedTuple):
    """One run: its seed, its file here, and what that file holds for a worker elsewhere."""

    number: int
    file: str | None
    saved: bytes | None = None


def learn_seeds(
    model: FactoredMDP,
    spec: Spec | Property,
    seeds: Sequence[int],
    runner: Runner,
    *,
    file: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    done: Callable[[int, Run], None] | None = None,
    **settings: Any,
) -> list[Run]:
    """Return the runs of `learn` with several seeds, in their order.

    Parameters
    ----------
    model, spec, settings
        As for `learn`.
    seeds, runner
        Which seeds, and where they are run.
    file
        Run file; with several seeds each has its own, NAME-SEED. On local cores it is saved at
        every evaluation, from a cluster when a run is finished.
    progress
        Called in the process that learns, with the seed and every evaluation.
    done
        Called here with a seed and its run, as runs finish.
    """
    places = [None if file is None else seed_file(file, seed, seeds) for seed in seeds]
    tasks = [Seed(seed, at) for seed, at in zip(seeds, places, strict=True)]
    shared = Hidden(model, spec, settings, progress)
    runs: dict[int, Run] = {}

    def keep(number: int, run: Run) -> None:
        runs[number] = run
        at = places[number]
        if at is not None and not isinstance(runner, LocalCores):
            save(run, at)
        if done is not None:
            done(seeds[number], run)

    if isinstance(runner, LocalCores):
        runner.run(learn_here, shared, tasks, keep)
    else:
        resume = bool(settings.get("resume"))
        elsewhere = [task._replace(file=None, saved=_bytes(task.file, resume)) for task in tasks]
        runner.run(learn_elsewhere, shared, elsewhere, keep)
    return [runs[number] for number in range(len(seeds))]


def seed_file(file: str | os.PathLike[str], seed: int, seeds: Sequence[int]) -> str:
    """Return the run file of a seed.

    >>> seed_file("run.rfmdp", 3, range(5))
    'run-3.rfmdp'
    """
    path = Path(file)
    return str(path if len(seeds) == 1 else path.with_name(f"{path.stem}-{seed}{path.suffix}"))


def learn_here(shared: Hidden, task: Seed) -> Run:
    """Learn with one seed, in a process that sees the run file."""
    told = None if shared.progress is None else partial(shared.progress, task.number)
    return learn(
        shared.model,
        shared.spec,
        seed=task.number,
        file=task.file,
        progress=told,
        **shared.settings,
    )


def learn_elsewhere(shared: Hidden, task: Seed) -> Run:
    """Learn with one seed on a machine that sees no files; a saved run goes on."""
    if task.saved is None:
        own = shared._replace(settings={**shared.settings, "resume": False})
        return learn_here(own, task)
    with TemporaryDirectory() as folder:
        place = Path(folder) / "run.rfmdp"
        place.write_bytes(task.saved)
        return learn_here(shared, task._replace(file=str(place)))


def _bytes(file: str | None, resume: bool) -> bytes | None:
    """Return what a run file holds, if it is to be resumed and is there."""
    if file is None or not resume or not Path(file).exists():
        return None
    return Path(file).read_bytes()
