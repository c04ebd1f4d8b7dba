"""`rfmdp verify`: check a saved result again, by an independent implementation."""

from __future__ import annotations

import os
from typing import Annotated

from rfmdp.cli.arguments import require_result
from rfmdp.cli.options import Const, Result
from rfmdp.cli.output import CERTIFIED, NOT_CERTIFIED, USER_ERROR, showing_progress
from rfmdp.cli.signature import Option, command


@command
def verify(
    result: Result,
    model: Annotated[
        str | None, Option("Model file or domain: it is built again and compared.")
    ] = None,
    const: Const = (),
    quiet: Annotated[bool, Option("Print the result only, and no progress.", "-q --quiet")] = False,
) -> int:
    """Prove a saved result again, by an independent checker.

    What is proven are the bounds and the policy, or the statement of a learning run. With --model,
    also that it is about that model: constants that --const does not give, and the radius, are
    those that the file names. Prints what the file claims, what was checked, and
    `Result: valid`, `INVALID` or `not proven`.
    Exit code 0: all is proven again, 1: something does not hold, or the file cannot be checked,
    2: nothing wrong was found, but not all could be proven.
    """
    # before NumPy is there: the products are many and small, threads only wait for each other
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from rfmdp.verification.solution import verify

    require_result(result)
    built = None if model is None else _built(result, model, const)
    with showing_progress("verifying", quiet=quiet) as show:
        verdict = verify(result, show.verifying, model=built)
    lines = [
        *verdict.claims,
        *(("checked", check) for check in verdict.checked),
        *(("FAILED", failure) for failure in verdict.failed),
        *(("OPEN", doubt) for doubt in verdict.unproven),
    ]
    for word, text in () if quiet else lines:
        print(f"{word:<10}{text}")
    word = "valid" if verdict.valid else "INVALID" if verdict.failed else "not proven"
    print(f"Result: {word}")
    return CERTIFIED if verdict.valid else USER_ERROR if verdict.failed else NOT_CERTIFIED


def _built(result: str, model: str, const: tuple[str, ...]) -> object:
    """Return the model that a result should be about, built as the result says it was."""
    from rfmdp.cli.arguments import constants
    from rfmdp.cli.models import rebuilt
    from rfmdp.cli.output import spoken_warnings
    from rfmdp.formats.files import load_record
    from rfmdp.record import Provenance

    _, header, _ = load_record(result)
    inside = header["solution"]["model"] if "solution" in header else header["model"]
    origin = inside.get("provenance")
    with spoken_warnings():
        return rebuilt(
            model, constants(const), None if origin is None else Provenance.from_json(origin)
        )
