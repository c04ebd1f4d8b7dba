"""Storm's DRN files: texts as Storm writes them, and what is wrong in them."""

from __future__ import annotations

import numpy as np
import pytest

import rfmdp as rf
from rfmdp.errors import FileError

pytest.importorskip("stormpy")

TEXT = """// Exported by storm
@type: MDP
@value_type: double-interval
@parameters

@reward_models
cost
@nr_states
3
@nr_choices
4
@model
state 0 [0] init
\taction go [2]
\t\t1 : [0.25, 0.5]
\t\t2 : [0.5, 0.75]
\taction wait [1]
\t\t0 : [1, 1]
state 1 [0] goal
\taction 0 [0]
\t\t1 : [1, 1]
state 2 [0]
\taction 0 [0]
\t\t2 : [1, 1]
"""


def test_a_file_of_storm_has_its_values(tmp_path):
    """Intervals, labels, actions and rewards are as they stand in the text."""
    path = tmp_path / "m.drn"
    path.write_text(TEXT)
    model = rf.open_model(path)
    assert rf.check(model, 'Pmaxmin=? [ F "goal" ]').value == pytest.approx(0.25, rel=1e-6)
    assert rf.check(model, 'Pmaxmax=? [ F "goal" ]').value == pytest.approx(0.5, rel=1e-6)
    assert rf.check(model, 'R{"cost"}maxmin=? [ C<=3 ]').value == pytest.approx(
        4.0
    )  # wait, wait, go
    assert model.provenance.name == "m.drn"


def test_known_probabilities_are_points(tmp_path):
    """A DTMC in doubles has no uncertainty."""
    path = tmp_path / "m.drn"
    path.write_text(
        "@type: DTMC\n@value_type: double\n@parameters\n\n@reward_models\n\n@nr_states\n2\n"
        "@nr_choices\n2\n@model\nstate 0 init\n\taction 0\n\t\t0 : 0.25\n\t\t1 : 0.75\n"
        "state 1 end\n\taction 0\n\t\t1 : 1\n"
    )
    model = rf.read_drn(path)
    assert not model.uncertain
    assert rf.check(model, 'P=? [ F<=2 "end" ]').value == pytest.approx(1.0 - 0.0625, abs=1e-15)
    assert np.array_equal(model.label("end"), [False, True])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TEXT[: TEXT.index("state 2")], "promises 3 states and has 2"),
        (TEXT.replace("@nr_states\n3\n", ""), "no number of states"),
        ("", "no number of states"),
        (TEXT.replace("[0.25, 0.5]", "[0.25, x]"), "Storm cannot read it|from_stormpy"),
        (TEXT.replace("1 : [0.25, 0.5]", "7 : [0.25, 0.5]"), "Storm cannot read it|from_stormpy"),
        (TEXT.replace("[0.5, 0.75]", "[0.1, 0.2]"), "from_stormpy|sum"),
    ],
)
def test_mistakes_are_one_line(text, said, tmp_path):
    """Truncated files, and what Storm refuses."""
    path = tmp_path / "bad.drn"
    path.write_text(text)
    with pytest.raises((FileError, rf.ModelError), match=said) as caught:
        rf.read_drn(path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_said(tmp_path):
    """The name is in the message."""
    with pytest.raises(FileError, match=r"none\.drn"):
        rf.read_drn(tmp_path / "none.drn")
