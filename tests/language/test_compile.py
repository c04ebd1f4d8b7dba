"""Compiled expressions against hand-computed values and the plain evaluator."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfmdp.errors import PrismError
from rfmdp.language.boxes import necessary
from rfmdp.language.checked import CheckedVariable
from rfmdp.language.compile import Expressions, StateBatch, evaluate_states
from rfmdp.language.evaluate import evaluate
from rfmdp.language.load import parse_prism
from rfmdp.language.parse import parse_expression
from rfmdp.language.source import PrismSourceError, SourceText
from rfmdp.language.types import type_of

VARIABLES = [
    CheckedVariable("x", -2, 3, False, 0, None),
    CheckedVariable("y", 0, 2, False, 0, None),
    CheckedVariable("b", 0, 1, True, 0, None),
]
STATES = np.array(list(product(range(-2, 4), range(3), range(2))))


def compiled(text, states=STATES):
    """Evaluate an expression in some states."""
    source = SourceText(text)
    expressions = Expressions(VARIABLES, source)
    number = expressions.add(parse_expression(text))
    return StateBatch(expressions, np.asfortranarray(states)).value(number)


@pytest.mark.parametrize(
    ("text", "state", "value"),
    [
        ("x/2", (3, 0, 0), 1.5),
        ("x/y", (3, 0, 0), math.inf),
        ("-x/y", (3, 0, 0), -math.inf),
        ("mod(x,3)", (-2, 0, 0), 1),
        ("round(x/2)", (3, 0, 0), 2),
        ("round(x/2)", (-1, 0, 0), 0),
        ("floor(x/2)", (-1, 0, 0), -1),
        ("ceil(x/2)", (-1, 0, 0), 0),
        ("floor(x)", (-1, 0, 0), -1),
        ("pow(x,y)", (-2, 2, 0), 4),
        ("x^y^y", (2, 2, 0), 16),
        ("-x^2", (3, 0, 0), 9),
        ("pow(x,0.5)", (2, 0, 0), math.sqrt(2)),
        ("pow(x,0.0-1)", (2, 0, 0), 0.5),
        ("log(x,2)", (2, 0, 0), 1.0),
        ("log(x,2)", (0, 0, 0), -math.inf),
        ("min(x,y,1)", (3, 2, 0), 1),
        ("max(x,0.5)", (3, 2, 0), 3.0),
        ("min(x)", (3, 2, 0), 3),
        ("b ? x : y", (3, 2, 1), 3),
        ("b ? x : y", (3, 2, 0), 2),
        ("b ? 1 : 0.5", (3, 2, 1), 1.0),
        ("b => x<0", (3, 2, 1), False),
        ("b => x<0", (3, 2, 0), True),
        ("b <=> x>0", (3, 2, 1), True),
        ("b = (x>0)", (3, 2, 0), False),
        ("!b & x!=y | false", (3, 2, 0), True),
        ("x=1.0*x", (3, 2, 0), True),
    ],
)
def test_operator_by_hand(text, state, value):
    """Every operator and function has PRISM's value and type."""
    found = compiled(text, np.array([state]))[0]
    assert found == pytest.approx(value)
    kinds = {bool: "b", int: "i", float: "f"}
    assert found.dtype.kind == kinds[type(value)]


@pytest.mark.parametrize(
    "text",
    [
        "y>0 & mod(x,y)=0",
        "y<=0 | mod(x,y)=0",
        "y>0 => mod(x,y)=0",
        "y>0 ? mod(x,y) : 7",
        "b & y>0 ? mod(x,y) : (b ? floor(x/1) : 0)",
        "y=0 ? 1 : floor(x/y)",
        "x<0 ? 0 : pow(2,x)",
        "x<3 ? 2000000000+x-x : 2000000000*1",
    ],
)
def test_lazy_where_prism_is(text):
    """A part without value is no error where nothing depends on it."""
    expr, source = parse_expression(text), SourceText(text)
    found = compiled(text)
    for state, value in zip(STATES, found, strict=True):
        env = {"x": int(state[0]), "y": int(state[1]), "b": bool(state[2])}
        assert value == evaluate(expr, env, source)


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        (
            "1+mod(x,y)",
            3,
            "the second argument of 'mod' must be > 0, found 0 in state (x=-2, y=0, b=false)",
        ),
        ("b & mod(x,y)=0", 5, "'mod' must be > 0, found 0 in state (x=-2, y=0, b=true)"),
        ("floor(x/y)", 1, "'floor' must have a finite argument, found -inf in state (x=-2, y=0"),
        ("pow(2,x)", 1, "must have an exponent >= 0, found -2"),
        ("pow(10,10+y)", 1, "must fit in 32 bits"),
        ("2000000000+2000000000*y", 1, "must fit in 32 bits"),
        ("y*100000*100000", 1, "must fit in 32 bits, found a larger result in state (x=-2, y=1"),
    ],
)
def test_missing_value_is_an_error_with_place_and_state(text, column, reason):
    """What is needed and has no value names its place and the first state."""
    with pytest.raises(PrismSourceError) as caught:
        compiled(text)
    assert (caught.value.line, caught.value.column) == (1, column)
    assert reason in caught.value.reason


def test_deep_expression():
    """A chain of ten thousand operators needs no recursion."""
    text = "|".join(f"x={k % 7 - 9}" for k in range(10_000)) + "|x=3"
    assert compiled(text).sum() == 6


def test_equal_parts_are_one_step():
    """Two expressions share what they have in common."""
    expressions = Expressions(VARIABLES, SourceText(""))
    expressions.add(parse_expression("x+y>0"))
    steps = len(expressions.steps)
    expressions.add(parse_expression("b & x+y>0"))
    assert len(expressions.steps) == steps + 2


def test_necessary_bounds_are_implied():
    """Bounds of a guard's conjuncts hold in every state that satisfies it."""
    guard = parse_expression("x>=0 & 2>x & !b & y!=1 & (y=0 | x=5)")
    assert necessary(guard) == {"x": (0, 1), "b": (0, 0)}


INTS = st.recursive(
    st.sampled_from(["x", "y", "1", "2", "-1"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]}{t[1]}{t[2]})"),
        st.tuples(st.sampled_from(["min", "max", "mod", "pow"]), inner, inner).map(
            lambda t: f"{t[0]}({t[1]},{t[2]})"
        ),
        st.tuples(st.sampled_from(["floor", "ceil", "round"]), inner, inner).map(
            lambda t: f"{t[0]}({t[1]}/{t[2]})"
        ),
        st.tuples(inner, inner, inner).map(lambda t: f"(b & {t[0]}>{t[1]} ? {t[1]} : {t[2]})"),
    ),
    max_leaves=8,
)


@given(INTS)
def test_compiled_is_plain_evaluation(text):
    """Values and errors are those of the plain evaluator, state by state."""
    expr, source = parse_expression(text), SourceText(text)
    type_of(expr, {v.name: v.type for v in VARIABLES}, source)
    for state in STATES[::5]:
        env = {"x": int(state[0]), "y": int(state[1]), "b": bool(state[2])}
        try:
            wanted = evaluate(expr, env, source)
        except PrismError:
            with pytest.raises(PrismError):
                compiled(text, state[None, :])
        else:
            assert compiled(text, state[None, :])[0] == wanted


def test_evaluate_states_over_a_model():
    """A checked expression is evaluated over all states of a built model."""
    from rfmdp.language.check import check_model
    from rfmdp.language.parse import parse_model

    text = "mdp module m x : [0..3]; [] true -> (x'=mod(x+1,4)); endmodule"
    checked = check_model(parse_model(text))
    model = parse_prism(text)
    found = evaluate_states(parse_expression("x*x"), checked, model.valuations)
    assert found.tolist() == [0, 1, 4, 9]
