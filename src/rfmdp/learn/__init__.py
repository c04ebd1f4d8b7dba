"""Learning: from counts to confidence sets, budgets, exploration and guaranteed policies.

The package can be called: `rfmdp.learn(model, spec, ...)` is `rfmdp.learn.loop.learn`, whichever
of its modules was imported before.
"""

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A package that is also its main function."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Learn; see `rfmdp.learn.loop.learn`."""
        from rfmdp.learn.loop import learn

        return learn(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
