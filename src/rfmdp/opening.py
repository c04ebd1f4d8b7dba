"""A model by its name: a file of any format, a domain of the paper, a Gymnasium environment."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rfmdp.errors import FileError, ModelError, ResourceError
from rfmdp.formats import files
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.lattice import written
from rfmdp.record import Provenance

if TYPE_CHECKING:
    from rfmdp.language.ast import ModelFile
    from rfmdp.language.check import CheckedModel, Work
    from rfmdp.language.names import Constants
    from rfmdp.model.frontier import Progress
    from rfmdp.model.lattice import AnyModel

GYM = "gym:"  # in front of the name of a Gymnasium environment
EXPLICIT = {".tra": "read_prism_explicit", ".umb": "read_umb", ".drn": "read_drn"}


def load(path: str | PathLike[str]) -> Any:
    """Return what is in a file: whatever `save` wrote, or a model of any format that is read.

    Raises
    ------
    FileError
        If it cannot be read, or is damaged.
    """
    return files.load(path) if Path(path).suffix == files.SAVED else open_model(path)


def open_model(
    name: str | PathLike[str],
    constants: Constants = MappingProxyType({}),
    *,
    also_known: Collection[str] = (),
    progress: Progress | None = None,
) -> FactoredMDP:
    """Return a model by its file, or by the name of a domain or of a Gymnasium environment.

    Parameters
    ----------
    name : A file: `.rfmdp`, `.tra` with what stands beside it, `.umb`, `.drn`, else the PRISM
        language. Or a domain, "aircraft" for instance, if there is no such file. Or `gym:` and
        the name of an environment with a table of its probabilities: "gym:FrozenLake-v1".
    constants : Values of constants; a string is read as an expression.
    also_known : Names in `constants` that may belong to properties instead of the model.
    progress : Called now and then as progress(states, transitions): how many so far.

    Raises
    ------
    RfmdpError
        If there is no such model, or it cannot be read or built.

    Examples
    --------
    >>> open_model("chain", {"M": 4}).states
    16
    """
    model = read_model(name)
    return written(model.build_for(None, constants, also_known=also_known, progress=progress))


def read_model(name: str | PathLike[str]) -> Blueprint:
    """Return a model as `open_model` finds it, read but not built."""
    path = Path(name)
    if str(name).startswith(GYM):
        from rfmdp.sources.gym.models import gym_model

        return Blueprint(str(name), made=gym_model(str(name)[len(GYM) :]))
    if not path.suffix and path.name == str(name) and not path.exists():
        from rfmdp.domains import DOMAINS, find

        with suppress(ModelError):
            find(path.name)
            return Blueprint(path.name)
        raise FileError(
            f"{name}: there is no such file, and no such domain; the domains are "
            f"{', '.join(DOMAINS)}."
        )
    if path.suffix == files.SAVED:
        return Blueprint(str(name), made=files.load(path, kind="model"))
    if path.suffix in EXPLICIT:
        import rfmdp

        made: FactoredMDP = getattr(rfmdp, EXPLICIT[path.suffix])(path)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        origin = Provenance(path.name, digest, version=rfmdp.__version__)
        return Blueprint(str(name), made=replace(made, provenance=origin))
    from rfmdp.language.parse import parse_model
    from rfmdp.language.source import read_text

    return Blueprint(str(name), parsed=parse_model(read_text(path), str(path)))


@dataclass(frozen=True, slots=True)
class Blueprint:
    """A model that is read, and built as often as there are constants to build it with.

    It travels between processes and machines, which need not see the file. A domain has neither
    text nor model: every machine has it.
    """

    name: str
    parsed: ModelFile | None = field(default=None, repr=False)  # of a file in the PRISM language
    made: FactoredMDP | None = field(default=None, repr=False)  # of any other file
    _checked: dict[object, CheckedModel] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_domain(self) -> bool:
        """Whether it is a domain of the paper."""
        return self.parsed is None and self.made is None

    def names(self, constants: Constants, also_known: Collection[str] = ()) -> CheckedModel | None:
        """Return what properties may name, without building; None if only a built model tells."""
        if self.made is not None:
            return None
        if self.parsed is None:
            from rfmdp.domains import checked_domain

            values = {k: value for k, value in constants.items() if k not in also_known}
            return checked_domain(self.name, values)
        from rfmdp.language.check import check_model

        key = tuple(constants.items()), frozenset(also_known)
        if key not in self._checked:
            self._checked[key] = check_model(self.parsed, constants, also_known)
        return self._checked[key]

    def build_for(
        self,
        work: Work | None,
        constants: Constants,
        *,
        also_known: Collection[str] = (),
        progress: Progress | None = None,
        scheduler: str | None = None,
    ) -> AnyModel:
        """Return the model, by its factors if what is asked of it takes less work then.

        It comes in blocks if it does not fit into memory, or for the workers of a Dask scheduler.
        None: what is asked is not known, so transitions are written out.
        """
        checked = self.names(constants, also_known)
        values = {k: value for k, value in constants.items() if k not in also_known}
        if checked is None:
            assert self.made is not None
            if values:
                names = ", ".join(values)
                raise ModelError(f"{self.name}: a built model has no constants; got {names}.")
            return self.made
        from rfmdp.language.build import build_blocked, build_model, watching_memory
        from rfmdp.language.lattice import build_for

        if self.is_domain:
            from rfmdp.domains import with_sets

            if work is None:
                return with_sets(self.name, values, build_model(checked, progress))
            return with_sets(self.name, values, build_for(work, checked, progress=progress))
        if work is None:
            return build_model(checked, progress)
        if scheduler is None:
            with suppress(ResourceError):
                return build_for(work, checked, progress=watching_memory(progress))
        return build_blocked(checked, scheduler=scheduler, progress=progress)
