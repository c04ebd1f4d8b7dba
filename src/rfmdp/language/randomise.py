"""Several choices in one state of a DTMC: each is taken with the same probability, as in PRISM.

The row of such a state is one marginal: its outcomes are those of all choices, one choice after
the other, with their probabilities divided by the number of choices. That is exact for known
probabilities. With intervals it is not one independent set per factor any more, so an interval
DTMC may have such states only where probabilities are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from rfmdp.language.checked import CheckedModel
from rfmdp.language.compile import Batch
from rfmdp.language.distributions import Entry, Identifiers
from rfmdp.language.source import NOWHERE
from rfmdp.model.frontier import CERTAIN, BlockMove, RowBlock
from rfmdp.types import AnyArray, FloatArray, IntArray

RANDOM_FACTOR = "(random choice)"
BUDGET = 1 << 22  # entries of the largest temporary array

Layout = tuple[tuple[int, tuple[int, ...]], ...]  # per choice: action, marginals


@dataclass(frozen=True, slots=True, eq=False)
class _Choices:
    """The rows of states with several choices, ordered by state."""

    block: IntArray
    row: IntArray  # within its block
    first: IntArray  # per state
    count: IntArray  # per state
    layout: IntArray  # per row: number of (block, marginals)


class Randomiser:
    """Turns the choices of a DTMC's states into one row each."""

    def __init__(self, checked: CheckedModel, identifiers: Identifiers, unlabelled: int) -> None:
        self.states = 0  # that had several choices
        self.example = ""
        self._checked = checked
        self._identifiers = identifiers
        self._unlabelled = unlabelled
        self._factor = len(checked.modules)
        self._known: dict[Layout, int] = {}

    def __call__(self, blocks: Sequence[RowBlock], batch: Batch) -> list[RowBlock]:
        """Return the rows of some states, one per state.

        Raises
        ------
        PrismError
            If a state has several choices and one of them has intervals.
        """
        if not blocks:
            return []
        count = np.bincount(np.concatenate([b.source for b in blocks]), minlength=len(batch))
        several = np.flatnonzero(count > 1)
        if several.size == 0:
            return list(blocks)
        if not self.states:
            self.example = batch.state(int(several[0]))
        self.states += len(several)
        single = [_part(block, count[block.source] == 1) for block in blocks]
        choices = _choices(blocks, count)
        widest = int(choices.count.max())
        table = np.full((len(several), widest), -1, dtype=np.int64)
        for k in range(widest):
            has = np.flatnonzero(choices.count > k)
            table[has, k] = choices.layout[choices.first[has] + k]
        _, inverse = np.unique(table, axis=0, return_inverse=True)
        order = np.argsort(inverse.reshape(-1), kind="stable")
        bounds = np.flatnonzero(np.diff(inverse.reshape(-1)[order])) + 1
        mixed = []
        for group in np.split(order, bounds):
            mixed += self._mixed(blocks, choices, group, several[group], batch)
        return [block for block in single if len(block.source)] + mixed

    def _mixed(
        self,
        blocks: Sequence[RowBlock],
        choices: _Choices,
        group: IntArray,
        states: IntArray,
        batch: Batch,
    ) -> list[RowBlock]:
        """Build the rows of states whose choices are alike."""
        at = choices.first[group[0]] + np.arange(choices.count[group[0]])
        layout = tuple(
            (int(blocks[b].action), _marginals(blocks[b], int(r)))
            for b, r in zip(choices.block[at], choices.row[at], strict=True)
        )
        identifier = self._identifier(layout, batch, int(states[0]))
        length = len(self._identifiers.entries[identifier].lower)
        actions = {action for action, _ in layout}
        action = actions.pop() if len(actions) == 1 else self._unlabelled
        found = []
        most = BUDGET // length + 1
        for start in range(0, len(group), most):
            part = group[start : start + most]
            changes = []
            for k, b in enumerate(choices.block[at]):
                rows = choices.row[choices.first[part] + k]
                changes.append(_changes(blocks[b], rows))
                rest = blocks[b].rest[rows]
            move = BlockMove(self._factor, identifier, length, np.concatenate(changes, axis=1))
            found.append(RowBlock(states[start : start + most], action, rest, [move]))
        return found

    def _identifier(self, layout: Layout, batch: Batch, row: int) -> int:
        """Return the marginal of a random choice between distributions."""
        if layout in self._known:
            return self._known[layout]
        names = [*self._checked.actions, ""]
        vectors, outcomes = [], []
        for action, marginals in layout:
            vector = np.ones(1)
            for j in marginals:
                if j != CERTAIN:
                    vector = np.outer(vector, self._exact(j, batch, row)).ravel()
            vectors.append(vector)
            texts = [self._identifiers.entries[j].outcomes for j in marginals if j != CERTAIN]
            outcomes += [f"[{names[action]}] {' & '.join(t)}".rstrip() for t in product(*texts)]
        entry = _entry(np.concatenate(vectors) / len(layout), tuple(outcomes), len(layout))
        return self._known.setdefault(layout, self._identifiers.enter(entry))

    def _exact(self, marginal: int, batch: Batch, row: int) -> FloatArray:
        vector = self._identifiers.exact(marginal)
        if vector is None:
            reason = (
                "an interval command of an idtmc must be the only choice, found several; "
                "make guards exclude each other, or declare the model an imdp"
            )
            raise batch.error(self._identifiers.entries[marginal].position, reason, row)
        return vector


def _choices(blocks: Sequence[RowBlock], count: IntArray) -> _Choices:
    """Collect the rows of states with several choices."""
    states, block, row, layout = [], [], [], []
    layouts = 0
    for number, part in enumerate(blocks):
        rows = np.flatnonzero(count[part.source] > 1)
        ids = np.stack([_entries(move.marginal, part)[rows] for move in part.moves], axis=1)
        distinct, inverse = np.unique(ids, axis=0, return_inverse=True)
        states.append(part.source[rows])
        block.append(np.full(len(rows), number))
        row.append(rows)
        layout.append(inverse.reshape(-1) + layouts)
        layouts += len(distinct)
    order = np.argsort(np.concatenate(states), kind="stable")
    several = count[count > 1]
    return _Choices(
        np.concatenate(block)[order],
        np.concatenate(row)[order],
        np.cumsum(several) - several,
        several,
        np.concatenate(layout)[order],
    )


def _changes(block: RowBlock, rows: IntArray) -> IntArray:
    """Return the sums of contributions (N, outcomes in C order) of rows that are alike."""
    tensor = np.zeros((len(rows), 1), dtype=np.int64)
    for move in block.moves:
        size = int(_entries(move.size, block)[rows[0]])
        added = move.contribution[rows, :size]
        tensor = (tensor[:, :, None] + added[:, None, :]).reshape(len(rows), -1)
    return tensor


def _part(block: RowBlock, keep: AnyArray) -> RowBlock:
    moves = [
        BlockMove(
            move.factor,
            _entries(move.marginal, block)[keep],
            _entries(move.size, block)[keep],
            move.contribution[keep],
        )
        for move in block.moves
    ]
    return RowBlock(block.source[keep], block.action, block.rest[keep], moves)


def _marginals(block: RowBlock, row: int) -> tuple[int, ...]:
    return tuple(int(_entries(move.marginal, block)[row]) for move in block.moves)


def _entries(values: int | AnyArray, block: RowBlock) -> AnyArray:
    return np.broadcast_to(np.asarray(values), (len(block.source),))


def _entry(vector: FloatArray, outcomes: tuple[str, ...], choices: int) -> Entry:
    return Entry(vector, vector, f"random choice of {choices}", NOWHERE, outcomes)
