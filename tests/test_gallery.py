"""The gallery: every script runs, and its answer is true."""

import runpy
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import rfmdp as rf

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "examples" / "gallery").glob("*.py"))
SLOW = {"cluster", "factors", "network"}
CHECKS = {}


def check(function):
    """Register what must hold of the names that a script leaves."""
    CHECKS[function.__name__] = function
    return function


@pytest.mark.parametrize(
    "script",
    [pytest.param(s, marks=[pytest.mark.slow] * (s.stem in SLOW), id=s.stem) for s in SCRIPTS],
)
def test_the_answer_of_a_script_is_true(script, tmp_path, monkeypatch, capsys):
    """A script of less than forty lines ends with a picture, and an answer that can be checked."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    for name in ("matplotlib", "pandas", *_needs(script)):
        pytest.importorskip(name)
    names = runpy.run_path(str(script), run_name="__main__")
    names["plt"].close("all")
    assert len(script.read_text().splitlines()) < 40
    assert Path(f"{script.stem}.png").stat().st_size > 1_000
    assert capsys.readouterr().out.strip()
    CHECKS[script.stem](names)


def _needs(script):
    """Return the optional packages that a script imports."""
    text = script.read_text()
    return [name for name in ("gymnasium", "distributed", "stormpy") if f"{name}" in text]


@check
def patrol(names):
    # The way north is the only risk, taken once: 0.9 - 0.05; above it nothing can happen.
    bounds = names["solution"].at_initial()
    assert bounds.lower <= 0.85 <= bounds.upper


@check
def servers(names):
    # Where nobody waits and nobody came, speed buys nothing: what is served in vain costs 1.
    assert not names["fast"][0].any()
    assert names["solution"].status is rf.Status.CERTIFIED


@check
def inventory(names):
    # Doubt never makes it cheaper; the loop ends with the larger distance.
    shop, worst = names["shop"], names["solution"].at_initial()
    known = rf.solve(shop.nominal(), 'R{"cost"}min=? [ S ]').at_initial()
    assert known.lower < worst.upper
    again = rf.evaluate(shop, names["solution"].policy, 'R{"cost"}minmax=? [ S ]').at_initial()
    assert max(again.lower, worst.lower) <= min(again.upper, worst.upper)


@check
def aircraft(names):
    # The published value at radius 0.025 is 0.7260.
    assert round(names["solution"].at_initial().lower, 4) == 0.7260


@check
def stock(names):
    # No rule beats the best policy; the optimum without uncertainty is published as 5.84708.
    for rule, best in zip(names["rule"], names["best"], strict=True):
        assert rule.lower <= best.upper
    assert abs(names["best"][0].lower - 5.84708) < 1e-5
    assert abs(names["best"][0].upper - 5.84708) < 1e-5


@check
def network(names):
    # Kept by its factors or written out, a ring of four machines has the same value.
    model = rf.parse_prism(names["ring"](4)).with_radius(0.025)
    bounds = rf.solve(model, "Rmaxmin=? [ C<=3 ]").at_initial()
    assert bounds.lower <= 3 * names["shares"][0] * (1 + 1e-12)
    assert 3 * names["shares"][0] <= bounds.upper
    assert names["shares"] == sorted(names["shares"])


@check
def maintenance(names):
    # A promise is below the optimum of the machines that wrote the log (seed 1).
    truth = names["model"].with_marginals(
        rf.Marginals.from_sets([_known(name) for name in names["model"].marginal_names])
    )
    best = rf.solve(truth, "Rmax=? [ C<=30 ]").at_initial()
    assert all(float(promise) <= best.upper for promise in names["promises"])
    assert float(names["promises"][-1]) > 0.9 * best.lower


def _known(name):
    """Return the probabilities behind the log of `maintenance`."""
    return rf.Singleton([0.2, 0.8] if "[run]" in name else [0.8, 0.2])


@check
def taxi(names):
    # The guarantee is below the optimum that the hidden rain allows (seed 1).
    best = rf.solve(names["structure"], 'Pmax=? [ F<=30 "terminal" ]')
    assert 0.0 < names["run"].guarantee <= best.upper[names["structure"].initial].min()


@check
def factors(names):
    # No guarantee is better than the optimum; factors need fewer samples (three seeds each).
    best = names["best"]
    for run in (run for same in names["runs"].values() for run in same):
        assert run.guarantee >= best.lower
    factored, flat = names["runs"].values()
    assert max(run.guarantee for run in factored) < min(run.guarantee for run in flat)


@check
def next_sample(names):
    # What is known alone helps no more than to know everything.
    gains = [one.gain for one in names["gains"]]
    learned = names["run"].solution
    known = rf.solve(learned.model.nominal(), names["goal"].replace("maxmin", "max")).at_initial()
    assert gains == sorted(gains, reverse=True)
    assert 0.0 < gains[0] <= known.upper - learned.at_initial().lower


@check
def cluster(names):
    # Both runs end as if they had never been stopped.
    assert names["same"]


@check
def own_file(names):
    # Multiplied intervals guarantee less, and more days are never safer.
    exact, loose = names["chances"]["exact"], names["chances"]["interval"]
    assert all(a.upper >= b.lower for a, b in zip(exact, loose, strict=True))
    assert all(a.upper >= b.lower for a, b in pairwise(exact))


@check
def radii(names):
    # Relaxations promise no less cost than the exact method, up to its precision.
    for radius, _, mccormick, interval in zip(names["radii"], *names["costs"], strict=True):
        exact = rf.solve(names["chain"].with_radius(radius), names["spec"]).at_initial()
        assert exact.lower <= mccormick <= interval * (1 + 1e-6)


@check
def explain(names):
    # The action that is taken is the best; nature's answer is a member of its sets.
    reasons = names["reasons"]
    assert names["best"].value.upper >= max(choice.value.lower for choice in reasons.choices)
    for answer in reasons.nature:
        chosen = np.array([o.nature for o in answer.outcomes])
        assert np.isclose(chosen.sum(), 1.0)
        assert all(o.lower - 1e-9 <= o.nature <= o.upper + 1e-9 for o in answer.outcomes)


@check
def storm(names):
    # Storm's value of the file is that of multiplied intervals, up to its stopping rule (1e-6).
    loose = rf.solve(
        names["model"], names["rf"].domain_spec("aircraft"), inner=rf.IntervalArithmetic()
    )
    assert abs(names["values"]["Storm"][-1] - loose.at_initial().lower) < 1e-5
    assert all(s <= e + 1e-5 for e, s in zip(*names["values"].values(), strict=True))


def test_the_page_is_that_of_the_scripts(monkeypatch):
    """Every script is on the page as it is; `python docs/gallery.py` writes it anew."""
    page = (ROOT / "docs" / "gallery.md").read_text()
    for script in SCRIPTS:
        assert f"```py\n{script.read_text()}```" in page
        assert f"(gallery/{script.stem}.png)" in page
        assert (ROOT / "docs" / "gallery" / f"{script.stem}.png").exists()
    assert set(CHECKS) == {script.stem for script in SCRIPTS}
