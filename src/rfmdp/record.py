"""Records: the plain form in which objects are saved. A type joins by registering `to_record`.

A record of a model says where the model comes from (`Provenance`), for people, and for whoever
wants to build it again.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import singledispatch
from types import MappingProxyType
from typing import Any, TypeAlias

from rfmdp.errors import FileError, UnsupportedError
from rfmdp.types import AnyArray

Record: TypeAlias = tuple[str, dict[str, Any], dict[str, AnyArray]]  # kind, header, arrays


@singledispatch
def to_record(obj: object) -> Record:
    """Return (kind, header, arrays) of an object; the header must be JSON, arrays not objects."""
    raise UnsupportedError(
        f"save: cannot write a {type(obj).__name__}; these can be written: "
        + ", ".join(sorted(t.__name__ for t in to_record.registry if t is not object))
        + "."
    )


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a model comes from, as far as that is known; empty texts are not known.

    `sets` is an object with a kind: "text" (sets are those of the model's own text), "nominal"
    (none), "balls" (with exponent, radius, floor, by_module, by_action), "domain" (with radius: as
    the domain defines it), "learned", or "other" (made in Python).
    """

    name: str = ""  # of the file or domain, without its folder
    digest: str = ""  # SHA-256 of the model's text
    text: str = ""  # the model in the PRISM language
    constants: Mapping[str, Any] = field(default_factory=dict)
    sets: Mapping[str, Any] = field(default_factory=lambda: {"kind": "text"})
    command: str = ""  # the command line that made the result
    version: str = ""  # of rfmdp, when the model was built

    @staticmethod
    def of_text(name: str, text: str, constants: Mapping[str, Any]) -> Provenance:
        """Return the provenance of a model whose text is read from a file."""
        from rfmdp import __version__

        digest = hashlib.sha256(text.encode()).hexdigest()
        short = name.replace("\\", "/").rpartition("/")[2]
        return Provenance(short, digest, text, dict(constants), version=__version__)

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON can write it."""
        return asdict(self)

    @staticmethod
    def from_json(stored: Any) -> Provenance:
        """Return what `to_json` made, or raise FileError."""
        kinds = {
            f.name: dict if f.name in ("constants", "sets") else str for f in fields(Provenance)
        }
        fits = isinstance(stored, dict) and set(stored) == set(kinds)
        if not fits or not all(isinstance(stored[k], kind) for k, kind in kinds.items()):
            raise FileError(f"provenance must have the texts and objects {', '.join(kinds)}")
        return Provenance(**stored)

    def lines(self) -> list[tuple[str, str]]:
        """Return what is known, each with a word before it; the model's text is left out."""
        constants = ", ".join(f"{name}={value}" for name, value in self.constants.items())
        digest = f", sha256 {self.digest[:16]}" if self.digest else ""
        pairs = [
            ("source", f"{self.name}{digest}" if self.name else ""),
            ("constants", constants),
            ("sets", _sets_in_words(self.sets)),
            ("command", self.command),
            ("made by", f"rfmdp {self.version}" if self.version else ""),
        ]
        return [(word, text) for word, text in pairs if text]


def balls(
    radius: object,
    *,
    exponent: float = math.inf,
    by_module: Mapping[str, float] = MappingProxyType({}),
    by_action: Mapping[str, float] = MappingProxyType({}),
    floor: float = 0.0,
) -> dict[str, Any]:
    """Return balls around nominal distributions as the `sets` of a provenance."""
    if not isinstance(radius, int | float):
        return {"kind": "other"}  # a radius per marginal
    radii = {"by_module": dict(by_module), "by_action": dict(by_action)}
    norm = "inf" if math.isinf(exponent) else float(exponent)
    return {"kind": "balls", "exponent": norm, "radius": float(radius), "floor": floor, **radii}


def _sets_in_words(sets: Mapping[str, Any]) -> str:
    """Return what sets a model has."""
    kind = sets.get("kind")
    if kind == "domain":
        return f"boxes of radius {sets.get('radius')}, as the domain defines them"
    if kind != "balls":
        kinds = {"nominal": "none: nominal probabilities", "learned": "learned from samples",
                 "other": "other than those of the text"}  # fmt: skip
        return kinds.get(str(kind), "")
    norm = {"inf": "boxes (L-infinity balls)", "1.0": "L1 balls", "2.0": "L2 balls"}
    exponent = str(sets.get("exponent"))
    words = f"{norm.get(exponent, f'Lp balls with p = {exponent}')} of radius {sets.get('radius')}"
    for word in ("by_module", "by_action"):
        for name, radius in (sets.get(word) or {}).items():
            words += f", {radius} for {word[3:]} {name!r}"
    floor = sets.get("floor")
    return f"{words}, every probability at least {floor}" if floor else words
