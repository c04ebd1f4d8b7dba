"""`rfmdp solve`: argv to the API, exit codes, what is printed and written."""

import csv
import io
import json
import sys

import pytest

from rfmdp import __version__
from rfmdp.answers import answer
from rfmdp.answers.answer import Answer
from rfmdp.cli.main import run
from rfmdp.language.ast import Type
from rfmdp.outer.solution import Status

from .conftest import results

FIELDS = [
    "property", "method", "status", "value", "lower", "upper", "precision", "states", "rows",
    "transitions", "marginals", "seconds_build", "seconds_solve", "version",
]  # fmt: skip


def test_a_property_file(folder, capsys):
    """Every property gives a table and a result line."""
    assert run(["solve", "m.prism", "m.props", "--const", "N=3,k=3"]) == 0
    reach, cost, sure = results(capsys.readouterr().out)
    assert float(reach) == pytest.approx(0.53125)  # 1/4 + 3/4 (1/4 + 1/8)
    assert float(cost) > 0
    assert sure == "true"


@pytest.mark.parametrize(
    ("prop", "result"),
    [
        ("1", "0.25"),
        ("reach", "0.25"),
        ("3", "true"),
        ("sure", "true"),
        ('Pmax=? [ F<=k+2 "top" ]', "0.53125"),
        ('"sure" & P<1 [ F<=1 "top" ]', "true"),
        ("filter(max, x)", "3"),
        ('R{"moves"}max=? [ F x=3 & x=0 ]', "Infinity"),
        ("P<=0 [ F x=3 ]", "false"),
    ],
)
def test_choosing_a_property(prop, result, folder, capsys):
    """--prop is a number, a name or a text that may use the file."""
    assert run(["solve", "m.prism", "m.props", "--prop", prop, "--const", "N=3,k=1"]) == 0
    (found,) = results(capsys.readouterr().out)
    if result[0].isdigit() and result != "3":
        assert float(found) == pytest.approx(float(result))
    else:
        assert found == result


def test_json_is_one_object_per_property(folder, capsys):
    """Nothing else on standard output; the fields are fixed."""
    assert run(["solve", "m.prism", "m.props", "--const", "N=3,k=2", "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [list(one) for one in found] == [["constants", "name", *FIELDS]] * 3
    assert [one["constants"] for one in found] == [{"N": 3, "k": 2}] * 3
    assert [one["name"] for one in found] == ["reach", "cost", "sure"]
    assert found[0]["lower"] <= found[0]["value"] <= found[0]["upper"]
    assert found[0]["status"] == "certified"
    assert found[0]["version"] == __version__
    assert found[2]["value"] is True
    assert (found[0]["states"], found[0]["rows"]) == (4, 5)


def test_a_property_that_fails_does_not_stop_the_others(folder, capsys):
    """It gives an object with the error, and the exit code 1."""
    text = 'Pmax=? [ F "nothing" ]; multi(Pmax=? [ F x=1 ]); Pmax=? [ F x=3 ]'
    assert run(["solve", "m.prism", "--prop", text, "--const", "N=3", "--json"]) == 1
    captured = capsys.readouterr()
    first, second, third = (json.loads(line) for line in captured.out.splitlines())
    assert list(first) == list(second) == ["constants", "property", "status", "error"]
    assert first["status"] == second["status"] == "error"
    assert "nothing" in first["error"]
    assert "multi" in second["error"]
    assert third["value"] == pytest.approx(1.0)
    assert len(captured.err.splitlines()) == 2


def test_infinite_values_are_valid_json(folder, capsys):
    """Infinity is a string, since JSON has no such number."""
    args = ["solve", "m.prism", "--const", "N=3", "--json"]
    assert run([*args, "--prop", 'R{"moves"}max=? [ F x=3 & x=0 ]']) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert (found["value"], found["lower"], found["upper"]) == ("Infinity",) * 3


def test_not_certified_is_exit_code_2(folder, capsys):
    """A one-sided method leaves a side open and says so."""
    args = ["solve", "interval.prism", "--prop", 'Pmaxmin=? [ F "goal" ]', "--inner", "interval"]
    assert run([*args, "--json"]) == 0  # one box per row is no product: both sides are proven
    found = json.loads(capsys.readouterr().out)
    assert (found["method"], found["value"]) == ("interval", pytest.approx(0.2))
    two = "imdp module a x:[0..2]; [go] x=0 -> [0.4,0.6]:(x'=1)+[0.4,0.6]:(x'=2); endmodule "
    (folder / "two.prism").write_text(two + "module b = a [x=y] endmodule")
    args = ["solve", "two.prism", "--prop", "Pmaxmin=? [ X x=y ]", "--inner", "interval", "--json"]
    assert run(args) == 2
    found = json.loads(capsys.readouterr().out)
    assert (found["method"], found["status"], found["upper"]) == ("interval", "gap_open", None)
    assert found["value"] == pytest.approx(0.32)  # the exact value is 0.48


def test_ranges_of_constants(folder, capsys):
    """A range is a run per value, each with its constants."""
    args = ["solve", "m.prism", "--jobs", "1", "--const", "N=1:3,k=1:2:5", "--prop"]
    assert run([*args, "const int k; Pmax=? [ F<=k x=N ]", "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    runs = [(one["constants"]["N"], one["constants"]["k"]) for one in found]
    assert runs == [(n, k) for n in (1, 2, 3) for k in (1, 3, 5)]
    assert [one["value"] for one in found[6:]] == sorted(one["value"] for one in found[6:])
    assert run([*args, "x=0"]) == 1  # k is no constant of this property
    for wrong in ("N=3:1", "N=1:0:3", "N=1:x", "N=1:2:3:4"):
        assert run(["solve", "m.prism", "--const", wrong, "--prop", "x=0"]) == 1
        assert "a range must be" in capsys.readouterr().err


def test_a_file_without_properties(folder, capsys):
    """It is no answer that nothing was asked; a text of --prop is asked all the same."""
    (folder / "none.props").write_text("// later")
    words = ["solve", "m.prism", "none.props", "--const", "N=3"]
    assert run(words) == 1
    assert "none.props: must have at least one property, found 0" in capsys.readouterr().err
    assert run([*words, "--prop", "x=0"]) == 0


def test_deadlocks_are_told(folder, capsys):
    """A warning tells of deadlocks."""
    args = ["solve", "dead.prism", "--prop", "Pmax=? [ F x=1 ]"]
    assert run(args) == 0
    assert "deadlock" in capsys.readouterr().err


def test_undecided_threshold(folder, capsys):
    """A threshold that bounds leave open is printed as no more than that."""
    args = [
        "solve",
        "interval.prism",
        "--nominal",
        "--radius",
        "l1:0.2",
        "--prop",
        "P>=0.2 [ X x=1 ]",
    ]
    assert run(args) == 2
    assert results(capsys.readouterr().out) == ["undecided"]
    assert run([*args, "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert (found["value"], found["status"]) == (None, "undecided")


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["--radius", "0.1"], 0.15),
        (["--set", "linf:0.1"], 0.15),
        (["--set", "l1:0.1"], 0.2),
        (["--radius", "lp1:0.1"], 0.2),
        (["--radius", "0.1", "--nominal"], 0.15),
        ([], 0.25),
    ],
)
def test_uncertainty_around_a_nominal_model(words, value, folder, capsys):
    """Radii by norm."""
    args = ["solve", "m.prism", "--const", "N=3", "--prop", "Pmaxmin=? [ X x=3 ]"]
    assert run([*args, *words]) == 0
    assert float(results(capsys.readouterr().out)[0]) == pytest.approx(value, abs=1e-6)


def test_nominal_drops_intervals(folder, capsys):
    """The way back: the centre of an interval model."""
    args = ["solve", "interval.prism", "--prop", 'P=? [ F "goal" ]', "--nominal"]
    assert run(args) == 0
    assert float(results(capsys.readouterr().out)[0]) == pytest.approx(0.3, abs=0.1)


def test_one_thing_has_no_plural(folder, capsys):
    """The line of sizes says `1 marginal`, not `1 marginals`."""
    assert run(["solve", "interval.prism", "--prop", 'Pmaxmin=? [ F "goal" ]']) == 0
    assert "3 states, 3 rows, 4 transitions, 1 marginal, built in" in capsys.readouterr().out


def test_lists_of_states(folder, capsys):
    """A filter lists states as PRISM does, before the result."""
    assert run(["solve", "m.prism", "--const", "N=3", "--prop", "filter(print, x)"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-4:] == ["1:(1)=1", "2:(2)=2", "3:(3)=3", "Result: 0"]


def test_nature_is_named(folder, capsys):
    """The table says what was assumed about nature."""
    assert run(["solve", "interval.prism", "--prop", 'Pmax=? [ F "goal" ]']) == 0
    assert "nature    max" in capsys.readouterr().out


def test_policy_file(folder, capsys):
    """One line per state; per step and state if the policy depends on time."""
    args = ["solve", "m.prism", "--const", "N=3", "-o", "p.csv"]
    assert run([*args, "--prop", "Pmax=? [ F<=2 x=3 ]"]) == 0
    table = list(csv.DictReader((folder / "p.csv").read_text().splitlines()))
    assert list(table[0]) == ["x", "step", "action", "choice"]
    assert len(table) == 2 * 4
    assert next(row["action"] for row in table if (row["x"], row["step"]) == ("0", "1")) == "jump"
    assert run([*args, "--prop", "Pmax=? [ F x=3 ]"]) == 0
    table = list(csv.DictReader((folder / "p.csv").read_text().splitlines()))
    assert list(table[0]) == ["x", "action", "choice", "value", "lower", "upper"]
    assert len(table) == 4
    assert [path.name for path in folder.iterdir() if path.name.endswith(".part")] == []


def test_warnings_of_the_model_go_to_standard_error(folder, capsys):
    """Deadlocks are told, not only fixed."""
    assert run(["solve", "dead.prism", "--prop", "Pmax=? [ F x=1 ]", "--json"]) == 0
    captured = capsys.readouterr()
    assert "deadlock" in captured.err
    assert len(captured.out.splitlines()) == 1


def test_argv_calls_the_api(folder, monkeypatch, capsys):
    """What is asked for reaches `check` as objects."""
    seen = {}

    def fake(model, prop, *, inner, limits, constants, automaton):
        seen.update(model=model, prop=prop.text, inner=inner, limits=limits, constants=constants)
        return Answer(prop.text, Type.DOUBLE, 0.5, 0.5, 0.5, Status.CERTIFIED, "x", 1e-3, "")

    monkeypatch.setattr(answer, "check", fake)
    words = "--precision 0.001 --absolute --timeout 7 --inner mccormick:simplex --const N=3,k=2"
    assert run(["solve", "m.prism", "m.props", "--prop", "reach", *words.split()]) == 0
    assert seen["prop"] == 'Pmax=? [ F<=k "top" ]'
    assert seen["limits"].precision == 0.001
    assert 0.0 < seen["limits"].seconds < 7.0  # less what building took
    assert seen["limits"].measure.value == "absolute"
    assert "SIMPLEX" in repr(seen["inner"])
    assert seen["constants"] == {"N": "3", "k": "2"}


def test_standard_input(folder, capsys, monkeypatch):
    """`-` is a model or a file of properties; a mistake names the place."""
    monkeypatch.setattr("sys.stdin", io.StringIO((folder / "m.prism").read_text()))
    assert run(["solve", "-", "--const", "N=3", "--prop", "Pmax=? [ X x=3 ]"]) == 0
    assert float(results(capsys.readouterr().out)[0]) == pytest.approx(0.25)
    monkeypatch.setattr("sys.stdin", io.StringIO("Pmax=? [ X x=3 ]"))
    assert run(["solve", "m.prism", "-", "--const", "N=3"]) == 0
    assert float(results(capsys.readouterr().out)[0]) == pytest.approx(0.25)
    monkeypatch.setattr("sys.stdin", io.StringIO("mdp\nmodule m x [0..1]; endmodule"))
    for command in ("solve", "check", "learn", "simulate"):
        sys.stdin.seek(0)
        prop = "Pmaxmin=? [ F x=1 ]"
        assert run([command, "-", "--prop", prop]) == 1
        assert "error: <standard input>:2:" in capsys.readouterr().err
        sys.stdin.seek(0)
        assert run([command, "-"]) == 1
        capsys.readouterr()


def test_verbose_and_quiet(folder, capsys):
    """Seconds by phase and sweeps, or the results alone."""
    words = ["solve", "m.prism", "--const", "N=3", "--prop", "Pmax=? [ F x=3 ]; Pmax=? [ X x=3 ]"]
    assert run([*words, "--verbose"]) == 0
    out = capsys.readouterr().out
    assert out.count("phases    ") == out.count("sweeps    ") == 2
    assert run([*words, "--quiet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["Result:", "Result:"]


@pytest.mark.parametrize(
    ("nature", "reserve"),
    [
        ("max", "(an upper bound: the lower side is not proven)"),
        ("min", "(a lower bound: the upper side is not proven)"),
    ],
)
def test_a_side_that_is_not_proven_is_not_printed_as_if_it_were(tmp_path, capsys, nature, reserve):
    """The one line of --quiet says which side a number is."""
    (tmp_path / "two.prism").write_text(
        "mdp module a x:[0..1]; [go] true -> 0.5:(x'=1)+0.5:true; endmodule "
        "module b y:[0..1]; [go] true -> 0.5:(y'=1)+0.5:true; endmodule"
    )
    words = [str(tmp_path / "two.prism"), "--radius", "0.1", "--inner", "interval", "-q"]
    question = f"Pmax{nature}=? [ X x=y ]"
    assert run(["solve", *words, "--prop", question]) == 2
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith(reserve)
    assert run(["solve", *words[:3], "-q", "--prop", question]) == 0
    assert "(" not in capsys.readouterr().out


def test_misspelt_properties_are_found_before_the_model_is_built(folder, capsys):
    """The mistake comes with the word that was meant, even where the model cannot be built."""
    assert run(["solve", "m.prism", "--prop", "Pmaxmn=? [ F x=1 ]"]) == 1  # N has no value
    assert "Pmaxmin" in capsys.readouterr().err


@pytest.mark.parametrize("kind", [KeyboardInterrupt, BrokenPipeError])
def test_interruptions(kind, folder, monkeypatch, capfd):
    """Ctrl-C is exit code 130 and leaves files alone; a closed pipe is quiet."""

    def interrupted(*args, **kwargs):
        raise kind

    (folder / "p.csv").write_text("old")
    monkeypatch.setattr(answer, "check", interrupted)
    monkeypatch.setattr("rfmdp.cli.main.leave_pipe", lambda: None)
    args = ["solve", "m.prism", "--const", "N=3", "--prop", "Pmax=? [ F x=1 ]"]
    code = run([*args, "-o", "p.csv"])
    assert code == (130 if kind is KeyboardInterrupt else 141)
    assert (folder / "p.csv").read_text() == "old"
    assert bool(capfd.readouterr().err) is (kind is KeyboardInterrupt)


def test_methods_inside_formulas_are_told(folder, capsys):
    """Where an inner formula is decided by another method than was asked for, a line says so."""
    two = "imdp\nmodule a x:[0..1]; [g] x=0 -> [0.2,0.6]:(x'=1)+[0.4,0.8]:(x'=0); endmodule\n"
    two += "module b y:[0..1]; [g] y=0 -> [0.1,0.5]:(y'=1)+[0.5,0.9]:(y'=0); endmodule\n"
    (folder / "two.prism").write_text(two)
    args = ["solve", "two.prism", "--prop", "Pmaxmin=? [ F<=2 Pmaxmax>=0.1 [ X x=1 & y=1 ] ]"]
    run([*args, "--inner", "interval"])
    assert "decided by the exact method, not by interval" in capsys.readouterr().err
    run([*args, "--inner", "exact"])
    assert "decided by" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ['"sure"', '"reach" / "cost"', 'filter(max, "reach")', 'P>=0.1 [ F "top" ]']
)
def test_a_result_file_has_the_question_that_was_asked(text, folder, capsys):
    """What is no single P=? or R=? is answered, but not saved as something else."""
    args = ["solve", "m.prism", "m.props", "--const", "N=3,k=2", "--prop", text]
    assert run([*args, "-o", "r.rfmdp"]) == 1
    captured = capsys.readouterr()
    assert "Result: " in captured.out
    assert "must hold a single P=? or R=?" in captured.err
    assert not (folder / "r.rfmdp").exists()
    assert run([*args, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["value"] is not None


def test_a_broken_property_does_not_take_the_others_with_it(folder, capsys):
    """The others are answered, it gets its line, and the exit code is 1."""
    broken = '"bad": Pmax=? [ F^{row{"moves"}<=3} "top" ]\nTmax=? [ F "top" ];\n'
    (folder / "b.props").write_text(broken + '"good": P>=1 [ F "top" ];')
    words = ["solve", "m.prism", "b.props", "--const", "N=3"]
    assert run([*words, "--json"]) == 1
    captured = capsys.readouterr()
    records = [json.loads(line) for line in captured.out.splitlines()]
    assert [r["status"] for r in records] == ["error", "error", "certified"]
    assert records[0]["name"] == "bad"
    assert records[2]["value"] is True
    assert len(captured.err.splitlines()) == 2
    assert run([*words, "--prop", "good", "-q"]) == 0
    assert capsys.readouterr().out == "Result: true\n"
    assert run(["solve", "m.prism", "--const", "N=3", "--prop", "P>=1 [ F x==3 ]", "--prop",
                'P>=1 [ F "top" ]', "-q"]) == 1  # fmt: skip
    assert capsys.readouterr().out == "Result: true\n"


def test_a_constant_that_only_properties_use(folder, capsys):
    """Without a value it is named, with one the property is answered."""
    text = (folder / "m.prism").read_text().replace("const int N;", "const int N; const int K;")
    (folder / "k.prism").write_text(text)
    words = ["solve", "k.prism", "--prop", 'Pmax=? [ F<=K "top" ]', "-q"]
    assert run([*words, "--const", "N=3"]) == 1
    assert "every constant must have a value, found none for K" in capsys.readouterr().err
    assert run([*words, "--const", "N=3,K=1"]) == 0
    assert float(results(capsys.readouterr().out)[0]) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("-const", "-const must have two dashes, --const"),
        ("-prop", "-prop must have two dashes, --prop"),
        ("--exact", "bounds are always proven"),
        ("-exact", "bounds are always proven"),
        ("-pf", "given with --prop"),
    ],
)
def test_options_of_prism_have_a_hint(word, hint, folder, capsys):
    """One line, exit code 1."""
    assert run(["solve", "m.prism", "m.props", word, "N=3"]) == 1
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert hint in captured.err
