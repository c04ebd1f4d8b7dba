"""Files hold words and numbers: no reprs, no sentences; what is in them is read, then checked."""

import json
from dataclasses import replace

import numpy as np
import pytest

from learning.tiny import REACH, two_arms
from rfmdp import record as records
from rfmdp.errors import FileError
from rfmdp.formats import files
from rfmdp.formats.files import load, save
from rfmdp.formats.records import solution_to_record
from rfmdp.language.build import parse_prism
from rfmdp.learning.learn import learn
from rfmdp.learning.methods import StopWhen
from rfmdp.learning.run import run_from_record, run_to_record
from rfmdp.learning.setup import require_same
from rfmdp.objective import Reach, Spec
from rfmdp.solving import solve
from rfmdp.state_sets import NamedStates
from rfmdp.verification import game
from rfmdp.verification.solution import verdict_of, verify

TEXT = """mdp
const int N = 3;
formula last = N;
module m
  x : [0..N]; b : bool init true;
  [go] x<N -> 0.4 : (x'=x+1) + 0.6 : (x'=0)&(b'=!b);
  [stay] x=N -> true;
endmodule
label "goal" = x=last;
label "odd" = x=1|x=3;
"""


def short_run():
    """Return header and arrays of a run, as they come out of a file."""
    run = learn(two_arms(0.3, 0.6), REACH, stop=StopWhen(trajectories=100), length=6)
    _, header, arrays = run_to_record(run)
    return run, json.loads(json.dumps(header)), {k: np.array(a) for k, a in arrays.items()}


def texts_in(content):
    """Return all texts in a JSON value."""
    if isinstance(content, str):
        return [content]
    if isinstance(content, dict):
        return [text for each in content.values() for text in texts_in(each)]
    return [text for each in content for text in texts_in(each)] if type(content) is list else []


def test_settings_and_assumptions_are_words():
    """No text of settings is a call, no text of assumptions a sentence."""
    _, header, _ = short_run()
    assert not [text for text in texts_in(header["settings"]) if "(" in text]
    assert not [text for text in texts_in(header["assumptions"]) if " " in text]
    assert header["settings"]["confidence"] == {"kind": "mixture"}
    assert isinstance(header["settings"]["beta"], float)


def test_better_sentences_do_not_break_old_files(monkeypatch):
    """A run that was saved before a sentence was improved is valid, and says the new sentence."""
    run, header, arrays = short_run()
    monkeypatch.setitem(records.SENTENCES, "draws", "samples are independent")
    assert verdict_of("learning run", header, arrays).valid
    again = run_from_record(header, arrays)
    assert "samples are independent" in again.statement()
    assert "samples are independent" not in run.statement()


def test_a_saved_run_can_go_on():
    """Settings survive saving, so that a resumed run is compared with numbers, not texts."""
    run, header, _ = short_run()
    require_same(header["settings"], run.settings, "run.rfmdp")


def test_a_mistake_of_the_checker_is_no_forgery(monkeypatch):
    """An error of our own code is raised; only fields of the file are called wrong."""
    _, header, arrays = short_run()

    def broken(*args):
        raise TypeError("a mistake")

    monkeypatch.setattr(game.Game, "enough", broken)
    with pytest.raises(TypeError, match="a mistake"):
        verdict_of("learning run", header, arrays)


NESTED = {}
for _ in range(100_000):
    NESTED = {"kind": NESTED}
ODD = [None, [], {}, "x", -1, 1.5, True, 10**400, float("nan"), [[]], {"kind": None}, NESTED]


@pytest.mark.parametrize("content", ODD, ids=lambda content: f"{type(content).__name__}")
def test_forged_headers_are_judged(content):
    """Whatever stands in a field of a run, the verdict is a verdict."""
    _, header, arrays = RUN
    for place in ("settings", "history", "assumptions", "alarms"):
        verdict = verdict_of("learning run", header | {place: content}, arrays)
        assert verdict.valid == (content == header[place])  # no alarms: as before
    settings, last = header["settings"], header["history"][-1]
    for name in ("confidence", "rewards", "p_min", "beta", "prior", "source", "length"):
        forged = header | {"settings": settings | {name: content}}
        verdict = verdict_of("learning run", forged, arrays)
        assert not verdict.valid or name == "length" or settings[name] == content
    for name in ("guarantee", "optimistic", "steps"):
        verdict_of("learning run", header | {"history": [last | {name: content}]}, arrays)


RUN = short_run()


def test_files_of_other_versions_are_refused(tmp_path, monkeypatch):
    """One line that says which version wrote it, and what to do."""
    for version, advice in ((2, "make it again"), (4, "upgrade rfmdp")):
        with monkeypatch.context() as patch:
            patch.setattr(files, "FORMAT_VERSION", version)
            save(two_arms(0.3, 0.6), tmp_path / "a.rfmdp")
        with pytest.raises(FileError, match=f"format version {version}.*{advice}") as error:
            load(tmp_path / "a.rfmdp")
        assert "\n" not in str(error.value)


def claimed(text, states):
    """Return the verdict about reaching some states that a file calls by a text."""
    model = parse_prism(TEXT)
    spec = Spec(Reach(NamedStates(text, np.asarray(states(model)))))
    _, header, arrays = solution_to_record(solve(model, spec))
    return verdict_of("solution", json.loads(json.dumps(header)), dict(arrays))


def values(name):
    """Return a function of models: the values of a variable."""
    return lambda model: np.asarray(model.state_columns()[name])


@pytest.mark.parametrize(
    ("text", "states"),
    [
        ("x=3", lambda m: values("x")(m) == 3),
        ('"odd" & !b', lambda m: np.isin(values("x")(m), (1, 3)) & ~values("b")(m)),
        ("x+1>=last", lambda m: values("x")(m) + 1 >= 3),
        ("!x=3 => b", lambda m: (values("x")(m) == 3) | values("b")(m)),
        ("-x<=-N", lambda m: values("x")(m) == 3),
        ("(b <=> x<2) | false", lambda m: values("b")(m) == (values("x")(m) < 2)),
        ("x != N - 1 & true", lambda m: values("x")(m) != 2),
    ],
)
def test_texts_are_tied_to_their_states(text, states):
    """The checker evaluates what a property calls its states; other states are a forgery."""
    verdict = claimed(text, states)
    assert verdict.valid, str(verdict)
    assert text.split()[0].strip('(!"') in dict(verdict.claims)["property"]
    other = claimed(text, lambda m: ~states(m))
    assert "means other states" in str(other)


def test_a_label_that_is_not_there():
    """A text with a label that the model does not have is no property of it."""
    assert "no label" in str(claimed('"victory"', lambda m: values("x")(m) == 3))


@pytest.mark.parametrize(
    "text", ['P>=0.5 [ F "goal" ]', "mod(x,2)=1", "y=1", "x=3 &", "", "!" * 5000 + "b", "(" * 5000,
             "-" * 3000 + "x=1", "b<3", "x", "x&b"],
)  # fmt: skip
def test_other_texts_are_not_repeated_as_claims(text):
    """What is not evaluated is said to be a list of states, and the text to be the file's."""
    verdict = claimed(text, lambda m: values("x")(m) == 3)
    assert verdict.valid, str(verdict)
    claims = dict(verdict.claims)
    assert "states as listed" in claims["property"]
    assert "as listed" in claims["target"]


def test_void_runs_say_so(tmp_path):
    """After an alarm neither the file, nor its statement, nor the checker guarantees anything."""
    run, _, _ = RUN
    void = replace(run, alarms=("a successor was not declared",))
    save(void, tmp_path / "run.rfmdp")
    again = load(tmp_path / "run.rfmdp")
    assert "ALARM" in repr(again)
    assert "a successor was not declared" in again.statement()
    assert again.guarantee == -np.inf
    verdict = verify(tmp_path / "run.rfmdp")
    assert not verdict.valid
    assert "void" in str(verdict)
    assert "a successor was not declared" in str(verdict)
