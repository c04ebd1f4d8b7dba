"""The runs of the learning curves: a domain by a method with a seed, and what came out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from experiments import records
from experiments.command import say
from experiments.learning.settings import find_setting
from experiments.records import finite
from rfmdp import __version__
from rfmdp.domains import LEARNING, domain, find
from rfmdp.errors import FileError, ModelError, RfmdpError
from rfmdp.learning.learn import learn
from rfmdp.learning.methods import LogSpaced, StopWhen, find_method
from rfmdp.learning.run import Point, Progress, Run
from rfmdp.sources.source import Source

PAUSE = 20.0  # seconds between two lines about a run
GRID = LogSpaced(per_decade=16)  # trajectories after which all runs are evaluated
POINT = (
    "trajectories", "steps", "guarantee", "performance", "optimistic", "replans", "visited",
    "seconds", "processor",
)  # fmt: skip
REFUSED, TIME_IS_UP, ALARM = "refused", "time is up", "alarm"  # why a run stopped


@dataclass(frozen=True, slots=True)
class LearningTask:
    """One run: a domain by a method with a seed, with its limits."""

    domain: str
    method: str
    seed: int
    trajectories: int
    timeout: float  # seconds
    setting: str = "text"

    @property
    def key(self) -> str:
        """Name of the run."""
        return f"{self.domain} {self.method} {self.setting} {self.seed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRecord:
    """What a run gave. `history` holds fields of `Point`; what is not finite is None there."""

    domain: str
    method: str
    setting: str
    seed: int
    trajectories: int  # asked for
    timeout: float
    stopped: str
    beta: float
    length: int
    identifiers: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    model: str  # digest of the domain's text and constants
    version: str = __version__
    message: str = ""

    @property
    def key(self) -> str:
        """Name of the run."""
        return f"{self.domain} {self.method} {self.setting} {self.seed}"

    @property
    def done(self) -> int:
        """Trajectories that were run and evaluated."""
        return int(self.history[-1]["trajectories"]) if self.history else 0

    def settles(self, task: LearningTask) -> bool:
        """Return whether a task need not be repeated, or gone on with."""
        if self.model != model_digest(task.domain) or self.stopped == REFUSED:
            return False
        if self.stopped == TIME_IS_UP:
            return self.timeout >= task.timeout
        return self.done >= task.trajectories or self.stopped == ALARM


TaskProgress = Callable[[LearningTask, Progress], None]
"""Called in the process that learns, with what it is doing."""


class RunContext(NamedTuple):
    """What all runs share: the folder of run files, and whom to tell what they are doing."""

    folder: str
    progress: TaskProgress | None = None

    def file(self, task: LearningTask) -> Path:
        """Return where a run is saved at every evaluation."""
        return Path(self.folder) / f"{task.key.replace(' ', '_')}.rfmdp"


class ProgressLines:
    """Says now and then, in the process that learns, how its run goes."""

    def __init__(self) -> None:
        self._last = 0.0

    def __call__(self, task: LearningTask, now: Progress) -> None:
        """Say it, if the last line is long ago."""
        if time.monotonic() > self._last + PAUSE:
            self._last = time.monotonic()
            say(
                f"{task.key}: {now.phase}, {now.trajectories} of {task.trajectories} trajectories, "
                f"{now.seconds:.0f} s"
            )


def run_task(context: RunContext, task: LearningTask) -> LearningRecord:
    """Return what one run gives, from the last evaluation on where a run file has one.

    A process that does not see the folder of run files, on another machine say, starts anew.
    """
    settings = find_setting(task.setting).keywords(task.domain, find_method(task.method))
    try:
        _warm_up(task.domain, task.method, task.setting)
        outcome = _fields(_run(context, task, settings), task)
    except RfmdpError as error:
        outcome = {"stopped": REFUSED, "message": str(error).partition("\n")[0]}
    return LearningRecord(
        domain=task.domain,
        method=task.method,
        setting=task.setting,
        seed=task.seed,
        trajectories=task.trajectories,
        timeout=task.timeout,
        beta=settings["beta"],
        length=settings["length"],
        model=model_digest(task.domain),
        **outcome,
    )


def _run(context: RunContext, task: LearningTask, settings: dict[str, Any]) -> Run:
    """Learn, and save at every evaluation if the folder for that is there."""
    file = context.file(task)
    go = partial(
        learn, _source(task.domain, task.setting), find(task.domain).spec, seed=task.seed,
        points=GRID, stop=StopWhen(task.trajectories, seconds=task.timeout),
        progress=None if context.progress is None else partial(context.progress, task), **settings,
    )  # fmt: skip
    if not file.parent.is_dir():
        return go()
    if file.exists():
        try:
            return go(output=file, resume=file)
        except (FileError, ModelError):  # damaged, or of a version that learns otherwise
            file.unlink()
    return go(output=file)


def _fields(run: Run, task: LearningTask) -> dict[str, Any]:
    """Return what a record keeps of a run: evaluations that were due, not those of a time-out."""
    last = task.trajectories
    due = [p for p in run.history if is_due(p.trajectories) or p.trajectories == last]
    return {
        "stopped": run.stopped,
        "identifiers": len(run.ledger.delta),
        "history": [_point(point) for point in due],
        "message": "; ".join(run.alarms),
    }


def _point(point: Point) -> dict[str, Any]:
    """Return an evaluation as a record keeps it."""
    fields = finite(asdict(point))
    for name in ("seconds", "processor"):
        fields[name] = round(fields[name], 3)
    return {name: fields[name] for name in POINT}


def is_due(trajectories: int) -> bool:
    """Return whether runs are evaluated after so many trajectories.

    >>> is_due(1000), is_due(1001)
    (True, False)
    """
    return GRID.next(trajectories - 1) == trajectories


@lru_cache(maxsize=1)
def _source(name: str, setting: str) -> Source:
    """Return where the samples of a domain come from; the last one is kept."""
    return find_setting(setting).source(domain(name, instance=LEARNING), find(name).spec)


@cache
def _warm_up(name: str, method: str, setting: str) -> None:
    """Load compiled code before anything is timed."""
    settings = find_setting(setting).keywords(name, find_method(method))
    learn(_source(name, setting), find(name).spec, stop=StopWhen(100, seconds=30.0), **settings)


def model_digest(name: str) -> str:
    """Return a digest of all that the learning instance of a domain is made of."""
    return records.model_digest(name, LEARNING)
