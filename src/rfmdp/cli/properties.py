"""Properties on the command line: a file, `--prop` by text, name or number, or a domain's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rfmdp.answers.batch import open_constants
from rfmdp.answers.property import Property, load_properties, parse_properties
from rfmdp.cli.arguments import STANDARD_INPUT, standard_input
from rfmdp.errors import FileError, ModelError
from rfmdp.opening import names_domain, require_file_or_domain


def chosen_properties(model: str, file: str | None, wanted: Sequence[str]) -> list[Property]:
    """Return the properties that the user asks about; none if neither is given.

    A number counts the properties of the file from 1. A text may use constants, labels, formulas
    and names of properties of the file.

    Raises
    ------
    RfmdpError
        For a file or text that cannot be read, a file without properties, a number that is too
        large; if model and properties should both come from standard input.
    """
    if model == file == STANDARD_INPUT:
        raise FileError("- -: the model or the properties must be a file, both are standard input.")
    listed = [] if file is None else _load(file)
    if not wanted:
        if file is not None and not listed:
            raise FileError(f"{file}: must have at least one property, found 0; or give --prop.")
        return listed
    return [one for text in wanted for one in _named(text, listed, file)]


def properties_about(model: str, file: str | None, wanted: Sequence[str]) -> list[Property]:
    """Return the properties that the user asks about; without any, that of a domain.

    Raises
    ------
    RfmdpError
        If there are none, and as in `chosen_properties`.
    """
    asked = chosen_properties(model, file, wanted)
    if asked:
        return asked
    if model != STANDARD_INPUT:
        if names_domain(model):
            from rfmdp.domains.table import find

            return parse_properties(find(model).prop)
        require_file_or_domain(model)
        if not Path(model).exists():
            raise FileError(f"{model}: there is no such file.")
    raise ModelError(
        "A property is needed: give a file of properties after the model, or --prop "
        "'Pmaxmin=? [ F \"goal\" ]'."
    )


def one_property(
    model: str, file: str | None, wanted: Sequence[str], given: Mapping[str, str]
) -> Property:
    """Return the one property of a command that needs one, with the values of its constants."""
    asked = properties_about(model, file, wanted)
    if len(asked) != 1:
        raise ModelError(f"This command is for one property, found {len(asked)}; pick with --prop.")
    own = open_constants(asked)
    return replace(asked[0], constants={k: value for k, value in given.items() if k in own})


def _load(file: str) -> list[Property]:
    if file == STANDARD_INPUT:
        return parse_properties(standard_input("properties"), filename="<standard input>")
    try:
        return load_properties(file)
    except FileError as error:
        hint = "; give the text of a property with --prop" if "[" in file else ""
        raise FileError(str(error).removesuffix(".") + f"{hint}.") from None


def _named(text: str, listed: list[Property], file: str | None) -> list[Property]:
    word = text.strip()
    if word.isdecimal():
        number = int(word)
        if file is None:
            raise ModelError(
                f"--prop {number}: a number must be that of a property in a file; give one after "
                "the model, or the text of a property."
            )
        if not 1 <= number <= len(listed):
            raise ModelError(f"--prop: a number must be in 1..{len(listed)}, found {number}.")
        return [listed[number - 1]]
    named = [prop for prop in listed if prop.name == word.strip('"')]
    if named:
        return named
    found = parse_properties(text, filename="--prop")
    if not listed:
        return found
    shared = listed[0].file
    return [
        replace(
            one,
            file=replace(
                one.file,
                properties=(*one.file.properties, *shared.properties),
                constants=(*one.file.constants, *shared.constants),
                formulas=(*one.file.formulas, *shared.formulas),
                labels=(*one.file.labels, *shared.labels),
            ),
        )
        for one in found
    ]
