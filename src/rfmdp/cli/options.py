"""Arguments and options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated

from rfmdp.cli.signature import Argument, Completions, Option

INNER = (  # words of `--inner`
    "exact, vertices, interval, mccormick, mccormick:simplex, mccormick:printed, sequential, "
    "radius-sum, radius-sum:plain, alternating"
)
PARTS = {  # words of the options of `learn` for parts of a method; `learn_words` has the parts
    "--confidence": "mixture, clopper-pearson, weissman",
    "--explore": "optimistic[:OTHER], gap, greedy[:OTHER], uniform",
    "--schedule": "doubling[:SHARE], geometric[:FACTOR]",
    "--granularity": "tied, effect, local, flat",
    "--support": "declared, domain, pmin:P, sparse[:P]",
    "--rewards": "known, fixed:LOW:HIGH, random:LOW:HIGH",
}


def listed(text: str) -> Completions:
    """Return the words of a list for people; what is to be filled in is left out.

    >>> list(listed("gap, greedy[:OTHER], pmin:P, mccormick:simplex").known())
    ['gap', 'greedy', 'pmin:', 'mccormick:simplex']
    """
    return Completions(
        lambda: [re.sub(r"\[.*|(?<=:)[A-Z].*", "", word) for word in text.split(", ")]
    )


def _domains() -> Iterable[str]:
    from rfmdp.domains.table import DOMAINS

    return DOMAINS


SETS, RUNS = "Uncertainty sets", "Runs"  # titles of sections
MODEL = Argument(
    "PRISM file (- for standard input), .tra, .drn, .umb, .rfmdp, or a name of `rfmdp domains`.",
    Completions(_domains, files=True),
)
Model = Annotated[str, MODEL]
Result = Annotated[str, Argument("File that `rfmdp solve -o` or `learn -o` wrote.")]
Props = Annotated[str | None, Argument("File of properties in PRISM's language.")]
Prop = Annotated[tuple[str, ...], Option("Property: TEXT, or NAME or NUMBER in PROPS; repeatable.")]
Const = Annotated[tuple[str, ...], Option("Constants: A=1,B=0.5.")]
Radius = Annotated[float | None, Option("Radius of boxes around all probabilities.", section=SETS)]
NORMS = "l1:R, linf:R, lp2:R"
OtherSet = Annotated[
    str | None, Option(f"Other sets of radius R: {NORMS}.", "--set", words=listed(NORMS))
]
DomainName = Annotated[
    str | None, Argument("Domain to describe; all if left out.", Completions(_domains))
]
RadiusOf = Annotated[
    tuple[str, ...], Option("Radius of one part: MODULE=R or ACTION=R; repeatable.")
]
Floor = Annotated[float, Option("Least probability of every outcome in boxes.")]
Nominal = Annotated[bool, Option("Drop the sets of the model: take its nominal probabilities.")]
Json = Annotated[bool, Option("Print one JSON object.", "--json")]
Jobs = Annotated[int | None, Option("Processes; default: all cores.", section=RUNS)]
Scheduler = Annotated[
    str | None,
    Option("Dask scheduler to send the runs to, tcp://HOST:PORT; default: local cores."),
]
