"""Writing a tree and reading it again gives the same tree."""

from hypothesis import given

from examples import half
from rfmdp.language.ast import Binary, Literal, Name
from rfmdp.language.expressions import write_expression
from rfmdp.language.parse import parse_expression, parse_model, parse_property_file

from .strategies import EXPRESSIONS, FILES, MODELS
from .writing import write_model, write_properties


@given(EXPRESSIONS)
def test_expression_round_trip(expr):
    """An expression survives writing."""
    assert parse_expression(write_expression(expr)) == expr


@half
@given(MODELS)
def test_model_round_trip(model):
    """A model survives writing."""
    assert parse_model(write_model(model)) == model


@given(FILES)
def test_property_round_trip(file):
    """A property file survives writing."""
    assert parse_property_file(write_properties(file)) == file


def test_unsupported_properties_are_written():
    """Also what is not supported can be shown again."""
    texts = ["S=? [ a ]", "multi(Pmax=? [ F a ], R<=2 [ C ])", "<<1,p>> (P>=1 [ F a ])", "E [ a ]"]
    file = parse_property_file("; ".join(texts))
    assert [write_expression(prop.expression) for prop in file.properties] == texts


def test_literals_are_told_apart():
    """1, 1.0 and true are three literals, though Python finds them equal."""
    assert len({Literal(1), Literal(1.0), Literal(True)}) == 3
    assert Literal(1) != Literal(1.0)


def test_values_no_text_has():
    """Negative, infinite and undefined values, which only evaluation gives, are still readable."""
    texts = [write_expression(Literal(value)) for value in (-2, float("-inf"), float("nan"))]
    assert texts == ["-2", "-1e999", "(0/0)"]
    assert write_expression(Binary("^", Literal(-2), Name("x"))) == "-2^x"


def test_long_chain_is_written_in_linear_time():
    """A chain of 5,000 operators is no problem for the writer."""
    expr = parse_expression("+".join(["x"] * 5_000))
    assert write_expression(expr) == "+".join(["x"] * 5_000)
