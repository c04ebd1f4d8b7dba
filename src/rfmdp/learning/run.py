"""The result of learning: history, policy, learned model, ledger and assumptions, as one file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from rfmdp.formats.records import model_from_record, model_to_record
from rfmdp.learning.budget import Ledger
from rfmdp.learning.rollout import RolloutCertificate
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, MIN, Direction
from rfmdp.outer.solution import Policy
from rfmdp.record import Record, to_record
from rfmdp.types import AnyArray, FloatArray, IntArray

KIND = "learning run"


@dataclass(frozen=True, slots=True)
class Point:
    """One evaluation; guarantees are for the initial state."""

    trajectories: int
    steps: int
    guarantee: float  # proven with probability 1 - beta; of anytime sets the best one so far
    fresh: float  # guarantee of the sets as they are now
    performance: float  # of the policy on the truth; nan if the truth is not known
    optimistic: float  # bound of the optimum on the other side, same probability
    rollout: float  # best rollout certificate so far, a separate guarantee; nan if none
    replans: int
    visited: int  # identifiers with samples
    seconds: float  # since the start, simulation and planning included


@dataclass(slots=True, eq=False)
class Run:
    """Everything a run of `learn` produced. `save` and `load` keep all of it."""

    settings: dict[str, str]  # what was asked for, in words; a resumed run must ask for the same
    validity: str
    assumptions: tuple[str, ...]
    agent: Direction
    ledger: Ledger
    history: list[Point]
    policy: Policy  # the one the guarantee is for
    model: FactoredMDP  # the learned rf-MDP: solve it again with other objectives
    counts: IntArray  # (O,) samples of every outcome of the identifiers
    stopped: str = "running"
    rollouts: list[RolloutCertificate] = field(default_factory=list)
    rollout_policy: Policy | None = None
    state: dict[str, AnyArray] = field(default_factory=dict)  # what resuming needs

    @property
    def beta(self) -> float:
        """Probability with which some reported guarantee may be wrong."""
        return self.ledger.beta

    @property
    def guarantee(self) -> float:
        """The last guarantee."""
        return self.history[-1].guarantee if self.history else math.nan

    def column(self, name: str) -> FloatArray:
        """Return one field of all evaluations."""
        return np.array([getattr(point, name) for point in self.history], dtype=np.float64)

    def statement(self) -> str:
        """Return the guarantee with its assumptions, for people."""
        side = "at least" if self.agent is MAX else "at most"
        lines = [
            f"With probability at least {1.0 - self.beta:.6g}, the policy's value in the initial "
            f"state is {side} {self.guarantee:.6g} ({self.validity}).",
            "Assumptions:",
            *(f"  - {assumption}" for assumption in self.assumptions),
        ]
        if self.rollouts:
            best = (max if self.agent is MAX else min)(self.rollouts, key=lambda c: c.bound)
            lines.append(
                f"Separate certificate by rollouts: {side} {best.bound:.6g} "
                f"({best.trajectories} trajectories; {'; '.join(best.assumptions)})."
            )
        return "\n".join(lines)


@to_record.register
def run_to_record(run: Run) -> Record:
    """Return (kind, header, arrays) of a run."""
    _, model_header, model_arrays = model_to_record(run.model)
    header = {
        "settings": run.settings,
        "validity": run.validity,
        "assumptions": list(run.assumptions),
        "agent": run.agent.name,
        "stopped": run.stopped,
        "history": [{k: _number(v) for k, v in asdict(point).items()} for point in run.history],
        "rollouts": [asdict(certificate) for certificate in run.rollouts],
        "model": model_header,
    }
    arrays: dict[str, AnyArray] = {"policy": run.policy.rows, "counts": run.counts}
    if run.rollout_policy is not None:
        arrays["rollout_policy"] = run.rollout_policy.rows
    for prefix, part in (
        ("ledger", run.ledger.to_arrays()),
        ("model", model_arrays),
        ("state", run.state),
    ):
        arrays.update({f"{prefix}/{name}": array for name, array in part.items()})
    return KIND, header, arrays


def run_from_record(header: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> Run:
    """Make a run again."""

    def part(prefix: str) -> dict[str, AnyArray]:
        cut = len(prefix) + 1
        return {name[cut:]: a for name, a in arrays.items() if name.startswith(f"{prefix}/")}

    certificates = [
        RolloutCertificate(**{**c, "assumptions": tuple(c["assumptions"])})
        for c in header["rollouts"]
    ]
    rollout = arrays.get("rollout_policy")
    return Run(
        settings=dict(header["settings"]),
        validity=header["validity"],
        assumptions=tuple(header["assumptions"]),
        agent=MAX if header["agent"] == "MAX" else MIN,
        ledger=Ledger.from_arrays(part("ledger")),
        history=[Point(**{k: _float(v) for k, v in p.items()}) for p in header["history"]],
        policy=Policy(np.asarray(arrays["policy"])),
        model=model_from_record(header["model"], part("model")),
        counts=np.asarray(arrays["counts"]),
        stopped=header["stopped"],
        rollouts=certificates,
        rollout_policy=None if rollout is None else Policy(np.asarray(rollout)),
        state=part("state"),
    )


def _number(value: float) -> float | str:
    """Return a number as JSON can write it: infinities and nan as words."""
    return value if math.isfinite(value) else str(value)


def _float(value: float | str) -> Any:
    return float(value) if isinstance(value, str) else value
