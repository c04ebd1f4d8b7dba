"""The machine's code against the plain evaluator."""

import numpy as np
import pytest
from hypothesis import given

from rfmdp.kernels import machine
from rfmdp.kernels.decorator import kernel
from rfmdp.language.ast import Type
from rfmdp.language.parse import parse_expression
from rfmdp.language.program import Expressions, Program
from rfmdp.language.source import SourceText

from .test_states import INTS, STATES, VARIABLES, plain


@kernel
def compiled(pc, code, ints, floats):
    return machine.run(pc, code, ints, floats)


@np.errstate(all="ignore")
def run_both(pc, code, ints, floats):
    """Run code as Python and compiled, which leave the same memory behind; returns the status."""
    other = ints.copy(), floats.copy()
    status = machine.run(pc, code, *other)
    assert compiled(pc, code, ints, floats) == status
    assert np.array_equal(other[0], ints)
    assert np.array_equal(other[1], floats, equal_nan=True)
    return status


def run(texts, states=STATES):
    """Return per state and text the value, None where there is none."""
    source = SourceText("")
    expressions = Expressions(VARIABLES, source)
    numbers = [expressions.add(parse_expression(text)) for text in texts]
    program = Program(expressions)
    emitted = []
    for number in numbers:
        kind = expressions.steps[number].type
        place = program.condition(number) if kind is Type.BOOL else None
        emitted.append((kind, place, *program.value(number)))
    ints, floats, code = program.ints(), program.floats(), program.code()
    found = []
    for stamp, state in enumerate(states, start=1):
        ints[machine.STAMP], ints[program.variables] = stamp, state
        row = []
        for kind, condition, place, cell in emitted:
            status = run_both(place, code, ints, floats)
            value = floats[cell] if kind is Type.DOUBLE else ints[cell]
            if condition is not None:
                wanted = value if status >= 0 else -1
                assert run_both(condition, code, ints, floats) == wanted
            row.append(None if status < 0 else value)
        found.append(row)
    return found


def same(found, wanted):
    """Return whether two values are the same; nan is nan."""
    if found is None or wanted is None:
        return found is wanted
    return found == wanted or (found != found and wanted != wanted)


@pytest.mark.parametrize(
    "text",
    [
        "x/y", "-x/y", "mod(x,3)", "mod(x,y)", "round(x/2)", "floor(-x/2)", "ceil(x/2)", "floor(x)",
        "pow(x,y)", "x^y^y", "-x^2", "pow(x,0.5)", "pow(2,x)", "log(x,2)", "log(2,x)", "min(x,y,1)",
        "max(x,0.5)", "min(x)", "min(x/y,1)", "max(1,0/y)", "b ? x : y", "b ? 1 : 0.5", "b => x<0",
        "b <=> x>0", "b = (x>0)", "b != (x>y)", "!b & x!=y | false", "x=1.0*x", "x/y>=0.5",
        "!(x/y<0.5)", "y>0 & mod(x,y)=0", "y<=0 | mod(x,y)=0", "y>0 => mod(x,y)=0", "true => b",
        "y>0 ? mod(x,y) : 7", "y*100000*100000", "pow(10,10+y)", "-(y*2000000000)",
        "(x*x+y*y>3) & (b | x*x+y*y>3)", "x>y ? 1 : 0", "(x>y & b ? 1 : 0) + (x/y>y ? 1 : 0)",
        "(x>=y ? y : -1) * 2", "b ? x : 0.5", "(b ? y>0 : b) = (x<=y)", "(!b ? 0.25 : x) / y",
    ],
)  # fmt: skip
def test_operator(text):
    """Every operator and function has PRISM's value, or none where it has none."""
    for state, (found,) in zip(STATES, run([text]), strict=True):
        assert same(found, plain(text, state)), state


@given(INTS, INTS)
def test_parts_may_be_shared(first, second):
    """Expressions with common parts have the values of plain evaluation, in any order of use."""
    texts = [f"({first})+({second})", second, f"b & ({first})>({second})", first]
    for state, found in zip(STATES[::5], run(texts, STATES[::5]), strict=True):
        assert all(same(f, plain(t, state)) for f, t in zip(found, texts, strict=True)), state


def test_deep_condition():
    """A chain of thousands of operators needs no recursion, to the left or to the right."""
    left = "|".join(f"x={k % 7 - 9}" for k in range(2_500)) + "|x=3"
    right = "=>".join(["b"] * 2_500)
    states = STATES[::5]
    for state, row in zip(states, run([left, right], states), strict=True):
        assert row == [state[0] == 3, 1]


def test_shared_parts_do_not_multiply():
    """A formula that doubles itself six times is not written out."""
    text = "(x*y+x+y)"
    for _ in range(6):
        text = f"({text}*{text}-mod({text},7))"
    expressions = Expressions(VARIABLES, SourceText(""))
    number = expressions.add(parse_expression(text))
    program = Program(expressions)
    program.value(number)
    assert len(program.code()) < 100
