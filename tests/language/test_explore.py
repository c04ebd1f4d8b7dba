"""The builder of PRISM models: constructs by hand, and a slow twin on random models."""

import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given

from examples import quarter
from processes import python
from recording import recorded
from rfmdp.errors import PrismWarning
from rfmdp.language.ast import Literal
from rfmdp.language.build import build_model, load_prism, parse_prism
from rfmdp.language.check import check_model
from rfmdp.language.parse import parse_model
from rfmdp.model.validate import validate
from rfmdp.sets.marginals import Kind

from .random_models import model_texts
from .twin import Twin, branches_of, canonical

AIRCRAFT = """imdp
const int top = 3;
module ownship
  x : [0..2];
  y : [0..top] init 1;
  [up] x<2 -> [0.6,0.8] : (x'=x+1) & (y'=min(y+1,top)) + [0.2,0.4] : (x'=x+1);
  [stay] x<2 -> (x'=x+1);
endmodule
module intruder
  z : [0..top] init 1;
  [up] true -> 0.5 : (z'=max(z-1,0)) + 0.5 : true;
  [stay] z>0 -> [0.1,0.3] : (z'=z-1) + [0.7,0.9] : true;
  [stay] z=0 -> 1 : true + 0 : (z'=99);
endmodule
label "end" = x=2;
"""


def rows_of(model, valuation):
    """Return the rows of a state as (action, branches)."""
    states = [tuple(map(int, row)) for row in model.valuations]
    s = states.index(valuation)
    return [
        (model.actions[model.row_actions[r]], branches_of(model, r, states))
        for r in range(model.row_ptr[s], model.row_ptr[s + 1])
    ]


def quiet(text, **options):
    """Build without minding warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrismWarning)
        return parse_prism(text, **options)


def test_modules_are_factors_and_commands_marginals():
    """Rows in different places share the marginal of a command; certain moves have none."""
    model = quiet(AIRCRAFT)
    assert model.factors == ("ownship", "intruder")
    assert model.marginal_names == (
        "ownship: [up] line 6",
        "intruder: [up] line 11",
        "intruder: [stay] line 12",
    )
    assert model.outcome_names[:3] == (
        "(x'=x+1) & (y'=min(y+1, top))",  # as it is written
        "(x'=x+1)",
        "(z'=max(z-1, 0))",
    )
    assert list(model.marginals.kind) == [Kind.BOX, Kind.SINGLETON, Kind.BOX]
    assert model.marginals.nominal[:2] == pytest.approx([0.7, 0.3])
    up, stay = rows_of(model, (0, 1, 1))
    assert up == (
        "up",
        [
            (0.3, 0.4, (1, 2, 0)),
            (0.3, 0.4, (1, 2, 1)),
            (0.1, 0.2, (1, 1, 0)),
            (0.1, 0.2, (1, 1, 1)),
        ],
    )
    assert stay == ("stay", [(0.1, 0.3, (1, 1, 0)), (0.7, 0.9, (1, 1, 1))])
    assert not validate(model)


def test_all_combinations_of_commands_with_one_label():
    """Two commands in one module and two in another are four choices."""
    text = """mdp
    module a x : [0..2]; [go] true -> (x'=1); [go] true -> (x'=2); endmodule
    module b y : [0..2]; [go] true -> (y'=1); [go] y=0 -> (y'=2); endmodule
    """
    rows = rows_of(parse_prism(text), (0, 0))
    assert [branches[0][2] for _, branches in rows] == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_a_label_waits_for_every_module_of_its_alphabet():
    """A module whose only command with the label is disabled blocks it, and errors behind it."""
    text = """mdp
    module a x : [0..1]; [go] true -> (x'=x+1); [] x=0 -> true; endmodule
    module b y : [0..1]; [go] y=1 -> true; endmodule
    """
    assert rows_of(parse_prism(text), (0, 0)) == [("", [(1.0, 1.0, (0, 0))])]


def test_state_dependent_probabilities_have_one_marginal_per_vector():
    """Vectors are told apart, impossible outcomes dropped, certain ones no marginal."""
    text = """mdp
    module m x : [0..4];
      [] true -> x/4 : (x'=0) + 1-x/4 : (x'=min(x+1,4));
    endmodule"""
    model = parse_prism(text)
    names = ["m: [] line 3 #1", "m: [] line 3 #2", "m: [] line 3 #3"]
    assert list(model.marginal_names) == names
    assert model.marginals.nominal.tolist() == [0.25, 0.75, 0.5, 0.5, 0.75, 0.25]
    assert np.diff(model.marginal_ptr).tolist() == [0, 1, 1, 1, 0]
    assert rows_of(model, (4,)) == [("", [(1.0, 1.0, (0,))])]


def test_many_vectors_are_told_apart():
    """More vectors than are looked for one by one."""
    text = """mdp
    module m x : [0..99] init 50;
      [] true -> x/99 : (x'=max(x-1,0)) + 1-x/99 : (x'=min(x+1,99));
    endmodule"""
    checked = check_model(parse_model(text))
    assert canonical(build_model(checked)) == Twin(checked).canonical()


def test_two_commands_in_one_line_have_different_names():
    """They are numbered."""
    coin = "[a] true -> 0.5:(x'=0)+0.5:(x'=1);"
    text = f"mdp module m x : [0..1]; {coin} {coin} endmodule"
    assert parse_prism(text).marginal_names == (
        "m: [a] line 1 #1",
        "m: [a] line 1 #2",
    )


def test_global_variables_move_with_unlabelled_commands():
    """A command may write own and global variables; both change in one outcome."""
    text = """mdp global g : [0..3];
    module m b : bool;
      [] g<3 -> 0.5 : (g'=g+1) & (b'=!b) + 0.5 : (g'=3);
      [] g=3 -> true;
    endmodule"""
    rows = rows_of(parse_prism(text), (0, 0))
    assert rows == [("", [(0.5, 0.5, (1, 1)), (0.5, 0.5, (3, 0))])]


def test_dtmc_takes_each_choice_with_the_same_probability():
    """PRISM's manual: 0.8:(0,0) + 0.1:(1,0) + 0.1:(0,1), and rewards are averaged likewise."""
    text = """dtmc
    module m1 x : [0..1]; [] x=0 -> 0.8 : true + 0.2 : (x'=1); [] x=1 -> true; endmodule
    module m2 y : [0..1]; [] y=0 -> 0.8 : true + 0.2 : (y'=1); [a] x=0 -> true; endmodule
    rewards [] true : 3; [a] true : 6; endrewards
    """
    with pytest.warns(PrismWarning, match="have more than one choice"):
        model = parse_prism(text)
    (row,) = rows_of(model, (0, 0))
    total = {}
    for low, _, successor in row[1]:
        total[successor] = total.get(successor, 0.0) + low
    assert total == pytest.approx({(0, 0): (0.8 + 0.8 + 1) / 3, (1, 0): 0.2 / 3, (0, 1): 0.2 / 3})
    assert model.rewards[""].row[model.row_ptr[model.initial[0]]] == pytest.approx(4.0)
    assert model.factors[-1] == "(random choice)"
    assert not validate(model)


def test_idtmc_refuses_a_random_choice_between_intervals():
    """The mixture of interval commands is no product of sets per factor."""
    text = """idtmc
    module m x : [0..1];
      [] true -> [0.1,0.9] : true + [0.1,0.9] : (x'=1);
      [] x=0 -> true;
    endmodule"""
    with pytest.raises(Exception, match=r"must be the only choice.* in state \(x=0\)"):
        parse_prism(text)


def test_deadlock_gets_a_loop_without_action_reward():
    """The state has the label, the row no reward of `[]`."""
    text = """mdp module m x : [0..1]; [] x=0 -> (x'=1); endmodule
    rewards "r" [] true : 5; true : 1; endrewards"""
    with pytest.warns(PrismWarning, match=r"1 state\(s\) have no enabled command.*\(x=1\)"):
        model = parse_prism(text)
    assert model.label("deadlock").tolist() == [False, True]
    assert model.rewards["r"].row.tolist() == [5.0, 0.0]
    assert model.rewards["r"].state.tolist() == [1.0, 1.0]


def test_initial_states_by_condition():
    """All satisfying states are initial; conjuncts on single variables keep the search small."""
    text = """mdp module m x : [0..2000000000]; y : [0..3]; [] true -> true; endmodule
    init x=7 & mod(y,2)=1 endinit"""
    model = parse_prism(text)
    assert model.valuations[model.initial].tolist() == [[7, 1], [7, 3]]


def test_rewards_labels_and_formulas():
    """Items add up, an unnamed structure is "", and names for properties are kept."""
    text = """mdp const int N = 2; formula twice = 2*x;
    module m x : [0..N]; [go] x<N -> (x'=x+1); [] x=N -> true; endmodule
    label "top" = twice=4;
    rewards x>0 : x; x>1 : 0.5; [go] x=1 : twice; endrewards
    rewards "second" [] true : 1; endrewards"""
    model = parse_prism(text)
    assert list(model.rewards) == ["", "second"]
    assert model.rewards[""].state.tolist() == [0.0, 1.0, 2.5]
    assert model.rewards[""].row.tolist() == [0.0, 2.0, 0.0]
    assert model.rewards["second"].row.tolist() == [0.0, 0.0, 1.0]
    assert model.labels["top"].tolist() == [False, False, True]
    assert model.formulas["N"] == 2
    assert not isinstance(model.formulas["twice"], int | Literal)


def test_probabilities_that_nearly_sum_to_one_are_scaled_with_a_warning():
    """PRISM accepts a sum within 1e-5 of one."""
    text = "mdp module m x : [0..1]; [] true -> 0.333333 : (x'=0) + 0.666666 : (x'=1); endmodule"
    with pytest.warns(PrismWarning, match="0.999999"):
        model = parse_prism(text)
    assert model.marginals.nominal.sum() == pytest.approx(1.0, abs=1e-15)


def test_progress_is_reported():
    """The callback sees the number of states and transitions."""
    seen = []
    model = quiet(AIRCRAFT, progress=lambda *counts: seen.append(counts))
    assert seen[-1] == (model.states, model.transitions)


@quarter
@given(model_texts())
def test_random_model_is_that_of_the_twin(text):
    """States, rows, branches, labels and rewards are those of a plain search."""
    checked = check_model(parse_model(text))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrismWarning)
        model = build_model(checked)
    twin = Twin(checked)
    assert canonical(model) == twin.canonical()
    assert not validate(model)
    (rewards,) = checked.rewards
    for s, values in enumerate(model.valuations):
        state = tuple(map(int, values))
        assert model.labels["top"][s] == twin.value(checked.labels["top"], state)
        paid = sum(
            twin.value(item.value, state)
            for item in rewards.items
            if item.action is None and twin.value(item.guard, state)
        )
        assert model.rewards[""].state[s] == paid


def arrays_of(model):
    """Return the arrays that say what a model is."""
    found = [model.row_ptr, model.row_actions, model.row_marginals, model.successors]
    return [array.tolist() for array in (*found, model.valuations)]


@quarter
@given(model_texts())
def test_python_and_machine_code_find_the_same(text):
    """Exploration as Python and compiled is one: the same arrays to the bit."""
    checked = check_model(parse_model(text))
    found = []
    for as_text in (recorded, nullcontext):
        with as_text(), warnings.catch_warnings():
            warnings.simplefilter("ignore", PrismWarning)
            model = build_model(checked)
        found.append((canonical(model), arrays_of(model)))
    assert found[0] == found[1]


def test_large_models_outgrow_python():
    """Where there is more to do than a little, machine code goes on with the same states."""
    program = """
import sys
import rfmdp
from rfmdp.kernels.decorator import interpreting
with interpreting():
    small = rfmdp.parse_prism(sys.argv[1].replace("5000", "5"))
    without = "numba" not in sys.modules
    model = rfmdp.parse_prism(sys.argv[1])
states = model.valuations[:, 0].tolist()
print(without, small.states, states == list(range(5001)), model.successors[:4].tolist())
print("numba" in sys.modules)
"""
    text = "mdp module m x : [0..5000]; [] x<5000 -> 0.5 : (x'=x+1) + 0.5 : (x'=0); endmodule"
    told = python(program, text)
    assert told.stdout.splitlines() == ["True 6 True [1, 0, 2, 0]", "True"], told.stderr


def test_file_gives_the_same_as_text(tmp_path):
    """A file with CRLF line ends and a byte order mark is read as well."""
    file = tmp_path / "m.prism"
    file.write_bytes(b"\xef\xbb\xbf" + AIRCRAFT.replace("\n", "\r\n").encode())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrismWarning)
        assert canonical(load_prism(file)) == canonical(quiet(AIRCRAFT))


def test_constants_that_nothing_uses_need_no_value():
    """As do those that only such constants use."""
    text = "mdp const int N; const int M = 2*N; module m x : [0..1]; [] true -> (x'=1); endmodule"
    assert parse_prism(text).states == 2


DEEP = """mdp
const int N = 3000;
module m
  x : [0..N];
  y : [0..2];
  [] x<N & y<2 -> 0.5 : (x'=x+1) + 0.5 : (x'=0);
  [go] x=N -> true;
  UNREACHABLE
endmodule
"""


@pytest.mark.parametrize(
    "unreachable",
    [
        "[] y=1 -> true;",  # nothing special
        "[] y=1 -> (x'=x+1);",  # leaves the range
        "[] y=1 -> 0.5 : true;",  # no distribution
        "[] y=1 -> 0.999999 : true;",  # scaled with a warning
        "[] y=1 & mod(1, x)=0 -> true;",  # has no value
    ],
)
def test_deep_models(unreachable, recwarn):
    """What cannot be reached leaves no trace, whether it could be expanded or not."""
    text = DEEP.replace("UNREACHABLE", unreachable)
    model = parse_prism(text)
    twin = parse_prism(text.replace("N = 3000", "N = 30"))
    assert not recwarn
    assert (model.states, model.rows, model.transitions) == (3001, 3001, 6001)
    assert model.valuations[:, 1].max() == 0
    assert model.marginal_names == twin.marginal_names
    assert model.actions == twin.actions
    assert not validate(model)
    row = int(model.row_ptr[1500])
    assert sorted(model.successors[2 * row : 2 * row + 2].tolist()) == [0, 1501]


def test_deep_chains_with_random_choices():
    """A state with several choices is counted if it can be reached, and only then."""
    text = "dtmc module m x : [0..3000]; y : [0..1]; [] x<3000 -> (x'=x+1); [] y=1 -> true; "
    text += "[] x=3000 -> true; endmodule"
    assert parse_prism(text).states == 3001
    with pytest.warns(PrismWarning, match="3001 state"):
        parse_prism(text.replace("y : [0..1]", "y : [0..1] init 1"))


WIDE = """mdp
module a x : [0..1000000000]; y : [-5..1000000000] init -5;
  [go] x<4 -> 0.5 : (x'=x+1) + 0.5 : (y'=min(y+7,20)); [] x=4 -> (x'=1000000000); endmodule
module b = a [ x=u, y=v ] endmodule
"""


def test_more_combinations_of_ranges_than_a_word_holds():
    """States are packed into several words; they are numbered and ordered as ever."""
    checked = check_model(parse_model(WIDE))
    with pytest.warns(PrismWarning, match="no enabled command"):
        model = build_model(checked)
    assert canonical(model) == Twin(checked).canonical()
    values = model.valuations.tolist()
    assert values == sorted(values)
    assert max(values) == [1000000000, 20, 1000000000, 20]
