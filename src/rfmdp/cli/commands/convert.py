"""`rfmdp convert`: write a model in another format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rfmdp.cli.arguments import constants
from rfmdp.cli.options import Const, Floor, Model, Nominal, OtherSet, Radius
from rfmdp.cli.output import complain, showing_progress, spoken_warnings
from rfmdp.cli.signature import Argument, command
from rfmdp.errors import ModelError
from rfmdp.writing import check_writable

if TYPE_CHECKING:
    from rfmdp.model.arrays import FactoredMDP

ENDINGS = (".drn", ".tra", ".umb", ".rfmdp")


@command
def convert(
    model: Model,
    target: Annotated[str, Argument("File to write: .drn, .tra, .umb or .rfmdp.")],
    const: Const = (),
    radius: Radius = None,
    set_: OtherSet = None,
    floor: Floor = 0.0,
    nominal: Nominal = False,
) -> None:
    """Write a model in another format.

    A factored model is flattened for explicit formats; a note says what that changed.
    """
    from rfmdp.cli.models import Uncertainty, build_with_sets, read_blueprint

    place = Path(target)
    if place.suffix not in ENDINGS:
        raise ModelError(f"{target}: must end in one of {', '.join(ENDINGS)}.")
    check_writable(place)
    uncertainty = Uncertainty(radius, set_, floor, nominal)
    given, blueprint = constants(const), read_blueprint(model)
    with spoken_warnings(), showing_progress("building") as show:
        built = build_with_sets(blueprint, given, uncertainty, progress=show.building)
    write_model(built, place)


def write_model(model: FactoredMDP, place: Path) -> None:
    """Write a model as its ending says; print the files, and a note on what they cannot say."""
    import rfmdp

    if place.suffix == ".rfmdp":
        rfmdp.save(model, place)
        print(place)
        return
    writers = {
        ".drn": rfmdp.write_drn,
        ".tra": rfmdp.write_prism_explicit,
        ".umb": rfmdp.write_umb,
    }
    files = writers[place.suffix](model, place)
    if files.note:
        complain(files.note, kind="note")
    for path in files.paths:
        print(path)
