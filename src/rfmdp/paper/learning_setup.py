"""The learning setup of the published experiments, per domain.

Identifiers there are (module, local state, action), with the clock for Stock Trading, and with
both neighbours and the clock for SysAdmin; trajectories have the lengths of the paper's text.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rfmdp.learning.identifiers import LocalStates

LOCAL_STATES: Mapping[str, LocalStates] = MappingProxyType(
    {
        "aircraft": {"own": ["x", "y"], "other": ["ax", "ay"]},
        "frozen_lake": {f"agent{i}": [f"r{i}", f"c{i}"] for i in (1, 2)},
        "stock_trading": {f"sector{i}": [f"own{i}", f"a{i}", f"b{i}", "t"] for i in (1, 2)},
        "sysadmin": {
            f"machine{i}": [f"m{(i - 1) % 10}", f"m{i}", f"m{(i + 1) % 10}", "t"] for i in range(10)
        },
        "drone": {f"drone{i}": [f"x{i}", f"y{i}", f"z{i}"] for i in (1, 2)},
    }
)

LENGTHS: Mapping[str, int] = MappingProxyType(
    {"aircraft": 15, "frozen_lake": 100, "stock_trading": 10, "sysadmin": 10, "drone": 50}
)
