"""Turns tables into transitions of a model, after a look at every row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.sources.index import Index, SuccessorPairs, absorbing
from rfmdp.sources.log.decoding import Decoder, LogRows
from rfmdp.sources.log.manifest import Manifest, Places
from rfmdp.sources.log.problems import Problems
from rfmdp.sources.log.sequence import EpisodeFollower, SeenEpisodes
from rfmdp.sources.log.tables import LogTable
from rfmdp.types import AnyArray, IntArray

DISABLED = "have an action that the state does not have"
SUPPORT = "lead where the model says they cannot"


class TableReader:
    """Turns tables into transitions of a model."""

    def __init__(
        self, model: FactoredMDP, manifest: Manifest, problems: Problems, *, alone: bool
    ) -> None:
        self._model, self._manifest, self._problems = model, manifest, problems
        self._index, self.pairs = Index(model), SuccessorPairs(model)
        self.episodes = self.unfinished = self.omitted = self.read = 0
        self.undated = self.unread = False
        self._seen = SeenEpisodes()
        self._absorbing = absorbing(model)
        self._alone = alone
        self.over = np.zeros(model.states, dtype=np.bool_)  # where episodes terminated

    def transitions(self, table: LogTable) -> Iterator[tuple[IntArray, LogRows]]:
        """Yield the transitions of a table, some at a time; note what is wrong with it.

        They are numbers of pairs of a row and its successor, (N,), and where these stand.
        """
        places = Places.find(table.name, table.columns, self._model, self._manifest)
        self.undated |= places.episode is None or places.time is None
        self.unread |= places.unread is not None
        seen = SeenEpisodes() if table.numbered else self._seen
        decoder = Decoder(
            table.name, places, self._index, self._manifest, self._problems, seen.names
        )
        follower = EpisodeFollower(table.name, self._problems, seen, alone=self._alone)
        self.read = 0
        for batch in table.read(places.names):
            rows = decoder.decode(batch)
            found = follower.transitions(rows)
            if places.terminated is not None:
                over = rows.take(rows.action == -2)
                self._ended(table.name, over, over.state)
                self._ended(table.name, found, found.after)
            self.read += batch.num_rows
            yield self._of_model(table.name, found)
        follower.finish()
        self.episodes += follower.episodes
        self.unfinished += follower.unfinished

    def _ended(self, table: str, rows: LogRows, last: AnyArray) -> None:
        """Note rows that end an episode in a state (N,), -1: unknown, that the model leaves."""
        assert rows.terminated is not None  # else nobody asks
        over = rows.terminated & (last >= 0)
        self.over[last[over]] = True

        def shown(i: int) -> str:
            return self._model.state_name(int(last[i]))

        self._problems.add(table, LEFT, over & ~self._absorbing[last], rows.number, shown)

    def _of_model(self, table: str, steps: LogRows) -> tuple[IntArray, LogRows]:
        """Return the transitions that the model allows, with their pairs; note the others."""
        model, note = self._model, self._problems.add
        fine = (steps.state >= 0) & (steps.action >= 0) & (steps.after >= 0)
        if not fine.all():
            self.omitted += int(np.count_nonzero(~fine))
            steps = steps.take(fine)
        rows = self._index.rows(steps.state, steps.action)
        disabled = rows < 0
        if disabled.any():
            taken, states = steps.action, steps.state

            def choice(i: int) -> str:
                return f"{model.actions[taken[i]]!r} in {model.state_name(int(states[i]))}"

            note(table, DISABLED, disabled, steps.number, choice, omittable=True)
            self.omitted += int(np.count_nonzero(disabled))
            steps = steps.take(~disabled)
            rows = rows[~disabled]
        found = self.pairs.find(rows, steps.after)
        outside = found < 0
        if outside.any():
            own, after = rows, steps.after

            def move(i: int) -> str:
                return f"{model.row_name(int(own[i]))} to {model.state_name(int(after[i]))}"

            note(table, SUPPORT, outside, steps.number, move)
            steps = steps.take(~outside)
            found = found[~outside]
        return found, steps


LEFT = (
    "have `terminated` in a state that the structure lets be left; give it no enabled action "
    "(guards), add a variable that says that the episode is over, or, if it was only cut "
    "off, call that `truncated`"
)
