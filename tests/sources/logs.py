"""Small models and logs of them."""

from __future__ import annotations

from functools import cache

import numpy as np

import rfmdp as rf
from rfmdp.sources.log.source import table_of
from rfmdp.sources.trajectories import record

MACHINES = """mdp
module first
  m : [0..2];
  [run] m<2 -> {wear} : (m'=m+1) + {keep} : (m'=m);
  [run] m=2 -> true;
  [fix] m>0 -> {fixed} : (m'=0) + {failed} : (m'=m);
endmodule
module second
  b : bool;
  [run] true -> {broken} : (b'=true) + {fine} : (b'=false);
  [fix] true -> true;
endmodule
label "down" = m=2 & b;
rewards "cost" [fix] true : 1; endrewards
"""
TRUTH = {"wear": 0.3, "keep": 0.7, "fixed": 0.9, "failed": 0.1, "broken": 0.2, "fine": 0.8}
parsed = cache(rf.parse_prism)


def machines(numbers=TRUTH):
    """Return two machines, with probabilities or, for {}, without."""
    return parsed(MACHINES.format(**{k: numbers.get(k, "[0,1]") for k in TRUTH}))


@cache
def log_table(trajectories=40, steps=12, seed=0):
    """Return a log of the machines under random choices, as an Arrow table."""
    model = machines()
    return table_of(model, record(model, None, steps, trajectories, seed))


def changed(table, column, rows, value):
    """Return a table as a mapping of lists, with some entries replaced."""
    content = table.to_pydict()
    for row in np.atleast_1d(rows).tolist():
        content[column][row] = value
    return content
