"""The learning setup of the published experiments, per domain.

Identifiers there are (module, local state, action), with the clock for Stock Trading, and with
both neighbours and the clock for SysAdmin. The lengths of trajectories differ between the paper's
text and its code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from rfmdp.learning.identifiers import LocalStates
from rfmdp.paper.domains.table import find

if TYPE_CHECKING:
    from rfmdp.opening import Blueprint


@dataclass(frozen=True, slots=True)
class LearningSetup:
    """How the published experiments learned a domain.

    local_states : the variables of every module's local state
    length : steps of a trajectory, as the text says
    length_in_code : as the code says
    """

    local_states: LocalStates
    length: int
    length_in_code: int


SETUPS: Mapping[str, LearningSetup] = MappingProxyType(
    {
        "aircraft": LearningSetup({"own": ["x", "y"], "other": ["ax", "ay"]}, 15, 11),
        "frozen_lake": LearningSetup({f"agent{i}": [f"r{i}", f"c{i}"] for i in (1, 2)}, 100, 50),
        "stock_trading": LearningSetup(
            {f"sector{i}": [f"own{i}", f"a{i}", f"b{i}", "t"] for i in (1, 2)}, 10, 11
        ),
        "sysadmin": LearningSetup(
            {
                f"machine{i}": [f"m{(i - 1) % 10}", f"m{i}", f"m{(i + 1) % 10}", "t"]
                for i in range(10)
            },
            10,
            6,
        ),
        "drone": LearningSetup({f"drone{i}": [f"x{i}", f"y{i}", f"z{i}"] for i in (1, 2)}, 50, 50),
    }
)


def setup_of(model: Blueprint) -> LearningSetup | None:
    """Return the published setup of a model; None if it is no domain that was learned."""
    return SETUPS.get(find(model.name).name) if model.is_domain else None
