"""What is free is the least of all limits, and what does not fit is refused with its size."""

from __future__ import annotations

import numpy as np
import pytest

import rfmdp as rf
from rfmdp import memory
from rfmdp.errors import ResourceError
from rfmdp.model.derived import flatten


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Return a function that makes the files of a machine with 8 GB free."""
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "OWN_GROUP", tmp_path / "own")
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "groups")
    (tmp_path / "meminfo").write_text("MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\n")

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return write


def test_physical_memory(machine):
    """Without other limits, what the machine has free counts."""
    assert memory.available_memory() == 8_192_000_000


def test_a_container(machine):
    """The tightest group above the process counts; its file cache can be given back."""
    machine("own", "0::/job/step\n")
    machine("groups/job/step/memory.max", "max\n")
    machine("groups/job/step/memory.current", "500000000\n")
    machine("groups/job/memory.max", "2000000000\n")
    machine("groups/job/memory.current", "1500000000\n")
    machine("groups/job/memory.stat", "anon 1\ninactive_file 250000000\n")
    assert memory.available_memory() == 750_000_000


def test_what_does_not_fit_is_refused_with_its_size(monkeypatch):
    """The message names both sizes; little things are not asked for."""
    monkeypatch.setattr(memory, "available_memory", lambda: 10_000_000)
    memory.require_memory(9_000_000, "A table")
    memory.require_memory(1_000, "A line")
    with pytest.raises(ResourceError, match=r"A table: needs 1 GB of memory, 0.01 GB are free"):
        memory.require_memory(1e9, "A table")


def test_it_is_a_memory_error_too():
    """Whoever catches Python's own error catches ours."""
    assert issubclass(ResourceError, MemoryError)


@pytest.fixture
def little(monkeypatch):
    """Let only 20 MB be free."""
    monkeypatch.setattr(memory, "available_memory", lambda: 20_000_000)


def coin_loop(states):
    """Return a chain of coins."""
    coin = rf.Interval([0.4, 0.4], [0.6, 0.6])
    return rf.FactoredMDP.from_rows([[([0], [s, s])] for s in range(states)], [coin])


def test_long_horizons_are_refused():
    """A policy with a rule per step that cannot be stored is refused before the first step."""
    with pytest.raises(
        ResourceError, match=r"a rule per step \(1000000000000\): needs 3.2e\+04 GB"
    ):
        rf.solve(coin_loop(3), rf.Spec(rf.Until("init", "init", latest=10**12)))


def test_flattening_stops_before_the_memory_ends(little):
    """Multiplying out is refused by chunks."""
    with pytest.raises(ResourceError, match="Multiplying out 400000 transitions: needs"):
        flatten(coin_loop(200_000))


def test_large_files_are_refused(little, tmp_path, monkeypatch):
    """Explicit files and saved models are refused by their size, unread."""
    with (tmp_path / "m.tra").open("wb") as file:
        file.truncate(50_000_000)
    with pytest.raises(ResourceError, match=r"m.tra: reading it: needs"):
        rf.open_model(tmp_path / "m.tra")
    model = coin_loop(500_000)
    rf.save(model, tmp_path / "m.rfmdp")
    with pytest.raises(ResourceError, match=r"m.rfmdp: its arrays: needs"):
        rf.load(tmp_path / "m.rfmdp")


LARGE = """
mdp
module walk
  x : [0..2000] init 0;
  y : [0..2000] init 0;
  [] true -> (x'=min(x+1,2000));
  [] true -> (y'=min(y+1,2000));
endmodule
"""


def test_exploration_stops_before_the_memory_ends(little):
    """Four million states need more than 20 MB: the text and the builder are refused alike."""
    with pytest.raises(ResourceError, match=r"A model with more than \d+ .*needs"):
        rf.parse_prism(LARGE)
    stay = rf.Action("stay")
    with pytest.raises(ResourceError, match=r"A model with more than \d+ .*needs"):
        rf.build({"x": (0, 3_000_000)}, [stay], initial={"x": np.arange(3_000_000)})


def test_rows_that_do_not_fit_are_refused(monkeypatch):
    """A row of 2^24 successors is refused where there is no room for it."""
    monkeypatch.setattr(memory, "available_memory", lambda: 60_000_000)
    coins = "".join(
        f"module m{i} x{i}:[0..1]; [a] true -> 0.5:(x{i}'=0)+0.5:(x{i}'=1); endmodule\n"
        for i in range(24)
    )
    with pytest.raises(ResourceError, match="needs"):
        rf.parse_prism("mdp\n" + coins)
