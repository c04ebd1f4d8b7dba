"""PRISM's explicit files: hand-written ones, round trips, and all that can be wrong."""

from __future__ import annotations

import numpy as np
import pytest

from rfmdp import memory
from rfmdp.errors import FileError, ModelError, ResourceError
from rfmdp.formats.prism_explicit import read_prism_explicit, write_prism_explicit
from rfmdp.language.build import parse_prism
from rfmdp.model.arrays import FactoredMDP, Rewards
from rfmdp.model.derived import flatten
from rfmdp.sets.families import Interval, Singleton

from .models import assert_same, random_model, rows_of

WALK = {
    "tra": "3 5\n0 1 0.25\n0 2 0.75\n1 0 1e-1\n1 1 .9\n2 2 1\n",
    "sta": "(x,flag)\n0:(-1,false)\n1:(0,true)\n2:(4,false)\n",
    "lab": '0="init" 1="deadlock" 2="goal" 3="mid"\n0: 0\n1: 3\n2: 2 3\n',
    "srew": '# Reward structure "steps"\n# State rewards\n3 2\n0 1\n1 2.5\n',
    "trew": '# Reward structure "steps"\n# Transition rewards\n3 2\n0 1 7\n0 2 7\n',
}
CHOICES = "2 3 4\n0 0 0 [0.2,0.4] left\n0 0 1 [0.6,0.8] left\n0 1 1 [1,1] right\n1 0 1 [1,1]\n"


def write(folder, name="m", **files):
    """Write some files of a model and return the stem."""
    for ending, text in files.items():
        (folder / f"{name}.{ending}").write_text(text)
    return folder / name


def test_dtmc_with_all_files(tmp_path):
    """Every file of a small chain says what it should."""
    model = read_prism_explicit(write(tmp_path, **WALK))
    assert rows_of(model) == [
        (0, "", {1: (0.25, 0.25), 2: (0.75, 0.75)}),
        (1, "", {0: (0.1, 0.1), 1: (0.9, 0.9)}),
        (2, "", {2: (1.0, 1.0)}),
    ]
    assert [(v.name, v.low, v.high, v.boolean) for v in model.variables] == [
        ("x", -1, 4, False),
        ("flag", 0, 1, True),
    ]
    assert model.valuations.tolist() == [[-1, 0], [0, 1], [4, 0]]
    assert {k: v.tolist() for k, v in model.labels.items()} == {
        "goal": [False, False, True],
        "mid": [False, True, True],
    }
    assert model.initial.tolist() == [0]
    steps = model.rewards["steps"]
    assert (steps.state.tolist(), steps.row.tolist()) == ([1.0, 2.5, 0.0], [7.0, 0.0, 0.0])


def test_interval_mdp_with_actions(tmp_path):
    """Intervals become boxes around their centre, names the actions of rows."""
    model = read_prism_explicit(write(tmp_path, tra=CHOICES).with_suffix(".tra"))
    assert rows_of(model) == [
        (0, "left", {0: (0.2, 0.4), 1: (0.6, 0.8)}),
        (0, "right", {1: (1.0, 1.0)}),
        (1, "", {1: (1.0, 1.0)}),
    ]
    np.testing.assert_allclose(model.marginals.nominal, [0.3, 0.7])


def test_equal_distributions_share_a_marginal(tmp_path):
    """Two rows with the same numbers have one identifier."""
    model = read_prism_explicit(write(tmp_path, tra="2 4\n0 0 0.5\n0 1 0.5\n1 0 0.5\n1 1 0.5\n"))
    assert model.row_marginals.tolist() == [0, 0]


def test_lines_in_any_order_blank_lines_and_crlf(tmp_path):
    """Order, blank lines, comments, tabs and Windows line ends do not matter."""
    lines = CHOICES.splitlines()
    text = "# made by hand\n" + lines[0] + "\n\n" + "\n".join(reversed(lines[1:])) + "\n"
    stem = write(tmp_path, "n", tra="")
    stem.with_suffix(".tra").write_bytes(
        text.replace("\n", "\r\n").replace(" 1 ", "\t1  ").encode()
    )
    expected = read_prism_explicit(write(tmp_path, tra=CHOICES))
    assert rows_of(read_prism_explicit(stem)) == rows_of(expected)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("1/3", 1 / 3),
        ("0.33333333333333331", 1 / 3),
        ("3333333333333333333333e-22", 0.3333333333333333333333),
        ("0.1000000000000000055511151231257827", 0.1),
        ("5e-324", 5e-324),
        ("12.5E-2", 0.125),
        ("+0.25", 0.25),
    ],
)
def test_numbers_are_rounded_exactly(tmp_path, word, value):
    """Every spelling of a number gives the double nearest to it."""
    model = read_prism_explicit(write(tmp_path, tra=f"2 3\n0 0 {word}\n0 1 {1 - value!r}\n1 1 1\n"))
    assert model.marginals.nominal[0] == value


def test_dtmc_transitions_with_different_actions(tmp_path):
    """A chain may name each transition, even twice to one state; its row then has no name."""
    text = "2 4\n0 0 0.5 a\n0 1 0.25 a\n0 1 0.25 b\n1 1 1 a\n"
    model = read_prism_explicit(write(tmp_path, tra=text))
    assert [model.actions[i] for i in model.row_actions] == ["", "a"]
    assert rows_of(flatten(model))[0] == (0, "", {0: (0.5, 0.5), 1: (0.5, 0.5)})


def test_deadlocks(tmp_path):
    """A state without transitions is refused."""
    stem = write(tmp_path, tra="3 1 2\n1 0 0 0.5 a\n1 0 2 0.5 a\n", lab='0="init"\n1: 0\n')
    with pytest.raises(ModelError, match="must have a transition, but 2 have none, the first is 0"):
        read_prism_explicit(stem)


def test_several_reward_structures(tmp_path):
    """`m1.srew`, `m2.srew` and `m2.trew` belong together by name; unnamed ones by place."""
    write(tmp_path, tra=WALK["tra"])
    write(tmp_path, "m1", srew='# Reward structure "a"\n3 1\n0 1\n', trew="3 0\n")
    write(tmp_path, "m2", srew='# Reward structure "b"\n3 1\n1 2\n')
    write(tmp_path, "m2", trew='# Reward structure "b"\n3 1\n2 2 5\n')
    model = read_prism_explicit(tmp_path / "m")
    assert list(model.rewards) == ["a", "b"]
    assert model.rewards["b"].state.tolist() == [0.0, 2.0, 0.0]
    assert model.rewards["b"].row.tolist() == [0.0, 0.0, 5.0]


BAD = [
    ("tra", "", 1, "header must be `states lines`"),
    ("tra", "3\n0 0 1\n", 1, "header must be `states lines` or `states choices lines`"),
    ("tra", "x 2\n0 0 1\n", 1, "number in the header must be an integer, found 'x'"),
    ("tra", "0 0\n", 1, "with 1 to 2.31 - 1 states"),
    ("tra", "3000000000 1\n0 0 1\n", 1, "with 1 to 2.31 - 1 states"),
    ("tra", "1 2\n0 0 1\n", 1, "promises 2 lines, but 1 follow"),
    ("tra", "1 1\n0 1\n", 2, "must be `source target probability .action.`, found 2 entries"),
    ("tra", "1 1 1\n0 0 0\n", 2, "must be `source choice target probability .action.`, found 3"),
    ("tra", "1 1\n0 0 1 a b\n", 2, "found 5 entries"),
    ("tra", "1 1\n\n0 1 1\n", 3, "target state must be within 0..0, found 1"),
    ("tra", "1 1\n-1 0 1\n", 2, "source must be within 0..0, found -1"),
    ("tra", "1 1\n0.5 0 1\n", 2, "source must be an integer, found '0.5'"),
    ("tra", "1 1\n0 0 one\n", 2, "probability must be a number or .l,u., found 'one'"),
    ("tra", "1 1\n0 0 1/0\n", 2, "found '1/0'"),
    ("tra", "1 1\n0 0 nan\n", 2, "must be finite"),
    ("tra", "1 1\n0 0 1_0\n", 2, "found '1_0'"),
    ("tra", "1 1\n0 0 1e\n", 2, "found '1e'"),
    ("tra", "1 1\n0 0 2.5\n", 2, "0 <= l <= u <= 1, found 2.5; rates .ctmc. are not supported"),
    ("tra", "1 1\n0 0 [0.5,1\n", 2, "found '.0.5,1'"),
    ("tra", "1 1\n0 0 [0.5]\n", 2, "found '.0.5.'"),
    ("tra", "1 1\n0 0 [0.9,0.5]\n", 2, "0 <= l <= u <= 1"),
    (
        "tra",
        "2 3\n0 0 0.5\n0 1 0.4\n1 1 1\n",
        2,
        "state 0 sum to 0.9 at least and 0.9 at most .*17 digits",
    ),
    ("tra", "2 3\n1 1 1\n0 0 [0.1,0.2]\n0 1 [0.1,0.3]\n", 3, "sum to 0.2 at least and 0.5 at most"),
    ("tra", "1 2 2\n0 0 0 1\n0 2 0 1\n", 3, "state 0 has a choice 2 but no choice 1"),
    ("tra", "1 1 2\n0 0 0 0.5 a\n0 0 0 0.5 b\n", 3, "one action, this choice also has 'a'"),
    ("lab", "init goal\n", 1, "must start like"),
    ("lab", "", 1, "must start like"),
    ("lab", '0="init" 2="goal"\n', 1, "numbered 0, 1, 2"),
    ("lab", '0="init" 1="init"\n0: 0\n', 1, "different names"),
    ("lab", '0="init"\n1: 0\n5: 0\n', 3, "state must be within 0..2, found 5"),
    ("lab", '0="init"\n1: 1\n', 2, "label must be within 0..0, found 1"),
    ("lab", '0="init" 1="a"\n1: 1\n', 1, 'Some state must have the label "init"'),
    ("sta", "x,y\n0:(1,2)\n", 1, "must start with the variables"),
    ("sta", "(x,y)\n0:(1,2)\n1:(1)\n2:(1,1)\n", 3, "must be `state x y`, found 2 entries"),
    ("sta", "(x)\n0:(1)\n1:(2)\n1:(3)\n", 1, "listed once; see state 1"),
    ("sta", "(x)\n0:(1)\n1:(2)\n", 1, "listed once; see state 2"),
    ("sta", "(x)\n0:(1)\n1:(1.5)\n2:(3)\n", 3, "x must be an integer, found '1.5'"),
    ("sta", "(x)\n0:(true)\n1:(1)\n2:(false)\n", 3, "x must be true or false, found '1'"),
    ("srew", "", 1, "header must be"),
    ("srew", "3 1\n0\n", 2, "must be `state reward`, found 1 entries"),
    ("srew", "3 1\n3 1\n", 2, "state must be within 0..2"),
    ("srew", "3 1 1\n0 0 1\n", 2, "must be `state reward`, found 3 entries"),
    ("srew", "3 1\n0 [1,2]\n", 2, "reward must be one number"),
    ("srew", "3 1\n0 inf\n", 2, "must be finite"),
    ("trew", "3 1\n0 1\n", 2, "must be `source target reward`, found 2"),
    ("trew", "3 1\n0 0 1\n", 2, "no such transition"),
    ("trew", "3 1\n0 1 1\n", 2, "depend on nature's probabilities"),
    ("trew", "3 2\n0 1 1\n0 2 2\n", 2, "must be equal"),
]


@pytest.mark.parametrize(("ending", "text", "line", "message"), BAD)
def test_bad_files_name_file_and_line(tmp_path, ending, text, line, message):
    """Whatever is wrong is told with file, line and what must hold."""
    stem = write(tmp_path, **{**({} if ending == "tra" else WALK), ending: text})
    with pytest.raises(FileError, match=message) as caught:
        read_prism_explicit(stem)
    assert str(caught.value).startswith(f"{stem}.{ending}:{line}: ")


def test_transition_rewards_of_an_mdp(tmp_path):
    """Rewards of choices are found by state and choice; unknown choices are errors."""
    stem = write(tmp_path, tra=CHOICES, trew="2 3 2\n0 0 0 3\n0 0 1 3\n")
    assert read_prism_explicit(stem).rewards[""].row.tolist() == [3.0, 0.0, 0.0]
    write(tmp_path, trew="2 2\n0 0 3\n0 1 3\n")
    with pytest.raises(FileError, match="as many numbers as that of the transitions"):
        read_prism_explicit(stem)
    write(tmp_path, trew="2 3 1\n1 1 1 3\n")
    with pytest.raises(FileError, match=r"m\.trew:2: The model has no such transition"):
        read_prism_explicit(stem)


def test_declared_states_that_do_not_fit(tmp_path, monkeypatch):
    """A header can declare more states than there is memory: it is refused, not tried."""
    monkeypatch.setattr(memory, "available_memory", lambda: 10**9)
    with pytest.raises(ResourceError, match=r"m\.tra: a model of 2000000000 states: needs 128 GB"):
        read_prism_explicit(write(tmp_path, tra="2000000000 1\n0 0 1\n"))


def test_missing_file_and_partially_observable(tmp_path):
    """A missing file and a pomdp are named."""
    with pytest.raises(FileError, match=r"none\.tra: cannot be read"):
        read_prism_explicit(tmp_path / "none")
    with pytest.raises(FileError, match=r"m\.tra:1: .* observations .4 numbers. are not supported"):
        read_prism_explicit(write(tmp_path, tra="1 1 1 1\n"))


@pytest.mark.parametrize("kind", ["known", "box", "l1"])
@pytest.mark.parametrize("seed", range(4))
def test_round_trip(tmp_path, kind, seed):
    """Writing and reading gives the flattened model to the last bit."""
    model = random_model(np.random.default_rng(seed), kind)
    written = write_prism_explicit(model, tmp_path / "m")
    assert all(path.exists() for path in written.paths)
    assert_same(read_prism_explicit(tmp_path / "m"), flatten(model))


def test_note_and_zero_lower_bounds(tmp_path):
    """The note says that rows were flattened, and what other tools refuse."""
    coin = Interval([0.0, 0.0], [1.0, 1.0])
    model = FactoredMDP.from_rows([[([0, 0], [0, 1, 2, 0])], [([], [1])], [([], [2])]], [coin])
    written = write_prism_explicit(model, tmp_path / "m")
    assert "interval arithmetic" in written.note
    assert "3 intervals have the lower bound 0" in written.note


def test_types(tmp_path):
    """One choice everywhere is written as a dtmc, several as an mdp."""
    chain = FactoredMDP.from_rows([[([0], [0, 1])], [([], [1])]], [Singleton([0.5, 0.5])])
    write_prism_explicit(chain, tmp_path / "a.tra")
    assert (tmp_path / "a.tra").read_text().startswith("2 3\n0 0 0.5 a0\n")
    both = FactoredMDP.from_rows([[([], [0]), ([], [0])]], [])
    write_prism_explicit(both, tmp_path / "b")
    assert (tmp_path / "b.tra").read_text().startswith("1 2 2\n0 0 0 1 a0\n")


def test_names_that_cannot_be_written(tmp_path):
    """PRISM would refuse them when reading, so they are refused when writing."""
    for action, label, reward in (("a b", "g", "r"), ("a", "g-1", "r"), ("a", "g", "2r")):
        model = FactoredMDP.from_rows(
            [[([], [0], action)]],
            [],
            labels={label: [True]},
            rewards={reward: Rewards(np.zeros(1), np.zeros(1))},
        )
        with pytest.raises(ModelError, match="cannot be written to PRISM's files"):
            write_prism_explicit(model, tmp_path / "m")


def test_storm_reads_what_we_write(tmp_path):
    """Storm's own reader of explicit files finds the same numbers of states and transitions."""
    stormpy = pytest.importorskip("stormpy")
    model = flatten(random_model(np.random.default_rng(1), "known"))
    write_prism_explicit(model, tmp_path / "m")
    # Storm wants the type in front, and its labels declared in a block of their own
    lines = (tmp_path / "m.tra").read_text().splitlines()
    rows = [" ".join(line.split()[:4]) for line in lines[1:]]
    (tmp_path / "s.tra").write_text("\n".join(["mdp", *rows]) + "\n")
    (tmp_path / "s.lab").write_text("#DECLARATION\ninit\n#END\n0 init\n")
    found = stormpy.build_model_from_explicit(tmp_path / "s.tra", tmp_path / "s.lab")
    assert (found.nr_states, found.nr_choices, found.nr_transitions) == (
        model.states,
        model.rows,
        model.transitions,
    )


@pytest.mark.parametrize("ending", [".srew", ".trew"])
def test_a_truncated_rewards_file_was_read_as_if_the_rest_paid_nothing(tmp_path, ending):
    """The header says how many rewards there are; so does a file without a header."""
    model = parse_prism(
        "mdp module m x:[0..2]; [a] x<2 -> 0.5:(x'=x+1) + 0.5:(x'=x); [b] true -> true; endmodule "
        "rewards x<2 : 2; [a] true : 1; endrewards"
    )
    write_prism_explicit(model, tmp_path / "m.tra")
    path = tmp_path / f"m{ending}"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:-1]) + "\n")
    promised = int(lines[2].split()[-1])
    message = rf"m{ending}:\d+: The header promises {promised} lines, but {promised - 1} follow"
    with pytest.raises(FileError, match=message):
        read_prism_explicit(tmp_path / "m.tra")
    path.write_text("\n".join(lines[3:]) + "\n")
    with pytest.raises(FileError, match=rf"m{ending}:"):
        read_prism_explicit(tmp_path / "m.tra")
