"""`rfmdp verify`: check a saved result again, by an independent implementation."""

from __future__ import annotations

import os
from typing import Annotated

from rfmdp.cli.arguments import require_result
from rfmdp.cli.options import Result
from rfmdp.cli.output import CERTIFIED, NOT_CERTIFIED, USER_ERROR, showing_progress
from rfmdp.cli.signature import Option, command


@command
def verify(
    result: Result,
    quiet: Annotated[bool, Option("Print the result only, and no progress.", "-q --quiet")] = False,
) -> int:
    """Prove a saved result again, by an independent checker.

    What is proven are the bounds and the policy, or the statement of a learning run. Prints what
    the file claims, what was checked, and `Result: valid`, `INVALID` or `not proven`.
    Exit code 0: all is proven again, 1: something does not hold, or the file cannot be checked,
    2: nothing wrong was found, but not all could be proven.
    """
    # before NumPy is there: the products are many and small, threads only wait for each other
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from rfmdp.verification.solution import verify

    require_result(result)
    with showing_progress("verifying", quiet=quiet) as show:
        verdict = verify(result, show.verifying)
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
