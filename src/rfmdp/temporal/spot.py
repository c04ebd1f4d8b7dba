"""Automata of LTL formulas by Spot, which runs in a process of its own and writes HOA text.

Spot (package `spottl`, extra `ltl`) has another licence than this package: it is never imported
here. The two processes exchange a formula and a text.
"""

from __future__ import annotations

import subprocess
import sys

from rfmdp.errors import UnsupportedError
from rfmdp.temporal.formula import Tree
from rfmdp.temporal.hoa import HoaAutomaton

SCRIPT = """
import sys, spot
automaton = spot.translate(sys.stdin.read(), "parity", "deterministic", "complete")
automaton = spot.change_parity(automaton, spot.parity_kind_max, spot.parity_style_even)
print(automaton.to_str("hoa"))
"""
SECONDS = 120.0


def translate(tree: Tree, text: str) -> HoaAutomaton:
    """Return the automaton of a formula, whose atoms are its propositions p0, p1, ...

    Raises
    ------
    UnsupportedError
        If Spot is not installed, or has no answer.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            input=_written(tree), capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UnsupportedError(
            f"Spot found no automaton of '{text}' in {SECONDS:g} s; give one, "
            "`automaton=read_automaton(FILE)`."
        ) from None
    if "No module named 'spot'" in done.stderr:
        raise UnsupportedError(
            f"'{text}' is neither co-safe nor safe, nor a combination of such formulas; it needs "
            "Spot, pip install 'rfmdp[ltl]', or an automaton in the HOA format, "
            "`automaton=read_automaton(FILE)`."
        )
    if done.returncode != 0:
        reason = done.stderr.strip().rpartition("\n")[2]
        raise UnsupportedError(f"Spot has no automaton of '{text}': {reason}")
    return HoaAutomaton(done.stdout, "Spot's automaton")


def _written(tree: Tree) -> str:
    """Return a formula in Spot's notation; bounded operators are written out by Spot itself."""
    match tree:
        case ("true",):
            return "1"
        case ("atom", k):
            return f"p{k}"
        case ("!" | "X" as sign, f):
            return f"{sign}({_written(f)})"
        case ("&" | "|" as sign, f, g):
            return f"({_written(f)}) {sign} ({_written(g)})"
        case ("U", f, g, 0, None):
            return f"({_written(f)}) U ({_written(g)})"
        case ("U", f, g, i, j):
            return f"({_written(_unfolded(f, g, i, j))})"
    raise AssertionError(tree)


def _unfolded(f: Tree, g: Tree, i: int, j: int | None) -> Tree:
    """Return an until with steps by X: f U[i,j] g = f & X (f U[i-1,j-1] g), and so on."""
    until: Tree = g if j is not None else ("U", f, g, 0, None)
    for _ in range((j or i) - i):
        until = ("|", g, ("&", f, ("X", until)))
    for _ in range(i):
        until = ("&", f, ("X", until))
    return until
