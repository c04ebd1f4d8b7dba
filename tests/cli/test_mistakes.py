"""Mistakes that people make: one line, which says where, what was found, and what to try."""

import pytest

from rfmdp.cli.main import run

from .conftest import MODEL, PROPS

INTERVAL = """imdp
module m
  x : [0..2];
  [a] x=0 -> [0.2,0.4] : (x'=1) + [0.6,0.8] : (x'=2);
  [b] x>0 -> true;
endmodule
label "goal" = x=1;
"""
FILES = {
    "m.prism": MODEL,
    "m.props": PROPS,
    "i.prism": INTERVAL,
    "bad.prism": "mdp\nmodule m\n  x : [0..1];\n  [] x=0 - (x'=1);\nendmodule",
    "word.prism": "mdp\nmodule m\n  x : [0..1];\n  [] x=0 -> (z'=1);\nendmodule",
    "sum.prism": "mdp\nmodule m\n  x : [0..1];\n  [] true -> 0.5:(x'=0) + 0.6:(x'=1);\nendmodule",
    "range.prism": "mdp\nmodule m\n  x : [0..1];\n  [] true -> (x'=x+1);\nendmodule",
    "turned.prism": "imdp\nmodule m\n  x : [0..1];\n  [] true -> [0.6,0.4]:(x'=0);\nendmodule",
    "ctmc.prism": "ctmc\nmodule m\n  x : [0..1];\n  [] true -> 2:(x'=0);\nendmodule",
    "empty.prism": "",
    "paid.prism": "mdp\nmodule m\n  x : [0..1];\n  [a] true -> (x'=1);\nendmodule\n"
    "rewards [a] true : -1; endrewards",
    "text.rfmdp": "hello",
    "bad.tra": "2 1 2\n0 0 1 0.5\n0 0 5 0.5\n",
    "short.tra": "2 1 1\n",
    "bad.props": 'Pmax=? [ F "top" ',
    "empty.props": "// nothing yet\n",
    "action.csv": "x,action\n0,fly\n",
    "column.csv": "y,action\n0,up\n",
}
N, TOP, GOAL = "--const N=3", ["--prop", 'Pmax=? [ F "top" ]'], ["--prop", 'Pmaxmin=? [ F "goal" ]']


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder with files that are right and files that are not."""
    folder = tmp_path_factory.mktemp("mistakes")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "folder").mkdir()
    right = [
        ["solve", "m.prism", *TOP, "-o", "r.rfmdp", *N.split()],
        ["solve", "m.prism", "m.props", "--prop", "reach", "--const", "N=3,k=2", "-o", "h.rfmdp"],
        ["convert", "i.prism", "i.rfmdp"],
        ["learn", "i.prism", *GOAL, "--trajectories", "20", "-o", "l.run"],
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert [run(words) for words in right] == [0] * len(right)
    return folder


def prop(text):
    """Return the words that ask about the model with a property of the user's own."""
    return ["solve", "m.prism", *N.split(), "--prop", text]


def top(words):
    """Return words with the property of the first model and its constant."""
    command, model, *rest = words.split()
    return [command, model, *TOP, *N.split(), *rest]


def goal(words):
    """Return words that learn from the second model, with its property."""
    return ["learn", "i.prism", *GOAL, "--trajectories", "20", *words.split()]


MISTAKES = [  # words, what the one line must say
    (["slove", "m.prism"], ["No such command 'slove'", "did you mean 'solve'?"]),
    ([], ["a command is needed"]),
    (["solve"], ["Missing argument", "MODEL", "rfmdp solve --help"]),
    (top("solve m.prism --raduis 0.1"), ["--raduis", "--radius"]),
    (top("solve m.prism --jobs two"), ["--jobs", "'two'", "integer", "rfmdp solve --help"]),
    (top("solve m.prism --json=yes"), ["--json", "not take a value", "rfmdp solve --help"]),
    (["solve", "a", "b", "c"], ["unexpected extra argument", "(c)", "rfmdp solve --help"]),
    (["solve", "chain", "--radius", "0.1", "--set=l1:0.1"], ["--radius and --set", "give one"]),
    (["solve", "aircarft"], ["aircarft: there is no such file", "aircraft"]),
    (["solve", "no.prism", *TOP], ["no.prism: the file cannot be read", "No such file"]),
    (["solve", "no.prism"], ["no.prism: the file cannot be read", "No such file"]),
    (["solve", "no.umb", *TOP], ["no.umb"]),
    (["solve", "no.rfmdp", *TOP], ["no.rfmdp"]),
    (["solve", "folder", *TOP], ["folder", "directory"]),
    # models
    (["solve", "empty.prism", *TOP], ["empty.prism:1:1", "module"]),
    (["solve", "bad.prism", *TOP], ["bad.prism:4:13", "(x'=1)"]),
    (["check", "bad.prism"], ["bad.prism:4:13"]),
    (["check", "word.prism"], ["word.prism:4:14", "'z'"]),
    (["check", "sum.prism"], ["sum.prism:4:", "sum to 1", "1.1", "(x=0)"]),
    (["check", "range.prism"], ["range.prism:4:", "[0..1]", "found 2", "(x=1)"]),
    (["check", "turned.prism"], ["turned.prism:4:", "[0.6, 0.4]"]),
    (["check", "ctmc.prism"], ["ctmc.prism:1:1", "'ctmc'", "mdp"]),
    (["check", "text.rfmdp"], ["text.rfmdp", "not a file of rfmdp"]),
    (["check", "bad.tra"], ["bad.tra:3", "0..1", "found 5"]),
    (["check", "short.tra"], ["short.tra:1", "truncated"]),
    (["check", "r.rfmdp"], ["r.rfmdp: must hold a model, holds a solution"]),
    # constants
    (["solve", "m.prism", *TOP], ["m.prism:2:11", "found none for N; give --const N=..."]),
    (["solve", "m.prism", *TOP, "--const", "N"], ["--const must be NAME=VALUE", "'N'"]),
    (["solve", "m.prism", *TOP, "--const", "N=2.5"], ["'N'", "int", "2.5"]),
    (["solve", "m.prism", *TOP, "--const", "N=99999999999"], ["at most 2147483647"]),
    (["solve", "m.prism", *TOP, "--const", "N=x"], ["'N'", "a number", "'x'"]),
    (["solve", "m.prism", *TOP, "--const", "N=3,M=2"], ["no constant 'M'", "such constants: N"]),
    (["solve", "m.prism", *TOP, "--const", "N=3,N=4"], ["--const N", "one value, got 3 and 4"]),
    (
        ["solve", "m.prism", *TOP, "--const", "N=3:1"],
        ["--const N: a range must be LOW:HIGH", "3:1"],
    ),
    (["solve", "m.prism", *TOP, "--const", "N=1:99999"], ["--const N", "at most 10000"]),
    # properties
    (["solve", "m.prism", *N.split()], ["A property is needed", "--prop"]),
    (["solve", "m.prism", "no.props"], ["no.props: the file cannot be read", "No such file"]),
    (["solve", "m.prism", "Pmax=? [ F x=1 ]"], ["--prop"]),
    (["solve", "m.prism", "bad.props", *N.split()], ["bad.props:1:", "']'", "end of the text"]),
    (["simulate", "m.prism", "empty.props", *N.split()], ["one property", "found 0", "--prop"]),
    (["solve", "m.prism", "m.props", "--prop", "9"], ["--prop", "1..3", "9"]),
    (["solve", "m.prism", "empty.props", *N.split()], ["empty.props: must have at least one prop"]),
    (["check", "m.prism", "empty.props", *N.split()], ["empty.props: must have at least one prop"]),
    (["solve", "-", "-"], ["the model or the properties must be a file"]),
    (["check", "-", "-"], ["the model or the properties must be a file"]),
    (prop("2"), ["--prop 2: a number must be that of a property in a file", "after the model"]),
    (["solve", "m.prism", "m.props", *N.split(), "--prop", "zzz"], ["'zzz'", "reach, cost, sure"]),
    (prop("filter(foo, Pmax=? [ F x=1 ])"), ["--prop:1:8", "'foo'", "first, print, printall"]),
    (prop("filter(foralls, P>0 [ F x=1 ])"), ["did you mean 'forall'?"]),
    (
        ["simulate", "m.prism", *N.split(), "--prop", "filter(max, Pmax=? [ F x=1 ])"],
        ["found 'filter(", "`rfmdp solve`"],
    ),
    (
        ["solve", "paid.prism", "--prop", "Rmax=? [ C ]"],
        ["rewards >= 0", "pays -1", "C<=k", "C{discount=0.9}"],
    ),
    (["solve", "m.prism", "m.props", *N.split(), "--prop", "reach"], ["m.props:1:11", "k=..."]),
    (["simulate", "m.prism", "m.props", *N.split(), "--prop", "reach"], ["m.props:1:11", "k=..."]),
    (["simulate", "m.prism", "m.props", *N.split()], ["one property", "found 3", "--prop"]),
    (prop('Pmax=? [ F "tpo" ]'), ["--prop:1:12", "unknown label", '"tpo"', '"top"']),
    (prop("Pmax=? [ F x=1"), ["--prop:1:"]),
    (prop("Pmax=? [ F y=1 ]"), ["--prop:1:12", "unknown name 'y'"]),
    (prop("Pmax=? [ F x ]"), ["--prop:1:12", "bool", "int"]),
    (prop("P=? [ F x=1 ]"), ["--prop:1:1", "must say min or max", "Pmin=? or Pmax=?"]),
    (prop("Pmaxmix=? [ F x=1 ]"), ["did you mean 'Pmaxmin'"]),
    (prop('R{"movse"}min=? [ F x=1 ]'), ['"movse"', '"moves"']),
    (prop("Pmax=? [ F<=-1 x=1 ]"), ["--prop:1:13", ">= 0", "-1"]),
    (prop("P>=2 [ F x=1 ]"), ["--prop:1:4", "0..1", "2.0"]),
    (prop("multi(Pmax=? [ F x=1 ])"), ["--prop:1:1", "'multi(...)'", "not supported"]),
    # sets and settings of solve
    (top("solve m.prism --radius -0.1"), ["radius", ">= 0", "-0.1"]),
    (["solve", "chain", "--radius", "-0.1"], ["radius", ">= 0", "-0.1"]),
    (top("solve m.prism --radius wide"), ["--radius", "a number", "'wide'"]),
    (top("solve m.prism --radius l3"), ["--radius must be", "l1:R", "'l3'"]),
    (top("solve m.prism --radius lp0.5:0.1"), ["--radius must be", "P >= 1", "'lp0.5:0.1'"]),
    (["solve", "i.prism", *GOAL, "--radius", "0.1"], ["--radius must", "add --nominal"]),
    (["solve", "i.prism", *GOAL, "--radius", "l1:0.1"], ["--radius must", "add --nominal"]),
    (top("solve m.prism --inner exakt"), ["--inner must be one of exact", "'exakt'"]),
    (top("solve m.prism --precision 0"), ["precision must be > 0", "0.0"]),
    (top("solve m.prism --timeout -1"), ["--timeout must be > 0", "-1"]),
    (top("solve m.prism --scheduler tcp://nowhere"), ["tcp://nowhere: must be tcp://HOST:PORT"]),
    (top("solve m.prism -o nowhere/r.rfmdp"), ["nowhere/r.rfmdp", "no folder nowhere"]),
    (top("solve m.prism -o folder"), ["folder", "it is a folder", "name a file"]),
    (top("solve m.prism -o no/p.csv"), ["no/p.csv: cannot be written"]),
    (["solve", "m.prism", "m.props", "--const", "N=3,k=1", "-o", "p.csv"], ["found 3"]),
    (
        ["solve", "m.prism", *TOP, "--const", "N=1:2", "-o", "x.rfmdp"],
        ["one run, found 2", "one value", "--json"],
    ),
    ([*prop("x=1"), "-o", "p.csv"], ["neither P nor R"]),
    # results
    (["verify", "no.rfmdp"], ["no.rfmdp", "check the name"]),
    (["verify", "i.rfmdp"], ["i.rfmdp: must hold a solution", "a model", "solve -o"]),
    (["verify", "m.prism"], ["m.prism: is not a file of rfmdp", "-o"]),
    (["report", "m.prism"], ["m.prism: is not a file of rfmdp", "-o"]),
    (["explain", "m.prism"], ["m.prism: is not a file of rfmdp", "-o"]),
    (["policy", "aircraft", "-o", "p.csv"], ["aircraft: cannot be read", "check the name"]),
    (["verify", "m.props"], ["m.props: is not a file of rfmdp", "-o"]),
    (["report", "m.props"], ["m.props: is not a file of rfmdp", "-o"]),
    (["policy", "r.rfmdp"], ["--output", "rfmdp policy --help"]),
    (["policy", "r.rfmdp", "-o", "p.xls"], ["p.xls", ".csv"]),
    (["explain", "i.rfmdp"], ["i.rfmdp: must hold a result of"]),
    (["explain", "r.rfmdp", "--state", "x=9"], ["x=9", "x in 0..3"]),
    (["explain", "r.rfmdp", "--state", "y=1"], ["(x)", "y"]),
    (["explain", "r.rfmdp", "--state", "99"], ["--state", "0..3", "'99'"]),
    (["explain", "r.rfmdp", "--step", "-1"], ["the step must be in 0..", "-1"]),
    (["explain", "h.rfmdp", "--step", "2"], ["step", "0..1", "2"]),
    (top("evaluate m.prism --policy no.csv"), ["no.csv", "No such file"]),
    (top("evaluate m.prism --policy action.csv"), ["action.csv", "'fly'", "up, jump"]),
    (top("evaluate m.prism --policy column.csv"), ["column.csv", "missing: x"]),
    (["report", "i.rfmdp"], ["solutions or learning runs", "solve -o"]),
    # simulation
    (top("simulate m.prism --policy greedy"), ["--policy", "uniform, optimal", "'greedy'"]),
    (top("simulate m.prism --nature kind"), ["--nature", "worst", "'kind'"]),
    (top("simulate m.prism --nature worst"), ["--nature", "--policy"]),
    (
        ["solve", "m.prism", *TOP, *TOP, *N.split(), "--radius", "0.1", "--inner", "radius-sum"],
        ["radius-sum", "--radius l1:R", "are others"],
    ),
    (top("simulate m.prism --length 0"), ["--length", "> 0"]),
    # learning
    (["learn", *GOAL], ["MODEL", "rfmdp learn --help"]),
    (goal("--method anytiem"), ["no learning method 'anytiem'", "anytime"]),
    (goal("--beta 1.5"), ["beta must be a number larger than 0 and less than 1", "1.5"]),
    (goal("--p-min 3"), ["p_min must be a number", "less than 1", "3"]),
    (goal("--seeds 0"), ["--seeds must be > 0"]),
    (goal("--length 0"), ["--length must be > 0"]),
    (goal("--jobs -1"), ["--jobs must be > 0"]),
    (goal("--timeout 0"), ["--timeout must be > 0"]),
    (goal("--gap -1"), ["--gap", "> 0", "-1"]),
    (goal("--target nan"), ["--target", "finite", "nan"]),
    (goal("--rewards 0:x"), ["--rewards must be one of", "'0:x'"]),
    (goal("--rewards 0:1"), ["objective must be"]),
    (goal("--rewards 1:0"), ["--rewards 1:0", "low < high"]),
    (goal("--p-min 0.9"), ["p_min", "0.9", "m: [a] line 4", "smaller"]),
    (goal("--data r.rfmdp"), ["r.rfmdp: data must end in one of .parquet"]),
    (goal("-o no/run.rfmdp"), ["no/run.rfmdp: cannot be written"]),
    (goal("--resume"), ["--resume", "-o FILE"]),
    (goal("--resume -o no.run"), ["no.run", "no file"]),
    (goal("-o l.run"), ["l.run: must not exist", "resume"]),
    (goal("--resume -o l.run --beta 0.1"), ["l.run", "beta (0.0001, now 0.1)"]),
    (["learn", "i.prism", "--prop", 'P>=0.5 [ F "goal" ]'], ["P>=0.5", "=?", "--target"]),
    # the rest
    (["convert", "i.prism", "out.pdf"], ["out.pdf: must end in one of .tra, .umb, .rfmdp"]),
    (["convert", "i.prism", "no/m.umb"], ["no/m.umb: cannot be written"]),
    (["convert", "i.prism", "no/m.rfmdp"], ["no/m.rfmdp: cannot be written"]),
    (["convert", "m.prism", "m.umb"], ["found none for N"]),
    (["convert", "i.prism"], ["TARGET", "rfmdp convert --help"]),
    (["solve", "m.prism", "m.props", "--prop", "cots", *N.split()], ["'cots'", "'cost'"]),
    (["solve", "m.prism", "m.props", "--prop", '"raech"', *N.split()], ["raech", "'reach'"]),
    (["domains", "aircarft"], ["'aircarft'", "aircraft"]),
]


@pytest.mark.parametrize(("words", "said"), MISTAKES, ids=[" ".join(m[0]) for m in MISTAKES])
def test_a_mistake_is_one_line_that_helps(words, said, made, monkeypatch, capsys):
    """Exit code 1; the place, what was found and what to try are in the line."""
    monkeypatch.chdir(made)
    before = {path: path.read_bytes() for path in made.iterdir() if path.is_file()}
    assert run(words) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("rfmdp: error: ")
    assert [part for part in said if part not in lines[0]] == []
    assert {path: path.read_bytes() for path in made.iterdir() if path.is_file()} == before


@pytest.mark.parametrize(
    ("words", "last"),
    [
        (prop("filter(foo, Pmax=? [ F x=1 ])"), "first, print, printall"),  # floor is no filter
        (["solve", "m.prism", *TOP, "--const", "N=99999999999"], "2147483647"),  # N is no double
    ],
)
def test_a_line_ends_without_a_hint_that_would_not_help(words, last, made, monkeypatch, capsys):
    """What was found is said, and nothing is suggested that would be refused again."""
    monkeypatch.chdir(made)
    assert run(words) == 1
    assert capsys.readouterr().err.rstrip().endswith(last)
