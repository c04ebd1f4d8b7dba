"""Learning: steps per second, and seconds of one core for 10^6 trajectories per method.

    python benchmarks/learn.py                                 # Aircraft, all methods
    python benchmarks/learn.py sysadmin --trajectories 1e6 --methods anytime,paper-flat

Times are processor seconds of one thread, evaluations (eight per decade) and reports included.
Flat learning of SysAdmin and Drone also assumes p_min = 1e-8,
as the published code does: a box of 63 outcomes that nature may empty is beyond the analysis of
graphs.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

os.environ["NUMBA_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # read at import
sys.path.insert(0, str(Path(__file__).parents[1]))  # for `experiments`

from experiments.learning.settings import SETUPS, TEXT
from rfmdp.domains import domain, domain_spec
from rfmdp.learning.learn import learn
from rfmdp.learning.methods import METHODS, StopWhen, find_method
from rfmdp.solving import solve
from rfmdp.sources.trajectories import Behaviour, Simulator, Trajectories

HEAD = f"{'domain':10} {'method':20} {'trajectories':>12} {'replans':>8}"
HEAD += f" {'guarantee':>10} {'true value':>10} {'optimum':>9} {'seconds':>8} {'wall':>7}"


def simulation(name):
    """Print steps per second of simulating a policy and uniform choices."""
    model = domain(name, instance="learning")
    simulator, length = Simulator(model), SETUPS[name].length
    for label, behaviour in (
        ("policy", Behaviour(model.row_ptr[None, :-1])),
        ("uniform", Behaviour.uniform(model)),
    ):
        simulator.run(Trajectories(behaviour, length, 10, 1))
        started = time.process_time()
        batch = simulator.run(Trajectories(behaviour, length, 400_000, 1))
        rate = batch.steps / (time.process_time() - started) / 1e6
        print(f"{name}: simulation, {label}: {rate:.1f} million steps per second", flush=True)


def one(name, method, trajectories, seed):
    """Learn with one method; returns a record."""
    model, spec = domain(name, instance="learning"), domain_spec(name)
    asked = {**TEXT.keywords(name, find_method(method)), "seed": seed}
    learn(model, spec, stop=StopWhen(1), **asked)  # compile
    started, wall = time.process_time(), time.perf_counter()
    run = learn(model, spec, stop=StopWhen(trajectories), **asked)
    seconds, wall = time.process_time() - started, time.perf_counter() - wall
    last = run.history[-1]
    return {
        "domain": name,
        "method": method,
        "trajectories": last.trajectories,
        "replans": last.replans,
        "guarantee": last.guarantee,
        "performance": last.performance,
        "optimum": float(solve(model, spec).value[model.initial[0]]),
        "seconds": seconds,
        "wall": wall,
        "evaluations": len(run.history),
        "assumptions": list(run.assumptions),
    }


def main():
    """Measure what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("domain", nargs="?", default="aircraft", choices=sorted(SETUPS))
    parser.add_argument("--trajectories", type=float, default=1e6)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    simulation(asked.domain)
    print(HEAD, flush=True)
    records = []
    for method in asked.methods.split(","):
        r = one(asked.domain, method, int(asked.trajectories), asked.seed)
        records.append(r)
        print(
            f"{r['domain']:10} {method:20} {r['trajectories']:12d} "
            f"{r['replans']:8d} {r['guarantee']:10.5g} {r['performance']:10.5g} "
            f"{r['optimum']:9.5g} {r['seconds']:8.1f} {r['wall']:7.1f}",
            flush=True,
        )
        if asked.json is not None:
            asked.json.parent.mkdir(parents=True, exist_ok=True)
            asked.json.write_text(json.dumps(records, indent=1))


if __name__ == "__main__":
    main()
