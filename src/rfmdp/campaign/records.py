"""Tasks that leave a record each: only those without one are run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Protocol, TypeVar

from rfmdp.campaign.runner import Runner
from rfmdp.campaign.store import Store


class Keyed(Protocol):
    """A task with the name of its record."""

    @property
    def key(self) -> str:
        """Name of the record."""


class Settling(Protocol):
    """A record, a dataclass, that knows which tasks need not be repeated."""

    def settles(self, task: Any) -> bool:
        """Return whether a task need not be repeated."""
        ...


TaskT = TypeVar("TaskT", bound=Keyed)
RecordT = TypeVar("RecordT", bound=Settling)


def run_missing(
    tasks: Sequence[TaskT],
    kind: type[RecordT],
    store: Store,
    runner: Runner,
    work: Callable[[Any, TaskT], RecordT],
    shared: Any = None,
    told: Callable[[TaskT, RecordT, int, int], None] | None = None,
) -> None:
    """Run the tasks that have no record yet; a record is written as each arrives.

    Parameters
    ----------
    kind
        Type of the records.
    work, shared
        As for `Runner.run`.
    told
        Called after a run with task, record, number of finished runs, and runs.
    """
    missing = [t for t in tasks if (found := read(store, t, kind)) is None or not found.settles(t)]
    finished = 0

    def done(number: int, record: RecordT) -> None:
        nonlocal finished
        finished += 1
        store.write(missing[number].key, asdict(record))  # type: ignore[call-overload]
        if told is not None:
            told(missing[number], record, finished, len(missing))

    runner.run(work, shared, missing, done)


def read(store: Store, task: Keyed, kind: type[RecordT]) -> RecordT | None:
    """Return the record of a task; None if there is none, or one of another version."""
    fields = store.read(task.key)
    try:
        return None if fields is None else kind(**fields)
    except TypeError:
        return None
