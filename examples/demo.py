"""Solve and learn the aircraft domain, and write one page with the results.

Two aircraft fly towards each other; the altitude of each changes at random, with probabilities
that are not known exactly. Part one: what can be guaranteed if every probability may be off by a
radius, by every method: exact ones, relaxations, and a restriction. Part two: the probabilities
are unknown and learned from simulated flights; the guarantee holds with probability 0.9999.
"""

import argparse
import time
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

import rfmdp as rf
from rfmdp.learning.methods import find_method
from rfmdp.report.page import write_report
from rfmdp.sets.marginals import balls_around

RADII = (0.005, 0.01, 0.02, 0.03)
METHODS = ("anytime", "paper-interval", "paper-l1")
INNERS = (
    *(rf.Exact(), rf.VertexEnumeration(), rf.McCormick()),
    *(rf.Sequential(), rf.IntervalArithmetic(), rf.Alternating()),
)


def balls(nominal, radius):
    """Return the model with L1 balls of this radius, for the method that sums radii."""
    return nominal.with_marginals(balls_around(nominal.marginals, radius, 1.0))


def compared(nominal, spec, radius):
    """Return a record of every method at a radius, in a form that the page draws."""
    boxes = rf.compare(nominal.with_radius(radius), spec, INNERS)
    sums = rf.compare(balls(nominal, radius), spec, [rf.Exact(), rf.RadiusSum()])
    sums = [replace(record, method=f"{record.method}, L1 balls") for record in sums]
    return [{"radius": radius} | asdict(record) for record in (*boxes, *sums)]


def solve_part(console, nominal, spec, radii):
    """Print what every method guarantees at every radius, and return the records."""
    table = Table("radius", "method", "value", "gap to exact", "time")
    records = []
    for radius in radii:
        with console.status(f"solving at radius {radius:g}"):
            found = compared(nominal, spec, radius)
        for record in found:
            table.add_row(
                f"{radius:g}", record["method"], f"{record['value']:.6f}",
                f"{record['gap_percent']:.2f} %", f"{record['seconds']:.2f} s",
            )  # fmt: skip
        records += found
    console.print(table)
    return records


def learn_part(console, hidden, spec, trajectories):
    """Print how guarantees grow with samples, and return the runs."""
    runs = []
    for name in METHODS:
        with console.status(f"learning with {name}") as status:

            def told(progress, name=name, status=status):
                if progress.point is not None:
                    status.update(
                        f"learning with {name}: {progress.trajectories:,} flights, at least "
                        f"{progress.point.guarantee:.4f} is guaranteed"
                    )

            run = rf.learn(
                hidden,
                spec,
                find_method(name),
                stop=rf.StopWhen(trajectories=trajectories),
                length=15,
                seed=1,
                progress=told,
            )
        last = run.history[-1]
        console.print(
            f"{name:<15} after {last.trajectories:,} flights: guarantee {last.guarantee:.4f}, true "
            f"value of the policy {last.performance:.4f}, {last.seconds:.1f} s"
        )
        runs.append(run)
    return runs


def compile_kernels(console, spec):
    """Compile what the demo needs, so that no time in its tables contains it."""
    started = time.perf_counter()
    small = rf.domain("aircraft", instance="learning", maxX=8, maxY=5, height=2)
    with console.status("compiling kernels: once after installation, later runs start at once"):
        compared(small, spec, RADII[0])
        for name in METHODS:
            stop = rf.StopWhen(trajectories=100)
            rf.learn(small, spec, find_method(name), stop=stop, length=15)
    console.print(f"kernels are ready after {time.perf_counter() - started:.0f} s")


def main():
    """Run both parts, write the page, and say what to look at."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("demo"))
    parser.add_argument("--radii", type=float, nargs="+", default=RADII)
    parser.add_argument("--trajectories", type=int, default=30_000)
    options = parser.parse_args()
    console = Console(highlight=False)
    console.print(__doc__)
    nominal, spec = rf.domain("aircraft", instance="learning"), rf.domain_spec("aircraft")
    compile_kernels(console, spec)
    records = solve_part(console, nominal, spec, options.radii)
    solution = rf.solve(nominal.with_radius(options.radii[-1]), spec)
    runs = learn_part(console, nominal, spec, options.trajectories)
    options.output.mkdir(parents=True, exist_ok=True)
    page = options.output / "index.html"
    write_report(
        [solution, *runs, records], page, title="Two aircraft, uncertain probabilities",
        command="make demo",
    )  # fmt: skip
    console.print(f"\nOpen {page} in a browser. What to look at:", soft_wrap=True)
    console.print(
        "  - the table above: the exact method guarantees more than the relaxations (sequential, "
        "interval, radius sums), in less time than the other exact ones; alternating is no "
        "guarantee, it shows what nature can do at least;\n"
        "  - Curves: guarantees (dashed) grow with samples; the anytime method shares what both "
        "aircraft have in common and needs far fewer;\n"
        "  - Policy explorer: pick a state, see why the action is chosen and what nature does "
        "against it, and step on."
    )


if __name__ == "__main__":
    main()
