"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated

from rfmdp.cli.signature import Argument, Option
from rfmdp.inner.methods import METHODS

INNER = ", ".join(METHODS)
PARTS = {  # of a learning method, by option and word: what is imported from `rfmdp.learning`
    "--confidence": {
        "mixture": "confidence.Mixture",
        "clopper-pearson": "confidence.ClopperPearson",
        "weissman": "confidence.Weissman",
    },
    "--explore": {
        "optimistic[:OTHER]": "explore.Optimistic",
        "gap": "explore.GapDirected",
        "uniform": "explore.UniformRandom",
    },
    "--schedule": {
        "doubling[:SHARE]": "schedule.Doubling",
        "geometric[:FACTOR]": "schedule.Geometric",
    },
    "--granularity": {
        word: f"identifiers.Granularity.{word.upper()}"
        for word in ("tied", "effect", "local", "flat")
    },
    "--rewards": {
        "known": "",
        "fixed:LOW:HIGH": "rewards.DeterministicReward",
        "random:LOW:HIGH": "rewards.MixtureReward",
    },
}


def part_option(option: str, about: str, more: str = "") -> Option:
    """Return an option for a part of a learning method; the help lists its words."""
    return Option(f"{about}: {', '.join(PARTS[option])}{more}.", option)


SETS, RUNS = "Uncertainty sets", "Runs"  # titles of sections
MODEL = Argument(
    "PRISM file (- for standard input), .tra, .drn, .umb, .rfmdp, or a name of `rfmdp domains`."
)
Model = Annotated[str, MODEL]
Result = Annotated[str, Argument("File that `rfmdp solve -o` or `learn -o` wrote.")]
Props = Annotated[str | None, Argument("File of properties in PRISM's language.")]
Prop = Annotated[tuple[str, ...], Option("Property: TEXT, or NAME or NUMBER in PROPS; repeatable.")]
Const = Annotated[tuple[str, ...], Option("Constants: A=1,B=0.5.")]
Radius = Annotated[float | None, Option("Radius of boxes around all probabilities.", section=SETS)]
NORMS = "l1:R, linf:R, lp2:R"
OtherSet = Annotated[str | None, Option(f"Other sets of radius R: {NORMS}.", "--set")]
DomainName = Annotated[str | None, Argument("Domain to describe; all if left out.")]
Floor = Annotated[float, Option("Least probability of every outcome in boxes.")]
Nominal = Annotated[bool, Option("Drop the sets of the model: take its nominal probabilities.")]
Json = Annotated[bool, Option("Print one JSON object.", "--json")]
Jobs = Annotated[int | None, Option("Processes; default: all cores.", section=RUNS)]
Scheduler = Annotated[
    str | None,
    Option("Dask scheduler to send the work to, tcp://HOST:PORT; default: local cores."),
]
