"""Values of path formulas against brute force, laws, and what the solver knew before."""

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from outer.games import random_model
from outer.pairs import ParityPairs, pairs_of
from rfmdp.answers.answer import check
from rfmdp.errors import UnsupportedError
from rfmdp.language.build import parse_prism
from rfmdp.objective import MAX, MIN, Spec, Temporal
from rfmdp.outer.solution import Status
from rfmdp.policies.simulation import simulate
from rfmdp.solving import evaluate, solve
from rfmdp.state_sets import PathFormula
from rfmdp.temporal.formula import Kind, Progression
from rfmdp.temporal.product import make_product

from .words import ATOMS, trees

DIRECTIONS = [(a, n) for a in (MAX, MIN) for n in (MAX, MIN)]
ROBOT = """
mdp
module robot
  x : [0..4];
  broken : bool;
  [walk] !broken & x<4 -> 0.9 : (x'=x+1) + 0.1 : true;
  [run] !broken & x<3 -> 0.7 : (x'=x+2) + 0.2 : (x'=x+1) + 0.1 : (broken'=true);
  [rest] broken | x=4 -> true;
endmodule
rewards "time" true : 1; endrewards
label "goal" = x=4;
"""


def formula_over(model, tree, seed):
    """Return a formula whose atoms are random sets of states."""
    holds = np.random.default_rng(seed).random((ATOMS, model.states)) < 0.5
    return PathFormula("formula", tree, tuple(holds))


@settings(max_examples=60)
@given(st.integers(0, 10**6), trees(5), st.sampled_from(DIRECTIONS))
def test_values_are_those_of_all_pairs_of_strategies(seed, tree, players):
    """On the product of a tiny game, bounds enclose the value of brute force and are certified."""
    assume(Progression(tree, "ab").kind is not Kind.GENERAL)
    model = random_model(seed, 3)
    spec = Spec(Temporal(formula_over(model, tree, seed)), *players)
    solution = solve(model, spec)
    product = solution.product
    assume(product.model.states <= 6)
    priority = product.table.priority[product.memory]
    pairs = pairs_of(ParityPairs, product.model, priority, *players)
    assume(pairs is not None)
    assert pairs.within(solution.lower, solution.upper)
    assert solution.status is Status.CERTIFIED


@given(st.integers(0, 10**6), trees(6))
def test_the_memory_of_a_product_is_what_the_automaton_has_read(seed, tree):
    """Every move of the product is one of the base, and the automaton follows its letter."""
    assume(Progression(tree, "ab").kind is not Kind.GENERAL)
    base = random_model(seed, 4)
    formula = formula_over(base, tree, seed)
    product = make_product(base, Temporal(formula), np.ones(base.states, dtype=bool))
    automaton = Progression(tree, "ab")
    model, letters = product.model, np.array(formula.atoms).T
    numbers = {}  # of the product's memory -> of a second automaton's
    for s in range(base.states):
        first = product.start[s]
        assert product.states[first] == s
        numbers[product.memory[first]] = automaton.step(0, tuple(letters[s]))
    for state in range(model.states):  # in the order in which they were found
        here = int(product.memory[state])
        origin = product.states[state]
        for number, row in enumerate(range(*model.row_ptr[state : state + 2])):
            source = base.row_ptr[origin] + number
            moves = model.successors[slice(*model.successor_ptr[row : row + 2])]
            was = base.successors[slice(*base.successor_ptr[source : source + 2])]
            if product.table.decided[here]:
                assert (moves == state).all()
                continue
            assert (product.states[moves] == was).all()
            for there, target in zip(product.memory[moves], was, strict=True):
                after = automaton.step(numbers[here], tuple(letters[target]))
                assert numbers.setdefault(int(there), after) == after


@pytest.fixture(scope="module")
def robot():
    return parse_prism(ROBOT).with_radius(0.05)


@pytest.mark.parametrize("players", ["maxmin", "minmax", "maxmax", "minmin"])
@pytest.mark.parametrize(
    ("plain", "nested"),
    [
        ('F "goal"', '(F "goal") & (F "goal")'),
        ("!broken U x=2", "(!broken U x=2) & (F x=2)"),
        ("G !broken", "(G !broken) & (G (x<=4))"),
        ("F<=3 x=3", "(F<=3 x=3) | (F<=2 x=3)"),
        ("x<2 W x=3", "(x<2 U x=3) | (G x<2)"),
        ("x=3 R !broken", "(!broken U (x=3 & !broken)) | (G !broken)"),
        ("G[2,4] x<4", "X X ((x<4) & (X ((x<4) & (X x<4))))"),
    ],
)
def test_equal_formulas_have_equal_values(robot, players, plain, nested):
    """A formula that today's solver knows, and the same with operators inside each other."""
    known, found = (check(robot, f"P{players}=? [ {text} ]") for text in (plain, nested))
    assert known.certified
    assert found.certified
    assert found.lower <= known.upper
    assert known.lower <= found.upper


def test_a_formula_and_its_negation_add_up_to_one(robot):
    """P(f) = 1 - P(!f) with both players turned."""
    formula = "(F x=3) & (G ((x=1) => (X x=2)))"
    found = check(robot, f"Pmaxmin=? [ {formula} ]")
    other = check(robot, f"Pminmax=? [ !({formula}) ]")
    assert found.lower <= 1 - other.lower
    assert 1 - other.upper <= found.upper
    assert found.certified
    assert other.certified


def test_reward_until_both_are_seen(robot):
    """Only walking sees both for sure: 4 steps, of which each takes 1 / 0.85 at worst."""
    found = check(robot, 'Rminmax=? [ (F x=1) & (F "goal") ]')
    assert found.certified
    assert found.lower <= 4 / 0.85 <= found.upper
    missed = check(robot, 'Rmaxmax=? [ (F x=1) & (F "goal") ]')
    assert missed.lower == np.inf


def test_a_reward_needs_a_formula_that_ends(robot):
    """A safe formula is never satisfied by a finite path, so no reward up to it is defined."""
    with pytest.raises(UnsupportedError, match="co-safe"):
        check(robot, "Rmaxmin=? [ G x<4 ]")


def test_thresholds_and_filters_of_path_formulas(robot):
    """Bounds decide thresholds, in the initial state and in all of them."""
    formula = "F ((x=1) & (X ((x=2) & (X x=4))))"  # 0.85 * 0.65 at worst, after a step to x=1
    value = check(robot, f"Pmaxmin=? [ {formula} ]")
    assert check(robot, f"Pmaxmin>={value.lower - 1e-3} [ {formula} ]").value is True
    assert check(robot, f"Pmaxmin>{value.upper + 1e-3} [ {formula} ]").value is False
    assert check(robot, f"filter(min, Pmaxmin=? [ {formula} ], true)").value == 0
    assert check(robot, f"filter(count, Pmaxmin>=0.1 [ {formula} ], true)").certified


def test_a_policy_with_memory_is_worth_what_was_promised(robot):
    """The policy of a product, evaluated again, has at least the guarantee."""
    spec = 'Pmaxmin=? [ (F x=1) & (F "goal") & (G ((x=2) => (X !broken))) ]'
    solution = solve(robot, spec)
    again = evaluate(robot, solution, spec)
    assert again.subject == "policy"
    assert again.at_initial().upper >= solution.at_initial().lower
    assert again.at_initial().lower >= solution.at_initial().lower - 2e-6


def test_names_of_variables_stay_apart():
    """The column of the automaton's state has a name of its own."""
    text = "dtmc module m memory : [0..2]; [] memory<2 -> (memory'=memory+1); "
    text += "[] memory=2 -> true; endmodule"
    solution = solve(parse_prism(text), "P=? [ F ((memory=1) & (X memory=2)) ]")
    assert [v.name for v in solution.model.variables] == ["memory", "memory_"]
    assert solution.at_initial().lower == 1.0


@pytest.mark.parametrize(
    "question",
    [
        'Pmax=? [ F (x=1 & X "goal") ]',
        "Pmax=? [ !broken W x=2 ]",
        "Pmax=? [ !(!broken U x=2) ]",
        'R{"time"}min=? [ F (x>=1 & F (broken | "goal")) ]',
        'Pmax=? [ F{"time"}<=3 "goal" ]',
    ],
)
def test_simulations_agree_with_values(question):
    """Trajectories of the policy, with its memory, have the value that was proven for it."""
    model = parse_prism(ROBOT)
    solution = solve(model, question)
    seen = simulate(model, solution, question, trajectories=4000, confidence=0.9999)
    bounds = solution.at_initial()
    assert seen.lower - 1e-6 <= bounds.upper
    assert bounds.lower <= seen.upper + 1e-6
