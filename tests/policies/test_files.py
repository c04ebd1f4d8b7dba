"""Policies written for people and other tools, read again, and applied to other models."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from rfmdp.errors import FileError, ModelError
from rfmdp.language.build import parse_prism
from rfmdp.objective import MAX, MIN, Reach, Spec, Until
from rfmdp.policies.files import policy_of_lines, read_policy, write_policy
from rfmdp.solving import evaluate, solve

from .test_decisions import walk

SPEC = Spec(Reach("goal"), MAX, MIN)
GRID = """
mdp
const int N;
const double slip;
module robot
  x : [0..N];
  up : bool;
  [right] x<N -> 1-slip : (x'=x+1) + slip : true;
  [] x<N & !up -> 0.5 : (up'=true) + 0.5 : (x'=max(x-1,0));
  [] x<N & up -> (up'=false);
  [left] x>0 & x<N -> (x'=x-1);
  [] x=N -> true;
endmodule
label "goal" = x=N;
"""


def decision_table(solution, folder):
    """Return the columns of a policy's file."""
    write_policy(solution, folder / "policy.csv")
    with (folder / "policy.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    return lines


def grid(**constants):
    """Return the robot with uncertain slips."""
    return parse_prism(GRID, {"N": 4, "slip": 0.2} | constants).with_radius(0.05)


@pytest.mark.parametrize("model", [walk(), grid()], ids=["rows", "prism"])
def test_a_policy_is_read_as_it_was_written(tmp_path, model):
    """The same rows come back."""
    solution = solve(model, SPEC)
    path = tmp_path / "policy.csv"
    write_policy(solution, path)
    again = read_policy(path, model)
    assert np.array_equal(again.rows, solution.policy.rows)


def test_a_time_dependent_policy_keeps_its_steps(tmp_path):
    """A rule per step goes into a column of its own."""
    solution = solve(walk(), Spec(Until("live", "goal", latest=3), MAX, MIN))
    path = tmp_path / "policy.csv"
    write_policy(solution, path)
    assert np.array_equal(read_policy(path, walk()).rows, solution.policy.rows)
    with pytest.raises(FileError, match=r"a policy is written as \.csv"):
        write_policy(solution, tmp_path / "policy.strat")
    assert [p.name for p in tmp_path.iterdir()] == ["policy.csv"]


def test_values_stand_beside_the_decisions(tmp_path):
    """Bounds in the file are those of the solution, to the last bit."""
    solution = solve(grid(), SPEC)
    path = tmp_path / "policy.csv"
    write_policy(solution, path)
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [float(line["lower"]) for line in lines] == solution.lower.tolist()
    assert [float(line["upper"]) for line in lines] == solution.upper.tolist()
    assert all(line["action"] for line in lines)
    assert [float(line["value"]) for line in lines] == solution.lower.tolist()
    assert (lines[0]["x"], lines[0]["up"]) == ("0", "0")


@pytest.mark.parametrize("agent", [MAX, MIN])
def test_bounds_of_a_coarse_solution_are_not_swapped(tmp_path, agent):
    """In every file the lower bound is the smaller one, and the value is the guaranteed side."""
    solution = solve(grid(), replace(SPEC, agent=agent, nature=agent.opposite))
    wide = replace(solution, lower=solution.lower * 0.5, upper=solution.upper * 0.5 + 0.5)
    write_policy(wide, tmp_path / "policy.csv")
    with (tmp_path / "policy.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [float(line["lower"]) for line in lines] == wide.lower.tolist()
    assert [float(line["upper"]) for line in lines] == wide.upper.tolist()
    side = wide.lower if agent is MAX else wide.upper
    assert [float(line["value"]) for line in lines] == side.tolist()


def test_unlabelled_commands_have_names():
    """A command without a label is called by its module and line, or by its number."""
    model = grid()
    names = [model.choice_name(row) for row in range(model.rows)]
    assert "right" in names
    assert any("line 9" in name for name in names)
    assert "" not in names


def test_a_policy_fits_a_model_with_other_probabilities(tmp_path):
    """Applied to a larger slip, the policy's own value is found, at most the optimum there."""
    table = decision_table(solve(grid(), SPEC), tmp_path)
    other = grid(slip=0.4)
    policy = policy_of_lines(table, other)
    value = evaluate(other, policy, SPEC).at_initial()
    assert value.lower <= solve(other, SPEC).at_initial().upper


def test_a_state_without_a_decision_is_named(tmp_path):
    """A larger model reaches states that the table does not know; the first one is named."""
    table = decision_table(solve(grid(), SPEC), tmp_path)
    with pytest.raises(ModelError, match=r"no decision in \(x=4"):
        policy_of_lines(table[:8], grid(N=6))


def test_an_unknown_action_is_answered_with_the_known_ones(tmp_path):
    """The line, the state and its actions are in the message."""
    table = decision_table(solve(grid(), SPEC), tmp_path)
    table[0]["action"] = "rigth"
    with pytest.raises(ModelError, match=r"Line 1 .* no action 'rigth'; it has: .*right"):
        policy_of_lines(table, grid())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.csv", ""),
        ("p.csv", "x,up,action\n1\n"),
        ("p.csv", "x,action\n1,right\n"),
        ("p.csv", "x,up,action\none,true,right\n"),
        ("p.txt", ""),
    ],
)
def test_bad_files_are_one_clear_error(tmp_path, name, text):
    """Whatever is wrong with a file, the error is ours and one line long."""
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises((FileError, ModelError)) as error:
        read_policy(path, grid())
    assert "\n" not in str(error.value)


def test_a_missing_file_is_one_clear_error(tmp_path):
    """A file that is not there is named."""
    with pytest.raises(FileError, match=r"none\.csv: cannot be read"):
        read_policy(tmp_path / "none.csv", grid())
