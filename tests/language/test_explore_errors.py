"""What can go wrong while a PRISM model is built: exact place, reason and state; and radii."""

import math
from contextlib import nullcontext

import pytest

from recording import recorded
from rfmdp.errors import FileError, ModelError, UnsupportedError
from rfmdp.language.build import load_prism, parse_prism
from rfmdp.language.source import PrismSourceError
from rfmdp.sets.marginals import Kind


def command(text, kind="mdp"):
    """Put a command into a model with x in 0..3; it stands in line 2."""
    return f"{kind} module m x : [0..3]; b : bool;\n{text}\nendmodule"


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        (
            "[] true -> (x'=x+1);",
            13,
            "the new value of 'x' must be in [0..3], found 4 in state (x=3, b=false)",
        ),
        (
            "[] true -> 0.5 : (x'=x-1) + 0.5 : true;",
            19,
            "the new value of 'x' must be in [0..3], found -1 in state (x=0, b=false)",
        ),
        (
            "[] true -> 0.5 : (x'=0) + 0.4 : (x'=1);",
            12,
            "the probabilities of a command must sum to 1, found 0.9 in state (x=0, b=false)",
        ),
        (
            "[] true -> 0.9-x : (x'=1) + 0.1+x : (b'=true);",
            12,
            "a probability must be in [0, 1], found -0.1 in state (x=1, b=false)",
        ),
        (
            "[] true -> 1.5 : (x'=1) + -0.5 : (b'=true);",
            12,
            "a probability must be in [0, 1], found 1.5 in state (x=0, b=false)",
        ),
        (
            "[] true -> 0/x : (x'=1) + 1 : (b'=true);",
            12,
            "a probability must be in [0, 1], found nan in state (x=0, b=false)",
        ),
        (
            "[] true -> [0.6,0.4] : (x'=1) + [0.1,0.9] : true;",
            12,
            "an interval must not be empty, found [0.6, 0.4] in state (x=0, b=false)",
        ),
        (
            "[] true -> [0.6,0.7] : (x'=1) + [0.5,0.9] : true;",
            12,
            "lower bounds must sum to at most 1, upper bounds to at least 1, found 1.1 ",
        ),
        (
            "[] true -> [0.1,0.3] : (x'=1) + [0.1,0.4] : true;",
            12,
            "lower bounds must sum to at most 1, upper bounds to at least 1, found 0.2 ",
        ),
        (
            "[] true -> [0.1,1.3] : (x'=1) + [0.1,0.4] : true;",
            12,
            "a probability must be in [0, 1], found 1.3 in state (x=0, b=false)",
        ),
        (
            "[] mod(3,x)=0 -> true;",
            4,
            "the second argument of 'mod' must be > 0, found 0 in state (x=0, b=false)",
        ),
    ],
)
@pytest.mark.parametrize("run", [recorded, nullcontext])
def test_mistake_names_place_and_state(text, column, reason, run):
    """The message has file, line, column, source line, caret and the first such state."""
    with pytest.raises(PrismSourceError) as caught, run():
        parse_prism(command(text), filename="bad.prism")
    assert (caught.value.line, caught.value.column) == (2, column)
    assert caught.value.reason.startswith(reason)
    shown = str(caught.value).split("\n")
    assert shown[0].startswith(f"bad.prism:2:{column}: ")
    assert shown[1:] == [text, " " * (column - 1) + "^"]


def test_equal_expressions_keep_their_places():
    """A mistake is where it happens, not where the same expression stands first."""
    good, bad = "[] x>0 -> (x'=x-1+0*mod(3,x));", "[] x=0 -> (x'=x-1+0*mod(3,x));"
    with pytest.raises(PrismSourceError) as caught:
        parse_prism(f"mdp module m x : [0..3] init 1;\n{good}\n{bad}\nendmodule")
    assert (caught.value.line, caught.value.column) == (3, bad.index("mod") + 1)


def test_zero_lower_bounds_are_allowed():
    """[0, u] is a possible outcome, [0, 0] is none."""
    text = command("[] true -> [0,0.5] : (x'=1) + [0.5,1] : true + [0,0] : (x'=9);", "imdp")
    model = parse_prism(text)
    assert model.marginals.lower.tolist() == [0.0, 0.5]
    assert model.transitions == 2 * model.states


def test_no_initial_state():
    """A condition that nothing satisfies is an error."""
    with pytest.raises(PrismSourceError, match="found none"):
        parse_prism(command("[] true -> true;") + " init x>1 & x<1 endinit")


def test_too_many_initial_candidates():
    """A condition over a huge domain is refused before it is tried."""
    text = """mdp module m x : [0..100000]; y : [0..100000]; [] true -> true; endmodule
    init x=y endinit"""
    with pytest.raises(PrismSourceError, match="add conjuncts"):
        parse_prism(text)


def test_nan_reward_is_an_error():
    """Only in states where its condition holds."""
    text = command("[] true -> (x'=mod(x+1,4));")
    rewards = "\nrewards x>0 : 1/x; x=0 : 0/x; endrewards"
    with pytest.raises(PrismSourceError, match=r"found nan in state \(x=0, b=false\)"):
        parse_prism(text + rewards)


def test_file_problems_are_one_line(tmp_path):
    """Missing files, folders and other encodings."""
    other = tmp_path / "other.prism"
    other.write_bytes(b"mdp\n// caf\xe9\n")
    for path, reason in [
        (tmp_path / "none.prism", "cannot be read: No such file"),
        (tmp_path, "cannot be read: Is a directory"),
        (other, "must be text in UTF-8, found byte 0xe9 in line 2"),
    ]:
        with pytest.raises(FileError, match=reason) as caught:
            load_prism(path)
        assert "\n" not in str(caught.value)


TWO = """mdp
module m x : [0..1];[a] true -> 0.5:(x'=0)+0.5:(x'=1); [b] true -> 0.3:(x'=0)+0.7:(x'=1); endmodule
module k y : [0..1]; [a] true -> 0.5 : (y'=0) + 0.5 : (y'=1); [b] true -> (y'=0); endmodule
"""


def test_renamed_modules_have_marginals_of_their_own():
    """A copy of text is no claim that both are alike."""
    text = """mdp
    module a x : [0..1]; [s] true -> 0.5 : (x'=0) + 0.5 : (x'=1); endmodule
    module b = a [x=y, s=t] endmodule"""
    model = parse_prism(text)
    assert len(model.marginals) == 2


def test_renamed_constants_part_marginals():
    """A copy with another probability has a marginal of its own."""
    text = """mdp
    const double p = 0.5; const double q = 0.25;
    module a x : [0..1]; [s] true -> p : (x'=0) + 1-p : (x'=1); endmodule
    module b = a [x=y, s=t, p=q] endmodule"""
    assert parse_prism(text).marginals.nominal.tolist() == [0.5, 0.5, 0.25, 0.75]


def test_other_norms_and_floor():
    """L1 balls keep their family; a floor is for boxes only."""
    nominal = parse_prism(TWO)
    assert set(nominal.with_radius(0.1, exponent=1.0).marginals.kind) == {Kind.L1}
    assert nominal.with_radius(0.9, floor=0.05).marginals.lower.min() == pytest.approx(0.05)
    with pytest.raises(UnsupportedError, match="L-infinity"):
        nominal.with_radius(0.1, exponent=2.0, floor=0.1)


def test_wrong_radii():
    """A radius is a number that is not negative."""
    for radius in (-0.1, math.nan):
        with pytest.raises(ModelError, match="must be a number >= 0"):
            parse_prism(TWO).with_radius(radius)
