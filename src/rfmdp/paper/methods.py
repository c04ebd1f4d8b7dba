"""The methods of the solving campaign, and where each is worth its time."""

from __future__ import annotations

from dataclasses import dataclass

from rfmdp.errors import ModelError


@dataclass(frozen=True, slots=True)
class SolvingMethod:
    """A column of the campaign.

    word : its name in `rfmdp.inner.METHODS`
    column : the published column that it is compared with
    left_out : domains that are not run unless asked for by name, with the reason
    """

    word: str
    title: str
    column: str
    left_out: dict[str, str]


SLOW_LPS = {
    "drone": "1.6 million LPs per sweep: about 15 minutes a sweep",
    "frozen_lake": "204,310 LPs per sweep, 13 and more sweeps: about 20 minutes a run",
    "sysadmin": "174,603 LPs with up to 2,000 variables: 10 to 20 minutes a run",
}
METHODS = (
    SolvingMethod("exact", "exact", "exact", {}),
    SolvingMethod("interval", "interval arithmetic", "interval", {}),
    SolvingMethod("vertices", "vertex enumeration", "exact", {}),
    SolvingMethod("mccormick", "McCormick, marginalised", "mccormick", SLOW_LPS),
    SolvingMethod("mccormick:simplex", "McCormick, sum p = 1", "mccormick", SLOW_LPS),
    SolvingMethod("mccormick:printed", "McCormick, as printed", "mccormick", SLOW_LPS),
)
BY_WORD = {method.word: method for method in METHODS}
QUICK_METHODS = ("exact", "interval")


def find_method(word: str) -> SolvingMethod:
    """Return a method by its word."""
    if word not in BY_WORD:
        raise ModelError(f"There is no method '{word}'; there are: {', '.join(BY_WORD)}.")
    return BY_WORD[word]
