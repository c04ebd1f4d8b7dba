"""A command is a function whose signature says which words it takes; click reads them.

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
from collections.abc import Callable, Collection
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import click

from rfmdp.inner import METHODS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


PROVEN = "leave it out; bounds are always proven, and --precision says how close they get"
TEXT = "the text of a property is given with --prop"
OTHER_OPTIONS = {  # of PRISM and Storm
    "exact": PROVEN,
    "sound": PROVEN,
    "pf": TEXT,
    "pctl": TEXT,
    "prism": "leave it out; the model is the first argument",
}


class FunctionCommand(click.Command):
    """A function as a command; its help says what the arguments are, too."""

    def __init__(self, function: Callable[..., int | None]) -> None:
        self._arguments: list[tuple[str, str]] = []  # with their help
        parameters: list[click.Parameter] = []
        hints = get_type_hints(function, include_extras=True)
        for name, parameter in inspect.signature(function).parameters.items():
            kind, *names, about = get_args(hints[name])
            parameters.append(_parameter(name, kind, parameter.default, names, about))
            if not names:
                self._arguments.append((name.upper(), about))
        super().__init__(
            function.__name__, callback=function, params=parameters, help=inspect.getdoc(function)
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; whoever complains of them knows which command they are for."""
        words, names = list(args), {name for parameter in self.params for name in parameter.opts}
        for parameter in self.params:  # click would take the last one in silence
            both = [name for name in parameter.opts if any(w.split("=")[0] == name for w in words)]
            if len(both) > 1:
                raise click.UsageError(f"{' and '.join(both)} say the same; give one of them", ctx)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            hints = filter(None, (_hint(word, names) for word in words))
            if isinstance(error, click.NoSuchOption) and (hint := next(hints, "")):
                raise click.UsageError(hint, ctx) from None
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what is said about arguments, then about options."""
        if self._arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(self._arguments)
        super().format_options(ctx, formatter)


def _hint(word: str, names: Collection[str]) -> str:
    """Return what a word of PRISM or Storm is here, or nothing."""
    name = word.partition("=")[0]
    bare = name.lstrip("-")
    if name == bare or name in names:
        return ""
    if f"--{bare}" in names:
        return f"{name} must have two dashes, --{bare}"
    return f"{name}: {OTHER_OPTIONS[bare]}" if bare in OTHER_OPTIONS else ""


def command(function: Callable[..., int | None]) -> FunctionCommand:
    """Make a function a command of the same name."""
    return FunctionCommand(function)


def _parameter(name: str, kind: Any, default: Any, names: list[str], about: str) -> click.Parameter:
    many = get_origin(kind) is tuple
    single = next((arg for arg in get_args(kind) if arg is not NoneType), kind)
    settings: dict[str, Any] = {"type": single, "required": default is inspect.Parameter.empty}
    if default not in (inspect.Parameter.empty, ()):
        settings["default"] = default
    if single is str:
        settings["shell_complete"] = _files
    if not names:
        return click.Argument([name], nargs=-1 if many else 1, **settings)
    is_flag = True if single is bool else None  # with False, no value is one (click 8.3)
    return click.Option(
        [name, *names], help=about, is_flag=is_flag, multiple=many, show_default=True, **settings
    )


def _files(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Let the shell complete names of files."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(begun, type="file")]


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
