"""What each level of declaration is worth: the table of docs/tutorial.md, and both ways to explore.

python benchmarks/declarations.py    # guarantees, means of three seeds; some minutes
"""

from __future__ import annotations

import re
from pathlib import Path
from statistics import mean
from typing import Any

import rfmdp as rf

PAGE = Path(__file__).parents[1] / "docs" / "tutorial.md"
EPISODES = (60, 300, 1_000)
SEEDS = (1, 2, 3)


def tutorial() -> dict[str, Any]:
    """Return the names that the tutorial defines up to its structures."""
    names: dict[str, Any] = {"__name__": "tutorial"}
    for text in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)[:5]:
        exec(text, names)
    return names


def structures(names: dict[str, Any]) -> dict[str, rf.FactoredMDP]:
    """Return the structures, from little knowledge to much."""
    needs = {"place": ["place"], "load": ["place", "load", "belt"], "belt": ["belt"]}
    belt = rf.unknown_move(names["VARIABLES"], "belt", parents=["belt"])
    wheels = {-1: rf.unknown(2), 1: rf.unknown(2)}  # another unknown per direction
    two = names["effects"](wheels, rf.unknown(2), rf.unknown(2), belt)
    return {
        "spaces": names["spaces"],
        "parents": rf.gym_structure(names["Warehouse"](), parents=needs, **names["common"]),
        "parents, `shared`, `available`": names["parents"],
        "effects": two,
        "effects, one pair of wheels": names["structure"],
    }


def main() -> None:
    names = tutorial()
    for method in ("anytime", "gap-directed"):
        print(f"\n| {method} | unknowns | {' | '.join(map(str, EPISODES))} |")
        for name, structure in structures(names).items():
            numbers = []
            for episodes in EPISODES:
                runs = [names["guarantee"](structure, episodes, method, s) for s in SEEDS]
                numbers.append(f"{mean(run.guarantee for run in runs):.3f}")
            count = len(set(structure.row_marginals.tolist()))
            print(f"| {name} | {count} | {' | '.join(numbers)} |", flush=True)


if __name__ == "__main__":
    main()
