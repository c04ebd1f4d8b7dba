"""`rfmdp verify`: check a saved result again, by an independent implementation."""

from __future__ import annotations

import os

from rfmdp.cli.arguments import require_result
from rfmdp.cli.options import Result
from rfmdp.cli.output import CERTIFIED, NOT_CERTIFIED, USER_ERROR, showing_progress
from rfmdp.cli.signature import command


@command
def verify(result: Result) -> int:
    """Prove a saved result again, by an independent checker.

    What is proven are the bounds and the policy, or the statement of a learning run.
    Exit code 0: all is proven again, 1: something does not hold, or the file cannot be checked,
    2: nothing wrong was found, but not all could be proven.
    """
    # before NumPy is there: the products are many and small, threads only wait for each other
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from rfmdp.verification.solution import verify

    require_result(result)
    with showing_progress("verifying") as show:
        verdict = verify(result, show.verifying)
    for check in verdict.checked:
        print(f"checked   {check}")
    for failure in verdict.failed:
        print(f"FAILED    {failure}")
    for doubt in verdict.unproven:
        print(f"OPEN      {doubt}")
    word = "valid" if verdict.valid else "INVALID" if verdict.failed else "not proven"
    print(f"Result: {word}")
    return CERTIFIED if verdict.valid else USER_ERROR if verdict.failed else NOT_CERTIFIED
