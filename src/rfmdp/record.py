"""Records: the plain form in which objects are saved. A type joins by registering `to_record`.

A record holds words and numbers: settings as objects with a kind (`described`), assumptions by
their words (`Assumption`). Sentences for people are made of them, and never stand in a file. A
record of a model says where the model comes from (`Provenance`), for people, and for whoever wants
to build it again.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field as default, fields, is_dataclass
from enum import Enum
from functools import singledispatch
from typing import Any, TypeAlias, TypeVar

import numpy as np

from rfmdp.errors import FileError, UnsupportedError
from rfmdp.types import AnyArray

SENTENCES: dict[str, str] = {  # word of an assumption -> what is assumed
    "draws": "every sample of a marginal is an independent draw from one fixed distribution",
    "support": "the declared outcomes of a marginal are all its possible outcomes",
    "fixed-size":
        "the sample size of every marginal was fixed before sampling; bounds are read once",
    "ledger": "the error probabilities were fixed before the samples they are used for",
    "shared": "rows that share an identifier draw from the same distribution",
    "product": "the marginals of a row are drawn independently of each other",
    "structure": "states, actions and successors of outcomes of the model are as declared",
    "ties": "tied marginals are the same distribution, as declared",
    "tied": "marginals with equal probabilities in the model are the same unknown distribution",
    "prior": "{informed} of {marginals} marginals lie in the sets of the model",
    "declared-floor":
        "every declared outcome of a marginal has probability at least p_min = {p_min}",
    "rewards": "rewards of the model are as declared",
    "reward-range": "every reward lies in [{low}, {high}]",
    "mean-rewards":
        "every reward sample of an identifier has the same mean given all earlier samples",
    "recorded":
        "every transition of the source was recorded, none was left out because of what followed",
    "resets": "resets of the environment are independent of what happened before",
    "markov":
        "the observation of the environment is its state: what follows depends on nothing else",
}  # fmt: skip

Record: TypeAlias = tuple[str, dict[str, Any], dict[str, AnyArray]]  # kind, header, arrays
T = TypeVar("T")


@singledispatch
def to_record(obj: object) -> Record:
    """Return (kind, header, arrays) of an object; the header must be JSON, arrays not objects."""
    raise UnsupportedError(
        f"save: cannot write a {type(obj).__name__}; these can be written: "
        + ", ".join(sorted(t.__name__ for t in to_record.registry if t is not object))
        + "."
    )


def field(header: Any, name: str, kind: type[T]) -> T:
    """Return an entry of a header, which must be of a type; a bool is no int."""
    if not isinstance(header, dict):
        raise FileError(f"{name} must stand in an object, found {header!r:.40}")
    content = header[name]
    if kind is float and type(content) is int:
        content = float(content)
    if type(content) is not kind:
        raise FileError(f"{name} must be a {kind.__name__}, found {content!r:.40}")
    return content


def texts(header: Any, name: str) -> list[str]:
    """Return an entry of a header that must be texts."""
    words = field(header, name, list)
    if not all(isinstance(word, str) for word in words):
        raise FileError(f"{name} must be texts")
    return words


def inside(prefix: str, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return the arrays of a part of a record, by their names there."""
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


FLOOR = ", every probability at least "
SETS: dict[str, tuple[tuple[str, ...], str]] = {  # kind -> fields, and words for people
    "text": ((), ""),
    "nominal": ((), "none: nominal probabilities"),
    "learned": ((), "learned from samples"),
    "other": ((), "other than those of the text"),
    "domain": (("radius",), "boxes of radius {radius}, as the domain defines them"),
    "balls": (
        ("exponent", "radius", "floor"),
        f"L{{exponent}} balls of radius {{radius}}{FLOOR}{{floor}}",
    ),
}
MAPPINGS = ("constants", "sets")


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a model comes from, as far as that is known; empty texts are not known.

    `sets` is an object with a kind: "text" (sets are those of the model's own text), "nominal"
    (none), "balls" (with exponent, radius, floor), "domain" (with radius: as the domain defines
    it), "learned", or "other" (made in Python).
    """

    name: str = ""  # of the file or domain, without its folder
    digest: str = ""  # SHA-256 of the model's text
    text: str = ""  # the model in the PRISM language
    constants: Mapping[str, Any] = default(default_factory=dict)
    sets: Mapping[str, Any] = default(default_factory=lambda: {"kind": "text"})
    command: str = ""  # the command line that made the result
    version: str = ""  # of rfmdp, when the model was built

    @staticmethod
    def of_text(name: str, text: str, constants: Mapping[str, Any]) -> Provenance:
        """Return the provenance of a model whose text is read from a file."""
        from rfmdp import __version__

        digest = hashlib.sha256(text.encode()).hexdigest()
        short = name.replace("\\", "/").rpartition("/")[2]
        return Provenance(short, digest, text, dict(constants), version=__version__)

    @staticmethod
    def from_json(stored: Any) -> Provenance:
        """Return what `asdict` made of one, or raise FileError."""
        kinds: dict[str, Any] = {
            f.name: dict if f.name in MAPPINGS else str for f in fields(Provenance)
        }
        try:
            made = Provenance(**{name: field(stored, name, kind) for name, kind in kinds.items()})
            names = SETS[field(made.sets, "kind", str)][0]
            numbers = [made.sets[n] for n in names if (n, made.sets[n]) != ("exponent", "inf")]
            fits = (len(stored), len(made.sets)) == (len(kinds), 1 + len(names))
            fits &= all(isinstance(x, int | float) for x in [*numbers, *made.constants.values()])
        except (KeyError, FileError):
            fits = False
        if not fits:
            raise FileError(f"provenance must have the texts and objects {', '.join(kinds)}")
        return made

    def lines(self) -> list[tuple[str, str]]:
        """Return what is known, each with a word before it; the model's text is left out."""
        numbers = {k: f"{x:g}" if isinstance(x, float) else x for k, x in self.sets.items()}
        digest = f", sha256 {self.digest[:16]}" if self.digest else ""
        pairs = [
            ("source", f"{self.name}{digest}" if self.name else ""),
            ("constants", ", ".join(f"{name}={value}" for name, value in self.constants.items())),
            ("sets", SETS[self.sets["kind"]][1].format(**numbers).removesuffix(f"{FLOOR}0")),
            ("command", self.command),
            ("made by", f"rfmdp {self.version}" if self.version else ""),
        ]
        return [(word, text) for word, text in pairs if text]


def balls(radius: object, exponent: float, floor: float) -> dict[str, Any]:
    """Return balls around nominal distributions as the `sets` of a provenance."""
    if not isinstance(radius, int | float):
        return {"kind": "other"}  # a radius per marginal
    norm = "inf" if math.isinf(exponent) else float(exponent)
    return {"kind": "balls", "exponent": norm, "radius": float(radius), "floor": floor}


class Assumption(str):
    """A sentence that a guarantee rests on. In a file stand its word and its numbers.

    >>> Assumption("reward-range", low=0.0, high=4.5)
    'every reward lies in [0, 4.5]'
    """

    word: str
    numbers: dict[str, float]

    def __new__(cls, word: str, **numbers: float) -> Assumption:
        """Return the sentence of a word of `SENTENCES`, with its numbers filled in."""
        shown = {k: np.format_float_positional(x, trim="-") for k, x in numbers.items()}
        sentence = super().__new__(cls, SENTENCES[word].format(**shown))
        sentence.word, sentence.numbers = word, numbers
        return sentence

    def __getnewargs_ex__(self) -> tuple[Any, ...]:
        return (self.word,), self.numbers


def assumption_to_json(sentence: str) -> dict[str, Any]:
    """Return an assumption as it stands in files; a source may have sentences of its own."""
    if isinstance(sentence, Assumption):
        return {"kind": sentence.word, **sentence.numbers}
    return {"kind": "own", "text": sentence}


def assumption_from_json(stored: Mapping[str, Any]) -> str:
    """Return the sentence of an assumption in a file, or raise FileError."""
    numbers = {k: x for k, x in stored.items() if k != "kind"}
    word = stored["kind"]
    if word == "own":
        return str(stored["text"])
    fits = word in SENTENCES and all(type(x) in (int, float) for x in numbers.values())
    if not fits:
        raise FileError(f"assumptions: this version does not know {word!r:.40}")
    return Assumption(word, **numbers)


def described(content: object, kind: str | None = None) -> Any:
    """Return settings as JSON can write them: objects have a kind, and their fields.

    The kind is the name of the class unless one is given.
    """
    if content is None or isinstance(content, bool | int | str):
        return content
    if isinstance(content, float):
        return content if math.isfinite(content) else str(content)
    if isinstance(content, Enum):
        return content.name.lower()
    if isinstance(content, list | tuple):
        return [described(each) for each in content]
    if isinstance(content, Mapping):
        return {str(name): described(each) for name, each in content.items()}
    inside = fields(content) if is_dataclass(content) else ()
    named = {f.name: described(getattr(content, f.name)) for f in inside}
    return {"kind": kind or type(content).__name__, **named}
