"""A saved result says where it comes from: model, constants, sets, command."""

import hashlib

import pytest

from rfmdp.cli.main import run
from rfmdp.errors import FileError
from rfmdp.formats.files import load, save
from rfmdp.language.build import load_prism, parse_prism
from rfmdp.learning.learn import learn
from rfmdp.learning.methods import StopWhen
from rfmdp.model.derived import restrict
from rfmdp.solving import solve
from rfmdp.verification.solution import verify

from .forge import with_header

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
    """Balls name their norm and radius; sets of another hand are no balls of the file."""
    ball = model.with_radius(0.1, exponent=1.0)
    assert dict(ball.provenance.lines())["sets"] == "L1 balls of radius 0.1"
    other = model.with_marginals(ball.nominal().marginals)
    assert other.provenance.sets == {"kind": "other"}
    assert ball.nominal().provenance.sets == {"kind": "nominal"}
    assert model.provenance.sets == {"kind": "text"}
    assert restrict(model, model.row_ptr[:-1]).provenance is None  # that is another model


def test_a_learner_does_not_read_the_text(model):
    """A run names its system, but the hidden probabilities of its text stay hidden."""
    origin = learn(model, REACH, stop=StopWhen(trajectories=20), length=9).model.provenance
    assert (origin.name, origin.text, origin.sets) == ("climb.prism", "", {"kind": "learned"})


@pytest.fixture
def result(model, tmp_path):
    """Return the file of a solution with boxes."""
    save(solve(model.with_radius(0.03), REACH), tmp_path / "a.rfmdp")
    return tmp_path / "a.rfmdp"


def test_the_checker_compares_a_model_that_is_built_again(model, result):
    """The same model is the same; other constants, sets or probabilities are not."""
    assert verify(result, model=model.with_radius(0.03)).valid
    assert "marginals.lower" in str(verify(result, model=model.with_radius(0.02)))
    assert not verify(result, model=model).valid
    assert not verify(result, model=parse_prism(TEXT, {"N": 4}).with_radius(0.03)).valid
    other = parse_prism(TEXT.replace("x=N;\n", "x=N-1;\n"), {"N": 3}).with_radius(0.03)
    assert "label.0" in str(verify(result, model=other))


def test_verify_builds_the_model_again(result, tmp_path, capsys):
    """Constants and radius are those that the file names, unless others are given."""
    place = str(tmp_path / "climb.prism")
    assert run(["verify", str(result), "--model", place]) == 0
    out = capsys.readouterr().out
    assert "climb.prism, sha256" in out
    assert "N=3" in out
    assert "radius 0.03" in out
    assert run(["verify", str(result), "--model", place, "--const", "N=4"]) == 1
    assert "FAILED" in capsys.readouterr().out
    (tmp_path / "climb.prism").write_text(TEXT.replace("0.4", "0.5").replace("0.6", "0.5"))
    assert run(["verify", str(result), "--model", place]) == 1


def test_a_run_is_compared_with_the_structure_of_its_model(model):
    """Sets are learned; states, choices and labels are those of the model."""
    learned = learn(model, REACH, stop=StopWhen(trajectories=200), length=9)
    assert verify(learned, model=model).valid, str(verify(learned, model=model))
    assert not verify(learned, model=parse_prism(TEXT, {"N": 4})).valid


@pytest.mark.parametrize(
    "change",
    [{"sets": {"kind": "balls"}}, {"sets": {}}, {"constants": {"N": [1]}}, {"text": None},
     {"more": 1}, {"sets": {"kind": ["text"]}}],
    ids=str,
)  # fmt: skip
def test_forged_provenance_is_refused_in_one_line(result, change):
    """By `load` and by `verify`."""
    content = with_header(result.read_bytes(), lambda top: top["content"]["model"]
                          ["provenance"].update(change))  # fmt: skip
    result.write_bytes(content)
    with pytest.raises(FileError, match="provenance"):
        load(result)
    assert "provenance" in str(verify(result))
