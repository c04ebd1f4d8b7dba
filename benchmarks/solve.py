"""Solving side by side: our methods, Storm, and McCormick by linear programmes, in one run.

    python benchmarks/solve.py [--json FILE] [--domains chain,herman] [--radius 0.025] [--repeat N]

Every measurement is a process of its own, so that peak memory is its own. Per domain:

- ours, exact / interval arithmetic / nominal: building from the PRISM file, then solving to a
  certified relative width of 1e-6 (compiled code is loaded before the clock starts);
- Storm, robust: robust value iteration on the flattened intervals (the loose product), which are
  handed over in memory; building is flattening plus handing over; lower bounds of 0, which Storm
  refuses, become 1e-9;
- Storm, nominal: the same PRISM file built and checked by Storm;
- one LP per row and sweep: McCormick (all rows) by HiGHS, timed on a sample of rows
  at the final values, times rows, times sweeps: those that plain value iteration needs (relative
  change 1e-6; one if acyclic), and the few robust sweeps of our outer loop, for comparison.
"""

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

METHODS = ("exact", "interval", "nominal", "storm-robust", "storm-nominal", "highs")
SAMPLE = 150  # rows whose LPs are timed
LIMIT = 240.0  # seconds per process; what takes longer is reported as such
TINY = 1e-9  # stands for a lower bound of 0, which Storm refuses


class Clock:
    """Seconds by the wall and of all processors since it was made."""

    def __init__(self) -> None:
        self._wall, self._processor = time.perf_counter(), time.process_time()

    @property
    def seconds(self) -> float:
        """Seconds by the wall."""
        return time.perf_counter() - self._wall

    @property
    def processor(self) -> float:
        """Seconds of all processors."""
        return time.process_time() - self._processor


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def published(name: str, radius: float):
    from rfmdp.domains import domain

    started = time.perf_counter()
    model = domain(name, radius=radius)
    return model, time.perf_counter() - started


def warm_up(inner) -> None:
    """Load compiled code."""
    from rfmdp.domains import domain, domain_spec
    from rfmdp.solving import solve

    solve(domain("chain", radius=0.025), domain_spec("chain"), inner=inner)


def ours(name: str, radius: float, method: str) -> dict:
    from rfmdp.domains import domain_spec
    from rfmdp.inner.solvers import Exact, IntervalArithmetic
    from rfmdp.solving import solve

    inner = IntervalArithmetic() if method == "interval" else Exact()
    warm_up(inner)
    before = peak_mb()
    model, build = published(name, radius)
    model = model.nominal() if method == "nominal" else model
    clock = Clock()
    solution = solve(model, domain_spec(name), inner=inner)
    seconds, processor = clock.seconds, clock.processor
    lower, upper = (
        None if side is None else float(side[model.initial].max())  # a side that is not proven
        for side in (solution.lower, solution.upper)
    )
    maximises = domain_spec(name).agent.sign > 0
    return {
        "value": lower if maximises else upper,
        "lower": lower,
        "upper": upper,
        "status": solution.status.name,
        "build": build,
        "solve": seconds,
        "processor": processor,
        "sweeps": solution.stats.robust_sweeps,
        "peak_mb": peak_mb(),
        "start_mb": before,
    }


def storm_formula(name: str) -> str:
    """Return the property in Storm's words: nature's direction is given apart."""
    from rfmdp.domains import DOMAINS

    text = DOMAINS[name].prop
    text = re.sub(r"^filter\(max, (.*), true\)$", r"\1", text)
    return text.replace("maxmin", "max").replace("minmax", "min")


def storm_robust(name: str, radius: float) -> dict:
    import stormpy

    from rfmdp.formats.libraries import to_stormpy

    model, build = published(name, radius)
    started = time.perf_counter()
    storm = to_stormpy(positive(model))
    build += time.perf_counter() - started
    formula = stormpy.parse_property(storm_formula(name))
    clock = Clock()
    result = stormpy.model_checking(
        storm, formula, uncertainty_resolution_mode=stormpy.UncertaintyResolutionMode.ROBUST
    )
    return storm_record(result, model.initial, build, clock)


def storm_record(result, initial, build: float, clock: Clock) -> dict:
    seconds, processor, peak = clock.seconds, clock.processor, peak_mb()
    value = max(result.get_value(int(state)) for state in initial)
    return {
        "value": value, "build": build, "solve": seconds, "processor": processor, "peak_mb": peak,
    }  # fmt: skip


def positive(model):
    """Return the model with lower bounds of 0 made tiny."""
    from rfmdp.sets.marginals import Marginals

    sets = model.marginals
    lower = np.where((sets.lower == 0.0) & (sets.upper > 0.0), TINY, sets.lower)
    return model.with_marginals(
        Marginals.from_boxes(sets.outcome_ptr, lower, sets.upper, sets.nominal)
    )


def storm_nominal(name: str, radius: float) -> dict:
    import stormpy

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.prism"
        file.write_text(closed_text(name))
        started = time.perf_counter()
        options = stormpy.BuilderOptions()
        options.set_build_all_labels()
        options.set_build_all_reward_models()
        storm = stormpy.build_model(stormpy.parse_prism_program(str(file)), options=options)
        build = time.perf_counter() - started
    formula = stormpy.parse_property(storm_formula(name))
    clock = Clock()
    result = stormpy.model_checking(storm, formula)
    return storm_record(result, storm.initial_states, build, clock)


def closed_text(name: str, **other: int) -> str:
    """Return the PRISM text of a published model with its constants, or others, filled in."""
    from rfmdp.domains import DOMAINS

    text = DOMAINS[name].path.read_text()
    for key, value in (DOMAINS[name].constants() | other).items():
        text = re.sub(rf"^(const \w+ {key});", rf"\1 = {str(value).lower()};", text, flags=re.M)
    return text


def linear_programmes(name: str, radius: float, sweeps: int) -> dict:
    """Time McCormick's LPs on some rows; count the sweeps of plain value iteration if unknown."""
    from rfmdp.domains import domain_spec
    from rfmdp.inner.mccormick import McCormick
    from rfmdp.inner.solvers import Exact
    from rfmdp.solving import solve

    warm_up(Exact())
    model, build = published(name, radius)
    spec = domain_spec(name)
    solution = solve(model, spec)
    prepared = McCormick().prepare(model, spec.nature)
    rows = np.random.default_rng(0).choice(model.rows, min(SAMPLE, model.rows), replace=False)
    below, above = np.empty(model.rows), np.empty(model.rows)
    prepared.backup(solution.value, np.sort(rows), below, above)  # loads compiled code
    clock = Clock()
    prepared.backup(solution.value, np.sort(rows), below, above)
    per_row, processor = clock.seconds / len(rows), clock.processor / len(rows)
    sweeps = sweeps or plain_sweeps(model, spec, acyclic=solution.stats.cheap_sweeps == 0)
    sweep = per_row * model.rows
    return {
        "build": build,
        "solve": sweep * sweeps,
        "processor": processor * model.rows * sweeps,
        "solve_in_our_sweeps": sweep * solution.stats.robust_sweeps,
        "extrapolated": True,
        "milliseconds_per_row": per_row * 1e3,
        "rows": model.rows,
        "sweeps": sweeps,
        "peak_mb": peak_mb(),
    }


def plain_sweeps(model, spec, acyclic: bool, change: float = 1e-6) -> int:
    """Return how many sweeps value iteration makes until the values stand still."""
    from rfmdp.inner.solvers import Exact
    from rfmdp.objective import ReachReward
    from rfmdp.outer.problem import row_rewards

    if acyclic:
        return 1
    objective, started = spec.objective, time.perf_counter()
    target = model.label(objective.target)
    paid = row_rewards(model, None) if isinstance(objective, ReachReward) else 0.0
    lost = np.zeros_like(target) if isinstance(objective, ReachReward) else ~model.label("safe")
    best = np.maximum if spec.agent.sign > 0 else np.minimum
    end = 0.0 if isinstance(objective, ReachReward) else 1.0
    value = np.where(target, end, 0.0)
    prepared, rows = Exact().prepare(model, spec.nature), np.arange(model.rows)
    below, above, sweeps = np.empty(model.rows), np.empty(model.rows), 0
    while time.perf_counter() - started < LIMIT / 4:
        prepared.backup(value, rows, below, above)
        new = best.reduceat((below + above) / 2 + paid, model.row_ptr[:-1])
        new[target], new[lost & ~target] = end, 0.0
        sweeps += 1
        known = np.maximum(np.abs(new), 1e-300)
        done, value = np.max(np.abs(new - value) / known) < change, new
        if done:
            break
    return sweeps  # if time ran out, at least so many


def measure(name: str, radius: float, method: str, sweeps: int) -> dict:
    if method in ("exact", "interval", "nominal"):
        return ours(name, radius, method)
    if method == "storm-robust":
        return storm_robust(name, radius)
    if method == "storm-nominal":
        return storm_nominal(name, radius)
    return linear_programmes(name, radius, sweeps)


def apart(name: str, radius: float, method: str, sweeps: int) -> dict:
    """Measure in a process of its own."""
    command = [sys.executable, __file__, "--one", name, method, "--radius", str(radius)]
    command += ["--sweeps", str(sweeps)]
    head = {"domain": name, "radius": radius, "method": method}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return {**head, "error": f"more than {LIMIT:.0f} s", "solve": LIMIT, "at_least": True}
    last = done.stdout.strip().rpartition("\n")[2]
    if done.returncode != 0 or not last.startswith("{"):
        reason = (done.stderr or done.stdout).strip().rpartition("\n")[2][-200:]
        return {**head, "error": reason or f"exit code {done.returncode}"}
    return {**head, **json.loads(last)}


def show(record: dict) -> str:
    head = f"{record['domain']:14} {record['method']:14}"
    if "error" in record:
        return f"{head} {record['error']}"
    value = f"{record['value']:.6f}" if record.get("value") is not None else ""
    extra = f"  {record['sweeps']} sweeps" if "sweeps" in record else ""
    extra += f" x {record['rows']} rows x {record['milliseconds_per_row']:.3f} ms, extrapolated" \
        if record.get("extrapolated") else ""  # fmt: skip
    return (
        f"{head} {value:>12} build {record['build']:8.2f} s  solve {record['solve']:10.2f} s  "
        f"processor {record['processor']:10.2f} s  "
        f"peak {record['peak_mb']:6.0f} MB{extra}"
    )


def ratios(records: list[dict], domains: list[str]) -> dict:
    """Return how many times longer the others take than our exact method, summed over domains."""
    found = {(r["domain"], r["method"]): r for r in records}
    result = {}
    columns = [(method, "solve") for method in METHODS[1:]]
    columns.append(("highs", "solve_in_our_sweeps"))
    for method, field in columns:
        common = [d for d in domains if field in found[d, method] and "solve" in found[d, "exact"]]
        theirs = sum(found[d, method][field] for d in common)
        exact = sum(found[d, "exact"]["solve"] for d in common)
        if common:
            result[method if field == "solve" else f"{method}, our sweeps"] = {
                "seconds": theirs,
                "exact_seconds": exact,
                "ratio": theirs / exact,
                # an extrapolated time in our sweeps is that share of the one in all sweeps
                "processor_ratio": theirs
                / sum(found[d, method]["solve"] for d in common)
                * _processor(found, common, method)
                / _processor(found, common),
                "domains": common,
                "at_least": any(found[d, method].get("at_least") for d in common),
            }
    return result


def _processor(found: dict, domains: list[str], method: str = "exact") -> float:
    return sum(found[d, method].get("processor", 0.0) for d in domains)


def print_ratios(summary: dict) -> None:
    print("\nsum of solving times against our exact method's on the same domains")
    for method, r in summary.items():
        least = ">= " if r["at_least"] else ""
        print(
            f"{method:20} {least}{r['seconds']:.1f} s / {r['exact_seconds']:.2f} s = "
            f"x{r['ratio']:.1f} (by processor seconds x{r['processor_ratio']:.1f}; "
            f"{len(r['domains'])} domains)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Solving, side by side.")
    parser.add_argument("--json", type=Path, help="write all records to this file as well")
    parser.add_argument("--domains", default="", help="domains, separated by commas")
    parser.add_argument("--radius", type=float, default=0.025)
    parser.add_argument("--methods", default="", help=f"of {', '.join(METHODS)}")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--sweeps", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one[0], options.radius, options.one[1], options.sweeps)))
        return
    from rfmdp.domains import DOMAINS

    domains = options.domains.split(",") if options.domains else list(DOMAINS)
    methods = options.methods.split(",") if options.methods else list(METHODS)
    records = []
    for name in domains:
        sweeps = 0  # counted once per domain
        for method in methods:
            records.append(apart(name, options.radius, method, sweeps))
            if method == "highs":
                sweeps = records[-1].get("sweeps", 0)
            print(show(records[-1]), flush=True)
    if "exact" in methods and len(methods) == len(METHODS):
        summary = ratios(records, domains)
        print_ratios(summary)
        records.append({"ratios": summary})
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
