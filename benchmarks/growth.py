"""How time and memory grow with a network: by its factors, and with its transitions written out.

    python benchmarks/growth.py [--least 8] [--most 20] [--written 13] [--steps 15] [--json FILE]

A ring of n machines (radius 0.025, all n + 1 actions): running machines over some steps, certified.
Processor seconds of building and solving, the best of three where it takes less than a second. The
fitted exponents are slopes of log2(seconds) over n, of the larger half: 1 is "twice per machine".
Transitions grow by a factor of 3.2 per machine, which is 2^1.68.
"""

import argparse
import json
import time

import numpy as np

import rfmdp as rf


def ring(machines: int) -> str:
    """Return a ring of machines that fail, sooner beside a failed one; one is repaired per step."""
    actions = [f"repair_{k}" for k in range(machines)] + ["noop"]
    lines = ["mdp"]
    for i in range(machines):
        left, right = (i - 1) % machines, (i + 1) % machines
        fails = f"(m{left}=1 & m{right}=1 ? 0.1 : 0.6)"
        lines += [f"module machine{i}", f"  m{i} : [0..1] init 1;"]
        for action in actions:
            repaired = "1" if action == f"repair_{i}" else "0"
            lines.append(f"  [{action}] m{i}=1 -> {fails} : (m{i}'=0) + 1-{fails} : true;")
            lines.append(f"  [{action}] m{i}=0 -> (m{i}'={repaired});")
        lines.append("endmodule")
    up = " + ".join(f"m{i}" for i in range(machines))
    lines.append('rewards "running"')
    lines += [f"  [{a}] true : {up if a == 'noop' else f'max(0, {up} - 1)'};" for a in actions]
    return "\n".join([*lines, "endrewards"])


def timed(build, text: str, steps: int) -> tuple[float, object]:
    """Return processor seconds to build and to solve, and the solution."""
    best = np.inf
    for _ in range(3):
        started = time.process_time()
        solution = rf.solve(
            build(text).with_radius(0.025), f'R{{"running"}}maxmin=? [ C<={steps} ]'
        )
        best = min(best, time.process_time() - started)
        if best > 1.0:
            break
    return best, solution


def exponent(points: list[tuple[int, float]]) -> float:
    """Return the slope of log2(seconds) over the larger half of the sizes."""
    sizes, seconds = np.array(points[len(points) // 2 :]).T
    return float(np.polyfit(sizes, np.log2(seconds), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("least", 8), ("most", 20), ("written", 13), ("steps", 15)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    for build in (rf.parse_lattice, rf.parse_prism):  # compile
        timed(build, ring(6), 2)
    records = []
    for n in range(arguments.least, arguments.most + 1):
        seconds, ours = timed(rf.parse_lattice, ring(n), arguments.steps)
        record = {"machines": n, "transitions": ours.model.transitions, "factors": seconds}
        low, high = ours.at_initial().lower, ours.at_initial().upper
        if n <= arguments.written:
            record["written"], theirs = timed(rf.parse_prism, ring(n), arguments.steps)
            bounds = theirs.at_initial()
            assert bounds.lower <= high, (n, bounds, low, high)
            assert low <= bounds.upper, (n, bounds, low, high)
        records.append(record)
        written = f"{record['written']:9.3f}" if "written" in record else "        -"
        print(
            f"{n:3} {record['transitions']:18,} {seconds:9.3f} {written}  [{low:.9f}, {high:.9f}]"
        )
    for name in ("factors", "written"):
        points = [(r["machines"], r[name]) for r in records if name in r]
        if len(points) > 3:
            print(f"{name}: seconds grow as 2^({exponent(points):.2f} n)")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(records, file, indent=1)


if __name__ == "__main__":
    main()
