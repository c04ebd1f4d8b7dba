"""A small decision tree that does almost what a policy does, and what that costs exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rfmdp.errors import ModelError, UnsupportedError
from rfmdp.outer.solution import Bounds, Policy, Solution
from rfmdp.policies.decisions import reached
from rfmdp.solving import evaluate
from rfmdp.types import IntArray


@dataclass(frozen=True, slots=True, eq=False)
class PolicyTree:
    """A policy that fits on a page."""

    policy: Policy
    text: str  # the tree, with variables and actions
    value: Bounds  # proven bounds of its worst case in the initial state
    loss: float  # how much of the guarantee it gives up, at most
    agreement: float  # share of the reached states in which it decides as the policy does

    def __str__(self) -> str:
        return (
            f"{self.text}guarantees [{self.value.lower:.6g}, {self.value.upper:.6g}], at most "
            f"{self.loss:.3g} less than the policy; decides as it in {100 * self.agreement:.4g} % "
            "of the reached states"
        )


def decision_tree(solution: Solution, leaves: int = 16) -> PolicyTree:
    """Return a decision tree for the policy of a solution, with its exact loss.

    The tree is fitted to the states that the policy reaches; where it names an action that a state
    does not have, the policy's own is kept. Then it is evaluated like any policy: its value is
    proven, whatever the fit.

    Parameters
    ----------
    leaves
        Most decisions of the tree.

    Raises
    ------
    UnsupportedError
        If scikit-learn is missing, or the policy changes with time.
    ModelError
        If the model has no variables.
    """
    try:
        from sklearn.tree import DecisionTreeClassifier, export_text
    except ImportError:
        raise UnsupportedError(
            "A decision tree needs scikit-learn: pip install 'rfmdp[tree]'."
        ) from None
    model = solution.model
    if not model.variables:
        raise ModelError("A decision tree asks for variables; this model has none.")
    if not solution.policy.stationary:
        raise UnsupportedError("A decision tree is for policies that do not change with time.")
    own = solution.policy.rows[0]
    states = reached(solution, model.states, model.transitions + 1)
    tree = DecisionTreeClassifier(max_leaf_nodes=max(leaves, 2), random_state=0)
    tree.fit(model.valuations[states], model.row_actions[own[states]])
    wanted = tree.predict(model.valuations)
    policy = Policy(_rows(solution, wanted)[None, :])
    names = [model.choice_name(int(own[states[model.row_actions[own[states]] == a][0]]))
             for a in tree.classes_]  # fmt: skip
    text = export_text(tree, feature_names=[v.name for v in model.variables], class_names=names)
    value = evaluate(model, policy, solution.spec).at_initial()
    before = solution.at_initial()
    gap = before.upper - value.lower if solution.spec.agent.sign > 0 else value.upper - before.lower
    agreement = float(np.mean(policy.rows[0][states] == own[states]))
    return PolicyTree(policy, text.replace("class: ", ""), value, max(gap, 0.0), agreement)


def _rows(solution: Solution, actions: IntArray) -> IntArray:
    """Return the row of every state with the wanted action; the policy's own if there is none."""
    model = solution.model
    rows = solution.policy.rows[0].copy()
    owner = model.row_states
    fits = np.flatnonzero(model.row_actions == actions[owner])[::-1]
    kept = model.row_actions[rows] == actions
    changed = rows.copy()
    changed[owner[fits]] = fits
    chosen: IntArray = np.where(kept, rows, changed)
    return chosen
