"""The report page: what is in it, and what is refused."""

import base64
import json
import re
import zlib
from dataclasses import replace
from html import escape

import numpy as np
import pytest
from hypothesis import given, strategies as st

from policies.test_decisions import walk
from rfmdp.cli.main import run as command_line
from rfmdp.domains import domain, domain_spec
from rfmdp.errors import UnsupportedError
from rfmdp.formats.files import save
from rfmdp.inner.solvers import IntervalArithmetic
from rfmdp.language.build import parse_prism
from rfmdp.learning.learn import learn
from rfmdp.learning.methods import StopWhen, find_method
from rfmdp.model.derived import reached
from rfmdp.objective import MAX, MIN, Reach, Spec, Until
from rfmdp.outer.solution import written
from rfmdp.report.page import _single, explorer, write_report
from rfmdp.solving import solve

SPEC = Spec(Reach("goal"), MAX, MIN)


def unpacked(text):
    """Return header and arrays of an explorer's data, as the browser reads them."""
    raw = zlib.decompress(base64.b64decode(text))
    size = int.from_bytes(raw[:4], "little")
    head = json.loads(raw[4 : 4 + size])
    start = 4 + size
    return head, {
        name: np.frombuffer(raw, dtype=f"<{kind}", count=count, offset=start + offset)
        for name, (kind, offset, count) in head["arrays"].items()
    }


def test_explorer_has_the_values_and_the_moves():
    """Unpacked, bounds are those of the solution, and every successor is a place on the page."""
    solution = solve(walk(), SPEC)
    head, data = unpacked(explorer(solution))
    assert head["initial"] == 0
    assert np.array_equal(data["lower"], solution.lower[data["state"]])
    assert np.array_equal(data["upper"], solution.upper[data["state"]])
    assert data["successor"].min() >= -1
    assert data["successor"].max() < len(data["state"])
    assert data["taken"].sum() == len(data["state"])
    assert all(offset % 8 == 0 for _, offset, _ in head["arrays"].values())


def test_reached_states_are_the_nearest():
    """With a limit, states are taken in order of their distance from the first one."""
    solution = solve(walk(), SPEC)
    full = reached(walk(), solution.policy.rows, walk().initial, 100, 1000)
    assert np.array_equal(reached(walk(), solution.policy.rows, walk().initial, 2, 1000), full[:2])
    assert len(np.unique(full)) == len(full)


def test_page_is_complete_and_closed(tmp_path):
    """The page loads nothing from elsewhere, says what is proven and how to make it again."""
    solution = solve(walk(), Spec(Until("live", "goal", latest=4), MAX, MIN))
    path = tmp_path / "page.html"
    write_report([solution], path, command="make <this> again")
    text = path.read_text()
    made = f"<li>solved: {escape(str(solution.spec))}, method exact, relative precision 1e-06</li>"
    assert made in text
    assert not re.search(r"(src|href)=|https?://(?!www\.w3\.org/2000/svg)", text)
    assert "certified" in text
    assert "make &lt;this&gt; again" in text
    assert repr(solution.at(0).lower) in text


@pytest.mark.parametrize("agent", [MAX, MIN])
def test_a_card_has_its_bounds_in_order(tmp_path, agent):
    """Bounds that are far apart stand as lower, upper, on the card and in the table."""
    solution = solve(walk(), Spec(Reach("goal"), agent, agent.opposite))
    wide = replace(solution, lower=np.full_like(solution.value, 0.25), upper=solution.upper * 0 + 1)
    write_report(wide, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "proven bounds [0.25, 1.0]" in text
    assert '<div class="big">[0.25, 1]</div>' in text
    cells = re.findall(r'<td data-value="([^"]*)">', text)
    assert cells[:2] == ["0.25", "1.0"]


TEXT = """imdp
const int N; // <goal>
module m
  x : [0..N];
  [go] x<N -> 0.5 : (x'=x+1) + 0.5 : true;
  [rest] x=N -> true;
endmodule
"""


def test_a_page_says_where_a_model_comes_from(tmp_path):
    """File, constants, radius at the end; the text once, whatever the number of results."""
    nominal = parse_prism(TEXT, {"N": 3}, filename="folder/walk.prism")
    results = [solve(nominal.with_radius(r), f"Pmaxmin=? [ F<={4 + k} x=N ]")
               for k, r in enumerate((0.03, 0.02))]  # fmt: skip
    write_report(results, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    for words in ("source: walk.prism", "constants: N=3", "radius 0.03", "radius 0.02"):
        assert words in text
    assert text.count(escape(TEXT)) == 1
    order = ["Policy explorer", "<h2>Results", "<h2>Models", "source: walk.prism", "<h2>Made with"]
    places = [text.index(words) for words in order]
    assert places == sorted(places)


def test_every_step_of_a_horizon_is_on_the_page():
    """Bounds of a step are those of the steps that are left; the last layer is the end."""
    steps = 4
    solution = solve(walk(), Spec(Until("live", "goal", latest=steps), MAX, MIN))
    head, data = unpacked(explorer(solution))
    assert (head["steps"], head["layers"]) == (steps, steps + 1)
    lower, upper = (data[side].reshape(steps + 1, -1) for side in ("lower", "upper"))
    for step in range(steps):
        rest = solve(walk(), Spec(Until("live", "goal", latest=steps - step), MAX, MIN))
        assert np.all(lower[step] <= rest.upper[data["state"]])
        assert np.all(rest.lower[data["state"]] <= upper[step])
    assert np.array_equal(lower[steps], walk().labels["goal"][data["state"]])
    assert data["taken"].reshape(steps, -1).sum() == steps * len(data["state"])


def test_a_method_of_one_side_says_which(tmp_path):
    """Its status is that of a bound, on the card and in the table; a long table is folded."""
    solution = solve(walk(), SPEC, inner=IntervalArithmetic())
    write_report([solution] * 10, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "gap open" not in text
    assert text.count("<td>lower bound</td>") == 10
    assert 'gap_open">lower bound</span>' in text
    assert "table of 10 lines</summary>" in text


def test_an_explorer_that_is_left_out_is_named(tmp_path):
    """A fourth policy is on the page as a card, and the page says that it has no explorer."""
    results = [solve(walk(), Spec(Until("live", "goal", latest=k), MAX, MIN)) for k in range(1, 6)]
    write_report(results[:3], tmp_path / "three.html")
    write_report(results, tmp_path / "five.html")
    three, five = ((tmp_path / f"{n}.html").read_text() for n in ("three", "five"))
    assert "left-out" not in three
    (said,) = re.findall(r'data-role="left-out">(.*?)</p>', five, re.DOTALL)
    assert [escape(str(r.spec)) in said for r in results] == [False, False, False, True, True]


def test_what_is_no_result_is_refused(tmp_path):
    """A page of something else is not written at all."""
    with pytest.raises(
        UnsupportedError, match=r"must be solutions or learning runs, .* got FactoredMDP"
    ):
        write_report([walk()], tmp_path / "page.html")
    for nothing in ([], 3):
        with pytest.raises(UnsupportedError, match="write_report: must be solutions"):
            write_report(nothing, tmp_path / "page.html")
    assert not list(tmp_path.iterdir())


def test_one_result_is_a_page(tmp_path):
    """A single solution need not be in a list."""
    solution = solve(walk(), SPEC)
    write_report(solution, tmp_path / "page.html")
    assert str(solution.spec).replace('"', "&quot;") in (tmp_path / "page.html").read_text()


def test_command_writes_a_page(tmp_path, capsys):
    """`rfmdp report` reads saved results; one that is missing is one line and exit code 1."""
    saved, page = tmp_path / "r.rfmdp", tmp_path / "page.html"
    save(solve(walk(), SPEC), saved)
    assert command_line(["report", str(saved), "-o", str(page), "--title", "A & B"]) == 0
    assert "<h1>A &amp; B</h1>" in page.read_text()
    capsys.readouterr()
    assert command_line(["report", str(tmp_path / "none.rfmdp"), "-o", str(page)]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_texts_cannot_end_the_data_of_a_page(tmp_path):
    """HTML reads comments and tags inside of a script element; there is no `<` in the data."""
    evil = "<!--<script>"
    run = learn(small_aircraft(), domain_spec("aircraft"), stop=StopWhen(trajectories=20), length=5)
    path = tmp_path / "page.html"
    write_report([replace(run, settings=run.settings | {"method": evil})], path)
    data = re.search(r'id="charts">(.*?)</script>', path.read_text(), re.DOTALL).group(1)
    assert "<" not in data
    assert {line["name"] for line in json.loads(data)[0]["lines"]} == {evil}


def small_aircraft():
    """Return the hidden system of a few runs, with a few hundred states."""
    return domain("aircraft", instance="learning", maxX=8, maxY=5, height=2)


def test_a_learned_policy_is_a_policy(tmp_path, capsys):
    """`policy`, `explain` and the explorer of a page take a learning run; pages are .html."""
    saved = str(tmp_path / "run.rfmdp")
    stop = StopWhen(trajectories=200)
    save(learn(small_aircraft(), domain_spec("aircraft"), stop=stop, length=15), saved)
    assert command_line(["policy", saved, "-o", str(tmp_path / "p.csv")]) == 0
    assert command_line(["explain", saved]) == 0
    assert "the policy guarantees a value" in capsys.readouterr().out
    page = tmp_path / "page.html"
    assert command_line(["report", saved, "-o", str(page)]) == 0
    assert "Policy explorer" in page.read_text()
    assert command_line(["report", saved, "-o", str(tmp_path / "page.pdf")]) == 1
    assert "must be an .html file" in capsys.readouterr().err


def test_a_page_says_how_far_a_guarantee_holds(tmp_path):
    """Sets of a single look are called so; after an alarm nothing is guaranteed."""
    run = learn(
        small_aircraft(), domain_spec("aircraft"),
        method=find_method("paper-interval"), stop=StopWhen(trajectories=100), length=15,
    )  # fmt: skip
    page = tmp_path / "page.html"
    held = "holds with probability 0.9999 (fixed sample size, single look)"
    write_report([run], page)
    assert page.read_text().count(held) == 2  # the card and the table
    headline = f'<div class="big">at least {run.guaranteed}</div>'
    assert headline in page.read_text()
    assert 'data-place="place-0"' in page.read_text()
    alarmed = replace(run, alarms=("bounds contradict each other",))
    write_report([alarmed], page)
    text = page.read_text()
    assert held not in text
    assert text.count("ALARM, nothing is guaranteed") == 2
    assert '<div class="big">nothing is guaranteed</div>' in text
    assert f"at least {run.guaranteed}" not in text
    assert 'data-place="place-0"' not in text  # no explorer: its bounds are void
    assert "after an alarm nothing is guaranteed" in text


def test_a_run_shows_its_alarm():
    """Its text, its table in notebooks and its number claim nothing then."""
    run = learn(
        domain("aircraft", instance="learning"), domain_spec("aircraft"),
        stop=StopWhen(trajectories=100), length=15,
    )  # fmt: skip
    assert f"value >= {run.guaranteed} with probability 0.9999" in repr(run)
    alarmed = replace(run, alarms=("bounds contradict each other",))
    assert repr(alarmed).endswith("100 trajectories, ALARM, nothing is guaranteed)")
    assert "value >= " not in alarmed._repr_html_()
    assert (alarmed.guarantee, replace(alarmed, agent=MIN).guarantee) == (-np.inf, np.inf)


@given(st.floats(allow_nan=False), st.integers(2, 16))
def test_written_bounds_stay_bounds(bound, digits):
    """With fewer digits, a lower bound is never larger and an upper one never smaller."""
    assert float(written(bound, -1.0, digits)) <= bound <= float(written(bound, 1.0, digits))


def test_single_precision_keeps_bounds_bounds():
    """Bounds are rounded outwards, infinite ones stay."""
    exact = np.array([0.1, 1 / 3, 0.5, -2.0 / 3, np.inf, -np.inf, 1e-50])
    assert np.all(_single(exact, -1.0).astype(float) <= exact)
    assert np.all(_single(exact, 1.0).astype(float) >= exact)
    assert _single(exact, 1.0).dtype == np.float32
