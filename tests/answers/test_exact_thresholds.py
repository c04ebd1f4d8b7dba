"""A threshold that a value meets exactly is decided, in fractions."""

import warnings
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from examples import half
from language.case_studies import DIE
from language.random_models import model_texts
from rfmdp.answers.answer import check
from rfmdp.answers.exact_thresholds import SIMPLE, read
from rfmdp.errors import PrismWarning
from rfmdp.language.build import parse_prism

CHOICES = """mdp
module m
  x : [0..2];
  [a] x=0 -> 0.1 : (x'=1) + 0.2 : (x'=2) + 0.7 : true;
  [b] x=0 -> 1/3 : (x'=1) + 2/3 : (x'=2);
  [c] x=0 -> true;
  [] x>0 -> true;
endmodule
rewards x=0 : 1; endrewards
"""
INTERVALS = """imdp
module m
  x : [0..2];
  [a] x=0 -> [0.1,0.3] : (x'=1) + [0.2,0.5] : (x'=2) + [0.3,0.7] : true;
  [b] x=0 -> [0.2,0.4] : (x'=1) + [0.6,0.8] : (x'=2);
  [] x>0 -> true;
endmodule
rewards x=0 : 1; endrewards
"""
TWO = """imdp
module a x : [0..2]; [go] x=0 -> [0.2,0.6] : (x'=1) + [0.4,0.8] : (x'=2); [] x>0 -> true; endmodule
module b y : [0..2]; [go] y=0 -> [0.1,0.3] : (y'=1) + [0.7,0.9] : (y'=2); endmodule
"""
EXACT = [
    (DIE, "P", "F face=1", "1/6"),
    (DIE, "P", "G face!=1", "5/6"),
    (DIE, "P", "F<=5 face=1", "5/32"),
    (DIE, "P", "s<7 U face=1", "1/6"),
    (DIE, "P", "s<7 W face=1", "1/6"),
    (DIE, "P", "!(s<7 U face=1)", "5/6"),
    (DIE, "P", "!(s<7 U<=5 face=1)", "27/32"),
    (DIE, "R", "F s=7", "11/3"),
    (DIE, "R", "C<=3", "3"),
    (DIE, "R", "C", "11/3"),
    (CHOICES, "Pmax", "F x=1", "1/3"),
    (CHOICES, "Pmin", "F x=1", "0"),
    (CHOICES, "Rmin", "F x>0", "1"),
    (INTERVALS, "Pmaxmin", "F x=1", "1/5"),
    (INTERVALS, "Pmaxmax", "F x=1", "3/5"),
    (INTERVALS, "Pminmin", "F x=1", "1/6"),
    (INTERVALS, "Pminmax", "F x=1", "2/5"),
    (INTERVALS, "Rmaxmax", "F x>0", "10/3"),
    (INTERVALS, "Rmaxmin", "F x>0", "10/7"),
    (TWO, "Pmaxmin", "X (x=1 & y=1)", "1/50"),
    (TWO, "Pmaxmin", "F (x=1 & y=1)", "1/50"),
    (TWO, "Pmaxmax", "X (x=1 <=> y=1)", "37/50"),
]


def quiet(text):
    """Build without minding warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrismWarning)
        return parse_prism(text)


@pytest.mark.parametrize(("text", "operator", "path", "value"), EXACT)
def test_a_value_at_its_threshold(text, operator, path, value):
    """The value meets >= and <=, and neither > nor <."""
    model = quiet(text)
    found = {
        sign: check(model, f"{operator}{sign}{value} [ {path} ]") for sign in (">=", "<=", ">", "<")
    }
    assert all(answer.certified for answer in found.values())
    assert [answer.value for answer in found.values()] == [True, True, False, False]


def test_formulas_inside_others():
    """Two states have probability 1/3 or more, and just one has 2/3."""
    model = quiet(DIE)
    assert check(model, "filter(count, P>=1/3 [ F face=1 ], s<7)").value == 2
    assert check(model, "P=? [ F (s<7 & P>=2/3 [ F face=1 ]) ]").value == pytest.approx(0.25)


@half
@given(
    model_texts(kinds=("mdp", "imdp")),
    st.sampled_from(["Pmaxmin", "Pminmax", "Pminmin", "Pmaxmax", "Rmaxmin"]),
    st.sampled_from(['F "top"', 'F<=2 "top"', 'G !"top"']),
)
def test_comparisons_agree(text, operator, path):
    """At the value itself and beside it, >= and < are opposites, as are <= and >."""
    model = quiet(text)
    path = "C<=2" if operator.startswith("R") else path
    value = check(model, f"{operator}=? [ {path} ]")
    for threshold in {Fraction(value.value).limit_denominator(d) for d in (10, 1000)}:
        if operator.startswith("P") and not 0 <= threshold <= 1:
            continue
        found = [
            check(model, f"{operator}{sign}{threshold} [ {path} ]").value
            for sign in (">=", "<", "<=", ">")
        ]
        for yes, no in (found[:2], found[2:]):
            assert yes is None or no is None or yes is not no
        if abs(float(threshold) - value.value) > 1e-5:
            assert None not in found
        if found[0] is False and found[2] is False:
            pytest.fail("the value is neither above nor below")


@pytest.mark.parametrize(
    ("number", "meant"),
    [
        (0.1, "1/10"),
        (1 / 3, "1/3"),
        (1 - 0.1 - 0.2, "7/10"),
        (2.5e-5, "1/40000"),
        (0.123456789012, "30864197253/250000000000"),
        (0.0, "0"),
        (3.0, "3"),
    ],
)
def test_floats_stand_for_what_was_written(number, meant):
    """Short decimals and simple fractions are found again."""
    assert read(number) == Fraction(meant)


@pytest.mark.parametrize("length", [3, 4, 7])
@pytest.mark.parametrize("tenths", [3, 5, 8])
def test_the_gambler(length, tenths):
    """The closed form of the gambler's ruin is met; on a cycle its fractions must be simple."""
    model = quiet(f"""dtmc module m x : [0..{length}] init 1;
    [] x>0 & x<{length} -> 0.{tenths} : (x'=x+1) + {1 - tenths / 10:.1f} : (x'=x-1);
    [] x=0 | x={length} -> true; endmodule""")
    odds = Fraction(10 - tenths, tenths)
    wins = Fraction(1, length) if odds == 1 else (1 - odds) / (1 - odds**length)
    found = [check(model, f"P{sign}{wins} [ F x={length} ]").value for sign in (">=", ">")]
    assert found == ([True, False] if wins.denominator <= SIMPLE else [None, None])


def test_values_off_cycles_may_have_any_denominator():
    """Expected: 0.1^9, whose denominator is no simple one."""
    model = quiet("dtmc module m x : [0..10]; [] x<9 -> 0.1 : (x'=x+1) + 0.9 : (x'=10); "
                  "[] x>8 -> true; endmodule")  # fmt: skip
    assert check(model, "P>=1e-9 [ F x=9 ]").value is True
    assert check(model, "P>1e-9 [ F x=9 ]").value is False


def test_a_fixed_point_is_taken_only_if_there_is_no_other():
    """Who may go round for ever at no cost is not led to the target by the equations alone."""
    model = quiet("""mdp module m x : [0..2]; [go] x<2 -> (x'=1-x);
    [end] x=0 -> 1/3 : (x'=1) + 2/3 : (x'=2); [] x=2 -> true; endmodule
    rewards [end] true : 1/3; endrewards""")
    for operator, value in (("Rmin", "1/2"), ("Pmax", "1")):
        assert check(model, f"{operator}>={value} [ F x=2 ]").value is True
        assert check(model, f"{operator}>{value} [ F x=2 ]").value is not True


@pytest.mark.parametrize("half", ["0.500000000000000000000000000000001", "0.5+1e-33", "1/2+1e-33"])
def test_a_threshold_is_the_number_as_written_not_its_float(half):
    """A threshold next to 1/2, whose float is 1/2, is not met by 1/2."""
    model = quiet(DIE)
    assert check(model, f"P>={half} [ F face<=3 & s=7 ]").value is False
    assert check(model, f"P<{half} [ F face<=3 & s=7 ]").value is True
    assert check(model, "P>=0.5 [ F face<=3 & s=7 ]").value is True


@pytest.mark.parametrize("path", ["C<=1", "F x=1", "C"])
@pytest.mark.parametrize(
    ("state", "row"), [("0.15", "1"), ("0.1", "0.2"), ("0.7", "0.1"), ("1e6", "1e-7")]
)
def test_a_sum_of_rewards_is_that_of_the_numbers_as_written(state, row, path):
    """A state's and an action's reward add up to the sum of their decimals, not of their floats."""
    text = f"""mdp module m x : [0..1]; [a] x=0 -> (x'=1); [b] x=1 -> true; endmodule
    rewards x=0 : {state}; [a] true : {row}; endrewards"""
    model, total = parse_prism(text), Fraction(state) + Fraction(row)
    for operator, holds in (("<=", True), (">=", True), ("<", False), (">", False)):
        question = f"Rmax{operator}{float(total)!r} [ {path} ]"
        assert Fraction(repr(float(total))) == total
        assert check(model, question).value is holds, question
