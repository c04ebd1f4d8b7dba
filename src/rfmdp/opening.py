"""A model by its name: a file of any format that rfmdp reads, or a domain of the paper."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from rfmdp.errors import FileError, ModelError
from rfmdp.formats.files import EXPLICIT, PRISM, SAVED, load
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.frontier import Deadlock

if TYPE_CHECKING:
    from rfmdp.model.frontier import Progress

ENDINGS: tuple[str, ...] = (SAVED, *EXPLICIT, *PRISM)


def open_model(
    name: str | PathLike[str],
    constants: Mapping[str, bool | int | float | str] = MappingProxyType({}),
    *,
    also_known: Collection[str] = (),
    deadlock: Deadlock = Deadlock.LOOP,
    progress: Progress | None = None,
) -> FactoredMDP:
    """Return a model by its file or by the name of a domain.

    Parameters
    ----------
    name
        A file: `.rfmdp`, `.tra` with what stands beside it, `.drn`, else the PRISM language.
        Or a domain, "aircraft" for instance, if there is no such file.
    constants
        Values of constants; a string is read as an expression.
    also_known
        Names in `constants` that may belong to properties instead of the model.
    deadlock
        What becomes of states without choice.
    progress
        Called now and then with the number of states and transitions so far.

    Raises
    ------
    RfmdpError
        If there is no such model, or it cannot be read or built.

    Examples
    --------
    >>> open_model("chain", {"M": 4}).states
    16
    """
    own: dict[str, Any] = {key: value for key, value in constants.items() if key not in also_known}
    path = Path(name)
    if is_domain(name):
        from rfmdp.paper.domains import domain

        model = domain(str(name), **own)
    elif path.suffix in (SAVED, *EXPLICIT):
        if own:
            raise ModelError(f"{name}: a built model has no constants; got {', '.join(own)}.")
        model = load(path, kind="model")
    else:
        from rfmdp.language.explore import build_model
        from rfmdp.language.load import check_prism

        checked = check_prism(path, constants, also_known)
        model = build_model(checked, deadlock=deadlock, progress=progress)
    if deadlock is Deadlock.ERROR:
        _refuse_deadlocks(str(name), model)
    return model


def is_domain(name: str | PathLike[str]) -> bool:
    """Return whether a word means a domain: it is no file and has no ending of one.

    Raises
    ------
    FileError
        If there is neither such a file nor such a domain.
    """
    path = Path(name)
    if path.suffix in ENDINGS or path.exists() or path.name != str(name):
        return False
    from rfmdp.paper.domains.table import DOMAINS, find

    try:
        find(str(name))
    except ModelError:
        raise FileError(
            f"{name}: there is no such file, and no such domain; the domains are "
            f"{', '.join(DOMAINS)}."
        ) from None
    return True


def _refuse_deadlocks(name: str, model: FactoredMDP) -> None:
    """Raise ModelError if states had no choice when the model was made."""
    stuck = np.flatnonzero(model.label("deadlock"))
    if stuck.size:
        raise ModelError(
            f"{name}: {stuck.size} states had no choice and got a self-loop, the first is "
            f"{model.state_name(int(stuck[0]))}; give them one, or allow the loops."
        )
