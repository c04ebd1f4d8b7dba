"""The words of a command line: which ones a command takes, and what they mean.

A command is a function, whose signature click reads:

    @command
    def solve(
        model: Annotated[str, "File of a model."],
        radius: Annotated[float | None, "--radius", "Radius of boxes."] = None,
    ) -> int: ...

is `rfmdp solve MODEL --radius FLOAT`: an option has its names before its help. A word without
default is required, a `bool` is a flag, a `tuple` takes many. The docstring is the help. What is
returned is the exit code; None is 0.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, get_args, get_origin

import click

import rfmdp as rf
from rfmdp.errors import FileError, ModelError
from rfmdp.inner import METHODS

if TYPE_CHECKING:
    from rfmdp.inner.protocol import Inner
    from rfmdp.model.lattice import AnyModel

MOST_RUNS = 10_000
STANDARD_INPUT = "-"
BALL = r"(?:l1|linf|lp\d[^:]*):"  # in front of a radius
WORD = click.Path(readable=False)  # any text: the shell completes names of files
WORD.name = "text"
T = TypeVar("T")
PROVEN = "leave it out; bounds are always proven, and --precision says how close they get"
OTHER_OPTIONS = {  # of PRISM and Storm
    **dict.fromkeys(("exact", "sound"), PROVEN),
    **dict.fromkeys(("pf", "pctl"), "the text of a property is given with --prop"),
    "prism": "leave it out; the model is the first argument",
}


class FunctionCommand(click.Command):
    """A function as a command; its help says what the arguments are, too."""

    def __init__(self, function: Callable[..., int | None]) -> None:
        self._arguments: list[tuple[str, str]] = []  # with their help
        parameters: list[click.Parameter] = []
        for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
            kind, *names, about = get_args(parameter.annotation)
            parameters.append(_parameter(name, kind, parameter.default, names, about))
            if not names:
                self._arguments.append((name.upper(), about))
        super().__init__(
            function.__name__, callback=function, params=parameters, help=inspect.getdoc(function)
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; whoever complains of them knows which command they are for."""
        words = [word.partition("=")[0] for word in args]
        for parameter in self.params:  # click would take the last one in silence
            both = [name for name in parameter.opts if name in words]
            if len(both) > 1:
                raise click.UsageError(f"{' and '.join(both)} say the same; give one of them", ctx)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            names = {name for parameter in self.params for name in parameter.opts}
            for word in words if isinstance(error, click.NoSuchOption) else ():
                bare = word.lstrip("-")
                if word in names or word == bare:
                    continue
                if f"--{bare}" in names:
                    raise click.UsageError(f"{word} must have two dashes, --{bare}", ctx) from None
                if bare in OTHER_OPTIONS:
                    raise click.UsageError(f"{word}: {OTHER_OPTIONS[bare]}", ctx) from None
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what is said about arguments, then about options."""
        if self._arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(self._arguments)
        super().format_options(ctx, formatter)


command = FunctionCommand


def _parameter(name: str, kind: Any, default: Any, names: list[str], about: str) -> click.Parameter:
    many = get_origin(kind) is tuple
    single = next((arg for arg in get_args(kind) if arg is not NoneType), kind)
    type_ = WORD if single is str else single
    settings: dict[str, Any] = {"type": type_, "required": default is inspect.Parameter.empty}
    if default not in (inspect.Parameter.empty, ()):
        settings["default"] = default
    if not names:
        return click.Argument([name], nargs=-1 if many else 1, **settings)
    is_flag = True if single is bool else None  # with False, no value is one (click 8.3)
    return click.Option(
        [name, *names], help=about, is_flag=is_flag, multiple=many, show_default=True, **settings
    )


# Arguments and options that several commands share.
INNER = ", ".join(METHODS)
Model = Annotated[
    str,
    "PRISM file (- for standard input), .tra, .umb, .drn, .rfmdp, or a name of `rfmdp domains`.",
]
Result = Annotated[str, "File that `rfmdp solve -o` or `learn -o` wrote."]
Props = Annotated[str | None, "File of properties in PRISM's language."]
Prop = Annotated[
    tuple[str, ...], "--prop", "Property: TEXT, or NAME or NUMBER in PROPS; repeatable."
]
Const = Annotated[tuple[str, ...], "--const", "Constants: A=1,B=0.5."]
Radius = Annotated[
    str | None,
    "--radius",
    "--set",
    "Radius R of boxes around all probabilities, or other balls: l1:R, linf:R, lp2:R.",
]
Nominal = Annotated[
    bool, "--nominal", "Drop the sets of the model: take its nominal probabilities."
]
Json = Annotated[bool, "--json", "Print JSON: an object in a line per property, or seed."]
Jobs = Annotated[int | None, "--jobs", "Processes; default: all cores."]
Scheduler = Annotated[
    str | None,
    "--scheduler",
    "Dask scheduler to send the work to, tcp://HOST:PORT; default: local cores.",
]
Precision = Annotated[float, "--precision", "Wanted width of the bounds, relative to the value."]
Quiet = Annotated[bool, "-q", "--quiet", "Print results only, and no progress."]


def standard_input(what: str) -> str:
    """Return the text on standard input, where a model or properties must be."""
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


def shown(value: bool | int | float | str) -> str:
    """Return a value as PRISM writes it; a text is one already.

    >>> shown(True), shown(0.5), shown(math.inf)
    ('true', '0.5', 'Infinity')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return str(value)


def json_number(value: bool | int | float | None) -> Any:
    """Return a value for JSON, which has no numbers for "Infinity" and "NaN"."""
    if isinstance(value, float) and not math.isfinite(value):
        return shown(value)
    return value


class Experiment(NamedTuple):
    """One run of many: the values of constants, and the radius around all probabilities."""

    constants: dict[str, str]
    radius: str | None

    def __str__(self) -> str:
        values = ", ".join(f"{name}={value}" for name, value in self.constants.items())
        radius = "" if self.radius is None else f"radius {self.radius}"
        return "; ".join(filter(None, [values and f"constants {values}", radius]))

    def record(self) -> dict[str, object]:
        """Return the fields that say which run it is."""
        record: dict[str, object] = {}
        if self.constants:
            record["constants"] = {name: plain_value(x) for name, x in self.constants.items()}
        if self.radius is not None:
            record["radius"] = plain_value(self.radius)
        return record


def experiments(texts: Iterable[str], radius: str | None = None) -> list[Experiment]:
    """Return all runs: a range `low:high` or `low:step:high` stands for many.

    >>> [run.constants["N"] for run in experiments(["N=1:3,p=0.5"])]
    ['1', '2', '3']
    >>> [run.radius for run in experiments([], "l1:0.01:0.01:0.03")]
    ['l1:0.01', 'l1:0.02', 'l1:0.03']
    """
    ranges = constants(texts)
    values = [_range(f"--const {name}", value) for name, value in ranges.items()]
    radii: list[str | None] = [None]
    if radius is not None:
        ball = re.match(BALL, radius)
        word = "" if ball is None else ball[0]
        radii = [word + size for size in _range("--radius", radius[len(word) :])]
        for text in radii:
            exponent_and_size(text or "")  # a mistake is found before a model is read
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

    numbers = [Fraction(end) for end in ends if finite_number(end) is not None]
    low, high = (numbers[0], numbers[-1]) if numbers else (1, 0)
    step = numbers[1] if len(numbers) == 3 else Fraction(1)
    if not len(ends) == len(numbers) <= 3 or step <= 0 or low > high:
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


def exponent_and_size(radius: str) -> tuple[float, float]:
    """Return the norm and the size of balls: `0.1` and `linf:0.1` are boxes.

    >>> exponent_and_size("0.1"), exponent_and_size("lp2:0.3")
    ((inf, 0.1), (2.0, 0.3))
    """
    word, _, text = radius.rpartition(":")
    exponent = {"": math.inf, "linf": math.inf, "l1": 1.0}.get(word)
    if word.startswith("lp"):
        exponent = finite_number(word[2:])
    size = finite_number(text)
    if exponent is None or not exponent >= 1.0 or size is None or size < 0.0:
        raise ModelError(
            "--radius must be a number R >= 0, or l1:R, linf:R, lpP:R with P >= 1 (lp2:0.1, say); "
            f"got '{radius}'."
        )
    return exponent, size


def solution_in(path: str) -> rf.Solution:
    """Return the solution in a file; of a learning run, the one behind its guarantee."""
    from rfmdp.formats.files import load

    result = load(path)
    if isinstance(result, rf.Run):
        if result.solution is None:
            raise FileError(
                f"{path}: the run has proven nothing, so it has no policy; go on learning."
            )
        return result.solution
    if isinstance(result, rf.Solution):
        return result.explicit()
    raise FileError(f"{path}: must hold a result of `rfmdp solve -o` or `learn -o`.")


def state_number(model: AnyModel, text: str | None) -> int:
    """Return the state that `x=1,y=2` or a number names; None is the initial one."""
    if text is None:
        return int(model.initial[0])
    if text.isdecimal() and int(text) < model.states:
        return int(text)
    pairs = (entry.partition("=")[::2] for entry in text.split(","))
    words = {name.strip(): plain_value(value.strip()) for name, value in pairs}
    values = {name: int(value) for name, value in words.items() if isinstance(value, int)}
    if len(values) < len(words):
        raise ModelError(
            f"--state must be like x=1,y=2 or a state's number, 0..{model.states - 1}; got "
            f"{text!r}."
        )
    return model.find(**values)


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
