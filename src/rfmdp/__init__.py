"""Robust factored Markov decision processes: solve and learn, with certified bounds.

All public names are here; each is imported when it is first used, so that `import rfmdp` is quick.

>>> import rfmdp as rf
>>> move = rf.Interval([0.2, 0.4], [0.6, 0.8])
>>> model = rf.FactoredMDP.from_rows(
...     [[([0], [1, 2])], [([], [1])], [([], [2])]], [move],
...     labels={"goal": [False, True, False]})
>>> solution = rf.solve(model, rf.Spec(rf.Reach("goal"), agent=rf.MAX, nature=rf.MIN))
>>> round(solution.at_initial().lower, 9)
0.2
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from rfmdp.domains import domain, domain_spec
    from rfmdp.errors import (
        FileError,
        ModelError,
        NotCertifiedError,
        PrismError,
        RfmdpError,
        SolverError,
        UnsupportedError,
    )
    from rfmdp.files import load, save
    from rfmdp.inner import (
        Alternating,
        Backend,
        Composition,
        Exact,
        IntervalArithmetic,
        McCormick,
        Orders,
        RadiusSum,
        Sandwich,
        Sequential,
        Variant,
        VertexEnumeration,
    )
    from rfmdp.learn.stop import StopWhen
    from rfmdp.model import Action, FactoredMDP, Move, Rewards, Variable
    from rfmdp.model.build import build
    from rfmdp.model.validate import validate
    from rfmdp.objective import (
        MAX,
        MIN,
        Cumulative,
        Direction,
        Discounted,
        Globally,
        Instantaneous,
        Next,
        Reach,
        ReachReward,
        Spec,
        Total,
        Until,
    )
    from rfmdp.outer.settings import Limits, Measure
    from rfmdp.outer.solution import Bounds, Policy, Solution, Status
    from rfmdp.prism.answer import check
    from rfmdp.prism.load import load_prism, parse_prism
    from rfmdp.prism.property import parse_property
    from rfmdp.solve import compare, evaluate, solve
    from rfmdp.uncertainty import (
        Interval,
        L1Ball,
        LinfBall,
        LpBall,
        Marginals,
        Polytope,
        Singleton,
    )

_PLACES = {
    "domains": "domain domain_spec",
    "errors": "FileError ModelError NotCertifiedError PrismError RfmdpError SolverError "
    "UnsupportedError",
    "files": "load save",
    "inner": "Alternating Backend Composition Exact IntervalArithmetic McCormick Orders RadiusSum "
    "Sandwich Sequential Variant VertexEnumeration",
    "learn.stop": "StopWhen",
    "model": "Action FactoredMDP Move Rewards Variable",
    "model.build": "build",
    "model.validate": "validate",
    "objective": "MAX MIN Cumulative Direction Discounted Globally Instantaneous Next Reach "
    "ReachReward Spec Total Until",
    "outer.settings": "Limits Measure",
    "outer.solution": "Bounds Policy Solution Status",
    "prism.answer": "check",
    "prism.load": "load_prism parse_prism",
    "prism.property": "parse_property",
    "solve": "compare evaluate solve",
    "uncertainty": "Interval L1Ball LinfBall LpBall Marginals Polytope Singleton",
}
_HOME = {name: place for place, names in _PLACES.items() for name in names.split()}

__all__ = [
    "MAX",
    "MIN",
    "Action",
    "Alternating",
    "Backend",
    "Bounds",
    "Composition",
    "Cumulative",
    "Direction",
    "Discounted",
    "Exact",
    "FactoredMDP",
    "FileError",
    "Globally",
    "Instantaneous",
    "Interval",
    "IntervalArithmetic",
    "L1Ball",
    "Limits",
    "LinfBall",
    "LpBall",
    "Marginals",
    "McCormick",
    "Measure",
    "ModelError",
    "Move",
    "Next",
    "NotCertifiedError",
    "Orders",
    "Policy",
    "Polytope",
    "PrismError",
    "RadiusSum",
    "Reach",
    "ReachReward",
    "Rewards",
    "RfmdpError",
    "Sandwich",
    "Sequential",
    "Singleton",
    "Solution",
    "SolverError",
    "Spec",
    "Status",
    "StopWhen",
    "Total",
    "UnsupportedError",
    "Until",
    "Variable",
    "Variant",
    "VertexEnumeration",
    "build",
    "check",
    "compare",
    "domain",
    "domain_spec",
    "evaluate",
    "load",
    "load_prism",
    "parse_prism",
    "parse_property",
    "save",
    "solve",
    "validate",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its home when it is first used (PEP 562).

    `rfmdp.learn` is a package that can be called.
    """
    if name == "learn":
        return import_module("rfmdp.learn")
    if name not in _HOME:
        raise AttributeError(f"module 'rfmdp' has no attribute {name!r}")
    value = getattr(import_module(f"rfmdp.{_HOME[name]}"), name)
    globals()[name] = value
    return value


class _Package(ModuleType):
    """A package whose functions are not hidden by modules of the same name.

    Importing `rfmdp.solve` would set the attribute `solve` to the module, for ever.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and _HOME.get(name) == name):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted(__all__)
