"""Tasks on a real Dask scheduler with worker processes, one of which is killed in the middle."""

import json
import socket
from contextlib import ExitStack

import numpy as np
import pytest

from campaign.tasks import die_once, fail, square
from processes import process, wait_until
from rfmdp.campaign.cluster import Cluster
from rfmdp.campaign.runner import make_runner
from rfmdp.campaign.seeds import learn_seeds
from rfmdp.cli.main import run as rfmdp
from rfmdp.domains import domain, domain_spec
from rfmdp.errors import ModelError, PrismError, SolverError
from rfmdp.formats.files import load
from rfmdp.learning.schedule import StopWhen

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'rfmdp[cluster]'")
# third-party code of Dask warns about its own and others' future
pytestmark = pytest.mark.filterwarnings("ignore")

QUIET = ["--no-dashboard", "--host", "127.0.0.1"]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Start a scheduler and two workers, and return its address."""
    folder = tmp_path_factory.mktemp("cluster")
    file = folder / "scheduler.json"
    where = ["--scheduler-file", str(file), *QUIET]
    with ExitStack() as stack:
        log = stack.enter_context((folder / "log").open("w"))
        words = ["-m", "distributed.cli.dask_scheduler", "--port", "0", *where]
        scheduler = stack.enter_context(process(words, stdout=log, stderr=log))
        assert wait_until(lambda: file.exists() and file.stat().st_size > 0, scheduler)
        words = ["-m", "distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", *where]
        local = ["--local-directory", str(folder)]
        for _ in range(2):
            stack.enter_context(process([*words, *local], stdout=log, stderr=log))
        yield json.loads(file.read_text())["address"]


def test_results_are_complete_though_a_worker_dies(address, tmp_path):
    """Its task is done by another one; every result arrives exactly once."""
    found = []
    tasks = range(8)
    Cluster(address).run(die_once, str(tmp_path), tasks, lambda *result: found.append(result))
    assert sorted(found) == [(n, 10 * n) for n in tasks]
    assert len(list(tmp_path.glob("1-*"))) == 2  # the first attempt died


@pytest.mark.parametrize(("task", "error"), [("user", ModelError), ("text", PrismError)])
def test_errors_arrive(address, task, error):
    """As from a local process, and the next campaign works."""
    with pytest.raises(error):
        Cluster(address).run(fail, None, [task, "fine"], lambda *_: None)
    found = []
    make_runner(scheduler=address).run(square, 1, [2], lambda _, result: found.append(result))
    assert found == [5]


def test_learning_is_the_same_as_here(address, tmp_path):
    """Seeds on workers give the runs of this process, files included, and resume from them."""
    model, spec = domain("chain", instance="textbook", M=4), domain_spec("chain")
    words = {"stop": StopWhen(trajectories=30), "length": 5}
    here = learn_seeds(model, spec, [3, 4], make_runner(jobs=1), **words)
    file = tmp_path / "run.rfmdp"
    there = learn_seeds(model, spec, [3, 4], Cluster(address), file=file, **words)
    for seed, one, other in zip((3, 4), here, there, strict=True):
        assert np.array_equal(one.counts, other.counts)
        assert np.array_equal(load(tmp_path / f"run-{seed}.rfmdp").counts, one.counts)
    words["stop"] = StopWhen(trajectories=60)
    more = learn_seeds(model, spec, [3, 4], Cluster(address), file=file, resume=True, **words)
    assert [run.history[-1].trajectories for run in more] == [60, 60]
    assert more[0].history[0].seconds == there[0].history[0].seconds  # what was done is kept


def test_ranges_on_the_command_line(address, tmp_path, monkeypatch, capsys):
    """A model's file travels with the tasks; workers stand in another folder."""
    text = "mdp const int N; module m x:[0..N]; [] x<N -> 0.5:(x'=x+1)+0.5:(x'=0); "
    (tmp_path / "m.prism").write_text(text + "[] x=N -> true; endmodule")
    monkeypatch.chdir(tmp_path)
    words = ["solve", "m.prism", "--const", "N=1:3", "--prop", "const int k; Pmax=? [ F<=N x=N ]"]
    assert rfmdp([*words, "--const", "k=1", "--scheduler", address, "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["value"] for one in found] == pytest.approx([0.5, 0.25, 0.125])


def test_the_learning_campaign_on_the_command_line(address, tmp_path, monkeypatch, capsys):
    """Records are written here, once; workers that see the folder save runs to go on with."""
    monkeypatch.setattr("rfmdp.paper.learning.report.figure", lambda _: (b"<svg/>", b""))
    words = ["reproduce", "learning", "--domains", "stock_trading", "--methods", "tied"]
    words += ["--seeds", "2", "--trajectories", "100", "-o", str(tmp_path)]
    assert rfmdp([*words, "--scheduler", address]) == 0
    assert "2 runs, 200 trajectories" in capsys.readouterr().out
    assert len(list((tmp_path / "records").iterdir())) == 2
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_addresses_without_scheduler_are_one_line(monkeypatch):
    """Nobody waits long for nobody."""
    monkeypatch.setattr("rfmdp.campaign.cluster.CONNECT", 0.5)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        nobody = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(SolverError, match="no Dask scheduler answers there"):
            Cluster(nobody).run(square, 0, [1], pytest.fail)
    with pytest.raises(ModelError, match="must be tcp://"):
        Cluster("nonsense://x").run(square, 0, [1], pytest.fail)
