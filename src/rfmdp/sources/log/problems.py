"""What is wrong with data, with the rows where it was found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rfmdp.errors import DataError
from rfmdp.types import BoolArray, IntArray

SHOWN = 5  # rows of one kind that are listed
KINDS = 8  # kinds of one message


@dataclass(slots=True)
class Complaint:
    """Rows of one table that have the same fault."""

    table: str
    fault: str  # "have no value of x"
    count: int = 0
    rows: list[int] = field(default_factory=list)  # the first ones, counted from 0
    example: str = ""  # what was found in the first one
    omittable: bool = False  # whether such rows may be left out if that is said

    def __str__(self) -> str:
        more = ", ..." if self.count > len(self.rows) else ""
        listed = ", ".join(map(str, self.rows)) + more
        number = f"{self.count} row(s)"
        found = f": {self.example}" if self.example else ""
        return f"{self.table}, {number} that {self.fault} (row {listed}{found})"


class Problems:
    """All problems so far, by table and fault."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], Complaint] = {}

    def add(
        self,
        table: str,
        fault: str,
        where: BoolArray,
        rows: IntArray,
        shown: Callable[[int], object] | None = None,
        *,
        omittable: bool = False,
    ) -> None:
        """Note some of a batch's rows, given by their numbers; `shown` says what one has."""
        at = np.flatnonzero(where)
        if not len(at):
            return
        at = at[np.argsort(rows[at], kind="stable")]
        problem = self.found.setdefault(
            (table, fault), Complaint(table, fault, omittable=omittable)
        )
        if not problem.rows and shown is not None:
            problem.example = str(shown(int(at[0])))
        problem.rows += rows[at[: SHOWN - len(problem.rows)]].tolist()
        problem.count += len(at)

    @property
    def count(self) -> int:
        """Number of faults of rows."""
        return sum(problem.count for problem in self.found.values())

    @property
    def fatal(self) -> bool:
        """Whether there are rows that cannot be left out."""
        return any(not problem.omittable for problem in self.found.values())

    def error(self, advice: str) -> DataError:
        """Return all of them as one error."""
        listed = [str(problem) for problem in self.found.values()]
        more = f"; and {len(listed) - KINDS} kinds more" if len(listed) > KINDS else ""
        return DataError(f"{'; '.join(listed[:KINDS])}{more}. Rows count from 0. {advice}")
