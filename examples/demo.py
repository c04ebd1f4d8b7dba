"""Solve and learn the aircraft domain, and write one page with the results.

Two aircraft fly towards each other; the altitude of each changes at random, with probabilities
that are not known exactly. Part one: what can be guaranteed if every probability may be off by a
radius, by every method: exact ones and relaxations. Part two: the probabilities are unknown and
learned from simulated flights; the guarantee holds with probability 0.9999.
"""

import argparse
import time
from pathlib import Path

import rfmdp as rf
from rfmdp.learning.methods import find_method
from rfmdp.report.page import write_report
from rfmdp.sets.marginals import balls_around

RADII = (0.005, 0.01, 0.02, 0.03)
METHODS = ("anytime", "paper-interval", "paper-l1")
INNERS = (
    *(rf.Exact(), rf.VertexEnumeration(), rf.McCormick()),
    *(rf.Sequential(), rf.IntervalArithmetic()),
)
SUMS = (rf.Exact(), rf.RadiusSum())

ADVICE = """\
- The table above. The exact method guarantees more than sequential, interval and radius sum. It
  is faster than vertices and McCormick, which give the same value here.
- Curves. Guarantees (dashed) grow with samples. The anytime method shares what both aircraft have
  in common, so it needs far fewer samples.
- Policy explorer. Choose a state, see why its action is chosen and what nature does against it,
  and step on."""


def balls(nominal, radius):
    """Return the model with L1 balls of this radius, for the method that sums radii."""
    return nominal.with_marginals(balls_around(nominal.marginals, radius, 1.0))


def compared(nominal, spec, radius):
    """Yield every method at a radius with its guarantee, its gap to the exact one, and its time."""
    boxes, sums = nominal.with_radius(radius), balls(nominal, radius)
    for model, inners, sets in ((boxes, INNERS, ""), (sums, SUMS, ", L1 balls")):
        exact = None
        for inner in inners:
            started = time.perf_counter()
            value = rf.solve(model, spec, inner=inner).at_initial().lower
            exact = value if exact is None else exact
            gap = 100.0 * (exact - value) / value
            yield inner.name + sets, value, gap, time.perf_counter() - started


def solve_part(nominal, spec, radii):
    """Print what every method guarantees at every radius."""
    print(f"\n{'radius':<8}{'method':<24}{'value':>10}{'gap to exact':>14}{'time':>10}")
    for radius in radii:
        for method, value, gap, seconds in compared(nominal, spec, radius):
            print(f"{radius:<8g}{method:<24}{value:10.6f}{gap:12.2f} %{seconds:8.2f} s", flush=True)
    print()


def learn_part(hidden, spec, trajectories):
    """Print how guarantees grow with samples, and return the runs."""
    runs = []
    for name in METHODS:
        stop = rf.StopWhen(trajectories=trajectories)
        run = rf.learn(hidden, spec, find_method(name), stop=stop, length=15, seed=1)
        last = run.history[-1]
        print(
            f"{name:<15} after {last.trajectories:,} flights: guarantee {last.guarantee:.4f}, true "
            f"value of the policy {last.performance:.4f}, {last.seconds:.1f} s",
            flush=True,
        )
        runs.append(run)
    return runs


def compile_kernels(spec):
    """Compile what the demo needs, so that no time in its tables contains it."""
    started = time.perf_counter()
    small = rf.domain("aircraft", instance="learning", maxX=8, maxY=5, height=2)
    print(
        "Compiling: once after installation, about a minute. Later runs start at once.", flush=True
    )
    list(compared(small, spec, RADII[0]))
    for name in METHODS:
        stop = rf.StopWhen(trajectories=100)
        rf.learn(small, spec, find_method(name), stop=stop, length=15)
    print(f"Compiled in {time.perf_counter() - started:.0f} s.", flush=True)


def main():
    """Run both parts, write the page, and say what to look at."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("demo"))
    parser.add_argument("--radii", type=float, nargs="+", default=RADII)
    parser.add_argument("--trajectories", type=int, default=30_000)
    options = parser.parse_args()
    print(__doc__)
    nominal, spec = rf.domain("aircraft", instance="learning"), rf.domain_spec("aircraft")
    compile_kernels(spec)
    solve_part(nominal, spec, options.radii)
    solution = rf.solve(nominal.with_radius(options.radii[-1]), spec)
    runs = learn_part(nominal, spec, options.trajectories)
    options.output.mkdir(parents=True, exist_ok=True)
    page = options.output / "index.html"
    write_report(
        [solution, *runs], page, title="Two aircraft, uncertain probabilities",
        command="make demo",
    )  # fmt: skip
    print(f"\nOpen {page} in a browser. What to look at:\n\n{ADVICE}")


if __name__ == "__main__":
    main()
