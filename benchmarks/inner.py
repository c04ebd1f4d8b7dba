"""Nanoseconds per inner problem, solver by solver: `make bench-inner`.

Rows of several shapes, with boxes of radius 0.025 (and 0.05 for 7x7) around random nominal
distributions, eight marginals per factor. Values are *smooth* (a sum over the factors' variables
through a sigmoid, plus a small interaction, on a grid: what value functions look like) or
*random* (uniform and independent: the worst case). One thread. Times are medians of CPU time, and
all numbers of a line are measured in turn in one run, so that ratios hold on a busy machine.

    python benchmarks/inner.py [--json FILE] [--seconds 50]
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import time

import numpy as np

from rfmdp.errors import RfmdpError
from rfmdp.inner.mccormick import McCormick
from rfmdp.inner.solvers import Exact, IntervalArithmetic, Sequential, VertexEnumeration
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MIN
from rfmdp.sets.marginals import Marginals
from rfmdp.threads import set_threads

SHAPES = [(2, 2), (3, 3), (4, 4), (7, 7), (9, 9), (2,) * 10, (3, 3, 3)]
CASES = [(shape, kind, 0.025) for shape in SHAPES for kind in ("smooth", "random")]
CASES += [((7, 7), kind, 0.05) for kind in ("smooth", "random")]
PER_FACTOR = 8  # marginals
PRODUCT_LIMIT = 10**7  # vertex enumeration is skipped beyond
LP_ROWS = 20  # linear programmes are timed on a sample


def marginals_of(shape, radius, rng):
    points = [rng.dirichlet(np.full(d, 3.0)) for d in shape for _ in range(PER_FACTOR)]
    ptr = np.concatenate([[0], np.cumsum([len(p) for p in points])])
    nominal = np.concatenate(points)
    lower, upper = np.maximum(nominal - radius, 0.0), np.minimum(nominal + radius, 1.0)
    return Marginals.from_boxes(ptr, lower, upper, nominal)


def smooth_values(shape, rows, rng):
    """Return values on a grid and the successors of random cells of it."""
    n = len(shape)
    side = 64 if n <= 3 else 2
    if side == 2:  # the whole tensor is the grid, with random weights in 64 worlds
        bits = np.array(list(itertools.product((0, 1), repeat=n)))
        weights = rng.random((64, n))
        pairs = 0.1 * (bits[:, :-1] * bits[:, 1:]).sum(axis=1)
        values = np.concatenate([bits @ w + pairs for w in weights])
        return values, rng.integers(0, 64, rows)[:, None] * len(bits) + np.arange(len(bits))
    grid = np.indices((side,) * n).reshape(n, -1)
    values = 1.0 / (1.0 + np.exp(-(grid - side // 2).sum(axis=0) / 10.0))
    values += 0.05 * np.sin(grid[0] / 5.0) * np.cos(grid[-1] / 7.0)
    corner = np.stack([rng.integers(0, side - d, rows) for d in shape])
    steps = np.indices(shape).reshape(n, -1)
    cells = corner[:, :, None] + steps[:, None, :]
    return values, np.ravel_multi_index(tuple(cells), (side,) * n)


def case_model(shape, kind, radius, rows, rng):
    joint = math.prod(shape)
    if kind == "smooth":
        values, successors = smooth_values(shape, rows, rng)
    else:
        values, successors = rng.random(5000), rng.integers(0, 5000, (rows, joint))
    factors = np.arange(len(shape)) * PER_FACTOR
    ids = factors + rng.integers(0, PER_FACTOR, (rows, len(shape)))
    model = FactoredMDP(
        row_ptr=np.array([0, rows]),
        marginal_ptr=np.arange(rows + 1) * len(shape),
        row_marginals=ids.astype(np.int32).ravel(),
        successor_ptr=np.arange(rows + 1) * joint,
        successors=successors.astype(np.int32).ravel(),
        marginals=marginals_of(shape, radius, rng),
        initial=np.array([0]),
        row_actions=np.zeros(rows, np.int32),
        actions=("a",),
    )
    return model, values


def seconds(run):
    start = time.process_time()
    run()
    return time.process_time() - start


def timings(solvers, model, values, budget):
    """Return the median CPU seconds per row of every solver, measured in turn."""
    below, above = np.zeros(model.rows), np.zeros(model.rows)
    rounds = {name: [] for name in solvers}
    spent = 0.0
    while spent < budget and len(next(iter(rounds.values()))) < 15:
        for name, (solver, rows) in solvers.items():
            took = seconds(lambda s=solver, r=rows: s.backup(values, r, below, above))
            rounds[name].append(took / len(rows))
            spent += took
    return {name: float(np.median(times)) for name, times in rounds.items()}


def measure(shape, kind, radius, budget, rng):
    joint = math.prod(shape)
    rows = max(60, min(2000, 60_000 // joint))
    model, values = case_model(shape, kind, radius, rows, rng)
    everything = np.arange(rows)
    # with known distributions sequential contraction is the plain expectation
    solvers = {"nominal": (Sequential().prepare(model.nominal(), MIN), everything)}
    plain = [IntervalArithmetic(), Sequential(), Exact()]
    solvers |= {inner.name: (inner.prepare(model, MIN), everything) for inner in plain}
    warm_up(solvers, values, model.rows)
    times = timings(solvers, model, values, budget)
    exact = Exact().prepare(model, MIN)
    exact.backup(values, everything, np.empty(model.rows), np.empty(model.rows))
    share = 1.0 - exact.stats.branched / rows
    slow, skipped = slow_timings(model, values, joint)
    times |= slow
    return {
        "shape": "x".join(map(str, shape)) if len(shape) < 5 else f"{shape[0]}^{len(shape)}",
        "values": kind,
        "radius": radius,
        "nanoseconds": {name: 1e9 * t for name, t in times.items()},
        "skipped": skipped,
        "exact_over_interval": times["exact"] / times["interval"],
        "highs_over_exact": times["highs"] / times["exact"] if "highs" in times else None,
        "certified_without_branching": share,
    }


def slow_timings(model, values, joint):
    """Return (times, reasons) of the solvers that are timed on a sample, or left out."""
    sample = np.arange(LP_ROWS)
    times, skipped = {}, {}
    choices = {
        "vertices": VertexEnumeration(product_limit=PRODUCT_LIMIT),
        "highs": McCormick(),
    }
    for name, inner in choices.items():
        if name != "vertices" and joint > 100:
            skipped[name] = "thousands of variables per row"
            continue
        try:
            solver = inner.prepare(model, MIN)
            warm_up({name: (solver, sample)}, values, model.rows)
            times |= timings({name: (solver, sample)}, model, values, 0.2)
        except RfmdpError as error:
            skipped[name] = str(error)
    return times, skipped


def warm_up(solvers, values, rows):
    """Compile, or read from the cache, before anything is timed."""
    below, above = np.zeros(rows), np.zeros(rows)
    for solver, wanted in solvers.values():
        solver.backup(values, wanted[:1], below, above)


def verdict(record):
    """Return whether a line reaches what was promised, with the promise."""
    ratio, size = record["exact_over_interval"], record["shape"]
    if record["values"] == "random":
        if size != "7x7":
            return ""
        return f"{'ok' if ratio <= 6.0 else 'MISSED'}: <= 6 x interval"
    limit = {"2x2": 2.5, "3x3": 2.5, "4x4": 2.5, "7x7": 1.0, "9x9": 1.0, "2^10": 1.0}.get(size)
    if limit is None:
        return ""
    ok = ratio <= limit
    text = f"<= {limit:g} x interval"
    if record["highs_over_exact"] is not None:
        ok = ok and record["highs_over_exact"] >= 50.0
        text += ", >= 50 x faster than HiGHS"
    return f"{'ok' if ok else 'MISSED'}: {text}"


COLUMNS = ["nominal", "interval", "sequential", "exact", "vertices", "highs"]


def table(records):
    head = ["row", "values", "radius", *COLUMNS, "exact/int.", "no branch", "promise"]
    lines = [head]
    for r in records:
        numbers = [f"{r['nanoseconds'][c]:,.0f}" if c in r["nanoseconds"] else "-" for c in COLUMNS]
        lines.append([
            r["shape"], r["values"], f"{r['radius']:g}", *numbers,
            f"{r['exact_over_interval']:.2f}", f"{r['certified_without_branching']:.1%}",
            verdict(r),
        ])  # fmt: skip
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    return "\n".join(
        "  ".join(
            text.ljust(w) if k < 2 or k == len(head) - 1 else text.rjust(w)
            for k, (text, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", help="also write the records to this file")
    parser.add_argument("--seconds", type=float, default=30.0, help="CPU time for the fast solvers")
    options = parser.parse_args()
    set_threads(1)
    rng = np.random.default_rng(0)
    print("Nanoseconds per row, one thread; boxes around random nominal distributions.")
    budget = options.seconds / len(CASES)
    records = [measure(*case, budget, rng) for case in CASES]
    print(table(records))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(records, file, indent=1)


if __name__ == "__main__":
    main()
