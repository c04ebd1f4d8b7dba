"""Where blocks do their rounds: in this process, or on the workers of a Dask cluster.

Both take the values of all states, do some rounds, and return the values after them. Blocks read
each other's values as they were at the end of the round before, so that results depend neither on
the number of workers nor on who is first.

On a cluster a block is a task that makes it from its source; so it is made again if its worker is
lost. Between rounds only values that other blocks read travel, from worker to worker. What is
returned after some rounds is a checkpoint: the next rounds begin with values from here, so that a
loss costs the rounds since then. No task is tied to a worker.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from rfmdp.inner.protocol import Inner
from rfmdp.memory import available_memory
from rfmdp.model.blocked import BlockedMDP, PackedBlock, RowSource, local, pack
from rfmdp.objective import Spec
from rfmdp.outer.blocks.block import BlockOperator, BlockTask, Command, Outcome, ready_bytes
from rfmdp.outer.problem import where
from rfmdp.running import connected, gathered, portable
from rfmdp.threads import set_threads
from rfmdp.types import AnyArray, FloatArray, IntArray

SHARE = 0.4  # of the memory that blocks may take which are ready to use


def _tasks(model: BlockedMDP, spec: Spec, inner: Inner, memory: float) -> list[BlockTask]:
    """Return the task of every block; blocks stay ready to use if some memory has room for all."""
    sets = {name: where(model.frame, states) for name, states in spec.objective.sets.items()}
    keep = ready_bytes(model) <= SHARE * memory
    tasks = []
    for first, last in pairwise(model.block_ptr.tolist()):
        own: dict[str, Any] = {name: states[first:last] for name, states in sets.items()}
        posed = replace(spec, objective=replace(spec.objective, **own))
        tasks.append(BlockTask(posed, inner, model.changes, keep))
    return tasks


def _fresh(outcome: Outcome) -> Outcome:
    """Return an outcome without what belongs to the rounds before."""
    return replace(outcome, rules=(), spreads=(), moves=(np.inf, np.inf))


class LocalBlocks:
    """Blocks in this process: ready to use while they fit, else packed; `begun` as they begin."""

    steps_at_once = 1  # rounds between two checkpoints, at most

    def __init__(self, model: BlockedMDP, spec: Spec, inner: Inner) -> None:
        self._model = model
        self._tasks = _tasks(model, spec, inner, available_memory())
        self._ready: dict[int, BlockOperator] = {}
        self.begun = [self._block(b).begin() for b in range(len(self._tasks))]

    def run(self, before: Sequence[Outcome], commands: Sequence[Command]) -> list[Outcome]:
        """Do rounds, one per command."""
        outcomes = [_fresh(outcome) for outcome in before]
        for command in commands:
            values = np.concatenate([outcome.values for outcome in outcomes], axis=1)
            for b, outcome in enumerate(outcomes):
                block = self._block(b)
                outcomes[b] = command(block, outcome, values[:, block.outside])
        return outcomes

    def close(self) -> None:
        """Forget the blocks."""
        self._ready.clear()

    def _block(self, number: int) -> BlockOperator:
        if number in self._ready:
            return self._ready[number]
        block = BlockOperator(self._model.block(number), self._tasks[number])
        if block.task.keep:
            self._ready[number] = block
        return block


class Cluster:
    """Blocks on the workers of a Dask scheduler; `begun` as they begin.

    patience : seconds to wait for the first worker, and for answers
    """

    steps_at_once = 16

    def __init__(
        self, model: BlockedMDP, address: str, spec: Spec, inner: Inner, patience: float
    ) -> None:
        self._client = connected(address, patience)
        self._address, self._patience = address, patience
        try:
            workers = self._client.scheduler_info()["workers"].values()
            most = [worker["memory_limit"] or math.inf for worker in workers]
            source = self._submit(_same, model.source)
            ranges = pairwise(model.block_ptr.tolist())
            self._blocks = [
                self._submit(_built, source, first, last, model.states, task)
                for (first, last), task in zip(
                    ranges, _tasks(model, spec, inner, sum(most)), strict=True
                )
            ]
            first = self._gathered([self._submit(_begin, block) for block in self._blocks])
            self.begun: list[Outcome] = [outcome for outcome, _ in first]
            outside = [states for _, states in first]
            exports, self._neighbours, imports = _exchange(model.block_ptr, outside)
            self._exports = [self._submit(_same, places) for places in exports]
            self._imports = [self._submit(_same, places) for places in imports]
        except BaseException:
            self.close()
            raise

    def run(self, before: Sequence[Outcome], commands: Sequence[Command]) -> list[Outcome]:
        """Do rounds, one per command; values from here cut off what led to them."""
        outcomes = [self._submit(_same, _fresh(outcome)) for outcome in before]
        for command in commands:
            boxes = [
                self._submit(_outbox, outcome, places)
                for outcome, places in zip(outcomes, self._exports, strict=True)
            ]
            outcomes = [
                self._submit(
                    _run, block, outcome, command, self._imports[b],
                    *(boxes[j] for j in self._neighbours[b]),
                )
                for b, (block, outcome) in enumerate(zip(self._blocks, outcomes, strict=True))
            ]  # fmt: skip
        return self._gathered(outcomes)

    def close(self) -> None:
        """Leave the cluster; nobody wants what is not finished."""
        self._client.close(timeout=2)

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._client.submit(function, *arguments, pure=False)

    def _gathered(self, futures: Sequence[Any]) -> list[Any]:
        return gathered(self._client, self._address, futures, self._patience)


def _exchange(
    block_ptr: IntArray, outside: Sequence[IntArray]
) -> tuple[list[AnyArray], list[list[int]], list[AnyArray]]:
    """Return which values blocks give to each other.

    Of every block: its states that others read, the blocks that it reads from, and where its
    outside states are in what these give.
    """
    read = np.zeros(int(block_ptr[-1]), dtype=np.bool_)
    for states in outside:
        read[states] = True
    exports: list[AnyArray] = [
        np.flatnonzero(read[first:last]).astype(np.int32)
        for first, last in pairwise(block_ptr.tolist())
    ]
    counts: IntArray = np.cumsum(read) - read  # how many are read before a state
    sizes = np.array([len(states) for states in exports])
    begins = np.cumsum(sizes) - sizes
    givers: list[list[int]] = []
    imports: list[AnyArray] = []
    for states in outside:
        owner = np.searchsorted(block_ptr, states, side="right") - 1
        neighbours = np.unique(owner)
        place = np.zeros(len(sizes), dtype=np.int64)  # of their boxes, one after the other
        place[neighbours] = np.cumsum(sizes[neighbours]) - sizes[neighbours]
        givers.append(neighbours.tolist())
        imports.append((counts[states] - begins[owner] + place[owner]).astype(np.int32))
    return exports, givers, imports


# tasks of workers

_Posed: TypeAlias = BlockOperator | tuple[PackedBlock, BlockTask]  # ready to use, or packed


@contextmanager
def _on_a_worker() -> Iterator[None]:
    """Leave the other cores to other blocks; let errors survive the way back."""
    set_threads(1)
    try:
        yield
    except Exception as error:
        raise portable(error) from None


def _same(thing: Any) -> Any:
    return thing


@_on_a_worker()
def _built(source: RowSource, first: int, last: int, states: int, task: BlockTask) -> _Posed:
    """Make a block from its source."""
    block = local(source.rows_of(first, last), first, states)
    return BlockOperator(block, task) if task.keep else (pack(block), task)


def _ready(block: _Posed) -> BlockOperator:
    return block if isinstance(block, BlockOperator) else BlockOperator(*block)


@_on_a_worker()
def _begin(block: _Posed) -> tuple[Outcome, IntArray]:
    """Return the first values of a block, and the states that it reads."""
    operator = _ready(block)
    return operator.begin(), operator.outside


def _outbox(outcome: Outcome, places: AnyArray) -> FloatArray:
    """Return the values of a block that others read."""
    return outcome.values[:, places]


@_on_a_worker()
def _run(
    block: _Posed, before: Outcome, command: Command, places: AnyArray, *boxes: FloatArray
) -> Outcome:
    """Do a round of a block with the values that others gave."""
    outside = np.concatenate([before.values[:, :0], *boxes], axis=1)[:, places]
    return command(_ready(block), before, outside)
