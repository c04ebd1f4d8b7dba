"""Nominal models against Storm: states, rows, transitions, labels and rewards of the same text."""

import json
import warnings
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from examples import quarter
from rfmdp.language.build import parse_prism

from .case_studies import ALL
from .random_models import model_texts
from .twin import branches_of, merged

stormpy = pytest.importorskip("stormpy")


def storm_model(text: str, folder: Path):
    """Build a text with Storm, with valuations, labels and rewards."""
    file = folder / "model.prism"
    file.write_text(text)
    options = stormpy.BuilderOptions()
    options.set_build_state_valuations(True)
    options.set_build_all_labels()
    options.set_build_all_reward_models()
    return stormpy.build_model(stormpy.parse_prism_program(str(file)), options=options)


def storm_states(storm, model):
    """Return the valuation of every state; Storm leaves out variables that never change."""
    first = model.valuations[model.initial[0]]
    usual = {v.name: x for v, x in zip(model.variables, first, strict=True)}
    found = []
    for state in range(storm.nr_states):
        values = usual | (json.loads(str(storm.state_valuations.to_json(state))) or {})
        found.append(tuple(int(values[v.name]) for v in model.variables))
    return found


def rewards_of(storm, structure, kind, index):
    model = storm.reward_models[structure]
    if kind == "state":
        return model.get_state_reward(index) if model.has_state_rewards else 0.0
    return model.get_state_action_reward(index) if model.has_state_action_rewards else 0.0


def same_as_storm(text, folder):
    """Compare everything, states matched by valuation, branches that meet added up."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = parse_prism(text)
    storm = storm_model(text, folder)
    theirs = storm_states(storm, model)
    ours = [tuple(map(int, row)) for row in model.valuations]
    number = {state: k for k, state in enumerate(ours)}
    assert set(theirs) == set(ours)
    assert storm.nr_choices == model.rows
    for label in model.labels:
        found = {theirs[s] for s in storm.labeling.get_states(label)}
        assert found == {ours[s] for s in range(model.states) if model.labels[label][s]}
    structures = list(model.rewards)
    for state in storm.states:
        s = number[theirs[state.id]]
        for structure in structures:
            paid = rewards_of(storm, structure, "state", state.id)
            assert paid == pytest.approx(model.rewards[structure].state[s], abs=1e-12)
        mine = Counter(
            (
                merged(branches_of(model, r, ours)),
                tuple(round(float(model.rewards[k].row[r]), 9) for k in structures),
            )
            for r in range(model.row_ptr[s], model.row_ptr[s + 1])
        )
        assert mine == storm_rows(storm, state, theirs, structures)


def storm_rows(storm, state, theirs, structures):
    start = storm.transition_matrix.get_row_group_start(state.id)
    found = Counter()
    for action in state.actions:
        entries = tuple(sorted((theirs[t.column], round(t.value, 9)) for t in action.transitions))
        paid = tuple(round(rewards_of(storm, k, "row", start + action.id), 9) for k in structures)
        found[entries, paid] += 1
    return found


@pytest.mark.parametrize("name", ALL)
def test_case_study_is_that_of_storm(name, tmp_path):
    """The same text gives the same model."""
    same_as_storm(ALL[name], tmp_path)


@settings(
    quarter,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(text=model_texts(kinds=("mdp",)))
def test_random_model_is_that_of_storm(text, tmp_path):
    """The same holds for random texts; Storm does not know `<=>`."""
    same_as_storm(text.replace("<=>", "="), tmp_path)
