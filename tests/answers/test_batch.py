"""Many questions about one model: each is answered, fails by itself, or is too late."""

import rfmdp as rf
from rfmdp.answers.answer import Answered, Built, Failed, check_all
from rfmdp.errors import PrismError
from rfmdp.language.parse import parse_model
from rfmdp.opening import Blueprint

WALK = """mdp
const int N;
const int K;
module m
  x : [0..N];
  [up] x<N -> 0.5 : (x'=x+1) + 0.5 : (x'=0);
  [stay] x=N -> true;
endmodule
"""


def kinds(items):
    return [type(item) for item in items]


def test_answers_are_those_of_check():
    """One after the other, with the same bounds; a mistake has its place and stops no other."""
    model = rf.parse_prism(WALK, {"N": 3})
    texts = ["Pmax=? [ F<=4 x=3 ]", "Pmax=? [ F<=K x=3 ]", "P>=1 [ F x==3 ]", "P>=1 [ F x=3 ]"]
    items = list(check_all(model, ";".join(texts)))
    assert kinds(items) == [Built, Answered, Failed, Failed, Answered]
    assert items[0].model is model
    for item, text in zip(items[1:], texts, strict=True):
        if isinstance(item, Answered):
            alone = rf.check(model, text)
            assert (item.answer.lower, item.answer.upper) == (alone.lower, alone.upper)
            assert item.answer.value == alone.value
        else:
            assert isinstance(item.error, PrismError)
            assert not item.late


def test_a_model_that_is_read_is_built_only_if_a_property_fits():
    """Constants are those of both; without a property that fits nothing is built."""
    blueprint = Blueprint("walk", parsed=parse_model(WALK, "walk.prism"))

    def refuse(*_):
        raise AssertionError("built")

    items = list(check_all(blueprint, "P=? [ F y=1 ]", constants={"N": 3}, build=refuse))
    assert kinds(items) == [Failed]
    text = "const int k; Pmax=? [ F<=k+K x=3 ]"
    built, answered = check_all(blueprint, text, constants={"N": 3, "K": 1, "k": 3})
    assert built.model.states == 4
    assert answered.answer.lower <= 0.1875 <= answered.answer.upper  # 1/8 + 1/2 * 1/8 of four steps


def test_building_counts_as_time():
    """Each property fails as late if nothing is left after building."""
    blueprint = Blueprint("walk", parsed=parse_model(WALK, "walk.prism"))
    limits = rf.Limits(seconds=1e-9)
    text = "Pmax=? [ F x=3 ]; Pmin=? [ F x=3 ]"
    items = list(check_all(blueprint, text, constants={"N": 3}, limits=limits))
    assert [item.late for item in items if isinstance(item, Failed)] == [True, True]
