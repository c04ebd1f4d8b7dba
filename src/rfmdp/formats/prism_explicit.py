"""Read PRISM's explicit files: `.tra`, `.sta`, `.lab`, `.srew` and `.trew`.

Transitions are `source target p` (two numbers in the header: dtmc) or `source choice target p`
(three: mdp), with an action name at the end or not; `p` may be an interval `[l,u]`. Every row
gets one marginal, and rows with equal distributions share it.

>>> read_prism_explicit("robot")  # doctest: +SKIP
>>> read_prism_explicit(PrismFiles(Path("a.tra"), labels=Path("b.lab")))  # doctest: +SKIP
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rfmdp.errors import UnsupportedError
from rfmdp.formats.explicit import FileRows, variable_of
from rfmdp.formats.prism_rewards import read_rewards
from rfmdp.formats.text import BLANKS, Text, Words
from rfmdp.kernels.text import BOOLEAN, INTEGER
from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP, Variable
from rfmdp.model.frontier import Deadlock
from rfmdp.ragged import starts
from rfmdp.sets.families import are_bounds
from rfmdp.types import BoolArray, FloatArray, Int32Array, IntArray

LABEL = re.compile(r'\s*(\d+)="([^"]+)"')
DTMC_LINE = "`source target probability [action]`"
MDP_LINE = "`source choice target probability [action]`"


@dataclass(frozen=True, slots=True)
class PrismFiles:
    """The files of one model; all but the transitions may be missing.

    Rewards are one file per structure, those of states and of transitions in the same order or
    with the same names.
    """

    transitions: Path
    states: Path | None = None
    labels: Path | None = None
    state_rewards: tuple[Path, ...] = field(default=())
    transition_rewards: tuple[Path, ...] = field(default=())

    @staticmethod
    def by_stem(path: str | os.PathLike[str]) -> PrismFiles:
        """Return the files that stand beside `NAME.tra`; `path` is that or `NAME`.

        Several reward structures are `NAME1.srew`, `NAME2.srew`, ..., as PRISM writes them.
        """
        place = Path(path)
        stem = place.with_suffix("") if place.suffix == ".tra" else place

        def beside(ending: str) -> Path:
            return stem.with_name(stem.name + ending)

        def rewards(ending: str) -> tuple[Path, ...]:
            if beside(ending).exists():
                return (beside(ending),)
            found, number = [], 1
            while beside(f"{number}{ending}").exists():
                found.append(beside(f"{number}{ending}"))
                number += 1
            return tuple(found)

        states, labels = (p if p.exists() else None for p in (beside(".sta"), beside(".lab")))
        return PrismFiles(beside(".tra"), states, labels, rewards(".srew"), rewards(".trew"))


def read_prism_explicit(
    files: str | os.PathLike[str] | PrismFiles, *, deadlock: Deadlock = Deadlock.LOOP
) -> FactoredMDP:
    """Return the model in PRISM's explicit files.

    Parameters
    ----------
    files
        The common stem (`robot` for `robot.tra`, `robot.lab`, ...), the `.tra` file, or
        `PrismFiles` with each file by name.
    deadlock
        What to do with states that have no transition.

    Raises
    ------
    FileError
        With file and line, for whatever is not as it must be. Transition rewards must not differ
        within a row: the expected reward would depend on nature.
    """
    if not isinstance(files, PrismFiles):
        files = PrismFiles.by_stem(files)
    states, table = _read_transitions(files.transitions)
    rows = table.rows()
    labels = _read_labels(files.labels, states) if files.labels else {}
    initial = np.flatnonzero(labels.pop("init")) if "init" in labels else np.array([0])
    variables, valuations = _read_states(files.states, states)
    rewards = read_rewards(
        files.state_rewards, files.transition_rewards, rows, states, table.choices is not None
    )
    return rows.model(
        states,
        deadlock,
        initial=initial,
        labels=labels,
        rewards=rewards,
        variables=variables,
        valuations=valuations,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """The lines of a `.tra` file."""

    text: Text
    line: IntArray
    sources: IntArray
    choices: IntArray | None
    targets: IntArray
    lower: FloatArray
    upper: FloatArray
    action_ids: IntArray
    actions: tuple[str, ...]

    def rows(self) -> FileRows:
        """Return the lines grouped to rows; they may come in any order."""
        choices = np.zeros_like(self.sources) if self.choices is None else self.choices
        order = _order(self.sources, choices)
        source, choice, line = self.sources[order], choices[order], self.line[order]
        action = self.action_ids[order]
        fresh = np.ones(len(source), dtype=np.bool_)
        fresh[1:] = (source[1:] != source[:-1]) | (choice[1:] != choice[:-1])
        first = np.flatnonzero(fresh)
        self._check_choices(source[first], choice[first], line[first])
        sizes = np.diff(np.append(first, len(source)))
        actions, row_actions = self.actions, action[first]
        mixed = action != np.repeat(row_actions, sizes)
        if self.choices is not None and mixed.any():
            at = int(np.argmax(mixed))
            other = self._named(int(np.repeat(row_actions, sizes)[at]))
            self.text.fail(
                int(line[at]),
                f"All transitions of a choice must have one action; state {source[at]}, choice "
                f"{choice[at]} also has {other}.",
            )
        if mixed.any():
            # a dtmc may name every transition; its row then has no name
            actions = actions if "" in actions else (*actions, "")
            row_actions = np.where(
                np.add.reduceat(mixed, first) > 0, actions.index(""), row_actions
            )
        return FileRows(
            self.text,
            source[first],
            line[first],
            row_actions,
            actions,
            starts(sizes),
            self.targets[order],
            self.lower[order],
            self.upper[order],
        )

    def _named(self, action: int) -> str:
        return repr(self.actions[action]) if self.actions[action] else "one without a name"

    def _check_choices(self, state: IntArray, choice: IntArray, line: IntArray) -> None:
        expected = np.arange(len(state)) - np.searchsorted(state, state)
        bad = np.flatnonzero(choice != expected)
        if bad.size:
            at = int(bad[0])
            self.text.fail(
                int(line[at]),
                f"The choices of a state must be numbered 0, 1, 2, ...; state {state[at]} has a "
                f"choice {choice[at]} but no choice {expected[at]}.",
            )


def _order(sources: IntArray, choices: IntArray) -> IntArray | slice:
    """Return what sorts transitions by state and choice; most files are sorted already."""
    step = np.diff(sources)
    if np.all((step > 0) | ((step == 0) & (np.diff(choices) >= 0))):
        return slice(None)
    return np.lexsort((choices, sources))


def _read_transitions(path: Path) -> tuple[int, _Table]:
    """Return the number of states and the transitions."""
    text = Text.read(path)
    words = text.words(comment="#")
    first, width = words.lines()
    if not len(first):
        text.fail(1, "A transitions file must start with the numbers of states and transitions.")
    if width[0] > 3:
        raise UnsupportedError(
            f"{path}:{words.line[0]}: {width[0]} numbers in the header mean a partially observable "
            "model, which is not supported; dtmc (2 numbers) and mdp (3) are."
        )
    if width[0] < 2:
        words.fail(0, "The header must be `states transitions` or `states choices transitions`.")
    header = words[: width[0]].integers("number in the header")
    if header.min() < 0 or header[0] == 0:
        words.fail(0, "The header must have at least one state and no negative number.")
    if header[0] >= 1 << 31:
        words.fail(0, f"A model must have fewer than 2^31 states, found {header[0]}.")
    require_memory(64.0 * header[0], f"{path}: a model of {header[0]} states")
    choices = width[0] == 3
    table = _table(words, first[1:], width[1:], int(header[0]), bool(choices))
    if len(table.line) != header[-1]:
        words.fail(
            0,
            f"The header promises {header[-1]} transitions, but {len(table.line)} lines follow; "
            "the file may be truncated, else correct the header.",
        )
    return int(header[0]), table


def _table(words: Words, first: IntArray, width: IntArray, states: int, choices: bool) -> _Table:
    """Read the lines after the header."""
    base = 4 if choices else 3
    words[first].require(
        (width == base) | (width == base + 1),
        lambda i: (
            f"A transition of a{'n mdp' if choices else ' dtmc'} must be "
            f"{MDP_LINE if choices else DTMC_LINE}, found {width[i]} entries."
        ),
    )
    sources = words[first].integers("source state", states)
    numbers = words[first + 1].integers("choice", 1 << 31) if choices else None
    targets = words[first + base - 2].integers("target state", states)
    entries = words[first + base - 1]
    lower, upper = entries.values("probability")
    entries.require(
        are_bounds(lower, upper),
        lambda i: (
            f"Probabilities must satisfy 0 <= l <= u <= 1, found {entries.word(i)}; rates (ctmc) "
            "are not supported."
        ),
    )
    named = width == base + 1
    ids, names = words[first[named] + base].distinct()
    bare = [] if named.all() else [""]
    action_ids = np.zeros(len(first), dtype=np.int64)
    action_ids[named] = ids + len(bare)
    actions = (*bare, *names) or ("",)
    line = words.line[first]
    return _Table(words.text, line, sources, numbers, targets, lower, upper, action_ids, actions)


def _read_labels(path: Path, states: int) -> dict[str, BoolArray]:
    """Return the labels; `init` must be among them."""
    text = Text.read(path)
    words = text.words(comment="#")
    head = text.line(int(words.line[0])) if len(words) else ""
    found = LABEL.findall(head)
    if not found or LABEL.sub("", head).strip():
        text.fail(
            int(words.line[0]) if len(words) else 1,
            'A labels file must start like `0="init" 1="goal"`.',
        )
    names = [name for _, name in found]
    if [int(i) for i, _ in found] != list(range(len(found))) or len(set(names)) < len(names):
        words.fail(0, "Labels must be numbered 0, 1, 2, ... and have different names.")
    where = {name: np.zeros(states, dtype=np.bool_) for name in names}
    body = text.words(separators=BLANKS + ":", comment="#")
    body = body[body.line > words.line[0]]
    first, width = body.lines()
    state = body[first].integers("state", states)
    rest = np.ones(len(body), dtype=np.bool_)
    rest[first] = False
    label = body[rest].integers("label", len(names))
    of = np.repeat(state, width - 1)
    for i, name in enumerate(names):
        where[name][of[label == i]] = True
    if "init" in where and not where["init"].any():
        words.fail(0, 'Some state must have the label "init".')
    if "deadlock" in where and not where["deadlock"].any():
        del where["deadlock"]  # PRISM always lists it; every model has it
    return where


def _read_states(path: Path | None, states: int) -> tuple[tuple[Variable, ...], Int32Array | None]:
    """Return the variables, with the ranges that occur, and their values (S, variables)."""
    if path is None:
        return (), None
    text = Text.read(path)
    words = text.words(separators=BLANKS + "():,", comment="#")
    if not len(words) or not text.line(int(words.line[0])).strip().startswith("("):
        text.fail(1, "A states file must start with the variables, like `(x,y)`.")
    first, width = words.lines()
    names = [words.word(i) for i in range(width[0])]
    body = words[first[1:]]
    body.require(
        width[1:] == len(names) + 1,
        lambda i: f"A state must be `number:(values)` with {len(names)} values, one per variable.",
    )
    state = body.integers("state", states)
    times = np.bincount(state, minlength=states)
    if len(state) != states or times.max(initial=1) > 1:
        wrong = int(np.argmax(times != 1))
        words.fail(0, f"Each of the {states} states must be listed once; see state {wrong}.")
    columns = [_column(words[first[1:] + 1 + v], name) for v, name in enumerate(names)]
    valuations = np.empty((states, len(names)), dtype=np.int32)
    for v, (_, values) in enumerate(columns):
        valuations[state, v] = values
    return tuple(variable for variable, _ in columns), valuations


def _column(words: Words, name: str) -> tuple[Variable, IntArray]:
    """Return a variable and its values; the first one says whether it is boolean."""
    value, kind = words.integers_and_kinds()
    boolean = bool(kind[0] == BOOLEAN)
    what = "true or false" if boolean else "an integer of 32 bits"
    words.require(
        (kind == (BOOLEAN if boolean else INTEGER)) & (np.abs(value) < 1 << 31),
        lambda i: f"The value of {name} must be {what}, found {words.word(i)!r}.",
    )
    return variable_of(name, value, boolean), value
