"""Parity objectives and LTL in general: regions, bounds, automata from texts and from Spot."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from oracles.storm import storm_value
from outer.games import random_model
from outer.pairs import ParityPairs, pairs_of
from rfmdp.answers.answer import check
from rfmdp.errors import FileError, ModelError, UnsupportedError
from rfmdp.formats.files import load, record_of, save
from rfmdp.language.build import parse_prism
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, MIN, Parity, Spec
from rfmdp.outer.graph import Graph
from rfmdp.outer.solution import Status
from rfmdp.policies.induced import NatureChoice, induced_model
from rfmdp.sets.families import Interval, LpBall, Polytope, Singleton
from rfmdp.solving import solve
from rfmdp.temporal.hoa import HoaAutomaton, translate
from rfmdp.temporal.strategies import Regions
from rfmdp.verification.fields import Fields
from rfmdp.verification.forcing import Winning
from rfmdp.verification.game import Game
from rfmdp.verification.reading import read_model
from rfmdp.verification.solution import verdict_of, verify

from .lingering import lingering
from .test_solve import DIRECTIONS
from .words import holds, trees, verdict, words

ALWAYS_AGAIN = """HOA: v1 States: 2 Start: 0 AP: 1 "a" acc-name: Buchi Acceptance: 1 Inf(0)
--BODY-- State: 0 {0} [0] 0 [!0] 1 State: 1 [0] 0 [!0] 1 --END--"""
COIN, ANY = Singleton([0.5, 0.5]), Interval([0.0, 0.0], [1.0, 1.0])
# states: s0, s1, coin, win, lose; nature's choice is a set that holds all distributions
T1 = [[([1], [0, 2])], [([], [1])], [([0], [3, 4])], [([], [3])], [([], [4])]]
T2 = [[([], [0]), ([], [2])], [([], [1])], [([0], [3, 4])], [([], [3])], [([], [4])]]
T3 = [[([1], [0, 1])], [([], [1]), ([], [2])], [([0], [3, 4])], [([], [3])], [([], [4])]]


@pytest.mark.parametrize(
    ("rows", "seen"), [(T1, [0, 3]), (T2, [3]), (T3, [0, 3])], ids=["T1", "T2", "T3"]
)
def test_lingering_is_no_trap(rows, seen):
    """Players may linger, or leave for a coin: the value is 1/2, from both sides, and exactly.

    Coming to what is won almost surely gives 0, 1/2, 0; one minus coming to what is lost almost
    surely gives 1/2, 1, 1.
    """
    model = FactoredMDP.from_rows(rows, [COIN, ANY], labels={"a": [s in seen for s in range(5)]})
    answer = check(model, 'Pmaxmin=? [ G F "a" ]', automaton=HoaAutomaton(ALWAYS_AGAIN))
    assert answer.certified
    assert answer.lower <= 0.5 <= answer.upper
    assert answer.upper - answer.lower <= 1e-6


def games(seed):
    """Return a random game with priorities: of any shape, or one in which players may linger."""
    if seed % 2:
        return lingering(seed)
    model = random_model(seed)
    return model, np.random.default_rng(seed).integers(0, 5, model.states)


def compare_with_pairs(seed, players):
    """Compare regions and bounds with all pairs of strategies; all games are certified."""
    model, priority = games(seed)
    pairs = pairs_of(ParityPairs, model, priority, *players)
    if pairs is None:
        return
    for side in (MAX, MIN):
        sure = Regions(Graph(model), priority, *players, side).almost_sure()
        assert np.array_equal(sure, pairs.sure(side))
    everywhere = np.ones(model.states, dtype=bool)
    solution = solve(model, Spec(Parity(priority, "parity"), *players), states=everywhere)
    assert pairs.within(solution.lower, solution.upper)
    assert solution.status is Status.CERTIFIED


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(DIRECTIONS))
def test_bounds_enclose_the_value_of_all_pairs(seed, players):
    """Regions are exact, bounds hold in fractions, and both sides meet."""
    compare_with_pairs(seed, players)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(DIRECTIONS))
def test_the_worst_nature_is_a_chain_with_the_value(seed, players):
    """Policy and nature fixed, against the agent or for it, leave a chain within the bounds."""
    model, priority = games(seed)
    agent, nature = players
    spec = Spec(Parity(priority, "parity"), *players)
    everywhere = np.ones(model.states, dtype=bool)
    solution = solve(model, spec, states=everywhere)
    choice = NatureChoice.BEST if agent is nature else NatureChoice.WORST
    chain = induced_model(solution, choice)
    assert not chain.uncertain
    assert chain.rows == chain.states
    again = solve(chain, spec, states=everywhere)
    assert np.all(again.lower <= solution.upper + 1e-6)
    assert np.all(solution.lower <= again.upper + 1e-6)


def test_curved_sets_have_no_vertices():
    """The worst nature of a parity objective is refused in one line where sets are Lp balls."""
    ball = LpBall([0.5, 0.5], 0.1, 2.0)
    model = FactoredMDP.from_rows([[([0], [0, 1])], [([], [1])]], [ball])
    solution = solve(model, Spec(Parity(np.array([1, 0]), "G F b"), MAX, MIN))
    with pytest.raises(UnsupportedError, match="Leave nature its sets"):
        induced_model(solution, NatureChoice.WORST)


def test_a_value_of_zero_needs_its_region():
    """Each component has one parity here; solved as numbers alone, an upper bound stayed 1e-12."""
    compare_with_pairs(7141, DIRECTIONS[2])


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 10_000, 1_000))
def test_bounds_enclose_the_value_of_ten_thousand_games(first):
    """As above, over many games; half of them with opponents who may linger."""
    for seed in range(first, first + 1_000):
        compare_with_pairs(seed, DIRECTIONS[seed // 2 % 4])


# seeds of games of which regions and policies alone leave the bounds apart (found by trying them)
PAIRED = [52, 61, 217]
PRIORITIES = "".join(f"State: {k} {{{k}}} [!0&!1] 0 [0&!1] 1 [!0&1] 2 [0&1] 3 " for k in range(4))
FOUR = f"""HOA: v1 States: 4 Start: 0 AP: 2 "odd" "high" acc-name: parity max even 4
Acceptance: 4 t --BODY-- {PRIORITIES} --END--"""


def paired(seed):
    """Return the solution of such a game by an automaton that reads priorities off labels."""
    model, priority = lingering(seed)
    model = replace(model, labels={"odd": priority % 2 == 1, "high": priority >= 2})
    players = "maxmin" if seed % 2 == 0 else "minmax"
    return solve(model, f'P{players}=? [ G F "odd" ]', automaton=HoaAutomaton(FOUR))


@pytest.mark.parametrize("seed", PAIRED)
def test_a_pair_of_strategies_is_the_certificate(seed, tmp_path):
    """Nature's sets are in the file; the checker proves both sides with them, and not without."""
    solution = paired(seed)
    assert solution.status is Status.CERTIFIED
    assert solution.restriction is not None
    save(solution, tmp_path / "result.rfmdp")
    again = load(tmp_path / "result.rfmdp")
    assert np.array_equal(again.restriction.upper, solution.restriction.upper)
    assert verify(tmp_path / "result.rfmdp").valid
    assert not verify(replace(solution, restriction=None)).valid


@pytest.mark.parametrize("seed", PAIRED)
def test_sets_that_nature_does_not_have_are_found(seed):
    """A box with a member outside of its set, of the wrong size, or at no place."""
    solution = paired(seed)
    sets = solution.restriction
    for forged in (
        replace(sets, lower=0.0 * sets.lower, upper=0.0 * sets.upper + 1.0),
        replace(sets, upper=sets.upper[:-1]),
        replace(sets, places=sets.places + 10**6),
        replace(sets, lower=1.0 - sets.upper, upper=1.0 - sets.lower),
    ):
        kind, header, arrays = record_of(replace(solution, restriction=forged))
        assert not verdict_of(kind, header, arrays).valid


ROUND = [[([1], [1, 0])], [([], [0]), ([], [2])], [([0], [3, 4])], [([], [3])], [([], [4])]]
THIRDS = [[([1], [1, 0, 2])], *ROUND[1:]]


@pytest.mark.parametrize("radius", [1.0, 0.8, 0.1])
def test_lp_balls_of_two_outcomes_are_intervals(radius):
    """Polytopes inside and around them agree: |x|_2 = |x|_1 / sqrt(2) for x = (t, -t)."""
    labels = {"a": [True, False, False, True, False]}
    half = radius / np.sqrt(2.0)
    box = Interval(np.maximum(0.5 - half, [0.0, 0.0]), np.minimum(0.5 + half, [1.0, 1.0]))
    values = []
    for uset in (LpBall([0.5, 0.5], radius, 2.0), box):
        model = FactoredMDP.from_rows(ROUND, [COIN, uset], labels=labels)
        answer = check(model, 'Pmaxmin=? [ F G "a" ]')
        assert answer.certified
        values.append(answer)
    assert values[0].lower <= values[1].upper
    assert values[1].lower <= values[0].upper


@pytest.mark.parametrize("radius", [0.2, 0.45, 0.7])
@pytest.mark.parametrize("players", ["maxmin", "minmax"])
def test_lp_balls_are_between_polytopes(radius, players):
    """With three outcomes the status may be open; the bounds enclose those of a ball's corners."""
    labels = {"a": [True, False, False, True, False]}
    ball = LpBall([0.4, 0.3, 0.3], radius, 2.0)
    model = FactoredMDP.from_rows(THIRDS, [COIN, ball], labels=labels)
    solution = solve(model, f'P{players}=? [ F G "a" ]')
    # members of the ball: nature with these alone is weaker, so her values are on one side
    angles = np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False)
    plane = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) / np.sqrt([[2.0], [6.0]])
    points = ball.nominal + 0.999 * radius * (
        np.cos(angles)[:, None] * plane[0] + np.sin(angles)[:, None] * plane[1]
    )
    inside = [p / p.sum() for p in points if (p >= 0.0).all()] + [ball.nominal]
    weaker = FactoredMDP.from_rows(THIRDS, [COIN, Polytope(inside)], labels=labels)
    bounds = solve(weaker, f'P{players}=? [ F G "a" ]').at_initial()
    if players == "maxmin":
        assert solution.at_initial().lower <= bounds.upper
    else:
        assert bounds.lower <= solution.at_initial().upper
    assert not verify(solution).failed


@settings(max_examples=15, deadline=None)
@given(trees(6), st.lists(words(), min_size=5, max_size=5))
def test_spot_accepts_what_the_formula_means(tree, lassos):
    """The automaton of Spot, by its text, and the definition agree on words that repeat."""
    pytest.importorskip("spot")
    automaton = translate(tree, "formula")
    places = [int(name[1:]) for name in automaton.atoms]
    for word, loop in lassos:
        read = [tuple(letter[k] for k in places) for letter in word]
        assert verdict(automaton, read, loop) == holds(tree, word, loop)[0]


LASSO = """
mdp
module m
  s : [0..4];
  [stay] s=0 -> 0.5 : (s'=1) + 0.5 : (s'=2);
  [go] s=0 -> 0.3 : (s'=3) + 0.7 : (s'=0);
  [] s=1 -> 0.9 : (s'=0) + 0.1 : (s'=4);
  [a] s=2 -> (s'=2);
  [b] s=2 -> 0.6 : (s'=0) + 0.4 : (s'=4);
  [] s=3 -> 0.5 : (s'=3) + 0.5 : (s'=2);
  [] s=4 -> true;
endmodule
label "a" = s=1|s=2;
label "b" = s=3|s=0;
label "end" = s=4;
"""
RECURRENT = ['F (G (!"end"))', 'G (!"b" | (F "a"))', 'G (F "a")', 'F ("b" & (G !"end"))']
FORMULAS = [
    *RECURRENT,
    '(G F "a") & (G F "b")',
    '(F G "a") | (G F "b")',
    '(F (G !"b")) | (F "end")',
    '!"end" U (G "a")',
]


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("direction", ["max", "min"])
def test_nominal_values_are_those_of_storm(formula, direction):
    """On known probabilities the values are Storm's, by its own LTL checker."""
    pytest.importorskip("spot")
    model = parse_prism(LASSO)
    found = check(model, f"P{direction}=? [ {formula} ]")
    try:
        expected = storm_value(model, f"P{direction}=? [ {formula} ]")[model.initial[0]]
    except RuntimeError as error:  # built without Spot
        pytest.skip(str(error))
    assert found.certified
    assert found.lower - 1e-9 <= expected <= found.upper + 1e-9


@pytest.mark.parametrize("formula", FORMULAS)
def test_an_opposing_nature_is_between_the_extremes(formula):
    """With sets around the same probabilities, maxmin is at most the nominal max."""
    pytest.importorskip("spot")
    model = parse_prism(LASSO)
    robust = model.with_radius(0.1)
    found = check(robust, f"Pmaxmin=? [ {formula} ]")
    assert found.lower <= check(model, f"Pmax=? [ {formula} ]").upper
    assert check(robust, f"Pminmin=? [ {formula} ]").lower <= found.upper


@pytest.mark.parametrize("players", ["maxmin", "minmax", "maxmax", "minmin"])
@pytest.mark.parametrize("formula", FORMULAS)
def test_results_of_automata_are_proven_again(formula, players, tmp_path):
    """The checker proves regions and blocks by itself; Spot's automaton is the claim, it says."""
    pytest.importorskip("spot")
    model = parse_prism(LASSO).with_radius(0.1)
    solution = solve(model, f"P{players}=? [ {formula} ]")
    save(solution, tmp_path / "result.rfmdp")
    verdict = verify(tmp_path / "result.rfmdp", model=model)
    assert str(load(tmp_path / "result.rfmdp").spec) == str(solution.spec)
    assert verdict.valid, str(verdict)
    (automaton,) = (text for word, text in verdict.claims if word == "automaton")
    assert ("claim" in automaton) == (formula not in RECURRENT)


@pytest.mark.parametrize("formula", RECURRENT)
@pytest.mark.parametrize("players", ["maxmin", "minmax"])
def test_automata_of_recurrent_formulas_are_as_good_as_those_of_spot(formula, players):
    """Both ways prove the same value; `& true U true` makes the formula one for Spot."""
    pytest.importorskip("spot")
    model = parse_prism(LASSO).with_radius(0.1)
    one = check(model, f"P{players}=? [ {formula} ]")
    other = check(model, f"P{players}=? [ ({formula}) & (G F true) ]")
    assert one.certified
    assert other.certified
    assert max(one.lower, other.lower) <= min(one.upper, other.upper)
    assert one.upper - one.lower <= 1e-6


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from(DIRECTIONS))
def test_the_checker_proves_what_holds_almost_surely(seed, players):
    """The checker's own regions are those of all pairs of strategies."""
    model, priority = games(seed)
    pairs = pairs_of(ParityPairs, model, priority, *players)
    assume(pairs is not None)
    _, header, arrays = record_of(model)
    pulls = [1 if pull is MAX else -1 for pull in players]
    game = Game(read_model(header, Fields(arrays)), *pulls, None)
    for sign, side in ((1, MAX), (-1, MIN)):
        winning = Winning(game, priority, sign)
        assert np.array_equal(winning.everywhere(), pairs.sure(side))
        assert not winning.doubt


def test_a_forged_region_is_found():
    """A state that is called won almost surely, and is not, is not proven."""
    model = FactoredMDP.from_rows(T1, [COIN, ANY], labels={"a": [True, False, False, True, False]})
    solution = solve(model, 'Pmaxmin=? [ G F "a" ]', automaton=HoaAutomaton(ALWAYS_AGAIN))
    assert verify(solution).valid
    kind, header, arrays = record_of(solution)
    arrays = {name: np.array(array) for name, array in arrays.items()}
    for name in ("lower", "upper", "value", "witness.lower", "witness.upper"):
        arrays[name][:] = 1.0
    arrays["block"][:] = -1
    assert verdict_of(kind, header, arrays).failed


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("[!0] 1 State: 1", "State: 1"), "one transition"),
        (("Buchi", "generalized-Buchi"), "parity"),
        (("HOA: v1", "HOA: v2"), "HOA: v1"),
        (("[0] 0 [!0] 1 --END--", "[0] 7 [!0] 1 --END--"), "no state 7"),
        (('"a"', '"c"'), "propositions"),
    ],
)
def test_wrong_automata_are_refused(change, reason):
    """A text that is no deterministic parity automaton over known names is refused in one line."""
    model = FactoredMDP.from_rows(T1, [COIN, ANY], labels={"a": [True] + [False] * 4})
    with pytest.raises((FileError, ModelError), match=reason):
        check(
            model, 'Pmaxmin=? [ G F "a" ]',
            automaton=HoaAutomaton(ALWAYS_AGAIN.replace(*change)),
        )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "count", "colours", "accepted"),
    [
        ("parity max even 3", 3, [0, 1], False),
        ("parity max even 3", 3, [1, 2], True),
        ("parity min even 3", 3, [1, 2], False),
        ("parity min even 3", 3, [0, 1], True),
        ("parity min odd 3", 3, [1, 2], True),
        ("parity max odd 3", 3, [1, 2], False),
        ("parity min even 2", 2, [], True),
        ("parity max even 2", 2, [], False),
        ("Buchi", 1, [0], True),
        ("co-Buchi", 1, [0], False),
        ("co-Buchi", 1, [], True),
        ("all", 0, [], True),
        ("none", 0, [], False),
        ("Rabin 1", 2, [1], True),
        ("Rabin 1", 2, [0, 1], False),
        ("Streett 1", 2, [0, 1], True),
        ("Streett 1", 2, [0], False),
    ],
)
def test_acceptance_of_hoa(name, count, colours, accepted):
    """Colours that come for ever are accepted as the definition of each condition says."""
    cycle = max(len(colours), 1)
    lines = [
        f"State: {k} [t] {(k + 1) % cycle} {{{colours[k] if colours else ''}}}"
        for k in range(cycle)
    ]
    text = f"HOA: v1 Start: 0 AP: 0 acc-name: {name} Acceptance: {count} t --BODY--"
    automaton = HoaAutomaton(f"{text} {' '.join(lines)} --END--")
    assert verdict(automaton, [()], 0) == accepted
