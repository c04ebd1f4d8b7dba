"""Documentation: every block of Python runs, every command works, every public name is there."""

import re
import runpy
import shlex
from pathlib import Path

import pytest

import rfmdp
from experiments.published import published_table
from rfmdp.cli.main import run
from rfmdp.domains import DOMAINS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TIMES = re.compile(r"\d+(\.\d+)?(e-\d+)? s\b|(seconds\s+)[\d.e-]+")


def blocks(page, kind):
    return [text for found, text in BLOCK.findall(page.read_text()) if found == kind]


def pages_with(kind):
    return [pytest.param(page, id=page.name) for page in PAGES if blocks(page, kind)]


@pytest.mark.parametrize("page", pages_with("python"))
def test_python_blocks_run(page, tmp_path, monkeypatch):
    """The blocks of a page run one after the other, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    _write_files(page)
    names = {"__name__": page.stem}
    for number, text in enumerate(blocks(page, "python"), start=1):
        exec(compile(text, f"{page.name}, block {number}", "exec"), names)


@pytest.mark.parametrize("page", pages_with("console"))
def test_commands_work_and_print_what_the_page_shows(page, tmp_path, monkeypatch, capsys):
    """Lines that start with `$ rfmdp` end well; what follows is what they print, times aside."""
    monkeypatch.chdir(tmp_path)
    _write_files(page)
    for text in blocks(page, "console"):
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            words = shlex.split(command, comments=True)
            assert words[0] == "rfmdp", command
            capsys.readouterr()
            assert run(words[1:]) == 0, command
            printed = _without_times(capsys.readouterr().out)
            for line in _without_times(shown).splitlines():
                assert line == "..." or line in printed.splitlines(), f"{command}: {line}"


def _write_files(page):
    """Write the PRISM blocks of a page, each to the file that its first line names."""
    for text in blocks(page, "prism"):
        name = re.match(r"// (\S+)", text)
        assert name, f"{page.name}: a PRISM block starts with `// file name`"
        Path(name[1]).write_text(text)


def _without_times(text):
    return TIMES.sub("(time)", text)


def test_the_table_of_the_readme_is_what_both_tools_say():
    """Storm and rfmdp give the numbers that the README shows."""
    pytest.importorskip("stormpy")
    script = runpy.run_path(str(ROOT / "benchmarks" / "three_tools.py"))
    assert script["table"]() in (ROOT / "README.md").read_text()


def test_the_demo_runs(tmp_path, monkeypatch, capsys):
    """What `make demo` runs ends with a page, and says where it is."""
    few = ["--radii", "0.03", "--trajectories", "100"]
    monkeypatch.setattr("sys.argv", ["demo", "-o", str(tmp_path / "demo"), *few])
    runpy.run_path(str(ROOT / "examples" / "demo.py"), run_name="__main__")
    assert "index.html" in capsys.readouterr().out
    assert (tmp_path / "demo" / "index.html").stat().st_size > 100_000


def test_every_public_name_is_in_the_reference():
    """The reference is that of the public names; `python docs/api.py` writes it anew."""
    listed = re.findall(r"^\| `(\w+)", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(rfmdp.__all__)


def test_every_page_is_in_the_navigation():
    """No page is lost."""
    navigation = (ROOT / "mkdocs.yml").read_text()
    assert [page.name for page in PAGES[1:] if page.name not in navigation] == []


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_and_pictures_lead_somewhere(page):
    """Every link that is no address of the web is a file, and every anchor a heading."""
    prose = BLOCK.sub("", page.read_text())
    for target, _, anchor in re.findall(r"\]\(([^)#:\s]*)(#([\w-]+))?\)", prose):
        file = page.parent / target if target else page
        assert file.exists(), target
        if anchor:
            assert anchor in anchors(file.read_text()), f"{target}#{anchor}"


def anchors(text):
    """Return the anchors that headings of a page get."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", line).strip().lower().replace(" ", "-") for line in headings}


@pytest.mark.parametrize("name", [*DOMAINS])
def test_the_page_of_a_domain_is_that_of_its_model(name):
    """All but its numbers is made again; `python docs/domains.py` writes these anew as well."""
    text = (ROOT / "docs" / "domains" / f"{name}.md").read_text()
    rows = re.findall(r"^\| 0\.\d+ \| (?:exact|interval) .*$", text, re.MULTILINE)
    script = runpy.run_path(str(ROOT / "docs" / "domains.py"))
    assert script["page"](DOMAINS[name], rows) == text
    for row in rows:  # a printed value is that of the model, to its digits, unless it is starred
        radius, method, printed, value = row.strip("| ").split(" | ")
        old = published_table()[name, float(radius), method]
        assert printed.removesuffix(" *") == old.value
        assert old.agrees(float(value)) or printed.endswith("*")
    if name == "chain":
        assert script["numbers"](DOMAINS[name]) == rows
