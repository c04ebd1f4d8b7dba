"""Storm's DRN files, read by stormpy (the extra `storm`). Storm reads `.umb` in return."""

from __future__ import annotations

import os
import re

from rfmdp.errors import FileError
from rfmdp.formats.libraries import from_stormpy, require_stormpy
from rfmdp.formats.text import Text
from rfmdp.model.arrays import FactoredMDP


def read_drn(path: str | os.PathLike[str]) -> FactoredMDP:
    """Return the DTMC or MDP in a DRN file, with probabilities or intervals.

    Raises
    ------
    FileError
        If the file is missing, truncated, or Storm cannot read it.
    UnsupportedError
        If stormpy is not installed, or for other types of models.
    """
    stormpy = require_stormpy()
    lines = Text(path).lines
    states = sum(line.startswith("state ") for line in lines)
    header = re.search(r"^@nr_states\s+(\d+)", "\n".join(lines), re.MULTILINE)
    if header is None or int(header[1]) != states:  # Storm would go on
        promise = "no number of states" if header is None else f"{header[1]} states"
        raise FileError(
            f"{path}: a DRN file must have as many states as its header promises; it promises "
            f"{promise} and has {states}; it may be truncated."
        )
    try:
        model = stormpy.build_model_from_drn[stormpy.Interval](str(path))
    except RuntimeError as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise FileError(f"{path}: Storm cannot read it as a DRN file ({reason}).") from error
    return from_stormpy(model)
