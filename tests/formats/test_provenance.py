"""A saved result says where it comes from: model, constants, sets, command."""

import hashlib

import pytest

from rfmdp.formats.files import load, save
from rfmdp.language.load import load_prism
from rfmdp.language.radius import with_uncertainty
from rfmdp.learning.learn import learn
from rfmdp.learning.schedule import StopWhen
from rfmdp.model.restrict import restrict
from rfmdp.solving import solve

TEXT = """mdp
const int N;
module m
  x : [0..N];
  [go] x<N -> 0.4 : (x'=x+1) + 0.6 : (x'=0);
  [stay] x=N -> true;
endmodule
label "goal" = x=N;
"""
REACH = 'Pmaxmin=? [ F<=9 "goal" ]'


@pytest.fixture
def model(tmp_path):
    """Return a model read from a file."""
    place = tmp_path / "climb.prism"
    place.write_text(TEXT)
    return load_prism(place, {"N": 3})


def test_a_saved_solution_knows_model_constants_and_radius(model, tmp_path):
    """Name, digest of the bytes, text, constants, radius; they survive saving."""
    save(solve(model.with_radius(0.03), REACH), tmp_path / "a.rfmdp")
    origin = load(tmp_path / "a.rfmdp").model.provenance
    assert origin.name == "climb.prism"
    assert origin.digest == hashlib.sha256(TEXT.encode()).hexdigest()
    assert (origin.text, origin.constants) == (TEXT, {"N": 3})
    words = dict(origin.lines())
    assert "0.03" in words["sets"]
    assert words["constants"] == "N=3"


def test_sets_say_what_they_are(model):
    """Balls name their norm and radii; sets of another hand are no balls of the file."""
    ball = with_uncertainty(model, 0.1, exponent=1.0, by_action={"go": 0.2})
    assert dict(ball.provenance.lines())["sets"] == "L1 balls of radius 0.1, 0.2 for action 'go'"
    other = model.with_marginals(ball.nominal().marginals)
    assert other.provenance.sets == {"kind": "other"}
    assert ball.nominal().provenance.sets == {"kind": "nominal"}
    assert model.provenance.sets == {"kind": "text"}
    assert restrict(model, model.row_ptr[:-1]).provenance is None  # that is another model


def test_a_learner_does_not_read_the_text(model):
    """A run names its system, but the hidden probabilities of its text stay hidden."""
    run = learn(model, REACH, stop=StopWhen(trajectories=20), length=9)
    origin = run.model.provenance
    assert (origin.name, origin.text, origin.sets) == ("climb.prism", "", {"kind": "learned"})
