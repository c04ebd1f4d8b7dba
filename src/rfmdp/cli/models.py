"""The model and the properties that a command is about: read, built, with the sets of options."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rfmdp.answers.batch import misfits, open_constants
from rfmdp.answers.property import Property, load_properties, parse_properties
from rfmdp.cli.arguments import STANDARD_INPUT, constants, exponent_and_size, standard_input
from rfmdp.cli.output import showing_progress, spoken_warnings
from rfmdp.errors import FileError, ModelError
from rfmdp.formats.archive import load_record
from rfmdp.language.checked import Work
from rfmdp.language.parse import parse_model
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.frontier import Progress
from rfmdp.model.lattice import AnyModel, written
from rfmdp.opening import Blueprint, domain_of, read_model
from rfmdp.record import Provenance

SHARED = ("properties", "constants", "formulas", "labels")  # of a file, for texts beside it


def read_blueprint(model: str) -> Blueprint:
    """Return the model that MODEL names, not built yet; `-` is a text on standard input."""
    if model != STANDARD_INPUT:
        with spoken_warnings():
            return read_model(model)
    return Blueprint(model, parsed=parse_model(standard_input("a model"), "<standard input>"))


def build_model(
    blueprint: Blueprint,
    values: Mapping[str, str],
    radius: str | None,
    nominal: bool = False,
    *,
    work: Work | None = None,
    also_known: Collection[str] = (),
    progress: Progress | None = None,
    scheduler: str | None = None,
) -> AnyModel:
    """Return a model with sets of a radius; a domain knows what a plain one means for it.

    If what will be asked of it is known, it may come by its factors, or in blocks for the workers
    of a Dask scheduler.
    """
    exponent, size = exponent_and_size(radius or "0")
    if radius is not None and ":" not in radius and blueprint.is_domain and not nominal:
        values, radius = {**values, "radius": repr(size)}, None
    polyhedral = exponent in (1.0, math.inf)
    model = blueprint.build_for(
        work if polyhedral or scheduler is not None else None,
        values, also_known=also_known, progress=progress, scheduler=scheduler,
    )  # fmt: skip
    model = model.nominal() if nominal else model
    if radius is None:
        return model
    if model.uncertain:
        raise ModelError(
            "--radius must be around a nominal model, this one has sets of its own; add --nominal "
            "to drop them first."
        )
    return model.with_radius(size, exponent=exponent)


def build_written(
    blueprint: Blueprint,
    values: Mapping[str, str],
    radius: str | None = None,
    nominal: bool = False,
    also_known: Collection[str] = (),
) -> FactoredMDP:
    """Return a model with its transitions written out; show how far that has come."""
    with spoken_warnings(), showing_progress("building") as show:
        return written(
            build_model(
                blueprint, values, radius, nominal, also_known=also_known, progress=show.building
            )
        )


def rebuilt(model: str, constants: Mapping[str, str], result: str) -> FactoredMDP:
    """Return the model of a result, built again from its file or domain.

    Constants that are not given, and sets, are those that the result names.
    """
    _, header, _ = load_record(result)
    stored = header.get("solution", header)["model"].get("provenance")
    origin = Provenance() if stored is None else Provenance.from_json(stored)
    sets: dict[str, Any] = dict(origin.sets)
    kind = sets.pop("kind")
    blueprint, named = read_blueprint(model), dict(constants)
    if blueprint.parsed is not None:
        missing = {c.name for c in blueprint.parsed.constants if c.value is None} - set(constants)
        unset = {k: x for k, x in origin.constants.items() if k in missing}
        named |= {k: str(x).lower() if isinstance(x, bool) else repr(x) for k, x in unset.items()}
    if kind == "domain":
        named.setdefault("radius", repr(sets["radius"]))
    built = written(blueprint.build_for(None, named))
    if kind == "balls":
        sets["exponent"] = float(sets["exponent"])
        return built.nominal().with_radius(sets.pop("radius"), **sets)
    if kind == "other":
        raise ModelError(f"--model {model}: the sets of the result were made in Python; compare it "
                         "there: verify(result, model=...).")  # fmt: skip
    return built.nominal() if kind == "nominal" else built


def command_line() -> str:
    """Return the command line of this process."""
    return shlex.join(["rfmdp", *sys.argv[1:]])


def property_and_blueprint(
    model: str, props: str | None, prop: Sequence[str], values: Mapping[str, str]
) -> tuple[Property, Blueprint]:
    """Return the one property that a command is about, and its model, read; they fit together."""
    requests = properties_about(model, props, prop)
    if len(requests) != 1:
        raise ModelError(
            f"This command is for one property, found {len(requests)}; pick with --prop."
        )
    unset = open_constants(requests)
    request = replace(requests[0], constants={k: v for k, v in values.items() if k in unset})
    blueprint = read_blueprint(model)
    for error in misfits(blueprint, [request], values):
        if error is not None:
            raise error
    return request, blueprint


def property_and_model(
    model: str, props: str | None, prop: Sequence[str], const: Sequence[str], radius: str | None
) -> tuple[Property, FactoredMDP]:
    """Return the one property that a command is about, and its model, built."""
    values = constants(const)
    request, blueprint = property_and_blueprint(model, props, prop, values)
    return request, build_written(blueprint, values, radius, also_known=set(request.constants))


def chosen_properties(model: str, file: str | None, texts: Sequence[str]) -> list[Property]:
    """Return the properties that the user asks about; none if neither is given.

    A number counts the properties of the file from 1. A text may use constants, labels, formulas
    and names of properties of the file.
    """
    if model == file == STANDARD_INPUT:
        raise FileError("- -: the model or the properties must be a file, both are standard input.")
    listed = [] if file is None else _load(file)
    if file is not None and not listed and not texts:
        raise FileError(f"{file}: must have at least one property, found 0; or give --prop.")
    return [one for text in texts for one in _named(text, listed)] if texts else listed


def properties_about(model: str, file: str | None, texts: Sequence[str]) -> list[Property]:
    """Return the properties that the user asks about; without any, that of a domain."""
    requests = chosen_properties(model, file, texts)
    if requests:
        return requests
    if model != STANDARD_INPUT:
        if (domain := domain_of(model)) is not None:
            return parse_properties(domain.prop)
        if not Path(model).exists():
            raise FileError(f"{model}: there is no such file.")
    raise ModelError(
        "A property is needed: give a file of properties after the model, or --prop "
        "'Pmaxmin=? [ F \"goal\" ]'."
    )


def _load(file: str) -> list[Property]:
    if file == STANDARD_INPUT:
        return parse_properties(standard_input("properties"), filename="<standard input>")
    if "[" in file and not Path(file).exists():
        raise FileError(f"{file}: no such file; give the text of a property with --prop.")
    return load_properties(file)


def _named(text: str, listed: list[Property]) -> list[Property]:
    word = text.strip()
    if word.isdecimal():
        if not 1 <= int(word) <= len(listed):
            raise ModelError(
                f"--prop {word}: a number must be that of a property in a file after the model, "
                f"in 1..{len(listed)}."
            )
        return [listed[int(word) - 1]]
    named = [prop for prop in listed if prop.name == word.strip('"')]
    if named:
        return named
    properties = parse_properties(text, filename="--prop")
    if not listed:
        return properties
    joined = []
    for one in properties:
        both: dict[str, Any] = {
            k: (*getattr(one.file, k), *getattr(listed[0].file, k)) for k in SHARED
        }
        joined.append(replace(one, file=replace(one.file, **both)))
    return joined
