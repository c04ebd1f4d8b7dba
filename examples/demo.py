"""Solve and learn the aircraft domain, and write one page with the results.

Two aircraft fly towards each other; the altitude of each changes at random, with probabilities
that are not known exactly. Part one: what can be guaranteed if every probability may be off by a
radius, by the exact method and by two relaxations. Part two: the probabilities are unknown and
learned from simulated flights; the guarantee holds with probability 0.9999.
"""

import argparse
import base64
import html
import io
from pathlib import Path

import matplotlib as mpl
from rich.console import Console

from rfmdp.cli.output import written
from rfmdp.inner import Exact, IntervalArithmetic, Sequential
from rfmdp.learning.loop import learn
from rfmdp.learning.methods import ANYTIME, PAPER_INTERVAL, PAPER_L1
from rfmdp.learning.stop import StopWhen
from rfmdp.paper.domains import domain, domain_spec
from rfmdp.solving import compare

mpl.use("Agg")
import matplotlib.pyplot as plt

RADII = (0.005, 0.01, 0.02, 0.03)
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem;
       color: #1d2733; }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2.2rem }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid #dde3ea }
th:first-child, td:first-child { text-align: left }
img { width: 100%; margin: 1rem 0 } .note { color: #5a6b7d; font-size: .9rem }
"""


def solve_part(console):
    """Return the table of methods per radius and its figure."""
    nominal = domain("aircraft", instance="learning")
    spec = domain_spec("aircraft")
    inners = [Exact(), Sequential(), IntervalArithmetic()]
    rows = []
    console.print("compiling kernels (once; half a minute or so) ...")
    compare(nominal.with_radius(RADII[0]), spec, inners)
    for radius in RADII:
        console.print(f"solving with radius {radius:g} ...")
        for record in compare(nominal.with_radius(radius), spec, inners):
            rows.append((radius, record))
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for inner in inners:
        points = [(radius, r.value) for radius, r in rows if r.method == inner.name]
        axes.plot(*zip(*points, strict=True), marker="o", label=inner.name)
    axes.set(xlabel="radius of every probability", ylabel="guaranteed probability of a safe flight")
    axes.legend()
    table = [
        (f"{radius:g}", r.method, f"{r.value:.6f}", f"{r.gap_percent:.1f} %", f"{r.seconds:.2f} s")
        for radius, r in rows
    ]
    return table, figure


def learn_part(console, trajectories):
    """Return the table of learning methods, their figure and the statement of the guarantee."""
    model, spec = domain("aircraft", instance="learning"), domain_spec("aircraft")
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    table, statement = [], ""
    for method in (ANYTIME, PAPER_INTERVAL, PAPER_L1):
        console.print(f"learning with {method.name} ...")
        run = learn(
            model, spec, method, stop=StopWhen(trajectories=trajectories), length=15, seed=1
        )
        history = run.history
        axes.plot([p.trajectories for p in history], [p.guarantee for p in history],
                  label=method.name)  # fmt: skip
        last = history[-1]
        table.append((method.name, f"{last.guarantee:.4f}", f"{last.performance:.4f}",
                      f"{last.replans}", f"{last.seconds:.1f} s"))  # fmt: skip
        statement = statement or run.statement()
    axes.set(xscale="log", xlabel="trajectories", ylabel="guarantee")
    axes.legend()
    return table, figure, statement


def picture(figure):
    """Return a figure as an HTML image that needs no other file."""
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=150)
    plt.close(figure)
    return f'<img alt="" src="data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}">'


def grid(head, rows):
    """Return an HTML table."""
    line = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{line}</tr>{body}</table>"


def main():
    """Run both parts and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("demo"))
    parser.add_argument("--trajectories", type=int, default=30_000)
    options = parser.parse_args()
    console = Console()
    console.print("the first run compiles the kernels, which takes a minute; later ones do not")
    solved, solve_figure = solve_part(console)
    learned, learn_figure, statement = learn_part(console, options.trajectories)
    page = f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>rfmdp demo</title>
<style>{STYLE}</style><h1>Two aircraft, uncertain probabilities</h1><p>{html.escape(__doc__)}</p>
<h2>Solving: guaranteed probability of a safe flight</h2>{picture(solve_figure)}
{grid(("radius", "method", "guarantee", "gap to exact", "time"), solved)}
<p class="note">All guarantees are proven lower bounds; the exact one is certified from both
sides.</p>
<h2>Learning from simulated flights</h2>{picture(learn_figure)}
{grid(("method", "guarantee", "true value of the policy", "replans", "time"), learned)}
<p class="note">{html.escape(statement).replace(chr(10), "<br>")}</p></html>"""
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "index.html"
    with written(path) as file:
        file.write(page)
    console.print(f"open {path} in a browser")


if __name__ == "__main__":
    main()
