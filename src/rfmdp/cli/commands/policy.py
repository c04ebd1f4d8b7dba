"""`rfmdp policy`: the policy of a result as a file for people and other tools."""

from __future__ import annotations

from typing import Annotated

from rfmdp.cli.arguments import solution_in
from rfmdp.cli.options import Result
from rfmdp.cli.signature import Option, command
from rfmdp.writing import check_writable


@command
def policy(
    result: Result,
    output: Annotated[
        str,
        Option("File to write: .csv, .json, .strat (PRISM's), .dot (Graphviz).", "-o --output"),
    ],
) -> None:
    """Write the policy of a result as a table, strategy or graph.

    Tables have variables, action and proven bounds of every state. CSV, JSON and PRISM's strategies
    are read again by `evaluate` and `simulate`, for any model with the same variables. Graphviz
    gets the chain that policy and nature make.
    """
    import rfmdp

    check_writable(output)
    rfmdp.write_policy(solution_in(result), output)
    print(f"wrote {output}")
