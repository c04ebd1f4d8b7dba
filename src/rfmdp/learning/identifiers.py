"""Identifiers: which draws of a model share one unknown distribution, and can be counted together.

Outcomes of a marginal that always lead to the same successor (at a wall, for example) are merged;
the merged marginal is an identifier of its own. If the outcomes of a row cannot be told apart even
then, the row is learned as one distribution over its successors. Two rows share an identifier only
if the model gives them the same marginal, with the same outcomes merged, or marginals that somebody
ties (`docs/unknowns.md`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.model.derived import joint_successors, same_segments
from rfmdp.ragged import alike, entries, owners, renumbered, segment, segment_lengths, starts
from rfmdp.sets.marginals import Marginals
from rfmdp.sources.source import Structure, equal_numbers, informed
from rfmdp.types import FloatArray, IntArray

JOINT_FACTOR = "joint"
AT_ONCE = 1 << 20  # transitions whose outcomes are compared at once
LocalStates = Mapping[str, Sequence[str]]  # factor -> the variables its identifiers are keyed by


class Granularity(Enum):
    """What an identifier is."""

    TIED = "tied"  # all marginals that the model gives the same probabilities
    EFFECT = "effect"  # a marginal of the model, shared by all rows that use it
    LOCAL = "local state"  # marginal, action and the values of the factor's variables
    FLAT = "flat"  # a row


@dataclass(frozen=True, slots=True, eq=False)
class Identifiers:
    """The learning model, and what its marginals stand for."""

    model: FactoredMDP  # identifiers as marginals, uniform ones: no probability is known
    counted: IntArray  # (|Q|,) outcomes of all that the paper counts, certain moves included;
    # their sum is the paper's U
    multiplied: IntArray  # (M,) marginals of the model whose product an identifier is; mostly 1
    shared: tuple[tuple[str, ...], ...]  # marginals that were declared to be one unknown, by name
    prior: Marginals | None  # boxes that are known before any data; None: nothing is

    def floors(self, p_min: float) -> FloatArray:
        """Return the least probability of the outcomes of every identifier, (M,).

        It is p_min, which is assumed of every possible outcome of a *marginal*. An outcome of a row
        that is learned as a whole is a product of n of these: p_min^n, rounded downwards.
        """
        powers = p_min**self.multiplied
        floors = np.where(self.multiplied > 1, np.nextafter(powers * (1.0 - 1e-15), 0.0), p_min)
        mass = floors * self.model.marginals.sizes
        if np.any(mass > 1.0):
            largest = int(np.argmax(mass))
            raise ModelError(
                f"p_min: must be smaller: outcomes with {p_min:g} each must sum to 1 at most, but "
                f"{self.model.marginal_name(largest)} has {self.model.marginals.sizes[largest]}."
            )
        return floors


def identify(
    structure: Structure,
    granularity: Granularity = Granularity.EFFECT,
    *,
    local: LocalStates = MappingProxyType({}),
    ties: Sequence[Sequence[int | str]] = (),
) -> Identifiers:
    """Return the identifiers of a structure at a granularity, which says what is counted together.

    local : for `LOCAL`, the variables of every factor, parents included. A factor that is left out
        is keyed by the variables that its outcomes change
    ties : groups of marginals (numbers or names) that are declared to be the same unknown
        distribution, outcome by outcome
    """
    model = structure.model
    slots = _Slots(model, granularity)
    if granularity is Granularity.TIED and structure.alike is None:
        raise UnsupportedError(
            "Granularity.TIED: equal numbers of the model are tied, but it has sets in place of "
            "numbers; declare `ties`."
        )
    same = tied(structure, ties, granularity is Granularity.TIED)
    keys = [same[model.row_marginals], slots.pattern()]
    if granularity is Granularity.LOCAL:
        keys.extend(_local_keys(model, local))
    learning, multiplied, prior = slots.reduce(keys)
    counted = learning.marginals.sizes
    if granularity is Granularity.LOCAL and local:
        counted = _all_components(model, slots, local)
    groups: dict[int, list[str]] = {}
    for j, representative in enumerate(same.tolist()):
        groups.setdefault(representative, []).append(model.marginal_name(j))
    shared = tuple(tuple(names) for names in groups.values() if len(names) > 1)
    return Identifiers(learning, counted, multiplied, shared, prior)


def tied(structure: Structure, ties: Sequence[Sequence[int | str]], equal: bool) -> IntArray:
    """Return one member of its group for every marginal, (M,).

    Those may be tied that were written with equal probabilities, or have equal bounds. `equal`: all
    of these are tied.
    """
    model, alike, sets = structure.model, structure.alike, structure.model.marginals
    if alike is None:
        low, high = (equal_numbers(sets.outcome_ptr, ends) for ends in (sets.lower, sets.upper))
        alike = low * len(sets) + high
    same = alike.copy() if equal else np.arange(len(sets))
    number: dict[int | str, int] = {name: j for j, name in enumerate(model.marginal_names)}
    number |= {j: j for j in range(len(sets))}
    for group in ties:
        for member in group:
            if member not in number:
                listed = ", ".join(model.marginal_names[:8]) or f"numbers below {len(sets)}"
                raise ModelError(f"Tie: the model has no marginal {member!r}; it has: {listed}.")
            first, j = number[group[0]], number[member]
            if alike[first] != alike[j]:
                raise ModelError(
                    f"Tie: {model.marginal_name(first)} and {model.marginal_name(j)} must have the "
                    f"same probabilities or sets in the model; they have others."
                )
            same[same == same[j]] = same[first]
    return same


class _Slots:
    """Every (row, marginal) of a model with the classes of its outcomes."""

    def __init__(self, model: FactoredMDP, granularity: Granularity) -> None:
        self.model = model
        sizes = model.marginals.sizes[model.row_marginals]
        self.ptr = starts(sizes)
        self.label = np.empty(int(self.ptr[-1]), dtype=np.int64)
        self.classes = np.zeros(len(sizes), dtype=np.int64)
        self.joint = np.zeros(model.rows, dtype=np.bool_)
        self.first = np.ones(model.transitions, dtype=np.bool_)  # in a combination of classes
        for rows, places in alike(sizes, model.marginal_ptr):
            shape = sizes[places[0]]
            step = max(1, AT_ONCE // int(np.prod(shape)))
            for part in range(0, len(rows), step):
                self._merge(rows[part : part + step], places[part : part + step], shape)
        if granularity is Granularity.FLAT:
            self.joint = segment_lengths(model.marginal_ptr) > 0
        self.row = owners(model.marginal_ptr)

    def _merge(self, rows: IntArray, slots: IntArray, shape: IntArray) -> None:
        """Find the classes of rows of one shape: outcomes with the same successors everywhere.

        Classes are numbered by first appearance. A row is joint if its classes still cannot be told
        from the successor.
        """
        place = self.model.successor_ptr[rows][:, None] + np.arange(np.prod(shape))
        tensor = self.model.successors[place].reshape(-1, *shape)
        first = np.ones(tensor.shape, dtype=np.bool_)
        for axis, d in enumerate(shape, 1):
            slices = np.moveaxis(tensor, axis, 1).reshape(len(rows), d, -1)
            label, count = np.empty((len(rows), d), dtype=np.int64), np.zeros(len(rows), np.int64)
            for o in range(d):
                label[:, o] = count
                for e in range(o):
                    same = (slices[:, o] == slices[:, e]).all(axis=1)
                    label[same, o] = label[same, e]
                new = label[:, o] == count
                count += new
                np.moveaxis(first, axis, 1)[~new, o] = False
            self.label[self.ptr[slots[:, axis - 1]][:, None] + np.arange(d)] = label
            self.classes[slots[:, axis - 1]] = count
        self.first[place] = first.reshape(place.shape)
        chosen = np.where(self.first[place], self.model.successors[place], -1 - place)
        chosen.sort(axis=1)
        self.joint[rows] = (chosen[:, 1:] == chosen[:, :-1]).any(axis=1)

    def pattern(self) -> IntArray:
        """Return a number per slot that says which outcomes are merged; 0 if none is."""
        merged = self.classes < segment_lengths(self.ptr)
        return np.where(merged, 1 + same_segments(self.ptr, self.label)[0], 0)

    def reduce(self, keys: list[IntArray]) -> tuple[FactoredMDP, IntArray, Marginals | None]:
        """Return the learning model, in which slots with equal keys share a marginal.

        And how many marginals of the model every identifier multiplies, and what is known before.
        """
        model = self.model
        plain = ~self.joint[self.row]
        kept = np.flatnonzero(plain & (self.classes > 1))
        first, number = _number([key[kept] for key in keys])
        shared = kept[first]
        joint = np.flatnonzero(self.joint)
        sizes, targets, _ = joint_successors(model, joint, model.marginals.nominal)
        several = sizes > 1  # joint rows with an identifier; they come last
        pointers = starts(np.concatenate([self.classes[shared], sizes[several]]))
        per_row = np.bincount(self.row[kept], minlength=model.rows)
        per_row[joint] = several
        marginal_ptr = starts(per_row)
        row_marginals = np.empty(int(marginal_ptr[-1]), dtype=np.int32)
        separate = np.repeat(~self.joint, per_row)
        row_marginals[separate] = number
        row_marginals[~separate] = len(shared) + np.arange(int(several.sum()))
        length = np.add.reduceat(self.first, model.successor_ptr[:-1], dtype=np.int64)
        length[joint] = sizes
        successor_ptr, inside = starts(length), np.repeat(self.joint, length)
        successors = np.empty(len(inside), dtype=np.int32)
        whole = np.repeat(self.joint, segment_lengths(model.successor_ptr))
        successors[~inside], successors[inside] = model.successors[~whole & self.first], targets
        lengths = segment_lengths(pointers)
        factors = (*model.factors, JOINT_FACTOR)
        row_factors = np.full(len(separate), factors.index(JOINT_FACTOR), dtype=np.int32)
        if len(model.row_factors):
            row_factors[separate] = model.row_factors[kept]
        learning = replace(
            model,
            marginal_ptr=marginal_ptr,
            row_marginals=row_marginals,
            successor_ptr=successor_ptr,
            successors=successors,
            marginals=Marginals.from_points(pointers, 1.0 / np.repeat(lengths, lengths)),
            factors=tuple(dict.fromkeys(factors)),
            row_factors=row_factors,
            marginal_names=self._names(shared, joint[several]),
            outcome_names=() if len(joint) else self._outcome_names(shared),
        )
        products = segment_lengths(model.marginal_ptr)[joint[several]]
        multiplied = np.append(np.ones_like(shared), products)
        return learning, multiplied, self._prior(pointers, shared, joint)

    def _prior(self, pointers: IntArray, shared: IntArray, joint: IntArray) -> Marginals | None:
        """Return what is known of the identifiers before any data; None: nothing is.

        Bounds of outcomes that are one outcome of an identifier are added up.
        """
        model, sets = self.model, self.model.marginals
        if not informed(sets).any():
            return None
        slack = float(np.max(sets.sizes)) * np.finfo(np.float64).eps  # bounds are rounded outwards
        slack *= float(np.max(segment_lengths(model.marginal_ptr)))
        class_ptr = starts(self.classes[shared])
        begin = np.repeat(class_ptr[:-1], segment_lengths(self.ptr)[shared])
        place = begin + self.label[entries(self.ptr, shared)]
        source = entries(sets.outcome_ptr, model.row_marginals[shared])
        ends = []
        for bound in (sets.lower, sets.upper):
            sums = np.bincount(place, weights=bound[source], minlength=int(class_ptr[-1]))
            sizes, _, mass = joint_successors(model, joint, bound)
            ends.append(np.concatenate([sums, mass[np.repeat(sizes > 1, sizes)]]))
        lower, upper = ends[0] * (1.0 - slack), np.minimum(ends[1] * (1.0 + slack), 1.0)
        return Marginals.from_boxes(pointers, lower, upper)

    def _names(self, shared: IntArray, joint: IntArray) -> tuple[str, ...]:
        """Name identifiers by their marginal, and by where they were met first."""
        model, names = self.model, []
        sizes = segment_lengths(self.ptr)
        for slot in shared:
            name = model.marginal_name(int(model.row_marginals[slot]))
            if self.classes[slot] < sizes[slot]:
                labels = self.label[segment(self.ptr, slot)]
                name += f", merged to {','.join(map(str, labels))}"
            place = model.row_name(int(self.row[slot]))
            if len(model.row_factors):  # a marginal may move several factors of a row
                place += f", factor {model.factors[model.row_factors[slot]]}"
            names.append(f"{name}, first in {place}")
        choice = joint - model.row_ptr[model.row_states[joint]] + 1
        rows = map(model.row_name, joint.tolist())
        return (*names, *(f"joint, {row}, choice {k}" for row, k in zip(rows, choice, strict=True)))

    def _outcome_names(self, shared: IntArray) -> tuple[str, ...]:
        """Name the outcomes of identifiers as the model does; those that are merged, by all."""
        model, names = self.model, []
        for slot in shared if model.outcome_names else ():
            first = int(model.marginals.outcome_ptr[model.row_marginals[slot]])
            label = self.label[segment(self.ptr, slot)]
            for merged in range(int(self.classes[slot])):
                alike = [model.outcome_names[first + o] for o in np.flatnonzero(label == merged)]
                names.append(" or ".join(dict.fromkeys(alike)))
        return tuple(names)


def _local_keys(model: FactoredMDP, local: LocalStates) -> list[IntArray]:
    """Return factor, action and local state of every slot."""
    row = owners(model.marginal_ptr)
    if not len(model.row_factors) or not model.variables:
        raise ModelError("Granularity.LOCAL: the model must know its variables and factors.")
    code = np.zeros(len(row), dtype=np.int64)
    for f, factor in enumerate(model.factors):
        which = np.flatnonzero(model.row_factors == f)
        names = local[factor] if factor in local else _moved(model, f)
        code[which] = _codes(model, names)[model.row_states[row[which]]]
    return [model.row_factors.astype(np.int64), model.row_actions[row].astype(np.int64), code]


def _moved(model: FactoredMDP, factor: int) -> list[str]:
    """Return the variables that differ along the axis of a factor in some row."""
    differs = np.zeros(len(model.variables), dtype=np.bool_)
    rows = owners(model.marginal_ptr)
    for slot in np.flatnonzero(model.row_factors == factor)[:4096]:
        row = rows[slot]
        shape = model.marginals.sizes[model.row_marginals[segment(model.marginal_ptr, row)]]
        tensor = model.successors[segment(model.successor_ptr, row)]
        fibre = np.moveaxis(tensor.reshape(shape), int(slot - model.marginal_ptr[row]), 0)
        values = model.valuations[fibre.reshape(len(fibre), -1)[:, 0]]
        differs |= (values != values[0]).any(axis=0)
    return [v.name for v, moved in zip(model.variables, differs, strict=True) if moved]


def _codes(model: FactoredMDP, names: Sequence[str]) -> IntArray:
    """Return a number per state, equal where some variables have equal values."""
    places = {v.name: i for i, v in enumerate(model.variables)}
    for name in names:
        if name not in places:
            raise ModelError(f"Local state: the model has no variable '{name}'.")
    columns = [model.valuations[:, places[name]].astype(np.int64) for name in names]
    return _number([np.zeros(model.states, dtype=np.int64), *columns])[1]


def _all_components(model: FactoredMDP, slots: _Slots, local: LocalStates) -> IntArray:
    """Return the outcomes of every (factor, local state, action) that occurs, certain or not."""
    sizes = []
    for factor, names in local.items():
        outcomes = np.ones(model.rows, dtype=np.int64)
        if factor in model.factors:
            of_factor = model.row_factors == model.factors.index(factor)
            np.maximum.at(outcomes, slots.row[of_factor], slots.classes[of_factor])
        actions = model.row_actions.astype(np.int64)
        _, number = _number([actions, _codes(model, names)[model.row_states]])
        most = np.zeros(int(number.max()) + 1, dtype=np.int64)
        np.maximum.at(most, number, outcomes)
        sizes.append(most)
    return np.concatenate(sizes)


def _number(keys: list[IntArray]) -> tuple[IntArray, IntArray]:
    """Return first members of the classes of equal keys, in order, and the class of each entry."""
    code = np.zeros(len(keys[0]), dtype=np.int64)
    for key in keys:
        column = renumbered(key)
        code = renumbered(code) * (int(column.max(initial=0)) + 1) + column
    _, first, number = np.unique(code, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # so that identifiers come in the order of the rows
    return first[order], np.argsort(order, kind="stable")[number.reshape(-1)]
