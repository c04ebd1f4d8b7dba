"""Models to and from stormpy (the extra `storm`), by a UMB file, which both sides know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from rfmdp.errors import UnsupportedError
from rfmdp.formats.table import to_table
from rfmdp.formats.umb import read_umb
from rfmdp.formats.umb_write import write_table
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.flatten import is_known


class Probabilities(Enum):
    """What a model gives to Storm."""

    NOMINAL = auto()  # the nominal member of every set
    INTERVALS = auto()  # the bounds, flattened by interval arithmetic


def to_stormpy(model: FactoredMDP, probabilities: Probabilities | None = None) -> Any:
    """Return a sparse MDP of stormpy with the model's labels, actions and rewards.

    Parameters
    ----------
    model
        Any model; it is flattened.
    probabilities
        The nominal probabilities (`SparseMdp[float]`), or intervals (`SparseMdp[Interval]`), which
        are a relaxation of a row with several marginals. By default intervals, unless all
        probabilities are known.

    Raises
    ------
    UnsupportedError
        If stormpy is not installed.
    """
    stormpy = _stormpy()
    nominal = is_known(model) if probabilities is None else probabilities is Probabilities.NOMINAL
    table, _ = to_table(model.nominal() if nominal else model)
    with _file() as path:
        write_table(table, path, players=1, known=nominal)
        return stormpy.build_model_from_umb(path)


def from_stormpy(model: Any) -> FactoredMDP:
    """Return a sparse DTMC or MDP of stormpy, with doubles or intervals, as a flat model.

    State valuations become variables if all are booleans or integers.

    Raises
    ------
    UnsupportedError
        If stormpy is not installed, or for other types of models and values, and for rewards of
        transitions (their expectation would depend on nature).
    """
    stormpy = _stormpy()
    kinds = stormpy.models.ModelType
    if not model.is_sparse_model or model.model_type not in (kinds.DTMC, kinds.MDP):
        raise UnsupportedError(f"from_stormpy needs a sparse DTMC or MDP, got {model.model_type}.")
    if model.supports_parameters or model.is_exact:
        raise UnsupportedError("from_stormpy needs doubles or intervals as probabilities.")
    with _file() as path:
        stormpy.io.export_to_umb(model, path)
        return read_umb(path, "from_stormpy")


@contextmanager
def _file() -> Iterator[Path]:
    """Yield a place for a file, which is gone afterwards."""
    with TemporaryDirectory() as folder:
        yield Path(folder, "model.umb")


def _stormpy() -> ModuleType:
    """Return stormpy, or say how to get it."""
    try:
        import stormpy
        import stormpy.io
    except ImportError as error:
        raise UnsupportedError(
            "This needs stormpy, which is not installed; install the extra: pip install "
            "'rfmdp[storm]'."
        ) from error
    if not hasattr(stormpy, "UncertaintyResolutionMode"):
        raise UnsupportedError("This needs stormpy 2.0 or newer; upgrade it.")
    module: ModuleType = stormpy
    return module
