"""What certainty costs: robust and certified against nominal value iteration, and growth.

    python benchmarks/solve_ratio.py [--json FILE] [--domains chain,herman] [--radius 0.025]
                                     [--growth 20e6] [--repeat N]

1. Ratio: time of `solve` with `Exact` to a certified relative width of 1e-6, over the time of
   nominal value iteration to a residual of 1e-6 with the same row kernels on the same model and
   no certificate: plain sweeps over all states (Jacobi), and level by level in topological order
   (the stronger opponent). Both times include preparation; models are built before. Geometric mean
   over the domains; the aim is a ratio to plain sweeps of at most 3.
2. Growth: two drones in growing boxes until there are `--growth` transitions; seconds per million
   transitions should not grow.

Times are those of the processor as well as of the wall, the best of N runs; on a busy machine the
former are the fair ones.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from described import drone
from rfmdp.inner import Exact
from rfmdp.kernels.sweep import choose
from rfmdp.objective import MAX, MIN, Spec, Until
from rfmdp.outer.components import components
from rfmdp.outer.graph import Graph
from rfmdp.outer.operator import Operator, rows_of
from rfmdp.outer.problem import Form, pose
from rfmdp.outer.solution import Stats
from rfmdp.paper.domains import DOMAINS, domain_spec, published_model
from rfmdp.solving import solve

RESIDUAL = 1e-6
SWEEPS = 100_000


def timed(run, repeat: int):
    """Return the result and the least wall and processor seconds of some runs."""
    best = (np.inf, np.inf)
    for _ in range(repeat):
        wall, processor = time.perf_counter(), time.process_time()
        result = run()
        best = (
            min(best[0], time.perf_counter() - wall),
            min(best[1], time.process_time() - processor),
        )
    return result, *best


class Nominal:
    """Value iteration on the nominal model, with the row kernels of `Exact`."""

    def __init__(self, model, spec) -> None:
        self.problem = pose(model.nominal(), spec)
        inner = Exact().prepare(self.problem.model, self.problem.nature)
        self.operator = Operator(self.problem, inner, Stats())
        reach = self.problem.form is Form.REACH
        self.value = self.problem.target * (1.0 if reach else 0.0)
        self.choice = self.problem.model.row_ptr[:-1].copy()
        self.open = ~self.problem.terminal
        self.sweeps = 0

    def sweep(self, states, rows) -> float:
        """Do one sweep of some states; returns the largest relative change."""
        old = self.value[states]
        self.operator.backup(self.value, rows)
        q = self.operator.above
        pointers = self.problem.model.row_ptr
        choose(q, pointers, states, self.operator.sign, 0.0, self.choice, self.value)
        self.sweeps += 1
        new = self.value[states]
        return float(np.max(np.abs(new - old), initial=0.0) / max(1.0, np.abs(new).max(initial=0)))

    def plain(self):
        """All states, again and again."""
        states = np.flatnonzero(self.open)
        rows = rows_of(self.problem.model.row_ptr, states)
        while self.sweep(states, rows) > RESIDUAL and self.sweeps < SWEEPS:
            pass
        return self

    def by_levels(self):
        """Level by level, each until it stands still; acyclic levels once."""
        parts = components(Graph(self.problem.model), self.open)
        for level in range(len(parts.level_ptr) - 1):
            states = parts.level(level)
            rows = rows_of(self.problem.model.row_ptr, states)
            once = parts.trivial[parts.level_ptr[level] : parts.level_ptr[level + 1]].all()
            while self.sweep(states, rows) > RESIDUAL and not once and self.sweeps < SWEEPS:
                pass
        return self


def compare(name: str, radius: float, repeat: int) -> dict:
    model, spec = published_model(name, radius), domain_spec(name)
    found, wall, processor = timed(lambda: solve(model, spec), repeat)
    plain, plain_wall, plain_processor = timed(lambda: Nominal(model, spec).plain(), repeat)
    levels, level_wall, level_processor = timed(lambda: Nominal(model, spec).by_levels(), repeat)
    return {
        "domain": name, "radius": radius, "transitions": model.transitions,
        "status": found.status.name, "seconds": wall, "processor": processor,
        "robust_sweeps": found.stats.robust_sweeps, "cheap_sweeps": found.stats.cheap_sweeps,
        "nominal_sweeps": plain.sweeps, "nominal_seconds": plain_wall,
        "nominal_processor": plain_processor, "levels_seconds": level_wall,
        "levels_processor": level_processor, "levels_sweeps": levels.sweeps,
        "ratio": wall / plain_wall, "processor_ratio": processor / plain_processor,
        "levels_ratio": wall / level_wall,
        "levels_processor_ratio": processor / level_processor,
    }  # fmt: skip


def show(r: dict) -> str:
    return (
        f"{r['domain']:14} {r['transitions']:9d} transitions  certified {r['processor']:8.3f} s "
        f"({r['robust_sweeps']} robust, {r['cheap_sweeps']} cheap sweeps, {r['status']})  nominal "
        f"{r['nominal_processor']:8.3f} s ({r['nominal_sweeps']} sweeps)  ratio "
        f"{r['processor_ratio']:.2f} (wall {r['ratio']:.2f})  by levels "
        f"{r['levels_processor_ratio']:.2f}"
    )


def mean(records: list[dict], field: str) -> float:
    return float(np.exp(np.mean([np.log(r[field]) for r in records])))


def growth(most: float, repeat: int) -> list[dict]:
    """Solve growing boxes of two drones; the last has at least `most` transitions."""
    records = []
    for size in range(3, 20):
        model = drone(size=size)
        x1, y1, z1, x2, y2, z2 = model.valuations.T
        far = size - 1
        ends = (x1 >= far) & (z1 >= far) & (x2 >= far) & (z2 >= far) & (y1 == 1) & (y2 == 1)
        spec = Spec(Until(~model.label("crash"), ends), MAX, MIN)
        uncertain = model.with_radius(0.025, 1e-4)
        found, wall, processor = timed(lambda m=uncertain, s=spec: solve(m, s), repeat)
        million = model.transitions / 1e6
        records.append({
            "size": size, "transitions": model.transitions, "status": found.status.name,
            "seconds": wall, "processor": processor, "robust_sweeps": found.stats.robust_sweeps,
            "cheap_sweeps": found.stats.cheap_sweeps,
            "processor_per_million": processor / million,
            "per_million_and_sweep": processor / million / max(found.stats.robust_sweeps, 1),
        })  # fmt: skip
        r = records[-1]
        print(
            f"drones {size}: {r['transitions']:9d} transitions  {r['seconds']:8.2f} s wall  "
            f"{r['processor']:8.2f} s processor  {r['processor_per_million']:.3f} s per million  "
            f"({r['robust_sweeps']} robust, {r['cheap_sweeps']} cheap sweeps, {r['status']})",
            flush=True,
        )
        if model.transitions >= most:
            break
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description="The price of certified robust solving.")
    parser.add_argument("--json", type=Path, help="write all records to this file as well")
    parser.add_argument("--domains", default="", help="domains, separated by commas")
    parser.add_argument("--radius", type=float, default=0.025)
    parser.add_argument("--growth", type=float, default=20e6, help="transitions; 0 for none")
    parser.add_argument("--repeat", type=int, default=2)
    options = parser.parse_args()
    domains = options.domains.split(",") if options.domains else list(DOMAINS)
    compare("chain", options.radius, 1)  # loads compiled code
    records = []
    for name in domains:
        records.append(compare(name, options.radius, options.repeat))
        print(show(records[-1]), flush=True)
    summary = {
        f: mean(records, f) for f in
        ("ratio", "processor_ratio", "levels_ratio", "levels_processor_ratio")
    }  # fmt: skip
    print(
        f"geometric mean: {summary['processor_ratio']:.2f} by processor, {summary['ratio']:.2f} "
        f"by the wall; against topological order {summary['levels_processor_ratio']:.2f}"
    )
    grown = growth(options.growth, 1) if options.growth else []
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        result = {"ratios": records, "mean": summary, "growth": grown}
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
