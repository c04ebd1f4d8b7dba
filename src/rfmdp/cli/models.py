"""Models: `check`, `convert` and `domains`; how all commands read and build theirs."""

from __future__ import annotations

import math
import shlex
import sys
import textwrap
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any

import rfmdp as rf
from rfmdp.answers.answer import fitted, open_constants
from rfmdp.answers.property import Property, parse_properties
from rfmdp.cli import arguments as args, terminal
from rfmdp.domains import DOMAINS, Domain, find
from rfmdp.errors import FileError, ModelError, PrismError, RfmdpError
from rfmdp.formats.files import load_record
from rfmdp.language.check import Work, model_type
from rfmdp.language.parse import parse_model
from rfmdp.language.source import read_text
from rfmdp.model.frontier import Progress
from rfmdp.model.lattice import AnyModel, written
from rfmdp.opening import Blueprint
from rfmdp.record import Provenance
from rfmdp.writing import check_writable

WIDTH = 80
ENDINGS = (".tra", ".umb", ".rfmdp")  # of files that `convert` writes
SHARED = ("properties", "definitions")  # of a file, for texts beside it


@args.command
def check(
    model: args.Model,
    props: args.Props = None,
    prop: args.Prop = (),
    const: args.Const = (),
) -> int:
    """Read, build and validate a model and its properties.

    Prints sizes, problems and warnings; exit code 1 if something is wrong.
    """
    values = args.constants(const)
    requests = chosen_properties(model, props, prop)
    started = time.perf_counter()
    built = build_written(read_blueprint(model), values, also_known=open_constants(requests))
    print("\n".join(_facts(built, time.perf_counter() - started)))
    issues = rf.validate(built)
    print("\n".join(issues) or "The model is well formed.")
    failed = bool(issues)
    for one in requests:
        try:
            kind = one.bind(built, values).type.value
        except RfmdpError as error:
            terminal.complain(str(error))
            kind, failed = "error", True
        print(f"property    {kind:<8}{one.text}")
    return terminal.USER_ERROR if failed else terminal.CERTIFIED


def _facts(model: rf.FactoredMDP, seconds: float) -> Iterator[str]:
    largest = int(model.marginals.sizes.max(initial=0))
    facts = {
        "type": model_type(model).value,
        "states": f"{model.states:,} ({len(model.initial)} initial)",
        "rows": f"{model.rows:,}",
        "transitions": f"{model.transitions:,}",
        "marginals": f"{len(model.marginals):,} (up to {largest} outcomes)",
        "factors": ", ".join(model.factors),
        "actions": ", ".join(name for name in model.actions if name),
        "variables": ", ".join(f"{v.name}:[{v.low}..{v.high}]" for v in model.variables),
        "labels": ", ".join(sorted(model.labels)),
        "rewards": ", ".join(name or "(unnamed)" for name in model.rewards),
        "built in": f"{seconds:.3f} s",
    }
    for name, fact in facts.items():
        yield f"{name:<12}{fact or 'none'}"


@args.command
def domains(
    name: Annotated[str | None, "Domain to describe; all if left out."] = None,
) -> None:
    """List the domains that MODEL may name; describe one."""
    print("\n".join(_listing(DOMAINS.values()) if name is None else _description(find(name))))


def _listing(domains: Iterable[Domain]) -> Iterator[str]:
    yield f"{'domain':<15}{'version':<11}{'states':>9}{'transitions':>13}  about"
    for domain in domains:
        sizes = [
            f"{title:<11}{version.states:>9,}{version.transitions:>13,}"
            for title, version in domain.versions.items()
        ]
        about = textwrap.wrap(domain.about, WIDTH - 50)
        for cells in zip_longest([domain.name], sizes, about, fillvalue=""):
            yield "{:<15}{:<33}  {}".format(*cells).rstrip()
    yield ""
    yield "`rfmdp domains NAME` describes one, `rfmdp solve NAME --radius 0.025` solves it"
    yield "as published, `--const instance=textbook` and the like pick another version."


def _description(domain: Domain) -> Iterator[str]:
    yield from textwrap.wrap(f"{domain.title} ({domain.name}): {domain.about}", WIDTH)
    yield from ("", f"property   {domain.prop}")
    for title, version in domain.versions.items():
        yield ""
        yield f"{title:<11}{version.states:,} states, {version.transitions:,} transitions"
        words = ",".join(f"{name}={args.shown(x)}" for name, x in version.constants.items())
        yield f"{'':<11}--const {words}"
    if domain.differences:
        yield from ("", *textwrap.wrap(f"As published: {domain.differences}", WIDTH))
    yield from ("", f"file       {domain.path}")


@args.command
def convert(
    model: args.Model,
    target: Annotated[str, "File to write: .tra, .umb or .rfmdp."],
    const: args.Const = (),
    radius: args.Radius = None,
    nominal: args.Nominal = False,
) -> None:
    """Write a model in another format.

    A factored model is flattened for explicit formats; a note says what that changed.
    """
    place = Path(target)
    if place.suffix not in ENDINGS:
        raise ModelError(f"{target}: must end in one of {', '.join(ENDINGS)}.")
    check_writable(place)
    write_model(build_written(read_blueprint(model), args.constants(const), radius, nominal), place)


def write_model(model: rf.FactoredMDP, place: Path) -> None:
    """Write a model as its ending says; print the files, and a note on what they cannot say."""
    if place.suffix == ".rfmdp":
        rf.save(model, place)
        print(place)
        return
    write = rf.write_umb if place.suffix == ".umb" else rf.write_prism_explicit
    files = write(model, place)
    if files.note:
        terminal.complain(files.note, kind="note")
    for path in files.paths:
        print(path)


def read_blueprint(model: str) -> Blueprint:
    """Return the model that MODEL names, not built yet; `-` is a text on standard input."""
    if model != args.STANDARD_INPUT:
        with terminal.spoken_warnings():
            return rf.read_model(model)
    return Blueprint(model, parsed=parse_model(args.standard_input("a model"), "<standard input>"))


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
    exponent, size = args.exponent_and_size(radius or "0")
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
) -> rf.FactoredMDP:
    """Return a model with its transitions written out; show how far that has come."""
    with terminal.spoken_warnings(), terminal.showing_progress("building") as show:
        return written(
            build_model(
                blueprint, values, radius, nominal, also_known=also_known, progress=show.building
            )
        )


def rebuilt(model: str, constants: Mapping[str, str], result: str) -> rf.FactoredMDP:
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
        missing = blueprint.parsed.open - set(constants)
        named |= {k: args.shown(x) for k, x in origin.constants.items() if k in missing}
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
    requests = chosen_properties(model, props, prop)
    blueprint = read_blueprint(model)
    requests = requests or own_property(blueprint)
    if len(requests) != 1:
        raise ModelError(
            f"This command is for one property, found {len(requests)}; pick with --prop."
        )
    unset = open_constants(requests)
    request = replace(requests[0], constants={k: v for k, v in values.items() if k in unset})
    for fit in fitted(blueprint, [request], values):
        if isinstance(fit, PrismError):
            raise fit
    return request, blueprint


def property_and_model(
    model: str, props: str | None, prop: Sequence[str], const: Sequence[str], radius: str | None
) -> tuple[Property, rf.FactoredMDP]:
    """Return the one property that a command is about, and its model, built."""
    values = args.constants(const)
    request, blueprint = property_and_blueprint(model, props, prop, values)
    return request, build_written(blueprint, values, radius, also_known=set(request.constants))


def chosen_properties(model: str, file: str | None, texts: Sequence[str]) -> list[Property]:
    """Return the properties that the user asks about; none if neither is given.

    A number counts the properties of the file from 1. A text may use constants, labels, formulas
    and names of properties of the file.
    """
    if model == file == args.STANDARD_INPUT:
        raise FileError("- -: the model or the properties must be a file, both are standard input.")
    listed: list[Property] = []
    if file == args.STANDARD_INPUT:
        listed = parse_properties(args.standard_input("properties"), "<standard input>")
    elif file is not None:
        if "[" in file and not Path(file).exists():
            raise FileError(f"{file}: no such file; give the text of a property with --prop.")
        listed = parse_properties(read_text(file), file)
    if file is not None and not listed and not texts:
        raise FileError(f"{file}: must have at least one property, found 0; or give --prop.")
    return [one for text in texts for one in _named(text, listed)] if texts else listed


def own_property(blueprint: Blueprint) -> list[Property]:
    """Return the property of a domain, for who names none."""
    if blueprint.is_domain:
        return parse_properties(find(blueprint.name).prop)
    raise ModelError(
        "A property is needed: give a file of properties after the model, or --prop "
        "'Pmaxmin=? [ F \"goal\" ]'."
    )


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
    properties = parse_properties(text, "--prop")
    if not listed or not properties:
        return properties
    both: dict[str, Any] = {
        k: (*getattr(properties[0].file, k), *getattr(listed[0].file, k)) for k in SHARED
    }
    return [replace(one, file=replace(one.file, **both)) for one in properties]
