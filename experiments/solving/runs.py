"""The runs of the solving table: a domain at a radius by a method, and what came out."""

from __future__ import annotations

import inspect
import time
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from experiments import records
from experiments.published import RADII, STOPPED, Published, published_table
from experiments.records import Method
from rfmdp import __version__
from rfmdp.domains import PUBLISHED, domain, find, published_bounds
from rfmdp.errors import ModelError, RfmdpError
from rfmdp.inner import METHODS as SOLVERS
from rfmdp.model.arrays import FactoredMDP
from rfmdp.outer.solution import Solution, Status
from rfmdp.outer.task import Limits
from rfmdp.solving import solve
from rfmdp.types import FloatArray

FINISHED = ("CERTIFIED", "GAP_OPEN")
PRECISION = 1e-6  # of all runs
SLOW_LPS = {
    "drone": "1.6 million LPs per sweep: about 15 minutes a sweep",
    "frozen_lake": "204,310 LPs per sweep, 13 and more sweeps: about 20 minutes a run",
    "sysadmin": "174,603 LPs with up to 2,000 variables: 10 to 20 minutes a run",
}
METHODS = {
    method.word: method
    for method in (
        Method("exact", "exact", "exact"),
        Method("interval", "interval arithmetic", "interval"),
        Method("vertices", "vertex enumeration", "exact"),
        Method("mccormick", "McCormick, marginalised", "mccormick", SLOW_LPS),
        Method("mccormick:simplex", "McCormick, sum p = 1", "mccormick", SLOW_LPS),
        Method("mccormick:printed", "McCormick, as printed", "mccormick", SLOW_LPS),
    )
}


def find_method(word: str) -> Method:
    """Return a method by its word."""
    if word not in METHODS:
        raise ModelError(f"There is no method '{word}'; there are: {', '.join(METHODS)}.")
    return METHODS[word]


@dataclass(frozen=True, slots=True)
class SolvingTask:
    """One run: a domain at a radius by a method, with its limit."""

    domain: str
    radius: float
    method: str
    timeout: float  # seconds

    @property
    def key(self) -> str:
        """Name of the run."""
        return f"{self.domain} {self.radius:g} {self.method}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SolvingRecord:
    """What a run gave, to be set beside what was printed; a side that nobody proved is None."""

    domain: str
    radius: float
    method: str
    status: str
    value: float | None = None  # the guarantee
    lower: float | None = None
    upper: float | None = None
    seconds_build: float
    seconds_solve: float
    seconds_processor: float
    robust_sweeps: int = 0
    cheap_sweeps: int = 0
    states: int
    rows: int
    transitions: int
    precision: float
    timeout: float
    model: str  # digest of the domain's text, constants and bounds
    version: str = __version__
    message: str = ""

    @property
    def key(self) -> str:
        """Name of the run."""
        return f"{self.domain} {self.radius:g} {self.method}"

    @property
    def title(self) -> str:
        """Name of the method, for people."""
        return find_method(self.method).title

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

    @property
    def printed(self) -> Published | None:
        """What was printed in the method's column."""
        return published_table().get((self.domain, self.radius, find_method(self.method).column))

    @property
    def agrees(self) -> bool | None:
        """Whether the value is the printed one to its digits; None where nothing is compared."""
        comparable = self.method == find_method(self.method).column
        if self.printed is None or self.value is None or not comparable:
            return None
        return self.printed.agrees(self.value)

    @property
    def explanation(self) -> str:
        """Why the printed value differs; empty if it agrees or nobody knows."""
        if self.agrees is not False or self.printed is None or self.value is None:
            return ""
        row = (self.domain, self.radius, find_method(self.method).column)
        short = 1.0 - float(self.printed.value) / self.value
        if row not in STOPPED or short <= 0.0:
            return ""
        return (
            f"The printed value is {short:.1e} of the value too small: that of a value iteration "
            "from below that stopped early."
        )

    def settles(self, task: SolvingTask) -> bool:
        """Return whether a task need not be repeated."""
        if self.model != model_digest(task.domain) or self.precision > PRECISION:
            return False
        return self.finished or self.timeout >= task.timeout


def run_task(task: SolvingTask) -> SolvingRecord:
    """Return what one run gives; compiled code is loaded before it is timed."""
    _warm_up(task.method)
    nominal, built = _nominal(task.domain)
    model = published_bounds(task.domain, nominal, task.radius)
    limits = Limits(precision=PRECISION, seconds=task.timeout)
    method = SOLVERS[task.method]()
    started, processor = time.perf_counter(), time.process_time()
    try:
        outcome = _fields(solve(model, find(task.domain).spec, inner=method, limits=limits))
    except RfmdpError as error:
        outcome = {"status": "REFUSED", "message": str(error).partition("\n")[0]}
    return SolvingRecord(
        domain=task.domain,
        radius=task.radius,
        method=task.method,
        seconds_build=built,
        seconds_solve=time.perf_counter() - started,
        seconds_processor=time.process_time() - processor,
        states=model.states,
        rows=model.rows,
        transitions=model.transitions,
        precision=PRECISION,
        timeout=task.timeout,
        model=model_digest(task.domain),
        **outcome,
    )


def _fields(solution: Solution) -> dict[str, Any]:
    """Return what a record keeps of a solution."""
    if solution.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    lower, upper = largest_initial_bounds(solution)
    return {
        "status": solution.status.name,
        "value": lower if solution.spec.agent.sign > 0 else upper,
        "lower": lower,
        "upper": upper,
        "robust_sweeps": solution.stats.robust_sweeps,
        "cheap_sweeps": solution.stats.cheap_sweeps,
    }


@lru_cache(maxsize=1)
def _nominal(name: str) -> tuple[FactoredMDP, float]:
    """Return a domain's model and the seconds to build it; the last one is kept."""
    started = time.perf_counter()
    return domain(name), time.perf_counter() - started


@cache
def _warm_up(method: str) -> None:
    """Load compiled code before anything is timed."""
    model = domain("chain", radius=RADII[0])
    solve(model, find("chain").spec, inner=SOLVERS[method](), limits=Limits(sweeps=2))


def largest_initial_bounds(solution: Solution) -> tuple[float | None, float | None]:
    """Return the proven bounds of the value in the initial state, of several the largest each."""

    def largest(side: FloatArray | None) -> float | None:
        if side is None:
            return None
        value = float(np.max(side[solution.model.initial]))
        return value if np.isfinite(value) else None

    return largest(solution.lower), largest(solution.upper)


@cache
def model_digest(name: str) -> str:
    """Return a digest of all that the published model of a domain is made of."""
    return records.model_digest(name, PUBLISHED, inspect.getsource(published_bounds))
