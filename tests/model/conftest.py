"""Shared by the tests of models."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def described() -> ModuleType:
    """Return the published domains of `benchmarks/described.py`."""
    path = Path(__file__).parents[2] / "benchmarks" / "described.py"
    spec = importlib.util.spec_from_file_location("described", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["described"] = module
    spec.loader.exec_module(module)
    return module
