"""What the words of the command line mean: numbers, ranges, methods, states, saved results."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Mapping
from itertools import product
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from rfmdp.errors import FileError, ModelError

if TYPE_CHECKING:
    from rfmdp.inner.protocol import Inner
    from rfmdp.model.lattice import AnyModel
    from rfmdp.outer.solution import Solution

MOST_RUNS = 10_000
STANDARD_INPUT = "-"
T = TypeVar("T")


def standard_input(what: str) -> str:
    """Return the text on standard input, where a model or properties must be.

    Raises
    ------
    FileError
        If there is none.
    """
    text = sys.stdin.read()
    if not text.strip():
        raise FileError(
            f"-: {what} must be on standard input, it is empty; pipe it in or name a file."
        )
    return text


def one_of(option: str, word: str, choices: Mapping[str, T]) -> T:
    """Return what the word of an option names."""
    if word not in choices:
        raise ModelError(f"{option} must be one of {', '.join(choices)}; got '{word}'.")
    return choices[word]


def inner_method(word: str) -> Inner:
    """Return the inner solver that a word names."""
    from rfmdp.inner.methods import METHODS

    return one_of("--inner", word, METHODS)()


def constants(texts: Iterable[str]) -> dict[str, str]:
    """Return the values of `A=1,B=0.5`, each read later as an expression.

    >>> constants(["A=1,B=max(2,3)", "C=true"])
    {'A': '1', 'B': 'max(2,3)', 'C': 'true'}
    """
    values: dict[str, str] = {}
    for text in texts:
        for entry in re.split(r",(?=\s*\w+\s*=)", text):
            name, sign, value = (piece.strip() for piece in entry.partition("="))
            if not sign or not re.fullmatch(r"[A-Za-z_]\w*", name) or not value:
                raise ModelError(f"--const must be NAME=VALUE,NAME=VALUE,...; got '{entry}'.")
            if values.setdefault(name, value) != value:
                raise ModelError(
                    f"--const {name}: must have one value, got {values[name]} and {value}."
                )
    return values


def plain_value(text: str) -> bool | int | float | str:
    """Return the number or truth value that a text is; an expression stays a text.

    >>> [plain_value(text) for text in ("3", "0.5", "true", "2*k")]
    [3, 0.5, True, '2*k']
    """
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"[+-]?[0-9]+", text):
        return int(text) if len(text) < 20 else text
    value = finite_number(text)
    return text if value is None else value


class Experiment(NamedTuple):
    """One run of many: the values of constants, and the radius around all probabilities."""

    constants: dict[str, str]
    radius: float | None

    def __str__(self) -> str:
        values = ", ".join(f"{name}={value}" for name, value in self.constants.items())
        radius = "" if self.radius is None else f"radius {self.radius!r}"
        return "; ".join(filter(None, [values and f"constants {values}", radius]))


def experiments(texts: Iterable[str], radius: str | None = None) -> list[Experiment]:
    """Return all runs: a range `low:high` or `low:step:high` stands for many.

    >>> [run.constants["N"] for run in experiments(["N=1:3,p=0.5"])]
    ['1', '2', '3']
    >>> [run.radius for run in experiments([], "0.01:0.01:0.03")]
    [0.01, 0.02, 0.03]
    """
    ranges = constants(texts)
    values = [_range(f"--const {name}", value) for name, value in ranges.items()]
    radii: list[float | None] = [None]
    if radius is not None:
        radii = [number("--radius", text) for text in _range("--radius", radius)]
    runs = [
        Experiment(dict(zip(ranges, chosen, strict=True)), size)
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
    from fractions import Fraction  # slow to import

    numbers = [Fraction(end) if finite_number(end) is not None else None for end in ends]
    low = numbers[0]
    high = numbers[-1]
    step = numbers[1] if len(ends) == 3 else Fraction(1)
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


def solution_in(path: str) -> Solution:
    """Return the solution in a file; of a learning run, the one behind its guarantee."""
    from rfmdp.formats.files import load_saved
    from rfmdp.learning.run import Run
    from rfmdp.outer.solution import Solution

    result = load_saved(path)
    if isinstance(result, Run):
        if result.solution is None:
            raise FileError(
                f"{path}: the run has proven nothing, so it has no policy; go on learning."
            )
        return result.solution
    if isinstance(result, Solution):
        return result.explicit()
    raise FileError(f"{path}: must hold a result of `rfmdp solve -o` or `learn -o`.")


def state_number(model: AnyModel, text: str | None) -> int:
    """Return the state that `x=1,y=2` or a number names; None is the initial one."""
    if text is None:
        return int(model.initial[0])
    if text.isdecimal() and int(text) < model.states:
        return int(text)
    values = {}
    for entry in text.split(","):
        name, _, value = entry.partition("=")
        word = {"true": "1", "false": "0"}.get(value.strip(), value.strip())
        if not word.lstrip("-").isdecimal():
            raise ModelError(
                f"--state must be like x=1,y=2 or a state's number, 0..{model.states - 1}; got "
                f"{text!r}."
            )
        values[name.strip()] = int(word)
    return model.find(**values)


def number(option: str, text: str) -> float:
    """Return the number that an option must be."""
    value = finite_number(text)
    if value is None:
        raise ModelError(f"{option} must be a number, got '{text}'.")
    return value


def check_positive(**options: float | None) -> None:
    """Raise if the number of an option is given and not above zero."""
    for name, value in options.items():
        if value is not None and not value > 0:
            raise ModelError(f"--{name.replace('_', '-')} must be > 0, got {value}.")


def finite_number(text: str) -> float | None:
    """Return the finite number that a text is; None if it is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
