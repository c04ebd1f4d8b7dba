"""Words of the command line to objects: the only place where strings name methods."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

from rfmdp.errors import ModelError

if TYPE_CHECKING:
    from rfmdp.inner.protocol import Inner
    from rfmdp.model.arrays import FactoredMDP

MOST_RUNS = 10_000
NORMS = {"l1": 1.0, "l2": 2.0, "linf": math.inf}
METHODS = (
    "exact, vertices, interval, mccormick, mccormick:printed, mccormick:simplex, sequential, "
    "radius-sum, radius-sum:plain, alternating"
)


def inner_method(word: str) -> Inner:
    """Return the inner solver that a word names."""
    from rfmdp import inner

    methods: dict[str, Callable[[], Inner]] = {
        "exact": inner.Exact,
        "vertices": inner.VertexEnumeration,
        "interval": inner.IntervalArithmetic,
        "mccormick": inner.McCormick,
        "mccormick:simplex": lambda: inner.McCormick(inner.Variant.SIMPLEX),
        "mccormick:printed": lambda: inner.McCormick(inner.Variant.PRINTED),
        "sequential": inner.Sequential,
        "radius-sum": inner.RadiusSum,
        "radius-sum:plain": lambda: inner.RadiusSum(inner.Composition.SUM),
        "alternating": inner.Alternating,
    }
    if word not in methods:
        raise ModelError(f"--inner must be one of {', '.join(methods)}; got '{word}'.")
    return methods[word]()


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


def experiments(texts: Iterable[str]) -> list[dict[str, str]]:
    """Return the values of all runs: a range `low:high` or `low:step:high` stands for many.

    >>> [run["N"] for run in experiments(["N=1:3,p=0.5"])]
    ['1', '2', '3']
    >>> [run["p"] for run in experiments(["p=0:0.25:0.5"])]
    ['0.0', '0.25', '0.5']
    """
    found = constants(texts)
    values = [_range(name, value) for name, value in found.items()]
    return [dict(zip(found, chosen, strict=True)) for chosen in product(*values)]


def _range(name: str, text: str) -> list[str]:
    ends = [piece.strip() for piece in text.split(":")]
    if len(ends) == 1 or "?" in text:
        return [text]
    numbers = [Fraction(end) if _number(end) is not None else None for end in ends]
    low, high, step = numbers[0], numbers[-1], numbers[1] if len(ends) == 3 else Fraction(1)
    if len(ends) > 3 or low is None or high is None or step is None or step <= 0 or low > high:
        raise ModelError(
            f"--const {name}: a range must be LOW:HIGH or LOW:STEP:HIGH with numbers, LOW <= HIGH "
            f"and STEP > 0; got '{text}'."
        )
    count = int((high - low) / step) + 1
    if count > MOST_RUNS:
        raise ModelError(f"--const {name}: a range must have at most {MOST_RUNS} values.")
    whole = all(re.fullmatch(r"[+-]?\d+", end) for end in ends)
    exact = (low + k * step for k in range(count))
    return [str(int(x)) if whole else repr(float(x)) for x in exact]


@dataclass(frozen=True, slots=True)
class Radii:
    """What the user wants to be uncertain."""

    radius: float | None = None
    norm: str | None = None  # l1:R, linf:R, lp2:R
    parts: tuple[str, ...] = ()  # MODULE=R or ACTION=R
    floor: float = 0.0
    nominal: bool = field(default=False)

    def apply(self, model: FactoredMDP) -> FactoredMDP:
        """Return the model with the sets that were asked for.

        Raises
        ------
        ModelError
            For words that do not fit the model; for a radius on a model that has sets already.
        """
        from rfmdp.language.radius import with_uncertainty

        model = model.nominal() if self.nominal else model
        if self.radius is None and self.norm is None and not self.parts:
            if self.floor:
                raise ModelError("--floor must go with --radius, --set linf:R or --radius-of.")
            return model
        marginals = model.marginals
        if bool((marginals.lower < marginals.upper).any()):
            raise ModelError(
                "--radius must be around a nominal model, this one has sets of its own; add "
                "--nominal to drop them first."
            )
        exponent, radius = self._norm()
        modules, actions = self._parts(model)
        return with_uncertainty(
            model, radius, exponent=exponent, by_module=modules, by_action=actions, floor=self.floor
        )

    def _norm(self) -> tuple[float, float]:
        if self.norm is None:
            return math.inf, self.radius or 0.0
        if self.radius is not None:
            raise ModelError("--radius and --set must not be given both; --radius R is linf:R.")
        word, _, radius = self.norm.partition(":")
        exponent = NORMS.get(word)
        if exponent is None and word.startswith("lp"):
            exponent = _number(word[2:])
        size = _number(radius)
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
