"""Automata of formulas accept what the formulas mean."""

import pytest
from hypothesis import given, settings

from rfmdp.temporal.formula import Kind, Progression

from .words import holds, recurrent, trees, verdict, words

A, B = ("atom", 0), ("atom", 1)
EVENTUALLY_A = ("U", ("true",), A, 0, None)
ALWAYS_B = ("!", ("U", ("true",), ("!", B), 0, None))


@given(trees(), words())
def test_progression_accepts_what_the_formula_means(tree, lasso):
    """On every word that repeats, the automaton and the definition agree."""
    automaton = Progression(tree, ("a", "b"))
    if automaton.kind is not Kind.GENERAL:
        assert verdict(automaton, *lasso) == holds(tree, *lasso)[0]


@settings(max_examples=300)
@given(recurrent(), words())
def test_what_recurs_is_accepted(tree, lasso):
    """One F, U, G or R inside of G or F: automaton and definition agree."""
    automaton = Progression(tree, ("a", "b"))
    assert automaton.kind is not Kind.GENERAL
    assert verdict(automaton, *lasso) == holds(tree, *lasso)[0]
    assert automaton.states <= 3


@given(trees(), words())
def test_decided_states_are_never_left(tree, lasso):
    """What is decided stays so, and has the verdict of the word."""
    automaton = Progression(tree, ("a", "b"))
    word, loop = lasso
    state = 0
    for letter in [*word, *word[loop:]]:
        following = automaton.step(state, letter)
        if automaton.decided(state):
            assert following == state
        state = following
    if automaton.decided(state):
        assert (automaton.priority(state) == 2) == holds(tree, word, loop)[0]


@pytest.mark.parametrize(
    ("tree", "kind"),
    [
        (A, Kind.CO_SAFE),
        (EVENTUALLY_A, Kind.CO_SAFE),
        (("!", EVENTUALLY_A), Kind.SAFE),
        (("U", A, ("X", B), 0, None), Kind.CO_SAFE),
        (("&", EVENTUALLY_A, ALWAYS_B), Kind.COMBINED),
        (("U", ("true",), ALWAYS_B, 0, None), Kind.RECURRENT),
        (("!", ("U", ("true",), ("!", ("|", B, EVENTUALLY_A)), 0, None)), Kind.RECURRENT),
        (("U", ("true",), ("|", ALWAYS_B, EVENTUALLY_A), 0, None), Kind.GENERAL),
        (("U", A, ALWAYS_B, 0, None), Kind.GENERAL),
        (("U", ("true",), ("X", ALWAYS_B), 0, None), Kind.GENERAL),
        (("U", ("true",), ALWAYS_B, 0, 3), Kind.SAFE),
    ],
)
def test_kinds(tree, kind):
    """A formula is co-safe without an unbounded release, safe without an unbounded until."""
    assert Progression(tree, ("a", "b")).kind is kind


def test_a_bounded_operator_counts_its_steps():
    """F<=100 a has a state per number of steps left, and its two verdicts."""
    automaton = Progression(("U", ("true",), A, 0, 100), ("a",))
    state = 0
    for _ in range(101):
        state = automaton.step(state, (False,))
    assert automaton.name(state) == "false"
    assert automaton.states == 102
