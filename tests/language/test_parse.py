"""Models as text become the tree that PRISM would make of them."""

import pytest

from processes import python
from rfmdp.errors import PrismError
from rfmdp.language.ast import (
    Assignment,
    Binary,
    Call,
    Command,
    Definition,
    Ite,
    Label,
    Literal,
    ModelFile,
    ModelType,
    Name,
    ProbabilityInterval,
    RenamedModule,
    Renaming,
    RewardItem,
    RewardStructure,
    Type,
    Unary,
    Update,
    VariableDeclaration,
)
from rfmdp.language.expressions import fold, write_expression
from rfmdp.language.parse import parse_expression, parse_model

A, B, C = Name("a"), Name("b"), Name("c")


def grouped(text):
    """Show how an expression is grouped, with parentheses around every operation."""

    def show(node, below):
        match node:
            case Unary(sign):
                return f"({sign}{below[0]})"
            case Binary(sign):
                return f"({below[0]}{sign}{below[1]})"
            case Ite():
                return f"({below[0]}?{below[1]}:{below[2]})"
            case Call(function):
                return f"{function}({','.join(below)})"
        return write_expression(node)

    return fold(parse_expression(text), show)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("a+b*c", "(a+(b*c))"),
        ("a-b-c", "((a-b)-c)"),
        ("a/b*c", "((a/b)*c)"),
        ("-a*b", "((-a)*b)"),
        ("-a^b", "((-a)^b)"),
        ("a^b^c", "(a^(b^c))"),
        ("a^-b", "(a^(-b))"),
        ("- -a", "(-(-a))"),
        ("a-(-b)", "(a-(-b))"),
        ("a+b<c*2", "((a+b)<(c*2))"),
        ("a<b=c<2", "((a<b)=(c<2))"),
        ("a!=b=c", "((a!=b)=c)"),
        ("!a=b", "(!(a=b))"),
        ("!a&b", "((!a)&b)"),
        ("!!a", "(!(!a))"),
        ("a&b|c", "((a&b)|c)"),
        ("a|b&c", "(a|(b&c))"),
        ("a|b<=>c", "((a|b)<=>c)"),
        ("a<=>b=>c", "((a<=>b)=>c)"),
        ("a=>b<=>c", "(a=>(b<=>c))"),
        ("a=>b=>c", "(a=>(b=>c))"),
        ("a=>b?c:1", "((a=>b)?c:1)"),
        ("a?b:c?1:2", "(a?b:(c?1:2))"),
        ("(a?b:c)?1:2", "((a?b:c)?1:2)"),
        ("min(a,b+1,c)", "min(a,(b+1),c)"),
        ("func(max, a, b)", "max(a,b)"),
        ("mod (a,2)", "mod(a,2)"),
        ("log+log(a,2)", "(log+log(a,2))"),
    ],
)
def test_precedence(text, meaning):
    """Operators group as in PRISM's manual."""
    assert grouped(text) == meaning


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("12", 12),
        ("2147483647", 2147483647),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ("1e-3", 0.001),
        ("1.5E+2", 150.0),
        ("007", 7.0),
        ("true", True),
        ("false", False),
    ],
)
def test_literals(text, value):
    """Numbers have PRISM's types; leading zeros make a double there."""
    assert parse_expression(text) == Literal(value)


MODEL = """
// everything once
const N = 3; const int M; const double p = 0.25; const bool on = true; rate r = 2; prob q;
formula twice = 2*x;
global g : [0..N] init 1;
mdp
module one
  x : [0..2*N] init 0;
  b : bool;
  [go] x=0 & !b -> p:(x'=1)&(b'=true) + 1-p:true;
  []   b -> (x'=twice);
  [go] b -> [0.1,p] : (x'=1) + [0.5,1] : (x'=2);
  [] "far" -> true;
endmodule
module two = one [x=y, b=c, go=stop, min=max] endmodule
init x=0 endinit
label "far" = x>2;
rewards "cost"
  x=0 : 1;
  [go] b : x;
  [] true : 3;
endrewards
rewards true : 1; endrewards
"""


def test_whole_model():
    """Each construct becomes its node."""
    model = parse_model(MODEL)
    assert model.type is ModelType.MDP
    assert model.definitions[:6] == (
        Definition("constant", "N", Literal(3), Type.INT),
        Definition("constant", "M", None, Type.INT),
        Definition("constant", "p", Literal(0.25), Type.DOUBLE),
        Definition("constant", "on", Literal(True), Type.BOOL),
        Definition("constant", "r", Literal(2), Type.DOUBLE),
        Definition("constant", "q", None, Type.DOUBLE),
    )
    assert model.globals == (VariableDeclaration("g", Literal(0), Name("N"), Literal(1)),)
    one, two = model.modules
    assert one.variables[1] == VariableDeclaration("b", None, None, None)
    assert two == RenamedModule(
        "two",
        "one",
        tuple(Renaming(*pair) for pair in ["xy", "bc", ("go", "stop"), ("min", "max")]),
    )
    assert one.commands[0].updates == (
        Update(Name("p"), (Assignment("x", Literal(1)), Assignment("b", Literal(True)))),
        Update(Binary("-", Literal(1), Name("p")), ()),
    )
    assert one.commands[1] == Command(
        None, Name("b"), (Update(Literal(1.0), (Assignment("x", Name("twice")),)),)
    )
    assert one.commands[2].updates[0].probability == ProbabilityInterval(Literal(0.1), Name("p"))
    assert one.commands[3] == Command(None, Label("far"), (Update(Literal(1.0), ()),))
    assert model.rewards[0] == RewardStructure(
        "cost",
        (
            RewardItem(None, Binary("=", Name("x"), Literal(0)), Literal(1)),
            RewardItem("go", Name("b"), Name("x")),
            RewardItem("", Literal(True), Literal(3)),
        ),
    )
    assert model.rewards[1].name is None


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("", None),
        ("dtmc", ModelType.DTMC),
        ("probabilistic", ModelType.DTMC),
        ("mdp", ModelType.MDP),
        ("nondeterministic", ModelType.MDP),
        ("idtmc", ModelType.IDTMC),
        ("imdp", ModelType.IMDP),
    ],
)
def test_model_types(words, kind):
    """All words for the four types are known, and the type may be missing or come last."""
    assert parse_model(words).type is kind
    assert parse_model(f"const int N = 1; {words}").type is kind


def test_positions():
    """Nodes know where they stand, and equality does not look at it."""
    model = parse_model("dtmc\nmodule m\n  x : [0..1];\n  [] x=0 -> 1 : (x'=x+1);\nendmodule")
    command = model.modules[0].commands[0]
    assert command.position == (4, 3)
    assert command.guard.position == (4, 6)
    assert command.updates[0].assignments[0].position == (4, 18)
    assert Name("x", position=(1, 2)) == Name("x")


def test_crlf_comments_and_byte_order_mark():
    """Windows files are read like others."""
    text = "dtmc // type\nmodule m // name\n  x : [0..1];\nendmodule // end"
    assert parse_model("\ufeff" + text.replace("\n", "\r\n")) == parse_model(text)


def test_empty_text_is_an_empty_model():
    """An empty text is no syntax error; that a module is missing is said by the check."""
    assert parse_model("// nothing") == ModelFile()


@pytest.mark.parametrize(
    "text",
    [
        "(" * 2000 + "a" + ")" * 2000,
        "a" + "+1" * 2000,
        "a+(" * 2000 + "b" + ")" * 2000,
        "-" * 2000 + "a",
        "!" * 2000 + "a",
        "a?b:" * 2000 + "c",
        "a=>" * 2000 + "b",
        "min(" * 2000 + "a" + ")" * 2000,
    ],
    ids=["parentheses", "plus", "right", "minus", "not", "choice", "implies", "calls"],
)
def test_deep_expressions(text):
    """Depth is no reason to fail."""
    assert write_expression(parse_expression(text))


def test_unclosed_depth_is_an_error_with_a_place():
    """A text that opens 2000 parentheses and closes none is answered as any other mistake."""
    with pytest.raises(PrismError, match="expected an expression, found the end of the text"):
        parse_expression("(" * 2000)


def test_importing_rfmdp_does_not_load_the_parser():
    """The parser generator is loaded only by those who parse."""
    code = "import rfmdp, rfmdp.language.check, sys; sys.exit('lark' in sys.modules)"
    assert python(code).returncode == 0


def test_parser_is_built_once(monkeypatch):
    """A second text does not pay for the grammar again."""
    parse_model("dtmc")
    monkeypatch.setattr("rfmdp.language.parse.Lark", None)
    parse_model("dtmc module m x : [0..1]; endmodule")
