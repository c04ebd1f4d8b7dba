"""Runs the tasks of a campaign, one after the other, each domain built once."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files

import numpy as np

from rfmdp.campaign.records import Record, Store, Task
from rfmdp.errors import RfmdpError
from rfmdp.language.load import read_text
from rfmdp.model.arrays import FactoredMDP
from rfmdp.outer.settings import Limits
from rfmdp.outer.solution import Solution
from rfmdp.paper.domains import PUBLISHED, domain, domain_constants, domain_path, published_bounds
from rfmdp.paper.domains.table import find
from rfmdp.paper.methods import find_method
from rfmdp.paper.published import RADII
from rfmdp.solving import solve
from rfmdp.types import FloatArray

Told = Callable[[Task, Record | None, int, int], None]
"""Called before a run (record None) and after it, as told(task, record, number, tasks)."""


def run(tasks: Sequence[Task], store: Store, told: Told | None = None) -> None:
    """Run the tasks that have no record yet; a record is written after each."""
    digests = {name: model_digest(name) for name in {task.domain for task in tasks}}
    open_tasks = [task for task in tasks if not store.done(task, digests[task.domain])]
    nominal, built, name = None, 0.0, ""
    _warm_up({task.method for task in open_tasks})
    for number, task in enumerate(open_tasks, start=1):
        if task.domain != name or nominal is None:
            nominal = None  # frees the last one first
            started = time.perf_counter()
            nominal, name = domain(task.domain, instance=PUBLISHED), task.domain
            built = time.perf_counter() - started
        if told is not None:
            told(task, None, number, len(open_tasks))
        record = _solved(task, nominal, built, digests[task.domain])
        store.write(task, record)
        if told is not None:
            told(task, record, number, len(open_tasks))


def _warm_up(methods: Iterable[str]) -> None:
    """Load compiled code before anything is timed."""
    model = domain("chain", instance=PUBLISHED, radius=RADII[0])
    for word in methods:
        solve(model, find("chain").spec, inner=find_method(word).make(), limits=Limits(sweeps=2))


def _solved(task: Task, nominal: FactoredMDP, built: float, digest: str) -> Record:
    model = published_bounds(task.domain, nominal, task.radius)
    spec, method = find(task.domain).spec, find_method(task.method)
    limits = Limits(precision=task.precision, seconds=task.timeout)
    started, processor = time.perf_counter(), time.process_time()
    message, solution = "", None
    try:
        solution = solve(model, spec, inner=method.make(), limits=limits)
    except RfmdpError as error:
        message = str(error).partition("\n")[0]
    seconds = time.perf_counter() - started
    lower, upper = (None, None) if solution is None else bounds(solution)
    guarantee = lower if spec.agent.sign > 0 else upper
    stats = None if solution is None else solution.stats
    return Record(
        task.domain,
        task.radius,
        task.method,
        "REFUSED" if solution is None else solution.status.name,
        guarantee,
        lower,
        upper,
        built,
        seconds,
        time.process_time() - processor,
        0 if stats is None else stats.robust_sweeps,
        0 if stats is None else stats.cheap_sweeps,
        model.states,
        model.rows,
        model.transitions,
        task.precision,
        task.timeout,
        digest,
        message=message,
    )


def bounds(solution: Solution) -> tuple[float | None, float | None]:
    """Return the proven bounds of the value, of the largest if there are several starts."""

    def largest(side: FloatArray | None) -> float | None:
        if side is None:
            return None
        value = float(np.max(side[solution.model.initial]))
        return value if np.isfinite(value) else None

    return largest(solution.lower), largest(solution.upper)


def model_digest(name: str) -> str:
    """Return a digest of all that the published model of a domain is made of."""
    rules = (files("rfmdp.paper.domains") / "bounds.py").read_text(encoding="utf-8")
    parts = [read_text(domain_path(name)), json.dumps(domain_constants(name, PUBLISHED)), rules]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
