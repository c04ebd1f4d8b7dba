"""Expressions in many states against hand-computed values and the plain evaluator."""

import math
from contextlib import nullcontext
from functools import lru_cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st

from recording import recorded
from rfmdp.errors import PrismError
from rfmdp.kernels import machine
from rfmdp.language.ast import ModelType
from rfmdp.language.build import parse_prism
from rfmdp.language.check import CheckedModel, check_model, evaluate_states
from rfmdp.language.commands import implied_ranges
from rfmdp.language.evaluate import evaluate
from rfmdp.language.parse import parse_expression, parse_model
from rfmdp.language.program import Expressions
from rfmdp.language.source import PrismSourceError, SourceText
from rfmdp.model.arrays import Variable

VARIABLES = [
    Variable("x", -2, 3),
    Variable("y", 0, 2),
    Variable("b", 0, 1, True),
]
STATES = np.array(list(product(range(-2, 4), range(3), range(2))))


def in_states(text, valuations=STATES, chosen=None):
    """Evaluate an expression in some states, as Python and by machine code: both find the same."""
    expr, found = parse_expression(text), []
    model = CheckedModel(
        ModelType.MDP, tuple(VARIABLES), (), (), (), (), {}, {}, (), SourceText(text)
    )
    for as_text in (recorded, nullcontext):
        with as_text():
            try:
                found.append(evaluate_states(expr, model, valuations, chosen))
            except PrismSourceError as error:
                found.append(error)
    if isinstance(found[0], PrismSourceError):
        assert str(found[0]) == str(found[1])
        raise found[0]
    assert found[0].dtype == found[1].dtype
    np.testing.assert_array_equal(*found)
    return found[1]


parsed = lru_cache(maxsize=16)(parse_expression)  # asked for in one state after another


def plain(text, state):
    """Return the value in one state by plain evaluation, None where there is none."""
    names = {"x": int(state[0]), "y": int(state[1]), "b": bool(state[2])}
    try:
        return evaluate(parsed(text), names, SourceText(text))
    except PrismError:
        return None


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
    found = in_states(text, np.array([state]))[0]
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
    for state, value in zip(STATES, in_states(text), strict=True):
        assert value == plain(text, state)


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
        in_states(text)
    assert (caught.value.line, caught.value.column) == (1, column)
    assert reason in caught.value.reason


def test_deep_expression():
    """A chain of thousands of operators needs no recursion."""
    text = "|".join(f"x={k % 7 - 9}" for k in range(2_500)) + "|x=3"
    assert in_states(text).sum() == 6


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
    assert implied_ranges(guard) == {"x": (0, 1), "b": (0, 0)}


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


FORMS = ["{0}", "{0}/4", "b & {0}>{1}", "({0}<{1} ? {1}/3 : {0})", "!({0}/3>={1}) => b", "-({0})"]


@given(INTS, INTS, st.sampled_from(FORMS))
def test_many_states_are_plain_evaluation(first, second, form):
    """Values, types and errors are those of the plain evaluator, state by state."""
    text = form.format(first, second)
    wanted = [plain(text, state) for state in STATES]
    exist = np.array([k for k, value in enumerate(wanted) if value is not None], dtype=np.int64)
    found = in_states(text, chosen=exist)
    values = [wanted[k] for k in exist]
    np.testing.assert_array_equal(found, values)
    kinds = {"b": bool, "i": int, "f": float}
    assert all(type(value) is kinds[found.dtype.kind] for value in values)
    for k in set(range(len(STATES))) - set(exist.tolist()):
        with pytest.raises(PrismError):
            in_states(text, chosen=np.array([k]))


def test_some_states():
    """Chosen states are evaluated in the order that is asked for."""
    assert in_states("x*10+y").tolist() == (STATES[:, 0] * 10 + STATES[:, 1]).tolist()
    chosen = np.array([7, 3, 3, 30, 0, 12, 1])
    assert in_states("x/2", chosen=chosen).tolist() == (STATES[chosen, 0] / 2).tolist()
    with pytest.raises(PrismSourceError, match=r"in state \(x=3, y=0, b=true\)"):
        in_states("mod(x,y)", chosen=np.array([2, 3, 4, 5, 35, 34, 33, 31, 30]))


def test_machine_code_is_made_once():
    """Other types of arrays, or frozen ones, need no code of their own."""
    frozen = STATES.astype(np.int32)
    frozen.flags.writeable = False
    few = np.array([1, 2], dtype=np.int32)
    few.flags.writeable = False
    for valuations, chosen in ((STATES, None), (frozen, few), (np.asfortranarray(STATES), few)):
        for text in ("x+y", "x/y", "b"):
            in_states(text, valuations, chosen)
    assert len(machine.evaluate.signatures) == 1


def test_evaluate_states_over_a_model():
    """A checked expression is evaluated over all states of a built model."""
    text = "mdp module m x : [0..3]; [] true -> (x'=mod(x+1,4)); endmodule"
    checked = check_model(parse_model(text))
    model = parse_prism(text)
    found = evaluate_states(parse_expression("x*x"), checked, model.valuations)
    assert found.tolist() == [0, 1, 4, 9]
