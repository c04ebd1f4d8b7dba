"""The model that a command is about: read, built, and with the sets that were asked for."""

from __future__ import annotations

import math
import shlex
import sys
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rfmdp.answers.batch import misfits
from rfmdp.answers.property import Property
from rfmdp.cli.arguments import STANDARD_INPUT, constants, finite_number, standard_input
from rfmdp.cli.output import showing_progress, spoken_warnings
from rfmdp.cli.properties import one_property
from rfmdp.errors import ModelError, PrismWarning
from rfmdp.language.parse import parse_model
from rfmdp.language.radius import with_uncertainty
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.frontier import Deadlock, Progress
from rfmdp.opening import Blueprint, read_model
from rfmdp.record import Provenance

NORMS = {"l1": 1.0, "l2": 2.0, "linf": math.inf}


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """What the user wants to be uncertain."""

    radius: float | None = None  # of boxes around all probabilities
    norm: str | None = None  # l1:R, linf:R, lp2:R
    parts: tuple[str, ...] = ()  # MODULE=R or ACTION=R
    floor: float = 0.0
    nominal: bool = False

    @property
    def just_radius(self) -> bool:
        """Whether a radius is wanted, and nothing else."""
        return self == Uncertainty(self.radius) and self.radius is not None

    def apply(self, model: FactoredMDP) -> FactoredMDP:
        """Return the model with the sets that were asked for.

        Raises
        ------
        ModelError
            For words that do not fit the model; for a radius on a model that has sets already.
        """
        model = model.nominal() if self.nominal else model
        if self.radius is None and self.norm is None and not self.parts:
            if self.floor:
                raise ModelError("--floor must go with --radius, --set linf:R or --radius-of.")
            return model
        if model.uncertain:
            given = {"--radius": self.radius, "--set": self.norm, "--radius-of": self.parts or None}
            option = next(name for name, value in given.items() if value is not None)
            raise ModelError(
                f"{option} must be around a nominal model, this one has sets of its own; add "
                "--nominal to drop them first."
            )
        exponent, size = self._norm()
        modules, actions = self._parts(model)
        return with_uncertainty(
            model, size, exponent=exponent, by_module=modules, by_action=actions, floor=self.floor
        )

    def warn_if_all(self) -> None:
        """Warn of balls so large that nature may take any distribution of the same support."""
        exponent, size = self._norm()
        _warn_if_all("--radius" if self.norm is None else "--set", size, exponent)
        for text in self.parts:
            _warn_if_all("--radius-of", finite_number(text.rpartition("=")[2]) or 0.0, exponent)

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

    def _parts(self, model: FactoredMDP) -> tuple[dict[str, float], dict[str, float]]:
        modules: dict[str, float] = {}
        actions: dict[str, float] = {}
        for text in self.parts:
            name, _, value = (piece.strip() for piece in text.rpartition("="))
            radius = finite_number(value)
            if radius is None or radius < 0.0:
                raise ModelError(f"--radius-of must be NAME=R with R >= 0; got '{text}'.")
            if name in model.factors:
                modules[name] = radius
            elif name in model.actions:
                actions[name] = radius
            else:
                known = ", ".join(n for n in (*model.factors, *model.actions) if n)
                raise ModelError(
                    f"--radius-of {name}: must be a module or action of the model; it has: {known}."
                )
        return modules, actions


def read_blueprint(model: str) -> Blueprint:
    """Return the model that MODEL names, not built yet; `-` is a text on standard input."""
    if model != STANDARD_INPUT:
        with spoken_warnings():
            return read_model(model)
    return Blueprint(model, parsed=parse_model(standard_input("a model"), "<standard input>"))


def build_with_sets(
    blueprint: Blueprint,
    given: Mapping[str, str],
    uncertainty: Uncertainty,
    *,
    also_known: Collection[str] = (),
    deadlock: Deadlock = Deadlock.LOOP,
    progress: Progress | None = None,
) -> FactoredMDP:
    """Return a model with sets; a domain knows what a plain radius means for it."""
    uncertainty.warn_if_all()
    if uncertainty.just_radius and blueprint.is_domain:
        given = {**given, "radius": repr(uncertainty.radius)}
        uncertainty = Uncertainty()
    model = blueprint.build(given, also_known=also_known, deadlock=deadlock, progress=progress)
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
        return with_uncertainty(built.nominal(), sets.pop("radius"), **sets)
    if kind == "other":
        raise ModelError(f"--model {model}: the sets of the result were made in Python; compare it "
                         "there: verify(result, model=...).")  # fmt: skip
    return built.nominal() if kind == "nominal" else built


def with_command(model: FactoredMDP) -> FactoredMDP:
    """Return a model that knows the command line of this process."""
    return model.with_provenance(command=shlex.join(["rfmdp", *sys.argv[1:]]))


def property_and_blueprint(
    model: str, props: str | None, prop: Sequence[str], given: Mapping[str, str]
) -> tuple[Property, Blueprint]:
    """Return the one property that a command is about, and its model, which is not built yet.

    Raises
    ------
    PrismError
        If the property does not fit the model's text.
    """
    asked = one_property(model, props, prop, given)
    blueprint = read_blueprint(model)
    for error in misfits(blueprint, [asked], given):
        if error is not None:
            raise error
    return asked, blueprint


def property_and_model(
    model: str,
    props: str | None,
    prop: Sequence[str],
    const: Sequence[str],
    uncertainty: Uncertainty,
) -> tuple[Property, FactoredMDP]:
    """Return the one property that a command is about, and its model, built."""
    given = constants(const)
    asked, blueprint = property_and_blueprint(model, props, prop, given)
    with spoken_warnings(), showing_progress("building") as show:
        built = build_with_sets(
            blueprint, given, uncertainty,
            also_known=set(asked.constants), progress=show.building,
        )  # fmt: skip
    return asked, built


def _warn_if_all(option: str, radius: float, exponent: float) -> None:
    largest = 2.0 ** (1.0 / exponent)  # two distributions are never farther apart
    if radius > largest:
        warnings.warn(
            f"{option}: distributions differ by {largest:.3g} at most in this norm, so a radius of "
            f"{radius:g} lets nature take any; give a smaller one if that is not meant.",
            PrismWarning,
            stacklevel=2,
        )
