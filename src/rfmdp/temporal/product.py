"""The product of a model with an automaton: states that remember what the path has shown so far.

A state (s, q) has the rows of s with the same marginals. Only the successors change: from (s, q) a
move to s' leads to (s', q') with q' = delta(q, letter of s'). It begins with the first letter read.
The rows of a state whose verdict is decided lead back to it, so that nothing beyond is explored.

The automaton is asked for letters that occur only. What it answered is the `Table`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.derived import remembering, taking
from rfmdp.objective import (
    Globally,
    Objective,
    Parity,
    Reach,
    ReachReward,
    Spec,
    Temporal,
    TemporalReward,
)
from rfmdp.outer.problem import where
from rfmdp.outer.region import strong_components
from rfmdp.outer.solution import Policy, Solution
from rfmdp.ragged import entries, segment_lengths, starts
from rfmdp.state_sets import NamedStates, PathFormula, StateSet
from rfmdp.temporal.formula import Kind, Progression
from rfmdp.temporal.hoa import HoaAutomaton, translate
from rfmdp.types import BoolArray, IntArray

MEMORY = "memory"  # name of the variable that holds the automaton's state
ENTRY = 40  # bytes that a successor takes while a product is made, about
MOST_ATOMS = 60
TABLE = 256  # entries of the table of an automaton that is asked for all letters at once
MOVES = 10_000_000  # between the pairs of such an automaton, reachable or not

Solve = Callable[["Product", Spec, BoolArray], Solution]
"""Called as solve(product, specification of its model, states of interest)."""
Pairs = tuple[IntArray, IntArray, IntArray]  # of a `Product`: states, memory, start


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """What a product needs of its automaton."""

    letters: BoolArray  # (L, atoms) those that occur
    delta: IntArray  # (Q, L) the next state; -1 where nobody comes by
    priority: IntArray  # (Q,)
    decided: BoolArray  # (Q,)
    names: tuple[str, ...]  # (Q,) for people


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """A product model, and what its states stand for."""

    model: FactoredMDP
    base: FactoredMDP
    states: IntArray  # (S',) the state of `base` that a state stands for
    memory: IntArray  # (S',) and that of the automaton
    start: IntArray  # (S,) where a play from a state of `base` begins; -1 where none does
    formula: PathFormula  # over arrays (S,) of `base`
    table: Table
    kind: Kind

    def first(self, interest: BoolArray) -> BoolArray:
        """Return the states (S',) with which plays from some states (S,) of the model begin."""
        return np.isin(np.arange(self.model.states), self.start[interest])

    def objective(self, request: Temporal | TemporalReward) -> Objective:
        """Return the objective on the product model."""
        text = self.formula.text
        decided, even = self.table.decided, self.table.priority % 2 == 0
        accepted = NamedStates("satisfied", (decided & even)[self.memory])
        if isinstance(request, TemporalReward):
            if self.kind is not Kind.CO_SAFE:
                raise UnsupportedError(
                    "R must be over a formula that a finite path satisfies (co-safe: X, F, U and "
                    f"bounded operators), found '{text}', which is {self.kind.value}."
                )
            return ReachReward(accepted, request.reward, text)
        if self.kind is Kind.CO_SAFE:
            return Reach(accepted, text)
        if self.kind is Kind.SAFE:
            kept = NamedStates("not violated", (~decided | even)[self.memory])
            return Globally(kept, formula=text)
        return Parity(self.table.priority[self.memory], text)


def solve_temporal(model: FactoredMDP, spec: Spec, interest: BoolArray, solve: Solve) -> Solution:
    """Return the solution on the product, which has the formula, the automaton and the base."""
    request = spec.objective
    assert isinstance(request, Temporal | TemporalReward)
    product = make_product(model, request, interest)
    on_product = replace(spec, objective=product.objective(request))
    solution = solve(product, on_product, product.first(interest))
    return replace(solution, product=product)


def with_automaton(spec: Spec, automaton: HoaAutomaton | None) -> Spec:
    """Return a specification whose path formula means what an automaton says, if there is one."""
    if automaton is None:
        return spec
    if not isinstance(spec.objective, Temporal):
        raise ModelError(
            f"An automaton needs a P over a path formula with operators inside each "
            f"other, or joined by & and |; found {spec}."
        )
    return replace(spec, objective=replace(spec.objective, automaton=automaton))


def on_product(model: FactoredMDP, spec: Spec) -> tuple[FactoredMDP, Spec]:
    """Return model and specification with memory if that is of a path formula, else as they are."""
    request = spec.objective
    if not isinstance(request, Temporal | TemporalReward):
        return model, spec
    product = make_product(model, request, model.label("init"))
    return product.model, replace(spec, objective=product.objective(request))


def with_memory(policy: Policy, product: Product) -> Policy:
    """Return a policy of the base model as one of the product, which it is already if it fits."""
    base, model = product.base, product.model
    if policy.rows.shape[1] != base.states:
        return policy
    numbers = policy.rows[:, product.states] - base.row_ptr[product.states]
    return Policy(model.row_ptr[:-1] + numbers)


def make_product(
    base: FactoredMDP, request: Temporal | TemporalReward, first: BoolArray
) -> Product:
    """Return the reachable product of a model with the automaton of a formula.

    first : (S,) where plays begin, beside the initial states
    """
    formula = request.formula
    automaton = getattr(request, "automaton", None)
    if automaton is None:
        assert formula.tree is not None
        automaton = Progression(formula.tree, formula.names)
        if automaton.kind is Kind.GENERAL and isinstance(request, Temporal):
            automaton = translate(formula.tree, formula.text)
    if isinstance(automaton, HoaAutomaton):
        formula = _read_atoms(automaton, formula, base)
    if len(formula.atoms) > MOST_ATOMS:
        raise UnsupportedError(
            f"A path formula must have at most {MOST_ATOMS} different state formulas, found "
            f"{len(formula.atoms)}."
        )
    arrays = tuple(where(base, states) for states in formula.atoms)
    named = zip(formula.names, arrays, strict=True)
    formula = replace(formula, atoms=tuple(NamedStates(*pair) for pair in named))
    explorer = _Explorer(base, automaton, arrays)
    pairs, table = explorer.run(first | base.label("init"))
    return product_of_pairs(base, pairs, formula, table, automaton.kind)


def _read_atoms(automaton: HoaAutomaton, formula: PathFormula, base: FactoredMDP) -> PathFormula:
    """Return the formula over the sets of states that an automaton reads, in its order.

    Its propositions are p0, p1, ..., the state formulas of the property in their order, or labels.
    """
    known: dict[str, StateSet] = {f"p{k}": atom for k, atom in enumerate(formula.atoms)}
    known |= {name: name for name in base.labels}
    other = [name for name in automaton.atoms if name not in known]
    if other:
        raise ModelError(
            f"The propositions of an automaton must be among {', '.join(known)} (p0, p1, ... are "
            f"the state formulas of the property); found {other[0]!r}."
        )
    return replace(formula, atoms=tuple(known[name] for name in automaton.atoms))


class _Explorer:
    """Finds the pairs of state and memory that are reachable."""

    def __init__(
        self, base: FactoredMDP, automaton: Progression | HoaAutomaton, atoms: tuple[BoolArray, ...]
    ) -> None:
        self.base, self.automaton = base, automaton
        codes, self.letter = np.unique(_letter_codes(base.states, atoms), return_inverse=True)
        self.letters: BoolArray = (codes[:, None] >> np.arange(len(atoms)) & 1).astype(np.bool_)
        self._delta = np.full((1, len(codes)), -1, dtype=np.int64)
        self._seen = np.zeros((1, base.states), dtype=np.bool_)  # pairs, by memory
        self._decided = np.array([automaton.decided(0)])
        self._move_ptr = base.successor_ptr[base.row_ptr]  # of the moves of a state in all rows

    def run(self, first: BoolArray) -> tuple[Pairs, Table]:
        """Return all pairs after some states (S,), and what the automaton answered."""
        begin = np.flatnonzero(first)
        memory = self._follow(np.zeros(len(begin), dtype=np.int64), self.letter[begin])
        reach = self._reach_at_once if self._closed() else self._reach_by_layers
        reach(begin, memory)
        states, memories = (side.astype(np.int64) for side in np.nonzero(self._seen.T))
        number = np.cumsum(self._seen.T, axis=None) - 1
        start = np.full(self.base.states, -1, dtype=np.int64)
        start[begin] = number[begin * len(self._seen) + memory]
        met = range(len(self._decided))
        priority = np.array([self.automaton.priority(q) for q in met], dtype=np.int64)
        names = tuple(self.automaton.name(q) for q in met)
        table = Table(self.letters, self._delta[: len(met)], priority, self._decided, names)
        return (states, memories, start), table

    def _closed(self) -> bool:
        """Ask a small automaton for all of its states; return whether these are all."""
        every = np.arange(len(self.letters))
        most = min(TABLE // len(every), MOVES // len(self.base.successors))
        for q in range(most + 1):
            if q == self.automaton.states:
                return True
            self._follow(np.full(len(every), q), every)
        return False

    def _reach_at_once(self, begin: IntArray, memory: IntArray) -> None:
        """Mark all that follows some pairs (N,), on the graph of all pairs.

        A root leads to them, and components are numbered bottom first: what it reaches is below.
        """
        base, size, decided = self.base, self.base.states, self._decided
        letter, moves = self.letter[base.successors], segment_lengths(self._move_ptr)
        offset = (self._delta * size + 1).astype(np.int32)
        after = [offset[q, letter] + base.successors for q in np.flatnonzero(~decided)]
        counts = np.concatenate([[len(begin)], *(np.where(end, 0, moves) for end in decided)])
        successors = np.concatenate([(memory * size + begin + 1).astype(np.int32), *after])
        nodes = np.arange(len(counts) + 1)
        inside = np.ones(len(counts), dtype=np.bool_)
        edges = nodes, nodes[:-1], starts(counts), successors
        component = strong_components(edges, inside, inside)[0]
        self._seen = (component[1:] < component[0]).reshape(len(decided), size)

    def _reach_by_layers(self, states: IntArray, memory: IntArray) -> None:
        """Mark all that follows some pairs (N,), which asks the automaton for what occurs only."""
        base, ptr = self.base, self._move_ptr
        while len(states):
            self._seen[memory, states] = True
            open_ = ~self._decided[memory]
            states, memory = states[open_], memory[open_]
            before = np.repeat(memory, segment_lengths(ptr)[states])
            states = base.successors[entries(ptr, states)].astype(np.int64)
            memory = self._follow(before, self.letter[states])
            fresh = ~self._seen[memory, states]
            codes = np.sort(memory[fresh] * base.states + states[fresh])
            memory, states = np.divmod(codes[np.diff(codes, prepend=-1) > 0], base.states)

    def _follow(self, memory: IntArray, letter: IntArray) -> IntArray:
        """Return the automaton's states after letters (N,), which it is asked for once each."""
        after = self._delta[memory, letter]
        if (after < 0).any():
            codes = np.unique((memory * len(self.letters) + letter)[after < 0])
            for q, k in zip(*divmod(codes, len(self.letters)), strict=True):
                reply = self.automaton.step(int(q), tuple(self.letters[k].tolist()))
                self._grow(self.automaton.states)
                self._delta[q, k] = reply
            after = self._delta[memory, letter]
        return after

    def _grow(self, states: int) -> None:
        """Make room for states of the automaton."""
        size = len(self._decided)
        if states > len(self._delta):
            room = 2 * states
            require_memory(5.0 * room * self.base.states, f"A product with {states} memory states")
            more = room - len(self._delta)
            self._delta = np.pad(self._delta, ((0, more), (0, 0)), constant_values=-1)
            self._seen = np.pad(self._seen, ((0, more), (0, 0)))
        new = [self.automaton.decided(q) for q in range(size, states)]
        self._decided = np.append(self._decided, np.array(new, dtype=np.bool_))


def product_of_pairs(
    base: FactoredMDP, pairs: Pairs, formula: PathFormula, table: Table, kind: Kind
) -> Product:
    """Return the product over pairs of a state and a state of the automaton, see `Product`."""
    states, memory, start = pairs
    code = _letter_codes(base.states, tuple(where(base, atom) for atom in formula.atoms))
    letter_codes = _letter_codes(len(table.letters), tuple(table.letters.T))
    order = np.argsort(letter_codes)
    letter = order[np.searchsorted(letter_codes[order], code)]
    rows = entries(base.row_ptr, states)
    size = segment_lengths(base.successor_ptr[base.row_ptr])[states]
    require_memory(float(ENTRY * size.sum()), f"A product of {len(states):,} states")
    number = np.full((len(table.priority), base.states), -1, dtype=np.int32)
    number[memory, states] = np.arange(len(states))
    after = base.successors[entries(base.successor_ptr, rows)]
    here = np.repeat(np.arange(len(states)), size)
    decided = table.decided[memory[here]]
    following = np.where(decided, 0, table.delta[memory[here], letter[after]])
    successors = np.where(decided, here, number[following, after])
    model = taking(
        base, states, rows, segment_lengths(base.row_ptr)[states], successors,
        initial=number[table.delta[0, letter[base.initial]], base.initial].astype(np.int64),
        provenance=base.provenance,
    )  # fmt: skip
    model = remembering(model, base, MEMORY, memory, states)
    return Product(model, base, states, memory, start, formula, table, kind)


def _letter_codes(size: int, atoms: tuple[BoolArray, ...]) -> IntArray:
    """Return which atoms (N,) hold, as bits of a number (N,)."""
    bits = (atom.astype(np.int64) << k for k, atom in enumerate(atoms))
    return sum(bits, start=np.zeros(size, dtype=np.int64))
