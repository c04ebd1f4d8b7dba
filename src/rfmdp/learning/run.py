"""The result of learning, as one file, and what is told meanwhile.

A file holds what is needed to derive its guarantee again: `looks`, `ledger`, `settings`, the
`solution` of the learned model, and as `evidence` visits of rows and what they paid, if rewards are
learned.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

import numpy as np

from rfmdp.formats.records import (
    model_from_record,
    model_to_record,
    solution_from_record,
    solution_to_record,
)
from rfmdp.learning.confidence import Validity, least_mean
from rfmdp.learning.setup import Ledger, divided
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, MIN, Direction
from rfmdp.outer.solution import Policy, Solution, written
from rfmdp.record import Record, assumption_from_json, assumption_to_json, described, to_record
from rfmdp.types import AnyArray, FloatArray, IntArray

KIND = "learning run"
ARRAYS = "counts", "looks", "floors", "starts"  # fields that are saved as they are
LISTS, WORDS = ("alarms", "checks"), ("stopped", "question", "name")
LISTED = 20  # groups of shared marginals that a statement lists
OFTEN = 0.5  # seconds between two reports of progress


@dataclass(frozen=True, slots=True)
class Point:
    """One evaluation; guarantees are for the initial state."""

    trajectories: int
    steps: int
    guarantee: float  # proven with probability 1 - beta; of anytime sets the best one so far
    fresh: float  # guarantee of the sets as they are now
    performance: float  # of the policy on the truth; nan if the truth is not known
    optimistic: float  # bound of the optimum on the other side, same probability
    replans: int
    visited: int  # identifiers with samples
    seconds: float  # since the start, simulation and planning included
    processor: float = math.nan  # seconds of all threads since the start


@dataclass(frozen=True, slots=True)
class Progress:
    """What a run is doing: told at least about once a second, and after every evaluation."""

    phase: str  # "planning", "sampling", "evaluating" or "evaluated"
    trajectories: int
    seconds: float
    point: Point | None = None  # of the evaluation


class Watch:
    """Time since `started`, by `time.monotonic()`, against a number of seconds.

    `before` are the seconds of earlier sessions of the run, by the clock and of the processor.
    """

    def __init__(
        self, seconds: float, progress: Callable[[Progress], None] | None, started: float
    ) -> None:
        self._started = self._told = started
        self._processor = time.process_time()
        self._progress = progress
        self.deadline = started + seconds
        self.before = (0.0, 0.0)

    def left(self) -> float:
        """Return the seconds that are left, negative if the time is over."""
        return self.deadline - time.monotonic()

    def spent(self) -> tuple[float, float]:
        """Return the seconds of all sessions, by the clock and of the processor."""
        clock, processor = time.monotonic() - self._started, time.process_time() - self._processor
        return self.before[0] + clock, self.before[1] + processor

    def tell(self, phase: str, trajectories: int, point: Point | None = None) -> None:
        """Report progress, now and then and after every evaluation."""
        now = time.monotonic()
        if self._progress is not None and (point is not None or now - self._told >= OFTEN):
            self._told = now
            self._progress(Progress(phase, trajectories, now - self._started, point))


@dataclass(slots=True, eq=False)
class Run:
    """Everything a run of `learn` produced. `save` and `load` keep all of it."""

    settings: dict[str, Any]  # what was asked for; a resumed run must ask for the same
    validity: str
    assumptions: tuple[str, ...]
    agent: Direction
    ledger: Ledger
    history: list[Point]
    policy: Policy  # the one the guarantee is for
    model: FactoredMDP  # the learned rf-MDP: solve it again with other objectives
    counts: IntArray  # (O,) samples of every outcome of the identifiers
    looks: IntArray  # (looks, O) counts that the sets of `model` were made from, intersected
    floors: FloatArray  # (M,) least probabilities that were assumed of the outcomes of identifiers
    starts: IntArray  # (I,) episodes that began in each initial state; empty: not learned
    prior: FloatArray | None = None  # (2, O) bounds that were known before any data
    solution: Solution | None = None  # of `model`, behind the guarantee; None: nothing is proven
    evidence: dict[str, AnyArray] = field(default_factory=dict)  # of `solution`, beside `looks`
    shared: tuple[tuple[str, ...], ...] = ()  # marginals that were declared to be one unknown
    alarms: tuple[str, ...] = ()  # contradictions; then nothing is guaranteed
    checks: tuple[str, ...] = ()  # what the samples say about the assumptions
    stopped: str = "running"
    question: str = ""  # the property
    name: str = ""  # of the system
    state: dict[str, AnyArray] = field(default_factory=dict)  # what resuming needs

    def __repr__(self) -> str:
        side = ">=" if self.agent is MAX else "<="
        count = self.history[-1].trajectories if self.history else 0
        what = f"value {side} {self.guaranteed} with probability {1.0 - self.beta:.6g}"
        if self.alarms:
            what = "ALARM, nothing is guaranteed"
        return f"Run({self.settings.get('method', 'learning')}, {count:,} trajectories, {what})"

    def _repr_html_(self) -> str:
        """Return the statement, for notebooks."""
        return f"<p>{escape(repr(self))}</p><pre>{escape(self.statement())}</pre>"

    @property
    def beta(self) -> float:
        """Probability with which some reported guarantee may be wrong."""
        return self.ledger.shares.beta

    @property
    def guarantee(self) -> float:
        """The last guarantee; after an alarm an infinite bound, which says nothing."""
        if self.alarms:
            return -math.inf * self.agent.sign
        return self.history[-1].guarantee if self.history else math.nan

    @property
    def mean_guarantee(self) -> float:
        """The guarantee of the policy for the mean over random starts; nan if there are none."""
        if not len(self.starts):
            return math.nan
        if self.alarms or self.solution is None:
            return -math.inf * self.agent.sign
        values = self.agent.sign * self.solution.guarantee[self.model.initial]
        delta = divided(self.ledger.shares.start, len(values))
        return self.agent.sign * least_mean(values, self.starts, delta)

    @property
    def guaranteed(self) -> str:
        """The last guarantee with few digits, rounded to the side that is safe."""
        return written(self.guarantee, -1.0 if self.agent is MAX else 1.0)

    @property
    def proven_after(self) -> int:
        """Trajectories whose samples the last guarantee was proven with, at most."""
        proven_at = (p.trajectories for p in reversed(self.history) if p.fresh == self.guarantee)
        return next(proven_at, self.history[-1].trajectories)

    @property
    def subject(self) -> str:
        """What is learned: the property, and of what."""
        sizes = f"{self.model.states:,} states and {self.model.rows:,} choices"
        system = f"{self.name}, {sizes}" if self.name else f"a model with {sizes}"
        return f"{self.question or 'a property'} of {system}"

    def column(self, name: str) -> FloatArray:
        """Return one field of all evaluations."""
        return np.array([getattr(point, name) for point in self.history], dtype=np.float64)

    def statement(self) -> str:
        """Return the guarantee with its assumptions, for people."""
        side = "at least" if self.agent is MAX else "at most"
        where = "the" if len(self.model.initial) == 1 else "every"
        lines = [*(f"ALARM: {alarm}" for alarm in self.alarms), f"Learned: {self.subject}."]
        if not self.alarms:
            lines.append(
                f"With probability at least {1.0 - self.beta:.6g}, the policy's value in {where} "
                f"initial state is {side} {self.guaranteed} ({self.validity})."
            )
            if len(self.starts):
                mean = written(self.mean_guarantee, -float(self.agent.sign))
                lines.append(
                    f"With the same probability, its mean over the starts of episodes is {side} "
                    f"{mean} ({int(self.starts.sum())} starts seen)."
                )
            if self.proven_after < self.history[-1].trajectories:
                lines.append(
                    f"It was proven with the samples of the first {self.proven_after} "
                    "trajectories; later evaluations proved no more."
                )
        lines += ["Assumptions:", *(f"  - {assumption}" for assumption in self.assumptions)]
        if self.checks:
            lines.append("What the samples say about assumptions (no alarm proves nothing):")
            lines += [f"  - {check}" for check in self.checks]
        if self.shared:
            lines.append("Marginals that were declared to be the same unknown distribution:")
        lines += [f"  - {' = '.join(names)}" for names in self.shared[:LISTED]]
        if len(self.shared) > LISTED:
            lines.append(f"  - and {len(self.shared) - LISTED} groups more (`run.shared`)")
        return "\n".join(lines)


@to_record.register
def run_to_record(run: Run) -> Record:
    """Return (kind, header, arrays) of a run."""
    header: dict[str, Any] = {
        "settings": run.settings,
        "validity": Validity(run.validity).name,
        "assumptions": [assumption_to_json(line) for line in run.assumptions],
        "agent": run.agent.name,
        "mean_guarantee": described(run.mean_guarantee),
        "shared": [list(names) for names in run.shared],
        "history": [described(asdict(point)) for point in run.history],
        **{name: list(getattr(run, name)) for name in LISTS},
        **{name: getattr(run, name) for name in WORDS},
    }
    arrays: dict[str, AnyArray] = {name: getattr(run, name) for name in ARRAYS}
    arrays["policy"] = run.policy.rows
    if run.prior is not None:
        arrays["prior_lower"], arrays["prior_upper"] = run.prior
    groups = {"ledger": run.ledger.to_arrays(), "state": run.state, "evidence": run.evidence}
    if run.solution is None:
        _, header["model"], groups["model"] = model_to_record(run.model)
    else:  # a solution is stored with its model
        _, header["solution"], groups["solution"] = solution_to_record(run.solution)
    for prefix, content in groups.items():
        arrays.update({f"{prefix}/{name}": array for name, array in content.items()})
    return KIND, header, arrays


def run_from_record(header: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> Run:
    """Make a run again."""
    solution, prior = None, None
    if "prior_lower" in arrays:
        prior = np.stack([arrays["prior_lower"], arrays["prior_upper"]])
    if "solution" in header:
        solution = solution_from_record(header["solution"], arrays_of(arrays, "solution"))
        model = solution.explicit_model
    else:
        model = model_from_record(header["model"], arrays_of(arrays, "model"))
    points: list[dict[str, Any]] = [
        {k: float(v) if isinstance(v, str) else v for k, v in point.items()}
        for point in header["history"]
    ]
    plain: dict[str, Any] = {name: np.asarray(arrays[name]) for name in ARRAYS}
    plain |= {name: tuple(header[name]) for name in LISTS}
    plain |= {name: header[name] for name in WORDS}
    plain |= {name: arrays_of(arrays, name) for name in ("evidence", "state")}
    return Run(
        settings=dict(header["settings"]),
        validity=Validity[header["validity"]].value,
        assumptions=tuple(map(assumption_from_json, header["assumptions"])),
        agent=MAX if header["agent"] == "MAX" else MIN,
        ledger=Ledger.from_arrays(arrays_of(arrays, "ledger")),
        history=[Point(**point) for point in points],
        policy=Policy(np.asarray(arrays["policy"])),
        model=model,
        prior=prior,
        solution=solution,
        shared=tuple(tuple(names) for names in header["shared"]),
        **plain,
    )


def arrays_of(arrays: Mapping[str, AnyArray], prefix: str) -> dict[str, AnyArray]:
    """Return the arrays of one part, by their own names."""
    return {k[len(prefix) + 1 :]: a for k, a in arrays.items() if k.startswith(f"{prefix}/")}
