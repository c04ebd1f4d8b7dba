"""Properties as objects: reading them, and the specifications they stand for."""

import numpy as np
import pytest

from rfmdp.answers.answer import check
from rfmdp.answers.property import parse_properties, parse_property
from rfmdp.errors import PrismError, UnsupportedError
from rfmdp.language.build import parse_prism
from rfmdp.language.source import read_text
from rfmdp.objective import (
    MAX,
    MIN,
    Cumulative,
    Discounted,
    Globally,
    Instantaneous,
    Next,
    Reach,
    ReachReward,
    Total,
    Until,
)
from rfmdp.solving import solve

TEXT = """
mdp
module m
  x : [0..3];
  [a] x=0 -> 0.5 : (x'=1) + 0.5 : (x'=2);
  [b] x=0 -> 0.2 : (x'=1) + 0.8 : (x'=3);
  [c] x>0 -> true;
endmodule
label "one" = x=1;
rewards "cost" [a] true : 2; [b] true : 3; endrewards
"""


@pytest.fixture(scope="module")
def model():
    return parse_prism(TEXT)


@pytest.mark.parametrize(
    ("text", "kind", "agent", "nature"),
    [
        ('Pmaxmin=? [ F "one" ]', Reach, MAX, MIN),
        ('Pmax=? [ F "one" ]', Reach, MAX, MAX),
        ('Pmin=? [ F<=3 "one" ]', Until, MIN, MIN),
        ("Pminmax=? [ x<2 U x=3 ]", Until, MIN, MAX),
        ('Pmax=? [ G !"one" ]', Globally, MAX, MAX),
        ('Pmax=? [ !(F "one") ]', Globally, MAX, MAX),
        ("Pmax=? [ X x=2 ]", Next, MAX, MAX),
        ("Pmax=? [ !(X x=2) ]", Next, MAX, MAX),
        ('P>=0.9 [ F "one" ]', Reach, MIN, MIN),
        ('P<0.9 [ F "one" ]', Reach, MAX, MAX),
        ('R{"cost"}min=? [ F x>0 ]', ReachReward, MIN, MIN),
        ('R{"cost"}max=? [ C<=4 ]', Cumulative, MAX, MAX),
        ('R{"cost"}max=? [ C ]', Total, MAX, MAX),
        ('R{"cost"}max=? [ C{discount=0.5} ]', Discounted, MAX, MAX),
        ('R{"cost"}max=? [ I=2 ]', Instantaneous, MAX, MAX),
    ],
)
def test_spec_of_a_single_operator(text, kind, agent, nature, model):
    """A single P or R is a specification, and `solve` gives what `check` gives."""
    prop = parse_property(text)
    spec = prop.spec()
    assert isinstance(spec.objective, kind)
    assert (spec.agent, spec.nature) == (agent, nature)
    found = solve(model, prop).at_initial()
    answer = check(model, prop)
    assert (found.lower, found.upper) == pytest.approx((answer.lower, answer.upper), abs=1e-6)


def test_step_bounds_use_constants_of_the_text():
    """Steps of a specification are numbers, also if they were constants."""
    spec = parse_property("const int k = 3; const int n; Pmax=? [ F<=k+n x=1 ]", {"n": 2}).spec()
    assert spec.objective.latest == 5
    named = parse_property("formula k = 1+2; Pmax=? [ F<=k x=1 ]").spec()
    assert named.objective.latest == 3
    with pytest.raises(PrismError, match="number of steps must be of type int"):
        parse_property("Pmax=? [ F<=2.5 x=1 ]").spec()
    strict = parse_property("Pmax=? [ true U(3,7) x=1 ]".replace("(3,7)", "<7")).spec()
    assert strict.objective.latest == 6


def test_states_of_a_specification_know_nested_operators(model):
    """A nested P is evaluated when the model is known."""
    spec = parse_property('Pmax=? [ X P>=1 [ G "one" ] ]').spec()
    assert spec.objective.target.holds(model).tolist() == [False, True, False, False]


def test_solutions_call_sets_of_states_by_their_formulas(model):
    """Every solution of an answer says what it measured, also if the property is more than it."""
    answer = check(model, 'const int k = 2; Pmax=? [ F x=k ] - Pmin=? [ !"one" U<=3 x=3 ]')
    assert [str(solution.spec) for solution in answer.solutions] == [
        "Pmaxmax=? [ F (x=2) ]",
        'Pminmin=? [ !"one" U<=3 (x=3) ]',
    ]
    single = check(
        model, "const int k; formula there = x=k; Pmax=? [ F<=k there ]", constants={"k": 2}
    )
    assert str(single.solution.spec) == "Pmaxmax=? [ F<=2 (x=2) ]"
    nested = check(model, "Pmax=? [ F P>=1 [ F x=2 ] ]")
    assert [str(solution.spec.objective.target.text) for solution in nested.solutions] == [
        "x=2",
        "P>=1.0 [ F x=2 ]",
    ]


@pytest.mark.parametrize(
    "text",
    [
        'filter(min, Pmax=? [ F "one" ])',
        '1-Pmax=? [ F "one" ]',
        "Pmax=? [ x=1 ]",
        "R{1}max=? [ C ]",
        "x=1",
    ],
)
def test_more_than_a_specification_is_refused(text):
    """What is no single specification says so and names `check`."""
    with pytest.raises(UnsupportedError, match="check"):
        parse_property(text).spec()


def test_texts_and_files(tmp_path):
    """A file gives all its properties; a single text must be one property."""
    file = tmp_path / "all.props"
    file.write_text('const int k;\n"first": Pmax=? [ F<=k x=1 ];\nPmin=? [ F x=1 ]\n')
    first, second = parse_properties(read_text(file))
    assert (first.name, second.name) == ("first", None)
    assert str(first) == first.text == "Pmax=? [ F<=k x=1 ]"
    with pytest.raises(PrismError, match="expected one property, found 2"):
        parse_property("x=1; x=2")
    with pytest.raises(PrismError, match="expected one property, found 0"):
        parse_property("const int k = 1;")
    with pytest.raises(PrismError, match="not supported"):
        parse_property("multi(Pmax=? [ F x=1 ])")
    assert parse_properties("multi(Pmax=? [ F x=1 ]); x=1")[1].text == "x=1"


def test_unsupported_property_of_a_file_raises_when_asked(model):
    """The others of the file still run."""
    bad, good = parse_properties('multi(Pmax=? [ F x=1 ]); Pmax=? [ F "one" ]')
    with pytest.raises(PrismError, match="multi"):
        check(model, bad)
    assert check(model, good).value == pytest.approx(0.5)


def test_labels_of_any_model_may_be_used():
    """A model without text, from arrays, has labels that properties know."""
    from rfmdp.model.arrays import FactoredMDP
    from rfmdp.sets.families import Interval

    move = Interval([0.2, 0.4], [0.6, 0.8])
    rows = [[([0], [1, 2])], [([], [1])], [([], [2])]]
    model = FactoredMDP.from_rows(rows, [move], labels={"goal": np.array([False, True, False])})
    assert check(model, 'Pmin=? [ F "goal" ]').value == pytest.approx(0.2)
    assert check(model, 'Pmax=? [ F "goal" & !"init" ]').value == pytest.approx(0.6)
    with pytest.raises(PrismError, match="unknown label"):
        check(model, 'Pmax=? [ F "nothing" ]')
