"""A built model as the static checks of properties see it.

Labels stand for themselves: where they hold is in the model's arrays, so properties fit models
from anywhere (PRISM texts, explicit files, Python), not only those that still have their text.
"""

from __future__ import annotations

from rfmdp.language.ast import Expr, Label, LabelDefinition, ModelType, RewardStructure
from rfmdp.language.check import BUILT_IN_LABELS
from rfmdp.language.checked import CheckedModel
from rfmdp.language.source import SourceText
from rfmdp.model.lattice import AnyModel


def model_type(model: AnyModel) -> ModelType:
    """Return the PRISM type that a model amounts to; one row per state is a chain."""
    if model.rows == model.states:
        return ModelType.IDTMC if model.uncertain else ModelType.DTMC
    return ModelType.IMDP if model.uncertain else ModelType.MDP


def scope(model: AnyModel | None, source: SourceText) -> CheckedModel:
    """Return the names that properties of a model may use; none without a model.

    Errors show `source`.
    """
    if model is None:
        return CheckedModel(ModelType.MDP, (), (), (), (), (), {}, {}, (), source)
    constants = {k: v for k, v in model.formulas.items() if not isinstance(v, Expr)}
    return CheckedModel(
        model_type(model),
        model.variables,
        (),
        tuple(LabelDefinition(k, Label(k)) for k in model.labels if k not in BUILT_IN_LABELS),
        tuple(RewardStructure(name or None, ()) for name in model.rewards),
        (),
        constants,
        {k: v for k, v in model.formulas.items() if isinstance(v, Expr)},
        model.actions,
        source,
    )
