"""The learning curves in sentences and tables, as CSV, Markdown and figures."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from experiments.document import Document, seconds, shown, write_files
from experiments.learning.curves import EXACT, Curve, LearningTable
from experiments.learning.figure import figure
from experiments.learning.runs import POINT
from experiments.learning.settings import SEEDS, SETTINGS, TRAJECTORIES
from experiments.published import LearningCost, published_learning
from rfmdp.domains import DOMAINS
from rfmdp.model.arrays import counted
from rfmdp.objective import MAX

CLOSE = 1.5  # ratio of trajectories that counts as the published number
PAPER_ORDER = ("paper-mccormick", "paper-interval", "paper-l1", "paper-flat")
TIMES = "×"
KEY = ("domain", "method", "setting", "seed")


def write_table(table: LearningTable, folder: Path) -> None:
    """Write all files of a table into a folder."""
    figures = {
        f"learning-{setting}": figure(curves) for setting, curves in table.by_setting.items()
    }
    write_files(folder, "learning", document(table), _lines(table), figures)


def _lines(table: LearningTable) -> Iterator[list[object]]:
    """Give the heads, and one line per evaluation of every run."""
    yield [*KEY, *POINT]
    for curve in table.curves:
        for record in curve.records:
            key = [getattr(record, name) for name in KEY]
            yield from ([*key, *(point[name] for name in POINT)] for point in record.history)


def document(table: LearningTable) -> Document:
    """Return the summary, figure and tables of every setting."""
    page = Document("The published learning curves, learned again")
    page.bullets(summary(table))
    for setting, curves in table.by_setting.items():
        page.heading(f"The experiments {SETTINGS[setting].title}")
        label = "Guarantee, performance and runtime against trajectories"
        page.picture(f"learning-{setting}.png", label)
        _add_tables(page, curves)
    for title, texts in (
        ("Shorter runs", list(shorter_runs(table))),
        ("Left out", [str(runs) for runs in table.left_out]),
    ):
        if texts:
            page.heading(title)
            page.bullets(texts)
    return page


def _add_tables(page: Document, table: LearningTable) -> None:
    """Add all tables of a setting."""
    page.paragraph(
        "Dashed: guarantees; solid: the policy on the hidden truth; bands: one standard deviation "
        "over seeds; red: the guarantee that was printed for flat learning. Trajectories are those "
        "of the first evaluation (sixteen per decade) at which the mean over seeds reaches the "
        "target. Seconds: of one core, in the paper on 40 cores. Ratio: to the printed "
        "trajectories of the same method, ours to those of McCormick."
    )
    page.paragraph(
        "Trajectories and seconds to the printed guarantee; in brackets the printed ones."
    )
    page.table(*overview(table))
    page.bullets([*method_order(table), *flat_ends(table), *full_cost(table)])
    page.paragraph("Processor seconds of the longest runs, means over the seeds.")
    page.table(*runtimes(table))
    for name in table.domains:
        _add_domain(page, table, name)


def _add_domain(page: Document, table: LearningTable, name: str) -> None:
    """Add the section of one domain."""
    curves, flat = table.in_domain(name), table.flat_guarantee(name)
    domain, first = DOMAINS[name], curves[0].records[0]
    goal = "maximise" if domain.agent is MAX else "minimise"
    version = domain.versions["learning"]
    page.heading(domain.title, level=3)
    page.paragraph(
        f"{domain.about} {domain.prop}, {goal}; {version.states:,} states, optimum "
        f"{version.optimum:g}, trajectories of {first.length} steps, beta {first.beta:g}."
    )
    end = "our flat learning has no guarantee yet"
    if flat is not None:
        end = f"{flat:.4g}, where our flat learning ends"
    page.paragraph(f"A: to the printed guarantee {curves[0].target:g}. B: to {end}.")
    rows = [line(curve, flat) for curve in curves]
    page.table(
        (
            *("method", "seeds", "trajectories", "guarantee"),
            *("A: paper", "A: ours", "A: ratio", "A: paper s", "A: our s"),
            *("B: ours", "B: ratio", "B: our s"),
        ),
        rows,
    )


def count(trajectories: int) -> str:
    """Return a number of trajectories.

    >>> count(26607)
    '26,607'
    """
    return f"{trajectories:,}"


def overview(table: LearningTable) -> tuple[tuple[str, ...], list[list[str]]]:
    """Return heads and lines of the published table of a setting: what printed guarantees cost.

    A line is a method, a column a domain; cells are ours, and in brackets what was printed.
    """
    rows = []
    for method in table.methods:
        curves = [table.of(name, method.word) for name in table.domains]
        rows.append([method.title, *("" if c is None else _overview_cell(c) for c in curves)])
    printed = published_learning()
    heads = (f"{DOMAINS[name].title}, {printed[name].guarantee}" for name in table.domains)
    return ("method", *heads), rows


def _overview_cell(curve: Curve) -> str:
    reached = curve.reached(curve.target)
    ours = f"not after {count(curve.done)}" if reached is None else _cost(reached)
    return ours if curve.printed is None else f"{ours} ({_cost(curve.printed)})"


def _cost(cost: LearningCost) -> str:
    return f"{count(cost.trajectories)} in {seconds(cost.seconds)} s"


def runtimes(table: LearningTable) -> tuple[tuple[str, ...], list[list[str]]]:
    """Return heads and lines of a table: processor seconds of methods on domains."""
    rows = []
    for method in table.methods:
        curves = [table.of(name, method.word) for name in table.domains]
        means = ("" if c is None else f"{sum(c.processor) / c.seeds:.0f}" for c in curves)
        rows.append([f"`{method.word}`", *means])
    return ("method", *(DOMAINS[name].title for name in table.domains)), rows


def line(curve: Curve, flat: float | None) -> list[str]:
    """Return the line of a curve in the table of its domain.

    Parameters
    ----------
    flat
        The guarantee with which our own flat learning ends.
    """
    printed = curve.printed
    trajectories, ratio, spent = _cost_cells(curve, curve.target)
    return [
        *(curve.method.title, str(curve.seeds), count(curve.done), shown(curve.last(), 4)),
        *(count(printed.trajectories) if printed else "", trajectories, ratio),
        *(seconds(printed.seconds) if printed else "", spent),
        *_cost_cells(curve, flat),
    ]


def _cost_cells(curve: Curve, target: float | None) -> tuple[str, str, str]:
    """Return trajectories to a guarantee, their ratio to the printed ones, and seconds.

    Ours, which were not printed, are compared with the paper's best column.
    """
    reached = None if target is None else curve.reached(target)
    if reached is None:
        return "–", "–", "–"
    printed = curve.printed.trajectories if curve.printed else curve.printed_best
    ratio = f"{TIMES}{reached.trajectories / printed:.2g}"
    return count(reached.trajectories), ratio, seconds(reached.seconds)


def summary(table: LearningTable) -> Iterator[str]:
    """Give the results in a few sentences."""
    records = [record for curve in table.curves for record in curve.records]
    spent = sum(sum(curve.processor) for curve in table.curves)
    yield (
        f"{counted(len(records), 'run')}, {sum(record.done for record in records):,} "
        f"trajectories, {seconds(spent)} processor seconds."
    )
    by_setting = table.by_setting
    for setting, curves in by_setting.items():
        where = "" if len(by_setting) == 1 else f" ({SETTINGS[setting].title})"
        yield from (f"{text}{where}." for text in _claims(curves))


def _claims(table: LearningTable) -> Iterator[str]:
    """Give what holds of the paper's claims, and of ours, without a full stop."""
    exact = [curve for curve in table.curves if curve.method.word == EXACT]
    if exact:
        close = [curve.domain for curve in exact if _within(curve, CLOSE)]
        yield (
            f"The paper's sets, composed exactly, reach the printed guarantee within {CLOSE} times "
            f"the printed trajectories in {len(close)} of {len(exact)} domains"
            f"{_named({curve.domain for curve in exact} - set(close))}"
        )
    for method in table.methods:
        if method.column:
            continue
        curves = [curve for curve in table.curves if curve.method.word == method.word]
        better = [c.domain for c in curves if _within(c, 1.0)]
        tenth = [c.domain for c in curves if _within(c, 0.1)]
        yield (
            f"{method.heading}: no more trajectories than printed for "
            f"McCormick in {len(better)} of {len(curves)} domains, at most a tenth in {len(tenth)}"
            f"{_named({c.domain for c in curves} - set(better))}"
        )


def _within(curve: Curve, factor: float) -> bool:
    """Return whether a curve reaches the printed guarantee within a factor of what was printed."""
    reached = curve.reached(curve.target)
    return reached is not None and reached.trajectories <= factor * curve.printed_best


def _named(domains: set[str]) -> str:
    names = [DOMAINS[name].title for name in DOMAINS if name in domains]
    return f" (not in {', '.join(names)})" if names else ""


def method_order(table: LearningTable) -> Iterator[str]:
    """Give one sentence per domain: the order of the paper's methods, and where it fails."""
    for name in table.domains:
        target, costs = _costs(table, name)
        if len(costs) < 2:
            continue
        listed = ", ".join(f"{c.method.title} {count(n)}" for c, n in costs)
        wrong = [
            f"{second.method.title} does not need more than {first.method.title}"
            for (first, a), (second, b) in pairwise(costs)
            if b <= a
        ]
        verdict = f"; {'; '.join(wrong)}" if wrong else ", the order of the paper"
        sentence = f"{DOMAINS[name].title}, trajectories to {target:.4g}: {listed}{verdict}."
        if [curve.method.word for curve, _ in costs[:2]] == list(PAPER_ORDER[:2]):
            printed = published_learning()[name].counts
            ratio = printed["mccormick"].trajectories / printed["interval"].trajectories
            sentence += (
                f" Exact over interval: {costs[0][1] / costs[1][1]:.2f} (printed {ratio:.2f})."
            )
        yield sentence


def flat_ends(table: LearningTable) -> Iterator[str]:
    """Give one sentence per domain: the end of our flat learning, and what reaches it."""
    for name in table.domains:
        end = table.flat_guarantee(name)
        if end is None:
            continue
        costs = [
            f"{curve.method.title} {count(cost.trajectories)}"
            f" (printed {count(curve.printed.trajectories)})"
            for curve in table.of_methods(name, PAPER_ORDER[:-1])
            if curve.printed is not None and (cost := curve.reached(end)) is not None
        ]
        printed = published_learning()[name].guarantee
        sentence = f"{DOMAINS[name].title}: our flat learning ends at {end:.4g} (printed {printed})"
        yield f"{sentence}; trajectories to that: {', '.join(costs)}." if costs else f"{sentence}."


def _costs(table: LearningTable, domain: str) -> tuple[float, list[tuple[Curve, int]]]:
    """Return the guarantee that most of the paper's methods reach, and their trajectories to it.

    That is the printed one, or the end of our own flat learning where that is less.
    """
    curves = table.of_methods(domain, PAPER_ORDER)
    costs = [
        (target, [(c, cost.trajectories) for c in curves if (cost := c.reached(target))])
        for target in (published_learning()[domain].target, table.flat_guarantee(domain))
        if target is not None
    ]
    return max(costs, key=lambda pair: len(pair[1]))


def full_cost(table: LearningTable) -> Iterator[str]:
    """Give the estimated cost of the whole campaign of the paper's methods, from these runs."""
    total, missing = 0.0, []
    for name in table.domains:
        for word in PAPER_ORDER:
            curve = table.of(name, word)
            full = [] if curve is None else [
                spent for spent, record in zip(curve.processor, curve.records, strict=True)
                if record.done >= TRAJECTORIES
            ]  # fmt: skip
            if not full:
                missing.append(f"{word} on {DOMAINS[name].title}")
                continue
            total += SEEDS * sum(full) / len(full)
    if total:
        yield (
            f"{SEEDS} seeds of all cells of the paper with {TRAJECTORIES:,} trajectories: "
            f"{total / 3600.0:.1f} hours of one core, estimated from the runs that went so far"
            + (f"; without {', '.join(missing)}" if missing else "")
            + "."
        )


def shorter_runs(table: LearningTable) -> Iterator[str]:
    """Give one sentence about runs that stopped before the full number of trajectories."""
    for curve in table.curves:
        if curve.done < TRAJECTORIES:
            reason = {record.stopped for record in curve.records}
            yield (
                f"{DOMAINS[curve.domain].title}, {curve.method.title} ({curve.setting}): "
                f"{curve.done:,} trajectories ({', '.join(sorted(reason))})."
            )
