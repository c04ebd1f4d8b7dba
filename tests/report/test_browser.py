"""The report page in a real browser: no errors, and everything on it works."""

import re
import shutil

import pytest

from rfmdp.domains import domain, domain_spec
from rfmdp.language.build import load_prism
from rfmdp.learning.learn import learn
from rfmdp.learning.methods import StopWhen
from rfmdp.report.page import write_report
from rfmdp.solving import solve

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
    "--disable-component-update", "--disable-sync", "--disable-quic",
)  # fmt: skip

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium here: the report page is not tried in a browser"
)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Return the page of Aircraft with two learning runs."""
    spec = domain_spec("aircraft")
    solution = solve(domain("aircraft").with_radius(0.025), spec)
    small = domain("aircraft", instance="learning")
    runs = [
        learn(small, spec, stop=StopWhen(trajectories=150), length=15, seed=seed) for seed in (1, 2)
    ]
    path = tmp_path_factory.mktemp("report") / "page.html"
    write_report([solution, *runs], path)
    return path


@pytest.fixture(scope="module")
def page(report):
    """Open the page; errors that the browser reports end up in `page.complaints`."""
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with driver.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        opened = browser.new_page(viewport={"width": 1200, "height": 900})
        opened.complaints = []
        opened.on("console", lambda m: opened.complaints.append(m.text) if m.type == "error" else 0)
        opened.on("pageerror", lambda e: opened.complaints.append(str(e)))
        opened.goto(report.as_uri())
        opened.wait_for_selector("#place-0 [data-role=actions]")
        yield opened
        assert opened.complaints == []
        browser.close()


def shown_state(page):
    return page.inner_text("#place-0 [data-role=state]")


def test_page_is_small(report):
    """Everything of Aircraft fits into two megabytes."""
    assert report.stat().st_size < 2_000_000


def test_stepping_and_going_back(page):
    """An outcome leads to its state; going back leads to where we were."""
    first = shown_state(page)
    target = page.locator("#place-0 [data-role=next] [data-action=outcome]").first
    name = target.inner_text()
    target.click()
    assert shown_state(page) == name != first
    page.click("#place-0 [data-action=nature]")
    page.click("#place-0 [data-action=chance]")
    assert shown_state(page) not in (name, first)
    for _ in range(3):
        page.click("#place-0 [data-action=back]")
    assert shown_state(page) == first
    assert page.is_disabled("#place-0 [data-action=back]")


def test_a_state_is_picked_by_its_variables(page):
    """Numbers in the boxes of the variables lead to that state, once it is a state of the page."""
    first = shown_state(page)
    page.click("#place-0 [data-role=next] [data-action=outcome] >> nth=0")
    second = shown_state(page)
    page.click("#place-0 [data-action=back]")
    assert shown_state(page) == first != second
    for part in second.split(", "):
        name, value = part.split("=")
        box = page.locator(f"#place-0 [data-variable={name}]")
        if box.input_value() != value:
            box.fill(value)
            box.dispatch_event("change")
    assert shown_state(page) == second
    page.click("#place-0 [data-action=back]")


def test_the_chosen_action_is_marked(page):
    """One action is the policy's, and no other has a larger lower bound."""
    rows = page.locator("#place-0 [data-role=actions] tbody tr")
    assert page.locator("#place-0 [data-role=actions] tr.chosen").count() == 1
    numbers = [float(rows.nth(k).locator("td").nth(1).inner_text()) for k in range(rows.count())]
    chosen = page.locator("#place-0 [data-role=actions] tr.chosen td").nth(1).inner_text()
    assert float(chosen) >= max(numbers) - 1e-5


def test_the_table_sorts(page):
    """A click on a heading sorts by it, a second one the other way."""
    table = page.locator("table.sortable").first
    column, cells = table.locator("thead th", has_text="seconds"), "tbody tr td:last-child"
    column.locator("button").click()
    up = [float(table.locator(cells).nth(k).get_attribute("data-value")) for k in range(3)]
    column.locator("button").click()
    down = [float(table.locator(cells).nth(k).get_attribute("data-value")) for k in range(3)]
    assert up == sorted(up) == down[::-1]


def test_curves_toggle(page):
    """A name in the legend hides its lines and brings them back; seeds have a band."""
    lines = page.locator("#curves path")
    before = lines.count()
    assert page.locator("#curves path.band").count() > 0
    button = page.locator("#curves .legend button").first
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert lines.count() < before
    button.click()
    assert lines.count() == before


def test_points_tell_their_values(page):
    """A point of a curve says its method, its value and where it is."""
    page.locator("#curves .chart circle").first.hover()
    assert re.fullmatch(r"anytime.*: .* at .*", page.locator("#curves .tip").first.inner_text())


def test_printed_bounds_stay_bounds(page):
    """Six digits of a lower bound are no more than it, those of an upper bound no less."""
    for x in (0.9641746314528795, 0.72600931, 4.691789832, 1e-9 / 3, -2.00000049, 1.0, 12345678.9):
        low, high = page.evaluate(f"[bound({x!r}, -1), bound({x!r}, 1)]")
        assert float(low) <= x <= float(high)
        assert float(high) - float(low) <= 1.1e-5 * abs(x)
    assert page.evaluate("[bound(Infinity, 1), bound(-Infinity, -1), bound(0, -1)]") == [
        "∞", "−∞", "0",
    ]  # fmt: skip


def test_nothing_is_cut_off_on_paper(page):
    """Printed on A4, no table is wider than what holds it."""
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 794, "height": 1123})
    try:
        hidden = page.evaluate(
            "[...document.querySelectorAll('.scroll')].map((e) => e.scrollWidth - e.clientWidth)"
        )
        assert hidden
        assert max(hidden) <= 0
    finally:
        page.emulate_media(media="screen")
        page.set_viewport_size({"width": 1200, "height": 900})


def test_the_colours_are_those_of_the_map(page):
    """The scale shows five values of this map, from the darkest to the brightest."""
    ticks = page.locator("#place-1 [data-role=scale] span").all_text_contents()
    numbers = [float(text) for text in ticks]
    assert len(numbers) == 5
    assert numbers == sorted(numbers)
    assert numbers[0] < numbers[-1]


@pytest.mark.parametrize(
    ("values", "ranked"), [("[0, 1, 2, 3, 4, 5]", False), ("[1, 2, 3, 4, 5, 6, 1e6]", True)]
)
def test_one_large_value_does_not_make_the_others_alike(page, values, ranked):
    """Where nearly all values are in one part of the range, colours go by rank."""
    found = page.evaluate(f"""() => {{ const scale = scaleOf({values});
        return [scale.ranked, {values}.map(scale.share)]; }}""")
    assert found[0] is ranked
    assert found[1] == pytest.approx([k / (len(found[1]) - 1) for k in range(len(found[1]))])


def test_sliders_move_the_map_alone(page):
    """The variables that are not on the map have sliders; the state stays."""
    before = shown_state(page)
    slider = page.locator("#place-0 [data-slider]").first
    name = slider.get_attribute("data-slider")
    pixels = page.evaluate("document.querySelector('canvas').toDataURL()")
    slider.evaluate("node => { node.value = node.max; node.dispatchEvent(new Event('change')); }")
    assert page.locator(f"#place-0 [data-slider={name}]").input_value() == slider.get_attribute(
        "max"
    )
    assert page.evaluate("document.querySelector('canvas').toDataURL()") != pixels
    assert shown_state(page) == before


def test_the_map_opens_at_the_initial_state(page, tmp_path):
    """The variable that is not on it has the value of the state that is shown first."""
    text = (
        "mdp module m x:[0..2]; y:[0..2]; z:[0..2] init 2; [a] x<2 -> 0.5:(x'=x+1)+0.5:true; "
        "[b] y<2 -> 0.5:(y'=y+1)+0.5:true; [c] z>0 -> 0.5:(z'=z-1)+0.5:true; "
        "[d] x=2&y=2&z=0 -> true; endmodule"
    )
    model = load_prism_text(tmp_path, text)
    write_report([solve(model, "Rmin=? [ F x=2&y=2&z=0 ]")], tmp_path / "three.html")
    page.goto((tmp_path / "three.html").as_uri())
    page.wait_for_selector("#place-0 [data-role=actions]")
    shown = dict(part.split("=") for part in shown_state(page).split(", "))
    sliders = page.locator("#place-0 [data-slider]")
    assert sliders.count() == 1
    assert sliders.input_value() == shown[sliders.get_attribute("data-slider")]


def test_a_map_of_one_cell_is_not_the_first(page, report):
    """Before they fly, the aircraft are in one place only: the map is that of another moment."""
    page.goto(report.as_uri())
    page.wait_for_selector("#place-0 [data-role=actions]")
    assert "x=0" in shown_state(page)
    assert page.locator("#place-0 [data-slider=x]").input_value() != "0"


def test_one_variable_has_a_curve(page, tmp_path):
    """Values over the one variable stand where others have a map; marks at whole numbers only."""
    text = "mdp module m x:[0..3]; [a] x<3 -> 0.5:(x'=x+1)+0.5:(x'=x); [b] x=3 -> true; endmodule"
    model = load_prism_text(tmp_path, text)
    write_report([solve(model, "Rmax=? [ F x=3 ]")], tmp_path / "one.html")
    page.goto((tmp_path / "one.html").as_uri())
    page.wait_for_selector("#place-0 [data-role=curve] svg")
    assert page.locator("#place-0 [data-role=curve] circle").count() == 5  # four, and the current
    marks = page.locator(
        "#place-0 [data-role=curve] svg text[text-anchor=middle]"
    ).all_text_contents()
    assert marks == ["0", "1", "2", "3", "x", "value"]


def test_a_slider_chooses_the_step(page, tmp_path):
    """The last step is worth what one step is; an outcome leads to the next step."""
    text = "mdp module m x:[0..3]; [a] x<3 -> 0.5:(x'=x+1)+0.5:(x'=x); [b] x=3 -> true; endmodule"
    model = load_prism_text(tmp_path, text)
    write_report([solve(model, "Rmax=? [ C<=4 ]")], tmp_path / "steps.html")
    page.goto((tmp_path / "steps.html").as_uri())
    slider, value = page.locator("#place-0 [data-role=step]"), page.locator("#place-0 .big")
    slider.wait_for()
    assert value.inner_text().startswith("at least 3.99")  # every step pays one
    page.click("#place-0 [data-role=next] [data-action=outcome] >> nth=0")
    assert slider.input_value() == "1"
    slider.evaluate("node => { node.value = 3; node.dispatchEvent(new Event('change')); }")
    assert value.inner_text().startswith("at least 0.99")
    assert page.locator("#place-0 [data-role=next] [data-action=outcome]").count() == 0


def load_prism_text(folder, text):
    """Return the model of a text, whose steps cost one each."""
    file = folder / "m.prism"
    file.write_text(text + " rewards true : 1; endrewards")
    return load_prism(file)
