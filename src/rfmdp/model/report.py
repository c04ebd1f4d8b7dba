"""What is said about a model: its sizes, and the issues that `validate` finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from rfmdp.errors import ModelError

if TYPE_CHECKING:
    from rfmdp.model.lattice import AnyModel

SHOWN = 20  # issues in an error message


class Severity(Enum):
    """How bad an issue is."""

    ERROR = "error"  # the model has no meaning
    WARNING = "warning"  # it has, but perhaps not the one intended


@dataclass(frozen=True, slots=True)
class Issue:
    """One problem of a model."""

    severity: Severity
    context: str  # where: `State (x=1)`, `Row 3 ((x=1), action up)`, `Label "goal"`
    message: str  # what must hold and what was found

    def __str__(self) -> str:
        return f"{self.severity.value}: {self.context}: {self.message}"


@dataclass(frozen=True, slots=True)
class Report:
    """All issues of a model, in the order of the checks."""

    issues: tuple[Issue, ...]
    subject: str = "The model"

    @property
    def errors(self) -> tuple[Issue, ...]:
        """The issues that make a model unusable."""
        return tuple(i for i in self.issues if i.severity is Severity.ERROR)

    @property
    def valid(self) -> bool:
        """Whether the model may be solved; warnings are allowed."""
        return not self.errors

    def require_valid(self) -> None:
        """Raise `ModelError` with the errors (the first 20, and how many there are)."""
        if self.valid:
            return
        lines = [f"{self.subject} has {counted(len(self.errors), 'error')}:"]
        lines += [f"  {i.context}: {i.message}" for i in self.errors[:SHOWN]]
        if len(self.errors) > SHOWN:
            lines.append(f"  ... and {len(self.errors) - SHOWN} more")
        raise ModelError("\n".join(lines))

    def __str__(self) -> str:
        if not self.issues:
            return f"{self.subject} is well formed."
        warnings = len(self.issues) - len(self.errors)
        counts = f"{counted(len(self.errors), 'error')}, {counted(warnings, 'warning')}"
        return "\n".join([f"{self.subject} has {counts}:", *(f"  {i}" for i in self.issues)])

    def __iter__(self) -> Iterator[Issue]:
        return iter(self.issues)

    def __len__(self) -> int:
        return len(self.issues)


def model_sizes(model: AnyModel) -> list[str]:
    """Return the numbers of states, rows, transitions and marginals, for people."""
    sizes = {
        "state": model.states,
        "row": model.rows,
        "transition": model.transitions,
        "marginal": len(model.marginals),
    }
    return [counted(number, what) for what, number in sizes.items()]


def counted(number: int, what: str) -> str:
    """Return a number of things.

    >>> counted(1, "marginal"), counted(1200, "state")
    ('1 marginal', '1,200 states')
    """
    return f"{number:,} {what}" + ("" if number == 1 else "s")
