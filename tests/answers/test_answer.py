"""Answers: hand-computed values, PRISM's rules for directions and filters, what stays open."""

import math

import pytest

from language.case_studies import CONSENSUS
from rfmdp.answers.answer import check
from rfmdp.answers.property import parse_properties
from rfmdp.errors import ModelError, NotCertifiedError, PrismError, PrismWarning
from rfmdp.inner.solvers import IntervalArithmetic
from rfmdp.language.build import parse_prism
from rfmdp.outer.solution import Status
from rfmdp.outer.task import Limits

COIN = """
dtmc
module m
  x : [0..3];
  [] x=0 -> 0.25 : (x'=1) + 0.75 : (x'=2);
  [] x=2 -> 0.5 : (x'=0) + 0.5 : (x'=3);
  [] x=1 | x=3 -> true;
endmodule
label "one" = x=1;
label "end" = x=1 | x=3;
rewards "steps" x=0 | x=2 : 1; endrewards
rewards "value" true : x; endrewards
"""  # P(F x=1) = 0.25 / (1 - 0.375) = 0.4, expected steps 1.75 / 0.625 = 2.8

SLIPPERY = """
imdp
module m
  x : [0..2];
  [a] x=0 -> [0.2,0.4] : (x'=1) + [0.6,0.8] : (x'=2);
  [b] x=0 -> [0.1,0.7] : (x'=1) + [0.3,0.9] : (x'=2);
  [stop] x>0 -> true;
endmodule
label "goal" = x=1;
"""

TWO = """
imdp
module a
  x : [0..2];
  [go] x=0 -> [0.4,0.6] : (x'=1) + [0.4,0.6] : (x'=2);
  [go] x>0 -> true;
endmodule
module b
  y : [0..2];
  [go] y=0 -> [0.3,0.8] : (y'=1) + [0.2,0.7] : (y'=2);
  [go] y>0 -> true;
endmodule
label "same" = x=y & x>0;
"""

MANY = "dtmc module m x : [0..3]; [] x<3 -> 0.5 : (x'=x+1) + 0.5 : (x'=0); [] x=3 -> true; "
MANY += "endmodule init x<2 endinit"


@pytest.fixture(scope="module")
def coin():
    return parse_prism(COIN)


@pytest.fixture(scope="module")
def slippery():
    return parse_prism(SLIPPERY)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('P=? [ F "one" ]', 0.4),
        ("P=? [ F x=3 ]", 0.6),
        ('P=? [ G !"one" ]', 0.6),
        ('P=? [ !(G !"one") ]', 0.4),
        ("P=? [ X x=2 ]", 0.75),
        ("P=? [ !(X x=2) ]", 0.25),
        ("P=? [ x=0 U x=2 ]", 0.75),
        ("P=? [ x=0 U x=3 ]", 0.0),
        ('P=? [ F<=1 "one" ]', 0.25),
        ('P=? [ F<2 "one" ]', 0.25),
        ('P=? [ F<=3 "one" ]', 0.25 + 0.375 * 0.25),
        ("P=? [ F=2 x=0 ]", 0.375),
        ("P=? [ F[1,2] x=0 ]", 0.375),
        ("P=? [ F>=1 x=0 ]", 0.375),
        ("P=? [ F>2 x=0 ]", 0.375**2),
        ("P=? [ G[1,2] x!=0 ]", 0.625),
        ("P=? [ G<=2 x!=1 ]", 0.75),
        ("P=? [ x!=2 W x=1 ]", 0.25),
        ("P=? [ x!=1 W x=3 ]", 0.6),
        ("P=? [ x!=3 W<=2 x=1 ]", 0.625),
        ("P=? [ x=1 R x!=3 ]", 0.4),
        ("P=? [ !(x!=1 W x=3) ]", 0.4),
        ("P=? [ x=0 ]", 1.0),
        ("P=? [ !(x=0) ]", 0.0),
        ('R{"steps"}=? [ F "end" ]', 2.8),
        ('R{"steps"}=? [ F "one" ]', math.inf),
        ('R{"steps"}=? [ C ]', 2.8),
        ('R{"steps"}=? [ C<=2 ]', 1.75),
        ('R{"steps"}=? [ C<=0 ]', 0.0),
        ("R{2}=? [ I=1 ]", 0.25 + 1.5),
        ('R{"value"}=? [ I=0 ]', 0.0),
        ('R{"steps"}=? [ C{discount=0.5} ]', 1.375 / (1 - 0.25 * 0.375)),
        ('R{"steps"}=? [ C{discount=0}<=5 ]', 1.0),
        ('R{"steps"}=? [ C{discount=0.5}<=2 ]', 1 + 0.5 * 0.75),
        ("R=? [ F x=1 | x=3 ]", 2.8),
        ('1-P=? [ F "one" ]', 0.6),
        ('-P=? [ F "one" ]', -0.4),
        ('P=? [ F "one" ] / P=? [ F x=3 ]', 2 / 3),
        ('P=? [ F "one" ] * 2 + x', 0.8),
        ('max(P=? [ F "one" ], P=? [ F x=3 ], 0.1)', 0.6),
        ('P=? [ F "one" ] > 0.39 ? 1 : 0', 1.0),
        ("x+1", 1),
        ("P=? [ F P>=0.5 [ X x=3 ] ]", 0.75),
        ("P=? [ F P>=1 [ X x=3 ] ]", 0.6),
        ('P=? [ X R{"steps"}<2.5 [ F "end" ] ]', 1.0),
        ('filter(min, P=? [ F "one" ])', 0.0),
        ('filter(max, P=? [ F "one" ], x!=1)', 0.4),
        ('filter(avg, P=? [ F "one" ])', (0.4 + 1 + 0.2 + 0) / 4),
        ('filter(sum, P=? [ F "one" ])', 1.6),
        ('filter(+, P=? [ F "one" ], x<2)', 1.4),
        ('filter(count, P>0 [ F "one" ])', 3),
        ('filter(first, P=? [ F "one" ], x>0)', 1.0),
        ('filter(state, P=? [ F "one" ], x=2)', 0.2),
        ('2*filter(max, P=? [ F "one" ], x=2)', 0.4),
        ("filter(max, x)", 3),
        ('P=? [ F x=filter(max, x) & "end" ]', 0.6),
    ],
)
def test_values_by_hand(text, value, coin):
    """The value lies within certified bounds."""
    answer = check(coin, text)
    assert answer.status is Status.CERTIFIED
    assert answer.value == pytest.approx(value, rel=2e-6, abs=1e-12)
    assert answer.lower <= value * (1 + 1e-15) + 1e-15
    assert answer.upper >= value * (1 - 1e-15) - 1e-15


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('P>=0.39 [ F "one" ]', True),
        ('P>0.41 [ F "one" ]', False),
        ('P<0.41 [ F "one" ]', True),
        ('P>=1 [ F "end" ]', True),
        ("P<=0 [ x=0 U x=3 ]", True),
        ('P<1 [ F "end" ]', False),
        ("P>=1 [ X x!=0 ]", True),
        ("P>0 [ F<=3 x=0 & x=1 ]", False),
        ("P>=1 [ G<=4 x<=3 ]", True),
        ("P<=0 [ !(x<=3 U<=2 x<4) ]", True),
        ('R{"steps"}<=2.9 [ F "end" ]', True),
        ('R{"steps"}<1000 [ F "one" ]', False),
        ('P>0.3 [ F "one" ] & P>0.5 [ F x=3 ]', True),
        ('!P>0.3 [ F "one" ] | x=1', False),
        ('P>0.3 [ F "one" ] => x=1', False),
        ('P>0.3 [ F "one" ] <=> P>0.3 [ F x=3 ]', True),
        ('P=? [ F "one" ] < P=? [ F x=3 ]', True),
        ('P=? [ F "one" ] = 0.3', False),
        ('P=? [ F "one" ] != 0.3', True),
        ('filter(forall, P>=0.4 [ F "end" ])', True),
        ('filter(forall, P>0 [ F "one" ])', False),
        ('filter(exists, P<=0 [ F "one" ])', True),
        ('filter(exists, P<=0 [ F "one" ], x<3)', False),
        ('"init"', True),
        ('"deadlock"', False),
        ("x=0", True),
        ('"init" & x=0 & !"one"', True),
    ],
)
def test_truth_by_hand(text, value, coin):
    """A truth value is given if bounds decide it."""
    answer = check(coin, text)
    assert answer.value is value
    assert answer.status is Status.CERTIFIED


def test_bounds_of_what_a_threshold_is_about(coin):
    """With `P>=p` the bounds are those of the probability."""
    answer = check(coin, 'P>=0.3 [ F "one" ]')
    assert answer.lower <= 0.4 <= answer.upper


def test_threshold_that_is_the_value(coin):
    """0.4 >= 0.4 is decided in fractions; with sets that have none it is open."""
    assert check(coin, 'P>=0.4 [ F "one" ]').value is True
    assert check(coin, 'P>0.4 [ F "one" ]').value is False
    ball = coin.with_radius(0.2, exponent=1.0)
    answer = check(ball, 'P>=0.15 [ X "one" ]')
    assert answer.value is None
    assert answer.status is Status.UNDECIDED
    with pytest.raises(NotCertifiedError, match=r"leave 1 open, the first is \(x=0\)"):
        check(ball, 'Pmax=? [ F P>=0.15 [ X "one" ] ]')


def test_irrelevant_open_states_do_no_harm(coin):
    """An open threshold matters only where the formula needs it."""
    answer = check(coin, "P=? [ F P>=0.5 [ X x=3 ] & x!=2 ]")
    assert answer.value == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("text", "value", "nature"),
    [
        ('Pmaxmin=? [ F "goal" ]', 0.2, "min, against the agent (maxmin)"),
        ('Pmaxmax=? [ F "goal" ]', 0.7, "max, with the agent (maxmax)"),
        ('Pminmin=? [ F "goal" ]', 0.1, "min, with the agent (minmin)"),
        ('Pminmax=? [ F "goal" ]', 0.4, "max, against the agent (minmax)"),
        ('Pmax=? [ F "goal" ]', 0.7, "max, with the agent (maxmax)"),
        ('Pmin=? [ F "goal" ]', 0.1, "min, with the agent (minmin)"),
        ('Pmaxmin=? [ G !"goal" ]', 0.6, "min, against the agent (maxmin)"),
        ("Pmaxmin=? [ x=0 W x=2 ]", 0.6, "min, against the agent (maxmin)"),
        ('Pmaxmin=? [ !(F "goal") ]', 0.6, "min, against the agent (maxmin)"),
        ("Pminmax=? [ x=2 R x!=1 ]", 0.8, "max, against the agent (minmax)"),
        ("Pmaxmin=? [ X x=2 ]", 0.6, "min, against the agent (maxmin)"),
        ("Pmaxmin=? [ !(X x=1) ]", 0.6, "min, against the agent (maxmin)"),
        ('P>=0.05 [ F "goal" ]', True, "min, with the agent (minmin)"),
        ('P>=0.15 [ F "goal" ]', False, "min, with the agent (minmin)"),
        ('P<=0.65 [ F "goal" ]', False, "max, with the agent (maxmax)"),
        ('Pmaxmin>=0.15 [ F "goal" ]', True, "min, against the agent (maxmin)"),
    ],
)
def test_directions_on_interval_models(text, value, nature, slippery):
    """Pairs name both players, one word moves both, a bound holds whatever they do."""
    answer = check(slippery, text)
    assert answer.value == pytest.approx(value, abs=1e-6)
    assert answer.nature == nature
    assert answer.certified


def test_value_is_the_guaranteed_side(slippery, coin):
    """Lower if the agent maximises, upper if it minimises."""
    assert (found := check(slippery, 'Pmaxmin=? [ F "goal" ]')).value == found.lower
    assert (found := check(slippery, 'Pminmax=? [ F "goal" ]')).value == found.upper
    assert check(coin, 'P=? [ F "one" ]').nature == "no choice"


def test_interval_chain_needs_natures_direction():
    """On an interval chain min and max are nature's."""
    text = "idtmc module m x:[0..2]; [] x=0 -> [0.2,0.4]:(x'=1) + [0.6,0.8]:(x'=2); "
    model = parse_prism(text + "[] x>0 -> true; endmodule")
    low, high = check(model, "Pmin=? [ F x=1 ]"), check(model, "Pmax=? [ F x=1 ]")
    assert (low.value, high.value) == pytest.approx((0.2, 0.4))
    assert (low.nature, high.nature) == ("min", "max")
    assert low.value == low.lower
    assert high.value == high.upper
    with pytest.raises(PrismError, match=r"must say min or max .*nature"):
        check(model, "P=? [ F x=1 ]")


def test_choices_need_a_direction(slippery):
    """Plain `P=?` and `R=?` are errors where somebody has a choice, as in PRISM."""
    with pytest.raises(PrismError, match=r"'P=\?' must say min or max.*Pmaxmin=\?"):
        check(slippery, "P=? [ F x=1 ]")
    mdp = parse_prism("mdp module m x:[0..1]; [a] true -> (x'=0); [b] true -> (x'=1); endmodule")
    with pytest.raises(PrismError, match=r"Pmin=\? or Pmax=\?$|Pmin=\? or Pmax=\?\n"):
        check(mdp, "P=? [ F x=1 ]")


def test_one_sided_method_leaves_the_other_side_open():
    """Interval arithmetic proves one side of two uncertain modules; the other is not made up."""
    model = parse_prism(TWO)
    inner = IntervalArithmetic()
    answer = check(model, 'Pmin=? [ F "same" ]', inner=inner)
    assert answer.value == pytest.approx(0.2)  # 0.4*0.3 + 0.4*0.2; the exact value is 0.44
    assert (answer.lower, answer.upper) == (answer.value, None)
    assert answer.status is Status.GAP_OPEN
    assert check(model, 'P>0.1 [ F "same" ]', inner=inner).value is True
    open_ = check(model, 'P>0.3 [ F "same" ]', inner=inner)
    assert (open_.value, open_.status) == (None, Status.UNDECIDED)
    assert check(model, 'P>0.3 [ F "same" ]').value is True
    best = check(model, 'Pmax=? [ F "same" ]', inner=inner)
    assert best.value == pytest.approx(0.8)  # not proven from below


def test_several_initial_states():
    """Truth values must hold in all; a number needs a filter."""
    model = parse_prism(MANY)
    assert check(model, "P>0.2 [ F<=2 x=3 ]").value is False
    assert check(model, 'filter(min, P=? [ F<=3 x=3 ], "init")').value == pytest.approx(0.125)
    assert check(model, 'filter(max, P=? [ F<=2 x=3 ], "init")').value == pytest.approx(0.25)
    assert check(model, "2*filter(max, x) + 1").value == 7
    for text in ('filter(state, P=? [ F<=3 x=3 ], "init")', "P=? [ F<=2 x=3 ]"):
        with pytest.raises(ModelError, match=r"found 2: \(x=0\), \(x=1\); use filter\(min"):
            check(model, text)


def test_lists(coin):
    """Print gives the states that are not 0, printall all; truth values and ints are that."""
    found = dict(check(coin, "filter(print, P=? [ X x=3 ])").listing)
    assert sorted(found.values()) == pytest.approx([0.5, 1.0])
    assert len(check(coin, "filter(printall, P=? [ X x=3 ], x<3)").listing) == 3
    assert [x for _, x in check(coin, "filter(printall, x)").listing] == [0, 1, 2, 3]
    assert [x for _, x in check(coin, "filter(print, P>0.4 [ X x=3 ])").listing] == [True, True]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('filter(min, P=? [ F "one" ], x=0 & x=1)', "at least one state"),
        ("P=? [ F x=1 ] & true", "type bool"),
        ("P=? [ F y=1 ]", "unknown name 'y'"),
        ('R{"nothing"}=? [ C ]', "unknown rewards"),
        ("const int k; P=? [ F<=k x=1 ]", "found none for k"),
        ("<<a>> P=? [ F x=1 ]", "game operator"),
        ("multi(P=? [ F x=1 ], P=? [ F x=2 ])", "multi-objective"),
        ("P>=2 [ F x=1 ]", "range 0..1"),
        ("P=? [ F mod(1,x)=0 ]", r"in state \(x=0\)|mod"),
        ("P>=0.1 [" * 60 + " X x=1 " + "]" * 60, "nested at most"),
    ],
)
def test_what_cannot_be_asked(text, reason, coin):
    """A clear message, no traceback of something else."""
    with pytest.raises((PrismError, ModelError), match=reason):
        check(coin, text)


def test_names_references_and_constants(coin):
    """A property may use others by name, and constants given at the end."""
    text = 'const int k; label "late" = x=3; "a": P=? [ F<=k "late" ]; "b": 2*"a";'
    first, second = parse_properties(text)
    assert check(coin, first, constants={"k": 2}).value == pytest.approx(0.375)
    assert check(coin, second, constants={"k": "1+1"}).value == pytest.approx(0.75)


def test_limits_end_with_what_is_proven():
    """A limit is a status; bounds hold, and a threshold between them is not decided."""
    text = "dtmc module m x:[0..60]; [] x>0 & x<60 -> 0.5:(x'=x-1)+0.5:(x'=x+1); "
    model = parse_prism(text + "[] x=0 | x=60 -> true; endmodule init x=20 endinit")
    limits = Limits(precision=1e-12, sweeps=2)
    answer = check(model, "P=? [ F x=60 ]", limits=limits)
    assert answer.lower <= 1 / 3 <= answer.upper
    assert answer.status in (Status.SWEEP_LIMIT, Status.CERTIFIED, Status.GAP_OPEN)


def test_nested_formulas_are_decided_exactly():
    """A method that proves one side only is asked for the value, not for what is inside it."""
    model = parse_prism(TWO)
    text = 'Pmin=? [ F P>=0.44 [ F "same" ] ]'
    with pytest.warns(PrismWarning, match="exact method, not by interval"):
        answer = check(model, text, inner=IntervalArithmetic())
    assert answer.value == 1.0  # the bound is met at once; interval arithmetic has 0.2 inside
    assert check(model, 'P>=0.44 [ F "same" ]', inner=IntervalArithmetic()).value is None


def test_very_many_steps(coin, slippery):
    """Steps that change nothing cost nothing, and the bounds still hold."""
    answer = check(coin, 'P=? [ F<=100000 "one" ]')
    assert answer.certified
    assert answer.lower <= 0.4 <= answer.upper
    best = check(slippery, 'Pmaxmin=? [ F<=50000 "goal" ]')
    assert best.lower <= 0.2 <= best.upper
    rows = best.solution.policy.rows
    assert len(rows) == 50000
    assert (rows == rows[-1]).all()


def test_a_state_nobody_asked_about_may_overflow(coin):
    """A value that does not exist in another state does not matter."""
    assert check(coin, "filter(state, x*1500000000, x=0)").value == 0
    with pytest.raises(PrismError, match="32 bits"):
        check(coin, "filter(max, x*1500000000)")


@pytest.mark.parametrize("text", ["filter(forall, P>=0 [ F x=1 ], x=2)", "x=0"])
def test_bounds_of_another_number_are_not_told(text, coin):
    """A truth value that compares no number at the initial state has no bounds."""
    found = check(coin, text)
    assert (found.value, found.lower, found.upper) == (True, None, None)


def test_certainty_within_steps_is_exact(coin):
    """What cannot happen within some steps has probability 0, not a rounding error."""
    three = "dtmc module m x:[0..3]; [] x=0 -> 0.3:(x'=1) + 0.7:(x'=2); "
    model = parse_prism(three + "[] x>0&x<3 -> 0.1:(x'=x) + 0.9:(x'=3); [] x=3 -> true; endmodule")
    for text, value in (("P=? [ F<=1 x=3 ]", 0.0), ("P=? [ G<=1 x<3 ]", 1.0)):
        found = check(model, text)
        assert (found.value, found.lower, found.upper) == (value, value, value)


@pytest.mark.parametrize("radius", [0.0, 0.02])
@pytest.mark.parametrize("text", ["Pmax", "Pmin", 'R{"moves"}max', 'R{"moves"}min'])
def test_a_shared_coin_is_certified_at_every_precision(text, radius):
    """A walk that mixes slowly, near 0 and 1, pushed by who minimises or maximises."""
    model = parse_prism(CONSENSUS)
    model = model.with_radius(radius) if radius else model
    nature = ("min" if text.endswith("max") else "max") if radius else ""
    end = "finished & counter<=left" if text.startswith("P") else "finished"
    end = end.replace("finished", '"finished"')
    for digits in range(3, 10):
        limits = Limits(precision=10.0**-digits)
        found = check(model, f"{text}{nature}=? [ F {end} ]", limits=limits)
        assert found.status is Status.CERTIFIED, (digits, found.lower, found.upper)
        assert 0.0 < found.lower <= found.upper < math.inf


def test_certainty_within_steps_is_exact_beside_rows_that_are_rounded():
    """Two uncertain modules: one error for all states of a step, and still exactly 0 and 1."""
    walk = "[a] x<6 -> [0.3,0.4]:(x'=x+1) + [0.6,0.7]:(x'=x); [a] x=6 -> true; endmodule "
    model = parse_prism(f"idtmc module m x:[0..6]; {walk} module n = m [x=y] endmodule")
    for text, value in (("Pmax=? [ F<=2 x=3 ]", 0.0), ("Pmin=? [ G<=2 x<3 ]", 1.0)):
        found = check(model, text)
        assert (found.value, found.lower, found.upper) == (value, value, value)
