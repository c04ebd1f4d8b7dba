"""Policies as files for people and other tools: CSV, JSON, PRISM's strategies, Graphviz."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rfmdp import __version__
from rfmdp.errors import FileError, ModelError, UnsupportedError
from rfmdp.learning.run import Run
from rfmdp.model.arrays import FactoredMDP
from rfmdp.outer.solution import Policy, Solution
from rfmdp.policies.decisions import decisions, reached
from rfmdp.policies.table import ACTION, Table, decision_table, policy_from_table
from rfmdp.writing import replacing

DRAWN = 2_000  # states of a graph that somebody may still look at

ROLLOUT = ":rollout"


def write_policy(solution: Solution | Run, path: str | os.PathLike[str]) -> None:
    """Write the policy of a solution, or of a learning run; the ending of the file says how.

    `.csv` and `.json` have a line or object per decision with the variables, the action and the
    bounds of the value; `.strat` is PRISM's format, `(1,0):up` per state; `.dot` is the chain that
    policy and nature make, for Graphviz.

    Raises
    ------
    FileError
        If the ending is another one, or the file cannot be written.
    UnsupportedError
        If a time-dependent policy is written as `.strat` or `.dot`.
    """
    solved = solution.solution if isinstance(solution, Run) else solution
    if not isinstance(solved, Solution):
        raise UnsupportedError(
            f"write_policy: must be given a solution, or a run that proves something, found a "
            f"{type(solution).__name__}."
        )
    place = Path(path)
    writers = {".csv": _csv, ".json": _json, ".strat": _strategy, ".dot": _graph}
    if place.suffix not in writers:
        raise FileError(f"{place}: a policy is written as {', '.join(writers)}; name such a file.")
    with replacing(place) as part, part.open("x", encoding="utf-8", newline="") as file:
        for text in writers[place.suffix](solved):
            file.write(text)


def read_policy(path: str | os.PathLike[str], model: FactoredMDP) -> Policy:
    """Return the policy in a `.csv`, `.json` or `.strat` file, for a model with its variables.

    Raises
    ------
    FileError
        If the file is missing, or is none of these.
    ModelError
        If the policy does not fit the model.
    """
    place = Path(path)
    readers = {".csv": _read_csv, ".json": _read_json, ".strat": _read_strategy}
    if place.suffix not in readers:
        raise FileError(f"{place}: a policy is read from {', '.join(readers)}, or a saved result.")
    try:
        table = readers[place.suffix](place, model)
    except OSError as error:
        raise FileError(f"{place}: cannot be read ({error.strerror}).") from error
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, ModelError):
            raise
        raise FileError(f"{place}: is no policy ({error}).") from error
    try:
        return policy_from_table(model, table)
    except ModelError as error:
        raise ModelError(f"{place}: {error}") from None


def _csv(solution: Solution) -> Iterator[str]:
    table = decision_table(solution)
    yield _line(table)
    for line in zip(*table.values(), strict=True):
        yield _line(line)


def _line(cells: Any) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


def _json(solution: Solution) -> Iterator[str]:
    table = decision_table(solution)
    names = list(solution.model.state_columns())
    others = [name for name in table if name not in names]
    yield json.dumps({"version": __version__, "method": solution.method, "variables": names})[:-1]
    yield ', "decisions": [\n'
    for k in range(len(table[ACTION])):
        decision = {"state": {name: table[name][k] for name in names}}
        decision |= {name: _plain(table[name][k]) for name in others}
        yield ("" if k == 0 else ",\n") + json.dumps(decision, allow_nan=False)
    yield "\n]}\n"


def _plain(value: Any) -> Any:
    """Return a number that JSON knows; infinite ones as text."""
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def _strategy(solution: Solution) -> Iterator[str]:
    model = _stationary(solution, "PRISM's strategies").model
    columns = list(model.state_columns().values())
    for state, row in enumerate(solution.policy.rows[0]):
        values = ",".join(str(column[state]).lower() for column in columns)
        yield f"({values}):{model.choice_name(int(row))}\n"


def _graph(solution: Solution) -> Iterator[str]:
    """Yield the chain of policy and nature: edges with nominal and worst probability."""
    model = _stationary(solution, "a graph").model
    states = reached(solution, DRAWN + 1, 1 << 30)
    if len(states) > DRAWN:
        raise FileError(f"A graph is drawn of up to {DRAWN:,} states; the policy reaches more.")
    found = decisions(solution, states)
    place = {int(row): k for k, row in enumerate(found.rows)}
    yield "digraph policy {\n  node [shape=box, style=rounded];\n"
    for state, row in zip(states, found.chosen, strict=True):
        bounds = solution.at(int(state))
        value = bounds.lower if solution.spec.agent.sign > 0 else bounds.upper
        name = f"{model.state_name(int(state))}\\n{model.choice_name(int(row))}, {value:.6g}"
        quoted = name.replace('"', '\\"')
        yield f'  {state} [label="{quoted}"];\n'
        for target, p, q in zip(*found.successors(place[int(row)]), strict=True):
            label = f"{p:.4g}" if abs(p - q) < 1e-12 else f"{p:.4g}, worst {q:.4g}"
            yield f'  {state} -> {target} [label="{label}"];\n'
    yield "}\n"


def _stationary(solution: Solution, what: str) -> Solution:
    if not solution.policy.stationary:
        raise FileError(
            f"The policy changes with time, which {what} cannot say; use .csv or .json."
        )
    return solution


def _read_csv(path: Path, model: FactoredMDP) -> Table:
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file, strict=True))
    if not lines:
        raise FileError(f"{path}: has no decisions.")
    if any(None in line or None in line.values() for line in lines):
        raise FileError(f"{path}: lines must have as many cells as the heading.")
    return {str(name): [line[name] for line in lines] for name in lines[0]}


def _read_json(path: Path, model: FactoredMDP) -> Table:
    found = json.loads(path.read_text(encoding="utf-8"))["decisions"]
    lines = [{**decision["state"], **{k: decision[k] for k in decision if k != "state"}}
             for decision in found]  # fmt: skip
    if not lines:
        raise FileError(f"{path}: has no decisions.")
    return {name: [line[name] for line in lines] for name in lines[0]}


def _read_strategy(path: Path, model: FactoredMDP) -> Table:
    """Return the table of a strategy that PRISM or we wrote: `(1,0):up` or `17:up` per line."""
    names = list(model.state_columns())
    table: Table = {name: [] for name in (*names, ACTION)}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        match = re.fullmatch(r"(?:\(([^)]*)\)|(\d+))[:=](.*)", line.strip())
        if not match:
            raise FileError(f"{path}:{number}: must be like (1,0):up, found {line.strip()[:40]!r}.")
        values = (match[1] or "").split(",") if match[2] is None else _values(model, int(match[2]))
        if len(values) != len(names):
            raise FileError(f"{path}:{number}: needs {len(names)} values, found {len(values)}.")
        for name, value in zip(names, values, strict=True):
            table[name].append(value)
        table[ACTION].append(match[3].strip())
    return table


def _values(model: FactoredMDP, state: int) -> list[str]:
    if state >= model.states:
        raise ModelError(f"The model has {model.states:,} states, the strategy names {state}.")
    return [str(column[state]) for column in model.state_columns().values()]


def open_policy(path: str | os.PathLike[str], model: FactoredMDP) -> Policy:
    """Return the policy in a file, for a model: of a saved result or run, or as `read_policy`.

    Behind the name of a run, `:rollout` asks for the policy of its best rollout certificate.

    Raises
    ------
    FileError
        If there is no policy in the file.
    ModelError
        If it does not fit the model.
    """
    from rfmdp.formats.files import SAVED, load
    from rfmdp.learning.run import Run

    name = os.fspath(path)
    place = name.removesuffix(ROLLOUT)
    if Path(place).suffix != SAVED:
        return read_policy(path, model)
    found = load(place)
    policy = found.policy if isinstance(found, Solution | Run) else found
    if place != name:
        policy = found.rollout_policy if isinstance(found, Run) else None
        if policy is None:
            raise FileError(f"{place}: must hold a run with a rollout certificate, found none.")
    if not isinstance(policy, Policy):
        raise FileError(f"{path}: must hold a policy, a solution or a learning run.")
    rows = policy.rows
    if rows.shape[1] != model.states or np.any(
        (rows < model.row_ptr[:-1]) | (rows >= model.row_ptr[1:])
    ):
        raise ModelError(
            f"{path}: the policy is one for {rows.shape[1]:,} states, the model has "
            f"{model.states:,}, or other choices; export it with `rfmdp policy` to match by names."
        )
    return policy
