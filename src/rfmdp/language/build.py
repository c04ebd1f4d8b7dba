"""A checked PRISM model becomes an rf-MDP: whole, or in blocks whose rows are made range by range.

Each module is a factor and each command a marginal over its updates. A row is an unlabelled
command, or one combination of commands with the same label, one from every module that has the
label in its alphabet.

For blocks, exploration comes first and keeps nothing but the states: sorted, they are the numbers
of all states. Then the rows of any range of them can be made, here or elsewhere, in any order, and
again.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, reduce
from os import PathLike

import numpy as np

from rfmdp.errors import PrismWarning
from rfmdp.kernels import machine
from rfmdp.language.ast import Binary, Expr, Ite, Literal, RewardItem
from rfmdp.language.check import CHAINS, CheckedModel, State, check_model, evaluate_states
from rfmdp.language.commands import RANDOM_FACTOR, packed
from rfmdp.language.explorer import StateExplorer
from rfmdp.language.names import Constants
from rfmdp.language.parse import parse_model
from rfmdp.language.source import read_text
from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.model.blocked import BlockedMDP, BlockStore, block_count, frame_of, pack
from rfmdp.model.frontier import NO_ACTION, Progress, deadlocks, finished, with_used_marginals
from rfmdp.model.packing import Packing
from rfmdp.model.validate import require_valid
from rfmdp.ragged import starts
from rfmdp.record import Provenance
from rfmdp.sets.marginals import Marginals
from rfmdp.types import AnyArray, FloatArray, Int32Array, IntArray

WRITTEN = (200.0, 20.0)  # bytes per state and transition of a written model while it is solved
ZERO, ONE = Literal(0.0), Literal(1.0)


def load_prism(
    path: str | PathLike[str],
    constants: Constants | None = None,
    *,
    progress: Progress | None = None,
) -> FactoredMDP:
    """Return the model of a PRISM file; states without choice get a self-loop, with a warning.

    Parameters
    ----------
    constants
        Values of constants that the file leaves open; a string is read as an expression.
    progress
        Called now and then as progress(states, transitions): how many so far.

    Raises
    ------
    PrismError
        For a mistake in the text, with file, line, column, source line and caret.
    """
    return parse_prism(read_text(path), constants, filename=str(path), progress=progress)


def parse_prism(
    text: str,
    constants: Constants | None = None,
    *,
    filename: str = "<model>",
    progress: Progress | None = None,
) -> FactoredMDP:
    """Return the model of a text in the PRISM language; see `load_prism`.

    Examples
    --------
    >>> model = parse_prism("mdp module m x : [0..3]; [] true -> (x'=mod(x+1,4)); endmodule")
    >>> model.states, model.transitions
    (4, 4)
    """
    return build_model(check_model(parse_model(text, filename), constants), progress)


def build_model(checked: CheckedModel, progress: Progress | None = None) -> FactoredMDP:
    """Return the reachable part of a PRISM model.

    Rows of a state come in the order of the text: unlabelled commands module by module, then
    labels. In a DTMC every state has one row: where several choices are enabled, each is taken
    with the same probability, as in PRISM, and a warning says so. In an interval DTMC this is
    allowed only where all probabilities are known.

    A state without choice gets a self-loop, with a warning.
    """
    explorer = StateExplorer(checked)
    explored = explorer.run(progress)
    dead = np.flatnonzero(deadlocks(explored))
    warn_of_states(explorer, len(dead), explored.valuations[dead[:1]])
    model = completed(explored, explorer)
    require_valid(model)  # remembered, so that the first question need not check again
    return model


def completed(
    explored: FactoredMDP, explorer: StateExplorer, *, every_marginal: bool = False
) -> FactoredMDP:
    """Return explored states and rows with sets (those of their rows), names, labels, rewards."""
    checked, source = explorer.checked, explorer.checked.source
    used: IntArray = np.arange(len(explorer.marginals))
    if not every_marginal:
        explored, used = with_used_marginals(explored)
    marginals, names, outcomes = packed([explorer.marginals[j] for j in used])
    factors = tuple(module.name for module in checked.modules)
    unlabelled = not checked.actions or np.any(explored.row_actions == len(checked.actions))
    return finished(
        explored,
        [*checked.actions, *([""] if unlabelled else [])],
        {k: evaluate_states(x, checked, explored.valuations) for k, x in checked.labels.items()},
        marginals=marginals,
        factors=(*factors, RANDOM_FACTOR) if explorer.mixed else factors,
        rewards=structures(checked, explored),
        marginal_names=tuple(names),
        outcome_names=tuple(outcomes),
        formulas={**checked.constants, **checked.formulas},
        provenance=Provenance.of_text(source.filename, source.text, checked.constants),
    )


def warn_of_states(explorer: StateExplorer, dead: int, first_dead: Int32Array) -> None:
    """Say what was made of states without a choice (some, and the first of them), or with many."""
    checked = explorer.checked
    texts = []
    if dead:
        first = State(checked, first_dead[0])
        texts.append(f"{dead} state(s) have no enabled command, the first is {first}; each ")
        texts[-1] += 'gets a self-loop and the label "deadlock".'
    if explorer.mixed:
        found = explorer.state(int(explorer.memory[machine.FIRST_MIXED]))
        texts.append(
            f"{explorer.mixed} state(s) of this {checked.type.value} have more than one choice, "
            f"the first found is {found}; each choice is taken with the same "
            "probability."
        )
    for text in texts:
        warnings.warn(f"{checked.source.filename}: {text}", PrismWarning, stacklevel=3)


class TextRows:
    """Rows of a text by ranges of its states; `words` (S, W) are all states, packed, ascending."""

    def __init__(self, checked: CheckedModel, words: IntArray) -> None:
        self.checked, self.words = checked, words

    @cached_property
    def _explorer(self) -> StateExplorer:
        return StateExplorer(self.checked)

    def __reduce__(self) -> tuple[type[TextRows], tuple[CheckedModel, IntArray]]:
        return TextRows, (self.checked, self.words)

    def rows_of(self, first: int, last: int) -> FactoredMDP:
        """Return the rows of some states."""
        arrays = self._explorer.expand(self.words, first, last)
        explored = _in_order(self._explorer.packing, self.words[first:last], first, arrays)
        return completed(explored, self._explorer)

    def whole(self) -> FactoredMDP:
        """Return the model, as long as there is memory for it."""
        return build_model(self.checked)


def watching_memory(progress: Progress | None) -> Progress:
    """Return a `progress` that ends a build whose model could not be solved in the free memory."""

    def watch(states: int, transitions: int) -> None:
        needs = WRITTEN[0] * states + WRITTEN[1] * transitions
        require_memory(needs, f"A model with more than {transitions} transitions")
        if progress is not None:
            progress(states, transitions)

    return watch


def _in_order(
    packing: Packing, words: IntArray, first: int, arrays: tuple[AnyArray, ...]
) -> FactoredMDP:
    """Return a model of some states, from `first` on in the order of all, with rows or without."""
    rows, marginals, successors = arrays
    return FactoredMDP(
        row_ptr=starts(np.bincount(rows[:, 0] - first, minlength=len(words))),
        row_actions=rows[:, 1].copy(),
        marginal_ptr=starts(rows[:, 2]),
        row_marginals=marginals[:, 0].copy(),
        row_factors=marginals[:, 1].copy(),
        successor_ptr=starts(rows[:, 3]),
        successors=successors.copy(),
        marginals=Marginals.from_sets(()),
        initial=np.empty(0, dtype=np.int64),
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
    model is solved. There are as many as pay, unless a number is given.
    """
    model = _explored(checked, progress, blocks)
    if scheduler is not None:
        return replace(model, scheduler=scheduler)
    store = BlockStore()
    for number in range(model.blocks):
        store.add(pack(model.block(number)))
        if progress is not None:  # it may end this
            progress(model.states, model.transitions)
    assert isinstance(model.source, TextRows)
    return replace(model, store=store, source=TextRows(checked, model.source.words))


def _explored(checked: CheckedModel, progress: Progress | None, blocks: int | None) -> BlockedMDP:
    """Return the states that can be reached, and how many rows there are."""
    explorer = StateExplorer(checked)
    packing = explorer.packing
    count, transitions, dead = 0, 0, [np.empty(0, dtype=np.int32)]
    for rows, _, successors in explorer.reach():
        count, transitions = count + len(rows), transitions + len(successors)
        dead.append(rows[rows[:, 1] == NO_ACTION, 0])
        if progress is not None:
            progress(len(explorer.reached), transitions)
    order = packing.order(explorer.reached)
    words = explorer.reached[order]
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    stuck = np.sort(rank[np.concatenate(dead)])
    warn_of_states(explorer, len(stuck), packing.unpack(words[stuck[:1]]))
    states = _in_order(packing, words, 0, explorer.take())
    states = replace(states, initial=np.sort(rank[: explorer.initial]).astype(np.int64))
    frame = completed(states, explorer, every_marginal=True)
    if len(stuck):
        where = np.zeros(len(words), dtype=np.bool_)
        where[stuck] = True
        frame = replace(frame, labels={**frame.labels, "deadlock": where})
    number = blocks or block_count(len(words), transitions)
    return BlockedMDP(
        frame_of(frame), TextRows(checked, words), count, transitions, min(number, len(words))
    )


def structures(checked: CheckedModel, explored: FactoredMDP) -> dict[str, Rewards]:
    """Return all reward structures; one without name is called "" (a second one "#2", ...).

    Self-loops that were given to deadlocks have no action reward, as in PRISM.
    """

    def paid(expr: Expr, items: Sequence[RewardItem], states: IntArray) -> FloatArray:
        """Return what some items pay together, by an expression, in some states."""
        pays = evaluate_states(expr, checked, explored.valuations, states)
        for k in np.flatnonzero(np.isnan(pays))[:1]:
            state = State(checked, explored.valuations[states[k]])
            for item in items:
                if np.isnan(state.value(reward_sum([item]))):
                    raise state.error(item.value.position, "a reward must be a number, found nan")
        return pays

    sums: dict[str, Rewards] = {}
    for number, rewards in enumerate(checked.rewards, start=1):
        name = rewards.name if rewards.name is not None else ""
        of_states = [item for item in rewards.items if item.action is None]
        of_rows = [item for item in rewards.items if item.action is not None]
        state = paid(reward_sum(of_states), of_states, np.arange(len(explored.valuations)))
        row = np.zeros(len(explored.row_actions))
        for k, action in enumerate([*checked.actions, ""]):
            # such a row of a DTMC may be a random choice among several labels
            mixed = action == "" and checked.type in CHAINS
            items = [item for item in of_rows if mixed or item.action == action]
            rows = np.flatnonzero(explored.row_actions == k)
            if items:
                expr = _mean(items, checked) if mixed else reward_sum(items)
                row[rows] = paid(expr, items, explored.row_states[rows])
        sums[f"#{number}" if name in sums else name] = Rewards(state, row)
    return sums


def reward_sum(items: Sequence[RewardItem]) -> Expr:
    """Return the sum of what items pay in the states of their guards."""
    return _folded("+", [ZERO, *(Ite(item.guard, item.value, ZERO) for item in items)])


def _mean(items: Sequence[RewardItem], checked: CheckedModel) -> Expr:
    """Return what the choices of a state pay on average."""
    actions = [*checked.actions, None]
    counts = [_choices(action, checked) for action in actions]
    total = _folded("+", counts)
    pays: list[Expr] = [ZERO]
    for action, count in zip(actions, counts, strict=True):
        paid = [item for item in items if item.action == (action or "")]
        if paid:
            share = Binary("*", Binary("/", count, total), reward_sum(paid))
            pays.append(Ite(Binary(">", count, ZERO), share, ZERO))
    return _folded("+", pays)


def _choices(action: str | None, checked: CheckedModel) -> Expr:
    """Return how many choices of a state have a label: combinations of one command per module."""
    enabled = []  # commands, by module; those without a label are choices by themselves
    for module in checked.modules:
        guards = [c.guard for c in module.commands if c.action == action]
        if guards:
            enabled.append(_folded("+", [Ite(c, Literal(1), Literal(0)) for c in guards]))
    # floats: a product can be larger than an int
    return _folded("+", [ZERO, *enabled]) if action is None else _folded("*", [ONE, *enabled])


def _folded(sign: str, terms: Sequence[Expr]) -> Expr:
    return reduce(lambda left, right: Binary(sign, left, right), terms)
