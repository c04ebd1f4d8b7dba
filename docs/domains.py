"""Write a page per published domain from its model: `python docs/domains.py [NAME ...]`."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the printed values are beside the package

import rfmdp as rf  # noqa: E402
from experiments.published import STOPPED, published_table  # noqa: E402
from rfmdp.domains import DOMAINS, Domain  # noqa: E402

RADII = (0.01, 0.025, 0.1)
LARGE = 100_000  # states above which one radius is solved
CONSTANT = re.compile(r"^const \w+ (\w+);[ ]*(?://[ ]*(.*))?$", re.MULTILINE)
NUMBERS = (
    "## Numbers",
    "",
    "Values of the published version. Those here are proven, rounded to six digits. A star marks",
    "printed values of an iteration that stopped early.",
    "",
    "| radius | method | published | here |",
    "|---|---|---|---|",
)
METHODS = {"exact": rf.Exact(), "interval": rf.IntervalArithmetic()}


def main() -> None:
    """Write the pages of some domains, by default of all."""
    for name in sys.argv[1:] or DOMAINS:
        text = page(DOMAINS[name], numbers(DOMAINS[name]))
        (ROOT / "docs" / "domains" / f"{name}.md").write_text(text, encoding="utf-8")
        print(name, flush=True)


def page(domain: Domain, table: Sequence[str]) -> str:
    """Return the page of a domain, with the lines of its table of numbers."""
    text = domain.path.read_text(encoding="utf-8")
    about = " ".join(line[3:] for line in text.partition("\nmdp")[0].splitlines())
    model = rf.domain(domain.name)
    lines = [
        f"# {domain.title}", "", domain.about, "", about, "",
        f"`rf.domain({domain.name!r}, radius=0.025)` is the model behind a published row. On the",
        f"command line it is `rfmdp solve {domain.name} --const radius=0.025`. The property is",
        f"`{domain.prop}`.", "",
        "## Variables, actions, rewards", "", "| variable | values |", "|---|---|",
        *(f"| `{v.name}` | {v.low} to {v.high} |" for v in model.variables), "",
        f"Actions: {_listed(name for name in model.actions if name)}.",
        f"Labels: {_listed(name for name in model.labels if name != 'deadlock')}.",
        f"Rewards: {_listed(model.rewards) or 'none'}.", "",
    ]  # fmt: skip
    return "\n".join([*lines, *_parameters(domain, text), *NUMBERS, *table]) + "\n"


def _listed(names: object) -> str:
    return ", ".join(f"`{name}`" for name in names)  # type: ignore[attr-defined]


def _parameters(domain: Domain, text: str) -> list[str]:
    """Return the constants with their values in every version, and the sizes of the versions."""
    versions = domain.versions
    meanings = dict(CONSTANT.findall(text)) | {
        "as_published": "with the oddities of the published model"
    }
    head = " | ".join(versions)
    lines = [
        "## Parameters",
        "",
        f"| constant | meaning | {head} |",
        "|---|---|" + "---|" * len(versions),
    ]
    for name in domain.constants():
        values = " | ".join(str(version.constants[name]) for version in versions.values())
        lines.append(f"| `{name}` | {meanings.get(name, '')} | {values} |")
    for size in ("states", "transitions"):
        counts = " | ".join(f"{getattr(version, size):,}" for version in versions.values())
        lines.append(f"| {size} | | {counts} |")
    differs = domain.differences and f"Published and textbook version differ. {domain.differences}"
    return [*lines, "", differs, ""]


def numbers(domain: Domain) -> list[str]:
    """Return the lines of a table: what the paper printed, and the values here."""
    printed, lines = published_table(), []
    for radius in RADII if domain.published.states < LARGE else (0.025,):
        model = rf.domain(domain.name, radius=radius)
        for word, inner in METHODS.items():
            value = rf.check(model, domain.prop, inner=inner).value
            old = printed[domain.name, radius, word].value
            mark = " *" if (domain.name, radius, word) in STOPPED else ""
            lines.append(f"| {radius} | {word} | {old}{mark} | {value:.6g} |")
    return lines


if __name__ == "__main__":
    main()
