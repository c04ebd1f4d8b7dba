"""What commands share about MODEL: its default property, warnings, time."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rfmdp.errors import FileError, ModelError
from rfmdp.opening import is_domain, open_model

if TYPE_CHECKING:
    from rfmdp.answers.property import Property


def default_properties(model: str) -> list[Property]:
    """Return the property that comes with a domain."""
    from rfmdp.answers.property import parse_properties

    if not is_domain(model):
        if not Path(model).exists():
            raise FileError(f"{model}: there is no such file.")
        raise ModelError(
            "A property is needed: give a file of properties after the model, or --prop "
            "'Pmaxmin=? [ F \"goal\" ]'."
        )
    from rfmdp.paper.domains import domain_property

    return parse_properties(domain_property(model))


@contextmanager
def spoken_warnings() -> Iterator[None]:
    """Print warnings of rfmdp as lines on standard error instead of Python's way."""
    from rfmdp.cli.main import complain

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        complain(str(warning.message), kind="warning")


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        return time.perf_counter() - self._start


__all__ = [
    "Stopwatch",
    "default_properties",
    "is_domain",
    "open_model",
    "spoken_warnings",
]
