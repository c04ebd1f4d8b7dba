"""Published domains written with the Python builder, nominal probabilities."""

from collections.abc import Callable, Sequence

import numpy as np

from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.build import build
from rfmdp.model.description import Action, Move, States
from rfmdp.sets.families import Singleton

STAY = Singleton([1.0])


def shifts(
    factor: str,
    ranges: dict[str, tuple[int, int]],
    branches: Sequence[list[tuple[float, tuple[int, ...]]]],
    identify: Callable[[States], np.ndarray] | None = None,
) -> Move:
    """Return a move whose outcomes shift the factor's variables and are clamped to `ranges`."""
    width = max(map(len, branches))
    table = np.zeros((len(branches), width, len(ranges)), dtype=np.int64)
    for j, outcomes in enumerate(branches):
        for o, (_, shift) in enumerate(outcomes):
            table[j, o] = shift
    sets = [STAY if len(b) == 1 else Singleton([p for p, _ in b]) for b in branches]

    def effect(s, identifier, outcome):
        change = table[identifier, outcome]
        return {
            name: np.clip(s[name] + change[:, i], low, high)
            for i, (name, (low, high)) in enumerate(ranges.items())
        }

    return Move(factor, sets, effect, identify)


def aircraft(
    max_x: int = 20, max_y: int = 24, height: int = 7, r: float = 0.30795462532
) -> FactoredMDP:
    """Two aircraft that must not meet: 11153 states, 1262099 transitions."""

    def flight(x, y, step, branches, kind):
        end = max_x if step > 0 else 0
        moves = [[(p, (step, dy)) for p, dy in b] for b in branches]
        ranges = {x: (0, max_x), y: (0, max_y)}
        at_end = len(moves)
        return shifts(
            y, ranges, [*moves, [(1.0, (0, 0))]], lambda s: np.where(s[x] == end, at_end, kind(s))
        )

    def spread(*pairs):
        return [(p, sign * dy) for p, dy in pairs for sign in ((1, -1) if dy else (1,))]

    calm = spread((0.7, 0), (0.05, 1), (0.05, 2), (0.05, 3))
    rough = spread((0.3, 0), (0.2, 1), (0.1, 2), (0.05, 3))
    wild = [(1 / 11, dy) for dy in range(-5, 6)]
    climb = [(0.85 - r, 0), (r, 1), (0.1, 2), (0.05, 3)]
    sink = [(p, -dy) for p, dy in climb]

    def choice(name, own, other, kind):
        moves = [
            flight("x", "y", 1, [own], lambda s: 0),
            flight("ax", "ay", -1, other, kind),
        ]
        return Action(name, moves)

    return build(
        {"x": (0, max_x), "y": (0, max_y), "ax": (0, max_x), "ay": (0, max_y)},
        [
            choice("up", climb, [rough], lambda s: 0),
            choice("down", sink, [rough], lambda s: 0),
            choice(
                "stay", calm, [calm, wild], lambda s: np.where((s.ax >= 3) & (s.ax <= 10), 0, 1)
            ),
        ],
        initial={"x": 0, "y": height, "ax": max_x, "ay": height},
        labels={
            "goal": lambda s: s.x == max_x,
            "collision": lambda s: (abs(s.x - s.ax) < 6) & (abs(s.y - s.ay) < 3),
        },
    )


def drone_branches(p: float) -> dict[str, list[tuple[float, tuple[int, ...]]]]:
    """Return what every label does to a drone: probabilities and shifts of (x, y, z)."""

    def along(axis, step):
        def shift(distance, sideways):
            change = [0, sideways, 0]
            change[axis] += distance * step
            return tuple(change)

        slips = [(p, shift(d, y)) for d, y in ((1, -1), (1, 1), (0, -2))]
        return [(1 - 3 * p, shift(1, 0)), *slips]

    def aside(step):
        return [(1 - 2 * p, (0, step, 0)), (p, (0, 2 * step, 0)), (p, (0, -step, 0))]

    return {
        "front": along(0, 1),
        "back": along(0, -1),
        "up": along(2, 1),
        "down": along(2, -1),
        "right": aside(1),
        "left": aside(-1),
    }


def drone(size: int = 8, p: float = 0.3) -> FactoredMDP:
    """Two drones in a cube that execute the same label: 262144 states, 21694720 transitions."""
    slips = [(1, -1), (2, -1), (3, -1), (1, -2), (2, -3), (2, -2), (3, 2), (1, 1), (0, -2)]
    many = [(1 - p, (1, 0, 0)), *((p / 9, (dx, dy, 0)) for dx, dy in slips)]
    labels = drone_branches(p)

    def fly(number, label):
        x, y, z = (f"{axis}{number}" for axis in "xyz")
        ranges = {name: (1, size) for name in (x, y, z)}
        if label != "front":
            return shifts(f"drone{number}", ranges, [labels[label]])

        def slippery(s):
            return np.where((s[x] <= 2) & (s[y] == 4) & (s[z] >= 3) & (s[z] <= 6), 1, 0)

        return shifts(f"drone{number}", ranges, [labels[label], many], slippery)

    def crash(s):
        return (s.x1 >= 3) & (s.x1 <= 4) & ((s.z1 <= 2) | (s.y1 <= 5) | (s.z1 >= 7))

    def target(s):
        return (s.x1 >= 7) & (s.y1 == 1) & (s.z1 >= 7) & (s.x2 >= 7) & (s.y2 == 1) & (s.z2 >= 7)

    names = [f"{axis}{number}" for number in (1, 2) for axis in "xyz"]
    return build(
        {name: (1, size) for name in names},
        [Action(label, [fly(1, label), fly(2, label)]) for label in labels],
        initial=dict.fromkeys(names, 1),
        labels={"crash": crash, "target": target},
    )


def chain() -> FactoredMDP:
    """Two chains of ten states, four choices: 100 states, 3136 transitions."""
    commands = {
        x: {f"step {x}": Singleton([x, 1 - x]), f"fall {x}": Singleton([x] + 9 * [(1 - x) / 9])}
        for x in (0.4, 0.6)
    }

    def walk(s, x):
        def effect(states, identifier, outcome):
            here = states[s]
            if outcome == 0:
                return {s: np.minimum(here + 1, 9)}
            return {s: np.where(identifier == 1, np.maximum(here - outcome, 0), 0)}

        return Move(s, commands[x], effect, lambda states: (states[s] == 8).astype(int))

    return build(
        {"s1": (0, 9), "s2": (0, 9)},
        [Action("step", [walk("s1", x1), walk("s2", x2)]) for x1 in commands for x2 in commands],
        initial={"s1": 0, "s2": 0},
        labels={"target": lambda s: s.s1 == 9},
        rewards={"cost": 1.0},
    )


def sysadmin(machines: int = 10, horizon: int = 15) -> FactoredMDP:
    """Machines in a ring, the clock as published: 15873 states, 9332587 transitions."""
    sets = {"calm": Singleton([0.1, 0.9]), "stressed": Singleton([0.6, 0.4]), "down": STAY}

    def machine(i, repaired):
        me, before, after = (f"m{k % machines}" for k in (i, i - 1, i + 1))

        def effect(s, identifier, outcome):
            over, down = s.t == horizon, identifier == 2
            change = {me: np.where(over, s[me], np.where(down, i == repaired, outcome))}
            if i == 0:
                change["t"] = np.where(over, s.t, s.t + (down | (outcome == 1)))
            return change

        def identify(s):
            both = (s[before] == 1) & (s[after] == 1)
            return np.where((s[me] == 0) | (s.t == horizon), 2, np.where(both, 0, 1))

        return Move(me, sets, effect, identify)

    def running(s):
        return sum(s[f"m{i}"] for i in range(machines))

    def choice(repaired):
        price = 0 if repaired is None else 1
        return Action(
            "noop" if repaired is None else f"repair_{repaired}",
            [machine(i, repaired) for i in range(machines)],
            rewards={"running": lambda s: np.maximum(running(s) - price, 0) * (s.t < horizon)},
        )

    names = [f"m{i}" for i in range(machines)]
    return build(
        {**dict.fromkeys(names, (0, 1)), "t": (0, horizon)},
        [*map(choice, range(machines)), choice(None)],
        initial={**dict.fromkeys(names, 1), "t": 0},
        labels={"end": lambda s: s.t == horizon},
    )
