"""Deterministic parity automata from texts in the HOA format (Hanoi Omega-Automata, version 1).

Read are automata with one initial state, explicit labels and a parity acceptance (also Buchi,
co-Buchi, all, none, Rabin 1 and Streett 1, which are parity conditions), on states or transitions.
Priorities are brought to one form: the largest that comes for ever must be even. A state of the
automaton here is a state of the text, and the priority with which it was entered.

Spot (package `spottl`, extra `ltl`) makes such texts of LTL formulas. It has another licence than
this package, so it is never imported here: it runs in a process of its own, and the two exchange a
formula and a text.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from rfmdp.errors import FileError, UnsupportedError
from rfmdp.temporal.formula import Automaton, Kind, Letter, Tree, normal, written

TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|--\w+--|@?[A-Za-z_][\w-]*:?|\d+|[\[\]{}()!&|]|/\*.*?\*/|\S', re.S
)
STATE = re.compile(r'State: (\d+) (?:"(?:[^"\\]|\\.)*" )?(?:\{ ([\d ]*)\} )?')
EDGE = re.compile(r"\[ ([^]]*)\] (\d+) (?:\{ ([\d ]*)\} )?")  # label, target, colours
PARITIES = {  # other names of parity conditions -> (largest decides, even wins)
    "Buchi": (True, True), "co-Buchi": (True, False), "all": (True, False), "none": (True, True),
    "Streett 1": (True, False), "Rabin 1": (False, False),
}  # fmt: skip
SCRIPT = """
import sys, spot
automaton = spot.translate(sys.stdin.read(), "parity", "deterministic", "complete")
automaton = spot.change_parity(automaton, spot.parity_kind_max, spot.parity_style_even)
print(automaton.to_str("hoa"))
"""
SECONDS = 120.0  # that Spot may take

Edge = tuple[ast.expr, int, int]  # label, target, priority


class HoaAutomaton(Automaton[tuple[int, int]]):
    """The automaton of a text; its states are those of the text, with priorities."""

    kind = Kind.GENERAL

    def __init__(self, text: str, place: str = "automaton") -> None:
        try:
            self._read([t for t in TOKEN.findall(text) if not t.startswith("/*")])
        except (ValueError, IndexError, KeyError) as error:
            raise FileError(
                f"{place}: must be a deterministic, complete parity automaton in the HOA format "
                f"({error}); Spot writes one with ltl2tgba -P -D -C."
            ) from None
        self._place = place
        super().__init__((self._start, self._uncoloured))

    def step(self, state: int, letter: Letter) -> int:
        """Return the state after a letter, one value per name of `atoms`."""
        edges = [edge for edge in self._edges[self._meaning[state][0]] if _holds(edge[0], letter)]
        if len({edge[1:] for edge in edges}) != 1:
            held = " ".join(n for n, x in zip(self.atoms, letter, strict=True) if x) or "nothing"
            raise FileError(
                f"{self._place}: must have one transition per state and letter, found {len(edges)} "
                f"in state {self._meaning[state][0]} where {held} holds."
            )
        return self._number(edges[0][1:])

    def priority(self, state: int) -> int:
        """Return the priority of a state."""
        return self._meaning[state][1]

    def decided(self, state: int) -> bool:
        """Return whether its only transition, for all letters, leads back."""
        edges = self._edges[self._meaning[state][0]]
        return [(ast.unparse(e[0]), e[1:]) for e in edges] == [("t", self._meaning[state])]

    def name(self, state: int) -> str:
        """Return the number of the state in the text, and its priority."""
        return "state {} with priority {}".format(*self._meaning[state])

    def _read(self, tokens: list[str]) -> None:
        body = tokens.index("--BODY--")
        head = tokens[:body]
        if head[:2] != ["HOA:", "v1"] or head.count("Start:") != 1:
            raise ValueError("it must begin with HOA: v1 and have one Start:")
        self._start = int(head[head.index("Start:") + 1])
        names = head[head.index("AP:") + 1 :] if "AP:" in head else ["0"]
        self.atoms = tuple(name.strip('"') for name in names[1 : int(names[0]) + 1])
        condition = head[head.index("acc-name:") + 1 :]
        name = " ".join(condition[: 2 if condition[1].isdecimal() else 1])
        if name != "parity" and name not in PARITIES:
            raise ValueError(f"acc-name: must be a parity condition, found {name}")
        named = condition[1] == "max", condition[2] == "even"
        self._largest, self._even = PARITIES.get(name, named)
        self._sets = int(head[head.index("Acceptance:") + 1])
        self._uncoloured = self._normal([])
        self._edges: dict[int, list[Edge]] = {}
        self._read_body("".join(f"{t} " for t in tokens[body + 1 : tokens.index("--END--")]))

    def _normal(self, colours: Sequence[int]) -> int:
        """Return colours of one place as a priority of which the largest decides, and is even."""
        if any(colour >= self._sets for colour in colours):
            raise ValueError("a colour is out of range")
        priority = 2 + max(colours, default=-1)
        if not self._largest:
            priority = 2 * (self._sets // 2 + 2) - min(colours, default=self._sets)
        return priority if self._even else priority + 1

    def _read_body(self, text: str) -> None:
        """Read states and transitions; every token of the text has a space behind it."""
        place, source, of_state = 0, -1, ""
        while place < len(text):
            if match := STATE.match(text, place):
                source, of_state = int(match[1]), match[2] or ""
                self._edges[source] = []
            elif (match := EDGE.match(text, place)) and source >= 0:
                label = _label(match[1], len(self.atoms))
                colours = [int(colour) for colour in f"{of_state} {match[3] or ''}".split()]
                self._edges[source].append((label, int(match[2]), self._normal(colours)))
            else:
                excerpt = text[place : place + 20].strip()
                raise ValueError(f"expected State: or a transition with a label, found {excerpt}")
            place = match.end()
        targets = {edge[1] for edges in self._edges.values() for edge in edges}
        missing = sorted({self._start, *targets} - set(self._edges))
        if missing:
            raise ValueError(f"there is no state {missing[0]}")


def _label(text: str, atoms: int) -> ast.expr:
    """Return a label as an expression of Python, whose signs bind in the same order."""
    words = {"!": " not ", "&": " and ", "|": " or "}
    written = re.sub("[!&|]", lambda sign: words[sign[0]], text)
    try:
        tree = ast.parse(written.strip(), mode="eval").body
        _holds(tree, (False,) * atoms)
    except (SyntaxError, LookupError, RecursionError, MemoryError):
        raise ValueError(
            f"a label must join t, f and numbers below {atoms} by !, &, | and parentheses, found "
            f"{text}"
        ) from None
    return tree


def _holds(label: ast.expr, letter: Letter) -> bool:
    """Return whether a label allows a letter; all of it is looked at."""
    match label:
        case ast.BoolOp(sign, parts):
            held = [_holds(part, letter) for part in parts]
            return all(held) if isinstance(sign, ast.And) else any(held)
        case ast.UnaryOp(ast.Not(), part):
            return not _holds(part, letter)
        case ast.Name("t" | "f" as word):
            return word == "t"
        case ast.Constant(k) if type(k) is int:
            return letter[k]
    raise LookupError


def read_automaton(path: str | PathLike[str]) -> HoaAutomaton:
    """Return the automaton of a file in the HOA format.

    Raises
    ------
    FileError
        If the file cannot be read, or holds no deterministic parity automaton.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{path}: cannot be read ({error}).") from None
    return HoaAutomaton(text, str(path))


def translate(tree: Tree, text: str) -> HoaAutomaton:
    """Return Spot's automaton of a formula, whose atoms are its propositions p0, p1, ..."""
    formula = written(normal(_unbounded(tree)), "p{}".format)
    try:
        result = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            input=formula, capture_output=True, text=True, timeout=SECONDS, check=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        reason = f"none was found in {SECONDS:g} s"
    except subprocess.CalledProcessError as error:
        reason = str(error.stderr).strip().rpartition("\n")[2]
        if "No module named 'spot'" in reason:
            reason = "it is not installed: pip install 'rfmdp[ltl]'"
    else:
        return HoaAutomaton(result.stdout, "Spot's automaton")
    raise UnsupportedError(
        f"'{text}' is neither co-safe nor safe, nor a combination of such formulas; it needs an "
        f"automaton of Spot ({reason}), or one in the HOA format, `automaton=read_automaton(FILE)`."
    )


def _unbounded(f: Tree) -> Tree:
    """Return a formula with X in place of steps: f U[i,j] g = f & X (f U[i-1,j-1] g), and so on."""
    match f:
        case ("U", g, h, i, j) if (i, j) != (0, None):
            stay, goal = _unbounded(g), _unbounded(h)
            until: Tree = goal if j is not None else ("U", stay, goal, 0, None)
            for _ in range((j or i) - i):
                until = ("|", goal, ("&", stay, ("X", until)))
            for _ in range(i):
                until = ("&", stay, ("X", until))
            return until
    return tuple(_unbounded(part) if isinstance(part, tuple) else part for part in f)
