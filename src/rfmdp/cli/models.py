"""The model that a command is about: read, built, and with the sets that were asked for."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rfmdp.answers.batch import misfits, open_constants
from rfmdp.answers.property import Property, load_properties, parse_properties
from rfmdp.cli.arguments import STANDARD_INPUT, constants, finite_number, standard_input
from rfmdp.cli.output import showing_progress, spoken_warnings
from rfmdp.errors import FileError, ModelError
from rfmdp.language.checked import Work
from rfmdp.language.parse import parse_model
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.frontier import Progress
from rfmdp.model.lattice import AnyModel, written
from rfmdp.opening import Blueprint, names_domain, read_model, require_file_or_domain
from rfmdp.record import Provenance

NORMS = {"l1": 1.0, "l2": 2.0, "linf": math.inf}


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """What the user wants to be uncertain."""

    radius: float | None = None  # of boxes around all probabilities
    norm: str | None = None  # l1:R, linf:R, lp2:R
    floor: float = 0.0
    nominal: bool = False

    @property
    def just_radius(self) -> bool:
        """Whether a radius is wanted, and nothing else."""
        return self == Uncertainty(self.radius) and self.radius is not None

    @property
    def polyhedral(self) -> bool:
        """Whether sets are boxes or L1 balls, or nothing is to be uncertain."""
        return self._norm()[0] in (1.0, math.inf)

    def apply(self, model: AnyModel) -> AnyModel:
        """Return the model with the sets that were asked for.

        Raises
        ------
        ModelError
            For words that do not fit the model; for a radius on a model that has sets already.
        """
        model = model.nominal() if self.nominal else model
        if self.radius is None and self.norm is None:
            if self.floor:
                raise ModelError("--floor must go with --radius or --set linf:R.")
            return model
        if model.uncertain:
            option = "--set" if self.radius is None else "--radius"
            raise ModelError(
                f"{option} must be around a nominal model, this one has sets of its own; add "
                "--nominal to drop them first."
            )
        exponent, size = self._norm()
        return model.with_radius(size, self.floor, exponent=exponent)

    def _norm(self) -> tuple[float, float]:
        if self.norm is None:
            return math.inf, self.radius or 0.0
        if self.radius is not None:
            raise ModelError("--radius and --set must not be given both; --radius R is linf:R.")
        word, _, text = self.norm.partition(":")
        exponent = NORMS.get(word)
        if exponent is None and word.startswith("lp"):
            exponent = finite_number(word[2:])
        size = finite_number(text)
        if exponent is None or not exponent >= 1.0 or size is None or size < 0.0:
            raise ModelError(
                f"--set must be l1:R, linf:R or lpP:R with P >= 1 and R >= 0 (lp2:0.1, say); got "
                f"'{self.norm}'."
            )
        return exponent, size


def read_blueprint(model: str) -> Blueprint:
    """Return the model that MODEL names, not built yet; `-` is a text on standard input."""
    if model != STANDARD_INPUT:
        with spoken_warnings():
            return read_model(model)
    return Blueprint(model, parsed=parse_model(standard_input("a model"), "<standard input>"))


def build_with_sets(
    blueprint: Blueprint, values: Mapping[str, str], uncertainty: Uncertainty, **settings: Any
) -> FactoredMDP:
    """Return a model with sets, its transitions written out; see `build_to_solve`."""
    return written(build_to_solve(blueprint, values, uncertainty, None, **settings))


def build_to_solve(
    blueprint: Blueprint,
    values: Mapping[str, str],
    uncertainty: Uncertainty,
    work: Work | None,
    *,
    also_known: Collection[str] = (),
    progress: Progress | None = None,
    scheduler: str | None = None,
) -> AnyModel:
    """Return a model with sets; a domain knows what a plain radius means for it.

    If what will be asked of it is known, it may come by its factors, or in blocks for the workers
    of a Dask scheduler.
    """
    if uncertainty.just_radius and blueprint.is_domain:
        values = {**values, "radius": repr(uncertainty.radius)}
        uncertainty = Uncertainty()
    model = blueprint.build_for(
        work if uncertainty.polyhedral or scheduler is not None else None,
        values,
        also_known=also_known,
        progress=progress,
        scheduler=scheduler,
    )
    return uncertainty.apply(model)


def rebuilt(model: str, constants: Mapping[str, str], origin: Provenance | None) -> FactoredMDP:
    """Return the model of a result, built again from its file or domain.

    Constants that are not given, and sets, are those that the result names.

    Raises
    ------
    ModelError
        If the result does not say how its sets were made.
    """
    origin = origin or Provenance()
    sets: dict[str, Any] = dict(origin.sets)
    kind = sets.pop("kind")
    blueprint = read_blueprint(model)
    named = dict(constants)
    if blueprint.parsed is not None:
        missing = {c.name for c in blueprint.parsed.constants if c.value is None} - set(constants)
        stored = {k: x for k, x in origin.constants.items() if k in missing}
        named |= {k: str(x).lower() if isinstance(x, bool) else repr(x) for k, x in stored.items()}
    if kind == "domain":
        named.setdefault("radius", repr(sets["radius"]))
    built = blueprint.build(named)
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
    """Return the one property that a command is about, and its model, which is not built yet.

    Raises
    ------
    PrismError
        If the property does not fit the model's text.
    """
    request = one_property(model, props, prop, values)
    blueprint = read_blueprint(model)
    for error in misfits(blueprint, [request], values):
        if error is not None:
            raise error
    return request, blueprint


def property_and_model(
    model: str,
    props: str | None,
    prop: Sequence[str],
    const: Sequence[str],
    uncertainty: Uncertainty,
) -> tuple[Property, FactoredMDP]:
    """Return the one property that a command is about, and its model, built."""
    values = constants(const)
    request, blueprint = property_and_blueprint(model, props, prop, values)
    with spoken_warnings(), showing_progress("building") as show:
        built = build_with_sets(
            blueprint, values, uncertainty,
            also_known=set(request.constants), progress=show.building,
        )  # fmt: skip
    return request, built


def chosen_properties(model: str, file: str | None, texts: Sequence[str]) -> list[Property]:
    """Return the properties that the user asks about; none if neither is given.

    A number counts the properties of the file from 1. A text may use constants, labels, formulas
    and names of properties of the file.

    Raises
    ------
    RfmdpError
        For a file or text that cannot be read, a file without properties, a number that is too
        large; if model and properties should both come from standard input.
    """
    if model == file == STANDARD_INPUT:
        raise FileError("- -: the model or the properties must be a file, both are standard input.")
    listed = [] if file is None else _load(file)
    if not texts:
        if file is not None and not listed:
            raise FileError(f"{file}: must have at least one property, found 0; or give --prop.")
        return listed
    return [one for text in texts for one in _named(text, listed, file)]


def properties_about(model: str, file: str | None, texts: Sequence[str]) -> list[Property]:
    """Return the properties that the user asks about; without any, that of a domain.

    Raises
    ------
    RfmdpError
        If there are none, and as in `chosen_properties`.
    """
    requests = chosen_properties(model, file, texts)
    if requests:
        return requests
    if model != STANDARD_INPUT:
        if names_domain(model):
            from rfmdp.domains.table import find

            return parse_properties(find(model).prop)
        require_file_or_domain(model)
        if not Path(model).exists():
            raise FileError(f"{model}: there is no such file.")
    raise ModelError(
        "A property is needed: give a file of properties after the model, or --prop "
        "'Pmaxmin=? [ F \"goal\" ]'."
    )


def one_property(
    model: str, file: str | None, texts: Sequence[str], values: Mapping[str, str]
) -> Property:
    """Return the one property of a command that needs one, with the values of its constants."""
    requests = properties_about(model, file, texts)
    if len(requests) != 1:
        raise ModelError(
            f"This command is for one property, found {len(requests)}; pick with --prop."
        )
    unset = open_constants(requests)
    return replace(requests[0], constants={k: v for k, v in values.items() if k in unset})


def _load(file: str) -> list[Property]:
    if file == STANDARD_INPUT:
        return parse_properties(standard_input("properties"), filename="<standard input>")
    try:
        return load_properties(file)
    except FileError as error:
        hint = "; give the text of a property with --prop" if "[" in file else ""
        raise FileError(str(error).removesuffix(".") + f"{hint}.") from None


def _named(text: str, listed: list[Property], file: str | None) -> list[Property]:
    word = text.strip()
    if word.isdecimal():
        number = int(word)
        if file is None:
            raise ModelError(
                f"--prop {number}: a number must be that of a property in a file; give one after "
                "the model, or the text of a property."
            )
        if not 1 <= number <= len(listed):
            raise ModelError(f"--prop: a number must be in 1..{len(listed)}, found {number}.")
        return [listed[number - 1]]
    named = [prop for prop in listed if prop.name == word.strip('"')]
    if named:
        return named
    properties = parse_properties(text, filename="--prop")
    if not listed:
        return properties
    shared = listed[0].file
    return [
        replace(
            one,
            file=replace(
                one.file,
                properties=(*one.file.properties, *shared.properties),
                constants=(*one.file.constants, *shared.constants),
                formulas=(*one.file.formulas, *shared.formulas),
                labels=(*one.file.labels, *shared.labels),
            ),
        )
        for one in properties
    ]
