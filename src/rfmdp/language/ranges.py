"""A text in the PRISM language as a model in blocks: its rows are made range by range.

Exploration comes first, and keeps nothing but the states: sorted, they are the numbers of all
states. Then the rows of any range of them can be made, here or elsewhere, in any order, and again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from rfmdp.errors import ModelError, PrismError
from rfmdp.language.build import build_model, completed, initial_valuations, warn_of_states
from rfmdp.language.checked import CheckedModel
from rfmdp.language.explorer import StateExplorer
from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP, warn_if_touching
from rfmdp.model.blocked import BlockedMDP, BlockStore, block_count, frame_of
from rfmdp.model.frontier import NO_ACTION, Progress
from rfmdp.model.packing import Packing
from rfmdp.ragged import starts
from rfmdp.sets.marginals import Marginals
from rfmdp.types import AnyArray, IntArray

WRITTEN = (200.0, 20.0)  # bytes per state and transition of a written model while it is solved


class TextRows:
    """Rows of a text by ranges of its states; `words` (S, W) are all states, packed, ascending."""

    travels: ClassVar[bool] = True

    def __init__(self, checked: CheckedModel, words: IntArray) -> None:
        self.checked, self.words = checked, words
        self._explorer: StateExplorer | None = None

    def __reduce__(self) -> tuple[type[TextRows], tuple[CheckedModel, IntArray]]:
        return TextRows, (self.checked, self.words)

    def rows_of(self, first: int, last: int) -> FactoredMDP:
        """Return the rows of some states."""
        packing = Packing(self.checked.variables, in_bits=True)
        if self._explorer is None:
            self._explorer = StateExplorer(self.checked, packing)
        rows, marginals, successors = self._explorer.expand(self.words, first, last)
        explored = replace(
            _states(packing, self.words[first:last]),
            row_ptr=starts(np.bincount(rows[:, 0] - first, minlength=last - first)),
            row_actions=rows[:, 1].copy(),
            marginal_ptr=starts(rows[:, 2]),
            row_marginals=marginals[:, 0].copy(),
            row_factors=marginals[:, 1].copy(),
            successor_ptr=starts(rows[:, 3]),
            successors=successors.copy(),
        )
        return completed(self.checked, explored, self._explorer)

    def whole(self) -> FactoredMDP:
        """Return the model, as long as there is memory for it."""
        return build_model(self.checked)


def watching_memory(progress: Progress | None) -> Progress:
    """Return a `progress` that ends a build whose model could not be solved in the free memory."""
    state, transition = WRITTEN

    def watch(states: int, transitions: int) -> None:
        needs = state * states + transition * transitions
        require_memory(needs, f"A model with more than {transitions} transitions")
        if progress is not None:
            progress(states, transitions)

    return watch


def _states(packing: Packing, words: IntArray) -> FactoredMDP:
    """Return a model of some states, without rows."""
    none = np.empty(0, dtype=np.int32)
    return FactoredMDP(
        row_ptr=np.zeros(len(words) + 1, dtype=np.int64),
        marginal_ptr=np.zeros(1, dtype=np.int64),
        row_marginals=none,
        successor_ptr=np.zeros(1, dtype=np.int64),
        successors=none,
        marginals=Marginals.from_sets(()),
        initial=np.empty(0, dtype=np.int64),
        row_actions=none,
        actions=(),
        variables=packing.variables,
        valuations=packing.unpack(words),
    )


def build_blocked(
    checked: CheckedModel,
    *,
    scheduler: str | None = None,
    progress: Progress | None = None,
    blocks: int | None = None,
) -> BlockedMDP:
    """Return the reachable part of a PRISM model in blocks.

    They are kept packed, in memory or on disk; or made on the workers of a Dask scheduler, when the
    model is solved.

    scheduler : address of the Dask scheduler
    progress : as in `build_model`
    blocks : how many; by default as many as pay
    """
    try:
        model = _explored(checked, progress, blocks)
    except PrismError:
        raise
    except ModelError as error:
        raise ModelError(f"{checked.source.filename}: {error}") from None
    warn_if_touching(model)
    if scheduler is not None:
        return replace(model, scheduler=scheduler)
    store = BlockStore()
    for number in range(model.blocks):
        store.add(model.packed(number))
        if progress is not None:  # it may end this
            progress(model.states, model.transitions)
    assert isinstance(model.source, TextRows)
    return replace(model, store=store, source=TextRows(checked, model.source.words))


def _explored(checked: CheckedModel, progress: Progress | None, blocks: int | None) -> BlockedMDP:
    """Return the states that can be reached, and how many rows there are."""
    packing = Packing(checked.variables, in_bits=True)
    explorer = StateExplorer(checked, packing)
    initial = initial_valuations(checked)
    count, transitions, dead = 0, 0, [np.empty(0, dtype=np.int32)]
    for rows, _, successors in explorer.reach(initial):
        count, transitions = count + len(rows), transitions + len(successors)
        dead.append(rows[rows[:, 1] == NO_ACTION, 0])
        explorer.tell(progress, transitions)
    words = explorer.reached
    stuck = words[np.concatenate(dead)]
    stuck = stuck[packing.order(stuck)]
    warn_of_states(checked, len(stuck), packing.unpack(stuck[:1]), explorer)
    words = words[packing.order(words)]
    numbers = _numbers(packing, words, packing.pack(initial))
    states = replace(_states(packing, words), initial=np.unique(numbers))
    frame = completed(checked, states, explorer, every_marginal=True)
    if len(stuck):
        where = np.zeros(len(words), dtype=np.bool_)
        where[_numbers(packing, words, stuck)] = True
        frame = replace(frame, labels={**frame.labels, "deadlock": where})
    number = blocks or block_count(len(words), transitions)
    return BlockedMDP(
        frame_of(frame), TextRows(checked, words), count, transitions, min(number, len(words))
    )


def _numbers(packing: Packing, words: IntArray, some: IntArray) -> AnyArray:
    """Return the numbers of some states (N, W) among all (S, W), which are ascending."""
    if packing.words == 1:
        return np.searchsorted(words[:, 0], some[:, 0])
    together = np.concatenate([words, some])
    order = np.lexsort((np.arange(len(together)), *together.T[::-1]))
    rank = np.cumsum(order < len(words)) - 1  # the last of all states that came before
    numbers = np.empty(len(together), dtype=np.int64)
    numbers[order] = rank
    return numbers[len(words) :]
