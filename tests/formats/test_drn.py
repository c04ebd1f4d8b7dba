"""Storm's DRN format: hand-written files, round trips, Storm's reader and writer, bad inputs."""

from __future__ import annotations

import numpy as np
import pytest

from rfmdp.errors import FileError, ModelError, PrismWarning, UnsupportedError
from rfmdp.formats.drn import read_drn, write_drn
from rfmdp.formats.libraries import from_stormpy
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.model.flatten import flatten
from rfmdp.sets.families import Interval

from .models import assert_same, random_model, rows_of

HEAD = "@type: MDP\n@parameters\n\n@reward_models\ncost\n@nr_states\n2\n@nr_choices\n3\n@model\n"
BODY = """state 0 [1.5] init "two words"
//[!b\t& x=3]
\taction left [2]
\t\t0 : [0.2, 0.4]
\t\t1 : [0.6, 0.8]
\taction right
\t\t1 : 1
state 1 goal
//[b\t& x=-4]
\taction __NOLABEL__ [0]
\t\t1 : 1
"""


def write(folder, text):
    """Write a DRN file and return its path."""
    path = folder / "m.drn"
    path.write_text(text)
    return path


def test_hand_written_file(tmp_path):
    """Intervals, actions, rewards, quoted labels and valuations in comments are read."""
    model = read_drn(write(tmp_path, HEAD + BODY))
    assert rows_of(model) == [
        (0, "left", {0: (0.2, 0.4), 1: (0.6, 0.8)}),
        (0, "right", {1: (1.0, 1.0)}),
        (1, "", {1: (1.0, 1.0)}),
    ]
    assert model.initial.tolist() == [0]
    assert {k: v.tolist() for k, v in model.labels.items()} == {
        "two words": [True, False],
        "goal": [False, True],
    }
    cost = model.rewards["cost"]
    assert (cost.state.tolist(), cost.row.tolist()) == ([1.5, 0.0], [2.0, 0.0, 0.0])
    assert [(v.name, v.low, v.high, v.boolean) for v in model.variables] == [
        ("b", 0, 1, True),
        ("x", -4, 3, False),
    ]
    assert model.valuations.tolist() == [[0, 3], [1, -4]]


def test_dtmc_without_actions_and_placeholders(tmp_path):
    """Transitions may follow their state directly, and values may be named in the header."""
    text = (
        "// by hand\n@type: dtmc\n@value_type: rational\n@placeholders\n$half : 1/2\n"
        "@nr_states\n3\n@model\n"
        "state 0 [1, 2] init\n 0 : $half\n 1 : 1/2\nstate 1 [0.5]\n 2 : 1\nstate 2\n"
    )
    with pytest.warns(PrismWarning, match="the first is 2; each gets a self-loop"):
        model = read_drn(write(tmp_path, text))
    assert rows_of(model)[0] == (0, "", {0: (0.5, 0.5), 1: (0.5, 0.5)})
    assert {k: v.state.tolist() for k, v in model.rewards.items()} == {
        "rew0": [1.0, 0.5, 0.0],
        "rew1": [2.0, 0.0, 0.0],
    }
    assert model.label("deadlock").tolist() == [False, False, True]


def test_comments_that_are_no_valuations(tmp_path):
    """Numbers beyond 32 bits in a comment are a comment."""
    for number in (10**10, 10**30):
        model = read_drn(write(tmp_path, HEAD + BODY.replace("x=3", f"x={number}")))
        assert model.variables == ()


def body(text, states=1, choices=1, kind="MDP"):
    """Return a file with the given lines after @model, which is line 6."""
    head = f"@type: {kind}\n@nr_states\n{states}\n@nr_choices\n{choices}\n@model\n"
    return head + text


BAD = [
    ("", 1, "must have a line `@model`"),
    ("@type: MDP\n", 1, "may be truncated"),
    ("@nr_states\n1\n@model\nstate 0 init\n", 3, "must have @type before @model"),
    ("@type: MDP\n@model\nstate 0 init\n", 2, "must have @nr_states before @model"),
    ("@type: MDP\n@nr_states\nmany\n@model\n", 3, "number must follow @nr_states"),
    ("@type: MDP\n@colour: red\n@model\n", 2, "header line must be one of @type"),
    (body(""), 6, "States must follow @model"),
    (body("action a\n"), 7, "first line after @model must be `state 0`"),
    (body("state 0 init\nstate 2\n"), 8, "numbered 0, 1, 2, ...; expected 1, found 2"),
    (body("state x init\n"), 7, "state must be an integer, found 'x'"),
    (body("state 0 init\n\taction a\n\t\t0 : 1\n", states=2), 6, "promises 2 states, found 1"),
    (body("state 0 init\n\taction a\n\t\t0 : 1\n", choices=4), 6, "promises 4 choices, found 1"),
    (body("state 0 init\n\taction a\n\t\t0 = 1\n"), 9, "must be `state N`, `action NAME`"),
    (body("state 0 init\n\taction a\n\t\t0 : 1 2\n"), 9, "`target : probability`"),
    (body("state 0 init\n\taction\n\t\t0 : 1\n"), 8, "number or name must follow"),
    (body("state 0 init\n\taction a\n"), 8, "action must have transitions"),
    (body("state 0 init\n\taction a\n\t\t1 : 1\n"), 9, "target state must be within 0..0"),
    (body("state 0 init\n\taction a\n\t\t0 : p\n"), 9, "must be a number or .l,u., found 'p'"),
    (body("state 0 init\n\taction a\n\t\t0 : 3\n"), 9, "0 <= l <= u <= 1, found 3"),
    (body("state 0 init\n\taction a\n\t\t0 : 0.5\n"), 9, "sum to 0.5"),
    (body("state 0\n\taction a\n\t\t0 : 1\n"), 6, 'Some state must have the label "init"'),
    (body("state 0 [1 init\n\taction a\n\t\t0 : 1\n"), 7, "Rewards must end with `]`"),
    (
        body("state 0 init\n\taction a\n\t\t0 : 1\n\taction b\n\t\t0 : 1\n", kind="DTMC"),
        10,
        "state of a dtmc has one action",
    ),
]


@pytest.mark.parametrize(("text", "line", "message"), BAD)
def test_bad_files_name_file_and_line(tmp_path, text, line, message):
    """Whatever is wrong is told with file, line and what must hold."""
    path = write(tmp_path, text)
    with pytest.raises(FileError, match=message) as caught:
        read_drn(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@type: CTMC\n@model\n", r"m\.drn:1: the type 'CTMC' is not supported; DTMC, MDP are"),
        ("@type: MDP\n@value_type: parametric\n@model\n", r"m\.drn:2: the value type 'parametric'"),
        ("@type: MDP\n@parameters\np q\n@model\n", r"m\.drn:3: parametric models"),
        (body("state 0 [[1, 2]] init\n\taction a\n\t\t0 : 1\n"), "rewards must be numbers"),
    ],
)
def test_unsupported_models(tmp_path, text, message):
    """Other types of models are told by name."""
    with pytest.raises(UnsupportedError, match=message):
        read_drn(write(tmp_path, text))


@pytest.mark.parametrize("kind", ["known", "box", "l1"])
@pytest.mark.parametrize("seed", range(4))
def test_round_trip(tmp_path, kind, seed):
    """Writing and reading gives the flattened model to the last bit."""
    model = random_model(np.random.default_rng(seed), kind)
    path = tmp_path / "m.drn"
    assert write_drn(model, path).paths == (path,)
    assert_same(read_drn(path), flatten(model))


@pytest.mark.parametrize("kind", ["known", "box"])
@pytest.mark.parametrize("seed", range(3))
def test_storm_reads_what_we_write(tmp_path, kind, seed):
    """Storm builds the same model from our file, comments and quotes included."""
    stormpy = pytest.importorskip("stormpy")
    model = flatten(random_model(np.random.default_rng(seed), kind))
    write_drn(model, tmp_path / "m.drn")
    options = stormpy.io.DirectEncodingParserOptions()
    options.build_choice_labeling = True
    number = float if kind == "known" else stormpy.Interval
    found = from_stormpy(stormpy.build_model_from_drn[number](tmp_path / "m.drn", options=options))
    assert_same(found, model, variables=False)


@pytest.mark.parametrize("seed", range(3))
def test_we_read_what_storm_writes(tmp_path, seed):
    """A file by Storm's exporter gives the model back up to the ten digits that it writes."""
    stormpy = pytest.importorskip("stormpy")
    from rfmdp.formats.libraries import to_stormpy

    model = flatten(random_model(np.random.default_rng(seed), "known"))
    stormpy.io.export_to_drn(to_stormpy(model), tmp_path / "m.drn")
    found = rows_of(read_drn(tmp_path / "m.drn"))
    for (state, action, row), (other, name, expected) in zip(found, rows_of(model), strict=True):
        assert (state, action, list(row)) == (other, name, list(expected))
        for s, (low, high) in row.items():
            assert (low, high) == pytest.approx(expected[s], abs=1e-10)


def test_intervals_that_storm_writes(tmp_path):
    """Storm writes rewards of interval models as intervals, which we read if they are points."""
    stormpy = pytest.importorskip("stormpy")
    from rfmdp.formats.libraries import to_stormpy

    coin = Interval([0.25, 0.5], [0.5, 0.75])
    rewards = {"cost": Rewards(np.array([1.5, 0.0]), np.array([0.0, 2.0]))}
    model = FactoredMDP.from_rows([[([0], [0, 1])], [([], [1])]], [coin], rewards=rewards)
    storm = to_stormpy(model)
    stormpy.io.export_to_drn(storm, tmp_path / "m.drn")
    assert_same(read_drn(tmp_path / "m.drn"), flatten(model), variables=False)


def test_names_that_cannot_be_written(tmp_path):
    """Quotes in labels, and blanks in reward names or actions, are refused."""
    for action, label, reward in (("a b", "g", "r"), ("a", 'g"', "r"), ("a", "g", "r r")):
        model = FactoredMDP.from_rows(
            [[([], [0], action)]],
            [],
            labels={label: [True]},
            rewards={reward: Rewards(np.zeros(1), np.zeros(1))},
        )
        with pytest.raises(ModelError, match="cannot be written"):
            write_drn(model, tmp_path / "m.drn")


def test_interval_chains_become_mdps(tmp_path):
    """Storm solves intervals in mdps only, so that is the default type."""
    model = FactoredMDP.from_rows(
        [[([0], [0, 1])], [([], [1])]], [Interval([0.4, 0.4], [0.6, 0.6])]
    )
    write_drn(model, tmp_path / "m.drn")
    assert (tmp_path / "m.drn").read_text().startswith("@type: MDP\n@value_type: double-interval")
    write_drn(model.nominal(), tmp_path / "m.drn")
    assert (tmp_path / "m.drn").read_text().startswith("@type: DTMC\n@value_type: double\n")
