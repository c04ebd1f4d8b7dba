"""A command is a function whose signature says which words it takes; click reads them.

    @command
    def solve(
        model: Annotated[str, Argument("File of a model.")],
        radius: Annotated[float | None, Option("Radius of boxes.")] = None,
    ) -> int: ...

is `rfmdp solve MODEL --radius FLOAT`. A word without default is required, a `bool` is a flag, a
`tuple` takes many. The docstring is the help. What is returned is the exit code; None is 0.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import click

from rfmdp.inner.methods import METHODS

OTHER_OPTIONS = {  # of PRISM and Storm, with two dashes
    "--exact": "leave it out; bounds are always proven, and --precision says how close they get",
    "--sound": "leave it out; bounds are always proven, and --precision says how close they get",
    "--pf": "the text of a property is given with --prop",
    "--pctl": "the text of a property is given with --prop",
    "--prism": "leave it out; the model is the first argument",
    "--fixdl": "leave it out; states without choice get a loop, and a warning",
    "--nofixdl": "leave it out; states without choice get a loop, and a warning",
}

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


@dataclass(frozen=True, slots=True)
class Argument:
    """A word that is known by its place."""

    help: str


@dataclass(frozen=True, slots=True)
class Option:
    """A word that is known by a name: that of the parameter, unless others are given."""

    help: str
    names: str = ""  # "-o --output"
    section: str = ""  # title in the help for this option and those behind it


class FunctionCommand(click.Command):
    """A function as a command; its help has arguments and options in sections."""

    def __init__(self, function: Callable[..., int | None]) -> None:
        self._words: dict[str, Argument | Option] = {}
        parameters: list[click.Parameter] = []
        hints = get_type_hints(function, include_extras=True)
        for name, parameter in inspect.signature(function).parameters.items():
            kind, self._words[name] = get_args(hints[name])
            parameters.append(_parameter(name, kind, parameter.default, self._words[name]))
        super().__init__(
            function.__name__,
            callback=function,
            params=parameters,
            help=inspect.getdoc(function),
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; whoever complains of them knows which command they are for."""
        words = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            names = {name for parameter in self.params for name in parameter.opts}
            if hint := next(filter(None, (_hint(word, names) for word in words)), ""):
                raise click.UsageError(hint, ctx) from None
            error.ctx = error.ctx or ctx
            raise
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what is said about arguments and options, section by section."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        title = "Options"
        for parameter in self.get_params(ctx):
            word = self._words.get(parameter.name or "")
            if isinstance(word, Argument):
                sections["Arguments"].append((parameter.human_readable_name, word.help))
                continue
            # --help, the last one, is not a word of the function
            title = "Options" if word is None else word.section or title
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def _hint(word: str, names: Collection[str]) -> str:
    """Return what a word of PRISM or Storm is here, or nothing."""
    name = word.partition("=")[0]
    long = f"--{name.lstrip('-')}"
    if not name.startswith("-") or name in names:
        return ""
    if long in names:
        return f"{name} must have two dashes, {long}"
    return f"{name}: {OTHER_OPTIONS[long]}" if long in OTHER_OPTIONS else ""


def command(function: Callable[..., int | None]) -> FunctionCommand:
    """Make a function a command of the same name."""
    return FunctionCommand(function)


def _parameter(name: str, kind: Any, default: Any, word: Argument | Option) -> click.Parameter:
    many = get_origin(kind) is tuple
    single = next((arg for arg in get_args(kind) if arg is not NoneType), kind)
    settings: dict[str, Any] = {"type": single, "required": default is inspect.Parameter.empty}
    if default not in (inspect.Parameter.empty, ()):
        settings["default"] = default
    if single is str:
        settings["shell_complete"] = _files
    if isinstance(word, Argument):
        return click.Argument([name], nargs=-1 if many else 1, **settings)
    names = word.names.split() or ["--" + name.replace("_", "-")]
    return click.Option(
        [name, *names],
        help=word.help,
        is_flag=True if single is bool else None,  # with False, no value is one (click 8.3)
        multiple=many,
        show_default=default != "",
        **settings,
    )


def _files(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Let the shell complete names of files."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(begun, type="file")]


# Arguments and options that several commands share.
INNER = ", ".join(METHODS)
SETS, RUNS = "Uncertainty sets", "Runs"  # titles of sections
MODEL = Argument(
    "PRISM file (- for standard input), .tra, .umb, .rfmdp, or a name of `rfmdp domains`."
)
Model = Annotated[str, MODEL]
Result = Annotated[str, Argument("File that `rfmdp solve -o` or `learn -o` wrote.")]
Props = Annotated[str | None, Argument("File of properties in PRISM's language.")]
Prop = Annotated[tuple[str, ...], Option("Property: TEXT, or NAME or NUMBER in PROPS; repeatable.")]
Const = Annotated[tuple[str, ...], Option("Constants: A=1,B=0.5.")]
Radius = Annotated[float | None, Option("Radius of boxes around all probabilities.", section=SETS)]
NORMS = "l1:R, linf:R, lp2:R"
OtherSet = Annotated[str | None, Option(f"Other sets of radius R: {NORMS}.", "--set")]
DomainName = Annotated[str | None, Argument("Domain to describe; all if left out.")]
Floor = Annotated[float, Option("Least probability of every outcome in boxes.")]
Nominal = Annotated[bool, Option("Drop the sets of the model: take its nominal probabilities.")]
Json = Annotated[bool, Option("Print one JSON object.", "--json")]
Jobs = Annotated[int | None, Option("Processes; default: all cores.", section=RUNS)]
Scheduler = Annotated[
    str | None,
    Option("Dask scheduler to send the work to, tcp://HOST:PORT; default: local cores."),
]
