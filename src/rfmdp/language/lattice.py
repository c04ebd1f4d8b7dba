"""A checked PRISM model becomes a lattice: modules are factors, their commands tables of moves.

Nothing is explored: the commands of a module are evaluated in all values of the variables that they
read. A text that needs more than that is no lattice, and `NoLattice` says why.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import TypeAlias

import numpy as np

from rfmdp.errors import PrismError, UnsupportedError
from rfmdp.language.ast import Command, Expr, Ite, Label, Literal, Module, Name
from rfmdp.language.build import build_model, reward_sum
from rfmdp.language.check import CHAINS, CheckedModel, State, Work, check_model, evaluate_states
from rfmdp.language.commands import NamedBox, command_distribution, packed
from rfmdp.language.explorer import initial_valuations
from rfmdp.language.expressions import nodes, rewrite
from rfmdp.language.names import Constants
from rfmdp.language.parse import parse_model
from rfmdp.language.program import Expressions
from rfmdp.language.source import read_text
from rfmdp.memory import available_memory
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.frontier import Progress
from rfmdp.model.lattice import FORBIDDEN, Factor, Formula, FormulaRewards, LatticeMDP, Moves
from rfmdp.model.lattice_order import Clock, clock_of, contractions, in_good_order
from rfmdp.ragged import starts
from rfmdp.record import Provenance
from rfmdp.types import AnyArray, Int32Array, IntArray

MOST_CONTEXTS = 1 << 14  # of a module
MOST_ACTIONS = 62
MOST_STATES = 1 << 31
WIDE = 1 << 5  # successors of a row, from which on contraction may pay
FEW, MANY = 1 << 18, 1 << 26  # transitions: that are written out anyway, that memory easily holds
WRITTEN = 32.0  # bytes of a transition while a model is built and solved
AT_ONCE = 16  # states that are explored before transitions are counted
CONTRACTING, SWEEPING, EXPLORING = 2.0, 4.0, 40.0  # ns per number contracted, and per transition
AT_LEVELS = 80.0  # ns per number, level by level: tries are small, and many rows are written out


_Meaning: TypeAlias = tuple[int | str, ...]


class NoLattice(Exception):
    """Why a text is no lattice; it is explored then."""


class _Enough(Exception):
    """So many transitions are more work than contractions."""


@dataclass(frozen=True, slots=True)
class _Action:
    """A row of all states that allow it: a label, or one command without a label."""

    name: str
    command: Command | None = None

    def commands(self, module: Module) -> list[Command] | None:
        """Return the commands of a module that may make it; None: it has no say."""
        if self.command is not None:
            return [self.command] if any(c is self.command for c in module.commands) else None
        if self.name not in module.alphabet:
            return None
        return [c for c in module.commands if c.action == self.name]


class _Tables:
    """Collects the moves of all modules."""

    def __init__(self, checked: CheckedModel) -> None:
        self.checked = checked
        self.column = {v.name: k for k, v in enumerate(checked.variables)}
        low, high = np.array([(v.low, v.high) for v in checked.variables], dtype=np.int64).T
        self._ranges = low, high - low + 1
        self.boxes: list[NamedBox] = []
        self.numbers: dict[tuple[int, tuple[int, ...]], int] = {}  # of moves
        self._expressions = Expressions(checked.variables, checked.source)
        self._marginals: dict[tuple[_Meaning, bytes], tuple[IntArray, int]] = {}

    def _move(self, marginal: int, targets: Sequence[int]) -> int:
        """Return the number of a move."""
        return self.numbers.setdefault((marginal, tuple(targets)), len(self.numbers))

    def factor(self, module: Module, actions: Sequence[_Action]) -> Factor:
        """Return a module as a factor."""
        columns = tuple(self.column[v.name] for v in module.variables)
        exprs = [_decided(expr) for command in module.commands for expr in command.children()]
        named = {node.name for expr in exprs for node in nodes(expr) if isinstance(node, Name)}
        reads = sorted({*columns, *(self.column[name] for name in named)})
        values = self._contexts(module, reads)
        stay = [self._move(-1, [x]) for x in self._local(columns, values).tolist()]
        table = np.full((len(values), len(actions)), FORBIDDEN, dtype=np.int32)
        made: dict[_Meaning, Int32Array] = {}  # commands of other actions may mean the same
        for k, action in enumerate(actions):
            commands = action.commands(module)
            if commands is None:
                table[:, k] = stay
                continue
            for command in commands:
                assigned = [a.variable for u in command.updates for a in u.assignments]
                counts = [len(update.assignments) for update in command.updates]
                numbers = map(self._expressions.add, command.children())
                # all but its action
                meaning: _Meaning = (*numbers, *counts, *assigned, module.name)
                if meaning not in made:
                    made[meaning] = self._moves(module, columns, command, meaning, values)
                moves = made[meaning]
                enabled = moves != FORBIDDEN
                if (enabled & (table[:, k] != FORBIDDEN)).any():
                    raise NoLattice(
                        f"module {module.name} has several commands for [{action.name}]"
                    )
                table[enabled, k] = moves[enabled]
        return Factor(module.name, columns, tuple(reads), table)

    def _contexts(self, module: Module, reads: Sequence[int]) -> Int32Array:
        """Return all values of the variables that a module reads, (contexts, vars)."""
        low, radix = self._ranges
        count = math.prod(radix[reads].tolist())
        if count > MOST_CONTEXTS:
            raise NoLattice(f"module {module.name} reads {count:.3g} contexts")
        values = np.tile(low, (count, 1))
        values[:, reads] += np.indices(radix[reads]).reshape(len(reads), count).T
        return values.astype(np.int32)

    def _local(self, columns: Sequence[int], values: AnyArray) -> IntArray:
        low, radix = self._ranges
        digits = values[:, columns] - low[list(columns)]
        return np.asarray(np.ravel_multi_index(tuple(digits.T), tuple(radix[list(columns)])))

    def _moves(
        self, module: Module, columns: Sequence[int], command: Command, meaning: _Meaning,
        values: Int32Array,
    ) -> Int32Array:  # fmt: skip
        """Return the move that a command makes in every context; FORBIDDEN: its guard fails."""
        table = np.full(len(values), FORBIDDEN, dtype=np.int32)
        enabled = np.flatnonzero(evaluate_states(command.guard, self.checked, values))
        if not enabled.size:
            return table
        here = values[enabled]
        targets = self._targets(columns, command, here)
        ends = [[evaluate_states(e, self.checked, here) for e in u.ends] for u in command.updates]
        sides = [np.stack([end[k] for end in ends], axis=1) for k in (0, -1)]
        both = np.concatenate([*sides, targets.astype(np.float64)], axis=1)
        _, some, kind = np.unique(both, axis=0, return_index=True, return_inverse=True)
        moves = []
        for i in some.tolist():
            key = meaning, np.concatenate([sides[0][i], sides[1][i]]).tobytes()
            if key not in self._marginals:
                state = State(self.checked, here[i])
                upper = sides[1 if command.has_intervals else 0][i]
                possible, box = command_distribution(
                    command, module.name, sides[0][i], upper, state
                )
                self._marginals[key] = possible, -1 if box is None else len(self.boxes)
                self.boxes += [] if box is None else [box]
            possible, marginal = self._marginals[key]
            moves.append(self._move(marginal, targets[i, possible].tolist()))
        table[enabled] = np.array(moves, dtype=np.int32)[kind.reshape(-1)]
        return table

    def _targets(self, columns: Sequence[int], command: Command, values: Int32Array) -> IntArray:
        """Return the local states that every update leads to, (contexts, updates)."""
        targets = np.empty((len(values), len(command.updates)), dtype=np.int64)
        for k, update in enumerate(command.updates):
            after = values.astype(np.int64)
            for assignment in update.assignments:
                column = self.column[assignment.variable]
                if column not in columns:
                    raise NoLattice(f"a command assigns the global variable {assignment.variable}")
                variable = self.checked.variables[column]
                after[:, column] = evaluate_states(assignment.value, self.checked, values)
                outside = (after[:, column] < variable.low) | (after[:, column] > variable.high)
                if outside.any():
                    raise NoLattice(f"{variable.name} leaves its range in some context")
            targets[:, k] = self._local(columns, after)
        return targets


def load_lattice(path: str | PathLike[str], constants: Constants | None = None) -> LatticeMDP:
    """Return the model of a PRISM file by its factors, without its transitions.

    Modules are contracted factor by factor when it is solved (`solve_lattice`), so that networks
    of twenty and more modules are solved, whose transitions no memory holds. Its states are all
    combinations of values of variables, reachable or not.

    Raises
    ------
    UnsupportedError
        If the text has to be explored: with global variables, several commands of a module for
        one action, contexts in which a command makes no sense, or modules that read too many
        variables.
    PrismError, FileError
        As `load_prism`.
    """
    return parse_lattice(read_text(path), constants, filename=str(path))


def parse_lattice(
    text: str, constants: Constants | None = None, *, filename: str = "<model>"
) -> LatticeMDP:
    """Return the model of a text in the PRISM language by its factors; see `load_lattice`."""
    checked = check_model(parse_model(text, filename), constants)
    try:
        return in_good_order(build_lattice(checked))
    except NoLattice as reason:
        raise UnsupportedError(
            f"{filename}: {reason}, so it cannot be solved by its factors; use load_prism."
        ) from None


def build_for(
    work: Work, checked: CheckedModel, *, progress: Progress | None = None
) -> FactoredMDP | LatticeMDP:
    """Return a model by its factors if what is asked of it takes less work then.

    That is counted: the reachable transitions are written out as long as that takes less than the
    contractions would. A model that is complete by then stays written out. So does one whose plays
    may last, if its transitions fit into memory: they prove more.
    """
    most = math.inf

    def watch(states: int, transitions: int) -> None:
        if transitions > most:
            raise _Enough
        if progress is not None:
            progress(states, transitions)

    lattice = _worth_contracting(checked)
    if lattice is not None:
        clock = clock_of(lattice) if work.ends else None
        if work.ends and not (clock is not None and _all_end(work, clock, lattice, checked)):
            most = max(available_memory() / WRITTEN, FEW)
        else:  # a clock takes one step back per level, which is one step of all states
            steps = max(work.steps, 1 if work.ends else 0)
            each = AT_LEVELS if work.ends else CONTRACTING
            contracting = contractions(lattice) * each * steps
            most = min(max(contracting / (EXPLORING + SWEEPING * steps), FEW), MANY)
        at_first = _transitions_of(lattice, lattice.initial)
        if at_first * AT_ONCE > most:
            return lattice
    try:
        return build_model(checked, watch)
    except _Enough:
        assert lattice is not None
        return lattice


def _all_end(work: Work, clock: Clock, model: LatticeMDP, checked: CheckedModel) -> bool:
    """Return whether all plays of all questions are over when a clock stays where it is."""
    values = model.state_values(np.flatnonzero(clock.lasting(model)))
    for end in work.ends:
        used = {node.name for node in nodes(end) if isinstance(node, Label)}
        if not used <= set(checked.labels):
            return False
        end = rewrite(
            end, lambda node: checked.labels[node.name] if isinstance(node, Label) else node
        )
        if not evaluate_states(end, checked, values).all():
            return False
    return True


def _worth_contracting(checked: CheckedModel) -> LatticeMDP | None:
    """Return a model by its factors, None if it is none or has few transitions per row."""
    widest = 1  # successors that a row of an action may have
    for action in checked.actions:
        commands = [
            [c for c in module.commands if c.action == action] for module in checked.modules
        ]
        updates = (max(len(c.updates) for c in some) for some in commands if some)
        widest = max(widest, math.prod(updates))
    if widest < WIDE:
        return None
    try:
        lattice = in_good_order(build_lattice(checked))
    except NoLattice:
        return None
    return lattice if contractions(lattice) < lattice.transitions else None


def _transitions_of(model: LatticeMDP, states: IntArray) -> int:
    """Return how many transitions some states have."""
    total = 0
    sizes = np.append(np.diff(model.moves.target_ptr), 0)  # FORBIDDEN is the last one
    for action in range(len(model.actions)):
        moves = model.row_moves(states, np.full(len(states), action))
        total += int(np.prod(sizes[moves].astype(np.float64), axis=1).sum())
    return total


def _decided(expr: Expr) -> Expr:
    """Return an expression without the branches that its constants exclude."""

    def chosen(node: Expr) -> Expr:
        if isinstance(node, Ite) and isinstance(node.condition, Literal):
            return node.then if node.condition.value else node.otherwise
        return node

    return rewrite(expr, chosen)


def build_lattice(checked: CheckedModel) -> LatticeMDP:
    """Return a model by its factors, in the order of the text.

    Raises `NoLattice` if the text has to be explored.
    """
    if checked.type in CHAINS:
        raise NoLattice("a Markov chain is explored")
    states = math.prod(v.high - v.low + 1 for v in checked.variables)
    if states > MOST_STATES:
        raise NoLattice(f"the variables have {states:.3g} combinations")
    local = {v.name for module in checked.modules for v in module.variables}
    if any(v.name not in local for v in checked.variables):
        raise NoLattice("there are global variables")
    # the rows that a state may have, in the order of those that are explored
    alone = [c for module in checked.modules for c in module.commands if c.action is None]
    actions = [*(_Action("", command) for command in alone), *map(_Action, checked.actions)]
    if not 0 < len(actions) <= MOST_ACTIONS:
        raise NoLattice(f"there are {len(actions)} actions")
    tables = _Tables(checked)
    try:
        factors = tuple(tables.factor(module, actions) for module in checked.modules)
    except PrismError as error:  # in a context that may not be reachable
        raise NoLattice(str(error)) from None
    marginals, names, outcomes = packed(tables.boxes)
    targets = [targets for _, targets in tables.numbers]
    moves = Moves(
        np.array([marginal for marginal, _ in tables.numbers], dtype=np.int32),
        starts([len(entry) for entry in targets]),
        np.array([x for entry in targets for x in entry], dtype=np.int64),
    )
    return LatticeMDP(
        checked.variables, factors, moves, marginals, tuple(action.name for action in actions),
        initial_valuations(checked).astype(np.int32),
        {name: partial(evaluate_states, x, checked) for name, x in checked.labels.items()},
        _rewards(checked, actions),
        {**checked.constants, **checked.formulas},
        tuple(names),
        tuple(outcomes),
        Provenance.of_text(checked.source.filename, checked.source.text, checked.constants),
    )  # fmt: skip


def _rewards(checked: CheckedModel, actions: Sequence[_Action]) -> dict[str, FormulaRewards]:
    """Return all reward structures, named as those of explored models."""
    rewards: dict[str, FormulaRewards] = {}
    expressions = Expressions(checked.variables, checked.source)
    made: dict[int, Formula] = {}  # actions that pay alike share a formula
    for number, structure in enumerate(checked.rewards, start=1):
        name = structure.name if structure.name is not None else ""
        name = f"#{number}" if name in rewards else name
        formulas: list[Formula | None] = []
        for action in (None, *(action.name for action in actions)):
            items = [item for item in structure.items if item.action == action]
            expr = reward_sum(items)
            formula = made.setdefault(
                expressions.add(expr), partial(evaluate_states, expr, checked)
            )
            formulas.append(formula if items else None)
        rewards[name] = FormulaRewards(formulas[0], tuple(formulas[1:]))
    return rewards
