"""How fast a PRISM file becomes a model, beside Storm's builder on the same file.

    python benchmarks/prism_build.py [--json FILE] [--repeat N] [--size N]

Each builder runs in a process of its own, which reads the file, warms up on a small instance and
then builds the Drone domain N times: seconds are the best. Peak memory is that of the process
during a single build, less what it held before.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from solve import closed_text

BUILDERS = ("rfmdp", "storm")


def drone_text(size: int) -> str:
    """Return the Drone domain as one self-contained text of a given size."""
    far = size - 1
    return closed_text("drone", n=size, maxY=size, slipHigh=min(6, size), targetX=far, targetZ=far)


def builder(name: str) -> Callable[[Path], tuple[int, int]]:
    """Return the function from a file to (states, transitions)."""
    if name == "rfmdp":
        from rfmdp.language.build import load_prism

        def build(path: Path) -> tuple[int, int]:
            model = load_prism(path)
            return model.states, model.transitions

        return build
    import stormpy

    def build_storm(path: Path) -> tuple[int, int]:
        storm = stormpy.build_model(stormpy.parse_prism_program(str(path)))
        return storm.nr_states, storm.nr_transitions

    return build_storm


def resident() -> int:
    """Return the memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def measure(name: str, path: Path, small: Path, repeat: int) -> dict[str, float | str]:
    build = builder(name)
    build(small)
    before = resident()
    seconds = []
    start = time.perf_counter()
    states, transitions = build(path)
    seconds.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    for _ in range(repeat - 1):
        start = time.perf_counter()
        build(path)
        seconds.append(time.perf_counter() - start)
    return {
        "builder": name,
        "states": states,
        "stored_transitions": transitions,
        "seconds": min(seconds),
        "peak_bytes": peak,
    }


def table(records: list[dict[str, float | str]]) -> str:
    lines = [
        f"{'builder':8} {'states':>8} {'stored':>10} {'s':>7} {'Mt/s':>7} {'peak MB':>8} {'B/t':>6}"
    ]
    for r in records:
        lines.append(
            f"{r['builder']:8} {r['states']:8} {r['stored_transitions']:10} {r['seconds']:7.2f} "
            f"{r['transitions_per_second'] / 1e6:7.2f} {r['peak_bytes'] / 1e6:8.0f} "
            f"{r['peak_bytes_per_transition']:6.1f}"
        )
    return "\n".join(lines)


def run(size: int, repeat: int) -> list[dict[str, float | str]]:
    """Measure both builders one after the other; rates are per branch of the text."""
    with tempfile.TemporaryDirectory() as folder:
        path, small = Path(folder) / "drone.prism", Path(folder) / "small.prism"
        path.write_text(drone_text(size))
        small.write_text(drone_text(3))
        records = []
        for name in BUILDERS:
            given = [sys.executable, __file__, "--one", name, str(path), str(small), str(repeat)]
            done = subprocess.run(given, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{name}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
                continue
            records.append(json.loads(done.stdout.splitlines()[-1]))
    # Storm adds up branches that meet; both are counted by the branches of the text
    branches = max(float(record["stored_transitions"]) for record in records)
    for record in records:
        record["transitions_per_second"] = branches / float(record["seconds"])
        record["peak_bytes_per_transition"] = float(record["peak_bytes"]) / branches
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, path, small, repeat = options.one
        print(json.dumps(measure(name, Path(path), Path(small), int(repeat))))
        return
    records = run(options.size, options.repeat)
    print(table(records))
    if options.json:
        options.json.write_text(json.dumps(records, indent=2) + "\n")


if __name__ == "__main__":
    main()
