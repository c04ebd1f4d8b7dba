"""`rfmdp policy`: the policy of a result as a file for people and other tools."""

from __future__ import annotations

from typing import Annotated

import typer

from rfmdp.cli.arguments import solution_in
from rfmdp.cli.options import Result
from rfmdp.writing import check_writable


def command(
    result: Result,
    output: Annotated[
        str,
        typer.Option(
            "-o", "--output", metavar="FILE",
            help="File to write: .csv, .json, .strat (PRISM's), .dot (Graphviz).",
        ),
    ],
) -> None:  # fmt: skip
    """Write the policy of a result: variables, action and proven bounds of every state.

    CSV, JSON and PRISM's strategies are read again by `evaluate` and `simulate`, for any model with
    the same variables. Graphviz gets the chain that policy and nature make.
    """
    import rfmdp

    check_writable(output)
    rfmdp.write_policy(solution_in(result), output)
    print(f"wrote {output}")
