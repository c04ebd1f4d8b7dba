"""What an rf-MDP is, and the ways to make one.

`arrays` is the finished model, `build` makes one from a Python description (`Action`, `Move`),
`FactoredMDP.from_arrays` and `from_rows` from numbers, `validate` lists what is wrong with one.
Underneath, `frontier` explores, over packed states (`packing`, `numbering`) in growing arrays
(`buffer`). `flatten`, `restrict` and `unroll` make a model of another one.
"""

from rfmdp.model.arrays import FactoredMDP, Rewards, Variable
from rfmdp.model.build import build
from rfmdp.model.description import Action, Move, States
from rfmdp.model.frontier import Deadlock
from rfmdp.model.report import Issue, Report, Severity
from rfmdp.model.validate import validate

__all__ = [
    "Action",
    "Deadlock",
    "FactoredMDP",
    "Issue",
    "Move",
    "Report",
    "Rewards",
    "Severity",
    "States",
    "Variable",
    "build",
    "validate",
]
