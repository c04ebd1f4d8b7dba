"""Path formulas: the checker's own automaton, and the product that bounds are claimed of.

The file has the model, the formula as a tree, the states of its atoms, an automaton, and the pairs
that are states of the product. The formula is progressed here, state by state of the automaton, and
must be the same obligation however a state is reached; the moves of the product are made again. An
automaton that somebody supplied for a formula is the claim itself; that is said.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rfmdp.ragged import entries, find, segment_lengths
from rfmdp.record import texts
from rfmdp.types import BoolArray, IntArray
from rfmdp.verification.fields import Fields, field, need

if TYPE_CHECKING:
    from rfmdp.verification.reading import Model

Tree: TypeAlias = tuple[Any, ...]
Clauses: TypeAlias = frozenset[frozenset[Tree]]

ALL: Clauses = frozenset({frozenset()})
NONE: Clauses = frozenset()
SHAPES = {
    "true": (0, 0),
    "atom": (0, 1),
    "!": (1, 0),
    "X": (1, 0),
    "&": (2, 0),
    "|": (2, 0),
    "U": (2, 2),
}  # operators: operands and numbers
DUAL = {"true": "false", "&": "|", "|": "&", "U": "R", "X": "X"}
DEEPEST = 400  # operators inside each other
MOST_CLAUSES = 4_000
FORMS = {"Reach": "R", "ReachReward": "R", "Globally": "U"}  # what a formula must not have for ever


@dataclass(slots=True, eq=False)
class PathClaim:
    """What a file says of a path formula, on a product made here."""

    model: Model  # the product
    base: Model
    words: str  # the formula
    atoms: list[tuple[str, BoolArray]]  # (S,) of the base, with what the file calls them
    accepted: BoolArray  # (S',) where the formula is decided
    rejected: BoolArray
    priority: IntArray  # (S',) the largest that comes for ever must be even
    supplied: bool  # the automaton is the claim


def read_path(header: Mapping[str, Any], base: Model, fields: Fields, kind: str) -> PathClaim:
    """Return the product of a model with an automaton, of which a kind of objective is claimed."""
    formula = field(header, "formula", dict)
    names = texts(formula, "atoms")
    sets = [fields.booleans(f"atom.{k}", base.states) for k in range(len(names))]
    letters = np.column_stack([np.zeros(base.states, dtype=np.bool_), *sets])[:, 1:]
    supplied = field(header, "supplied", bool)
    automaton = _Automaton(fields.within("automaton."), letters)
    if supplied:
        need(kind == "Parity", "objective: must be Parity for an automaton that was supplied")
        words = f"what the automaton accepts, made for: {field(formula, 'text', str)}"
    else:
        tree = _pushed(field(formula, "tree", list), len(names))
        automaton.require_progression(tree, FORMS.get(kind))
        words = _text(tree, names)
    states = fields.integers("states", end=base.states)
    memory = fields.integers("memory", len(states), automaton.size)
    need(len(states), "states: there must be some")
    model = _product(base, states, memory, automaton)
    priority = automaton.priority[memory]
    decided = automaton.decided[memory]
    return PathClaim(
        model, base, words, list(zip(names, sets, strict=True)), decided & (priority % 2 == 0),
        decided & (priority % 2 == 1), priority, supplied,
    )  # fmt: skip


class _Automaton:
    """The automaton of the file, over the letters (S, atoms) of the states of a model."""

    def __init__(self, fields: Fields, letters: BoolArray) -> None:
        self.priority = fields.integers("priority", end=2**31)
        self.size = len(self.priority)
        self.decided = fields.booleans("decided", self.size).copy()
        listed = np.asarray(fields.arrays.get(f"{fields.prefix}letters"))
        fits = listed.dtype == np.bool_ and listed.ndim == 2
        need(fits and listed.shape[1] == letters.shape[1], "letters: must have a value per atom")
        numbers = {tuple(letter): k for k, letter in enumerate(listed.tolist())}
        need(len(numbers) == len(listed), "letters: must be different")
        kinds, of_state = np.unique(letters, axis=0, return_inverse=True)
        codes = [numbers.get(tuple(letter), -1) for letter in kinds.tolist()]
        need(min(codes) >= 0, "letters: must be those of all states")
        self.letters = list(numbers)
        self.letter: IntArray = np.array(codes)[of_state.reshape(-1)]
        delta = fields.integers("delta", len(listed), ndim=2)
        need(len(delta) == self.size and self.size > 0, "delta: must have a line per state")
        need(delta.min() >= -1 and delta.max() < self.size, "delta: must lead to its states")
        self.delta = delta.copy()
        loops = (delta == np.arange(self.size)[:, None]) | (delta < 0)
        need(loops[self.decided].all(), "decided: such a state must never be left")

    def require_progression(self, tree: Tree, forbidden: str | None) -> None:
        """Raise `FileError` unless the automaton is what progression makes of a formula.

        The formula must not have the forbidden operator without a last step. None: each part of it
        must do without U or without R, or all of it is recurrent.
        """
        progress = functools.cache(_clauses)
        first = _clauses(tree)
        recurrent = forbidden is None and _recurrent(first)
        losing = 3 if recurrent and _waiting(tree) else 1
        for literal in frozenset[Tree]().union(*first):
            free = [sign for sign in "UR" if not _endless(literal, sign)]
            fits = recurrent or (free and forbidden in (None, *free))
            need(fits, "formula: is of another kind than claimed")
        obligations: dict[int, Clauses] = {0: first}
        pending = [0]
        while pending:
            state = pending.pop()
            for k in np.flatnonzero(self.delta[state] >= 0).tolist():
                left = NONE
                for clause in obligations[state]:
                    after_all = (progress(literal, self.letters[k]) for literal in clause)
                    left = _join(left, functools.reduce(_meet, after_all, ALL))
                after = int(self.delta[state, k])
                if after not in obligations:
                    pending.append(after)
                same = obligations.setdefault(after, left) == left
                need(same, f"automaton: state {after} does not stand for one formula")
        unreached = sorted(set(range(self.size)) - set(obligations))
        self.decided[unreached] = False  # nobody comes there: the product is checked for that
        self.delta[unreached] = -1
        for state, clauses in obligations.items():
            wins = any(not any(_waiting(x) for x in clause) for clause in clauses)
            need(self.priority[state] == (2 if wins else losing), f"priority: wrong in {state}")
            over = clauses in (ALL, NONE)
            need(over == bool(self.decided[state]), f"decided: wrong in state {state}")


def _product(base: Model, states: IntArray, memory: IntArray, automaton: _Automaton) -> Model:
    """Return the product over some pairs, which must hold all that can follow them."""
    codes = memory * base.states + states
    order = np.argsort(codes, kind="stable")
    need((np.diff(codes[order]) > 0).all(), "states: pairs must be different")

    def places(q: IntArray, s: IntArray, what: str) -> IntArray:
        need((q >= 0).all(), f"delta: does not say what follows {what}")
        at = find(codes[order], q * base.states + s)
        need((at >= 0).all(), f"states: {what} are missing")
        place: IntArray = order[at]
        return place

    first = automaton.delta[0, automaton.letter[base.initial]]
    initial = places(first, base.initial, "initial states")
    rows = entries(base.row_ptr, states)
    after = base.successors[entries(base.successor_ptr, rows)]
    counts = segment_lengths(base.successor_ptr[base.row_ptr])[states]
    owner = np.repeat(np.arange(len(states)), counts)
    on = ~automaton.decided[memory[owner]]
    successors = owner.copy()
    following = automaton.delta[memory[owner[on]], automaton.letter[after[on]]]
    successors[on] = places(following, after[on], "successors of a state")
    return dataclasses.replace(
        base.taking(rows, segment_lengths(base.row_ptr)[states], successors),
        initial=initial,
        labels={name: holds[states] for name, holds in base.labels.items()},
        rewards={k: (state[states], row[rows]) for k, (state, row) in base.rewards.items()},
        variables={},
    )


def _pushed(content: Any, atoms: int, positive: bool = True, depth: int = 0) -> Tree:
    """Return a formula of the file, negations pushed to the atoms; the release R stands beside U.

    An atom has its number, U and R have their first step and, unless it is None, their last.
    """
    need(isinstance(content, list) and content, "formula: must be lists")
    need(depth < DEEPEST, f"formula: must be at most {DEEPEST} deep")
    operator, *rest = content
    need(isinstance(operator, str) and operator in SHAPES, "formula: has an unknown operator")
    size, more = SHAPES[operator]
    need(len(rest) == size + more, "formula: an operator has other parts")
    numbers = rest[size:]
    if operator == "U" and numbers[1] is None:
        numbers = numbers[:1]
    plain = all(type(x) is int and 0 <= x < 2**53 for x in numbers)
    need(plain and numbers == sorted(numbers), "formula: steps must count from 0 and rise")
    need(operator != "atom" or numbers[0] < atoms, "formula: there is no such atom")
    positive = positive != (operator == "!")
    below = [_pushed(part, atoms, positive, depth + 1) for part in rest[:size]]
    if operator == "!":
        return below[0]
    if operator == "atom":
        return ("atom", *numbers, positive)
    return (operator if positive else DUAL[operator], *below, *rest[size:])


def _clauses(formula: Tree, letter: tuple[bool, ...] | None = None) -> Clauses:
    """Return a pushed formula as alternatives of operators that must hold together.

    After a letter, what is left of it; without one, the formula as it is.
    """
    operator, *parts = formula
    if operator in ("true", "false"):
        return ALL if operator == "true" else NONE
    if operator in "&|":
        one, two = (_clauses(part, letter) for part in parts)
        return _meet(one, two) if operator == "&" else _join(one, two)
    if letter is None:
        return frozenset({frozenset({formula})})
    if operator == "atom":
        return ALL if letter[parts[0]] == parts[1] else NONE
    if operator == "X":
        return _clauses(parts[0])
    one, two = (_clauses(part, letter) for part in parts[:2])
    first, last = parts[2:]
    needs, ends, later = (_meet, _join, NONE) if operator == "U" else (_join, _meet, ALL)
    if last != 0:
        steps = max(first - 1, 0), None if last is None else last - 1
        later = frozenset({frozenset({(operator, *parts[:2], *steps)})})
    later = needs(one, later)
    return later if first else ends(two, later)


def _join(one: Clauses, two: Clauses) -> Clauses:
    clauses = one | two
    need(len(clauses) <= MOST_CLAUSES, "formula: has too many alternatives to be checked")
    return frozenset(a for a in clauses if not any(b < a for b in clauses))


def _meet(one: Clauses, two: Clauses) -> Clauses:
    return _join(frozenset(a | b for a in one for b in two), NONE)


def _parts(formula: Tree) -> Iterator[Tree]:
    """Yield a formula and all that stands in it."""
    yield formula
    for part in formula:
        if isinstance(part, tuple):
            yield from _parts(part)


def _endless(formula: Tree, sign: str) -> bool:
    """Return whether an operator without a last step stands in a pushed formula."""
    return any(part[0] == sign and part[4] is None for part in _parts(formula))


def _waiting(formula: Tree) -> bool:
    """Return whether U without a last step stands in a pushed formula, outside of such an R."""
    if formula[0] in "UR" and formula[4] is None:
        return bool(formula[0] == "U")
    return any(_waiting(part) for part in formula if isinstance(part, tuple))


def _recurrent(clauses: Clauses) -> bool:
    """Return whether they are G over Boolean functions of one U, or F over those of one R.

    The U or R is over state formulas and has all steps. States where it is not pending have
    priority 2, above 1 of the others; dually 3, above 2 (docs/soundness.md).
    """
    literals = [literal for clause in clauses for literal in clause]
    if len(clauses) != 1 or len(literals) != 1 or literals[0][0] not in ("U", "R"):
        return False
    sign, idle, body, *steps = literals[0]
    inner = {part for part in _parts(body) if part[0] in ("X", "U", "R")}
    if idle != (("true",) if sign == "U" else ("false",)) or len(inner) != 1:
        return False
    (operator,) = inner
    dual = "R" if sign == "U" else "U"
    return operator[0] == dual and [*operator[3:]] == steps == [0, None]


def _text(formula: Tree, names: list[str]) -> str:
    """Return a pushed formula in PRISM's notation."""
    operator, *parts = formula
    if operator == "atom":
        text = names[parts[0]]
        text = text if re.fullmatch(r'\w+|"[^"]*"', text) else f"({text})"
        return text if parts[1] else f"!{text}"
    inner = [part for part in parts if isinstance(part, tuple)]
    operands = [text if part[0] in ("atom", "true", "false", "X") else f"({text})"
                for part, text in ((part, _text(part, names)) for part in inner)]  # fmt: skip
    if operator in ("&", "|"):
        return f" {operator} ".join(operands)
    if operator not in ("U", "R"):
        return " ".join([str(operator), *operands])
    first, last = parts[2:]
    times = f"[{first},{last}]" if last is not None else f">={first}" if first else ""
    short = {("U", "true"): "F", ("R", "false"): "G"}.get((operator, operands[0]))
    return f"{short or f'{operands[0]} {operator}'}{times} {operands[1]}"
