"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

PARTS = {  # words of the options of `learn` for parts of a method; `learn_words` has the parts
    "--confidence": (
        "mixture, kt, grid, kl, subsets, by-size, clopper-pearson, hoeffding, weissman"
    ),
    "--explore": "optimistic[:OTHER], gap, greedy[:OTHER], uniform",
    "--schedule": "doubling[:SHARE], geometric[:FACTOR]",
    "--granularity": "tied, effect, local, flat",
    "--support": "declared, domain, pmin:P, sparse[:P]",
    "--rewards": "known, fixed:LOW:HIGH, random:LOW:HIGH",
}
MODEL = typer.Argument(
    help="PRISM file (- for standard input), .tra, .drn, .umb, .rfmdp, or a name of "
    "`rfmdp domains`."
)
Model = Annotated[str, MODEL]
Result = Annotated[str, typer.Argument(help="File that `rfmdp solve -o` or `learn -o` wrote.")]
Props = Annotated[str | None, typer.Argument(help="File of properties in PRISM's language.")]
Prop = Annotated[
    list[str], typer.Option(help="Property: TEXT, or NAME or NUMBER in PROPS; repeatable.")
]
Const = Annotated[list[str], typer.Option(help="Constants: A=1,B=0.5.")]
Radius = Annotated[float | None, typer.Option(help="Radius of boxes around all probabilities.")]
OtherSet = Annotated[
    str | None, typer.Option("--set", help="Other sets of radius R: l1:R, linf:R, lp2:R.")
]
RadiusOf = Annotated[
    list[str], typer.Option(help="Radius of one part: MODULE=R or ACTION=R; repeatable.")
]
Floor = Annotated[float, typer.Option(help="Least probability of every outcome in boxes.")]
Nominal = Annotated[
    bool,
    typer.Option("--nominal", help="Drop the sets of the model: take its nominal probabilities."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Jobs = Annotated[int | None, typer.Option(help="Processes; default: all cores.")]
Scheduler = Annotated[
    str | None,
    typer.Option(help="Dask scheduler to send the runs to, tcp://HOST:PORT; default: local cores."),
]
