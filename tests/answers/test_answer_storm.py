"""Properties against Storm: the same text of model and property gives the same value."""

import warnings
from functools import lru_cache

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from examples import half
from language.case_studies import ALL, CONSENSUS, DIE, HERMAN, ROBOT
from language.random_models import model_texts
from rfmdp.answers.answer import check
from rfmdp.language.build import parse_prism

stormpy = pytest.importorskip("stormpy")

WALK = """
mdp
module walk
  x : [0..6] init 3;
  t : [0..1];
  [left] x>0 & x<6 -> 0.7 : (x'=x-1) + 0.3 : (x'=x+1);
  [right] x>0 & x<6 -> 0.45 : (x'=x+1) + 0.45 : (x'=x-1) + 0.1 : (t'=1);
  [rest] x>1 & x<5 & t=0 -> (t'=1);
  [end] x=0 | x=6 -> true;
endmodule
label "low" = x=0;
label "high" = x=6;
label "ends" = x=0 | x=6;
label "middle" = x>1 & x<5;
label "marked" = t=1;
rewards "cost" [left] true : 1; [right] x>2 : 2.5; x=3 : 0.25; endrewards
rewards "place" true : x; endrewards
"""

CASES = {
    "walk": (
        WALK,
        [
            'P{}=? [ F "high" ]',
            'P{}=? [ F "high" & "marked" ]',
            'P{}=? [ "middle" U "marked" ]',
            'P{}=? [ !"marked" U "ends" ]',
            'P{}=? [ X "marked" ]',
            'P{}=? [ F<=6 "ends" ]',
            'P{}=? [ F<6 "ends" ]',
            'P{}=? [ F[2,5] "ends" ]',
            'P{}=? [ F=4 "ends" ]',
            'P{}=? [ !"marked" U<=7 "ends" ]',
            'P{}=? [ !"marked" U[3,7] "ends" ]',
            'P{}=? [ G !"marked" ]',
            'P{}=? [ G "middle" ]',
            'P{}=? [ F P>=0.4 [ X "ends" ] ]',
            'P{}=? [ "middle" U P<0.2 [ F<=3 "low" ] ]',
            'P{}=? [ G P>0 [ F<=4 "high" ] ]',
        ],
        [
            'R{{"cost"}}{}=? [ F "ends" ]',
            'R{{"cost"}}{}=? [ C<=9 ]',
            'R{{"cost"}}{}=? [ C<=0 ]',
            'R{{"place"}}{}=? [ I=5 ]',
            'R{{"cost"}}{}=? [ F "high" ]',
            'R{{"cost"}}{}=? [ C{{discount=0.9}} ]',
            'R{{"cost"}}{}=? [ F P>=0.4 [ X "ends" ] ]',
        ],
    ),
    "consensus": (CONSENSUS, ['P{}=? [ F "finished" ]', 'P{}=? [ F<=20 "finished" ]'],
                  ['R{{"moves"}}{}=? [ F "finished" ]', 'R{{"moves"}}{}=? [ C<=15 ]']),
    "robot": (ROBOT, ['P{}=? [ !"met" U "goal" ]', 'P{}=? [ F<=5 "goal" ]'],
              ['R{{"cost"}}{}=? [ C<=6 ]', 'R{{"cost"}}{}=? [ F "goal" ]']),
}  # fmt: skip

CHAINS = {
    "die": (DIE, ['P=? [ F "done" ]', 'P=? [ F<=4 "done" ]', 'P=? [ F[3,3] "done" ]',
                  'R{"flips"}=? [ F "done" ]', 'R{"flips"}=? [ C<=4 ]', 'R{"face"}=? [ I=6 ]']),
    "leader": (ALL["leader"], ['P=? [ F<=5 "elected" ]', 'R{"rounds"}=? [ F "elected" ]']),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return where Storm finds the texts of models."""
    return tmp_path_factory.mktemp("storm")


@lru_cache(maxsize=4)  # a model is asked for many properties
def storm_model(text, folder):
    """Return the model that Storm builds."""
    file = folder / "model.prism"
    file.write_text(text)
    options = stormpy.BuilderOptions()
    options.set_build_all_labels()
    options.set_build_all_reward_models()
    return stormpy.build_model(stormpy.parse_prism_program(str(file)), options=options)


def storm_values(text, prop, folder):
    """Return Storm's value in every initial state."""
    model = storm_model(text, folder)
    environment = stormpy.environments.sound()
    environment.solver().min_max().precision = stormpy.Rational("1/10000000000")
    result = stormpy.model_checking(model, stormpy.parse_property(prop), environment=environment)
    return [float(result.get_value(state)) for state in model.initial_states]


our_model = lru_cache(maxsize=4)(parse_prism)


def our_answer(text, prop):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return check(our_model(text), prop)


def texts():
    for name, (_, probabilities, rewards) in CASES.items():
        for direction in ("min", "max"):
            for prop in (*probabilities, *rewards):
                yield name, prop.format(direction)


@pytest.mark.parametrize(("name", "prop"), list(texts()))
def test_mdp_value_is_that_of_storm(name, prop, folder):
    """Storm's value lies within our bounds."""
    model = CASES[name][0]
    (value,) = storm_values(model, prop.replace("C{discount=0.9}", "Cdiscount=0.9"), folder)
    answer = our_answer(model, prop)
    assert answer.certified
    slack = 1e-8 * max(1.0, min(abs(value), 1e6))
    assert answer.lower <= value + slack
    assert answer.upper >= value - slack
    assert answer.value == pytest.approx(value, rel=3e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "prop"), [(name, prop) for name, (_, props) in CHAINS.items() for prop in props]
)
def test_chain_value_is_that_of_storm(name, prop, folder):
    """The same for Markov chains, without a direction."""
    model = CHAINS[name][0]
    (value,) = storm_values(model, prop, folder)
    answer = our_answer(model, prop)
    assert answer.certified
    assert answer.value == pytest.approx(value, rel=1e-6, abs=1e-9)


def test_several_initial_states(folder):
    """Filters over initial states are those of Storm's values."""
    values = storm_values(HERMAN, 'P=? [ F<=3 "stable" ]', folder)
    for name, value in (("min", min(values)), ("max", max(values))):
        answer = our_answer(HERMAN, f'filter({name}, P=? [ F<=3 "stable" ], "init")')
        assert answer.value == pytest.approx(value)
    average = our_answer(HERMAN, 'filter(avg, P=? [ F<=3 "stable" ], "init")').value
    assert average == pytest.approx(sum(values) / len(values))


@pytest.mark.parametrize(
    ("weak", "until"),
    [
        ('P{}=? [ "middle" W "marked" ]', ('"middle" & !"marked"', '!"middle" & !"marked"')),
        ('P{}=? [ "ends" R !"marked" ]', ('!"ends"', '"marked"')),
        ('P{}=? [ "middle" W<=5 "marked" ]', ('"middle" & !"marked"', '!"middle" & !"marked"')),
        ('P{}=? [ "ends" R<=5 !"marked" ]', ('!"ends"', '"marked"')),
        ('P{}=? [ G<=5 "middle" ]', ("true", '!"middle"')),
    ],
)
def test_weak_operators_are_complements(weak, until, folder):
    """Storm has no W and R: they are one minus an until, with the other direction."""
    bound = "<=5" if "<=5" in weak else ""
    for direction, other in (("min", "max"), ("max", "min")):
        prop = f"P{other}=? [ ({until[0]}) U{bound} ({until[1]}) ]"
        (value,) = storm_values(WALK, prop, folder)
        answer = our_answer(WALK, weak.format(direction))
        assert answer.value == pytest.approx(1 - value, abs=1e-6)


ASKED = [
    'P{}=? [ F "top" ]',
    'P{}=? [ F<=3 "top" ]',
    'P{}=? [ X "top" ]',
    'P{}=? [ "low" U "top" ]',
    'P{}=? [ "low" U<=4 "top" ]',
    'P{}=? [ G !"top" ]',
    'P{}=? [ F[1,2] "top" ]',
    'P{}=? [ F "deadlock" ]',
    'P{}=? [ F P>=0.5 [ X "top" ] ]',
    "P{}=? [ F R>=1 [ C<=2 ] ]",
    'R{}=? [ F "top" ]',
    "R{}=? [ C<=4 ]",
    "R{}=? [ I=2 ]",
]


@settings(half, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    text=model_texts(kinds=("mdp", "dtmc")).filter(lambda text: "<=>" not in text),
    asked=st.lists(st.sampled_from(ASKED), min_size=2, max_size=4, unique=True),
    direction=st.sampled_from(["min", "max"]),
)
def test_random_models_have_storms_values(text, asked, direction, folder):
    """Any model, any operator: one value. Storm's parser does not know `<=>`."""
    text = text.replace('label "top"', 'label "low" = x0=0;\nlabel "top"')
    for template in asked:
        prop = template.format("" if text.startswith("dtmc") else direction)
        (value,) = storm_values(text, prop, folder)
        answer = our_answer(text, prop)
        assert answer.certified
        assert answer.value == pytest.approx(value, rel=2e-6, abs=2e-6)
