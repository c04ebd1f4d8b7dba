"""Words of the command line to objects: the only place where strings name methods."""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rfmdp.errors import FileError, ModelError

if TYPE_CHECKING:
    from rfmdp.inner.protocol import Inner
    from rfmdp.model.arrays import FactoredMDP
    from rfmdp.model.frontier import Deadlock, Progress
    from rfmdp.opening import Blueprint
    from rfmdp.outer.solution import Solution

MOST_RUNS = 10_000
STANDARD_INPUT = "-"
NORMS = {"l1": 1.0, "l2": 2.0, "linf": math.inf}


def inner_method(word: str) -> Inner:
    """Return the inner solver that a word names."""
    from rfmdp.inner import METHODS

    if word not in METHODS:
        raise ModelError(f"--inner must be one of {', '.join(METHODS)}; got '{word}'.")
    return METHODS[word]


def constants(texts: Iterable[str]) -> dict[str, str]:
    """Return the values of `A=1,B=0.5`, each read later as an expression.

    >>> constants(["A=1,B=max(2,3)", "C=true"])
    {'A': '1', 'B': 'max(2,3)', 'C': 'true'}
    """
    found: dict[str, str] = {}
    for text in texts:
        for part in re.split(r",(?=\s*\w+\s*=)", text):
            name, sign, value = (piece.strip() for piece in part.partition("="))
            if not sign or not re.fullmatch(r"[A-Za-z_]\w*", name) or not value:
                raise ModelError(f"--const must be NAME=VALUE,NAME=VALUE,...; got '{part}'.")
            if found.setdefault(name, value) != value:
                raise ModelError(
                    f"--const {name}: must have one value, got {found[name]} and {value}."
                )
    return found


class Experiment(NamedTuple):
    """One run of many: the values of constants, and the radius around all probabilities."""

    constants: dict[str, str]
    radius: float | None

    def __str__(self) -> str:
        radius = [] if self.radius is None else [f"radius {self.radius!r}"]
        values = [", ".join(f"{name}={value}" for name, value in self.constants.items())]
        return "; ".join([f"constants {v}" for v in values if v] + radius)


def experiments(texts: Iterable[str], radius: str | None = None) -> list[Experiment]:
    """Return all runs: a range `low:high` or `low:step:high` stands for many.

    >>> [run.constants["N"] for run in experiments(["N=1:3,p=0.5"])]
    ['1', '2', '3']
    >>> [run.radius for run in experiments([], "0.01:0.01:0.03")]
    [0.01, 0.02, 0.03]
    """
    found = constants(texts)
    values = [_range(f"--const {name}", value) for name, value in found.items()]
    radii: list[float | None] = [None]
    if radius is not None:
        radii = [number("--radius", text) for text in _range("--radius", radius)]
    runs = [
        Experiment(dict(zip(found, chosen, strict=True)), size)
        for chosen in product(*values)
        for size in radii
    ]
    if len(runs) > MOST_RUNS:
        raise ModelError(f"Ranges must give at most {MOST_RUNS} runs, found {len(runs)}.")
    return runs


def _range(option: str, text: str) -> list[str]:
    ends = [piece.strip() for piece in text.split(":")]
    if len(ends) == 1 or "?" in text:
        return [text]
    numbers = [Fraction(end) if _number(end) is not None else None for end in ends]
    low, high, step = numbers[0], numbers[-1], numbers[1] if len(ends) == 3 else Fraction(1)
    if len(ends) > 3 or low is None or high is None or step is None or step <= 0 or low > high:
        raise ModelError(
            f"{option}: a range must be LOW:HIGH or LOW:STEP:HIGH with numbers, LOW <= HIGH "
            f"and STEP > 0; got '{text}'."
        )
    count = int((high - low) / step) + 1
    if count > MOST_RUNS:
        raise ModelError(f"{option}: a range must have at most {MOST_RUNS} values.")
    whole = all(re.fullmatch(r"[+-]?\d+", end) for end in ends)
    exact = (low + k * step for k in range(count))
    return [str(int(x)) if whole else repr(float(x)) for x in exact]


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """What the user wants to be uncertain, apart from a radius around everything."""

    norm: str | None = None  # l1:R, linf:R, lp2:R
    parts: tuple[str, ...] = ()  # MODULE=R or ACTION=R
    floor: float = 0.0
    nominal: bool = False

    @property
    def plain(self) -> bool:
        """Whether nothing is said beyond a radius."""
        return self.norm is None and not self.parts and not self.floor and not self.nominal

    def apply(self, model: FactoredMDP, radius: float | None) -> FactoredMDP:
        """Return the model with the sets that were asked for.

        Raises
        ------
        ModelError
            For words that do not fit the model; for a radius on a model that has sets already.
        """
        model = model.nominal() if self.nominal else model
        if radius is None and self.norm is None and not self.parts:
            if self.floor:
                raise ModelError("--floor must go with --radius, --set linf:R or --radius-of.")
            return model
        from rfmdp.language.radius import with_uncertainty

        marginals = model.marginals
        if bool((marginals.lower < marginals.upper).any()):
            raise ModelError(
                "--radius must be around a nominal model, this one has sets of its own; add "
                "--nominal to drop them first."
            )
        exponent, size = self._norm(radius)
        modules, actions = self._parts(model)
        return with_uncertainty(
            model, size, exponent=exponent, by_module=modules, by_action=actions, floor=self.floor
        )

    def warn_if_all(self, radius: float | None) -> None:
        """Warn of balls so large that nature may take any distribution of the same support."""
        exponent, size = self._norm(radius)
        _warn_if_all("--radius" if self.norm is None else "--set", size, exponent)
        for text in self.parts:
            _warn_if_all("--radius-of", _number(text.rpartition("=")[2]) or 0.0, exponent)

    def _norm(self, radius: float | None) -> tuple[float, float]:
        if self.norm is None:
            return math.inf, radius or 0.0
        if radius is not None:
            raise ModelError("--radius and --set must not be given both; --radius R is linf:R.")
        word, _, text = self.norm.partition(":")
        exponent = NORMS.get(word)
        if exponent is None and word.startswith("lp"):
            exponent = _number(word[2:])
        size = _number(text)
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
            radius = _number(value)
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


def read(model: str) -> Blueprint:
    """Return the model that MODEL names, not built yet; `-` is a text on standard input."""
    from rfmdp.cli.output import spoken_warnings
    from rfmdp.opening import Blueprint, read_model

    if model != STANDARD_INPUT:
        with spoken_warnings():
            return read_model(model)
    from rfmdp.language.parse import parse_model

    return Blueprint(model, parsed=parse_model(sys.stdin.read(), "<standard input>"))


def built(
    blueprint: Blueprint,
    experiment: Experiment,
    uncertainty: Uncertainty,
    *,
    also_known: Collection[str] = (),
    deadlock: Deadlock | None = None,
    progress: Progress | None = None,
) -> FactoredMDP:
    """Return the model of an experiment; a domain knows what a plain radius means for it."""
    from rfmdp.model.frontier import Deadlock

    given, radius = experiment
    uncertainty.warn_if_all(radius)
    if radius is not None and uncertainty.plain and blueprint.is_domain:
        if not radius >= 0.0:
            raise ModelError(f"A radius must be >= 0, got {radius!r}.")
        given, radius = {**given, "radius": repr(radius)}, None
    model = blueprint.build(
        given, also_known=also_known, deadlock=deadlock or Deadlock.LOOP, progress=progress
    )
    return uncertainty.apply(model, radius)


def require_result(path: str) -> None:
    """Raise FileError if a path, or the name of a domain, cannot be that of a result.

    What is in an archive is left to whoever reads the file.
    """
    from rfmdp.opening import ENDINGS, is_domain

    try:
        named = is_domain(path)
    except FileError:
        named = False
    if named or (Path(path).suffix in ENDINGS[1:] and Path(path).exists()):
        kind = "the name of a domain" if named else "a model"
        raise FileError(
            f"{path}: is {kind}, a result is needed; make one first: "
            f"rfmdp solve {path} ... -o result.rfmdp."
        )
    if Path(path).is_file():
        with Path(path).open("rb") as file:
            if file.read(2) != b"PK":
                raise FileError(
                    f"{path}: is not a file of rfmdp; give a result, which `rfmdp solve -o` or "
                    "`rfmdp learn -o` wrote."
                )


def solution_in(path: str) -> Solution:
    """Return the solution in a file; of a learning run, the one behind its guarantee."""
    from rfmdp.formats.files import load
    from rfmdp.learning.run import Run
    from rfmdp.outer.solution import Solution

    require_result(path)
    found = load(path)
    if isinstance(found, Run):
        if found.solution is None:
            raise FileError(f"{path}: the run has proven nothing, so it has no policy; learn on.")
        return found.solution
    if isinstance(found, Solution):
        return found
    raise FileError(f"{path}: must hold a result of `rfmdp solve -o` or `learn -o`.")


def state_number(model: FactoredMDP, text: str | None) -> int:
    """Return the state that `x=1,y=2` or a number names; None is the initial one."""
    if text is None:
        return int(model.initial[0])
    if text.isdecimal() and int(text) < model.states:
        return int(text)
    values = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        word = {"true": "1", "false": "0"}.get(value.strip(), value.strip())
        if not word.lstrip("-").isdecimal():
            raise ModelError(
                f"--state must be like x=1,y=2 or a state's number, 0..{model.states - 1}; got "
                f"{text!r}."
            )
        values[name.strip()] = int(word)
    return model.find(**values)


def _warn_if_all(option: str, radius: float, exponent: float) -> None:
    from rfmdp.errors import PrismWarning

    largest = 2.0 ** (1.0 / exponent)  # two distributions are never farther apart
    if radius > largest:
        warnings.warn(
            f"{option}: distributions differ by {largest:.3g} at most in this norm, so a radius of "
            f"{radius:g} lets nature take any; give a smaller one if that is not meant.",
            PrismWarning,
            stacklevel=2,
        )


def number(option: str, text: str) -> float:
    """Return the number that an option must be."""
    value = _number(text)
    if value is None:
        raise ModelError(f"{option} must be a number, got '{text}'.")
    return value


def check_positive(option: str, value: float | None) -> None:
    """Raise if the number of an option is given and not above zero."""
    if value is not None and not value > 0:
        raise ModelError(f"{option} must be > 0, got {value}.")


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
