"""The runs of the learning campaign: a domain by a method with a seed, and what came out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from rfmdp import __version__
from rfmdp.errors import FileError, ModelError, RfmdpError
from rfmdp.learning.loop import learn
from rfmdp.learning.methods import find_method
from rfmdp.learning.run import Progress, Run
from rfmdp.learning.schedule import LogSpaced, StopWhen
from rfmdp.model.arrays import FactoredMDP
from rfmdp.paper import campaigns
from rfmdp.paper.domains import domain
from rfmdp.paper.domains.table import LEARNING, find
from rfmdp.paper.learning.settings import Setting, find_setting
from rfmdp.sources.source import Source

GRID = LogSpaced(per_decade=16)  # trajectories after which all runs are evaluated
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
        """Name of the record."""
        return f"{self.domain}_{self.method}_{self.setting}_{self.seed}"


@dataclass(frozen=True, slots=True)
class LearningRecord:
    """What a run gave. `history` holds the fields of `Point`; what is not finite is None there."""

    domain: str
    method: str
    setting: str
    seed: int
    trajectories: int  # asked for
    timeout: float
    stopped: str
    beta: float
    length: int
    identifiers: int
    history: list[dict[str, Any]]
    rollouts: list[dict[str, Any]]
    settings: dict[str, str]
    assumptions: list[str]
    model: str  # digest of the domain's text and constants
    validity: str = ""
    version: str = __version__
    message: str = ""

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
        return Path(self.folder) / f"{task.key}.rfmdp"


def run_task(context: RunContext, task: LearningTask) -> LearningRecord:
    """Return what one run gives, from the last evaluation on where a run file has one.

    A process that does not see the folder of run files, on another machine say, starts anew.
    """
    setting, known = find_setting(task.setting), find_method(task.method)
    asked = setting.keywords(task.domain, known)
    common = {
        "domain": task.domain, "method": task.method, "setting": task.setting, "seed": task.seed,
        "trajectories": task.trajectories, "timeout": task.timeout, "beta": asked["beta"],
        "length": asked["length"], "model": model_digest(task.domain),
    }  # fmt: skip
    try:
        _warm_up(task.domain, task.method, setting)
        run = _run(context, task, setting)
    except RfmdpError as error:
        message = str(error).partition("\n")[0]
        return LearningRecord(
            **common, stopped=REFUSED, identifiers=0, history=[], rollouts=[], settings={},
            assumptions=[], message=message,
        )  # fmt: skip
    return LearningRecord(**common, **_fields(run, task))


def _run(context: RunContext, task: LearningTask, setting: Setting) -> Run:
    """Learn, and save at every evaluation if the folder for that is there."""
    known, file = find_method(task.method), context.file(task)

    def go(output: Path | None, resume: Path | None) -> Run:
        return learn(
            _source(task.domain, setting), find(task.domain).spec,
            setting.method(task.domain, known), seed=task.seed, points=GRID,
            stop=StopWhen(task.trajectories, seconds=task.timeout), output=output, resume=resume,
            progress=None if context.progress is None else partial(context.progress, task),
            **setting.keywords(task.domain, known),
        )  # fmt: skip

    if not file.parent.is_dir():
        return go(None, None)
    if file.exists():
        try:
            return go(file, file)
        except (FileError, ModelError):  # damaged, or of a version that learns otherwise
            file.unlink()
    return go(file, None)


def _fields(run: Run, task: LearningTask) -> dict[str, Any]:
    """Return what a record keeps of a run: evaluations that were due, not those of a time-out."""
    last = task.trajectories
    due = [p for p in run.history if is_due(p.trajectories) or p.trajectories == last]
    return {
        "stopped": run.stopped,
        "identifiers": len(run.ledger.delta),
        "history": [_plain(asdict(point)) for point in due],
        "rollouts": [_plain(certificate.summary()) for certificate in run.rollouts],
        "settings": run.settings,
        "assumptions": list(run.assumptions),
        "validity": run.validity,
        "message": "; ".join(run.alarms),
    }


def is_due(trajectories: int) -> bool:
    """Return whether runs are evaluated after so many trajectories: certificates double them.

    >>> is_due(1000), is_due(1001), is_due(2000)
    (True, False, True)
    """
    numbers = (trajectories, trajectories // 2 if trajectories % 2 == 0 else trajectories)
    return any(GRID.next(number - 1) == number for number in numbers)


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields as JSON has them: what is not finite is None."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in fields.items()
    }


@lru_cache(maxsize=1)
def _source(name: str, setting: Setting) -> FactoredMDP | Source:
    """Return where the samples of a domain come from; the last one is kept."""
    return setting.source(domain(name, instance=LEARNING), find(name).spec)


@cache
def _warm_up(name: str, word: str, setting: Setting) -> None:
    """Load compiled code before anything is timed."""
    known = find_method(word)
    method, asked = setting.method(name, known), setting.keywords(name, known)
    learn(
        _source(name, setting), find(name).spec, method, stop=StopWhen(100, seconds=30.0), **asked
    )


def model_digest(name: str) -> str:
    """Return a digest of all that the learning instance of a domain is made of."""
    return campaigns.model_digest(name, LEARNING)
