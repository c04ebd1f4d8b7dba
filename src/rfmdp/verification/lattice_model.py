"""A model of a file that is kept by its factors, with all its fields looked at.

States are all combinations of local states, numbers in mixed radix: factor 0 is the most
significant. In a context (values of the variables that a factor reads, in C order) an action makes
a factor take a move: to a local state for certain, or with an outcome of a set to one of several.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rfmdp.ragged import entries, segment_lengths
from rfmdp.record import Provenance, texts
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.verification.fields import Fields, field, names, need, variables
from rfmdp.verification.sets import BOX, LP, Sets, excess, read_sets

FORBIDDEN = -1  # in place of a move
MOST_STATES = 1 << 31
FAINT, LEAST = 1e-12, 1e-290  # least probabilities, and products of them, that floats show
NAMED = 1 << 22  # states up to which texts that name variables are evaluated


@dataclass(slots=True, eq=False)
class Factor:
    """Variables that move together, and how."""

    size: int  # local states
    weights: dict[int, int]  # what one more of a variable adds to the number of a context
    moves: IntArray  # (contexts, actions), or FORBIDDEN


@dataclass(slots=True, eq=False)
class Depth:
    """A factor that is contracted, with all values of the variables that it reads as the first.

    Of one that is postponed, outcomes are only picked, and these are contracted in the end.
    """

    size: int  # of what is contracted
    moves: IntArray  # (contexts, actions), or FORBIDDEN
    states: IntArray  # (F,) what the values add to the number of a state
    codes: list[IntArray]  # (F,) what they add to the context of this depth and of later ones
    picks: int = 0  # outcomes that are picked only
    picked: bool = False  # whether they were before


@dataclass(eq=False)
class Lattice:
    """A model by its factors."""

    ranges: list[tuple[str, int, int, bool]]  # variables: name, least and largest value, boolean
    radix: list[int]  # numbers of their values
    strides: dict[int, int]  # what one more of a variable adds to the number of a state
    factors: list[Factor]
    move_sets: IntArray  # (moves,) the set of a move; -1: it is certain
    target_ptr: IntArray
    targets: IntArray  # local states that outcomes lead to
    sets: Sets
    actions: int
    initial: IntArray
    labels: dict[str, BoolArray]
    rewards: dict[str, tuple[FloatArray, IntArray, FloatArray]]
    # what states pay (S,), the class of every action, and what classes pay (C, S)
    formulas: Mapping[str, Any]
    provenance: Provenance | None

    @property
    def states(self) -> int:
        """Number of states."""
        return math.prod(factor.size for factor in self.factors)

    @property
    def sizes(self) -> dict[str, int]:
        """What there is how many times, for people."""
        counts = self.states, len(self.factors), self.actions, len(self.sets.kind)
        return dict(zip(("state", "factor", "action", "marginal"), counts, strict=True))

    @property
    def variables(self) -> dict[str, AnyArray]:
        """The values (S,) of variables by name; none of a large model, whose texts stay unread."""
        if self.states > NAMED:
            return {}
        states = np.arange(self.states)
        columns: dict[str, AnyArray] = {}
        for k, (name, low, _, boolean) in enumerate(self.ranges):
            column = states // self.strides[k] % self.radix[k] + low
            columns[name] = column.astype(np.bool_) if boolean else column
        return columns

    @cached_property
    def widths(self) -> list[int]:
        """The most outcomes of the moves of every factor."""
        sizes = segment_lengths(self.target_ptr)
        used = (np.unique(factor.moves[factor.moves >= 0]) for factor in self.factors)
        return [int(sizes[moves].max(initial=1)) for moves in used]

    @cached_property
    def depths(self) -> list[Depth]:
        """What is contracted; of a clock with several outcomes these come last."""
        decided: set[int] = set()
        depths = []
        for k, factor in enumerate(self.factors):
            new = [v for v in factor.weights if v not in decided]
            decided |= set(new)
            radix = [self.radix[v] for v in new]
            digits = np.indices(radix).reshape(len(new), math.prod(radix))
            strides = np.array([self.strides[v] for v in new], dtype=np.int64)
            weights = ([later.weights.get(v, 0) for v in new] for later in self.factors[k:])
            codes = [np.array(each, dtype=np.int64) @ digits for each in weights]
            depths.append(Depth(factor.size, factor.moves, strides @ digits, codes))
        first, outcomes = depths[0], self.widths[0]
        if self.levels is not None and 1 < outcomes < first.size:
            zero = np.zeros(1, dtype=np.int64)
            depths.append(Depth(outcomes, first.moves, zero, [zero], picked=True))
            for depth in depths[:-1]:
                depth.codes.append(0 * depth.states)
            first.codes[-1], first.picks = first.codes[0], outcomes
        return depths

    @cached_property
    def levels(self) -> IntArray | None:
        """Levels of the first factor's local states if it is a clock, else None.

        Those of level 0 stay for ever, the others lead to lower levels only.
        """
        factor = self.factors[0]
        context = np.arange(len(factor.moves))
        inner = self.states // factor.size  # an own variable counts as much there as in the states
        local = np.zeros_like(context)
        for v, weight in factor.weights.items():
            local += context // weight % self.radix[v] * self.strides[v] // inner
        leads = np.zeros((factor.size, factor.size), dtype=np.bool_)
        pairs = local[:, None] * len(self.move_sets) + factor.moves
        pairs = np.unique(pairs[factor.moves != FORBIDDEN])
        for here, move in zip(*np.divmod(pairs, len(self.move_sets)), strict=True):
            leads[here, self.move_targets(move)] = True
        level = np.full(factor.size, -1)
        level[~(leads & ~np.eye(factor.size, dtype=np.bool_)).any(axis=1)] = 0
        while (level < 0).any():
            ready = (level < 0) & ~leads[:, level < 0].any(axis=1)
            if not ready.any():
                return None
            level[ready] = int(level.max()) + 1
        return level

    def move_targets(self, move: int) -> IntArray:
        """Return the local states that a move leads to."""
        return self.targets[self.target_ptr[move] : self.target_ptr[move + 1]]

    def moves_of(self, states: IntArray) -> list[IntArray]:
        """Return the moves (N, actions) of every factor in some states."""
        tables = []
        for factor in self.factors:
            context = np.zeros(len(states), dtype=np.int64)
            for v, weight in factor.weights.items():
                context += states // self.strides[v] % self.radix[v] * weight
            tables.append(factor.moves[context])
        return tables

    @cached_property
    def stuck(self) -> BoolArray:
        """States (S,) in which every action is forbidden by some factor: they stay for ever."""
        where = np.empty(self.states, dtype=np.bool_)
        for first in range(0, self.states, 1 << 16):
            states = np.arange(first, min(first + (1 << 16), self.states))
            able = [table != FORBIDDEN for table in self.moves_of(states)]
            where[states] = ~np.logical_and.reduce(able).any(axis=1)
        return where

    def level_states(self, level: int) -> BoolArray:
        """Return the states of a level of the clock, (S,)."""
        return np.repeat(self.levels == level, self.states // self.factors[0].size)

    @cached_property
    def faint(self) -> bool:
        """Whether products of probabilities may be so small that sums of floats lose them."""
        sets = self.sets
        box = np.repeat(sets.kind == BOX, sets.sizes)
        numbers = np.concatenate(
            [sets.upper[box], sets.nominal[~box], sets.radius / 2, sets.corners]
        )
        free = -excess(sets.lower, sets.ptr)[sets.kind == BOX]
        faintest = float(np.min(np.concatenate([numbers[numbers > 0.0], free]), initial=1.0))
        return faintest < FAINT or faintest ** len(self.factors) < LEAST

    def rows(self, states: IntArray, action: int) -> tuple[IntArray, IntArray]:
        """Return sets (N, n) and successors (N, K) in C order of some rows of an action.

        In every factor all of them must have sets of one size, or none.
        """
        ids = []
        successors = np.zeros((len(states), 1), dtype=np.int64)
        inner = self.states
        for factor, table in zip(self.factors, self.moves_of(states), strict=True):
            inner //= factor.size
            moves = table[:, action]
            size = int(self.target_ptr[moves[0] + 1] - self.target_ptr[moves[0]])
            targets = self.targets[self.target_ptr[moves][:, None] + np.arange(size)] * inner
            successors = (successors[:, :, None] + targets[:, None]).reshape(len(states), -1)
            if self.move_sets[moves[0]] >= 0:
                ids.append(self.move_sets[moves])
        chosen = np.stack(ids, axis=1) if ids else np.empty((len(states), 0), dtype=np.int64)
        return chosen, successors


def origin(header: Mapping[str, Any]) -> Provenance | None:
    """Return where the file says that the model comes from."""
    return Provenance.from_json(header["provenance"]) if "provenance" in header else None


def read_lattice(header: Mapping[str, Any], fields: Fields) -> Lattice:
    """Return a model whose arrays fit together."""
    sets = read_sets(fields.within("marginals.")).settled()
    need((sets.kind != LP).all(), "marginals: must not be Lp balls here")
    ranges = variables(header)
    radix = [high - low + 1 for _, low, high, _ in ranges]
    need(radix and max(radix) <= MOST_STATES, "variables: must be there, with few values each")
    words = texts(header, "actions")  # commands without a label have no names
    need(words, "actions: there must be one")
    actions = len(words)
    move_sets = fields.integers("moves.marginal")
    need(((move_sets >= -1) & (move_sets < len(sets.kind))).all(), "moves.marginal: out of range")
    targets = fields.integers("moves.targets")
    target_ptr = fields.pointers("moves.target_ptr", len(targets), len(move_sets) + 1)
    sizes = np.append(sets.sizes, 1)[move_sets]  # one target of certain moves
    need((np.diff(target_ptr) == sizes).all(), "moves: must have a target per outcome")
    factors, order = [], []
    for k, described in enumerate(field(header, "factors", list)):
        own, reads = (_columns(described, name, len(ranges)) for name in ("columns", "reads"))
        need(set(own) <= set(reads), "factors: must read their own variables")
        size, contexts = (math.prod(radix[v] for v in some) for some in (own, reads))
        table = fields.integers(f"factor.{k}", actions, ndim=2)
        need(len(table) == contexts, f"factor.{k}: must have a line per context")
        inside = (table >= FORBIDDEN) & (table < len(move_sets))
        need(inside.all(), f"factor.{k}: must hold moves")
        factors.append(Factor(size, _weights(reads, radix), table))
        ends = targets[entries(target_ptr, np.unique(table[table >= 0]))]
        need(((ends >= 0) & (ends < size)).all(), "moves.targets: out of range")
        order += own
    need(sorted(order) == list(range(len(ranges))), "factors: must share all variables out")
    states = math.prod(factor.size for factor in factors)
    need(0 < states <= MOST_STATES, "factors: too many states")
    initial = fields.integers("initial", end=states)
    need(len(initial), "initial: there must be an initial state")
    labels = {
        n: fields.booleans(f"label.{i}", states) for i, n in enumerate(names(header, "labels"))
    }
    rewards = {
        name: _rewards(fields.within(f"reward.{i}."), states, actions)
        for i, name in enumerate(names(header, "rewards"))
    }
    return Lattice(
        ranges, radix, _weights(order, radix), factors, move_sets, target_ptr, targets, sets,
        actions, initial, labels, rewards, field(header, "formulas", dict), origin(header),
    )  # fmt: skip


def _columns(described: object, name: str, count: int) -> list[int]:
    columns = field(described, name, list)
    fine = all(type(c) is int and 0 <= c < count for c in columns)
    need(fine and len(set(columns)) == len(columns) and columns, f"factors: {name} are variables")
    return list(columns)


def _weights(order: list[int], radix: list[int]) -> dict[int, int]:
    """Return what one more of each variable counts in a number of all of them, the last least."""
    return {v: math.prod(radix[w] for w in order[k + 1 :]) for k, v in enumerate(order)}


def _rewards(fields: Fields, states: int, actions: int) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return what states pay, the classes of actions, and what these pay."""
    classes = fields.integers("class_of_action", actions)
    need((classes >= 0).all(), "class_of_action: must be numbers of classes")
    count = int(classes.max()) + 1
    paid = [fields.payments(f"class.{c}", states) for c in range(count)]
    return fields.payments("state", states), classes, np.stack(paid)
