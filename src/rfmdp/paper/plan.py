"""What a campaign runs, and what it leaves out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

TaskT = TypeVar("TaskT")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Runs that are not part of a plan, with the reason."""

    domain: str
    method: str
    reason: str


@dataclass(frozen=True, slots=True)
class CampaignPlan(Generic[TaskT]):
    """What to run."""

    tasks: tuple[TaskT, ...]
    left_out: tuple[LeftOut, ...]
