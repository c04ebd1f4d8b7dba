"""The runs of the solving campaign: a domain at a radius by a method, and what came out."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

import numpy as np

from rfmdp import __version__
from rfmdp.errors import RfmdpError
from rfmdp.inner import METHODS
from rfmdp.model.arrays import FactoredMDP
from rfmdp.outer.settings import Limits
from rfmdp.outer.solution import Solution, Status
from rfmdp.paper import campaigns
from rfmdp.paper.domains import domain, published_bounds
from rfmdp.paper.domains.table import PUBLISHED, find
from rfmdp.paper.published import RADII
from rfmdp.solving import solve
from rfmdp.types import FloatArray

FINISHED = ("CERTIFIED", "GAP_OPEN")
PRECISION = 1e-6  # of all runs


@dataclass(frozen=True, slots=True)
class SolvingTask:
    """One run: a domain at a radius by a method, with its limit."""

    domain: str
    radius: float
    method: str
    timeout: float  # seconds

    @property
    def key(self) -> str:
        """Name of the record."""
        return f"{self.domain}_{self.radius:g}_{self.method.replace(':', '-')}"


@dataclass(frozen=True, slots=True)
class SolvingRecord:
    """What a run gave; a side that nobody proved is None."""

    domain: str
    radius: float
    method: str
    status: str
    value: float | None  # the guarantee
    lower: float | None
    upper: float | None
    seconds_build: float
    seconds_solve: float
    seconds_processor: float
    robust_sweeps: int
    cheap_sweeps: int
    states: int
    rows: int
    transitions: int
    precision: float
    timeout: float
    model: str  # digest of the domain's text, constants and bounds
    version: str = __version__
    message: str = ""

    @property
    def finished(self) -> bool:
        """Whether the method came to its end."""
        return self.status in FINISHED

    @property
    def relative_width(self) -> float | None:
        """Upper minus lower over upper, if both are proven."""
        if self.lower is None or self.upper is None:
            return None
        return (self.upper - self.lower) / max(abs(self.upper), 1e-12)

    def settles(self, task: SolvingTask) -> bool:
        """Return whether a task need not be repeated."""
        if self.model != model_digest(task.domain) or self.precision > PRECISION:
            return False
        return self.finished or self.timeout >= task.timeout


def run_task(_: None, task: SolvingTask) -> SolvingRecord:
    """Return what one run gives; compiled code is loaded before it is timed."""
    _warm_up(task.method)
    nominal, built = _nominal(task.domain)
    model = published_bounds(task.domain, nominal, task.radius)
    spec = find(task.domain).spec
    limits = Limits(precision=PRECISION, seconds=task.timeout)
    started, processor = time.perf_counter(), time.process_time()
    message, solution = "", None
    try:
        solution = solve(model, spec, inner=METHODS[task.method], limits=limits)
    except RfmdpError as error:
        message = str(error).partition("\n")[0]
    seconds = time.perf_counter() - started
    if solution is not None and solution.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    lower, upper = (None, None) if solution is None else bounds(solution)
    stats = None if solution is None else solution.stats
    return SolvingRecord(
        domain=task.domain,
        radius=task.radius,
        method=task.method,
        status="REFUSED" if solution is None else solution.status.name,
        value=lower if spec.agent.sign > 0 else upper,
        lower=lower,
        upper=upper,
        seconds_build=built,
        seconds_solve=seconds,
        seconds_processor=time.process_time() - processor,
        robust_sweeps=0 if stats is None else stats.robust_sweeps,
        cheap_sweeps=0 if stats is None else stats.cheap_sweeps,
        states=model.states,
        rows=model.rows,
        transitions=model.transitions,
        precision=PRECISION,
        timeout=task.timeout,
        model=model_digest(task.domain),
        message=message,
    )


@lru_cache(maxsize=1)
def _nominal(name: str) -> tuple[FactoredMDP, float]:
    """Return a domain's model and the seconds to build it; the last one is kept."""
    started = time.perf_counter()
    return domain(name), time.perf_counter() - started


@cache
def _warm_up(method: str) -> None:
    """Load compiled code before anything is timed."""
    model = domain("chain", radius=RADII[0])
    solve(model, find("chain").spec, inner=METHODS[method], limits=Limits(sweeps=2))


def bounds(solution: Solution) -> tuple[float | None, float | None]:
    """Return the proven bounds of the value, of the largest if there are several starts."""

    def largest(side: FloatArray | None) -> float | None:
        if side is None:
            return None
        value = float(np.max(side[solution.model.initial]))
        return value if np.isfinite(value) else None

    return largest(solution.lower), largest(solution.upper)


@cache
def model_digest(name: str) -> str:
    """Return a digest of all that the published model of a domain is made of."""
    rules = (files("rfmdp.paper.domains") / "bounds.py").read_text(encoding="utf-8")
    return campaigns.model_digest(name, PUBLISHED, rules)
