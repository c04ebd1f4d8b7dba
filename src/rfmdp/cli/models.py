"""MODEL on the command line: a file by its ending, or a domain by its name."""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rfmdp.errors import FileError, ModelError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.frontier import Deadlock

if TYPE_CHECKING:
    from rfmdp.answers.property import Property
    from rfmdp.model.frontier import Progress

PRISM = (".prism", ".nm", ".pm", ".sm", ".imdp", ".idtmc", ".mdp", ".dtmc")
EXPLICIT = (".tra", ".drn")
SAVED = ".rfmdp"


def open_model(
    text: str,
    constants: dict[str, str],
    also_known: Collection[str] = (),
    progress: Progress | None = None,
    deadlock: Deadlock = Deadlock.LOOP,
) -> FactoredMDP:
    """Return a model by its file or name.

    Parameters
    ----------
    constants
        Values of constants; those in `also_known` may belong to properties instead.
    deadlock
        What becomes of states of a PRISM model without choice.

    Raises
    ------
    RfmdpError
        If there is no such model, or it cannot be read or built.
    """
    path = Path(text)
    own = {name: value for name, value in constants.items() if name not in also_known}
    if is_domain(text):
        from rfmdp.paper.domains import domain

        return domain(text, **own)
    if path.suffix in (*EXPLICIT, SAVED):
        if own:
            raise ModelError(f"{text}: a built model has no constants; got {', '.join(own)}.")
        return _open_built(path)
    from rfmdp.language.explore import build_model
    from rfmdp.language.load import check_prism

    checked = check_prism(path, constants, also_known)
    return build_model(checked, deadlock=deadlock, progress=progress)


def is_domain(text: str) -> bool:
    """Say whether a word means a domain: it is no file and has no ending of one."""
    path = Path(text)
    known = path.suffix in (*PRISM, *EXPLICIT, SAVED)
    if known or path.exists() or path.name != text:
        return False
    try:
        from rfmdp.paper.domains.table import DOMAINS, find
    except ModuleNotFoundError:
        raise FileError(f"{text}: there is no such file.") from None
    try:
        find(text)
    except ModelError:
        raise FileError(
            f"{text}: there is no such file, and no such domain; the domains are "
            f"{', '.join(DOMAINS)}."
        ) from None
    return True


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


def _open_built(path: Path) -> FactoredMDP:
    if path.suffix == SAVED:
        from rfmdp.formats.files import load

        found = load(path)
        if not isinstance(found, FactoredMDP):
            raise FileError(
                f"{path}: must hold a model, as `rfmdp convert` writes it; found a "
                f"{type(found).__name__.lower()}."
            )
        return found
    import rfmdp

    if path.suffix == ".drn":
        return rfmdp.read_drn(path)
    return rfmdp.read_prism_explicit(path)


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
