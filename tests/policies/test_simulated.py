"""Simulations of policies agree with their proven values."""

import json
import math

import pytest

from rfmdp.cli.main import run

from .test_files import GRID

PROPERTIES = [
    'Pmaxmin=? [ F<=4 "goal" ]',
    'Pmaxmin=? [ F[2,5] "goal" ]',
    'Pmaxmin=? [ !"goal" U>=3 "goal" ]',
    'Pmaxmin=? [ G<=3 !"goal" ]',
    'Pminmax=? [ G[2,4] !"goal" ]',
    'Pmaxmin=? [ G x<2 ]',
    'Pmaxmin=? [ X x=1 ]',
    'Rmaxmin=? [ I=3 ]',
    'Rminmax=? [ C<=5 ]',
    'Rminmax=? [ F "goal" ]',
]  # fmt: skip


@pytest.mark.parametrize("text", PROPERTIES)
def test_simulated_means_agree_with_certified_values(tmp_path, capsys, text):
    """The mean of 20,000 runs is as far from the proven value as luck of 1e-6 allows.

    Hoeffding: a mean of n values within [0, c] is off by more than c sqrt(ln(2 / 1e-6) / 2n) with
    probability 1e-6 at most. Costs here are bounded by `most`, but for a share of trajectories
    that is less than that.
    """
    model, result = tmp_path / "grid.prism", str(tmp_path / "r.rfmdp")
    model.write_text(GRID + "rewards true : x + 1; endrewards")
    words = [str(model), "--const", "N=3,slip=0.4", "--radius", "0.1", "--prop", text]
    assert run(["solve", *words, "-o", result]) == 0
    capsys.readouterr()
    assert run(["evaluate", *words, "--policy", result, "--json"]) == 0
    evaluated = json.loads(capsys.readouterr().out)
    most = 100.0 if text.startswith("R") else 1.0
    off = most * math.sqrt(math.log(2 / 1e-6) / (2 * 20_000))
    more = ["--policy", result, "--length", "1000", "--json", "--seed", "5"]
    assert run(["simulate", *words, *more, "--trajectories", "20000"]) == 0
    out = capsys.readouterr()
    assert out.err == ""  # nothing was cut off
    proven, mean = evaluated["nominal"], json.loads(out.out)["mean"]
    assert proven["lower"] - off <= mean <= proven["upper"] + off
    assert proven["status"] == "certified"
