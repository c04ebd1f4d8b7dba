"""How time grows with a model: by its factors, and with its transitions written out.

    python benchmarks/growth.py [--families ring shop clock drones] [--seconds 20] [--json FILE]

ring    n machines that fail, sooner beside a failed one; one is repaired per step (15 steps)
shop    n machines of the log in docs/data.md, which wear out and are serviced (15 steps)
clock   the published SysAdmin with n machines, until its clock is over
drones  the published two drones in a box of n cells a side; written out only

Radius 0.025, certified. A family grows until a solve takes longer than --seconds. Processor seconds
of building and solving, the best of three where it takes less than a second; both ways take turns
in one process, and their bounds must overlap. Fitted exponents are slopes of log2(seconds) over n,
of the larger half: 1 is "twice per machine". For drones, by the side of the box: log over log.
"""

import argparse
import json
import time
from pathlib import Path

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


def shop(machines: int) -> str:
    """Return machines that wear out while they run, independently; one is serviced per step."""
    actions = ["run", *(f"service{k}" for k in range(machines))]
    lines = ["mdp"]
    for i in range(machines):
        lines += [f"module machine{i}", f"  m{i} : [0..2];"]
        lines.append(f"  [run] m{i}=0 -> 0.2 : (m{i}'=1) + 0.8 : true;")
        lines.append(f"  [run] m{i}=1 -> 0.4 : (m{i}'=2) + 0.6 : true;")
        lines.append(f"  [run] m{i}=2 -> true;")
        lines.append(f"  [service{i}] m{i}>0 -> 0.9 : (m{i}'=0) + 0.1 : true;")
        lines += [f"  [{a}] true -> true;" for a in actions[1:] if a != f"service{i}"]
        lines.append("endmodule")
    lines += ['rewards "running"', *(f"  [run] m{i}<2 : 1;" for i in range(machines))]
    return "\n".join([*lines, "endrewards"])


STEPS = 'R{"running"}maxmin=? [ C<=15 ]'
DOMAINS = Path(rf.__file__).with_name("domains")


def text_of(family: str, n: int) -> tuple[str, dict, str]:
    """Return text, constants and property of a model."""
    if family in ("ring", "shop"):
        return {"ring": ring, "shop": shop}[family](n), {}, STEPS
    if family == "clock":
        constants = {"N": n, "T": 15, "p0": 0.1, "p1": 0.6, "as_published": True}
        text = (DOMAINS / "sysadmin.prism").read_text()
        return text, constants, 'R{"running"}maxmin=? [ F "end" ]'
    constants = {"n": n, "maxY": n, "p": 0.3, "slipLow": 3, "slipHigh": n - 2, "targetX": n - 1}
    constants |= {"targetZ": n - 1, "as_published": True}
    text = (DOMAINS / "drone.prism").read_text()
    return text, constants, 'Pmaxmin=? [ !"crash" U "target" ]'


SIZES = {"ring": range(6, 25), "shop": range(4, 15), "clock": range(4, 11), "drones": range(4, 9)}


def timed(build, family: str, n: int) -> tuple[float, object]:
    """Return processor seconds to build and to solve, and the solution."""
    text, constants, question = text_of(family, n)
    best = np.inf
    for _ in range(3):
        started = time.process_time()
        solution = rf.solve(build(text, constants).with_radius(0.025), question)
        best = min(best, time.process_time() - started)
        if best > 1.0:
            break
    return best, solution


def exponent(family: str, points: list[tuple[int, float]]) -> float:
    """Return the slope of log2(seconds) over the larger half of the sizes."""
    sizes, seconds = np.array(points[len(points) // 2 :]).T
    return float(
        np.polyfit(np.log2(sizes) if family == "drones" else sizes, np.log2(seconds), 1)[0]
    )


def grow(family: str, most: float) -> list[dict]:
    """Return a record per size, and print them."""
    ways = {"factors": rf.parse_lattice, "written": rf.parse_prism}
    if family == "drones":
        del ways["factors"]
    records = []
    for build in ways.values():  # compile
        timed(build, family, SIZES[family][0])
    for n in SIZES[family]:
        record, bounds = {"family": family, "n": n}, []
        for way in list(ways):
            record[way], solution = timed(ways[way], family, n)
            record["transitions"] = max(solution.model.transitions, record.get("transitions", 0))
            bounds.append(solution.at_initial())
            if record[way] * (4 if way == "written" else 2.5) > most:
                del ways[way]
        assert max(b.lower for b in bounds) <= min(b.upper for b in bounds), (n, bounds)
        records.append(record)
        shown = [
            f"{record[w]:9.3f}" if w in record else "        -" for w in ("factors", "written")
        ]
        print(f"{family:7} {n:3} {record['transitions']:20,} {' '.join(shown)}", flush=True)
        if not ways:
            break
    for way in ("factors", "written"):
        points = [(r["n"], r[way]) for r in records if way in r]
        if len(points) > 3:
            power = f"{exponent(family, points):.2f}"
            law = f"n^{power}" if family == "drones" else f"2^({power} n)"
            print(f"{family:7} {way}: seconds grow as {law}", flush=True)
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--families", nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    records = [r for family in arguments.families for r in grow(family, arguments.seconds)]
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(records, file, indent=1)


if __name__ == "__main__":
    main()
