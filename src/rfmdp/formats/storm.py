"""Models to and from stormpy (the extra `storm`), by a UMB file, which both sides know."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from rfmdp.errors import UnsupportedError
from rfmdp.formats.table import to_table
from rfmdp.formats.umb import read_umb, write_table
from rfmdp.model.arrays import FactoredMDP


def to_stormpy(model: FactoredMDP) -> Any:
    """Return a sparse MDP of stormpy with the model's labels, actions and rewards.

    It has intervals, which are a relaxation of a row with several marginals, unless all
    probabilities are known: `to_stormpy(model.nominal())` has the nominal ones.

    Raises
    ------
    UnsupportedError
        If stormpy is not installed.
    """
    stormpy = _stormpy()
    table, _ = to_table(model)
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.umb")
        write_table(table, path, players=1)
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
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.umb")
        stormpy.io.export_to_umb(model, path)
        return read_umb(path, "from_stormpy")


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
