"""How fast the Python builder is, and how much memory it needs.

    python benchmarks/build.py [--json FILE] [--repeat N]

Seconds are the best of some runs after a warm-up; peak memory is that of all allocations of
one further run, the finished model included.
"""

import argparse
import json
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np

import described
from rfmdp.model import packing
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.validate import validate


def hashed(build: Callable[[], FactoredMDP]) -> FactoredMDP:
    """Build a model without a table over its domain, as very large ones are built."""
    limit, packing.DENSE_LIMIT = packing.DENSE_LIMIT, 0
    try:
        return build()
    finally:
        packing.DENSE_LIMIT = limit


CASES: dict[str, Callable[[], FactoredMDP]] = {
    "aircraft": described.aircraft,
    "sysadmin": described.sysadmin,
    "drone": described.drone,
    "drone, hashed": lambda: hashed(described.drone),
}


def model_bytes(model: FactoredMDP) -> int:
    """Return the size of all arrays of a model."""
    arrays = [getattr(model, name) for name in model.__slots__]
    arrays += [getattr(model.marginals, name) for name in model.marginals.__slots__]
    arrays += [a for r in model.rewards.values() for a in (r.state, r.row)]
    arrays += list(model.labels.values())
    return sum(a.nbytes for a in arrays if isinstance(a, np.ndarray))


def timed(work: Callable[[], object], repeat: int) -> float:
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def peak_bytes(work: Callable[[], object]) -> int:
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def measure(name: str, repeat: int) -> dict[str, float | str]:
    build = CASES[name]
    seconds = timed(build, repeat)
    model = build()
    checking = timed(lambda: validate(model), repeat)
    finished = model_bytes(model)
    peak = peak_bytes(build)
    return {
        "domain": name,
        "states": model.states,
        "rows": model.rows,
        "transitions": model.transitions,
        "seconds": seconds,
        "transitions_per_second": model.transitions / seconds,
        "validate_seconds": checking,
        "model_bytes_per_transition": finished / model.transitions,
        "peak_bytes_per_transition": peak / model.transitions,
        "peak_over_model": peak / finished,
    }


def table(records: list[dict[str, float | str]]) -> str:
    head = f"{'domain':14} {'states':>8} {'transitions':>12} {'s':>6} {'Mt/s':>6} {'check s':>8}"
    lines = [f"{head} {'B/t':>6} {'peak B/t':>9} {'peak/model':>11}"]
    for r in records:
        lines.append(
            f"{r['domain']:14} {r['states']:8} {r['transitions']:12} {r['seconds']:6.2f} "
            f"{r['transitions_per_second'] / 1e6:6.2f} {r['validate_seconds']:8.3f} "
            f"{r['model_bytes_per_transition']:6.2f} {r['peak_bytes_per_transition']:9.2f} "
            f"{r['peak_over_model']:11.2f}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed and memory of the Python builder.")
    parser.add_argument("--json", type=Path, help="write the records to this file as well")
    parser.add_argument("--repeat", type=int, default=3, help="runs per domain, the best counts")
    options = parser.parse_args()
    described.chain()  # compiles or loads the kernels
    hashed(lambda: described.drone(size=2))
    records = [measure(name, options.repeat) for name in CASES]
    print(table(records))
    if options.json:
        options.json.write_text(json.dumps(records, indent=2) + "\n")


if __name__ == "__main__":
    main()
