"""A checked PRISM model becomes an rf-MDP.

Each module is a factor and each command a marginal over its updates. A row is an unlabelled
command, or one combination of commands with the same label, one from every module that has the
label in its alphabet. Everything is computed for whole frontiers of states: the guards of all
commands first, then the updates where a combination is enabled.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from rfmdp.errors import ModelError, PrismError
from rfmdp.language.annotate import state_labels, structures
from rfmdp.language.ast import Command, ModelType
from rfmdp.language.checked import CheckedModel
from rfmdp.language.commands import (
    CompiledCommand,
    Guards,
    Moves,
    guard_values,
    joined,
    possible,
)
from rfmdp.language.compile import Batch, Expressions
from rfmdp.language.distributions import CommandDistributions, Identifiers, PrismWarning
from rfmdp.language.initial import initial_codes
from rfmdp.language.randomise import RANDOM_FACTOR, Randomiser
from rfmdp.model.arrays import FactoredMDP, Variable
from rfmdp.model.codes import Codec
from rfmdp.model.frontier import BlockMove, Deadlock, Frontier, Progress, RowBlock, explore
from rfmdp.model.skeleton import Skeleton
from rfmdp.types import BoolArray, IntArray

BUDGET = 1 << 22  # entries of the largest temporary array
CHAINS = (ModelType.DTMC, ModelType.IDTMC)


def build_model(
    checked: CheckedModel,
    *,
    deadlock: Deadlock = Deadlock.LOOP,
    progress: Progress | None = None,
) -> FactoredMDP:
    """Return the reachable part of a PRISM model.

    Rows of a state come in the order of the text: unlabelled commands module by module, then
    labels. In a DTMC every state has one row: where several choices are enabled, each is taken
    with the same probability, as in PRISM, and a warning says so. In an interval DTMC this is
    allowed only where all probabilities are known.

    Parameters
    ----------
    deadlock : what to do with a state without choice; a self-loop comes with a warning
    progress : called now and then with the number of states and transitions so far

    Raises
    ------
    PrismError
        With place and state, if an update leaves a variable's range, probabilities do not sum
        to one, an interval is empty, a value does not exist (`mod` by zero), and so on.
    ModelError
        If a deadlock is refused, or the model is too large.

    Examples
    --------
    >>> from rfmdp.language.check import check_model
    >>> from rfmdp.language.parse import parse_model
    >>> text = '''imdp
    ... module walk
    ...   x : [0..9];
    ...   [go] x<9 -> [0.7,0.9] : (x'=x+1) + [0.1,0.3] : (x'=0);
    ...   [stop] x=9 -> true;
    ... endmodule'''
    >>> model = build_model(check_model(parse_model(text)))
    >>> model.states, model.rows, model.transitions, model.marginal_names
    (10, 10, 19, ('walk: [go] line 4',))
    """
    codec = _codec(checked)
    expander = Expander(checked, codec)
    start = initial_codes(checked, codec)
    try:
        skeleton = explore(
            codec, start, expander, deadlock=deadlock, progress=progress, harmless=expander.harmless
        )
    except PrismError:
        raise
    except ModelError as error:
        raise ModelError(f"{checked.source.filename}: {error}") from None
    _warn(checked, skeleton, expander)
    skeleton, used = skeleton.drop_unused()
    marginals, names, outcomes = expander.identifiers.marginals(used)
    return skeleton.model(
        marginals,
        expander.actions(skeleton),
        expander.factors,
        labels=state_labels(checked, skeleton),
        rewards=structures(checked, skeleton, expander),
        marginal_names=names,
        outcome_names=outcomes,
        formulas={**checked.constants, **checked.formulas},
    )


class Expander:
    """Expands frontiers of a PRISM model; `frontier.explore` calls it."""

    def __init__(self, checked: CheckedModel, codec: Codec) -> None:
        self.checked, self.codec = checked, codec
        self.identifiers = Identifiers()
        self.expressions = Expressions(checked.variables, checked.source)
        self.commands: list[CompiledCommand] = []
        self._alone: list[int] = []
        self._labelled: list[dict[int, list[int]]] = [{} for _ in checked.actions]
        for index, module in enumerate(checked.modules):
            for command in module.commands:
                self._add(command, index)
        columns = {v.name: k for k, v in enumerate(checked.variables)}
        self._possible = possible(self.commands, columns)
        self.chain = checked.type in CHAINS
        self.randomiser = Randomiser(checked, self.identifiers, len(checked.actions))
        steps = len(self.expressions.steps)
        width = sum(max((c.width for c in self.commands), default=1) for _ in checked.modules)
        self._chunk = max(1024, BUDGET // max(width, steps // 8, 1))

    @property
    def factors(self) -> list[str]:
        """Names of the factors: the modules, and the random choice of a DTMC if there is one."""
        names = [module.name for module in self.checked.modules]
        return [*names, RANDOM_FACTOR] if self.randomiser.states else names

    def __call__(self, frontier: Frontier) -> Iterator[RowBlock]:
        """Give all rows of the states of a frontier."""
        for start in range(0, len(frontier.codes), self._chunk):
            part = slice(start, start + self._chunk)
            valuations = frontier.valuations[part]
            blocks = self._blocks(Batch(self.expressions, valuations), frontier.codes[part])
            if self.chain:
                batch = Batch(self.expressions, valuations)
                blocks = iter(self.randomiser(list(blocks), batch))
            for block in blocks:
                yield RowBlock(block.source + start, block.action, block.rest, block.moves)

    def harmless(self, frontier: Frontier) -> bool:
        """Say whether states can be expanded without an error, a warning or a random choice."""
        before = self.randomiser.states
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", PrismWarning)
                for _ in self(frontier):
                    pass
        except (PrismError, PrismWarning):
            return False
        finally:
            mixed, self.randomiser.states = self.randomiser.states > before, before
        return not mixed

    def choice_counts(self, batch: Batch) -> list[IntArray]:
        """Return how many choices with every label (the last: unlabelled) states have."""
        guards = guard_values(self.commands, batch, np.arange(len(self.commands)))
        zero = np.zeros(len(batch), dtype=np.int64)

        def enabled(commands: Sequence[int]) -> IntArray:
            return sum((guards[k].astype(np.int64) for k in commands if k in guards), zero)

        counts = []
        for modules in self._labelled:
            product = np.ones(len(batch), dtype=np.int64)
            for commands in modules.values():
                product = product * enabled(commands)
            counts.append(product)
        return [*counts, enabled(self._alone)]

    def actions(self, skeleton: Skeleton) -> list[str]:
        """Return the names of actions; "" is among them only if some row is unlabelled."""
        names = list(self.checked.actions)
        unlabelled = bool(np.any(skeleton.row_actions == len(names)))
        return [*names, ""] if unlabelled or not names else names

    def _add(self, command: Command, module: int) -> None:
        """Compile a command and file it under its label."""
        number = len(self.commands)
        name, source = self.checked.modules[module].name, self.checked.source
        # a renamed module is a copy of text, not a claim that both are alike: own marginals
        own = CommandDistributions(command, name, source, self.identifiers)
        self.commands.append(CompiledCommand(command, module, self.expressions, self.codec, own))
        if command.action is None:
            self._alone.append(number)
        else:
            modules = self._labelled[self.checked.actions.index(command.action)]
            modules.setdefault(module, []).append(number)

    def _blocks(self, batch: Batch, codes: IntArray) -> Iterator[RowBlock]:
        """Give the rows of a batch: a block per unlabelled command, then per label."""
        some = self._possible.among(batch.valuations)
        guards = guard_values(self.commands, batch, some)
        for number in self._alone:
            if number in guards:
                command = self.commands[number]
                rows = np.flatnonzero(guards[number])
                moves = command.moves(batch.select(rows))
                action = len(self.checked.actions)
                yield _block(rows, action, codes, [(command.module, moves)])
        for action, modules in enumerate(self._labelled):
            yield from self._synchronised(action, modules, guards, batch, codes)

    def _synchronised(
        self,
        action: int,
        modules: dict[int, list[int]],
        guards: Guards,
        batch: Batch,
        codes: IntArray,
    ) -> Iterator[RowBlock]:
        """Give the rows of one label: all combinations of commands, one of every module."""
        together = _together(modules, guards, len(batch))
        if together is None:
            return
        pairs = []
        for module, commands in modules.items():
            parts = []
            for number in commands:
                if number in guards:
                    rows = np.flatnonzero(guards[number] & together)
                    if rows.size:
                        parts.append((rows, self.commands[number].moves(batch.select(rows))))
            pairs.append((module, *joined(parts)))
        width = sum(moves.contribution.shape[1] for _, _, moves in pairs)
        for rows, chosen in _combinations([states for _, states, _ in pairs], BUDGET // width + 1):
            moved = [
                (module, moves if index is None else moves.take(index))
                for (module, _, moves), index in zip(pairs, chosen, strict=True)
            ]
            yield _block(rows, action, codes, moved)


def _codec(checked: CheckedModel) -> Codec:
    """Return the packing of states; an impossible one is an error of the text."""
    try:
        return Codec(Variable(v.name, v.lower, v.upper, v.is_bool) for v in checked.variables)
    except ModelError as error:
        raise PrismError(f"{checked.source.filename}: {error}") from None


def _block(
    rows: IntArray, action: int, codes: IntArray, moved: Sequence[tuple[int, Moves]]
) -> RowBlock:
    moves = [BlockMove(m, move.marginal, move.size, move.contribution) for m, move in moved]
    return RowBlock(rows, action, codes[rows], moves)


def _together(modules: dict[int, list[int]], guards: Guards, count: int) -> BoolArray | None:
    """Return where every module has an enabled command, None if nowhere."""
    together: BoolArray | None = None
    for commands in modules.values():
        own = np.zeros(count, dtype=np.bool_)
        for number in commands:
            if number in guards:
                own |= guards[number]
        together = own if together is None else together & own
        if not together.any():
            return None
    return together


def _combinations(
    states: Sequence[IntArray], most: int
) -> Iterator[tuple[IntArray, list[IntArray | None]]]:
    """Give all combinations of one entry per list with the same state, at most `most` at once.

    Parameters
    ----------
    states : per list, the state of every entry, ascending; all lists have the same states

    Yields
    ------
    The state of every combination, and per list the entry (None: the entries in order).
    """
    if all(len(s) == len(states[0]) and bool(np.all(s[1:] != s[:-1])) for s in states):
        yield states[0], [None] * len(states)
        return
    distinct = np.unique(states[0])
    first = [np.searchsorted(s, distinct) for s in states]
    count = [np.diff(f, append=len(s)) for f, s in zip(first, states, strict=True)]
    total = np.prod(np.stack(count), axis=0)
    end = np.cumsum(total)
    for start in range(0, int(end[-1]), most):
        number = np.arange(start, min(start + most, int(end[-1])))
        where = np.searchsorted(end, number, side="right")
        number -= (end - total)[where]
        chosen: list[IntArray | None] = []
        for f, c in zip(reversed(first), reversed(count), strict=True):
            chosen.append(f[where] + number % c[where])
            number //= c[where]
        yield distinct[where], chosen[::-1]


def _warn(checked: CheckedModel, skeleton: Skeleton, expander: Expander) -> None:
    """Say what was made of states that are probably not meant so."""
    name = checked.source.filename
    dead = np.flatnonzero(skeleton.deadlocks)
    if dead.size:
        text = Batch(expander.expressions, skeleton.valuations[dead[:1]]).state(0)
        warnings.warn(
            f"{name}: {dead.size} state(s) have no enabled command, the first is {text}; each gets "
            'a self-loop and the label "deadlock".',
            PrismWarning,
            stacklevel=3,
        )
    if expander.randomiser.states:
        warnings.warn(
            f"{name}: {expander.randomiser.states} state(s) of this {checked.type.value} have more "
            f"than one choice, the first found is {expander.randomiser.example}; each choice is "
            "taken with the same probability.",
            PrismWarning,
            stacklevel=3,
        )


__all__ = ["Expander", "PrismWarning", "build_model"]
