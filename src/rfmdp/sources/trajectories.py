"""Trajectories: drawn from a model by compiled code, found among its states and rows, counted.

Trajectory i of seed s is the same for every cut into batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.packing import Packing
from rfmdp.outer.solution import Policy
from rfmdp.ragged import entries, find, owners, segment_all, segment_lengths, starts
from rfmdp.sets.marginals import Marginals
from rfmdp.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray, frozen

MOST = 500_000_000  # transitions that are recorded at once
NO_INTS, NO_FLOATS = np.empty(0, dtype=np.int64), np.empty(0)
NO_ROWS = np.empty(0, dtype=np.int32)
SLICE = 2_000_000  # steps between two looks at Ctrl-C, at most: a fraction of a second
DENSE = 1 << 25  # entries of a table; larger ones are searched


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Counts per outcome, identifier and row; the arrays are added to in place."""

    counts: IntArray  # (O,)
    totals: IntArray  # (M,) samples of every identifier
    visits: IntArray  # (R,) times a row was taken; empty if nobody asks
    starts: IntArray  # (I,) episodes that began in each initial state; empty if nobody asks

    @staticmethod
    def empty(model: FactoredMDP, visits: bool = False, starts: bool = False) -> Tally:
        """Return zeros for the identifiers of a learning model."""
        outcomes = len(model.marginals.nominal)
        identifiers = len(model.marginals)
        begin = len(model.initial) if starts else 0
        sizes = (outcomes, identifiers, model.rows if visits else 0, begin)
        return Tally(*(np.zeros(size, dtype=np.int64) for size in sizes))

    def add(
        self, model: FactoredMDP, rows: IntArray, successors: AnyArray, times: int | IntArray = 1
    ) -> None:
        """Count the outcomes of rows (N,) that were taken, with the states that followed.

        model : the learning model, whose marginals are counted
        times : how often each of them was seen, (N,)

        ModelError: a successor is none of its row's, so guarantees are void.
        """
        pair, slots, outcomes, _ = shown_outcomes(model, rows, successors)
        each = np.broadcast_to(times, len(rows))
        identifiers = model.row_marginals[slots]
        np.add.at(self.counts, model.marginals.outcome_ptr[identifiers] + outcomes, each[pair])
        np.add.at(self.totals, identifiers, each[pair])
        if len(self.visits):
            np.add.at(self.visits, rows, each)

    @property
    def kernel(self) -> tuple[IntArray, IntArray, IntArray]:
        """All but the starts, in the order of the kernels."""
        return self.counts, self.totals, self.visits

    @property
    def arrays(self) -> dict[str, AnyArray]:
        """What a saved run keeps."""
        return {name: getattr(self, name) for name in self.__slots__}


def shown_outcomes(
    model: FactoredMDP, rows: IntArray, successors: AnyArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return the outcomes that N pairs of a row and its successor show, one per marginal, (K,).

    Of each: of which pair, in which slot (index into `row_marginals`), which one, and how many
    slots of the row are behind it. In a learning model a successor tells all of them.
    """
    used, owner = np.unique(rows, return_inverse=True)
    at = entries(model.successor_ptr, used)
    ptr = starts(segment_lengths(model.successor_ptr)[used])
    keys = owners(ptr) * model.states + model.successors[at]
    different, first = np.unique(keys, return_index=True)
    at = find(different, owner * model.states + successors)
    if np.any(at < 0):
        fault = int(np.argmax(at < 0))
        raise ModelError(
            f"Transitions: {model.row_name(int(rows[fault]))} must lead to one of its declared "
            f"successors, found {model.state_name(int(successors[fault]))}. Guarantees from this "
            "data are void: declare the outcome."
        )
    rest = first[at] - ptr[owner]
    begin, end = model.marginal_ptr[rows], model.marginal_ptr[rows + 1]
    parts = [(np.empty(0, dtype=np.int64),) * 4]
    for back in range(int((end - begin).max(initial=0))):
        has = np.flatnonzero(begin < end - back)
        slot = end[has] - 1 - back
        size = model.marginals.sizes[model.row_marginals[slot]]
        parts.append((has, slot, rest[has] % size, np.full(len(has), back)))
        rest[has] //= size
    pair, slots, outcomes, behind = (np.concatenate(part) for part in zip(*parts, strict=True))
    return pair, slots, outcomes, behind


@dataclass(frozen=True, slots=True, eq=False)
class Behaviour:
    """How rows are picked: a rule per step (the last one repeats), and how often another row.

    Row -1 stands for any row of the state, all with the same probability.
    """

    rows: IntArray  # (steps, S)
    other: float = 0.0  # probability of one of the other rows of the state

    def __post_init__(self) -> None:
        if not 0.0 <= self.other <= 1.0:
            raise ModelError(f"Behaviour: `other` must be a probability, found {self.other!r}.")
        object.__setattr__(self, "rows", frozen(np.atleast_2d(np.asarray(self.rows, np.int64))))

    @staticmethod
    def uniform(model: FactoredMDP) -> Behaviour:
        """Return the behaviour that takes every row with the same probability."""
        return Behaviour(np.full((1, model.states), -1, dtype=np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Trajectories:
    """Which trajectories to draw: number i of a seed is always the same."""

    behaviour: Behaviour
    length: int  # most steps of one
    count: int
    seed: int
    first: int = 0  # the number of the first one


@dataclass(slots=True, eq=False)
class DrawnTrajectories:
    """What some trajectories gave; their N steps are empty unless they are traced."""

    counts: IntArray  # (O,) outcomes of the marginals
    returns: FloatArray  # (trajectories,)
    final: IntArray  # (trajectories,) last states
    lengths: IntArray  # (trajectories,) their steps
    steps: int
    rows: Int32Array  # (N,) that were taken, in their order; a row says state and action
    successors: Int32Array  # (N,)


class Simulator:
    """A known model made ready for the kernels: the hidden truth of learning experiments.

    Its nominal probabilities are those that are drawn from. A trajectory ends early in the states
    `stop` (S,), by default nowhere.
    """

    def __init__(self, model: FactoredMDP, stop: BoolArray | None = None) -> None:
        self.model = model
        sets = model.marginals
        begin, size = sets.outcome_ptr[:-1], sets.sizes
        slots = np.stack([begin, size], axis=1)[model.row_marginals]
        arrays = (
            *(model.row_ptr, model.marginal_ptr, np.ascontiguousarray(slots)),
            *(model.successor_ptr, model.successors),
        )
        stop = np.zeros(model.states, dtype=np.bool_) if stop is None else stop.copy()
        initial = np.array(model.initial, dtype=np.int64)
        self._world = arrays, alias_tables(sets), initial, stop

    def run(
        self,
        request: Trajectories,
        *,
        reward: FloatArray | None = None,
        discount: float = 1.0,
        traced: bool = False,
    ) -> DrawnTrajectories:
        """Run trajectories, some at a time, so that Ctrl-C ends them; rows pay `reward` (R,)."""
        paid = NO_FLOATS if reward is None else np.ascontiguousarray(reward), float(discount)
        counts = np.zeros(len(self.model.marginals.nominal), dtype=np.int64)
        tally = Tally(counts, NO_INTS, NO_INTS, NO_INTS)
        returns, steps = np.empty(request.count), 0
        final, lengths = np.empty((2, request.count), dtype=np.int64)
        most = request.count * request.length if traced else 0
        rows, successors = np.empty((2, most), dtype=np.int32)
        size = max(1, SLICE // max(request.length, 1))
        for begin in range(0, request.count, size):
            end = min(begin + size, request.count)
            batch = replace(request, first=request.first + begin, count=end - begin)
            ends = returns[begin:end], final[begin:end], lengths[begin:end]
            trace = rows[steps:], successors[steps:]
            steps += self.run_until(batch, NO_INTS, tally, paid=paid, ends=ends, trace=trace)[1]
        rows, successors = rows[:steps], successors[:steps]
        return DrawnTrajectories(counts, returns, final, lengths, steps, rows, successors)

    def run_until(
        self,
        request: Trajectories,
        limit: IntArray,
        tally: Tally,
        *,
        paid: tuple[FloatArray, float] = (NO_FLOATS, 1.0),
        ends: tuple[FloatArray, IntArray, IntArray] = (NO_FLOATS, NO_INTS, NO_INTS),
        trace: tuple[Int32Array, Int32Array] = (NO_ROWS, NO_ROWS),
    ) -> tuple[int, int]:
        """Run until a marginal's total reaches its limit; return (trajectories, steps) done.

        What else is asked of `kernels.simulate.run_trajectories` is written to `ends` and `trace`.
        """
        from rfmdp.kernels.simulate import run_trajectories

        behaviour = request.behaviour.rows, request.behaviour.other
        which = request.length, request.seed, request.first, request.count
        limits = self.model.row_marginals, frozen(limit)
        payment = frozen(paid[0]), paid[1]
        done, steps = run_trajectories(
            self._world, behaviour, which, payment, tally.kernel, limits, ends, trace
        )
        return int(done), int(steps)


def record(
    model: FactoredMDP,
    policy: Policy | Behaviour | None,
    steps: int,
    trajectories: int,
    seed: int = 0,
    stop: BoolArray | None = None,
) -> DrawnTrajectories:
    """Simulate trajectories of at most `steps` steps and return all their transitions.

    `stop` (S,) are states in which a trajectory ends early. The trajectories are `simulate`'s.
    """
    if steps < 1 or trajectories < 1 or steps * trajectories > MOST:
        raise ModelError(
            f"record: 1 <= steps * trajectories <= {MOST} must hold, found {steps}, {trajectories}."
        )
    request = Trajectories(behaviour_of(model, policy), steps, trajectories, seed)
    return Simulator(model, stop).run(request, traced=True)


def alias_tables(sets: Marginals) -> tuple[FloatArray, AnyArray]:
    """Return the tables (O,) by which nominal distributions are drawn from, see the kernel."""
    from rfmdp.kernels.simulate import alias_tables as fill

    accept, alias = np.empty(len(sets.nominal)), np.empty(len(sets.nominal), dtype=np.int32)
    work = np.empty(int(np.max(sets.sizes, initial=0)), dtype=np.int64)
    fill(sets.outcome_ptr, sets.nominal, work, accept, alias)
    return accept, alias


def behaviour_of(model: FactoredMDP, policy: Policy | Behaviour | None) -> Behaviour:
    """Return a policy as a behaviour; None is uniform."""
    if policy is None:
        return Behaviour.uniform(model)
    if isinstance(policy, Policy):
        policy = Behaviour(policy.rows)
    rows = policy.rows if isinstance(policy, Behaviour) else np.empty((0, 0), dtype=np.int64)
    if rows.shape[1:] != (model.states,) or np.any(
        (rows != -1) & ((rows < model.row_ptr[:-1]) | (rows >= model.row_ptr[1:]))
    ):
        raise UnsupportedError(
            "simulate: must be given a policy or a behaviour that names a row of its own, or -1, "
            f"for each state of the model, or None; found a {type(policy).__name__}."
        )
    return policy


def numbering(keys: IntArray, size: int) -> Callable[[AnyArray], AnyArray]:
    """Return what finds the numbers (N,) of keys, -1 for one that is missing.

    The keys are different and below `size`; they are looked up in a table, or searched.
    """
    if size <= DENSE:
        table = np.full(size, -1, dtype=np.int32)
        table[keys] = np.arange(len(keys), dtype=np.int32)
        return lambda wanted: table[wanted]
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]

    def search(wanted: AnyArray) -> AnyArray:
        at = find(ordered, wanted)
        return np.where(at < 0, -1, order[at])

    return search


class SuccessorPairs:
    """The different (row, successor) pairs of a model, numbered."""

    def __init__(self, model: FactoredMDP) -> None:
        self._states = model.states
        row = owners(model.successor_ptr)
        keys = np.sort(row * model.states + model.successors)  # np.unique takes ten times as long
        keys = keys[np.append(True, keys[1:] != keys[:-1])]
        self.rows: IntArray = keys // model.states
        self.successors: IntArray = keys % model.states
        self._numbers = numbering(keys, model.rows * model.states)

    def find(self, rows: AnyArray, successors: AnyArray) -> AnyArray:
        """Return the numbers of pairs (N,), -1 where the row does not lead to the successor."""
        return self._numbers(rows * np.int64(self._states) + successors)


class Index:
    """The states and rows of a model, by what is observed."""

    def __init__(self, model: FactoredMDP) -> None:
        if not model.variables:
            raise ModelError("Structure: must have variables, by which its states are observed.")
        self.packing = Packing(model.variables)
        self.packing.require_one_word()
        codes = self.packing.pack(model.valuations)[:, 0]
        self.coded = numbering(codes, self.packing.domain)  # states by their words
        rows, at = np.arange(model.rows), (model.row_states, model.row_actions)
        # (S, actions) the row of every state and action; -1 where it is not enabled
        self.rows = np.full((model.states, len(model.actions)), -1, dtype=np.int32)
        self.rows[at] = rows
        other = self.rows[at] != rows
        if other.any():
            row = model.row_name(int(np.argmax(other)))
            raise ModelError(
                f"Structure: {row} must be one choice, found several of that name; give them "
                "different names, so that an observed action says which it is."
            )

    def state(self, values: Sequence[int]) -> int:
        """Return the state with these values of the variables; -1 if there is none."""
        packing, line = self.packing, np.array([values], dtype=np.int64)
        inside = ((line >= packing.low) & (line < packing.low + packing.radix)).all()
        return int(self.coded(packing.pack(line)[:, 0])[0]) if inside else -1


def absorbing(model: FactoredMDP) -> BoolArray:
    """Return the states that no row leaves, (S,)."""
    stays = model.successors == model.row_states[owners(model.successor_ptr)]
    return segment_all(segment_all(stays, model.successor_ptr), model.row_ptr)
