"""Entry point of the command line.

A command is a module in `commands/` with a function `command`, or a group `app`, and a word in
`COMMANDS`. Commands import little but typer at the top: `rfmdp --help` is quick. Exit codes:
0 done and certified, 1 user error (one line on standard error), 2 finished but not certified, 130
interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from rfmdp import __version__
from rfmdp.cli.interrupts import INTERRUPTED, noted, stop_if_interrupted
from rfmdp.cli.output import CERTIFIED, USER_ERROR, complain
from rfmdp.errors import RfmdpError

COMMANDS = (
    *("check", "solve", "learn", "reproduce", "domains", "simulate", "verify", "convert", "policy"),
    *("explain", "evaluate", "report"),
)
BROKEN_PIPE = 141

# typer brings its own click or uses the installed one; this is its base of all usage errors
USAGE_ERRORS = cast(type[Exception], typer.BadParameter.__mro__[2])


class Commands(TyperGroup):
    """The table of commands, imported when they are asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the commands in their order."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command."""
        if cmd_name not in COMMANDS:
            meant = "".join(
                f"; did you mean '{w}'?" for w in get_close_matches(cmd_name, COMMANDS, 1)
            )
            listed = ", ".join(COMMANDS)
            raise typer.BadParameter(f"No such command '{cmd_name}', there are {listed}{meant}")
        found = import_module(f"rfmdp.cli.commands.{cmd_name}")
        if hasattr(found, "app"):
            return typer.main.get_command(found.app)
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(cmd_name)(found.command)
        return typer.main.get_command(single)


app = typer.Typer(
    cls=Commands,
    add_completion=True,
    invoke_without_command=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Robust factored Markov decision processes: solve and learn, with certified bounds."""
    if version:
        print(f"rfmdp {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.BadParameter("a command is needed.")


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; never raises."""
    try:
        with noted():
            return _run(arguments)
    except RfmdpError as error:
        complain(str(error))
    except USAGE_ERRORS as error:
        complain(_usage(error))
    except (KeyboardInterrupt, typer.Abort):
        complain("interrupted; files are as they were, or complete.")
        return INTERRUPTED
    except BrokenPipeError:
        leave_pipe()
        return BROKEN_PIPE
    except OSError as error:
        complain(f"{error.filename or 'a file'}: {error.strerror or error}; check the disk.")
    except MemoryError:
        complain("the machine's memory is used up; try a smaller model.")
    return USER_ERROR


def _run(arguments: Sequence[str] | None) -> int:
    group = typer.main.get_command(app)
    code = group.main(args=arguments, prog_name="rfmdp", standalone_mode=False)
    sys.stdout.flush()
    stop_if_interrupted()
    if code == INTERRUPTED:  # typer turns Ctrl-C into this
        raise KeyboardInterrupt
    return code if isinstance(code, int) else CERTIFIED


def leave_pipe() -> None:
    """Say nothing more: whoever read our output has left, and Python flushes once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage(error: Any) -> str:
    text = " ".join(str(error.format_message()).removeprefix("Invalid value: ").split())
    context = getattr(error, "ctx", None)
    text = text if text.endswith("?") else text.removesuffix(".") + "."
    return f"{text} See `{context.command_path if context else 'rfmdp'} --help`."
