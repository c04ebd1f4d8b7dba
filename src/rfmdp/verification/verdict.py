"""The verdict of a check: what was looked at, what fails, what could not be proven."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rfmdp.types import BoolArray


@dataclass(slots=True)
class Verdict:
    """What was checked, what does not hold, and what could not be proven here.

    claims : what the file says, line by line: a word, and what it is
    """

    checked: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)
    claims: list[tuple[str, str]] = field(default_factory=list)

    @property
    def valid(self) -> bool:
        """Whether everything was proven."""
        return bool(self.checked) and not self.failed and not self.unproven

    def note(self, holds: bool, what: str, where: str = "") -> None:
        """Enter a check."""
        self.checked.append(what)
        if not holds:
            self.failed.append(f"{what}: does not hold{where}")

    def states(self, fine: BoolArray, what: str, unknown: BoolArray | None = None) -> None:
        """Enter a check of all states (S,), naming the first that fails or is not known."""
        unknown = np.zeros(len(fine), dtype=np.bool_) if unknown is None else unknown
        self.note(bool((fine | unknown).all()), what, _place(~fine & ~unknown))
        if (unknown & ~fine).any():
            self.unproven.append(f"{what}: not proven{_place(unknown & ~fine)}")

    def __str__(self) -> str:
        if self.valid:
            return f"valid: {', '.join(self.checked)}"
        if self.failed:
            return "INVALID: " + "; ".join([*self.failed, *self.unproven])
        return "NOT PROVEN: " + "; ".join(self.unproven)


def _place(chosen: BoolArray) -> str:
    states = np.flatnonzero(chosen)
    more = f" and {len(states) - 1} more" if len(states) > 1 else ""
    return f" at state {states[0]}{more}" if len(states) else ""
