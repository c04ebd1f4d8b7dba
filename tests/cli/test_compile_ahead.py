"""The first run: what the second process compiles, and when it runs."""

import subprocess

import pytest

from processes import python
from rfmdp.cli import compile_ahead
from rfmdp.kernels import decorator
from rfmdp.kernels.decorator import cache_folder, kernel

PROGRAM = """
import sys

import rfmdp
from rfmdp.cli.compile_ahead import compile_backwards
from rfmdp.kernels.decorator import Kernel


def compiled():
    return {
        (name, function, str(types))
        for name, module in sorted(sys.modules.items()) if name.startswith("rfmdp.kernels.")
        for function, made in vars(module).items() if isinstance(made, Kernel)
        for types in made.signatures
    }


model = rfmdp.load_prism(sys.argv[1])  # reading is what the command itself compiles meanwhile
read = compiled()
compile_backwards()
before = compiled()
for radius in (0.0, 0.01):
    rfmdp.solve(model.with_radius(radius) if radius else model, "Pmaxmin=? [ F x=2 & y=2 ]")
print(len(before - read), sorted(compiled() - before))
"""

WALKERS = """
mdp
module one
  x : [0..2] init 0;
  [go] x<2 -> 0.4 : (x'=x+1) + 0.6 : (x'=0);
  [go] x=2 -> true;
endmodule
module two = one [x=y] endmodule
label "both" = x=2 & y=2; // reading evaluates it with the code that reads the question's formula
"""


def test_the_examples_compile_all_that_solving_a_small_model_needs(tmp_path):
    file = tmp_path / "walkers.prism"
    file.write_text(WALKERS)
    told = python(PROGRAM, str(file))
    assert told.returncode == 0, told.stderr
    count, missing = told.stdout.split(maxsplit=1)
    assert int(count) > 10
    assert missing.strip() == "[]"


@pytest.fixture
def sleepers(tmp_path, monkeypatch):
    """Return the processes that are started, which sleep instead of compiling."""
    started = []
    popen = subprocess.Popen

    def start(*arguments, **options):
        started.append(popen(*arguments, **options))
        return started[-1]

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    cache_folder.cache_clear()
    monkeypatch.setattr(compile_ahead.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(compile_ahead, "COMMAND", "import time; time.sleep(600)")
    monkeypatch.setattr(compile_ahead.subprocess, "Popen", start)
    yield started
    cache_folder.cache_clear()


def need_machine_code():
    """Call a kernel that nobody has compiled, with more to do than Python would."""
    decorator.expect(decorator.SMALL + 1)
    kernel(nothing)()


def nothing():
    """Do nothing."""


def test_a_tiny_model_needs_no_second_process(sleepers):
    with compile_ahead.compiling_ahead():
        kernel(nothing)()
    assert sleepers == []


def test_only_the_first_run_has_a_second_process_and_takes_it_along(sleepers):
    with compile_ahead.compiling_ahead():
        need_machine_code()
        assert len(sleepers) == 1
        assert sleepers[0].poll() is None
    assert sleepers[0].poll() is not None
    with compile_ahead.compiling_ahead():
        need_machine_code()
        assert len(sleepers) == 1


def test_the_second_process_ends_with_an_error_of_the_command(sleepers):
    def stop():
        need_machine_code()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), compile_ahead.compiling_ahead():
        stop()
    assert sleepers[0].poll() is not None


def test_one_core_has_no_second_process(sleepers, monkeypatch):
    monkeypatch.setattr(compile_ahead.os, "cpu_count", lambda: 1)
    with compile_ahead.compiling_ahead():
        need_machine_code()
        assert sleepers == []
