"""Properties as text become trees, and trees become checked properties."""

import pytest
from hypothesis import given, strategies as st

from rfmdp.answers.property import parse_property
from rfmdp.errors import PrismError
from rfmdp.language.ast import (
    Binary,
    Bound,
    CumulativeReward,
    Filter,
    InstantaneousReward,
    Ite,
    Label,
    Literal,
    Name,
    Path,
    Probability,
    Reward,
    TimeBound,
    Type,
    Unary,
    Unreadable,
)
from rfmdp.language.check import check_model
from rfmdp.language.check_properties import check_property, require_supported
from rfmdp.language.expressions import write_expression
from rfmdp.language.parse import parse_model, parse_property_file
from rfmdp.objective import MAX, MIN

A, B, K = Name("a"), Name("b"), Name("k")
FA = Path("F", None, A)


def read(text):
    """Return the tree of a single property."""
    (prop,) = parse_property_file(text).properties
    return prop.expression


def probability(path, agent=None, nature=None, bound=None):
    """Make P with what is not said left out."""
    return Probability(agent, nature, bound, path)


@pytest.mark.parametrize(
    ("text", "agent", "nature", "bound"),
    [
        ("P=?", None, None, None),
        ("P = ?", None, None, None),
        ("Pmin=?", MIN, None, None),
        ("P max =?", MAX, None, None),
        ("Pmaxmin=?", MAX, MIN, None),
        ("P minmax =?", MIN, MAX, None),
        ("P max max =?", MAX, MAX, None),
        ("Pminmin=?", MIN, MIN, None),
        ("P>=0.9", None, None, Bound(">=", Literal(0.9))),
        ("P<k", None, None, Bound("<", K)),
        ("P>1-k", None, None, Bound(">", Binary("-", Literal(1), K))),
        ("Pmaxmin>=0.5", MAX, MIN, Bound(">=", Literal(0.5))),
    ],
)
def test_quantifiers_and_bounds(text, agent, nature, bound):
    """P and R take the same quantifiers and bounds, with or without spaces."""
    assert read(f"{text} [ F a ]") == Probability(agent, nature, bound, FA)
    assert read(f"R{text[1:]} [ F a ]") == Reward(None, agent, nature, bound, FA)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("X a", Path("X", None, A)),
        ("F a", FA),
        ("G a", Path("G", None, A)),
        ("a U b", Path("U", A, B)),
        ("a W b", Path("W", A, B)),
        ("a R b", Path("R", A, B)),
        ("F<=3 a", Path("F", None, A, TimeBound(None, Literal(3)))),
        ("F<3 a", Path("F", None, A, TimeBound(None, Literal(3), upper_strict=True))),
        ("F>=3 a", Path("F", None, A, TimeBound(Literal(3), None))),
        ("F>3 a", Path("F", None, A, TimeBound(Literal(3), None, lower_strict=True))),
        ("F=3 a", Path("F", None, A, TimeBound(Literal(3), Literal(3)))),
        ("F[2,k] a", Path("F", None, A, TimeBound(Literal(2), K))),
        ("F<=k (a)", Path("F", None, A, TimeBound(None, K))),
        ("F<=k (a)&(b)", Path("F", None, Binary("&", A, B), TimeBound(None, K))),
        ("F<=2*k !a", Path("F", None, Unary("!", A), TimeBound(None, Binary("*", Literal(2), K)))),
        ('a U<=3 "init"', Path("U", A, Label("init"), TimeBound(None, Literal(3)))),
        ("a&b U a|b", Path("U", Binary("&", A, B), Binary("|", A, B))),
        ("(F a)", FA),
        ("!(F a)", Unary("!", FA)),
        ("a", A),
        ("a ? b : k", Ite(A, B, K)),
        (
            "F P>0.5 [ X b ]",
            Path(
                "F",
                None,
                Probability(None, None, Bound(">", Literal(0.5)), Path("X", None, B)),
            ),
        ),
    ],
)
def test_paths(text, path):
    """Path operators bind looser than all others, and take bounds on steps."""
    assert read(f"P=? [ {text} ]") == probability(path)


def test_path_operators_within_a_chain_need_parentheses():
    """`a => F b` has one reading; that of `a & F b & c` is not clear, as PRISM and Storm differ."""
    assert parse_property("P=? [ a => F b ]").text == "P=? [ a=>(F b) ]"
    with pytest.raises(PrismError, match="write the path formula in parentheses"):
        parse_property("P=? [ a & F b & c ]").spec()


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("F a", FA),
        ("C", CumulativeReward()),
        ("C<=k", CumulativeReward(K)),
        ("I=3", InstantaneousReward(Literal(3))),
        ("C{discount=0.9}", CumulativeReward(None, Literal(0.9))),
        ("C{discount=k}<=3", CumulativeReward(Literal(3), K)),
    ],
)
def test_reward_paths(text, path):
    """Rewards are collected to a target, over steps, for ever, or discounted."""
    assert read(f"R=? [ {text} ]") == Reward(None, None, None, None, path)


@pytest.mark.parametrize(
    ("text", "structure"),
    [('R{"r"}', "r"), ("R{2}", Literal(2)), ("R{k+1}", Binary("+", K, Literal(1))), ("R", None)],
)
def test_reward_structures(text, structure):
    """A reward structure is named, numbered or the first."""
    assert read(f"{text}max=? [ F a ]") == Reward(structure, MAX, None, None, FA)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("filter(min, P=? [ F a ], b)", Filter("min", probability(FA), B)),
        ("filter(+, P=? [ F a ])", Filter("sum", probability(FA))),
        ("filter(&, a, b)", Filter("forall", A, B)),
        ("filter(|, a, b)", Filter("exists", A, B)),
        ("filter(printall, a)", Filter("printall", A)),
        ("1-P=? [ F a ]", Binary("-", Literal(1), probability(FA))),
        (
            '"init" => P=? [ F a ]>0.5',
            Binary("=>", Label("init"), Binary(">", probability(FA), Literal(0.5))),
        ),
    ],
)
def test_filters_and_arithmetic(text, expected):
    """Filters, and P as a number among others."""
    assert read(text) == expected


FILE = """
// RESULT: 0.5
const int k = 2; const double T;
"first": P=? [ F a ]
// RESULT: ?
P=? [ F b ];;
label "ab" = a & b;
"second": "first" + 1; formula f = a | b;
zero
min(1,2)
"""


def test_files():
    """Properties end with ';' or where the next begins; definitions may stand between them."""
    file = parse_property_file(FILE)
    assert [prop.name for prop in file.properties] == ["first", None, "second", None, None]
    assert [definition.key for definition in file.definitions] == ["k", "T", '"ab"', "f"]
    assert file.properties[1].position == (6, 1)


@pytest.mark.parametrize(
    "text",
    [
        "multi(P>0 [ F a ])",
        "<<1>> P=? [ F a ]",
        "<<*>> (P>0 [ F a ])",
        "[[]] P=? [ F a ]",
        "[[p,2]] R=? [ C ]",
    ],
)
def test_unsupported_is_read(text):
    """What is not supported is a node in a file and an error as a single property."""
    assert isinstance(read(text), Unreadable)
    with pytest.raises(PrismError, match="is not supported"):
        parse_property(text)


def test_automata_are_read():
    """Automata from files, negated or not, are named as unsupported."""
    for sign in ("", "! "):
        text = f'P=? [ {sign}HOA: {{ "dir/a.hoa", "a" <- x=2, "b" <- b }} ]'
        with pytest.raises(PrismError, match=r"an automaton \('HOA: {...}'\) is not supported"):
            parse_property(text)
    assert read("P=? [ F a<-1 ]").path.right == Binary("<", A, Unary("-", Literal(1)))


def test_single_property():
    """A single property is one, not none and not two."""
    assert parse_property("P=? [ F a ];").parsed.expression == probability(FA)
    for text in ("", "P=? [ F a ] P=? [ F b ]"):
        with pytest.raises(PrismError, match="expected one property, found"):
            parse_property(text)


MODEL = check_model(
    parse_model(
        """const int N = 2; formula far = x=N; label "on" = b;
        module m x : [0..N]; b : bool; [go] true -> (x'=1); endmodule
        rewards "r" true : 1; endrewards rewards "s" true : 2; endrewards"""
    )
)


def checked(text, constants=None, number=0):
    """Check one property of a file against the model."""
    file = parse_property_file(text)
    return check_property(file.properties[number], file, MODEL, constants)


def test_names_are_resolved():
    """Formulas, labels and constants of model and file are replaced by what they stand for."""
    text = 'const int k = N+1; label "both" = "on" & far; P=? [ F<=2*k "both" ]'
    path = checked(text).expression.path
    assert path.time == TimeBound(None, Literal(6))
    assert path.right == Binary("&", B, Binary("=", Name("x"), Literal(2)))


def test_built_in_labels_stay():
    """The states of "init" and "deadlock" are known only later."""
    assert checked('P=? [ F "deadlock" ]').expression.path.right == Label("deadlock")


@pytest.mark.parametrize(
    ("text", "number"), [('R{"s"}=? [ C<=1 ]', 2), ("R{N}=? [ C<=1 ]", 2), ("R=? [ C<=1 ]", 1)]
)
def test_reward_structures_become_numbers(text, number):
    """However it is named, a reward structure ends up as its number."""
    assert checked(text).expression.structure == Literal(number)


def test_references_to_properties():
    """A quoted name that is no label is another property."""
    text = '"one": P=? [ F b ]; "two": 1-"one"; P>0.5 [ F "on" ] & "two">0.1'
    one = probability(Path("F", None, B))
    assert checked(text, number=1).expression == Binary("-", Literal(1), one)
    assert checked(text, number=2).type is Type.BOOL


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("P=? [ F b ]", Type.DOUBLE),
        ("P>0.5 [ F b ]", Type.BOOL),
        ("filter(count, b)", Type.INT),
        ("filter(max, x)", Type.INT),
        ("filter(avg, x)", Type.DOUBLE),
        ("filter(forall, P>0 [ F b ])", Type.BOOL),
        ("N", Type.INT),
    ],
)
def test_types(text, kind):
    """A property knows whether it answers with a number or with yes or no."""
    assert checked(text).type is kind


def test_only_used_constants_need_values():
    """A constant without a value matters to the properties that use it."""
    text = "const int T; P=? [ F b ]; P=? [ F<=T b ]"
    assert checked(text).type is Type.DOUBLE
    assert checked(text, {"T": 3}, 1).expression.path.time.upper == Literal(3)
    with pytest.raises(PrismError, match="found none for T"):
        checked(text, number=1)


def test_text_of_a_property():
    """The text is what the user wrote, in PRISM's notation and without the name."""
    assert parse_property('"p": P>=0.5[F<=2*N b]').text == "P>=0.5 [ F<=(2*N) b ]"


def test_deep_nesting():
    """Thousands of nested operators are read without recursion, and refused."""
    deep, too_deep = ("P>0 [ F " * count + "b" + " ]" * count for count in (50, 2000))
    assert checked(deep).type is Type.BOOL
    with pytest.raises(PrismError, match="at most 50 deep"):
        checked(too_deep)


BROKEN = """// a comment; with a semicolon
const int T = 4;
"one": Pmax=? [ F<=T x=3 ];
"two": Pmax=? [ F^{row{"time"}<=T} x=3 ]
"three": Pmin=? [ F x=3 ]
label "top" = x=3;
T=? [ F "top" ];
Pmax=? [ F ("top" ];
"last": Pmax=?
  [ G !"top" ];
"""


def test_a_property_that_cannot_be_read_does_not_take_the_others_with_it():
    """Each has its own error with its place; names, order and definitions stay."""
    file = parse_property_file(BROKEN, "b.props")
    assert [p.name for p in file.properties] == ["one", "two", "three", None, None, "last"]
    assert [definition.key for definition in file.definitions] == ["T", '"top"']
    errors = {}
    for number, prop in enumerate(file.properties):
        try:
            require_supported(prop.expression, file.source)
        except PrismError as error:
            errors[number] = str(error).partition("\n")[0]
    assert list(errors) == [1, 3, 4]
    assert errors[1].startswith("b.props:4:20: ")
    assert "rew{" in errors[1]
    assert "(T)" in errors[3]
    assert errors[4] == "b.props:8:19: expected ')', found ']'"
    assert write_expression(file.properties[1].expression) == 'Pmax=? [ F^{row{"time"}<=T} x=3 ]'


@pytest.mark.parametrize(
    "text",
    [
        "const int k = ; P=? [ F x=1 ]",
        'label "a" = x=; P=? [ F x=1 ];',
        "P=? [ F x=1 ]; formula f = ;",
        "mdp\nmodule m\n x : [0..1];\nendmodule",
    ],
)
def test_definitions_and_other_files_are_refused_as_a_whole(text):
    """Other properties need the definitions; a model is no file of properties."""
    with pytest.raises(PrismError):
        parse_property_file(text)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('P=? [ F^{rew{"r"}<=3} x=1 ]', 'P=? [ F{"r"}<=3 x=1 ]'),
        ('P=? [ x=0 U{"r"}<k x=1 ]', 'P=? [ x=0 U{"r"}<k x=1 ]'),
        ('P=? [ G^{rew{"r"}<=3} x=1 ]', 'P=? [ G{"r"}<=3 x=1 ]'),
        ("S=? [ x=1 ]", "S=? [ x=1 ]"),
        ("LRA=? [ x=1 ]", "S=? [ x=1 ]"),
        ("LRAmax=? [ x=1 | x=2 ]", "Smax=? [ x=1|x=2 ]"),
        ("Smaxmin>=0.5 [ x=1 ]", "Smaxmin>=0.5 [ x=1 ]"),
        ('R{"r"}max=? [ S ]', 'R{"r"}max=? [ S ]'),
        ("Rminmax=? [ LRA ]", "Rminmax=? [ S ]"),
    ],
)
def test_budgets_and_long_runs(text, canonical):
    """Words of PRISM and of Storm give the same tree, which is written in one way."""
    tree, again = (parse_property_file(t).properties[0].expression for t in (text, canonical))
    assert tree == again
    assert write_expression(tree) == canonical


@given(st.lists(st.sampled_from(["P=? [ F x=1 ]", "P=? [ F x==1 ]", 'S=? [ "a" ]', "P=? [ (x ]"])))
def test_as_many_properties_as_were_written(texts):
    """Whatever can be read or not, a file with a readable property has all of them in order."""
    file = parse_property_file("; ".join(["P=? [ X x=0 ]", *texts]))
    assert len(file.properties) == 1 + len(texts)
    for prop, text in zip(file.properties[1:], texts, strict=True):
        fails = isinstance(prop.expression, Unreadable)
        assert fails == ("==" in text or "(x" in text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("P=? [ F x=1 || x=2 ]", "'or' is written |"),
        ("P=? [ F x=1 && x=2 ]", "'and' is written &"),
        ("P=? [ F x==1 ]", "'equal' is written ="),
        ('Tmin=? [ F "a" ]', "expected times (T) are rewards"),
        ('T=? [ F "a" ]', "expected times (T) are rewards"),
    ],
)
def test_words_of_other_tools_have_a_hint(text, hint):
    """The one-line error says what to write instead, or that it is not there."""
    file = parse_property_file(text)
    with pytest.raises(PrismError) as caught:
        require_supported(file.properties[0].expression, file.source)
    assert hint in str(caught.value).partition("\n")[0]
