"""What an rf-MDP is: a frozen struct of arrays.

State `s` owns the rows `row_ptr[s] : row_ptr[s + 1]`, one per choice of the agent. Row `r` has
the marginals `row_marginals[marginal_ptr[r] : marginal_ptr[r + 1]]`, of sizes d1, ..., dn, and
the successor tensor `successors[successor_ptr[r] : successor_ptr[r + 1]]` with d1 * ... * dn
entries in C order: the last marginal moves fastest. A row without marginals is a certain move.
Probabilities live once per marginal, never per transition: a transition costs four bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from rfmdp.errors import ModelError
from rfmdp.ragged import owner, owners, segment, starts
from rfmdp.record import Provenance, balls
from rfmdp.sets.families import AnySet
from rfmdp.sets.marginals import Marginals, balls_around
from rfmdp.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray, frozen

if TYPE_CHECKING:
    from rfmdp.model.lattice import AnyModel

Row: TypeAlias = tuple[Sequence[int], ArrayLike] | tuple[Sequence[int], ArrayLike, str]
# marginals, successors in C order, and the name of the action
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Variable:
    """A state variable with the integer domain low..high; booleans are 0..1."""

    name: str
    low: int
    high: int
    boolean: bool = False


def state_text(names: Iterable[str], values: Iterable[int]) -> str:
    """Return a state as `(x=1, y=0)` for messages."""
    return "(" + ", ".join(f"{name}={x}" for name, x in zip(names, values, strict=True)) + ")"


def require_all_values(variables: Iterable[Variable], values: Mapping[str, Any]) -> None:
    """Raise ModelError unless values are those of all variables."""
    names = [v.name for v in variables]
    if set(values) != set(names):
        raise ModelError(
            f"A state is given by all variables ({', '.join(names) or 'there are none'}); "
            f"got {', '.join(values) or 'none'}."
        )


def named_reward(rewards: Mapping[str, T], name: str | None) -> T:
    """Return a reward structure by name; `None` is the first one."""
    if name is None and rewards:
        return next(iter(rewards.values()))
    if name is not None and name in rewards:
        return rewards[name]
    names = ", ".join(f'"{key}"' for key in rewards) or "none"
    structure = "A reward structure" if name is None else f'Reward structure "{name}"'
    raise ModelError(f"{structure} is not defined by the model; it has: {names}.")


def _numbers(values: ArrayLike) -> Int32Array:
    """Return integers of 32 bits (N,)."""
    array: AnyArray = np.atleast_1d(np.asarray(values))
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"they must be integers, got {array.dtype}.")
    if array.size and not -(2**31) <= array.min() <= array.max() < 2**31:
        raise ValueError(f"they must fit 32 bits, got {array.max()}.")
    return array.astype(np.int32).ravel()


@dataclass(frozen=True, slots=True, eq=False)
class Rewards:
    """A reward structure: a reward per state and one per row, paid when the row is taken."""

    state: FloatArray  # (S,)
    row: FloatArray  # (R,)

    def __post_init__(self) -> None:
        for name in ("state", "row"):
            try:
                values = np.asarray(getattr(self, name), dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise ModelError(f"Rewards: {name} must be numbers ({error}).") from error
            object.__setattr__(self, name, frozen(values))


class UncertainModel:
    """A frozen dataclass with `marginals` and a `provenance`; its sets can be replaced."""

    __slots__ = ()

    marginals: Marginals
    provenance: Provenance | None

    @property
    def uncertain(self) -> bool:
        """Whether nature has a choice somewhere."""
        return bool((self.marginals.lower < self.marginals.upper).any())

    def with_marginals(self, marginals: Marginals) -> Self:
        """Return the same structure with other uncertainty sets of the same sizes."""
        if not np.array_equal(marginals.outcome_ptr, self.marginals.outcome_ptr):
            raise ModelError(
                f"with_marginals: needs {len(self.marginals)} sets with the sizes of this model's, "
                f"got {len(marginals)}."
            )
        return self._with(marginals=marginals).with_provenance(sets={"kind": "other"})

    def with_provenance(self, **changes: Any) -> Self:
        """Return the same model with other fields of its provenance, if it has one."""
        if self.provenance is None:
            return self
        return self._with(provenance=replace(self.provenance, **changes))

    def with_radius(self, radius: float, floor: float = 0.0, *, exponent: float = math.inf) -> Self:
        """Return the model with balls around its nominal distributions; the support is kept.

        Parameters
        ----------
        radius
            Every probability p that is not 0 or 1 becomes [max(p - radius, floor),
            min(p + radius, 1 - floor)].
        floor
            Least probability of every possible outcome, an explicit assumption; boxes only.
        exponent
            Of the norm: inf for boxes, 1 for L1 balls, any p >= 1.

        Raises
        ------
        ModelError
            If the model has sets already; `model.nominal().with_radius(...)` replaces them.
        UnsupportedError
            For a floor with a norm other than L-infinity, or sets that this layout cannot have.
        """
        if self.uncertain:
            raise ModelError(
                "with_radius: must be around a nominal model, this one has sets of its own; use "
                "model.nominal().with_radius(...) to drop them first."
            )
        sets = balls_around(self.marginals, radius, exponent, floor)
        return self.with_marginals(sets).with_provenance(sets=balls(radius, exponent, floor))

    def nominal(self) -> Self:
        """Return the model with every set replaced by its nominal member."""
        points = Marginals.from_points(self.marginals.outcome_ptr, self.marginals.nominal)
        return self.with_marginals(points).with_provenance(sets={"kind": "nominal"})

    def _with(self, **fields: Any) -> Self:
        return cast(Self, replace(cast(Any, self), **fields))


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class FactoredMDP(UncertainModel):
    """A robust factored MDP. See the module's docstring for the layout.

    Build it with `rfmdp.build`, `rfmdp.load_prism`, `rfmdp.domain` or `FactoredMDP.from_rows`. One
    that is made of arrays is checked by `rfmdp.validate`, and when it is solved.
    """

    row_ptr: IntArray  # (S + 1,)
    marginal_ptr: IntArray  # (R + 1,)
    row_marginals: Int32Array  # (sum of factors per row,)
    successor_ptr: IntArray  # (R + 1,)
    successors: Int32Array  # (K,)
    marginals: Marginals  # M sets
    initial: IntArray  # (I,) states
    row_actions: Int32Array  # (R,) index into `actions`
    actions: tuple[str, ...]
    labels: Mapping[str, BoolArray] = field(default_factory=dict)  # (S,) each
    rewards: Mapping[str, Rewards] = field(default_factory=dict)
    variables: tuple[Variable, ...] = ()
    valuations: Int32Array = field(default_factory=lambda: np.empty((0, 0), np.int32))  # (S, vars)
    factors: tuple[str, ...] = ()
    row_factors: Int32Array = field(default_factory=lambda: np.empty(0, np.int32))
    # parallel to row_marginals: index into `factors` of the factor that the marginal moves
    marginal_names: tuple[str, ...] = ()
    outcome_names: tuple[str, ...] = ()  # (O,) or empty: the effect of every outcome
    formulas: Mapping[str, Any] = field(default_factory=dict)
    # names that properties may use beside variables: constants and formulas of the source text
    provenance: Provenance | None = None  # where it comes from, if that is known

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if isinstance(getattr(self, name), np.ndarray):
                object.__setattr__(self, name, frozen(getattr(self, name)))

    def __repr__(self) -> str:
        return f"FactoredMDP({', '.join(model_sizes(self))})"

    @staticmethod
    def from_rows(
        states: Sequence[Sequence[Row]],
        marginals: Marginals | Iterable[AnySet],
        *,
        initial: ArrayLike = 0,
        labels: Mapping[str, ArrayLike] = MappingProxyType({}),
        rewards: Mapping[str, Rewards] = MappingProxyType({}),
    ) -> FactoredMDP:
        """Return a checked model from one list of rows per state.

        A row is (marginals, successors) or (marginals, successors, action): numbers of sets, and
        the tensor of states in C order. An action is by default the number of its row.

        Examples
        --------
        >>> from rfmdp.sets.families import Singleton
        >>> coin = Singleton([0.5, 0.5])
        >>> model = FactoredMDP.from_rows(
        ...     [[([0], [0, 1], "toss"), ([], [0], "wait")], [([], [1], "wait")]], [coin]
        ... )
        >>> model.rows, model.actions
        (3, ('toss', 'wait'))
        """
        from rfmdp.model.validate import require_valid

        names = dict[str, int]()
        chosen: list[int] = []
        ids, targets = [np.empty(0, dtype=np.int32)], [np.empty(0, dtype=np.int32)]
        where = "State 0, row 0"
        must = "must be (marginals, successors) or (marginals, successors, action)"
        try:
            for s, rows in enumerate(states):
                for number, row in enumerate(rows):
                    where = f"State {s}, row {number}"
                    row_marginals, successors, *named = row
                    action = named[0] if named else f"a{number}"
                    if not isinstance(action, str):
                        raise TypeError(f"the action must be a name, got {action!r}.")
                    chosen.append(names.setdefault(action, len(names)))
                    ids.append(_numbers(row_marginals))
                    targets.append(_numbers(successors))
            where, must = "from_rows", "sets must be listed, labels and rewards named"
            sets = marginals if isinstance(marginals, Marginals) else Marginals.from_sets(marginals)
            model = FactoredMDP(
                row_ptr=starts([len(rows) for rows in states]),
                marginal_ptr=starts([len(values) for values in ids[1:]]),
                row_marginals=np.concatenate(ids),
                successor_ptr=starts([len(values) for values in targets[1:]]),
                successors=np.concatenate(targets),
                marginals=sets,
                initial=_numbers(initial).astype(np.int64),
                row_actions=np.array(chosen, dtype=np.int32),
                actions=tuple(names),
                labels={str(name): np.asarray(values) for name, values in labels.items()},
                rewards=dict(rewards.items()),
            )
        except (TypeError, ValueError, AttributeError) as error:
            raise ModelError(f"{where}: {must}; {error}") from error
        require_valid(model)
        return model

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.row_ptr) - 1

    @property
    def rows(self) -> int:
        """Number of rows (choices over all states)."""
        return len(self.successor_ptr) - 1

    @property
    def transitions(self) -> int:
        """Number of successor entries, branches that meet in one state counted separately."""
        return len(self.successors)

    @property
    def row_states(self) -> IntArray:
        """The state of every row, (R,)."""
        return owners(self.row_ptr)

    @property
    def structure(self) -> tuple[IntArray | Int32Array, ...]:
        """The arrays that kernels take as `model`, in their order."""
        return (
            *(self.row_ptr, self.marginal_ptr, self.row_marginals, self.marginals.outcome_ptr),
            *(self.successor_ptr, self.successors),
        )

    def label(self, name: str) -> BoolArray:
        """Return where a label holds, (S,); `init` and `deadlock` always exist."""
        if name in self.labels:
            return self.labels[name]
        where = np.zeros(self.states, dtype=np.bool_)
        if name == "init":
            where[self.initial] = True
        elif name != "deadlock":
            listed = ", ".join(sorted({*self.labels, "init", "deadlock"}))
            raise ModelError(f'Label "{name}" is not defined by the model; it has: {listed}.')
        return where

    def reward(self, name: str | None) -> Rewards:
        """Return a reward structure by name; `None` is the first one."""
        return named_reward(self.rewards, name)

    def find(self, **values: int) -> int:
        """Return the state with the given values of all variables, `find(x=1, y=2)`."""
        require_all_values(self.variables, values)
        names = [v.name for v in self.variables]
        numbers = np.array([values[name] for name in names])
        hits = np.flatnonzero((self.valuations == numbers).all(axis=1))
        if not len(hits):
            named = ", ".join(f"{name}={values[name]}" for name in names)
            ranges = ", ".join(f"{v.name} in {v.low}..{v.high}" for v in self.variables)
            raise ModelError(f"No reachable state has {named}; try other values ({ranges}).")
        return int(hits[0])

    def state_columns(self) -> dict[str, list[Any]]:
        """Return the variables of all states as columns; `state` if there are no variables."""
        if not self.variables:
            return {"state": list(range(self.states))}
        columns = zip(self.variables, self.valuations.T, strict=True)
        return {v.name: (x.astype(bool) if v.boolean else x).tolist() for v, x in columns}

    def choice_name(self, row: int) -> str:
        """Return the name of a row's action; of an unlabelled one its commands, or its number."""
        action = self.actions[self.row_actions[row]]
        if action:
            return str(action)
        ids = self.row_marginals[segment(self.marginal_ptr, row)]
        if len(ids):
            return " & ".join(self.marginal_name(int(j)) for j in ids)
        state = owner(self.row_ptr, row)
        return f"choice {row - int(self.row_ptr[state]) + 1}"

    def state_values(self, states: IntArray) -> Int32Array:
        """Return the variables of some states, (N, vars)."""
        return self.valuations.reshape(self.states, len(self.variables))[states]

    def state_name(self, state: int) -> str:
        """Return a state as `(x=1, y=0)`, or `state 7` if the model has no variables."""
        if not self.variables:
            return f"state {state}"
        return state_text((v.name for v in self.variables), self.valuations[state])

    def marginal_name(self, j: int) -> str:
        """Return the identifier of a marginal for messages."""
        return self.marginal_names[j] if self.marginal_names else f"marginal {j}"

    def row_name(self, row: int) -> str:
        """Return a row as `(x=1), action up` for messages."""
        state = owner(self.row_ptr, row)
        action = self.actions[self.row_actions[row]] or "(unlabelled)"
        return f"{self.state_name(state)}, action {action}"


def model_sizes(model: AnyModel) -> list[str]:
    """Return the numbers of states, rows, transitions and marginals, for people."""
    sizes = {
        "state": model.states,
        "row": model.rows,
        "transition": model.transitions,
        "marginal": len(model.marginals),
    }
    return [counted(number, what) for what, number in sizes.items()]


def counted(number: int, what: str) -> str:
    """Return a number of things, `1,200 states`."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")
