"""Recorded transitions: written by a simulation, read back as a source of counts.

    data = record(model, solution.policy, steps=100, trajectories=1000, seed=7)
    save(data, "data.rfmdp")
    run = learn(Recorded(model, load("data.rfmdp")), spec)     # one look at all of it

A guarantee from records needs every transition to be there, whatever came of it: records of
successful trajectories only, or without repetitions, say nothing.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.outer.solution import Policy
from rfmdp.ragged import starts
from rfmdp.record import Assumption, Record, to_record
from rfmdp.sources.checks import LEVEL, Check, Evidence
from rfmdp.sources.paid import Payer, Payments
from rfmdp.sources.simulator import Behaviour, Simulator, Trajectories, behaviour_of
from rfmdp.sources.structure import Structure
from rfmdp.sources.tally import Tally, count_transitions
from rfmdp.types import AnyArray, BoolArray, Int32Array, IntArray

KIND = "transitions"
MOST = 500_000_000  # transitions in one file
ALL = Assumption("recorded")


@dataclass(frozen=True, slots=True, eq=False)
class Transitions:
    """Rows that were taken and the states that followed, in their order."""

    rows: Int32Array  # (N,) of the model; a row says state and action
    successors: Int32Array  # (N,)
    lengths: IntArray  # (trajectories,) transitions of every trajectory
    structure: str  # digest of the model's states, rows and successors


class Recorded:
    """Recorded transitions of a system with a known structure, read once.

    Parameters
    ----------
    model
        What is known; see `rfmdp.sources.structure`.
    transitions
        Rows that were taken, and their successors.

    Raises
    ------
    ModelError
        If the transitions are those of a model with another structure.
    """

    assumptions = (ALL,)

    def __init__(self, model: FactoredMDP, transitions: Transitions) -> None:
        if transitions.structure != structure_of(model):
            raise ModelError(
                "Transitions: must be those of the given model; its states, rows or successors "
                "differ from those that were recorded. Give the same model and constants."
            )
        self.structure = Structure.of(model)
        self.transitions = transitions

    @property
    def words(self) -> dict[str, str]:
        """Records, of this structure with these transitions."""
        data = self.transitions
        return {
            "source": "transitions",
            "structure": data.structure,
            "data": digest_of(data.rows, data.successors, data.lengths),
        }

    @property
    def trajectories(self) -> int:
        """Number of recorded trajectories."""
        return len(self.transitions.lengths)

    @property
    def steps(self) -> int:
        """Number of recorded transitions."""
        return len(self.transitions.rows)

    @property
    def last(self) -> IntArray:
        """None: transitions do not say where a trajectory was over."""
        return np.empty(0, dtype=np.int64)

    def payer(self, reward: str, ends: tuple[float, float] | None) -> Payer:
        """Raise UnsupportedError: transitions alone have no rewards."""
        raise UnsupportedError(
            "learn: recorded transitions have no rewards; learn without `rewards`, or from a log "
            "that has a column for them."
        )

    def expect(self, paid: Payments) -> None:
        """Do nothing: no rewards were recorded."""

    def counts(self, counted: FactoredMDP, *, ordered: bool = False) -> Tally:
        """Return the counts of all records, which are in order."""
        return count_transitions(counted, self.transitions.rows, self.transitions.successors)

    def check(self, counted: FactoredMDP) -> tuple[Check, ...]:
        """Return what the records say about a learning model's assumptions."""
        data, evidence = self.transitions, Evidence(counted)
        ages = np.arange(self.steps) - np.repeat(starts(data.lengths)[:-1], data.lengths)
        before = np.where(ages > 0, np.roll(data.rows, 1), -1)
        evidence.add(data.rows, data.successors, before, ages)
        return evidence.checks(LEVEL)


def record(
    model: FactoredMDP,
    policy: Policy | Behaviour | None,
    steps: int,
    trajectories: int,
    seed: int = 0,
    stop: BoolArray | None = None,
) -> Transitions:
    """Simulate trajectories of at most `steps` steps and return all their transitions.

    `stop` (S,) are states in which a trajectory ends early. The trajectories are `simulate`'s.
    """
    from rfmdp.kernels.simulate import record_trajectories

    if steps < 1 or trajectories < 1 or steps * trajectories > MOST:
        raise ModelError(
            f"record: 1 <= steps * trajectories <= {MOST} must hold, found {steps}, {trajectories}."
        )
    simulator, behaviour = Simulator(model, stop), behaviour_of(model, policy)
    rows = np.empty(steps * trajectories, dtype=np.int32)
    successors, lengths = np.empty_like(rows), np.empty(trajectories, dtype=np.int64)
    counts = np.zeros(len(model.marginals.nominal), dtype=np.int64)
    wanted = Trajectories(behaviour, steps, trajectories, seed)
    used = simulator.call(record_trajectories, wanted, counts, rows, successors, lengths)
    return Transitions(rows[:used], successors[:used], lengths, structure_of(model))


def structure_of(model: FactoredMDP) -> str:
    """Return a digest of what transitions refer to."""
    arrays = (model.row_ptr, model.successor_ptr, model.successors, model.row_actions)
    return digest_of(*(np.asarray(array, dtype=np.int64) for array in arrays))


def digest_of(*arrays: AnyArray) -> str:
    """Return the SHA-256 digest of the bytes of some arrays, in hexadecimal digits."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


@to_record.register
def transitions_to_record(data: Transitions) -> Record:
    """Return (kind, header, arrays) of transitions."""
    arrays: dict[str, AnyArray] = {
        "rows": data.rows, "successors": data.successors, "lengths": data.lengths
    }  # fmt: skip
    return KIND, {"structure": data.structure, "selection": "none"}, arrays


def transitions_from_record(
    header: Mapping[str, Any], arrays: Mapping[str, AnyArray]
) -> Transitions:
    """Make transitions again; records that were selected are refused."""
    if header["selection"] != "none":
        raise ModelError(
            f"Transitions: no guarantee follows from selected records ({header['selection']})."
        )
    rows, successors, lengths = (arrays[name] for name in ("rows", "successors", "lengths"))
    flat = all(a.ndim == 1 and a.dtype.kind == "i" for a in (rows, successors, lengths))
    if not flat or len(rows) != len(successors) or np.any(lengths < 0):
        raise ModelError("Transitions: rows, successors and lengths must be flat and fit.")
    if math.fsum(lengths.tolist()) != len(rows) or not isinstance(header["structure"], str):
        raise ModelError(f"Transitions: the lengths must add up to the {len(rows)} rows.")
    return Transitions(rows, successors, lengths, header["structure"])
