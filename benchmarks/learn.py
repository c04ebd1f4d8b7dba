"""Learning: steps per second, and 10^6 trajectories of a published instance per method.

    NUMBA_NUM_THREADS=1 python benchmarks/learn.py aircraft 1000000 paper-mccormick paper-flat

Times are of the process, on one core; evaluations are log-spaced, eight per decade.
"""

import sys
import time

from rfmdp.domains import domain, domain_spec
from rfmdp.learn.domains import LENGTHS, LOCAL_STATES
from rfmdp.learn.loop import learn
from rfmdp.learn.methods import find_method
from rfmdp.learn.simulate import Behaviour, Simulator
from rfmdp.learn.stop import StopWhen


def simulation(name):
    model = domain(name, instance="learning")
    simulator, length = Simulator(model), LENGTHS[name]
    for label, behaviour in (
        ("policy", Behaviour(model.row_ptr[None, :-1])),
        ("uniform", Behaviour.uniform(model)),
    ):
        simulator.run(behaviour, length, 0, 10, 1)
        started = time.process_time()
        batch = simulator.run(behaviour, length, 0, 200_000, 1)
        rate = batch.steps / (time.process_time() - started) / 1e6
        print(f"{name}: simulation, {label}: {rate:.1f} million steps per second", flush=True)


def methods(name, trajectories, names):
    model, spec = domain(name, instance="learning"), domain_spec(name)
    for method in names:
        started, wall = time.process_time(), time.perf_counter()
        run = learn(
            model, spec, find_method(method), local=LOCAL_STATES[name], length=LENGTHS[name],
            stop=StopWhen(trajectories),
        )  # fmt: skip
        last = run.history[-1]
        print(
            f"{name}: {method}: {last.trajectories} trajectories, {last.replans} replans, "
            f"guarantee {last.guarantee:.5g}, true value {last.performance:.5g}, "
            f"{time.process_time() - started:.1f} s of one core "
            f"({time.perf_counter() - wall:.1f} s wall)",
            flush=True,
        )


if __name__ == "__main__":
    name, trajectories, *chosen = sys.argv[1:]
    simulation(name)
    methods(name, int(float(trajectories)), chosen)
