"""Robust factored Markov decision processes: solve and learn, with certified bounds.

The public names are listed once, in `__init__.pyi`; each is imported when it is first used, so
that `import rfmdp` is quick.

>>> import rfmdp as rf
>>> move = rf.Interval([0.2, 0.4], [0.6, 0.8])
>>> model = rf.FactoredMDP.from_rows(
...     [[([0], [1, 2])], [([], [1])], [([], [2])]], [move],
...     labels={"goal": [False, True, False]})
>>> solution = rf.solve(model, rf.Spec(rf.Reach("goal"), agent=rf.MAX, nature=rf.MIN))
>>> round(solution.at_initial().lower, 9)
0.2
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
