"""Models in blocks: bytes per transition, what unpacking costs, two workers against one process.

    python benchmarks/blocks.py [--size N] [--steps K] [--workers W]
    python benchmarks/blocks.py --together --size 16 --steps 2

The model has six modules that move one at a time, N values each: N ** 6 states. All seconds are
wall-clock seconds of the same K backward steps, robust, in this order within one run: a model that
is written out, blocks that stay ready to use, packed blocks, and a Dask cluster of W worker
processes with one thread each on this machine.

With --together the six modules move at once, three outcomes each: 729 transitions per state, for
size 16 more than 10^10. Only packed blocks are built and solved; processor seconds and memory.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import replace

import numpy as np

import rfmdp as rf
from rfmdp.language.build import build_blocked
from rfmdp.language.check import CheckedModel, check_model
from rfmdp.language.parse import parse_model
from rfmdp.outer.blocks import fleet

TEXT = """mdp
const int N;
module m0
  x0 : [0..N-1];
  [] x0<N-1 -> 0.3:(x0'=x0+1) + 0.7:(x0'=x0);
  [] x0>0 -> 0.9:(x0'=x0-1) + 0.1:(x0'=x0);
endmodule
"""
TOGETHER = """mdp
const int N;
module m0
  x0 : [0..N-1];
  [go] true -> 0.3:(x0'=min(x0+1,N-1)) + 0.5:(x0'=x0) + 0.2:(x0'=max(x0-1,0));
endmodule
"""
COPIES = "".join(f"module m{k}=m0 [x0=x{k}] endmodule\n" for k in range(1, 6))
REWARDS = 'rewards "top" x0=N-1 : 1; x1=N-1 : 1; endrewards'


def main() -> None:
    """Print one line per way."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=10)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--together", action="store_true")
    words = parser.parse_args()
    text = (TOGETHER if words.together else TEXT) + COPIES + REWARDS
    checked = check_model(parse_model(text), {"N": words.size})
    spec = rf.Spec(rf.Cumulative(words.steps, "top"), rf.MAX, rf.MIN)
    if words.together:
        _build_and_solve(checked, spec)
        return
    blocked = build_blocked(checked)
    whole = blocked.written()
    plain = sum(array.nbytes for array in _arrays(whole))
    assert blocked.store is not None
    print(blocked)
    print(f"plain {plain / whole.transitions:.2f}, packed "
          f"{blocked.store.nbytes / whole.transitions:.3f} bytes per transition")  # fmt: skip
    blocked, whole = blocked.with_radius(0.05), whole.with_radius(0.05)
    rf.solve(blocked, replace(spec, objective=rf.Cumulative(1, "top")))  # compiles
    first = _timed("written out", whole, spec)
    _timed("blocks, ready to use", blocked, spec, first)
    share, fleet.SHARE = fleet.SHARE, 0.0
    _timed("blocks, packed", blocked, spec, first)
    fleet.SHARE = share
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=words.workers, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        spread = replace(blocked, scheduler=cluster.scheduler_address, store=None)
        _timed("cluster, the first time", spread, spec, first)
        _timed("cluster", spread, spec, first)


def _build_and_solve(checked: CheckedModel, spec: rf.Spec) -> None:
    """Build packed blocks and solve them."""
    blocked = build_blocked(checked)
    assert blocked.store is not None
    _spent(f"{blocked}: {blocked.store.nbytes / 2**30:.2f} GiB packed")
    solution = rf.solve(blocked.with_radius(0.02), spec)
    _spent(f"{solution.status.name.lower()}, {solution.at_initial()}")


def _spent(what: str) -> None:
    """Print what is done, with the processor seconds and the peak of memory so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{what}; {time.process_time():.0f} s, peak {peak:.2f} GiB", flush=True)


def _arrays(model: rf.FactoredMDP) -> list[np.ndarray]:
    """Return the arrays that a sweep reads."""
    return [
        model.row_ptr, model.marginal_ptr, model.row_marginals, model.successor_ptr,
        model.successors, *(paid.row for paid in model.rewards.values()),
    ]  # fmt: skip


def _timed(name: str, model: rf.FactoredMDP, spec: rf.Spec, first: float | None = None) -> float:
    """Solve, print and return the seconds."""
    started = time.perf_counter()
    solution = rf.solve(model, spec)
    gone = time.perf_counter() - started
    phases = ", ".join(f"{k} {x:.1f}" for k, x in solution.stats.seconds.items())
    ratio = "" if first is None else f", {gone / first:.2f} of written out"
    print(f"{name:26} {gone:7.2f} s ({phases}){ratio}  {solution.at_initial()}", flush=True)
    return gone


if __name__ == "__main__":
    main()
