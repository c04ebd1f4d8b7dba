"""Save and load models and results: one file each, versioned, checked, written atomically.

`archive` says what is inside a file. A file is written beside its final place and moved there when
it is complete, so a reader sees the old file or the new one, also if writing is interrupted.

A further type needs two things: a registration of `to_record` in its own module, and an entry in
`READERS`, which names the function that makes the object again.

>>> @to_record.register  # doctest: +SKIP
... def _(policy: Policy) -> Record:
...     return "policy", {"horizon": 3}, {"choices": policy.choices}
"""

from __future__ import annotations

import hashlib
import importlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import rfmdp.formats.records  # noqa: F401  registers models, policies and solutions
from rfmdp import __version__
from rfmdp.errors import FileError, ResourceError, RfmdpError
from rfmdp.formats.archive import load_record, sign, write_archive
from rfmdp.model.arrays import FactoredMDP
from rfmdp.record import Provenance, to_record
from rfmdp.writing import replacing

SAVED = ".rfmdp"
EXPLICIT: dict[str, str] = {  # ending -> "module:function" of (path)
    ".tra": "rfmdp.formats.prism_explicit:read_prism_explicit",
    ".umb": "rfmdp.formats.umb:read_umb",
    ".drn": "rfmdp.formats.drn:read_drn",
}
PRISM: dict[str, str] = dict.fromkeys(
    (".prism", ".nm", ".pm", ".sm", ".imdp", ".idtmc", ".mdp", ".dtmc"),
    "rfmdp.language.build:load_prism",
)
READERS: dict[str, str] = {  # kind -> "module:function" of (header, arrays)
    "model": "rfmdp.formats.model_records:model_from_record",
    "solution": "rfmdp.formats.records:solution_from_record",
    "policy": "rfmdp.formats.records:policy_from_record",
    "learning run": "rfmdp.learning.run:run_from_record",
}


def save(obj: object, path: str | os.PathLike[str]) -> None:
    """Write an object to a file, which is replaced only when all is written.

    Raises UnsupportedError if the type has no record, FileError if the file cannot be written.
    """
    kind, header, arrays = to_record(obj)
    place = Path(path)
    with replacing(place) as temporary, temporary.open("x+b") as file:
        write_archive(file, kind, header, arrays)
        sign(file)
        file.flush()
        os.fsync(file.fileno())


def load(path: str | os.PathLike[str], kind: str | None = None) -> Any:
    """Return the object in a file that `save` wrote, or the model in one of another tool.

    `.tra`, `.umb`, `.drn` and the endings of the PRISM language are models; any other file must be
    one that `save` wrote. `kind` is what must be in it, "model" for instance; by default anything.

    Raises
    ------
    FileError
        If the file is missing, damaged, truncated, of another kind, or from a newer version.
    """
    place = Path(path)
    foreign = (EXPLICIT | PRISM).get(place.suffix)
    if foreign is None:
        return load_saved(place, kind)
    _require_kind(place, "model", kind)
    return _with_origin(_named(foreign)(place), place)


def load_saved(path: str | os.PathLike[str], kind: str | None = None) -> Any:
    """Return the object in a file that `save` wrote; see `load`."""
    place = Path(path)
    content, header, arrays = load_record(place)
    _require_kind(place, content, kind)
    if content not in READERS:
        raise FileError(
            f"{place}: holds a {content}, which this version of rfmdp cannot read; it reads: "
            f"{', '.join(sorted(READERS))}."
        )
    try:
        return _named(READERS[content])(header, arrays)
    except KeyError as error:
        raise FileError(f"{place}: holds a {content} without {error}; make it again.") from error
    except ResourceError:
        raise
    except (
        RfmdpError, ArithmeticError, TypeError, ValueError, AttributeError, IndexError,
        RecursionError,
    ) as error:  # fmt: skip
        # whoever altered and signed a file may have put anything anywhere
        lines = [line.strip() for line in (str(error) or type(error).__name__).splitlines()]
        reason = " ".join(lines[:2]).rstrip(".")
        raise FileError(
            f"{place}: holds a {content} that is not well formed ({reason})."
        ) from error


def _require_kind(place: Path, content: str, kind: str | None) -> None:
    if kind is not None and content != kind:
        raise FileError(f"{place}: must hold a {kind}, holds a {content}; give another file.")


def _with_origin(model: FactoredMDP, place: Path) -> FactoredMDP:
    """Return a model that knows its file; one made of a text does so already."""
    if model.provenance is not None:
        return model
    digest = hashlib.sha256(place.read_bytes()).hexdigest()
    origin = Provenance(place.name, digest, version=__version__)
    return replace(model, provenance=origin)


def _named(place: str) -> Any:
    """Return the function at "module:function"; imported when it is needed."""
    module, function = place.split(":")
    return getattr(importlib.import_module(module), function)
