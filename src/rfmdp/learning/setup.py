"""What a learning run is about: everything that was asked for, also as plain settings.

Settings are JSON: numbers, and objects with a kind. Two runs with the same settings are the same
run: one may go on where the other stopped. What is too large (a structure, probabilities, sets of
states) stands as a digest. The checker reads beta, confidence, p_min, rewards, prior,
granularity, length and the kind of the source: see `docs/formats.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.learning.budget import ASSUMPTION, Ledger, Shares
from rfmdp.learning.confidence import ClopperPearson, Mixture, Weissman
from rfmdp.learning.identifiers import Granularity, Identifiers
from rfmdp.learning.methods import Method
from rfmdp.learning.rewards import SHARE, MixtureReward, RewardFamily, UnknownRewards
from rfmdp.learning.schedule import LogSpaced, StopWhen
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import MAX, SETS, Spec
from rfmdp.outer.problem import pose, where
from rfmdp.outer.settings import Limits
from rfmdp.record import Assumption, described
from rfmdp.sets.marginals import Marginals
from rfmdp.sources.log.source import Log
from rfmdp.sources.source import Episodes, Source
from rfmdp.sources.structure import digest_of, informed
from rfmdp.types import FloatArray

START_SHARE = 0.1  # of the error probability of the model, for the distribution of starts
SHORT = 16  # digits of a digest that are kept
CONFIDENCE = {ClopperPearson: "clopper-pearson", Mixture: "mixture", Weissman: "weissman"}
DIFFERS = {  # what differs if only the digest of a setting does
    "structure": "other states, actions, successors or labels",
    "probabilities": "others; constants perhaps",
    "objective": "of other states, rewards or initial states",
    "budget": "shared out to other events",
    "identifiers": "of other rows",
    "data": "others",
    "prior": "of other bounds",
}


@dataclass(frozen=True, slots=True)
class Setup:
    """Everything that `learn` was asked for."""

    source: Source
    spec: Spec
    method: Method
    beta: float
    stop: StopWhen
    points: LogSpaced
    length: int
    seed: int
    limits: Limits
    p_min: float  # least probability of declared outcomes; 0: none is assumed
    rewards: RewardFamily | None  # None: those of the model
    name: str  # of the system, for people

    @property
    def records(self) -> Log | None:
        """The source if it hands over what was recorded; None if it draws."""
        return self.source if isinstance(self.source, Log) else None

    @property
    def episodes(self) -> Episodes | None:
        """The source if it draws; None if it hands over what was recorded."""
        return self.source if self.records is None else None  # type: ignore[return-value]

    def shares(self) -> Shares:
        """Return how beta is divided among model, rewards and the start.

        `budget` divides the model's share once more, among events.
        """
        start = START_SHARE * self.beta if self.random_start else 0.0
        rest = self.beta - start
        reward = SHARE * rest if isinstance(self.rewards, MixtureReward) else 0.0
        return Shares(rest - reward, reward, start)

    @property
    def random_start(self) -> bool:
        """Whether the distribution of starts is learned."""
        return self.episodes is not None and self.episodes.random_start


class LearnedModel:
    """The learned model twice: with everything unknown against the agent, and for the agent.

    Both have the same sets, of the identifiers of `model`. They differ in what rows pay if that is
    learned, too: `payments`; None: rows pay what the model says.
    """

    def __init__(self, setup: Setup, ids: Identifiers) -> None:
        self.model, self.spec = ids.model, setup.spec
        self.payments: UnknownRewards | None = None
        if setup.rewards is not None:
            self.payments = UnknownRewards(setup.rewards, self.model, self.spec, setup.shares())

    @property
    def least(self) -> float:
        """What a row pays at least."""
        if self.payments is not None:
            return self.payments.family.range.low
        problem = pose(self.model, self.spec)
        return float(np.min([*problem.reward, *problem.start], initial=0.0))

    def pessimistic(self, sets: Marginals) -> tuple[FactoredMDP, Spec]:
        """Return the learned model with all that is not known against the agent."""
        return self._with(sets, low=self.spec.agent is MAX), self.spec

    def optimistic(self, sets: Marginals) -> tuple[FactoredMDP, Spec]:
        """Return the learned model with all that is not known, nature included, for the agent."""
        spec = replace(self.spec, nature=self.spec.agent)
        return self._with(sets, low=self.spec.agent is not MAX), spec

    def paid(self, low: bool) -> FloatArray | None:
        """Return what rows pay at least, or at most, (R,); None if they pay what the model says."""
        return None if self.payments is None else self.payments.bounds(low)

    def _with(self, sets: Marginals, low: bool) -> FactoredMDP:
        """Return the model with learned sets, and with the least or largest rewards."""
        model = self.model.with_marginals(sets).with_provenance(sets={"kind": "learned"})
        return model if self.payments is None else self.payments.apply(model, low)


def settings_of(
    setup: Setup, ids: Identifiers, ledger: Ledger, rewards: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what was asked for, by name; `ids` are those of the source's structure."""
    method, structure, limits = setup.method, setup.source.structure.model, setup.limits
    source = {name: _short(word) for name, word in setup.source.words.items()}
    return {
        "source": {"kind": source.pop("source", "other"), **source},
        "objective": _objective(structure, setup.spec),
        "method": method.name,
        "confidence": described(method.confidence, CONFIDENCE.get(type(method.confidence))),
        "prior": _prior(ids.prior),
        "p_min": float(setup.p_min),
        "rewards": dict(rewards),
        "beta": float(setup.beta),
        "budget": {"kind": ledger.scheme, "digest": _digest(ledger.events, ledger.delta)},
        "granularity": method.granularity.value,
        "ties": [list(names) for names in ids.shared],
        "identifiers": {"count": len(ids.model.marginals), "digest": _identifiers(ids.model)},
        "exploration": described(method.exploration),
        "schedule": described(method.schedule),
        "inner": described(method.inner),
        "precision": {"kind": limits.measure.value, "width": limits.precision},
        "points": described(setup.points),
        "length": int(setup.length),
        "seed": int(setup.seed),
    }


def assumptions_of(setup: Setup, ids: Identifiers) -> tuple[str, ...]:
    """Return everything that a guarantee rests on, in sentences."""
    rewards, source = setup.rewards, setup.source
    always = (ASSUMPTION, *map(Assumption, ("shared", "product", "structure")))
    sentences = [*setup.method.confidence.assumptions, *always]
    sentences += [Assumption("rewards")] if rewards is None else rewards.assumptions
    sentences += [*source.structure.assumptions, *source.assumptions]
    if setup.p_min > 0.0:
        sentences.append(Assumption("declared-floor", p_min=float(setup.p_min)))
    if setup.method.granularity is Granularity.TIED:
        sentences.append(Assumption("tied"))
    elif ids.shared:
        sentences.append(Assumption("ties"))
    return tuple(dict.fromkeys(sentences))


def require_same(saved: Mapping[str, Any], request: Mapping[str, Any], place: str) -> None:
    """Raise ModelError, naming what differs, unless a saved run is the one that is asked for."""
    before, now = ({**settings, **settings["source"]} for settings in (saved, request))
    names = [name for name in dict.fromkeys([*before, *now]) if name not in ("source", "kind")]
    if before["kind"] != now["kind"]:
        names = ["kind"]
    differ = [name for name in names if before.get(name) != now.get(name)]
    if differ:
        listed = "; ".join(_difference(n, before.get(n), now.get(n)) for n in differ)
        raise ModelError(
            f"Resume: {place} must be continued with the same settings; these differ: {listed}. "
            "Use the same ones, or start a run in another file."
        )


def in_words(setting: Any) -> str:
    """Return a setting for people, without digests.

    >>> in_words({"kind": "mixture", "low": 0.0, "digest": "c0ffee"}), in_words(None)
    ('mixture(low=0.0)', 'nothing')
    """
    if setting is None:
        return "nothing"
    if isinstance(setting, list):
        return ", ".join(map(in_words, setting)) or "none"
    if not isinstance(setting, Mapping):
        return str(setting)
    numbers = (f"{k}={in_words(x)}" for k, x in setting.items() if k not in ("kind", "digest"))
    inside = ", ".join(numbers)
    return f"{setting.get('kind', '')}({inside})" if inside else str(setting.get("kind", ""))


def _difference(name: str, saved: Any, request: Any) -> str:
    """Return what differs between two settings of one name, without digests."""
    before, now = in_words(saved), in_words(request)
    word = "source" if name == "kind" else name
    if name in DIFFERS and (before == now or isinstance(saved, str)):
        return f"{word} ({DIFFERS[name]})"
    return f"{word} ({before}, now {now})"


def _objective(model: FactoredMDP, spec: Spec) -> dict[str, Any]:
    """Return an objective with the digests of its sets of states and of its rewards."""
    objective = spec.objective
    settings: dict[str, Any] = {"kind": type(objective).__name__}
    digests = [_digest(np.asarray(model.initial, dtype=np.int64))]
    for field in fields(objective):
        content = getattr(objective, field.name)
        if field.name in SETS:
            at = where(model, content)
            settings[field.name] = content if isinstance(content, str) else f"{at.sum()} states"
            digests.append(_digest(at))
        else:
            settings[field.name] = described(content)
        if field.name == "reward":
            paid = model.reward(content)
            digests.append(_digest(paid.state, paid.row))
    pull = {"agent": spec.agent.name, "nature": spec.nature.name}
    return {**settings, **pull, "digest": " ".join(digests)}


def _prior(sets: Marginals | None) -> dict[str, Any] | None:
    """Return what is known before any data: of how many identifiers, and a digest."""
    if sets is None:
        return None
    return {"informed": int(informed(sets).sum()), "digest": _digest(sets.lower, sets.upper)}


def _identifiers(model: FactoredMDP) -> str:
    """Return a digest of which rows count for which identifiers, and how."""
    return _digest(
        np.asarray(model.marginal_ptr, dtype=np.int64),
        np.asarray(model.row_marginals, dtype=np.int64),
        np.asarray(model.marginals.outcome_ptr, dtype=np.int64),
        np.asarray(model.successors, dtype=np.int64),
    )


def _digest(*arrays: object) -> str:
    return digest_of(*(np.asarray(array) for array in arrays))[:SHORT]


def _short(word: str) -> str:
    """Return a word; a digest is cut to its first digits."""
    return word[:SHORT] if len(word) == 64 else word
