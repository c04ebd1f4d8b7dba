"""Recorded transitions of a model as a table, in the layout that `read_log` reads by default."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rfmdp.errors import FileError, ModelError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.ragged import owners, starts
from rfmdp.sources.log.tables import arrow
from rfmdp.sources.recorded import Transitions
from rfmdp.writing import replacing

ENDINGS = (".parquet", ".arrow", ".csv")


def table_of(model: FactoredMDP, data: Transitions) -> Any:
    """Return an Arrow table: episode, t, variables, action, next values, truncated.

    Examples
    --------
    >>> import rfmdp as rf
    >>> from rfmdp.sources.recorded import record
    >>> model = rf.open_model("chain", {"M": 4})
    >>> table_of(model, record(model, None, steps=2, trajectories=3)).num_rows
    6
    """
    if not model.variables:
        raise ModelError("A table needs variables, by which states are told; the model has none.")
    library = arrow()
    ptr = starts(data.lengths)
    episode = owners(ptr)
    time = np.arange(len(episode)) - ptr[episode]
    before = model.row_states[data.rows]
    columns: dict[str, Any] = {"episode": episode, "t": time}
    for name, states in (("{}", before), ("next_{}", data.successors)):
        for i, v in enumerate(model.variables):
            values = model.valuations[states, i]
            columns[name.format(v.name)] = values.astype(np.bool_) if v.boolean else values
    taken = library.array(model.row_actions[data.rows])
    columns["action"] = library.DictionaryArray.from_arrays(taken, list(model.actions))
    return library.table(columns)


def check_ending(path: str | os.PathLike[str]) -> None:
    """Raise FileError unless tables can be written to a file with this ending."""
    if Path(path).suffix not in ENDINGS:
        raise FileError(f"{path}: must end in one of {', '.join(ENDINGS)}.")


def write_log(model: FactoredMDP, data: Transitions, path: str | os.PathLike[str]) -> None:
    """Write recorded transitions of a model to a .parquet, .arrow or .csv file.

    Raises
    ------
    FileError
        If the ending is another one, or the file cannot be written.
    """
    place = Path(path)
    library = arrow()
    writers: dict[str, Callable[[Any, Path], None]] = {
        ".parquet": library.parquet.write_table,
        ".arrow": lambda table, part: library.feather.write_feather(table, str(part)),
        ".csv": library.csv.write_csv,
    }
    check_ending(place)
    with replacing(place) as part:
        writers[place.suffix](table_of(model, data), part)
