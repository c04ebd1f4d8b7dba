"""The run of `rfmdp convert`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rfmdp.cli.main import complain
from rfmdp.cli.models import open_model, spoken_warnings
from rfmdp.cli.output import watching
from rfmdp.cli.words import Radii, constants
from rfmdp.errors import ModelError
from rfmdp.writing import check_writable

ENDINGS = (".drn", ".tra", ".rfmdp")


def convert(name: str, target: str, const: Sequence[str], radii: Radii) -> None:
    """Write a model to a file by its ending, and say which files were written.

    Raises
    ------
    RfmdpError
        For an ending that is not known, or whatever is wrong with the model.
    """
    place = Path(target)
    if place.suffix not in ENDINGS:
        raise ModelError(f"{target}: must end in one of {', '.join(ENDINGS)}.")
    check_writable(place)
    with spoken_warnings(), watching("building") as show:
        model = radii.apply(open_model(name, constants(const), progress=show.building))
    if place.suffix == ".rfmdp":
        from rfmdp.formats.files import save

        save(model, place)
        print(place)
        return
    import rfmdp

    write = rfmdp.write_drn if place.suffix == ".drn" else rfmdp.write_prism_explicit
    written = write(model, place)
    if written.note:
        complain(written.note, kind="note")
    for path in written.paths:
        print(path)
