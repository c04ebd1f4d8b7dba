"""Path formulas as trees of few operators, and as deterministic automata by progression.

A tree is one of

    ("true",)   ("atom", k)   ("!", f)   ("&", f, g)   ("|", f, g)   ("X", f)   ("U", f, g, i, j)

where U[i,j] is an until with its steps, j None for no last one. F, G, W and R are written with
these, see `rfmdp.answers.property`. An atom is a set of states, by its number.

*Progression* is what is left of a formula after one letter (which atoms hold now):

    f U[0,j] g  ->  g' | (f' & f U[0,j-1] g)          f U[i,j] g  ->  f' & f U[i-1,j-1] g

What is left is a positive Boolean function of smaller formulas, so its minimal disjunctive normal
form is unique: two obligations are one state of the automaton if their functions are the same.

A formula whose negations are pushed to the atoms is *co-safe* without an unbounded release (a good
beginning decides it) and *safe* without an unbounded until (a bad one does). A Boolean combination
of these is decided for ever once no part changes any more: parts that are still open are violated
if they are co-safe, satisfied if they are safe. That is the priority of the state: 1 or 2.

A *recurrent* formula asks for one thing again and again, G (a | F b), or from some time on,
F (a & G b), with one operator inside, without a last step and over state formulas. G (...) holds if
that is settled for ever again (priority 2, else 1), F (...) if it is not violated for ever again
(priority 3, else 2); see docs/soundness.md.

>>> step = ("&", ("atom", 0), ("X", ("atom", 1)))
>>> until = Progression(("U", ("true",), step, 0, None), ("a", "b"))
>>> first = until.step(0, (True, False))
>>> until.name(first), until.name(until.step(first, (False, True)))
('F (a & X b) | b', 'true')
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import Enum
from functools import cache
from typing import Any, Generic, TypeAlias, TypeVar

from rfmdp.errors import UnsupportedError
from rfmdp.objective import written_steps

Tree: TypeAlias = tuple[Any, ...]
Letter: TypeAlias = tuple[bool, ...]
Clause: TypeAlias = frozenset[Tree]  # literals that must all hold
Obligation: TypeAlias = frozenset[Clause]  # of which one must hold: a minimal normal form
Meaning = TypeVar("Meaning")

YES: Obligation = frozenset({frozenset()})
NO: Obligation = frozenset()
LARGEST = 2_000  # clauses of one obligation
# priorities; the largest that comes for ever must be even
ACCEPTING, REJECTING, VIOLATED = 2, 1, 3


class Kind(Enum):
    """How a formula is decided."""

    CO_SAFE = "co-safe"  # a finite beginning satisfies it
    SAFE = "safe"  # a finite beginning violates it
    COMBINED = "a combination of co-safe and safe formulas"
    RECURRENT = "about what comes again and again, or from some time on"
    GENERAL = "neither co-safe nor safe"


class Automaton(Generic[Meaning]):
    """A deterministic complete automaton; its states get numbers as they are met, 0 is the first.

    A word is accepted if the largest of the priorities that come for ever is even.
    """

    def __init__(self, first: Meaning) -> None:
        self._numbers = {first: 0}
        self._meaning = [first]

    @property
    def states(self) -> int:
        """The number of states that were met so far."""
        return len(self._meaning)

    def _number(self, meaning: Meaning) -> int:
        number = self._numbers.setdefault(meaning, len(self._meaning))
        if number == len(self._meaning):
            self._meaning.append(meaning)
        return number


class Progression(Automaton[Obligation]):
    """The automaton of a formula; its states are what is still to be satisfied."""

    def __init__(self, tree: Tree, atoms: Sequence[str]) -> None:
        self.atoms = tuple(atoms)
        self._after = cache(self._progressed)
        first = _obligation(normal(tree))
        super().__init__(first)
        self.kind = _kind(first)
        self._persistent = self.kind is Kind.RECURRENT and _waits(normal(tree))

    def step(self, state: int, letter: Letter) -> int:
        """Return the state after a letter."""
        result = NO
        for clause in self._meaning[state]:
            rest = YES
            for literal in clause:
                rest = _both(rest, self._after(literal, letter))
            result = _either(result, rest)
        return self._number(result)

    def priority(self, state: int) -> int:
        """Return 2 where a play that stays for ever is accepted, else 1; 3 of a recurrent F."""
        clauses = self._meaning[state]
        if any(not any(_waits(literal) for literal in clause) for clause in clauses):
            return ACCEPTING
        return VIOLATED if self._persistent else REJECTING

    def decided(self, state: int) -> bool:
        """Return whether nothing that follows can change the verdict."""
        return self._meaning[state] in (YES, NO)

    def name(self, state: int) -> str:
        """Return what is still to be satisfied."""
        clauses = sorted(
            " & ".join(sorted(written(literal, self.atoms.__getitem__) for literal in clause))
            for clause in self._meaning[state]
        )
        return " | ".join(clauses) if any(clauses) else ("true" if clauses else "false")

    def _progressed(self, f: Tree, letter: Letter) -> Obligation:
        """Return what is left of a formula in normal form."""
        match f:
            case ("atom", k):
                return YES if letter[k] else NO
            case ("not", k):
                return NO if letter[k] else YES
            case ("X", g):
                return _obligation(g)
            case ("U" | "R" as sign, g, h, i, j):
                later, meet, join = (NO, _both, _either) if sign == "U" else (YES, _either, _both)
                if j != 0:
                    last = None if j is None else j - 1
                    later = _obligation((sign, g, h, max(i - 1, 0), last))
                later = meet(self._after(g, letter), later)
                return later if i else join(self._after(h, letter), later)
        return _obligation(f, lambda part: self._after(part, letter))


def written(f: Tree, atom: Callable[[int], str]) -> str:
    """Return a formula in normal form for people and for Spot; atoms by their names."""

    def operand(g: Tree) -> str:
        text = written(g, atom)
        return f"({text})" if g[0] in ("&", "|", "U", "R") else text

    match f:
        case ("atom", k):
            return atom(k) if re.fullmatch(r'\w+|"[^"]*"', atom(k)) else f"({atom(k)})"
        case ("not", k):
            return "!" + written(("atom", k), atom)
        case ("X", g):
            return f"X {operand(g)}"
        case ("&" | "|" as sign, g, h):
            return f"{operand(g)} {sign} {operand(h)}"
        case ("U", ("true",), h, i, j):
            return f"F{written_steps(i, j)} {operand(h)}"
        case ("R", ("false",), h, i, j):
            return f"G{written_steps(i, j)} {operand(h)}"
        case ("U" | "R" as operator, g, h, i, j):
            return f"{operand(g)} {operator}{written_steps(i, j)} {operand(h)}"
    return str(f[0])


def normal(tree: Tree, negated: bool = False) -> Tree:
    """Return a tree with `not` before atoms only, over & | X U R; R is the dual of U."""
    match tree:
        case ("true",):
            return ("false",) if negated else tree
        case ("atom", k):
            return ("not", k) if negated else tree
        case ("!", f):
            return normal(f, not negated)
        case ("&" | "|" as sign, f, g):
            dual = "|" if sign == "&" else "&"
            return (dual if negated else sign, normal(f, negated), normal(g, negated))
        case ("X", f):
            return ("X", normal(f, negated))
        case ("U", f, g, i, j):
            return ("R" if negated else "U", normal(f, negated), normal(g, negated), i, j)
    raise AssertionError(tree)


def _obligation(
    f: Tree, part: Callable[[Tree], Obligation] = lambda f: frozenset({frozenset({f})})
) -> Obligation:
    """Return a formula in normal form as a Boolean function of the parts that & and | join."""
    match f:
        case ("true",):
            return YES
        case ("false",):
            return NO
        case ("&", g, h):
            return _both(_obligation(g, part), _obligation(h, part))
        case ("|", g, h):
            return _either(_obligation(g, part), _obligation(h, part))
    return part(f)


def _either(a: Obligation, b: Obligation) -> Obligation:
    return a or b if not (a and b) else _minimal(a | b)


def _both(a: Obligation, b: Obligation) -> Obligation:
    if a is YES or b is YES:
        return b if a is YES else a
    return _minimal(frozenset(x | y for x in a for y in b))


def _minimal(clauses: Obligation) -> Obligation:
    """Return the clauses that contain no other one."""
    if frozenset() in clauses:
        return YES
    if len(clauses) > LARGEST:
        raise UnsupportedError(
            f"A path formula must have at most {LARGEST:,} alternatives at a time, this one has "
            "more; ask for its parts, or give an automaton of it."
        )
    return frozenset(x for x in clauses if not any(y < x for y in clauses))


def _kind(obligation: Obligation) -> Kind:
    literals = frozenset[Tree]().union(*obligation)
    untils, releases = ({f for f in literals if _has_unbounded(sign, f)} for sign in "UR")
    if not releases:
        return Kind.CO_SAFE
    if not untils:
        return Kind.SAFE
    if not untils & releases:
        return Kind.COMBINED
    return Kind.RECURRENT if _is_recurrent(literals) else Kind.GENERAL


def _is_recurrent(literals: frozenset[Tree]) -> bool:
    """Return whether they are one G over an U, or one F over a R, see above."""
    match list(literals):
        case [("R", ("false",), f, 0, None)]:
            wanted = "U"
        case [("U", ("true",), f, 0, None)]:
            wanted = "R"
        case _:
            return False
    match list(_operators(f)):
        case [(sign, g, h, 0, None)]:
            return sign == wanted and not _operators(g) | _operators(h)
    return False


def _operators(f: Tree) -> frozenset[Tree]:
    """Return the outermost operators over time."""
    if f[0] in ("X", "U", "R"):
        return frozenset({f})
    return frozenset[Tree]().union(*(_operators(g) for g in f[1:] if isinstance(g, tuple)))


@cache
def _waits(f: Tree) -> bool:
    """Return whether an U without a last step, outside of any such R, keeps it from holding."""
    if f[0] in ("U", "R") and f[4] is None:
        return bool(f[0] == "U")
    return any(_waits(g) for g in f[1:] if isinstance(g, tuple))


@cache
def _has_unbounded(operator: str, f: Tree) -> bool:
    return (f[0] == operator and f[4] is None) or any(
        _has_unbounded(operator, g) for g in f[1:] if isinstance(g, tuple)
    )
