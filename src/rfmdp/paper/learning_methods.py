"""The methods of the learning campaign: the paper's four and ours."""

from __future__ import annotations

from dataclasses import dataclass

from rfmdp.learning.methods import METHODS as KNOWN
from rfmdp.learning.methods import find_method as find_known


@dataclass(frozen=True, slots=True)
class LearningMethod:
    """A curve of the campaign.

    word : its name in `rfmdp.learning.methods`
    column : the published column that it is compared with; empty for ours
    """

    word: str
    title: str
    column: str = ""


METHODS = (
    LearningMethod("paper-mccormick", "exact (McCormick)", "mccormick"),
    LearningMethod("paper-interval", "interval arithmetic", "interval"),
    LearningMethod("anytime", "ours: anytime sets, shared effects"),
    LearningMethod("gap-directed", "ours: anytime, sampling where it helps most"),
    LearningMethod("tied", "ours: equal probabilities tied"),
    LearningMethod("rollout", "ours: half of beta for rollouts"),
    LearningMethod("paper-l1", "L1, radii added up", "l1"),
    LearningMethod("paper-flat", "flat", "flat"),
)
BY_WORD = {method.word: method for method in METHODS}
FLAT, EXACT = BY_WORD["paper-flat"], BY_WORD["paper-mccormick"]


def find_method(word: str) -> LearningMethod:
    """Return a method by its word; any of `rfmdp learn --method list` can be run."""
    if word in BY_WORD:
        return BY_WORD[word]
    return LearningMethod(find_known(word).name, word)


def in_order(words: set[str]) -> list[LearningMethod]:
    """Return methods in the order of the campaign, others behind them."""
    order = dict.fromkeys([*BY_WORD, *KNOWN])
    return [find_method(word) for word in order if word in words]
