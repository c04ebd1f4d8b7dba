"""Entry point of the command line.

A command is a function in a file of this folder, and a line in `COMMANDS`, so that `rfmdp --help`
is quick. Exit codes: 0 done and certified, 1 user error (one line on standard error), 2 finished
but not certified or an alarm, 130 interrupted, 141 nobody reads the output.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from rfmdp import __version__
from rfmdp.cli import terminal
from rfmdp.errors import AssumptionAlarm, RfmdpError

COMMANDS = {  # in the order of the help: the file, and what is said about it
    "check": ("models", "Read, build and validate a model and its properties."),
    "solve": ("solve", "Answer properties of a model, with proven bounds and a policy."),
    "learn": ("learn", "Learn a policy with a guarantee, from samples or recorded data."),
    "domains": ("models", "List the domains that MODEL may name; describe one."),
    "simulate": ("results", "Simulate a policy, to estimate what a property measures."),
    "verify": ("results", "Prove a saved result again, by an independent checker."),
    "convert": ("models", "Write a model in another format."),
    "policy": ("results", "Write the policy of a result, or the model with it fixed."),
    "explain": ("results", "Explain a decision: values of actions, nature's answers."),
    "evaluate": ("results", "Evaluate a policy with the worst, best and nominal nature."),
    "report": ("results", "Write one page with results and an explorer of every policy."),
}
BROKEN_PIPE = 141
COMPLETING = "_RFMDP_COMPLETE"  # variable by which a shell asks how words may go on


class Commands(click.Group):
    """The table of commands, imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in their order."""
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table without an import."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name in COMMANDS:
            module = import_module(f"rfmdp.cli.{COMMANDS[cmd_name][0]}")
            command: click.Command = getattr(module, cmd_name)
            return command
        if ctx.resilient_parsing:  # a shell asks how a mistake may go on
            return None
        from difflib import get_close_matches

        meant = "".join(f"; did you mean '{w}'?" for w in get_close_matches(cmd_name, COMMANDS, 1))
        listed = ", ".join(COMMANDS)
        raise click.UsageError(f"No such command '{cmd_name}', there are {listed}{meant}")


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="rfmdp %(version)s", help="Print the version.")
@click.pass_context
def app(context: click.Context) -> None:
    """Robust factored Markov decision processes: solve and learn, with certified bounds."""
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise click.UsageError("a command is needed.")


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; never raises."""
    try:
        with terminal.noted():
            return _run(sys.argv[1:] if arguments is None else arguments)
    except AssumptionAlarm as alarm:
        terminal.complain(f"alarm, nothing is guaranteed: {alarm}")
        return terminal.NOT_CERTIFIED
    except RfmdpError as error:
        terminal.complain(str(error))
    except click.ClickException as error:
        text = " ".join(error.format_message().split())
        context = getattr(error, "ctx", None)
        text = text if text.endswith("?") else text.removesuffix(".") + "."
        terminal.complain(f"{text} See `{context.command_path if context else 'rfmdp'} --help`.")
    except KeyboardInterrupt:
        terminal.complain("interrupted; files are as they were, or complete.")
        return terminal.INTERRUPTED
    except BrokenPipeError:
        leave_pipe()
        return BROKEN_PIPE
    except OSError as error:
        # files are written by `replacing`, which names them: what has no name is our output
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        unnamed = "standard output" if full else "a file"
        terminal.complain(
            f"{error.filename or unnamed}: {error.strerror or error}; check the disk."
        )
    except MemoryError:
        terminal.complain("the machine's memory is used up; try a smaller model.")
    return terminal.USER_ERROR


def _run(arguments: Sequence[str]) -> int:
    if COMPLETING in os.environ:
        from click.shell_completion import shell_complete

        return shell_complete(app, {}, "rfmdp", COMPLETING, os.environ[COMPLETING])
    try:
        # not `app.main`, which has its own ways with Ctrl-C and closed pipes
        with app.make_context("rfmdp", list(arguments)) as context:
            code = app.invoke(context)
    except click.exceptions.Exit as ending:  # after --help
        code = ending.exit_code
    sys.stdout.flush()
    terminal.stop_if_interrupted()
    return terminal.CERTIFIED if code is None else code


def leave_pipe() -> None:
    """Say nothing more: whoever read our output has left, and Python flushes once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
