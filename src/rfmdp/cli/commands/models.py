"""Models: `check` reads and validates one, `convert` writes it elsewhere, `domains` lists ours."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rfmdp.cli.arguments import constants
from rfmdp.cli.output import CERTIFIED, USER_ERROR, complain
from rfmdp.cli.signature import Const, Model, Nominal, Prop, Props, Radius, command
from rfmdp.errors import ModelError, RfmdpError
from rfmdp.writing import check_writable

if TYPE_CHECKING:
    from rfmdp.domains import Domain
    from rfmdp.model.arrays import FactoredMDP

WIDTH = 80
ENDINGS = (".tra", ".umb", ".rfmdp")  # of files that `convert` writes


@command
def check(
    model: Model,
    props: Props = None,
    prop: Prop = (),
    const: Const = (),
) -> int:
    """Read, build and validate a model and its properties.

    Prints sizes, problems and warnings; exit code 1 if something is wrong.
    """
    import rfmdp
    from rfmdp.answers.batch import open_constants
    from rfmdp.cli.models import build_written, chosen_properties, read_blueprint

    values = constants(const)
    requests = chosen_properties(model, props, prop)
    started = time.perf_counter()
    built = build_written(read_blueprint(model), values, also_known=open_constants(requests))
    print("\n".join(_facts(built, time.perf_counter() - started)))
    report = rfmdp.validate(built)
    print(report)
    failed = not report.valid
    for one in requests:
        try:
            kind = one.bind(built, values).type.value
        except RfmdpError as error:
            complain(str(error))
            kind, failed = "error", True
        print(f"property    {kind:<8}{one.text}")
    return USER_ERROR if failed else CERTIFIED


def _facts(model: FactoredMDP, seconds: float) -> Iterator[str]:
    from rfmdp.language.checked import model_type

    largest = int(model.marginals.sizes.max(initial=0))
    facts = {
        "type": model_type(model).value,
        "states": f"{model.states:,} ({len(model.initial)} initial)",
        "rows": f"{model.rows:,}",
        "transitions": f"{model.transitions:,}",
        "marginals": f"{len(model.marginals):,} (up to {largest} outcomes)",
        "factors": ", ".join(model.factors),
        "actions": ", ".join(name for name in model.actions if name),
        "variables": ", ".join(f"{v.name}:[{v.low}..{v.high}]" for v in model.variables),
        "labels": ", ".join(sorted(model.labels)),
        "rewards": ", ".join(name or "(unnamed)" for name in model.rewards),
        "built in": f"{seconds:.3f} s",
    }
    for name, fact in facts.items():
        yield f"{name:<12}{fact or 'none'}"


@command
def domains(
    name: Annotated[str | None, "Domain to describe; all if left out."] = None,
) -> None:
    """List the domains that MODEL may name; describe one."""
    from rfmdp.domains import DOMAINS, find

    print("\n".join(_listing(DOMAINS.values()) if name is None else _description(find(name))))


def _listing(domains: Iterable[Domain]) -> Iterator[str]:
    yield f"{'domain':<15}{'version':<11}{'states':>9}{'transitions':>13}  about"
    for domain in domains:
        sizes = [
            f"{title:<11}{version.states:>9,}{version.transitions:>13,}"
            for title, version in domain.versions.items()
        ]
        about = textwrap.wrap(domain.about, WIDTH - 50)
        for cells in zip_longest([domain.name], sizes, about, fillvalue=""):
            yield "{:<15}{:<33}  {}".format(*cells).rstrip()
    yield ""
    yield "`rfmdp domains NAME` describes one, `rfmdp solve NAME --radius 0.025` solves it"
    yield "as published, `--const instance=textbook` and the like pick another version."


def _description(domain: Domain) -> Iterator[str]:
    yield from textwrap.wrap(f"{domain.title} ({domain.name}): {domain.about}", WIDTH)
    yield from ("", f"property   {domain.prop}")
    for title, version in domain.versions.items():
        yield ""
        yield f"{title:<11}{version.states:,} states, {version.transitions:,} transitions"
        words = {
            k: str(x).lower() if isinstance(x, bool) else x for k, x in version.constants.items()
        }
        yield f"{'':<11}--const {','.join(f'{key}={word}' for key, word in words.items())}"
    if domain.differences:
        yield from ("", *textwrap.wrap(f"As published: {domain.differences}", WIDTH))
    yield from ("", f"file       {domain.path}")


@command
def convert(
    model: Model,
    target: Annotated[str, "File to write: .tra, .umb or .rfmdp."],
    const: Const = (),
    radius: Radius = None,
    nominal: Nominal = False,
) -> None:
    """Write a model in another format.

    A factored model is flattened for explicit formats; a note says what that changed.
    """
    from rfmdp.cli.models import build_written, read_blueprint

    place = Path(target)
    if place.suffix not in ENDINGS:
        raise ModelError(f"{target}: must end in one of {', '.join(ENDINGS)}.")
    check_writable(place)
    write_model(build_written(read_blueprint(model), constants(const), radius, nominal), place)


def write_model(model: FactoredMDP, place: Path) -> None:
    """Write a model as its ending says; print the files, and a note on what they cannot say."""
    import rfmdp

    if place.suffix == ".rfmdp":
        rfmdp.save(model, place)
        print(place)
        return
    write = rfmdp.write_umb if place.suffix == ".umb" else rfmdp.write_prism_explicit
    files = write(model, place)
    if files.note:
        complain(files.note, kind="note")
    for path in files.paths:
        print(path)
