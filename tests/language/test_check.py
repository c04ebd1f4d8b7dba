"""Checked models: formulas, constants, labels and renamings resolved by PRISM's rules."""

import math
import re

import pytest

from rfmdp.errors import PrismError
from rfmdp.language.ast import (
    Binary,
    Call,
    Literal,
    ModelType,
    Name,
    ProbabilityInterval,
    Type,
    Unary,
)
from rfmdp.language.check import check_model
from rfmdp.language.evaluate import evaluate
from rfmdp.language.expressions import type_of
from rfmdp.language.parse import parse_expression, parse_model
from rfmdp.language.source import SourceText
from rfmdp.model.arrays import Variable

TAIL = "module m x : [0..2]; [a] true -> (x'=0); endmodule"


def check(text, constants=None):
    """Parse and check."""
    return check_model(parse_model(text, "test.prism"), constants)


def constant(text, given=None):
    """Return the value of the constant k."""
    return check(f"{text} {TAIL}", given).constants["k"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7/2", 3.5),
        ("4/2", 2.0),
        ("1/0", math.inf),
        ("-1/0", -math.inf),
        ("mod(-1,3)", 2),
        ("mod(7,3)", 1),
        ("pow(2,10)", 1024),
        ("pow(-1,3)", -1),
        ("pow(0,0)", 1),
        ("pow(2.0,-1)", 0.5),
        ("2^-1.0", 0.5),
        ("2^3^2", 512),
        ("pow(0.0,-1)", math.inf),
        ("pow(10.0,400)", math.inf),
        ("floor(-1.5)", -2),
        ("ceil(-1.5)", -1),
        ("round(-1.5)", -1),
        ("round(2.5)", 3),
        ("round(0.49999999999999994)", 0),
        ("round(7)", 7),
        ("log(8,2)", 3.0),
        ("log(0,2)", -math.inf),
        ("min(3)", 3),
        ("min(3,2.5)", 2.5),
        ("max(3,2.5)", 3.0),
        ("true ? 1 : 0.5", 1.0),
        ("1=1.0", True),
        ("true<=>false", False),
        ("false & mod(1,0)=0", False),
        ("true | mod(1,0)=0", True),
        ("false => mod(1,0)=0", True),
        ("2>1 ? 5 : mod(1,0)", 5),
        ("!(1<2)", False),
    ],
)
def test_evaluation(text, value):
    """Operators and functions have PRISM's values and types."""
    result = evaluate(parse_expression(text), {}, SourceText(text))
    assert type(result) is type(value)
    assert result == value


def test_zero_by_zero_is_not_a_number():
    """0/0 is nan, which is no error until someone needs the number."""
    assert math.isnan(evaluate(parse_expression("0/0"), {}, SourceText("")))


@pytest.mark.parametrize("text", ["floor(1/0)", "round(0/0)", "pow(2,31)", "pow(2,2147483647)"])
def test_no_value(text):
    """What has no value is a PrismError, also where Python would run out of memory."""
    with pytest.raises(PrismError):
        evaluate(parse_expression(text), {}, SourceText(text))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1+1", Type.INT),
        ("1+1.0", Type.DOUBLE),
        ("1/1", Type.DOUBLE),
        ("2^2", Type.INT),
        ("pow(2,2.0)", Type.DOUBLE),
        ("min(1,2)", Type.INT),
        ("max(1,2.0)", Type.DOUBLE),
        ("floor(1.5)", Type.INT),
        ("log(1,2)", Type.DOUBLE),
        ("-1.0", Type.DOUBLE),
        ("true ? 1 : 2.0", Type.DOUBLE),
        ("true ? false : true", Type.BOOL),
        ("1<2.0", Type.BOOL),
    ],
)
def test_types(text, kind):
    """Types are PRISM's: int is promoted to double, division is always double."""
    assert type_of(parse_expression(text), {}, SourceText(text)) is kind


@pytest.mark.parametrize(
    ("text", "given", "value"),
    [
        ("const int k = 3;", {}, 3),
        ("const k = 3;", {}, 3),
        ("const double k = 3;", {}, 3.0),
        ("const int k = j+1; const int j = 2;", {}, 3),
        ("const int k = f; formula f = j*j; const int j = 2;", {}, 4),
        ("const int k;", {"k": 5}, 5),
        ("const double k;", {"k": 5}, 5.0),
        ("const double k;", {"k": "1/4"}, 0.25),
        ("const bool k;", {"k": "true"}, True),
        ("const int k = 2*j; const int j;", {"j": "7"}, 14),
    ],
)
def test_constants(text, given, value):
    """Constants come from the text in any order, or from the user."""
    assert constant(text, given) == value
    assert type(constant(text, given)) is type(value)


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        ("const int k;", {"k": 1.5}, "test.prism:1:11: constant 'k' = 1.5 must be of type int"),
        ("const int k;", {"k": True}, "constant 'k' = true must be of type int, found bool"),
        ("const bool k;", {"k": 1}, "constant 'k' = 1 must be of type bool, found int"),
        ("const int k;", {"k": "two"}, "the value given for 'k' must be a number or a truth"),
        ("const int k;", {"k": "1;"}, "found '1;': expected the end of the text, found ';'"),
        ("const int k = 1;", {"k": 1}, "1:11: the text has no constant 'k' without a value"),
        (
            "const int k;",
            {"k": 1, "j": 1},
            "the text has no constant 'j' without a value; such constants: k",
        ),
        (
            'const int k; const int j; label "l" = k=j;',
            {},
            'found none for k, j; give `constants={"k": ..., "j": ...}`',
        ),
    ],
)
def test_bad_constants(text, given, message):
    """A value that does not fit is refused with the place of the constant."""
    with pytest.raises(PrismError, match=re.escape(message)):
        constant(text, given)


def test_constants_of_property_files_are_let_through():
    """A value for a constant of the property file is no mistake in the model."""
    model = parse_model(TAIL)
    assert check_model(model, {"T": 5}, also_known=["T"]).constants == {}


def test_formulas_and_constants_are_gone():
    """A guard in the checked model has variables and numbers only."""
    text = "const int N = 2; formula f = x+N; module m x : [0..N]; [] f>N*2 -> true; endmodule"
    (command,) = check(text).modules[0].commands
    assert command.guard == Binary(">", Binary("+", Name("x"), Literal(2)), Literal(4))
    assert command.updates[0].probability == Literal(1.0)


def test_what_has_no_value_stays():
    """A part that cannot be evaluated is left to the states in which it matters."""
    (command,) = check("module m x : [0..2]; [] x>mod(1,0) -> true; endmodule").modules[0].commands
    assert isinstance(command.guard.right, Call)


RENAMED = """
const int N = 1; const int K = 2;
formula free = x=0 & y=0;
label "busy" = x>0;
module m
  x : [0..N] init 0;
  [go] free & !"busy" -> (x'=min(x+1,N));
endmodule
module n = m [x=y, y=x, go=come, N=K, min=max] endmodule
"""


def test_renaming():
    """A renaming reaches variables, actions, constants, functions and formulas, not labels."""
    model = check(RENAMED)
    x, y = Name("x"), Name("y")
    assert [v.name for v in model.variables] == ["x", "y"]
    assert [v.high for v in model.variables] == [1, 2]
    (command,) = model.modules[1].commands
    assert command.action == "come"
    free = Binary("&", Binary("=", y, Literal(0)), Binary("=", x, Literal(0)))
    busy = Binary(">", x, Literal(0))
    assert command.guard == Binary("&", free, Unary("!", busy))
    (assignment,) = command.updates[0].assignments
    assert assignment.variable == "y"
    assert assignment.value == Call("max", (Binary("+", y, Literal(1)), Literal(2)))
    assert command.position == model.modules[0].commands[0].position


def test_renaming_a_renamed_module():
    """Renamings of renamings work in any order of the text."""
    text = "module c = b [y=z] endmodule module b = a [x=y] endmodule "
    model = check(text + "module a x : bool; [] x -> (x'=false); endmodule")
    assert [module.name for module in model.modules] == ["c", "b", "a"]
    assert [variable.name for variable in model.variables] == ["z", "y", "x"]


def test_variables():
    """Globals come first, ranges and initial values are numbers, bools are 0 and 1."""
    text = "module m x : [-1..2]; b : bool init true; endmodule global g : [3..4] init 4;"
    model = check(text)
    assert model.variables == (
        Variable("g", 3, 4),
        Variable("x", -1, 2),
        Variable("b", 0, 1, boolean=True),
    )
    assert model.init == (4, -1, 1)


def test_initial_condition():
    """With init...endinit no variable has an initial value."""
    model = check("module m x : [0..2]; endmodule init x<2 endinit")
    assert model.init == Binary("<", Name("x"), Literal(2))


@pytest.mark.parametrize(
    ("declared", "update", "kind"),
    [
        ("", "true", ModelType.MDP),
        ("", "[0,1]:true", ModelType.IMDP),
        ("dtmc", "0.5:true + 0.5:true", ModelType.DTMC),
        ("dtmc", "[0,1]:true + 0.5:true", ModelType.IDTMC),
        ("mdp", "[0,1]:true", ModelType.IMDP),
        ("imdp", "true", ModelType.IMDP),
    ],
)
def test_model_type(declared, update, kind):
    """Intervals decide whether a model is an interval model; without a type it is an mdp."""
    assert check(f"{declared} module m x : bool; [] true -> {update}; endmodule").type is kind


def test_intervals_are_resolved():
    """Both bounds of an interval are expressions."""
    text = "const double e = 0.1; module m x : [0..2]; [] true -> [x/4-e, 1-e]:true; endmodule"
    chance = check(text).modules[0].commands[0].updates[0].probability
    quarter = Binary("/", Name("x"), Literal(4))
    assert chance == ProbabilityInterval(Binary("-", quarter, Literal(0.1)), Literal(0.9))


def test_actions_and_alphabets():
    """Actions are listed in the order in which they appear."""
    text = "module m [b] true->true; [] true->true; [a] true->true; endmodule "
    model = check(text + "module n [c] true->true; [a] true->true; endmodule")
    assert model.actions == ("b", "a", "c")
    assert [module.alphabet for module in model.modules] == [("b", "a"), ("c", "a")]


def test_labels_inside_labels_and_formulas():
    """Labels may use formulas and labels, defined anywhere."""
    text = f'label "p" = f & "q"; formula f = "r"; label "q" = x=1; label "r" = x>0; {TAIL}'
    labels = check(text).labels
    one, positive = Binary("=", Name("x"), Literal(1)), Binary(">", Name("x"), Literal(0))
    assert labels == {"p": Binary("&", positive, one), "q": one, "r": positive}


def test_unused_formula_may_be_wrong():
    """As in PRISM a formula is text: only its uses are checked."""
    assert check(f"formula f = nowhere + true; {TAIL}").variables


def test_doubling_formulas_stay_small():
    """Sixty formulas, each twice the one before, share their parts."""
    formulas = "".join(f"formula f{k + 1} = f{k}+f{k};" for k in range(60))
    model = check(f"formula f0 = x; {formulas} module m x:[0..1]; [] f60>0 -> true; endmodule")
    assert model.modules[0].commands


@pytest.mark.parametrize("sign", ["+", "|"])
def test_long_chains(sign):
    """Chains of thousands of operators are checked without recursion."""
    part, end = ("x", ">0") if sign == "+" else ("x=1", "")
    guard = sign.join([part] * 2000) + end
    assert check(f"module m x : [0..1]; [] {guard} -> true; endmodule").modules


def test_why_a_choice_has_no_value():
    """The reason is that of the condition."""
    with pytest.raises(PrismError, match="the second argument of 'mod' must be > 0"):
        evaluate(parse_expression("mod(1,0)=0 ? 1 : 2"), {}, SourceText(""))
