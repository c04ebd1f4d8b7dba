"""One model on several workers: the bounds of one process, though a worker is killed."""

import json
import os
import signal
from dataclasses import replace

import numpy as np
import pytest

from outer.blocks.built import in_blocks
from outer.blocks.test_blocks import LINE, bits, line
from outer.random_specs import tiny_model
from rfmdp.cli.main import run as rfmdp
from rfmdp.errors import SolverError, UnsupportedError
from rfmdp.inner.solvers import Sequential
from rfmdp.language.build import build_blocked
from rfmdp.language.check import check_model
from rfmdp.language.parse import parse_model
from rfmdp.objective import MAX, MIN, Cumulative, Discounted, Reach, ReachReward, Spec
from rfmdp.outer.solution import Status
from rfmdp.outer.task import Limits
from rfmdp.solving import solve
from running.clusters import cluster

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'rfmdp[cluster]'")
# third-party code of Dask warns about its own and others' future
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Return the address of a scheduler with two workers."""
    with cluster(tmp_path_factory.mktemp("cluster"), 2) as (found, *_):
        yield found


@pytest.mark.parametrize(
    "objective",
    [
        Cumulative(20, "time"),
        Discounted(0.9, "time"),
        Reach("top"),
        pytest.param(ReachReward("over", "time"), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_bounds_are_those_of_one_process(address, objective):
    """To the last bit, from the text and from a model that is built here."""
    model, whole = line(radius=0.02)
    spec = Spec(objective, MAX, MIN)
    expected = solve(model, spec)
    assert expected.status is Status.CERTIFIED
    assert bits(solve(replace(model, scheduler=address), spec)) == bits(expected)
    built = in_blocks(whole, blocks=3, scheduler=address)
    assert bits(solve(built, spec)) == bits(expected)


def test_on_the_command_line(address, tmp_path, capsys):
    """The values, files and exit code of one process; a checker agrees."""
    (tmp_path / "line.prism").write_text(LINE)
    words = ["solve", str(tmp_path / "line.prism"), "--const", "N=9", "--radius", "0.05", "--json"]
    words += ["--prop", 'Pmaxmin=? [ F "top" ]']
    assert rfmdp(words) == 0
    there = ["--scheduler", address, "-o"]
    assert rfmdp([*words, *there, str(tmp_path / "line.rfmdp")]) == 0
    here, other = map(json.loads, capsys.readouterr().out.splitlines())
    assert other["status"] == "certified"
    assert max(here["lower"], other["lower"]) <= min(here["upper"], other["upper"])
    assert rfmdp(["verify", str(tmp_path / "line.rfmdp")]) == 0
    assert rfmdp(["policy", str(tmp_path / "line.rfmdp"), "-o", str(tmp_path / "policy.csv")]) == 0
    assert len((tmp_path / "policy.csv").read_text().splitlines()) == 1 + other["states"]


def test_errors_of_workers_arrive(address):
    """As from this process."""
    model = in_blocks(tiny_model(2), 2, address)
    with pytest.raises(UnsupportedError, match="both sides"):
        solve(model, Spec(Reach("goal"), MAX, MIN), inner=Sequential())
    with pytest.raises(UnsupportedError, match="both signs"):
        solve(model, Spec(ReachReward("goal", "signed"), MAX, MIN))


def killing(worker):
    """Return a progress function that kills a worker at the first checkpoint."""

    def kill(*_):
        if worker.poll() is None:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()

    return kill


@pytest.mark.parametrize(
    "objective",
    [Cumulative(40, "time"), pytest.param(Reach("top"), marks=pytest.mark.slow)],
    ids=str,
)
def test_a_worker_is_killed_in_the_middle(tmp_path, objective):
    """Its blocks are made again; the result is the same to the last bit."""
    model, _ = line(radius=0.02)
    spec = Spec(objective, MAX, MIN)
    expected = solve(model, spec)
    with cluster(tmp_path, 2) as (address, _, workers):
        limits = Limits(progress=killing(workers[0]), seconds=300.0)
        solution = solve(replace(model, scheduler=address), spec, limits=limits)
    assert workers[0].poll() is not None
    assert solution.status is Status.CERTIFIED
    assert bits(solution) == bits(expected)


def test_a_cluster_without_workers_is_not_waited_for_longer_than_asked(tmp_path):
    """One line says what to start."""
    model, _ = line()
    with cluster(tmp_path, 0) as (empty, *_):
        model = replace(model, scheduler=empty)
        with pytest.raises(SolverError, match=r"no workers for 0\.2 s"):
            solve(model, Spec(Reach("top"), MAX, MIN), limits=Limits(seconds=0.2))


NETWORK = """mdp
module m0 x0 : [0..1];
  [a] true -> 0.7:(x0'=1) + 0.3:(x0'=0);
  [b] true -> 0.2:(x0'=1) + 0.8:(x0'=0);
  [c] true -> 0.3:(x0'=1) + 0.7:(x0'=0);
endmodule
"""


def network(count):
    """Return modules that all move at once, so that every row leads everywhere."""
    copies = "".join(f"module m{k}=m0 [x0=x{k}] endmodule\n" for k in range(1, count))
    paid = "+".join(f"x{k}" for k in range(count))
    return NETWORK + copies + f'rewards "up" true : {paid}; endrewards'


@pytest.mark.slow
def test_a_model_larger_than_the_memory_of_a_worker(tmp_path):
    """Three workers, each with less memory than the model takes, one killed in the middle.

    All modules move at once and alike, so the value is that of one module times their number; for
    one module, by hand: up with 0.7 - 0.05 whatever was before, from the second step on.
    """
    count, steps, limit = 13, 4, 700_000_000
    checked = check_model(parse_model(network(count)))
    with cluster(tmp_path, 3, "--memory-limit", str(limit)) as (address, _, workers):
        model = build_blocked(checked, blocks=48, scheduler=address).with_radius(0.05)
        assert 4 * model.transitions > limit
        limits = Limits(progress=killing(workers[0]), seconds=500.0)
        spec = Spec(Cumulative(steps, "up"), MAX, MIN)
        solution = solve(model, spec, limits=limits)
    assert workers[0].poll() is not None
    assert solution.status is Status.CERTIFIED
    bounds = solution.at_initial()
    assert bounds.lower <= count * (steps - 1) * 0.65 <= bounds.upper
    assert np.all(solution.lower <= solution.upper)
