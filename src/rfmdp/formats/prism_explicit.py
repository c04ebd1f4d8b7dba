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
from rfmdp.formats.explicit import FileRows, state_variables
from rfmdp.formats.prism_rewards import read_rewards
from rfmdp.formats.text import BLANKS, Text, Words
from rfmdp.kernels.text import BOOLEAN, INTEGER
from rfmdp.memory import require_memory
from rfmdp.model.arrays import FactoredMDP, Variable
from rfmdp.model.frontier import Deadlock
from rfmdp.ragged import segment_any, segment_lengths
from rfmdp.sets.boxes import are_bounds
from rfmdp.types import BoolArray, Int32Array, IntArray

LABEL = re.compile(r'\s*(\d+)="([^"]+)"')
DTMC_LINE = "`source target probability [action]`"
MDP_LINE = "`source choice target probability [action]`"
NAMELESS = "one without a name"


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
    states, mdp, rows = _read_transitions(files.transitions)
    labels = _read_labels(files.labels, states) if files.labels else {}
    initial = np.flatnonzero(labels.pop("init")) if "init" in labels else np.array([0])
    variables, valuations = _read_states(files.states, states)
    rewards = read_rewards(files.state_rewards, files.transition_rewards, rows, states, mdp)
    return rows.model(
        states,
        deadlock,
        initial=initial,
        labels=labels,
        rewards=rewards,
        variables=variables,
        valuations=valuations,
    )


def _read_transitions(path: Path) -> tuple[int, bool, FileRows]:
    """Return the number of states, whether they have choices (an mdp), and the rows."""
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
    states = int(header[0])
    mdp = len(header) == 3
    if header.min() < 0 or states == 0:
        words.fail(0, "The header must have at least one state and no negative number.")
    if states >= 1 << 31:
        words.fail(0, f"A model must have fewer than 2^31 states, found {states}.")
    require_memory(64.0 * states, f"{path}: a model of {states} states")
    rows = _rows(words, first[1:], width[1:], states, mdp)
    if len(first) - 1 != header[-1]:
        words.fail(
            0,
            f"The header promises {header[-1]} transitions, but {len(first) - 1} lines follow; "
            "the file may be truncated, else correct the header.",
        )
    return states, mdp, rows


def _rows(words: Words, first: IntArray, width: IntArray, states: int, mdp: bool) -> FileRows:
    """Return the lines after the header grouped to rows; they may come in any order."""
    base = 4 if mdp else 3
    words[first].require(
        (width == base) | (width == base + 1),
        lambda i: (
            f"A transition of a{'n mdp' if mdp else ' dtmc'} must be "
            f"{MDP_LINE if mdp else DTMC_LINE}, found {width[i]} entries."
        ),
    )
    source = words[first].integers("source state", states)
    choice = words[first + 1].integers("choice", 1 << 31) if mdp else np.zeros_like(source)
    step = np.diff(source)
    if np.any((step < 0) | ((step == 0) & (np.diff(choice) < 0))):
        order = np.lexsort((choice, source))
        first, width, source, choice = first[order], width[order], source[order], choice[order]
    lines = words[first]
    fresh = (np.diff(source, prepend=-1) != 0) | (np.diff(choice, prepend=-1) != 0)
    begin = np.flatnonzero(fresh)
    state = source[begin]
    expected = np.arange(len(begin)) - np.searchsorted(state, state)
    lines[begin].require(
        choice[begin] == expected,
        lambda i: (
            f"The choices of a state must be numbered 0, 1, 2, ...; state {state[i]} has a choice "
            f"{choice[begin[i]]} but no choice {expected[i]}."
        ),
    )
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
    ptr = np.append(begin, len(first))
    names, action = _actions(words[first[width == base + 1] + base], width == base + 1)
    of_row = np.repeat(action[begin], segment_lengths(ptr))
    if mdp:
        lines.require(
            action == of_row,
            lambda i: (
                f"All transitions of a choice must have one action; state {source[i]}, choice "
                f"{choice[i]} also has {repr(names[of_row[i]]) if names[of_row[i]] else NAMELESS}."
            ),
        )
    row_actions = action[begin]
    several = segment_any(action != of_row, ptr)
    if several.any():  # a dtmc may name every transition; its row then has no name
        names = names if "" in names else (*names, "")
        row_actions = np.where(several, names.index(""), row_actions)
    return FileRows(
        words.text, state, lines.line[begin], row_actions, names, ptr, targets, lower, upper
    )


def _actions(words: Words, named: BoolArray) -> tuple[tuple[str, ...], IntArray]:
    """Return all names of actions, and the action of every line; `words` of those with a name."""
    ids, names = words.distinct()
    bare = [] if named.all() else [""]
    action = np.zeros(len(named), dtype=np.int64)
    action[named] = ids + len(bare)
    return (*bare, *names) or ("",), action


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
    lines = first[1:][np.argsort(state)]
    return state_variables(_column(words[lines + 1 + v], name) for v, name in enumerate(names))


def _column(words: Words, name: str) -> tuple[str, IntArray, bool]:
    """Return a variable's name and values; the first one says whether it is boolean."""
    value, kind = words.integers_and_kinds()
    boolean = bool(kind[0] == BOOLEAN)
    what = "true or false" if boolean else "an integer of 32 bits"
    words.require(
        (kind == (BOOLEAN if boolean else INTEGER)) & (np.abs(value) < 1 << 31),
        lambda i: f"The value of {name} must be {what}, found {words.word(i)!r}.",
    )
    return name, value, boolean
