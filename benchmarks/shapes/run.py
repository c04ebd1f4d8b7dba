"""Models that people bring: build and solve beside Storm with sound methods, in one run.

    python benchmarks/shapes/run.py [--shapes crowds,consensus] [--radius 0.02] [--small]
                                    [--precision 1e-6] [--repeat 3] [--verify] [--json FILE]

Every shape and size of `models.py` is built from its PRISM text by both tools, then both answer its
questions to a relative precision of 1e-6: Storm by its sound environment, we with certified bounds.
Each tool runs in a process of its own per model, after a warm-up on tiny ones; three times, of
which the least seconds of every question count. Seconds are those of the processor, of all threads.
Reading the questions counts as building, for both.
Libraries are loaded before the clock starts: Storm with its sparse solvers (0.1 s), we with SciPy's
(0.2 s), which the first slowly mixing question of a process would load. With a radius, every
probability becomes an interval; Storm
checks them by robust value iteration, which stops on a residual; it gets our model in memory, so
building is not compared. The last lines are geometric means and worst ratios of ours to Storm's.
With --verify, `rfmdp.verify` proves our answers again; its seconds are compared with those of the
solve, and Storm is left out.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from models import SHAPES, backoff, crowds, election

LIMIT = 600.0  # seconds per tool and model
FLOOR = 1e-3  # seconds: below, a ratio is noise
TINY = (  # a chain, a decision process and a product of draws to warm up with
    (crowds(2, 2), ('P=? [ F "seen" ]', 'R{"hops"}=? [ F "over" ]', 'P=? [ F<=9 "seen" ]')),
    (backoff(2, 2, 1), (*SHAPES["backoff"].questions, 'Pmax=? [ F<=9 "sent" ]')),
    (election(3, 2), SHAPES["election"].questions),
)


def opposed(question: str) -> str:
    """Return a question with nature against the agent; chains get the guaranteed side."""
    match = re.match(r'([PR](?:{"\w+"})?)(min|max)?=\?', question)
    assert match, question
    agent = match[2] or "max"
    return question.replace(match[0], f"{match[1]}{agent}{'min' if agent == 'max' else 'max'}=?", 1)


def ours(path: Path, questions: list[str], radius: float, precision: float, verify: bool) -> dict:
    import scipy.sparse.linalg  # noqa: F401  (Storm's sparse solvers are loaded, too)

    import rfmdp

    def answer(model, question):
        return rfmdp.check(model, question, limits=rfmdp.Limits(precision=precision))

    tiny = path.with_name("tiny.prism")
    for text, asked in TINY:
        tiny.write_text(text)
        small = rfmdp.load_prism(tiny)
        small = small.with_radius(radius) if radius else small
        for question in asked:
            found = answer(small, opposed(question) if radius else question)
            if verify:
                rfmdp.verify(found.solution)
    started = time.process_time()
    model = rfmdp.load_prism(path)
    asked = [rfmdp.parse_property(opposed(q) if radius else q) for q in questions]
    built = time.process_time() - started
    model = model.with_radius(radius) if radius else model
    results = []
    for question in asked:
        started = time.process_time()
        try:
            found = answer(model, question)
        except rfmdp.RfmdpError as error:
            results.append({"error": str(error)[:200]})
            continue
        seconds = time.process_time() - started
        results.append(
            {"value": found.value, "seconds": seconds, "status": found.status.name,
             "lower": found.lower, "upper": found.upper}
        )  # fmt: skip
        if verify:
            started = time.process_time()
            verdict = rfmdp.verify(found.solution)
            results[-1]["verify"] = time.process_time() - started
            results[-1]["verdict"] = "valid" if verdict.valid else str(verdict)
    return {"states": model.states, "transitions": model.transitions, "build": built,
            "results": results}  # fmt: skip


def storm(path: Path, questions: list[str], radius: float, precision: float, verify: bool) -> dict:
    import stormpy

    environment = stormpy.environments.sound()
    environment.solver().min_max().precision = stormpy.Rational(str(precision))
    started = time.process_time()
    program = stormpy.parse_prism_program(str(path))
    asked = stormpy.parse_properties(";".join(questions), program)
    model = stormpy.build_model(program, asked)
    built = time.process_time() - started
    mode = None
    if radius:
        import rfmdp
        from rfmdp.formats.libraries import to_stormpy

        own = rfmdp.load_prism(path).with_radius(radius)
        model = to_stormpy(own)
        mode = stormpy.UncertaintyResolutionMode.ROBUST
        asked = [
            stormpy.parse_properties(re.sub(r"([PR](?:{[^}]*})?)=\?", r"\1max=?", q))[0]
            for q in questions
        ]
    results = []
    for question in asked:
        started = time.process_time()
        try:
            found = stormpy.model_checking(
                model, question, environment=environment, uncertainty_resolution_mode=mode
            )
        except RuntimeError as error:
            results.append({"error": str(error)[:200]})
            continue
        seconds = time.process_time() - started
        results.append({"value": found.get_value(model.initial_states[0]), "seconds": seconds})
    return {"states": model.nr_states, "build": built, "results": results}


def measure(tool: str, path: Path, questions: tuple[str, ...], options) -> dict:
    """Run one tool on one model several times; of all seconds the least."""
    runs = [measure_once(tool, path, questions, options) for _ in range(options.repeat)]
    best = runs[0]
    for run in runs[1:]:
        if "failed" in run or "failed" in best:
            return best if "failed" in best else run
        best["build"] = min(best["build"], run["build"])
        for one, other in zip(best["results"], run["results"], strict=True):
            for name in ("seconds", "verify"):
                if name in one and name in other:
                    one[name] = min(one[name], other[name])
    return best


def measure_once(tool: str, path: Path, questions: tuple[str, ...], options) -> dict:
    """Run one tool on one model in a process of its own."""
    command = [sys.executable, __file__, "--tool", tool, "--file", str(path),
               "--radius", str(options.radius), "--precision", str(options.precision),
               "--questions", json.dumps(questions)]  # fmt: skip
    command += ["--verify"] if options.verify else []
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {LIMIT:.0f} s"}
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1][:200]}
    return json.loads(done.stdout.splitlines()[-1])


def mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def compare(options) -> list[dict]:
    rows, builds, solves, memories = [], [], [], []
    for name in options.shapes.split(",") if options.shapes else SHAPES:
        shape = SHAPES[name]
        for size in shape.sizes[:1] if options.small else shape.sizes:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"{name}.prism"
                path.write_text(shape.text(**size))
                mine = measure("ours", path, shape.questions, options)
                other = measure("storm", path, shape.questions, options)
            title = f"{name} {','.join(map(str, size.values()))}"
            if "failed" in mine or "failed" in other:
                print(f"{title}: {mine.get('failed')} / {other.get('failed')}", flush=True)
                rows.append({"model": title, "ours": mine, "storm": other})
                continue
            ratio = max(mine["build"], FLOOR) / max(other["build"], FLOOR)
            builds.append(ratio)
            memories.append(mine["megabytes"] / other["megabytes"])
            print(
                f"{title}: {mine['states']:,} states, build {mine['build']:.2f} s, Storm "
                f"{other['build']:.2f} s, ratio {ratio:.2f}; memory {mine['megabytes']:.0f} MB, "
                f"Storm {other['megabytes']:.0f} MB",
                flush=True,
            )
            for question, a, b in zip(
                shape.questions, mine["results"], other["results"], strict=True
            ):
                row = {"model": title, "question": question, "ours": a, "storm": b}
                rows.append(row)
                if "error" in a or "error" in b:
                    print(f"    {question}: {a.get('error')} / {b.get('error')}", flush=True)
                    continue
                ratio = max(a["seconds"], FLOOR) / max(b["seconds"], FLOOR)
                solves.append(ratio)
                print(
                    f"    {question:36} {a['value']:.9g} {a['status']:10} {a['seconds']:7.3f} s, "
                    f"Storm {b['value']:.9g} {b['seconds']:7.3f} s, ratio {ratio:.2f}",
                    flush=True,
                )
    for what, ratios in ("build", builds), ("solve", solves), ("memory", memories):
        if ratios:
            print(f"{what}: geometric mean {mean(ratios):.2f}, worst {max(ratios):.2f}")
    return rows


def compare_verify(options) -> list[dict]:
    """Print how long proving an answer again takes beside finding it."""
    rows, ratios = [], []
    for name in options.shapes.split(",") if options.shapes else SHAPES:
        shape = SHAPES[name]
        for size in shape.sizes[:1] if options.small else shape.sizes:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"{name}.prism"
                path.write_text(shape.text(**size))
                mine = measure("ours", path, shape.questions, options)
            title = f"{name} {','.join(map(str, size.values()))}"
            if "failed" in mine:
                print(f"{title}: {mine['failed']}", flush=True)
                continue
            for question, found in zip(shape.questions, mine["results"], strict=True):
                rows.append({"model": title, "question": question, **found})
                if "error" in found:
                    print(f"{title} {question}: {found['error']}", flush=True)
                    continue
                ratios.append(found["verify"] / max(found["seconds"], FLOOR))
                print(
                    f"{title:20} {question:36} solve {found['seconds']:7.3f} s, verify "
                    f"{found['verify']:7.3f} s, ratio {ratios[-1]:.2f}, {found['verdict']}",
                    flush=True,
                )
    if ratios:
        print(f"verify: geometric mean {mean(ratios):.2f}, worst {max(ratios):.2f}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", default="")
    parser.add_argument("--radius", type=float, default=0.0)
    parser.add_argument("--precision", type=float, default=1e-6)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="only the smallest size of each")
    parser.add_argument("--verify", action="store_true", help="compare verify with solve")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--tool", choices=["ours", "storm"], help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--questions", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.tool:
        run = ours if options.tool == "ours" else storm
        asked = (options.file, options.questions, options.radius, options.precision)
        found = run(*asked, options.verify)
        found["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
        print(json.dumps(found))
        return
    rows = (compare_verify if options.verify else compare)(options)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
