"""Entries of headers of records, looked at before they are used, and what several records share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np

from rfmdp.errors import FileError, UnsupportedError
from rfmdp.language.ast import Expr
from rfmdp.language.parse import parse_expression
from rfmdp.language.write import write_expression
from rfmdp.model.arrays import Variable
from rfmdp.sets.marginals import Marginals
from rfmdp.types import AnyArray

T = TypeVar("T")


def marginals_of(arrays: Mapping[str, AnyArray]) -> Marginals:
    """Return the sets of a record, made again by their constructors, which check them."""
    needed = [f.name for f in fields(Marginals) if f.name != "stated"]
    sets = Marginals.from_columns(**{name: arrays[f"marginals.{name}"] for name in needed})
    stated = arrays.get("marginals.stated")
    if stated is None:
        return sets
    inside = stated.shape == (2, len(sets.nominal)) and stated.dtype == np.float64
    if not inside or not np.all((stated >= 0.0) & (stated <= 1.0)):
        raise FileError("stated bounds must be two probabilities per outcome")
    return replace(sets, stated=stated)


def variable_of(described: Any) -> Variable:
    """Return a variable of a header."""
    return Variable(
        field(described, "name", str),
        field(described, "low", int),
        field(described, "high", int),
        field(described, "boolean", bool),
    )


def plain_formula(name: str, value: object) -> Any:
    """Return a constant as it is, and an expression as its text in the PRISM language."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, Expr):
        return {"expression": write_expression(value)}
    raise UnsupportedError(
        f"save: formula {name!r} must be a number, a boolean or an expression of the PRISM "
        f"language, got {type(value).__name__}."
    )


def formula_of(name: str, stored: Any) -> Any:
    """Return a constant or an expression of a header."""
    if isinstance(stored, dict):
        return parse_expression(field(stored, "expression", str))
    if not isinstance(stored, bool | int | float):
        raise FileError(f"formula {name!r} must be a number or an expression, got {stored!r}")
    return stored


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


def texts_of(header: Any, name: str) -> list[str]:
    """Return an entry of a header that must be texts."""
    words = field(header, name, list)
    if not all(isinstance(word, str) for word in words):
        raise FileError(f"{name} must be texts")
    return words
