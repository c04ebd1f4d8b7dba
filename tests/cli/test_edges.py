"""Words that once went wrong: each test is named after what happened."""

import json
import os
import signal
import subprocess

import pytest

from chain_cost import chain_cost
from processes import LIMIT, PATIENT, process, wait_for_line
from rfmdp.answers import answer
from rfmdp.cli import terminal
from rfmdp.cli.main import run
from rfmdp.domains import domain, domain_spec
from rfmdp.solving import solve

from .conftest import results


@pytest.mark.parametrize("name", ["name", "deadlock", "progress", "self"])
def test_a_constant_named_like_an_argument_was_a_traceback(name, capsys):
    """It is a constant that the domain does not have."""
    assert run(["solve", "chain", "--const", f"{name}=3"]) == 1
    error = capsys.readouterr().err
    assert f"'{name}'" in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize("command", ["simulate", "learn"])
def test_constants_of_properties_were_not_seen(command, folder, capsys):
    """`const int k;` of a property file gets its value from --const, in every command."""
    (folder / "k.props").write_text('const int k; Pmaxmin=? [ F<=k "top" ];')
    few = ["--trajectories", "50", "--json"]
    assert run([command, "m.prism", "k.props", "--const", "N=3,k=1", *few]) == 0
    short = json.loads(capsys.readouterr().out)
    prop = ["--prop", 'Pmaxmin=? [ F<=1 "top" ]']
    assert run([command, "m.prism", *prop, "--const", "N=3", *few]) == 0
    same = json.loads(capsys.readouterr().out)
    key = "mean" if command == "simulate" else "guarantee"
    assert short[key] == same[key]


def test_errors_in_a_property_were_printed_twice(folder, capsys):
    """Once, on standard error; the others are answered."""
    words = ["solve", "m.prism", "--const", "N=3", "--prop", 'Pmax=? [ F "no" ]; Pmax=? [ F x=3 ]']
    assert run(words) == 1
    captured = capsys.readouterr()
    assert (captured.out + captured.err).count("unknown label") == 1
    assert len(results(captured.out)) == 1


def test_ctrl_c_while_solving_was_exit_code_2(folder):
    """The bounds so far are printed, no other property is asked, the exit code is 130."""
    (folder / "slow.prism").write_text(
        "mdp const int N; module m x:[0..N]; [up] x<N -> 0.5:(x'=x+1)+0.5:(x'=0); "
        "[end] x=N -> true; endmodule"
    )
    words = ["-c", PATIENT, "solve", "slow.prism", "--const", "N=40", "--prop"]
    prop = "Pmin=? [ F<=1000000000 x=N ]; Pmax=? [ F x=N ]"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with process([*words, prop], cwd=folder, **pipes) as solving:
        assert wait_for_line("model ", solving).startswith("model ")
        os.kill(solving.pid, signal.SIGINT)
        out, error = solving.communicate(timeout=LIMIT)
    assert solving.returncode == 130
    assert "Pmax" not in out
    assert error.splitlines()[-1].startswith("rfmdp: error: interrupted")


@pytest.fixture
def ctrl_c(monkeypatch):
    """Let Ctrl-C be heard, also where tests are a job in the background; it leaves them time."""
    monkeypatch.setattr("rfmdp.cli.terminal.GRACE", 3600.0)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupted_answer_ends_the_questions(folder, ctrl_c, monkeypatch, capsys):
    """A solver that catches Ctrl-C returns what it has; the command still ends with 130."""
    asked = []
    check = answer.check

    def interrupted(model, prop, **words):
        asked.append(prop.text)
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            return check(model, prop, **words)

    monkeypatch.setattr(answer, "check", interrupted)
    prop = "Pmax=? [ F x=1 ]; Pmax=? [ F x=2 ]"
    assert run(["solve", "m.prism", "--const", "N=3", "--prop", prop]) == 130
    assert asked == ["Pmax=? [ F x=1 ]"]
    assert results(capsys.readouterr().out)


STUBBORN = """
import sys, time
from rfmdp.answers import answer
from rfmdp.cli import terminal
from rfmdp.cli.main import run

terminal.GRACE = 0.2

def stubborn(*args, **words):
    print("asked", flush=True)
    while True:
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            pass

answer.check = stubborn
sys.exit(run(["solve", "interval.prism", "--prop", "Pmaxmin=? [ F x=1 ]"]))
"""


def test_a_lost_ctrl_c_ends_the_command_all_the_same(folder):
    """Code that catches the exception and goes on does not keep the process alive."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with process(["-c", STUBBORN], cwd=folder, **pipes) as stubborn:
        wait_for_line("asked", stubborn)
        os.kill(stubborn.pid, signal.SIGINT)
        stubborn.communicate(timeout=LIMIT)
    assert stubborn.returncode == 130


def test_an_error_of_several_lines_was_cut_to_its_announcement(folder, capsys):
    """A line that ends in a colon is printed with the one that it announces."""
    from rfmdp.cli.terminal import complain

    complain("The model has 2 errors:\n  error: first.\n  error: second.")
    assert capsys.readouterr().err == "rfmdp: error: The model has 2 errors: error: first.\n"


def test_time_counts_from_the_start(folder, capsys):
    """A model that is not built in time is told with exit code 2, for every property."""
    words = ["solve", "m.prism", "--const", "N=3", "--timeout", "1e-9", "--json"]
    assert run([*words, "--prop", "Pmax=? [ F x=1 ]; Pmax=? [ F x=2 ]"]) == 2
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [list(one) for one in found] == [["constants", "property", "status", "error"]] * 2
    assert "try a larger limit" in found[0]["error"]


def test_a_bare_name_is_the_published_model(capsys):
    """The paper has 331.34 for Chain at this radius; the model of its prose is an instance."""
    words = ["solve", "chain", "--radius", "0.025"]
    assert run(words) == 0
    published = float(results(capsys.readouterr().out)[0])
    assert published == pytest.approx(float(chain_cost("0.025")), rel=1e-6)
    assert run([*words, "--const", "instance=textbook"]) == 0
    textbook = float(results(capsys.readouterr().out)[0])
    model = domain("chain", instance="textbook").with_radius(0.025)
    bounds = solve(model, domain_spec("chain")).at_initial()
    assert textbook == pytest.approx(bounds.upper, rel=1e-6)
    assert textbook > 1.1 * published  # both chains have to arrive


def test_ranges_of_radii(folder, capsys):
    """One run per radius, in order, each with its radius; they combine with constants."""
    words = ["solve", "m.prism", "--prop", "Pmaxmin=? [ X x=N ]", "--json", "--jobs", "2"]
    assert run([*words, "--const", "N=2:3", "--radius", "0.05:0.05:0.15"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["constants"]["N"], one["radius"]) for one in found] == [
        (n, r) for n in (2, 3) for r in (0.05, 0.1, 0.15)
    ]
    assert [one["value"] for one in found] == pytest.approx([0.2, 0.15, 0.1] * 2, abs=1e-6)
    assert run([*words, "--const", "N=3", "--radius", "0.1:wide"]) == 1
    assert "--radius: a range must be" in capsys.readouterr().err


def test_finished_runs_are_kept_when_others_fail(folder, capsys):
    """A model cannot be built for two of three values; all records are printed, as they come."""
    words = ["solve", "m.prism", "--prop", "Pmaxmin=? [ X x=N ]", "--jobs", "1"]
    assert run([*words, "--const", "N=-1:1", "--json"]) == 1
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["status"] for record in records] == ["error", "error", "certified"]
    assert [record["constants"]["N"] for record in records] == [-1, 0, 1]


def test_runs_of_named_properties(folder, capsys):
    """A line per run and property: constants, the name, and the bounds."""
    (folder / "two.props").write_text('"one": Pmax=? [ F<=1 x=N ]; "two": Pmax=? [ F<=2 x=N ];')
    text = "mdp const int N; module m x:[0..N]; [a] true -> 0.5:(x'=min(x+1,N))+0.5:true; endmodule"
    (folder / "steps.prism").write_text(text)
    words = ["solve", "steps.prism", "two.props", "--const", "N=1:2", "--jobs", "1"]
    assert run([*words, "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["constants"]["N"], line["name"]) for line in lines] == [
        (1, "one"), (1, "two"), (2, "one"), (2, "two"),
    ]  # fmt: skip
    for line, value in zip(lines, (0.5, 0.75, 0.0, 0.25), strict=True):  # heads of fair coins
        assert line["lower"] <= value <= line["upper"]
    assert run(words) == 0
    assert "property  two: Pmax=? [ F<=2 x=N ]" in capsys.readouterr().out.splitlines()


def test_a_terminal_has_one_line_that_changes(monkeypatch, capsys):
    """Each line takes the place of the last one and fits; nothing of it is left."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(terminal, "PATIENCE", 0.0)
    monkeypatch.setattr(terminal, "REFRESH", 0.0)
    monkeypatch.setattr(terminal, "get_terminal_size", lambda: os.terminal_size((40, 20)))
    with terminal.showing_progress("building") as shown:
        shown.building(20, 41)
        shown.building(3_000_000, 6_000_000)
    text = capsys.readouterr().err
    assert "\n" not in text
    lines = [line.removeprefix("\033[K") for line in text.split("\r")]
    assert "building: 0 s, 20 states, 41 transitions"[:39] in lines
    assert lines[-1] == ""
    assert max(map(len, lines)) == 39


def test_the_first_minute_says_what_it_does(monkeypatch, tmp_path):
    """While numba compiles, the progress says so."""
    from rfmdp.cli.terminal import ShownProgress, showing_progress
    from rfmdp.kernels.decorator import cache_folder, kernel

    seen = []
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    cache_folder.cache_clear()
    monkeypatch.setattr(ShownProgress, "say", lambda self, text: seen.append(text))
    with showing_progress("solving"):
        assert kernel(_one_more)(1) == 2
    assert kernel(_two_more)(1) == 3
    cache_folder.cache_clear()
    assert seen == [terminal.COMPILING]


def _one_more(x):
    return x + 1


def _two_more(x):
    return x + 2


def test_the_line_of_building(monkeypatch, capsys):
    """Away from a terminal, too."""
    from rfmdp.cli import terminal

    monkeypatch.setattr(terminal, "PLAIN", 0.0)
    with terminal.showing_progress("building") as shown:
        shown.building(3000, 6000)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["building: 0 s, 3,000 states, 6,000 transitions"]


@pytest.mark.parametrize("command", ["simulate", "learn", "evaluate"])
def test_constants_of_the_model_were_not_seen_in_step_bounds(command, folder, capsys):
    """`F<=N` means the same in every command, as in `solve`."""
    const, few = ["--const", "N=3"], ["--json"]
    solved = ["solve", "m.prism", *const, "-o", "r.rfmdp", "--prop"]
    assert run([*solved, 'Pmaxmin=? [ F<=3 "top" ]']) == 0
    few += ["--policy", "r.rfmdp"] if command == "evaluate" else ["--trajectories", "50"]
    capsys.readouterr()
    said = []
    for steps in ("N", "N+0", "3"):
        prop = ["--prop", f'Pmaxmin=? [ F<={steps} "top" ]']
        assert run([command, "m.prism", *prop, *const, *few]) == 0
        found = json.loads(capsys.readouterr().out)
        said.append(found[{"simulate": "mean", "learn": "guarantee", "evaluate": "worst"}[command]])
    assert said[0] == said[1] == said[2]


@pytest.mark.parametrize("command", ["solve", "simulate", "learn"])
def test_typos_were_found_after_the_model_was_built(command, folder, monkeypatch, capsys):
    """Labels, rewards and names of a property are looked up in the text."""

    def build(*_, **__):
        raise AssertionError("the model must not be built")

    monkeypatch.setattr("rfmdp.language.build.build_model", build)
    for text, word in (
        ('Pmax=? [ F "tip" ]', '"tip"'), ('R{"moes"}min=? [ F "top" ]', "'moves'"),
        ("Pmax=? [ F y=1 ]", "'y'"), ("Pmax=? [ F<=j x=1 ]", "'j'"),
    ):  # fmt: skip
        assert run([command, "m.prism", "--const", "N=3", "--prop", text]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert word in line


def test_a_typo_in_one_property_leaves_the_others(folder, capsys):
    """They are answered, in order."""
    words = ["--prop", 'Pmax=? [ F "tip" ]', "--prop", 'Pmax=? [ F "top" ]']
    assert run(["solve", "m.prism", "--const", "N=3", *words]) == 1
    found = capsys.readouterr()
    assert results(found.out) == ["1.0"]
    assert found.err.count("tip") == 1


def test_deadlocks_of_explicit_files_became_loops_without_a_word(folder, capsys):
    """They are refused in one line that says how many and which."""
    (folder / "dead.tra").write_text("2 1 1\n0 0 1 1\n")
    assert run(["solve", "dead.tra", "--prop", 'Pmax=? [ X !"init" ]']) == 1
    assert "1 have none, the first is 1; give them self-loops" in capsys.readouterr().err


def test_a_simulated_threshold_was_not_mentioned(folder, capsys):
    """The mean of one policy decides nothing; a note says who does."""
    words = ["simulate", "m.prism", "--const", "N=3", "--trajectories", "20", "--prop"]
    assert run([*words, 'Pmax>=0.5 [ F "top" ]']) == 0
    assert "the bound '>=' of 'Pmax>=0.5 [ F \"top\" ]' is left open" in capsys.readouterr().err
    assert run([*words, 'Pmax=? [ F "top" ]']) == 0
    assert "decided" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("closed", "words", "code", "said"),
    [
        ([1], ["domains"], 0, ""),
        pytest.param([1], ["--version"], 0, "", marks=pytest.mark.slow),
        ([1], ["solve", "no.prism"], 1, "no.prism: the file cannot be read"),
        ([2], ["domains"], 0, "chain"),
        ([2], ["solve", "no.prism"], 1, ""),
        (
            [0],
            ["solve", "-", "--prop", "Pmax=? [ F x=1 ]"],
            1,
            "-: a model must be on standard input",
        ),
        ([0], ["solve", "m.prism", "-"], 1, "-: properties must be on standard input"),
        ([0, 1, 2], ["domains"], 0, ""),
    ],
)
def test_closed_streams_were_tracebacks(closed, words, code, said, folder):
    """What is written to a closed stream is lost, and one to read from is empty."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    shut = f"import os, sys; [os.close(n) for n in {closed}]; "
    shut += "os.execv(sys.executable, [sys.executable, '-m', 'rfmdp', *sys.argv[1:]])"
    with process(["-c", shut, *words], text=True, **pipes) as started:
        output, errors = started.communicate(timeout=LIMIT)
    assert started.returncode == code
    assert said in output + errors
    assert bool(output + errors) == bool(said)
    assert len(errors.splitlines()) <= 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_standard_output_was_called_a_file(folder):
    """The line on standard error says what could not be written."""
    with (
        open("/dev/full", "w", encoding="utf-8") as full,
        process(["-m", "rfmdp", "domains"], stdout=full, stderr=subprocess.PIPE, text=True) as run_,
    ):
        _, errors = run_.communicate(timeout=LIMIT)
    assert run_.returncode == 1
    assert errors.startswith("rfmdp: error: standard output: No space left")


def test_a_scaled_distribution_was_called_wrong_only(folder, capsys):
    """The one line of the warning says what is done with it."""
    (folder / "sum.prism").write_text(
        "mdp module m x:[0..1]; [] true -> 0.5:(x'=0) + 0.4999999:(x'=1); endmodule"
    )
    assert run(["check", "sum.prism"]) == 0
    error = capsys.readouterr().err
    assert "must sum to 1, found 0.9999999; they are scaled to sum to 1" in error
    assert len(error.splitlines()) == 1
