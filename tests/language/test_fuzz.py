"""Damaged texts: whatever is done to them, the answer is a value or an error of ours."""

import math
import random
import warnings

import pytest

from rfmdp.answers.answer import check
from rfmdp.errors import PrismWarning, RfmdpError
from rfmdp.language.build import build_model
from rfmdp.language.check import check_model
from rfmdp.language.check_properties import check_property
from rfmdp.language.parse import parse_model, parse_property_file

MODELS = [
    """mdp
const int N = 2; const double p = 0.3; formula free = x<N & !b;
global g : [0..N] init 0;
module one
  x : [0..N] init 0; b : bool init false;
  [go] free -> p:(x'=x+1) + 1-p:(x'=min(x,1))&(b'=true);
  [] "far" | g=1 -> (g'=mod(g+1,N));
endmodule
module two = one [x=y, b=c, go=stop] endmodule
label "far" = x=N;
rewards "r" x=0 : pow(2,x); [go] true : 1.5e-1; endrewards
""",
    """dtmc
module m
  s : [0..3]; // state
  [] s=0 -> [0.1,0.4] : (s'=1) + [0.6,0.9] : (s'=2);
  [] s>0 -> (s' = s=3 ? 0 : s+1);
endmodule
init s<2 endinit
""",
]
PROPERTIES = [
    'P=? [ F "far" ]; "q": Pmaxmin=? [ x=0 U<=N+1 b ]; R{"r"}min=? [ C{discount=0.9}<=3 ];',
    'const int k = 2; label "l" = x>0; filter(avg, P>=0.5 [ G[1,k] !(b) ], "l") P=? [ X x=1 ]',
    'R{1}max=? [ F x=2 ] P=? [ G F b ] S=? [ b ] 1-P=? [ (x=0) W "l" ] multi(x, 1)',
]
PIECES = [
    *"()[]{}=<>!&|+-*/^?:;,.'\"#\n\t\\ x1",
    *["..", "->", "=>", "<=>", "<=", "!=", "<<", "1e999", "99999999999", "1.", ".5", "x'", '"x"'],
    *["module", "endmodule", "init", "const", "true", "min", "pow", "mod", "func", "rewards"],
    *["P", "R", "S", "F", "G", "U", "X", "C", "I", "E", "A", "Pmax", "filter", "multi", "label"],
    *["é", "\0", "\u2028", "//", "clock", "system", "2147483647", "mod(1,0)", "0/0"],
]
QUESTIONS = [
    "Pmin=? [ F s=1 ]",
    "Pmaxmin=? [ x=0 U<=3 b ]",
    "P>=0.5 [ X x=1 ]",
    "R>=1 [ C<=2 ]",
    "Rmax=? [ F x=1 ]",
    "filter(max, Pmax=? [ F s=1 ])",
    "Pmin=? [ G x<2 ]",
    "Smax=? [ s>1 ]",
]
CHECKED = check_model(parse_model(MODELS[0]))


def damaged(text, rng):
    """Return a text with a few random cuts, copies, swaps and insertions."""
    for _ in range(rng.randint(1, 4)):
        i, j = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        j = min(j, i + rng.randint(0, 12))
        k = rng.randrange(len(text) + 1)
        text = rng.choice(
            [
                text[:i] + text[j:],
                text[:i] + rng.choice(PIECES) + text[i:],
                text[:i] + rng.choice(PIECES) + text[j:],
                text[:k] + text[i:j] + text[k:],
                text[:i],
            ]
        )
    return text


def survive(seed):
    """Damage one text, read it, and build and ask what is small; only our errors may come out."""
    rng = random.Random(seed)
    if rng.random() < 0.6:
        text = damaged(rng.choice(MODELS), rng)
    else:
        text = damaged(rng.choice(PROPERTIES), rng)
    checked = answer(lambda: check_model(parse_model(text)))
    if checked is not None and math.prod(v.high - v.low + 1 for v in checked.variables) < 10_000:
        ask(checked, rng)
    file = answer(lambda: parse_property_file(text))
    for prop in file.properties if file is not None else ():
        answer(lambda prop=prop: check_property(prop, file, CHECKED))


def ask(checked, rng):
    """Build a model and ask it a property."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrismWarning)
        model = answer(lambda: build_model(checked))
    if model is not None:
        answer(lambda: check(model, rng.choice(QUESTIONS)))


def answer(read):
    """Return what is read, or None after an error of ours; everything else is a failure."""
    try:
        return read()
    except RfmdpError:
        return None


def test_damaged_texts():
    """500 damaged texts give values or errors of ours."""
    for seed in range(500):
        survive(seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_many_damaged_texts(block):
    """10,000 damaged texts give values or errors of ours."""
    for seed in range(1000 * (block + 1), 1000 * (block + 2)):
        survive(seed)


@pytest.mark.parametrize("size", [1, 10, 100, 1000])
def test_random_pieces(size):
    """Texts of nothing but random words and signs are answered too."""
    rng = random.Random(size)
    for _ in range(20):
        text = " ".join(rng.choice(PIECES) for _ in range(size))
        answer(lambda text=text: parse_model(text))
        answer(lambda text=text: parse_property_file(text))
