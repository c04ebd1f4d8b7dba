"""The run of `rfmdp learn`: one process per seed, live progress, tables, records, a plot."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

from rfmdp.cli import learning_words as words
from rfmdp.cli.main import complain
from rfmdp.cli.models import default_properties, is_domain, open_model, spoken_warnings
from rfmdp.cli.questions import own_constants, questions
from rfmdp.cli.records import shown
from rfmdp.cli.words import check_positive, constants, inner_method
from rfmdp.errors import ModelError, SolverError
from rfmdp.formats.files import load
from rfmdp.learning.identifiers import LocalStates
from rfmdp.learning.loop import learn
from rfmdp.learning.methods import METHODS, find_method
from rfmdp.learning.run import Point, Run
from rfmdp.learning.schedule import LogSpaced
from rfmdp.learning.stop import StopWhen
from rfmdp.paper.learning_setup import LENGTHS, LOCAL_STATES
from rfmdp.report.learning_plot import FORMATS, save_learning_curve
from rfmdp.sources.recorded import KIND as TRANSITIONS
from rfmdp.writing import check_writable

LENGTH = 100


@dataclass(frozen=True, slots=True)
class Learning:
    """The words of one `rfmdp learn`."""

    model: str
    file: str | None
    wanted: tuple[str, ...]
    const: tuple[str, ...]
    method: str
    inner: str | None
    beta: float
    trajectories: int
    length: int | None
    target: float | None
    gap: float | None
    timeout: float | None
    seed: int
    seeds: int
    jobs: int | None
    confidence: str | None
    explore: str | None
    schedule: str | None
    granularity: str | None
    tie: tuple[str, ...]
    support: str | None
    rewards: str | None
    p_min: float | None
    data: str | None
    per_decade: int
    json: bool
    plot: str | None
    output: str | None
    resume: bool

    def run(self) -> int:
        """Learn with every seed, print the results and return the exit code."""
        if self.method == "list":
            print("\n".join(_method_lines()))
            return 0
        self._check()
        try:
            runs = self._all()
        except KeyboardInterrupt:
            if self.output is not None:
                complain("the same words with --resume go on at the last evaluation.", kind="note")
            raise
        for number, run in enumerate(runs):
            self._print(run, self.seed + number)
        if self.plot is not None:
            save_learning_curve({self.method: runs}, self.plot)
        return 0

    def _check(self) -> None:
        """Refuse wrong words before the model is built."""
        self.parts()
        for option, value in self._numbers():
            check_positive(option, value)
        for option, chance in (("--beta", self.beta), ("--p-min", self.p_min)):
            if chance is not None and not 0.0 <= chance < 1.0:
                raise ModelError(f"{option} must be a probability below 1, got {chance}.")
        if self.resume and self.output is None:
            raise ModelError("--resume needs the run file: give it with -o FILE.")
        if self.data is not None and self.seeds > 1:
            raise ModelError("--data is read once; leave out --seeds.")
        check_writable(self.output, self.plot)
        if self.plot is not None and Path(self.plot).suffix not in FORMATS:
            raise ModelError(f"--plot must end in one of {', '.join(FORMATS)}; got '{self.plot}'.")

    def _numbers(self) -> Iterator[tuple[str, float | None]]:
        yield "--trajectories", self.trajectories
        yield "--length", self.length
        yield "--timeout", self.timeout
        yield "--seeds", self.seeds
        yield "--jobs", self.jobs
        yield "--per-decade", self.per_decade
        yield "--beta", self.beta

    def parts(self) -> dict[str, Any]:
        """Return the parts of the method and the assumptions that words name."""
        return {
            "method": find_method(self.method),
            "inner": None if self.inner is None else inner_method(self.inner),
            "confidence": words.part("--confidence", words.CONFIDENCE, self.confidence),
            "exploration": words.part("--explore", words.EXPLORATION, self.explore),
            "schedule": words.part("--schedule", words.SCHEDULES, self.schedule),
            "granularity": words.part("--granularity", words.GRANULARITIES, self.granularity),
            "support": words.part("--support", words.SUPPORTS, self.support),
            "rewards": words.part("--rewards", words.REWARDS, self.rewards),
            "ties": [words.tie(text) for text in self.tie],
        }

    def _all(self) -> list[Run]:
        """Return the runs of all seeds, side by side if there are several."""
        tasks = [replace(self, seed=self.seed + i, output=self._file(i)) for i in range(self.seeds)]
        if self.seeds == 1:
            return [learn_one(tasks[0])]
        jobs = min(self.jobs or os.cpu_count() or 1, self.seeds)
        with ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_one_thread) as pool:
            with _deaf():
                runs = pool.map(learn_one, tasks)
            try:
                return list(runs)
            except KeyboardInterrupt:
                for child in active_children():
                    child.terminate()
                raise
            except BrokenProcessPool:
                raise SolverError(
                    "A process of learning was ended from outside, perhaps for lack of memory; try "
                    "a smaller --jobs."
                ) from None

    def _file(self, number: int) -> str | None:
        if self.output is None or self.seeds == 1:
            return self.output
        path = Path(self.output)
        return str(path.with_name(f"{path.stem}-{self.seed + number}{path.suffix}"))

    def _print(self, run: Run, seed: int) -> None:
        if self.json:
            print(json.dumps(record(run, seed)))
            return
        print(f"seed {seed}: {run.stopped}")
        print(f"{'trajectories':>12} {'guarantee':>11} {'true value':>11} {'bound':>11} replans")
        for p in run.history:
            print(
                f"{p.trajectories:12d} {p.guarantee:11.6g} {_known(p.performance):>11} "
                f"{p.optimistic:11.6g} {p.replans:7d}"
            )
        print(run.statement())
        print(f"Result: {run.guarantee}")


def _known(value: float) -> str:
    return "unknown" if math.isnan(value) else f"{value:.6g}"


def _method_lines() -> Iterator[str]:
    for name, method in METHODS.items():
        head, *rest = textwrap.wrap(method.about, 59)
        yield f"{name:<20} {head}"
        yield from (f"{'':<20} {line}" for line in rest)


@contextmanager
def _deaf() -> Iterator[None]:
    """Start processes that leave Ctrl-C to this one, which ends them."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _one_thread() -> None:
    """Leave the other cores to the other processes, which use them better than threads."""
    from numba import set_num_threads

    set_num_threads(1)


def learn_one(task: Learning) -> Run:
    """Build the model and learn with one seed."""
    given = constants(task.const)
    asked = questions(task.file, task.wanted) or default_properties(task.model)
    if len(asked) != 1:
        raise ModelError(f"Learning is for one property, found {len(asked)}; pick with --prop.")
    name, local, length = _published(task)
    if name is not None and not given:
        given = {"instance": "learning"}
    with spoken_warnings():
        model = open_model(task.model, given, also_known=own_constants(asked))
    return learn(
        model,
        asked[0],
        **task.parts(),
        data=None if task.data is None else load(task.data, TRANSITIONS),
        beta=task.beta,
        stop=StopWhen(
            task.trajectories, guarantee=task.target, gap=task.gap, seconds=task.timeout or math.inf
        ),
        points=LogSpaced(task.per_decade),
        length=task.length or length,
        seed=task.seed,
        local=local,
        p_min=task.p_min,
        progress=_progress(task),
        file=task.output,
        resume=task.resume,
    )


def _published(task: Learning) -> tuple[str | None, LocalStates, int]:
    """Return the domain with a learning instance, if it is one, and its setup."""
    if not is_domain(task.model):
        return None, {}, LENGTH
    from rfmdp.paper.domains.table import find

    name = find(task.model).name
    if name not in LENGTHS:
        return None, {}, LENGTH
    return name, LOCAL_STATES[name], LENGTHS[name]


def _progress(task: Learning) -> Callable[[Point], None] | None:
    """Return what prints one line per evaluation on a terminal's standard error."""
    if not sys.stderr.isatty():
        return None

    def show(point: Point) -> None:
        rate = point.steps / max(point.seconds, 1e-9)
        left = point.seconds * (task.trajectories / max(point.trajectories, 1) - 1.0)
        print(
            f"seed {task.seed}: {point.trajectories} trajectories, guarantee "
            f"{point.guarantee:.5g}, true value {point.performance:.5g}, {rate:.3g} steps/s, "
            f"at most {left:.0f} s left",
            file=sys.stderr,
        )

    return show


def record(run: Run, seed: int) -> dict[str, Any]:
    """Return a run as one JSON object; nan is null, infinity the string "Infinity"."""
    last = {k: _plain(v) for k, v in asdict(run.history[-1]).items()}
    return {
        "seed": seed,
        **last,
        "beta": run.beta,
        "validity": run.validity,
        "stopped": run.stopped,
        "settings": run.settings,
        "assumptions": list(run.assumptions),
        "rollouts": [asdict(c) for c in run.rollouts],
        "history": [{k: _plain(v) for k, v in asdict(p).items()} for p in run.history],
    }


def _plain(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else shown(value)
