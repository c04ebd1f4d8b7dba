"""Path formulas solved: the solver of today on the product of model and automaton."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rfmdp.errors import ModelError
from rfmdp.model.arrays import FactoredMDP
from rfmdp.objective import Spec, Temporal, TemporalReward
from rfmdp.outer.solution import Policy, Solution
from rfmdp.temporal.hoa import HoaAutomaton
from rfmdp.temporal.product import Product, make_product
from rfmdp.types import BoolArray

Solve = Callable[[Product, Spec, BoolArray], Solution]
"""Called as solve(product, specification of its model, states of interest)."""


def solve_temporal(model: FactoredMDP, spec: Spec, interest: BoolArray, solve: Solve) -> Solution:
    """Return the solution on the product, which has the formula, the automaton and the base."""
    request = spec.objective
    assert isinstance(request, Temporal | TemporalReward)
    product = make_product(model, request, interest)
    on_product = replace(spec, objective=product.objective(request))
    solution = solve(product, on_product, first_states(product, interest))
    return replace(solution, product=product)


def with_automaton(spec: Spec, automaton: HoaAutomaton | None) -> Spec:
    """Return a specification whose path formula means what an automaton says.

    Raises
    ------
    ModelError
        If there is an automaton, but no formula that needs one.
    """
    if automaton is None:
        return spec
    if not isinstance(spec.objective, Temporal):
        raise ModelError(
            f"An automaton needs a P over a path formula with operators inside each "
            f"other, or joined by & and |; found {spec}."
        )
    return replace(spec, objective=replace(spec.objective, automaton=automaton))


def first_states(product: Product, interest: BoolArray) -> BoolArray:
    """Return the states (S',) with which plays from some states (S,) of the model begin."""
    states = np.zeros(product.model.states, dtype=np.bool_)
    states[product.start[interest]] = True
    return states


def on_product(model: FactoredMDP, spec: Spec) -> tuple[FactoredMDP, Spec]:
    """Return model and specification with memory if that is of a path formula, else as they are."""
    request = spec.objective
    if not isinstance(request, Temporal | TemporalReward):
        return model, spec
    product = make_product(model, request, model.label("init"))
    return product.model, replace(spec, objective=product.objective(request))


def with_memory(policy: Policy, product: Product) -> Policy:
    """Return a policy of the base model as one of the product, which it is already if it fits."""
    base, model = product.base, product.model
    if policy.rows.shape[1] != base.states:
        return policy
    numbers = policy.rows[:, product.states] - base.row_ptr[product.states]
    return Policy(model.row_ptr[:-1] + numbers)
