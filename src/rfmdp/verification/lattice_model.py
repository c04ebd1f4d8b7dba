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

from rfmdp.record import Provenance
from rfmdp.types import AnyArray, BoolArray, FloatArray, IntArray
from rfmdp.verification.fields import Fields, field, names, need
from rfmdp.verification.sets import BOX, LP, Sets, excess, read_sets

FORBIDDEN = -1  # in place of a move
MOST_STATES = 1 << 31
FAINT, LEAST = 1e-12, 1e-290  # least probabilities, and products of them, that floats show
NAMED = 1 << 22  # states up to which texts that name variables are evaluated


@dataclass(slots=True, eq=False)
class Factor:
    """Variables that move together, and how."""

    size: int  # local states
    reads: list[int]  # variables of its contexts
    moves: IntArray  # (contexts, actions), or FORBIDDEN


@dataclass(slots=True, eq=False)
class Fresh:
    """All values of the variables that are read at a depth for the first time."""

    states: IntArray  # (F,) what they add to the number of a state
    codes: list[IntArray]  # (F,) what they add to the context of this factor and of later ones


@dataclass(eq=False)
class Lattice:
    """A model by its factors."""

    ranges: list[tuple[str, int, int, bool]]  # variables: name, least and largest value, boolean
    strides: list[int]  # what one more of a variable adds to the number of a state
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
        return {
            "state": self.states,
            "factor": len(self.factors),
            "action": self.actions,
            "marginal": len(self.sets.kind),
        }

    @property
    def begins(self) -> BoolArray:
        """The initial states, (S,)."""
        where = np.zeros(self.states, dtype=np.bool_)
        where[self.initial] = True
        return where

    def label(self, name: str) -> BoolArray:
        """Return where a label holds."""
        if name in self.labels:
            return self.labels[name]
        need(name in ("init", "deadlock"), f"objective: there is no label {name!r}")
        return self.begins if name == "init" else self.stuck

    @property
    def variables(self) -> dict[str, AnyArray]:
        """The values (S,) of variables by name; none of a large model, whose texts stay unread."""
        if self.states > NAMED:
            return {}
        states = np.arange(self.states)
        columns: dict[str, AnyArray] = {}
        for (name, low, high, boolean), stride in zip(self.ranges, self.strides, strict=True):
            column = states // stride % (high - low + 1) + low
            columns[name] = column.astype(np.bool_) if boolean else column
        return columns

    def radix(self, variable: int) -> int:
        """Return the number of values of a variable."""
        _, low, high, _ = self.ranges[variable]
        return high - low + 1

    def weights(self, factor: Factor) -> dict[int, int]:
        """Return what each variable counts in the contexts of a factor."""
        weights, weight = {}, 1
        for variable in reversed(factor.reads):
            weights[variable] = weight
            weight *= self.radix(variable)
        return weights

    @cached_property
    def fresh(self) -> list[Fresh]:
        """What every depth reads for the first time."""
        decided: set[int] = set()
        depths = []
        for depth, factor in enumerate(self.factors):
            new = [v for v in factor.reads if v not in decided]
            decided |= set(new)
            count = math.prod(self.radix(v) for v in new)
            digits = np.indices([self.radix(v) for v in new]).reshape(len(new), count)
            zero = np.zeros(count, dtype=np.int64)
            states = sum((d * self.strides[v] for v, d in zip(new, digits, strict=True)), zero)
            codes = []
            for later in self.factors[depth:]:
                weights = self.weights(later)
                more = (d * weights.get(v, 0) for v, d in zip(new, digits, strict=True))
                codes.append(sum(more, zero))
            depths.append(Fresh(states, codes))
        return depths

    @cached_property
    def levels(self) -> IntArray | None:
        """Levels of the first factor's local states if it is a clock, else None.

        Those of level 0 stay for ever, the others lead to lower levels only.
        """
        factor = self.factors[0]
        local = self.fresh[0].states // (self.states // factor.size)
        context = self.fresh[0].codes[0]
        leads = np.zeros((factor.size, factor.size), dtype=np.bool_)
        pairs = local[:, None] * len(self.move_sets) + factor.moves[context]
        pairs = np.unique(pairs[factor.moves[context] != FORBIDDEN])
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
            for variable, weight in self.weights(factor).items():
                context += states // self.strides[variable] % self.radix(variable) * weight
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
        """Return the states of a level, (S,); none if there are no levels."""
        first = self.factors[0].size
        holds = np.zeros(first, dtype=np.bool_) if self.levels is None else self.levels == level
        return np.repeat(holds, self.states // first)

    @property
    def still(self) -> BoolArray:
        """The states (S,) that are stuck, or in which a clock has come to its end."""
        return self.stuck | self.level_states(0)

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


def read_lattice(header: Mapping[str, Any], fields: Fields, origin: Provenance | None) -> Lattice:
    """Return a model whose arrays fit together."""
    sets = read_sets(fields.within("marginals.")).settled()
    need((sets.kind != LP).all(), "marginals: must not be Lp balls here")
    ranges = _ranges(header)
    actions = len(names_of_actions(header))
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
        factors.append(_factor(fields, k, own, reads, ranges, actions, len(move_sets)))
        used = np.unique(factors[-1].moves[factors[-1].moves >= 0])
        ends = np.concatenate([targets[target_ptr[m] : target_ptr[m + 1]] for m in used] or [used])
        need(((ends >= 0) & (ends < factors[-1].size)).all(), "moves.targets: out of range")
        order += own
    need(sorted(order) == list(range(len(ranges))), "factors: must share all variables out")
    states = math.prod(factor.size for factor in factors)
    need(0 < states <= MOST_STATES, "factors: too many states")
    strides = _strides(order, ranges)
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
        ranges, strides, factors, move_sets, target_ptr, targets, sets, actions, initial,
        labels, rewards, field(header, "formulas", dict), origin,
    )  # fmt: skip


def names_of_actions(header: Mapping[str, Any]) -> list[str]:
    """Return the names of actions; commands without a label have none."""
    words = field(header, "actions", list)
    need(words and all(isinstance(word, str) for word in words), "actions: must be texts")
    return list(words)


def _ranges(header: Mapping[str, Any]) -> list[tuple[str, int, int, bool]]:
    ranges = []
    for variable in field(header, "variables", list):
        low, high = (field(variable, end, int) for end in ("low", "high"))
        need(low <= high < low + MOST_STATES, "variables: must have a range")
        ranges.append((field(variable, "name", str), low, high, field(variable, "boolean", bool)))
    need(ranges, "variables: there must be one")
    return ranges


def _columns(described: object, name: str, count: int) -> list[int]:
    columns = field(described, name, list)
    fine = all(type(c) is int and 0 <= c < count for c in columns)
    need(fine and len(set(columns)) == len(columns) and columns, f"factors: {name} are variables")
    return list(columns)


def _factor(
    fields: Fields, k: int, own: list[int], reads: list[int], ranges: list[Any], actions: int,
    moves: int,
) -> Factor:  # fmt: skip
    """Return a factor whose table has a move, or none, per context and action."""
    size, contexts = (math.prod(ranges[c][2] - ranges[c][1] + 1 for c in s) for s in (own, reads))
    table = fields.integers(f"factor.{k}", actions, ndim=2)
    need(len(table) == contexts, f"factor.{k}: must have a line per context")
    need(((table >= FORBIDDEN) & (table < moves)).all(), f"factor.{k}: must hold moves")
    return Factor(size, reads, table)


def _strides(order: list[int], ranges: list[Any]) -> list[int]:
    strides, stride = [0] * len(ranges), 1
    for variable in reversed(order):
        strides[variable] = stride
        stride *= ranges[variable][2] - ranges[variable][1] + 1
    return strides


def _rewards(fields: Fields, states: int, actions: int) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return what states pay, the classes of actions, and what these pay."""
    classes = fields.integers("class_of_action", actions)
    need((classes >= 0).all(), "class_of_action: must be numbers of classes")
    count = int(classes.max()) + 1
    paid = [fields.floats(f"class.{c}", states) for c in range(count)]
    of_states = fields.floats("state", states)
    largest = max(float(np.abs(each).max()) for each in (of_states, *paid))
    need(largest <= 1e100, "rewards: must be at most 1e100")
    return of_states, classes, np.stack(paid)
