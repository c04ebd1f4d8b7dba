"""Policies as files for people and other tools: CSV."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rfmdp.errors import FileError, ModelError, UnsupportedError
from rfmdp.formats.files import SAVED, load
from rfmdp.learning.run import Run
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.blocked import BlockedMDP
from rfmdp.model.derived import reached
from rfmdp.outer.solution import Policy, Solution
from rfmdp.writing import replacing

BLOCK = 1 << 16  # states that are written at once
WORDS = {"true": "1", "false": "0"}
NUMBER, ACTION, STEP = "choice", "action", "step"  # columns beside the variables


def write_policy(solution: Solution | Run, path: str | os.PathLike[str]) -> None:
    """Write the policy of a solution, or of a learning run, to a `.csv` file.

    It has a line per decision: the variables (or the number) of the state, the step if the policy
    has several rules, the action, and where there is one rule the bounds of the value. `choice`,
    the number of the row within its state, tells actions without a name apart.
    """
    solved = solution.solution if isinstance(solution, Run) else solution
    if not isinstance(solved, Solution):
        raise UnsupportedError(
            f"write_policy: must be given a solution, or a run that proves something, found a "
            f"{type(solution).__name__}."
        )
    place = Path(path)
    if place.suffix != ".csv":
        raise FileError(f"{place}: a policy is written as .csv; name such a file.")
    with replacing(place) as temporary, temporary.open("x", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(_lines(solved))


def _lines(solution: Solution) -> Iterator[Sequence[Any]]:
    """Yield the heading, and a line per decision; a model by its factors may have many states."""
    model, rules = solution.model, solution.policy.rows
    if isinstance(model, BlockedMDP):  # only blocks know the actions of their rows
        model = model.written()
    timed = not solution.policy.stationary
    written = isinstance(model, FactoredMDP)
    yield [
        *([v.name for v in model.variables] or ["state"]), *([STEP] if timed else []), ACTION,
        *([NUMBER] if written else []), *([] if timed else ["value", "lower", "upper"]),
    ]  # fmt: skip
    lower, upper = (
        np.full(model.states, end) if side is None else side
        for side, end in ((solution.lower, -np.inf), (solution.upper, np.inf))
    )
    for step, rule in enumerate(rules):
        for first in range(0, model.states, BLOCK):
            states = np.arange(first, min(first + BLOCK, model.states))
            values = model.state_values(states) if model.variables else states[:, None]
            columns = [*values.T.tolist(), *([[step] * len(states)] if timed else [])]
            if isinstance(model, FactoredMDP):
                columns.append([model.choice_name(int(row)) for row in rule[states]])
                columns.append((rule[states] - model.row_ptr[states] + 1).tolist())
            else:
                columns.append([model.actions[action] for action in rule[states].tolist()])
            if not timed:
                guaranteed = lower if solution.spec.agent.sign > 0 else upper
                columns += [side[states].tolist() for side in (guaranteed, lower, upper)]
            yield from zip(*columns, strict=True)


def read_policy(path: str | os.PathLike[str], model: FactoredMDP) -> Policy:
    """Return the policy in a `.csv` file or in a saved result or run, for a model.

    Lines of a table are matched by variables and names of actions. States that it does not know
    may be left out as long as the policy cannot reach them.
    """
    place = Path(path)
    if place.suffix == SAVED:
        content = load(place)
        policy = content.policy if isinstance(content, Solution | Run) else content
        if not isinstance(policy, Policy):
            raise FileError(f"{place}: must hold a policy, a solution or a learning run.")
        size = policy.rows.shape[1]
        fits = size == model.states and np.all(
            (policy.rows >= model.row_ptr[:-1]) & (policy.rows < model.row_ptr[1:])
        )
        if not fits:
            raise ModelError(
                f"{place}: the policy is one for {size:,} states, the model has {model.states:,}, "
                "or other choices; export it with `rfmdp policy` to match by names."
            )
        return policy
    try:
        with place.open(encoding="utf-8", newline="") as file:
            return policy_of_lines(list(csv.DictReader(file, strict=True)), model)
    except ModelError as error:
        raise ModelError(f"{place}: {error}") from None
    except OSError as error:
        raise FileError(f"{place}: cannot be read ({error.strerror}).") from error
    except (ValueError, csv.Error) as error:
        raise FileError(f"{place}: is no policy ({error}).") from error


def policy_of_lines(lines: Sequence[Mapping[str, str]], model: FactoredMDP) -> Policy:
    """Return the policy of the lines of a table; see `read_policy`."""
    states = model.state_columns()
    missing = [name for name in (*states, ACTION) if not lines or name not in lines[0]]
    if missing:
        raise ModelError(
            f"A policy for this model needs the columns {', '.join(states)}, {ACTION}; "
            f"missing: {', '.join(missing)}."
        )
    if any(None in (*line, *line.values()) for line in lines):
        raise ModelError("Lines of a policy must have as many cells as the heading.")
    index = {tuple(map(int, key)): k for k, key in enumerate(zip(*states.values(), strict=True))}
    steps = [int(line.get(STEP, 0)) for line in lines]
    rows = np.full((max(steps) + 1, model.states), -1, dtype=np.int64)
    for number, (step, line) in enumerate(zip(steps, lines, strict=True), start=1):
        words = (line[name].strip().lower() for name in states)
        state = index.get(tuple(int(WORDS.get(word, word)) for word in words))
        if state is not None:  # else one of the model that the policy was made for
            rows[step, state] = _row(model, state, line[ACTION], line.get(NUMBER), number)
    unknown = rows < 0  # they get first rows, which nobody takes
    rows[unknown] = np.broadcast_to(model.row_ptr[:-1], rows.shape)[unknown]
    met = reached(model, rows, model.initial)
    for state in met[unknown[:, met].any(axis=0)][:1].tolist():
        raise ModelError(
            f"The policy has no decision in {model.state_name(state)}, which it reaches; give a "
            "line for it."
        )
    return Policy(rows)


def _row(model: FactoredMDP, state: int, action: str, number: str | None, line: int) -> int:
    """Return the row of a state that an action's name, or its number, stands for."""
    first, last = map(int, model.row_ptr[state : state + 2])
    named = [row for row in range(first, last) if model.choice_name(row) == action]
    if len(named) == 1:
        return named[0]
    same = named or [r for r in range(first, last) if not model.actions[model.row_actions[r]]]
    if number is not None and first + int(number) - 1 in same:
        return first + int(number) - 1
    listed = ", ".join(dict.fromkeys(model.choice_name(row) for row in range(first, last)))
    raise ModelError(
        f"Line {line} of the policy: {model.state_name(state)} has no action {action!r}; it has: "
        f"{listed}."
    )
