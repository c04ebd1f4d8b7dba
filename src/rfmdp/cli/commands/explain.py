"""`rfmdp explain`: why the policy of a result decides as it does."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

from rfmdp.cli.arguments import solution_in, state_number
from rfmdp.cli.options import Json, Result
from rfmdp.cli.output import showing_progress
from rfmdp.cli.signature import Option, command


@command
def explain(
    result: Result,
    state: Annotated[
        str | None,
        Option("Values of all variables, x=1,y=2, or a number; default: the initial."),
    ] = None,
    step: Annotated[int, Option("Steps gone, for finite horizons.")] = 0,
    gains: Annotated[
        bool, Option("Also: what the guarantee gains if one marginal were known.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Explain a decision: values of actions, nature's answers.

    It says what happens next, too. With --gains, the model is solved again with one marginal known
    at a time: which uncertainty costs most.
    """
    import rfmdp

    solution = solution_in(result)
    found = rfmdp.explain(solution, state_number(solution.model, state), step=step)
    worth = []
    if gains:
        with showing_progress("solving with one marginal known at a time"):
            worth = rfmdp.gains(solution)
    if as_json:
        print(json.dumps(asdict(found) | ({"gains": dict(worth)} if gains else {})))
        return
    print(found)
    if gains and not worth:
        print("The policy meets no uncertain marginal: there is nothing to gain.")
    for place, (marginal, gain) in enumerate(worth):
        if place == 0:
            print("What the guarantee in the initial state gains if one marginal were known:")
        print(f"    {gain:.6g}  {marginal}")
