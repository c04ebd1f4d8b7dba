"""Signatures as command lines: kinds of words, help in sections, completion."""

from typing import Annotated

import click
import pytest
from click.shell_completion import ShellComplete

from rfmdp.cli.arguments import command
from rfmdp.cli.main import COMMANDS, app, run


@command
def paint(
    wall: Annotated[str, "What to paint."],
    colours: Annotated[tuple[str, ...], "With what."] = (),
    coats: Annotated[int, "--coats", "How often."] = 2,
    dry_hours: Annotated[float | None, "--dry-hours", "How long to wait."] = None,
    where: Annotated[tuple[str, ...], "--where", "Place; repeatable."] = (),
    set_: Annotated[bool, "-s", "--set", "Together."] = False,
) -> int:
    """Paint a wall.

    And look at it.
    """
    print((wall, colours, coats, dry_hours, where, set_))
    return coats


def said(words, capsys):
    """Return what the function got, and the exit code."""
    with paint.make_context("paint", words) as context:
        code = paint.invoke(context)
    return eval(capsys.readouterr().out), code


def test_defaults(capsys):
    """Words that are not given have the defaults of the signature."""
    assert said(["north"], capsys) == (("north", (), 2, None, (), False), 2)


def test_kinds_of_words(capsys):
    """Numbers are numbers, a tuple takes many, a bool is a flag; names may be given."""
    words = "north --dry-hours 1e-1 --where a --coats 3 --where b red -s blue"
    found = ("north", ("red", "blue"), 3, 0.1, ("a", "b"), True)
    assert said(words.split(), capsys) == (found, 3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Missing argument 'WALL'"),
        (["north", "--coats", "x"], "'x' is not a valid integer"),
        (["north", "--dry-hours", "x"], "'x' is not a valid float"),
        (["north", "--dry_hours", "1"], "No such option"),
    ],
)
def test_mistakes(words, message):
    """A word that does not fit is a usage error."""
    with pytest.raises(click.UsageError) as error:
        paint.make_context("paint", words)
    assert message in error.value.format_message()


def test_a_required_option():
    """An option without default must be given."""

    @command
    def hang(picture: Annotated[str, "-p", "--picture", "Which."]) -> None:
        """Hang a picture."""

    with pytest.raises(click.UsageError) as error:
        hang.make_context("hang", [])
    assert "Missing option '-p' / '--picture'" in error.value.format_message()


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_without_its_value(name, capsys):
    """It is a mistake, whatever kind the option is of; the line names the command's help."""
    for option in app.get_command(click.Context(app), name).params:
        if isinstance(option, click.Option) and not option.is_flag:
            assert run([name, option.opts[-1]]) == 1
            (line,) = capsys.readouterr().err.splitlines()
            assert f"'{option.opts[-1]}' requires an argument" in line
            assert f"`rfmdp {name} --help`" in line


def test_help_has_sections():
    """Arguments with what they are, then options."""
    with paint.make_context("paint", ["north"]) as context:
        text = paint.get_help(context)
    assert text.split("\n\n")[1:] == [
        "  Paint a wall.",
        "  And look at it.",
        "Arguments:\n  WALL     What to paint.\n  COLOURS  With what.",
        "Options:\n  --coats INTEGER    How often.  [default: 2]\n"
        "  --dry-hours FLOAT  How long to wait.\n"
        "  --where TEXT       Place; repeatable.\n"
        "  -s, --set          Together.\n"
        "  --help             Show this message and exit.",
    ]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("so", [("plain", "solve")]),
        ("solve --radius", [("plain", "--radius")]),
        ("solve air", [("file", "air")]),
        ("solve m.prism --inner ver", [("file", "ver")]),
        ("slove --r", []),
    ],
)
def test_words_are_completed(words, found):
    """Commands and options; the shell completes names of files."""
    *before, begun = words.split()
    items = ShellComplete(app, {}, "rfmdp", "_RFMDP_COMPLETE").get_completions(before, begun)
    assert [(item.type, item.value) for item in items] == found


def test_a_shell_asks_for_its_script(monkeypatch, capsys):
    """As click documents it: a variable names the shell."""
    monkeypatch.setenv("_RFMDP_COMPLETE", "bash_source")
    assert run([]) == 0
    assert "_rfmdp_completion" in capsys.readouterr().out
