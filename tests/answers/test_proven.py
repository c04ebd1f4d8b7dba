"""What an answer calls its value is proven: rewards, arithmetic, filters, limits, digits."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rfmdp.answers.answer import check
from rfmdp.answers.quantity import Quantity, combine
from rfmdp.cli.solve import answer_lines, answer_record
from rfmdp.errors import PrismError, UnsupportedError
from rfmdp.inner.solvers import Sequential
from rfmdp.language.ast import Binary, Literal, Type
from rfmdp.language.build import parse_prism
from rfmdp.language.source import SourceText
from rfmdp.outer.solution import shared_digits
from rfmdp.outer.task import Limits

PAID = """mdp
module m
  x : [0..3];
  [a] x=0 -> 0.3 : (x'=2) + 0.7 : (x'=3);
  [b] x>0 -> true;
endmodule
rewards "r" true : x; endrewards
rewards "debt" true : -x; endrewards
"""
RACE = """imdp
module a x : [0..2];
  [go] x=0 -> [0.4,0.6] : (x'=1) + [0.4,0.6] : (x'=2); [go] x>0 -> true; endmodule
module b y : [0..2];
  [go] y=0 -> [0.3,0.8] : (y'=1) + [0.2,0.7] : (y'=2); [go] y>0 -> true; endmodule
label "same" = x=y & x>0;
"""
LONG = (
    "mdp module m x:[0..60] init 20; [a] x>0 & x<60 -> 0.5:(x'=x-1)+0.5:(x'=x+1); "
    "[b] x=20 -> 0.5:(x'=19)+0.5:(x'=21); [c] x=0 | x=60 -> true; endmodule "
    "rewards true : 1; endrewards"
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('R{"r"}max=? [ I=1 ]', Fraction("2.7")),  # 0.3 * 2 + 0.7 * 3
        ('R{"r"}min=? [ I=1 ]', Fraction("2.7")),
        ('R{"debt"}max=? [ I=1 ]', Fraction("-2.7")),
        ('R{"debt"}min=? [ I=7 ]', Fraction("-2.7")),
        ('R{"r"}max<=1.5 [ I=1 ]', False),
        ('R{"r"}<=1.5 [ I=1 ]', False),
        ('R{"r"}>=2.7 [ I=1 ]', True),
        ('R{"debt"}>=0 [ I=1 ]', False),
        ('R{"debt"}<0 [ I=1 ]', True),
    ],
)
def test_a_reward_is_no_probability(text, value):
    """A reward at a step may be above 1 and below 0."""
    answer = check(parse_prism(PAID), text)
    assert answer.certified
    if isinstance(value, bool):
        assert answer.value is value
    else:
        assert Fraction(answer.lower) <= value <= Fraction(answer.upper)


@given(
    st.lists(st.sampled_from([-2.0, -1.0, 0.0, 0.25, 1.0, 2.0, 5.0]), min_size=3, max_size=3),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=6, max_size=6),
    st.integers(0, 3),
    st.sampled_from([min, max]),
    st.sampled_from([-1.0, 0.0, 0.5, 1.0, 1.5]),
)
def test_rewards_at_a_step_by_hand(rewards, moves, step, best, threshold):
    """Backward induction in fractions lies within the bounds, and decides the threshold."""
    lines = [f"[] x={k // 2} -> 0.5 : (x'={a}) + 0.5 : (x'={b});" for k, (a, b) in enumerate(moves)]
    items = "".join(f"x={k} : {r}; " for k, r in enumerate(rewards))
    model = parse_prism(
        f"mdp module m x : [0..2]; {' '.join(lines)} endmodule rewards {items} endrewards"
    )
    value = [Fraction(r) for r in rewards]
    for _ in range(step):
        rows = [(value[a] + value[b]) / 2 for a, b in moves]
        value = [best(rows[2 * k], rows[2 * k + 1]) for k in range(3)]
    word = best.__name__
    answer = check(model, f"R{word}=? [ I={step} ]")
    assert Fraction(answer.lower) <= value[0] <= Fraction(answer.upper)
    verdict = check(model, f"R{word}<={threshold} [ I={step} ]")
    assert verdict.value is (value[0] <= Fraction(threshold))


def test_nothing_proven_is_said_so():
    """A limit that leaves the guaranteed side open leaves no value, and no Infinity."""
    limits = Limits(precision=1e-14, sweeps=1)
    answer = check(parse_prism(LONG), "Rmin=? [ F x=0 | x=60 ]", limits=limits)
    assert not answer.certified
    assert answer.lower <= 800.0  # 20 * 40 steps of a fair walk between 0 and 60
    if answer.upper is None:
        assert answer.value is None
        assert list(answer_lines(answer, "exact", 0.0))[-1] == "Result: nothing proven"
        assert answer_record(answer, answer.model, "exact", 0.0, 0.0)["value"] is None
    else:
        assert answer.value == answer.upper


@pytest.mark.parametrize("text", ['Pmin=? [ F "same" ]', 'Pmaxmin=? [ F "same" ]'])
def test_a_one_sided_method_reports_the_side_that_it_proves(text):
    """A relaxation proves one side: that is the number, not an iterate near it."""
    answer = check(parse_prism(RACE), text, inner=Sequential())
    (side,) = (x for x in (answer.lower, answer.upper) if x is not None)
    assert answer.value == side
    assert answer.side == (-1 if side == answer.lower else 1)
    assert "bound: the" in list(answer_lines(answer, "sequential", 0.0))[-1]


@pytest.mark.parametrize("text", ['Pmaxmin=? [ F "same" ]', 'Pminmax=? [ F "same" ]'])
def test_digits_of_a_guarantee_are_safe(text):
    """The printed result of a certified answer is on the safe side of its bound."""
    model = parse_prism(RACE)
    for precision in (1e-2, 1e-6, 1e-10):
        answer = check(model, text, limits=Limits(precision=precision))
        shown = Fraction(list(answer_lines(answer, "exact", 0.0))[-1].removeprefix("Result: "))
        if "Pmaxmin" in text:
            assert shown <= Fraction(answer.lower)
        else:
            assert shown >= Fraction(answer.upper)


@given(
    st.floats(-1e6, 1e6, allow_subnormal=False),
    st.floats(1e-15, 1e-2),
    st.sampled_from([-1.0, 0.0, 1.0]),
)
def test_digits_stay_on_their_side(lower, width, side):
    """Rounded digits are below a lower bound, above an upper one, else the nearest of both."""
    upper = lower + width * max(1.0, abs(lower))
    text = shared_digits(lower, upper, side)
    if text is None:
        return
    if side < 0.0:
        assert Fraction(text) <= Fraction(lower)
    elif side > 0.0:
        assert Fraction(text) >= Fraction(upper)
    else:
        digits = len(text.partition("e")[0].replace(".", "").strip("-0")) or 1
        assert float(f"{lower:.{max(digits, 2)}g}") == float(text)


@pytest.mark.parametrize(
    "text",
    [
        'P>=0.1 [ F "same" ]',
        'filter(max, Pmaxmin=? [ F "same" ], x=0)',
        'Pmaxmin=? [ F "same" ] / Pminmax=? [ X "same" ]',
        '1 - Pmaxmin=? [ F "same" ]',
        "x=0",
        "Pmaxmin=? [ x=0 ]",
    ],
)
def test_another_question_is_not_saved_as_this_one(text):
    """Only the solution of a single P=? or R=? says all that its answer says."""
    answer = check(parse_prism(RACE), text)
    with pytest.raises(UnsupportedError, match=r"single P=\? or R=\?"):
        answer.whole_solution()


@pytest.mark.parametrize(
    "text",
    [
        'Pmaxmin=? [ F "same" ]',
        'Pmaxmin=? [ G !"same" ]',
        'Pmaxmin=? [ x=0 U<=3 "same" ]',
        "Pmaxmin=? [ x=0 W x=2 ]",
        'Pmaxmin=? [ !(x=0 U "same") ]',
    ],
)
def test_a_single_measure_is_its_solution(text):
    """Its bounds at the initial state are those of the answer."""
    answer = check(parse_prism(RACE), text)
    bounds = answer.whole_solution().at_initial()
    assert (bounds.lower, bounds.upper) == (answer.lower, answer.upper)


numbers = st.one_of(
    st.integers(-50, 50).map(float),
    st.floats(-1e200, 1e200, allow_subnormal=False),
    st.sampled_from([0.1, 1 / 3, 2.0**-30, 1e-300, 1e300, 3.0]),
)
OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}


def known(number):
    return Quantity.exact(Type.DOUBLE, np.array([number]))


@given(st.sampled_from(list(OPERATORS)), numbers, numbers)
def test_arithmetic_is_rounded_outwards(sign, a, b):
    """The exact result of two known numbers lies within the bounds, which are equal if it is whole.

    Expected: fractions.
    """
    if sign == "/" and b == 0.0:
        return
    result = combine(Binary(sign, Literal(a), Literal(b)), [known(a), known(b)], SourceText(""))
    low, high = float(result.lower[0]), float(result.upper[0])
    exact = OPERATORS[sign](Fraction(a), Fraction(b))
    assert low == -math.inf or Fraction(low) <= exact
    assert high == math.inf or exact <= Fraction(high)
    nearest = OPERATORS[sign](a, b)
    if math.isfinite(nearest) and abs(nearest) > 1e-280:
        assert high <= math.nextafter(math.nextafter(low, math.inf), math.inf)
        if all(x.is_integer() and abs(x) < 2**45 for x in (a, b, nearest)):
            assert low == high == nearest == exact


@pytest.mark.parametrize(
    "text",
    [
        "0.5*P=? [ F x=0 ] <= 0.5",
        "0.3*P=? [ F x=7 ] >= 0",
        "P=? [ F x=0 ]/2 + 0.25 = 0.75",
        "0.7*P=? [ F x=0 ] = 0.7",
        "-P=? [ F x=1 ] < 0",
        "P=? [ F x=1 ]*0 = 0",
        "1/P=? [ F x=7 ] > 1",
    ],
)
def test_arithmetic_with_certain_numbers_was_rounded_and_left_undecided(text):
    """Where nothing has to be rounded a comparison with the very number is decided."""
    model = parse_prism(
        "dtmc module m x:[0..8]; [] x=0 -> 1/3:(x'=1) + 2/3:(x'=2); [] x>0 -> true; endmodule"
    )
    assert check(model, text).value is True


@pytest.mark.parametrize(
    "text", ["pow(P=? [ F x=1 ], 2)", "P=? [ F x=1 ]^2", "1+floor(P=? [ X x=1 ])"]
)
def test_powers_and_roundings_of_measures_are_refused(text):
    """Only + - * / min max have bounds."""
    model = parse_prism("dtmc module m x:[0..1]; [] true -> 0.5:(x'=0) + 0.5:(x'=1); endmodule")
    with pytest.raises(
        PrismError, match=r"of P, R or a filter is not supported; use \+ - \* / min max"
    ):
        check(model, text)


@given(st.lists(st.floats(-1e9, 1e9, allow_subnormal=False), min_size=1, max_size=6))
def test_sums_and_means_over_states_are_rounded_outwards(values):
    """Expected: sums in fractions."""
    items = "".join(f"x={k} : {v!r}; " for k, v in enumerate(values))
    model = parse_prism(
        f"dtmc module m x : [0..{max(len(values) - 1, 1)}]; "
        f"[] true -> (x'=mod(x+1,{len(values)})); endmodule rewards {items} endrewards"
    )
    total = sum(map(Fraction, values))
    for name, exact in (("sum", total), ("avg", total / len(values))):
        answer = check(model, f"filter({name}, R=? [ I=0 ])")
        assert Fraction(answer.lower) <= exact <= Fraction(answer.upper)


def test_an_infinite_reward_was_no_number_where_rewards_are_rounded():
    """1 + 0.15 is no float; what may never arrive is still infinite, from both sides."""
    model = parse_prism(
        "mdp module m x:[0..2]; [go] x=0 -> 0.3:(x'=1) + 0.7:(x'=2); [] x>0 -> true; endmodule "
        "rewards true : 1; [go] true : 0.15; endrewards"
    )
    answer = check(model, "Rmax=? [ F x=1 ]")
    assert (answer.lower, answer.value, answer.upper) == (math.inf, math.inf, math.inf)


def test_rewards_of_deadlocks():
    """As PRISM has it: its state reward is paid for ever, the loop that was added pays nothing.

    Source: PRISM 4.8, explicit/rewards/ConstructRewards ("Don't add rewards to transitions added
    to fix deadlock states"; state rewards have no such exception).
    """
    text = "module m x:[0..2]; [go] x<2 -> (x'=x+1); endmodule "
    text += 'rewards "state" true : 1; endrewards rewards "move" [] true : 1; [go] true : 1; '
    for kind in ("mdp", "dtmc"):
        with pytest.warns(UserWarning, match="deadlock"):
            model = parse_prism(f"{kind} {text} endrewards")
        word = "max" if kind == "mdp" else ""
        answers = [
            check(model, f"R{{{name}}}{word}=? [ {path} ]").value
            for name in ('"state"', '"move"')
            for path in ("C", "C<=7")
        ]
        assert answers == pytest.approx([math.inf, 7.0, 2.0, 2.0])


def test_bounds_are_in_order():
    """Lower and upper ends of all of these are where they belong."""
    model = parse_prism(RACE)
    for text in ("1-Pmin=? [ X x=1 ]", "2*Pmax=? [ X x=1 ]", "-Pmax=? [ X x=1 ]"):
        answer = check(model, text)
        assert all(a <= b for a, b in pairwise((answer.lower, answer.value, answer.upper)))


@pytest.mark.parametrize("order", [("stay", "go"), ("go", "stay")])
def test_a_discounted_value_of_zero_is_not_positive(order):
    """Going round pays nothing, lingering does: the least discounted reward is exactly 0."""
    moves = {"go": "[go] true -> (x'=1-x);", "stay": "[stay] true -> true;"}
    model = parse_prism(
        f"mdp module m x:[0..1]; {' '.join(moves[name] for name in order)} endmodule "
        "rewards [stay] x=0 : 100; [stay] x=1 : 0.1; endrewards"
    )
    answer = check(model, "Rmin=? [ C{discount=0.9} ]")
    assert answer.lower <= 0.0 <= answer.upper
    assert check(model, "R>0 [ C{discount=0.9} ]").value is False
    assert check(model, "R>=0 [ C{discount=0.9} ]").value is True
