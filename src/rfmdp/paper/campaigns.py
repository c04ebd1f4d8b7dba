"""What the two campaigns of the paper share: their methods, a plan, and the digest of a model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Generic, TypeVar

from rfmdp.domains.table import find
from rfmdp.language.load import read_text

TaskT = TypeVar("TaskT")


@dataclass(frozen=True, slots=True)
class CampaignMethod:
    """A method of a campaign.

    word : its name in `rfmdp.inner.methods` or `rfmdp.learning.methods`
    column : the published column that it is compared with; empty for ours
    left_out : domains that are not run unless asked for by name, with the reason
    """

    word: str
    title: str
    column: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def heading(self) -> str:
        """The title as the first word of a sentence."""
        return self.title[0].upper() + self.title[1:]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Runs that are not part of a plan, with the reason."""

    domain: str
    method: str
    reason: str

    def __str__(self) -> str:
        return f"{self.method} on {self.domain}: {self.reason}"


@dataclass(frozen=True, slots=True)
class CampaignPlan(Generic[TaskT]):
    """What to run, and what not."""

    tasks: tuple[TaskT, ...]
    left_out: tuple[LeftOut, ...]


@cache
def model_digest(name: str, instance: str, *more: str) -> str:
    """Return a digest of a domain's text, its constants in an instance, and more texts."""
    found = find(name)
    parts = [read_text(found.path), json.dumps(found.constants(instance)), *more]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
