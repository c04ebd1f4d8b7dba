"""What certainty costs: robust and certified against nominal value iteration, and growth.

    python benchmarks/solve_ratio.py [--json FILE] [--domains chain,herman] [--radius 0.025]
                                     [--growth 20e6] [--repeat N]

1. Ratio: time of `solve` with `Exact` to a certified relative width of 1e-6, over the time of what
   a good engineer would write for the nominal model: probabilities multiplied out once, then a
   compiled loop over all states from the last one to the first, in place (Gauss-Seidel; states are
   numbered breadth-first, so models with a clock take two sweeps), until no value changes by more
   than 1e-6 of itself. Both times include preparation; models are built before. Geometric mean
   over the domains; the aim is at most 3.
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
from numba import njit

from described import drone
from rfmdp.domains import DOMAINS, domain, domain_spec
from rfmdp.model.derived import flatten
from rfmdp.objective import MAX, MIN, Spec, Until
from rfmdp.outer.problem import Form, pose
from rfmdp.ragged import entries
from rfmdp.solving import solve

RESIDUAL = 1e-6


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


@njit(cache=True)
def sweep(row_ptr, successor_ptr, successors, probability, reward, sign, open_, value):
    """Back up every open state in place, the last one first; return the largest change."""
    change = 0.0
    for s in range(len(value) - 1, -1, -1):
        if not open_[s]:
            continue
        best = -np.inf
        for r in range(row_ptr[s], row_ptr[s + 1]):
            q = reward[r]
            for k in range(successor_ptr[r], successor_ptr[r + 1]):
                q += probability[k] * value[successors[k]]
            best = max(best, sign * q)
        change = max(change, abs(sign * best - value[s]) / max(abs(best), 1e-300))
        value[s] = sign * best
    return change


def nominal_sweeps(model, spec) -> int:
    """Solve the nominal model by plain sweeps; returns how many there were."""
    flat = flatten(model.nominal())
    problem = pose(flat, spec)
    ids = flat.row_marginals[entries(flat.marginal_ptr, np.arange(flat.rows))]
    probability = np.ones(flat.transitions)  # rows without a marginal move for sure
    uncertain = np.flatnonzero(np.diff(flat.marginal_ptr))
    probability[entries(flat.successor_ptr, uncertain)] = flat.marginals.nominal[
        entries(flat.marginals.outcome_ptr, ids)
    ]
    value = problem.target * float(problem.form is Form.REACH)
    count, change = 0, np.inf
    while change > RESIDUAL:
        count += 1
        change = sweep(
            flat.row_ptr, flat.successor_ptr, flat.successors, probability, problem.reward,
            problem.agent.sign, ~problem.terminal, value,
        )  # fmt: skip
    return count


def compare(name: str, radius: float, repeat: int) -> dict:
    model, spec = domain(name, radius=radius), domain_spec(name)
    found, wall, processor = timed(lambda: solve(model, spec), repeat)
    sweeps, plain_wall, plain_processor = timed(lambda: nominal_sweeps(model, spec), repeat)
    return {
        "domain": name, "radius": radius, "transitions": model.transitions,
        "status": found.status.name, "seconds": wall, "processor": processor,
        "robust_sweeps": found.stats.robust_sweeps, "cheap_sweeps": found.stats.cheap_sweeps,
        "nominal_sweeps": sweeps, "nominal_seconds": plain_wall,
        "nominal_processor": plain_processor,
        "ratio": wall / plain_wall, "processor_ratio": processor / plain_processor,
    }  # fmt: skip


def show(r: dict) -> str:
    return (
        f"{r['domain']:14} {r['transitions']:9d} transitions  certified {r['processor']:8.3f} s "
        f"({r['robust_sweeps']} robust, {r['cheap_sweeps']} cheap sweeps, {r['status']})  nominal "
        f"{r['nominal_processor']:8.3f} s ({r['nominal_sweeps']} sweeps)  ratio "
        f"{r['processor_ratio']:.2f} (wall {r['ratio']:.2f})"
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
    summary = {f: mean(records, f) for f in ("ratio", "processor_ratio")}
    print(
        f"geometric mean: {summary['processor_ratio']:.2f} by processor, {summary['ratio']:.2f} "
        "by the wall"
    )
    grown = growth(options.growth, 1) if options.growth else []
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        result = {"ratios": records, "mean": summary, "growth": grown}
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
