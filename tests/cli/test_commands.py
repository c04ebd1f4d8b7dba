"""The other commands, and the table of commands."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

import rfmdp
from processes import LIMIT, python
from rfmdp.cli.arguments import INNER, inner_method
from rfmdp.cli.main import COMMANDS, run
from rfmdp.errors import ModelError
from rfmdp.outer.solution import Status


def test_help_is_light():
    """`rfmdp --help` imports neither the solver nor the parser."""
    code = (
        "import sys; sys.argv = ['rfmdp', '--help']\n"
        "from rfmdp.cli.main import run\n"
        "assert run() == 0\n"
        "heavy = {'numba', 'scipy', 'lark', 'numpy', 'matplotlib', 'rich', 'pydantic'}\n"
        "heavy &= set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    found = python(code)
    assert found.returncode == 0, found.stderr
    assert "solve" in found.stdout


def test_closed_pipe_is_quiet(folder):
    """A reader that leaves early does not cause a traceback."""
    prop = ";".join(["Pmax=? [ F<=1 x=3 ]"] * 1000)
    words = f'"{sys.executable}" -m rfmdp solve m.prism --const N=3 --prop "{prop}" | head -1'
    pipes = {"capture_output": True, "text": True, "timeout": LIMIT}
    found = subprocess.run(words, shell=True, cwd=folder, **pipes)
    assert found.stderr == ""
    assert found.stdout.startswith("model ")


def test_exit_code_of_a_closed_pipe(folder):
    """It is the one of programs that SIGPIPE ends."""
    shut, ours = os.pipe()
    os.close(shut)
    words = [sys.executable, "-m", "rfmdp", "domains"]
    found = subprocess.run(words, stdout=ours, stderr=subprocess.PIPE, timeout=LIMIT)
    os.close(ours)
    assert (found.returncode, found.stderr) == (141, b"")


@pytest.mark.parametrize("name", [name for name in COMMANDS])
def test_every_command_has_help(name, capsys):
    """A command explains itself."""
    assert run([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"rfmdp {name}" in text
    assert COMMANDS[name][1] in " ".join(text.split())  # what `rfmdp --help` says of it
    assert run([name, "-h"]) == 0
    assert capsys.readouterr().out == text


def test_what_a_command_does_fits_a_line(capsys):
    """The table of commands has the first line of each, and cuts none."""
    assert run(["--help"]) == 0
    table = capsys.readouterr().out.partition("Commands:")[2]
    assert [line.split()[0] for line in table.splitlines() if line] == list(COMMANDS)
    assert "..." not in table


def test_version(capsys):
    """The version is that of the package."""
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("rfmdp ")


def test_check_prints_sizes_and_types(folder, capsys):
    """The model is built and validated, properties are resolved."""
    assert run(["check", "m.prism", "m.props", "--const", "N=3,k=2"]) == 0
    out = capsys.readouterr().out
    assert "states      4 (1 initial)" in out
    assert "type        mdp" in out
    assert "property    bool" in out
    assert "well formed" in out


def test_check_finds_bad_properties(folder, capsys):
    """Each is told; the exit code is 1."""
    argv = ["check", "m.prism", "--const", "N=3", "--prop", 'Pmax=? [ F "y" ]; Pmax=? [ F x=1 ]']
    assert run(argv) == 1
    captured = capsys.readouterr()
    assert "unknown label" in captured.err
    assert "property    double" in captured.out


@pytest.mark.parametrize("target", ["out.umb", "out.tra", "out.rfmdp"])
def test_convert_and_solve_again(target, folder, capsys):
    """A model written in another format has the same values."""
    assert run(["convert", "interval.prism", target]) == 0
    assert target in capsys.readouterr().out
    assert run(["solve", target, "--prop", 'Pmin=? [ F "goal" ]']) == 0
    result = capsys.readouterr().out.splitlines()[-1]
    assert float(result.removeprefix("Result: ")) == pytest.approx(0.2, abs=1e-6)


def test_verify_says_what_was_checked(folder, capsys):
    """One line per check, a result line; a saved result is no model."""
    words = ["solve", "interval.prism", "--prop", 'Pmaxmin=? [ F "goal" ]', "-o", "r.rfmdp"]
    assert run(words) == 0
    capsys.readouterr()
    assert run(["verify", "r.rfmdp"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == [
        "model     3 states, 3 rows, 4 transitions, 1 marginal",
        'property  Pmaxmin=? [ F "goal" ]',
        "target    1 of 3 states, those that the text means",
        "method    exact, relative precision 1e-06",
    ]
    assert lines[4] == "status    certified"
    low, high = json.loads(
        lines[5].removeprefix("bounds    ").removesuffix(" at the initial state")
    )
    assert low <= 0.2 <= high <= low + 1e-6
    assert lines[6].startswith("source    interval.prism, sha256 ")
    assert "claimed   lower and upper bounds of the optimum" in lines
    assert "checked   lower bound by induction" in lines
    assert lines[-1] == "Result: valid"
    assert run(["verify", "r.rfmdp", "-q"]) == 0
    assert capsys.readouterr().out == "Result: valid\n"
    assert run(["check", "r.rfmdp"]) == 1
    assert "must hold a model" in capsys.readouterr().err


def test_verify_says_which_side_is_claimed(folder, capsys):
    """A relaxation proves one side, and the other is no part of what is valid."""
    words = ["solve", "interval.prism", "--prop", 'Pmaxmin=? [ F "goal" ]', "-o", "r.rfmdp"]
    assert run([*words, "--inner", "mccormick", "--timeout", "60"]) in (0, 2)
    found = rfmdp.load("r.rfmdp")
    rfmdp.save(replace(found, upper=None, status=Status.GAP_OPEN, witness=None), "side.rfmdp")
    capsys.readouterr()
    assert run(["verify", "side.rfmdp"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("bounds    [") and ", not claimed]" in line for line in lines)
    assert "claimed   lower bounds of the optimum only; the other side is not claimed" in lines


def test_verify_prints_no_line_that_a_file_made_up(folder, capsys):
    """Texts of a file stay in their line, whatever is in them."""
    words = ["solve", "interval.prism", "--prop", 'Pmaxmin=? [ F "goal" ]', "-o", "r.rfmdp"]
    assert run(words) == 0
    found = rfmdp.load("r.rfmdp")
    rfmdp.save(replace(found, method="exact\nResult: valid", lower=found.lower + 0.1), "bad.rfmdp")
    capsys.readouterr()
    assert run(["verify", "bad.rfmdp"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("Result:")] == ["Result: INVALID"]
    assert "method    'exact\\nResult: valid', relative precision 1e-06" in lines


def test_tables_fit_a_terminal(capsys):
    """Listings are at most 80 columns wide."""
    for words in (["domains"], ["domains", "herman"], []):
        run(words)
        assert max(len(line) for line in capsys.readouterr().out.splitlines()) <= 80


def test_runs_as_a_module():
    """`python -m rfmdp` is `rfmdp`."""
    words = [sys.executable, "-m", "rfmdp", "--version"]
    found = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT)
    assert found.returncode == 0
    assert found.stdout.startswith("rfmdp ")


def test_leaving_ends_what_was_begun():
    """Functions for the exit are called, threads at work are waited for, the code is kept."""
    text = """
import atexit, sys, threading, time
sys.argv = ["rfmdp", "slove", "nothing.prism"]
atexit.register(print, "exit function")
def work():
    time.sleep(0.2)
    print("thread", flush=True)
if "thread" in {words}:
    threading.Thread(target=work).start()
from rfmdp.__main__ import main
main()
"""
    for words in ([], ["thread"]):
        program = text.replace("{words}", repr(words))
        found = python(program)
        assert found.returncode == 1
        assert sorted(found.stdout.splitlines()) == sorted(["exit function", *words])


@pytest.mark.parametrize("word", INNER.split(", "))
def test_words_of_methods(word):
    """Every word that the help lists is a method, and the name begins as the word does."""
    assert inner_method(word).name == word.partition(":")[0]


def test_unknown_method():
    """The message lists all words, and the help, which imports no solver, lists the same."""
    with pytest.raises(ModelError, match=f" {INNER}; got"):
        inner_method("magic")
