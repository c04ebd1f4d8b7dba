"""Tasks on a real Dask scheduler with worker processes, one of which is killed in the middle."""

import json
import os
import re
import signal
import socket
import subprocess
from functools import partial

import numpy as np
import pytest

from processes import LIMIT, group_is_gone, process, wait_until
from rfmdp.cli.main import run as rfmdp
from rfmdp.domains import domain, domain_spec
from rfmdp.errors import ModelError, PrismError, SolverError
from rfmdp.formats.files import load
from rfmdp.learning.learn import learn_seeds
from rfmdp.learning.methods import StopWhen
from rfmdp.running import run_many
from running.clusters import cluster
from running.tasks import add_square, die, fail

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'rfmdp[cluster]'")
# third-party code of Dask warns about its own and others' future
pytestmark = pytest.mark.filterwarnings("ignore")

INTERRUPTED = """
import sys
from functools import partial
from rfmdp.running import run_many
from running.clusters import cluster
from running.tasks import hang

try:
    run_many(partial(hang, sys.argv[2]), [1, 2], scheduler=sys.argv[1], done=print)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Return the address of a scheduler with two workers."""
    with cluster(tmp_path_factory.mktemp("cluster"), 2) as (found, *_):
        yield found


def test_results_are_complete_though_a_worker_dies(address, tmp_path):
    """Its task is done by another one; every result arrives exactly once."""
    arrived = []
    results = run_many(
        partial(die, str(tmp_path), 1), range(8), scheduler=address, done=arrived.append
    )
    assert [result.require() for result in results] == [10 * n for n in range(8)]
    assert sorted(arrived, key=lambda result: result.number) == results
    assert len(list(tmp_path.glob("1-*"))) == 2  # the first attempt died


def test_errors_arrive(address):
    """As from a local process; the other tasks and the next call work."""
    user, text, fine = run_many(fail, ["user", "text", "fine"], scheduler=address)
    with pytest.raises(ModelError, match=r"^this must hold.$"):
        user.require()
    with pytest.raises(PrismError):
        text.require()
    assert fine.require() == "fine"
    assert run_many(partial(add_square, 1), [2], scheduler=address)[0].require() == 5


def test_learning_is_the_same_as_here(address, tmp_path):
    """Seeds on workers give the runs of this process, files included, and resume from them."""
    model, spec = domain("chain", instance="textbook", M=4), domain_spec("chain")
    words = {"stop": StopWhen(trajectories=30), "length": 5}
    here = learn_seeds(model, spec, [3, 4], jobs=1, **words)
    words |= {"file": tmp_path / "run.rfmdp", "scheduler": address}
    there = learn_seeds(model, spec, [3, 4], **words)
    for seed, one, other in zip((3, 4), here, there, strict=True):
        assert np.array_equal(one.require().counts, other.require().counts)
        assert np.array_equal(load(tmp_path / f"run-{seed}.rfmdp").counts, one.value.counts)
    words["stop"] = StopWhen(trajectories=60)
    more = learn_seeds(model, spec, [3, 4], resume=True, **words)
    assert [result.require().history[-1].trajectories for result in more] == [60, 60]
    kept, first = more[0].value.history[0], there[0].value.history[0]
    assert kept.seconds == first.seconds  # what was done is kept


def test_ranges_on_the_command_line(address, tmp_path, monkeypatch, capsys):
    """A model's file travels with the tasks; workers stand in another folder."""
    text = "mdp const int N; module m x:[0..N]; [] x<N -> 0.5:(x'=x+1)+0.5:(x'=0); "
    (tmp_path / "m.prism").write_text(text + "[] x=N -> true; endmodule")
    monkeypatch.chdir(tmp_path)
    words = ["solve", "m.prism", "--const", "N=1:3", "--prop", "const int k; Pmax=? [ F<=N x=N ]"]
    assert rfmdp([*words, "--const", "k=1", "--scheduler", address, "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["value"] for one in found] == pytest.approx([0.5, 0.25, 0.125])


def test_ctrl_c_leaves_the_cluster(address, tmp_path):
    """The caller ends at once; what it asked for is dropped, though workers go on for a while."""
    words = ["-c", INTERRUPTED, address, str(tmp_path)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with process(words, **pipes) as parent:
        # one worker died above, the other one hangs from now on: this is the last test of both
        assert wait_until(lambda: list(tmp_path.glob("begun-*")), parent)
        os.killpg(parent.pid, signal.SIGINT)
        out, _ = parent.communicate(timeout=LIMIT)
        assert (parent.returncode, out) == (130, "")
        assert wait_until(lambda: group_is_gone(parent.pid))


def test_a_scheduler_without_workers_is_not_waited_for_longer_than_asked(tmp_path, capsys):
    """`--timeout` holds although no worker looks at it."""
    with cluster(tmp_path, 0) as (empty, *_):
        with pytest.raises(SolverError, match=r"no workers for 0\.2 s"):
            run_many(fail, ["fine"], scheduler=empty, patience=0.2, done=pytest.fail)
        for words in (["solve", "chain"], ["learn", "stock_trading"]):
            assert rfmdp([*words, "--scheduler", empty, "--timeout", "0.5"]) == 1
            # what is left of half a second after the command has begun
            assert re.search(r"no workers for 0\.\d+ s", capsys.readouterr().err)


def test_a_scheduler_that_is_gone_is_told(tmp_path):
    """Nobody waits for it, and what had arrived was handed over."""
    with cluster(tmp_path, 1) as (address, scheduler, _):
        arrived = []

        def end(result):
            arrived.append(result.value)
            scheduler.kill()

        work = partial(add_square, 0)
        with pytest.raises(SolverError, match="the scheduler is gone"):
            run_many(work, range(200), scheduler=address, done=end)
        assert arrived


def test_addresses_without_scheduler_are_one_line(monkeypatch):
    """Nobody waits long for nobody."""
    monkeypatch.setattr("rfmdp.running.CONNECT", 0.5)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        nobody = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(SolverError, match="of a Dask scheduler that answers"):
            run_many(fail, [1], scheduler=nobody, done=pytest.fail)
    with pytest.raises(SolverError, match="must be tcp://"):
        run_many(fail, [1], scheduler="nonsense://x", done=pytest.fail)
