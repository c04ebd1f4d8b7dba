"""Models that are not written out have the bounds that they have when they are."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

import rfmdp as rf
from rfmdp.cli.main import run
from rfmdp.threads import set_threads, threads

pytestmark = pytest.mark.filterwarnings("ignore:.*no enabled command:rfmdp.errors.PrismWarning")

COIN = "mdp module m x : [0..1]; [go] true -> 0.5 : (x'=1) + 0.5 : (x'=0); endmodule "
DIRECTIONS = st.sampled_from(list(rf.Direction))


@st.composite
def texts(draw) -> str:
    """Draw a network of modules that read each other; some states may have no choice."""
    count = draw(st.integers(1, 4))
    highs = [draw(st.integers(1, 2)) for _ in range(count)]
    actions = ["go", "push", "pull"][: draw(st.integers(1, 3))]
    lines = ["mdp"]
    for i in range(count):
        lines += [f"module m{i}", f"  x{i} : [0..{highs[i]}];"]
        for action in actions:
            if action != "go" and draw(st.booleans()):
                continue  # not in its alphabet
            lines += _commands(draw, i, action, highs)
        lines.append("endmodule")
    total = " + ".join(f"{draw(st.integers(-2, 3))}*x{i}" for i in range(count))
    lines += [f'label "goal" = {total} >= {draw(st.integers(0, 3))};']
    lines += [f'label "far" = x0 != x{count - 1} | x0 = {draw(st.integers(0, 1))};', 'rewards "r"']
    lines += [f"  true : {total};"] * draw(st.booleans())
    used = [action for action in actions if any(f"[{action}]" in line for line in lines)]
    lines += [
        f"  [{action}] x0>={draw(st.integers(0, 1))} : {draw(st.integers(0, 3))}*x0+1;"
        for action in used
    ]
    idle = [] if used else [f"[idle] x0>{draw(st.integers(-1, 0))} -> true;"]
    return "\n".join([*lines[:3], *idle, *lines[3:], "endrewards"])


def _commands(draw, i: int, action: str, highs: list[int]) -> list[str]:
    """Return commands of a module for an action: guards by its own value, perhaps by another's."""
    other = draw(st.integers(0, len(highs) - 1))
    lines = []
    for own in range(highs[i] + 1):
        guards = [f"x{i}={own}"]
        if other != i and draw(st.booleans()):
            guards = [f"x{i}={own} & x{other}=0", f"x{i}={own} & x{other}>0"]
        for guard in guards:
            if draw(st.integers(0, 3 if action != "go" else 9)) == 0:
                continue
            weights = draw(st.lists(st.integers(1, 9), min_size=1, max_size=highs[i] + 1))
            values = draw(st.permutations(range(highs[i] + 1)))[: len(weights)]
            updates = [
                f"{w}/{sum(weights)} : (x{i}'={v})" for w, v in zip(weights, values, strict=True)
            ]
            lines.append(f"  [{action}] {guard} -> {' + '.join(updates)};")
    return lines


def both(text: str, radius: float, kind: str = "box"):
    """Return the model by its factors and written out, from all states of the lattice."""
    names = "init true endinit"
    written = rf.parse_prism(f"{text}\n{names}")
    lattice = rf.parse_lattice(text)
    if radius:
        written, lattice = with_sets(written, radius, kind), with_sets(lattice, radius, kind)
    return lattice, written


def with_sets(model, radius: float, kind: str):
    """Return a nominal model with boxes, L1 balls or polytopes."""
    if kind != "corners":
        return model.with_radius(radius, exponent=1.0 if kind == "l1" else np.inf)
    sets = []
    for j in range(len(model.marginals)):
        nominal = model.marginals[j].nominal
        others = [np.eye(len(nominal))[k] for k in range(len(nominal))]
        corners = [nominal, *((1.0 - radius) * nominal + radius * other for other in others)]
        sets.append(rf.Polytope(np.array(corners) if (nominal < 1.0).all() else [nominal]))
    return model.with_marginals(rf.Marginals.from_sets(sets))


def same_order(lattice, written) -> np.ndarray:
    """Return the states of the lattice in the order of those that are written out."""
    low = np.array([v.low for v in lattice.variables])
    return (written.valuations - low) @ lattice.strides


OBJECTIVES = st.one_of(
    st.builds(rf.Cumulative, st.integers(0, 6), discount=st.sampled_from([1.0, 0.9])),
    st.builds(rf.Instantaneous, st.integers(0, 4)),
    st.builds(rf.Until, st.just("goal"), st.just("far"), st.integers(2, 5), st.integers(0, 2)),
    st.builds(rf.Until, st.just("far"), st.just("goal"), st.integers(2, 5), st.integers(0, 2)),
    st.builds(rf.Globally, st.just("goal"), st.integers(0, 4)),
    st.builds(rf.Next, st.just("goal")),
    st.builds(rf.Discounted, st.sampled_from([0.5, 0.9])),
)


# one uncertain factor, whose worst answer depends on where a certain one goes
CERTAIN_LATER = """mdp
module m0
  x0 : [0..2];
  [go] true -> 9/20 : (x0'=0) + 4/20 : (x0'=1) + 7/20 : (x0'=2);
endmodule
module m1
  x1 : [0..1];
  [go] true -> (x1'=1-x1);
endmodule
label "goal" = x0=1;
label "far" = x1=1;
rewards "r"
  true : x1=1 ? x0 : 2-x0;
endrewards"""

# states of value 0 beside others: a checker that clipped bounds between steps proved less of them
ZERO_BESIDE = """mdp
module m0
  x0 : [0..2];
  [go] x0=0 | x0=2 & x1=0 -> (x0'=0);
  [push] x0<2 -> (x0'=0);
  [push] x0=2 -> 1/2 : (x0'=0) + 1/2 : (x0'=1);
endmodule
module m1
  x1 : [0..1];
  [go] x1=0 & x0=0 -> 1/2 : (x1'=0) + 1/2 : (x1'=1);
endmodule
module m2
  x2 : [0..1];
  [go] x2=1 -> 1/2 : (x2'=0) + 1/2 : (x2'=1);
endmodule
label "goal" = x1=1;
label "far" = x0!=x2 | x0=0;
rewards "r"
  true : 1;
endrewards"""

KINDS = st.sampled_from(["box", "box", "l1", "corners"])


@given(texts(), OBJECTIVES, DIRECTIONS, DIRECTIONS, st.sampled_from([0.0, 0.05, 0.2, 0.6]), KINDS)
@example(CERTAIN_LATER, rf.Cumulative(4), rf.MIN, rf.MIN, 0.05, "box")
@example(CERTAIN_LATER, rf.Cumulative(4), rf.MIN, rf.MIN, 0.05, "l1")
@example(CERTAIN_LATER, rf.Cumulative(4), rf.MAX, rf.MIN, 0.05, "corners")
@example(ZERO_BESIDE, rf.Until("far", "goal", 3), rf.MAX, rf.MIN, 0.0, "box")
def test_bounds_are_those_of_the_written_model(text, objective, agent, nature, radius, kind):
    """Every state, objective, direction and set: bounds overlap, and both are certified."""
    lattice, written = both(text, radius, kind)
    stuck = int(lattice.label("deadlock").sum())  # where a self-loop is written
    assert lattice.rows == written.rows - stuck
    assert lattice.transitions == written.transitions - stuck
    spec = rf.Spec(objective, agent, nature)
    everywhere = np.ones(lattice.states, dtype=bool)
    limits = rf.Limits(precision=1e-9, measure=rf.Measure.ABSOLUTE)
    ours = rf.solve(lattice, spec, limits=limits, states=everywhere)
    theirs = rf.solve(written, spec, limits=limits, states=everywhere)
    order = same_order(lattice, written)
    assert ours.status is theirs.status is rf.Status.CERTIFIED
    assert np.all(ours.lower[order] <= theirs.upper)
    assert np.all(theirs.lower <= ours.upper[order])
    assert rf.verify(ours).valid, str(rf.verify(ours))


ENDS = {  # how one more module ends every play: by chance, by time, by a clock that may stand still
    "chance": ["t<2 -> 0.4 : (t'=2) + 0.6 : true;"],
    "time": ["t<2 -> (t'=t+1);"],
    "trap": ["t<2 -> 0.4 : (t'=2)&(b'=1) + 0.3 : (t'=2)&(b'=0) + 0.3 : true;"],
    "stalls": ["t<2 & b=1 -> 0.4 : (b'=0) + 0.6 : (t'=t+1);", "t<2 & b=0 -> (b'=1) & (t'=t+1);"],
}


def ending(text: str, how: str) -> str:
    """Return a network with one more module, by which every play is over."""
    lines = ["module last", "  t : [0..2];", "  b : [0..1];"]
    for action in sorted(set(re.findall(r"\[(\w+)\] .*->", text))):
        lines += [f"  [{action}] {command}" for command in (*ENDS[how], "t=2 -> true;")]
    lines += ["endmodule", 'label "over" = t=2;', 'label "on" = t<2;']
    lines += ['label "won" = t=2 & b=1;', 'label "open" = t<2 | b=0;']
    return text.replace('label "goal"', "\n".join([*lines, 'label "goal"']))


UNBOUNDED = st.sampled_from(
    [
        rf.Until("on", "goal"),
        rf.Reach("over"),
        rf.ReachReward("over"),
        rf.Globally("on"),
        rf.Reach("won"),
        rf.Globally("open"),  # where it is too late, a play has ended as well
    ]
)


@given(
    texts(),
    st.sampled_from(list(ENDS)),
    UNBOUNDED,
    DIRECTIONS,
    DIRECTIONS,
    st.sampled_from([0.0, 0.05, 0.3]),
    KINDS,
)
def test_targets_of_plays_that_end(text, how, objective, agent, nature, radius, kind):
    """Without a horizon, where every play ends: the bounds of the written model, verified."""
    lattice, written = both(ending(text, how), radius, kind)
    spec = rf.Spec(objective, agent, nature)
    everywhere = np.ones(lattice.states, dtype=bool)
    limits = rf.Limits(precision=1e-9, measure=rf.Measure.ABSOLUTE)
    ours = rf.solve(lattice, spec, limits=limits, states=everywhere)
    theirs = rf.solve(written, spec, limits=limits, states=everywhere)
    order = same_order(lattice, written)
    lasts = isinstance(objective, rf.ReachReward) and lattice.label("deadlock").any()
    assert ours.status is rf.Status.CERTIFIED or lasts
    assert np.all(ours.lower[order] <= theirs.upper)
    assert np.all(theirs.lower <= ours.upper[order])
    assert rf.verify(ours).valid, str(rf.verify(ours))
    if ours.upper.max() > 0.1 and not lasts:
        low, high = ours.lower - 2e-3, ours.upper - 1e-3
        forged = replace(ours, lower=low, upper=high, value=np.clip(ours.value, low, high))
        assert not rf.verify(forged).valid


@pytest.mark.parametrize("chance", [0.25, 1e-13])
def test_where_it_is_too_late_is_seen_unless_chances_are_faint(chance):
    """A trap ends a play; of chances that floats may lose, it is proven without that."""
    text = f"[go] x=0 -> {chance} : (x'=1) + 1-{chance} : (x'=2); [go] x>0 -> true;"
    model = rf.parse_lattice(f'mdp module m x : [0..2]; {text} endmodule label "goal" = x=1;')
    spec = rf.Spec(rf.Reach("goal"), rf.MAX, rf.MIN)
    solution = rf.solve(model, spec)
    assert (solution.witness is None) == (chance > 1e-12)
    assert solution.at_initial().lower <= chance <= solution.at_initial().upper
    assert solution.at_initial().width < 1e-11
    assert rf.verify(solution).valid


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("dtmc module m x : [0..1]; [] true -> (x'=1); endmodule", "chain"),
        ("mdp global g : [0..1]; module m x : [0..1]; [] true -> (g'=1); endmodule", "global"),
        ("mdp module m x : [0..1]; [a] true -> (x'=1); [a] x=0 -> (x'=0); endmodule", "several"),
        ("mdp module m x : [0..1]; [] true -> (x'=x+1); endmodule", "range"),
    ],
)
def test_what_is_no_lattice(text, reason):
    """Texts that need to be explored say why."""
    with pytest.raises(rf.UnsupportedError, match=reason):
        rf.parse_lattice(text)


def network(machines: int) -> str:
    """Return a ring of machines that fail, sooner beside a failed one; one is repaired per step."""
    lines = ["mdp"]
    actions = [f"repair_{k}" for k in range(machines)] + ["noop"]
    for i in range(machines):
        left, right = (i - 1) % machines, (i + 1) % machines
        fails = f"(m{left}=1 & m{right}=1 ? 0.1 : 0.6)"
        lines += [f"module machine{i}", f"  m{i} : [0..1] init 1;"]
        for action in actions:
            repaired = "1" if action == f"repair_{i}" else "0"
            lines.append(f"  [{action}] m{i}=1 -> {fails} : (m{i}'=0) + 1-{fails} : true;")
            lines.append(f"  [{action}] m{i}=0 -> (m{i}'={repaired});")
        lines.append("endmodule")
    up = " + ".join(f"m{i}" for i in range(machines))
    lines.append('rewards "running"')
    lines += [f"  [{a}] true : {up if a == 'noop' else f'max(0, {up} - 1)'};" for a in actions]
    return "\n".join([*lines, "endrewards"])


def ring_value(machines: int, radius: float, steps: int) -> float:
    """Return what all running machines of `network` earn, by plain NumPy, one machine at a time.

    Values grow with every machine that runs (checked in each step), so nature lets all fail as
    often as it may. To repair another machine is to repair the first one of a ring that is turned.
    """
    now = np.ones((2, 2, 2, 2))  # (left, own, right, next): from the probability to run on
    now[:, 1, :, 1], now[1, 1, 1, 1] = 1.0 - (0.6 + radius), 1.0 - (0.1 + radius)
    now[:, 0, :, 1] = 0.0
    now[..., 0] = 1.0 - now[..., 1]
    repaired = now.copy()
    repaired[:, 0] = 0.0, 1.0
    running = np.indices((2,) * machines).sum(axis=0)
    value = np.zeros((2,) * machines)

    def expected(first: np.ndarray) -> np.ndarray:
        """Exchange next machines for present ones, one by one; the first one moves by `first`."""
        result, axes = value, list(range(machines))
        for i in range(machines):
            near = [machines + (i + k) % machines for k in (-1, 0, 1)]
            kept = [axis for axis in axes if axis != i]
            kept += [axis for axis in near if axis not in kept]
            result = np.einsum(result, axes, now if i else first, [*near, i], kept)
            axes = kept
        return result.transpose(np.argsort(axes))

    for _ in range(steps):
        assert all((np.diff(value, axis=i) >= 0.0).all() for i in range(machines))
        first = np.maximum(running - 1, 0) + expected(repaired)
        turned = list(range(machines))
        value = running + expected(now)
        for _ in range(machines):
            value = np.maximum(value, first.transpose(turned))
            turned = [*turned[1:], turned[0]]
    return float(value[(1,) * machines])


@pytest.mark.parametrize("machines", [12, 14, 16])
def test_networks_whose_transitions_are_many(machines):
    """Rings of up to 7.3e8 transitions per step have the value of a plain recursion."""
    value = ring_value(machines, 0.025, 15)
    model = rf.parse_lattice(network(machines)).with_radius(0.025)
    solution = rf.solve(model, rf.Spec(rf.Cumulative(15), rf.MAX, rf.MIN))
    bounds = solution.at_initial()
    assert solution.status is rf.Status.CERTIFIED
    assert bounds.lower - 1e-9 <= value <= bounds.upper + 1e-9
    assert bounds.width < 1e-9
    assert solution.at(**{f"m{i}": 1 for i in range(machines)}) == bounds
    all_down = model.find(**{f"m{i}": 0 for i in range(machines)})
    assert model.choice_name(solution.policy.row(all_down)).startswith("repair")


def test_results_do_not_depend_on_threads():
    """Threads share the states out, and nothing else."""
    model = rf.parse_lattice(network(14)).with_radius(0.1)
    before, results = threads(), []
    try:
        for count in (1, 2, 3):
            set_threads(count)
            results.append(rf.solve(model, 'R{"running"}minmax=? [ C<=2 ]'))
    finally:
        set_threads(before)
    for other in results[1:]:
        assert np.array_equal(other.lower, results[0].lower)
        assert np.array_equal(other.policy.rows, results[0].policy.rows)


def test_other_sets_are_refused():
    """A ball of another norm has no minimiser here; the box around it would be another set."""
    model = rf.parse_lattice(COIN)
    with pytest.raises(rf.UnsupportedError, match="L1 balls"):
        model.with_radius(0.1, exponent=2.0)
    with pytest.raises(rf.ModelError, match="needs 1 sets"):
        model.with_marginals(rf.Marginals.from_sets([]))


def test_rewards_that_are_no_numbers_are_refused():
    """A row that pays nan would never be the best one, whatever it is worth."""
    model = rf.parse_lattice(COIN + 'rewards "r" true : log(x-1, 2); endrewards')
    with pytest.raises(rf.RfmdpError):
        rf.solve(model, rf.Spec(rf.Cumulative(2)))


@pytest.mark.parametrize("stop", range(4))
def test_bounds_hold_after_ctrl_c_in_any_step(monkeypatch, stop):
    """A step that was interrupted counts as one that is still to come."""
    from rfmdp.outer.lattice.sweep import Sweep

    model = rf.parse_lattice(COIN + 'rewards "r" true : 1; endrewards')
    calls, back = [], Sweep.back

    def interrupted(self, value):
        calls.append(1)
        if len(calls) > stop:
            raise KeyboardInterrupt
        return back(self, value)

    monkeypatch.setattr(Sweep, "back", interrupted)
    solution = rf.solve(model, rf.Spec(rf.Cumulative(4)))
    bounds = solution.at_initial()
    assert solution.status is rf.Status.INTERRUPTED or bounds.width < 1e-9
    assert bounds.lower <= 4.0 <= bounds.upper  # every one of four steps pays 1


@pytest.mark.parametrize("stop", range(1, 9))
@pytest.mark.parametrize("objective", [rf.Cumulative(4), rf.ReachReward("over")])
def test_interrupted_results_are_proven_again(monkeypatch, stop, objective):
    """What was proven before a stop is claimed, and of a policy that is possible everywhere."""
    from rfmdp.outer.lattice.sweep import Sweep

    text = COIN.replace("true", "x=0").replace("endmodule", "\n[stay] x=1 -> true;\nendmodule ")
    text = ending(text + 'label "goal" = x=1; rewards "r" true : 1; endrewards', "chance")
    model = rf.parse_lattice(text).with_radius(0.1)
    calls, back = [], Sweep.back

    def interrupted(self, value):
        calls.append(1)
        if len(calls) > stop:
            raise KeyboardInterrupt
        return back(self, value)

    monkeypatch.setattr(Sweep, "back", interrupted)
    solution = rf.solve(model, rf.Spec(objective))
    assert rf.verify(solution).valid, str(rf.verify(solution))


def test_rules_that_are_impossible_prove_nothing():
    """A rule that takes no possible action would leave a side of its worth without any bound."""
    text = "mdp module m x : [0..1]; [a] x=0 -> (x'=1); [b] x=1 -> (x'=0); endmodule "
    model = rf.parse_lattice(text + 'rewards "r" true : 1; endrewards')
    solution = rf.solve(model, rf.Spec(rf.Cumulative(2)))
    upper = solution.upper - 1.0
    for policy in (solution.policy, rf.Policy(1 - solution.policy.rows)):
        forged = replace(
            solution, subject="policy", policy=policy, lower=None, upper=upper, value=upper
        )
        assert not rf.verify(forged).valid


def test_what_lasts_too_long_is_not_proven(monkeypatch):
    """The checker tries so many steps; that it found no end says nothing against a claim."""
    from rfmdp.verification import lattice as checker

    model = rf.parse_lattice(ending(COIN + 'label "goal" = x=1;', "chance")).with_radius(0.1)
    solution = rf.solve(model, rf.Spec(rf.Reach("over")))
    monkeypatch.setattr(checker, "LONGEST", 1)
    assert str(rf.verify(solution)).startswith("NOT PROVEN: plays end")


PROPERTIES = [
    'P{}=? [ F<=3 "goal" ]', "P{}=? [ x0>0 U<=2 x0=0 ]", 'P{}=? [ G<=2 "far" & x0>=0 ]',
    'R{{"r"}}{}=? [ C<=3 ]', 'R{{"r"}}{}=? [ I=2 ]', 'P{}>=0.5 [ X "goal" ]',
    'P{}=? [ F<=2 "deadlock" ]',
]  # fmt: skip


@given(texts(), st.sampled_from(PROPERTIES), st.sampled_from(["maxmin", "minmax", "maxmax"]))
def test_properties_are_answered_as_of_the_written_model(text, prop, players):
    """The initial state, by the text of a property: the same bounds, or the same truth."""
    lattice, written = rf.parse_lattice(text).with_radius(0.1), rf.parse_prism(text)
    written = written.with_radius(0.1)
    question = prop.format(players)
    if written.rows == written.states:  # of its reachable part: only nature chooses
        return
    ours, theirs = rf.check(lattice, question), rf.check(written, question)
    assert ours.type is theirs.type
    if isinstance(theirs.value, bool):
        assert ours.value in (theirs.value, None)
    else:
        assert ours.lower <= theirs.upper
        assert theirs.lower <= ours.upper
        assert ours.certified


def test_models_are_kept_by_their_factors_where_that_is_less_work(tmp_path):
    """A wide network is; a small one, one question without steps, and few reachable states not."""
    question = 'R{"running"}maxmin=? [ C<=5 ]'

    def kind(text: str, prop: str = question) -> type:
        path = tmp_path / "network.prism"
        path.write_text(text)
        built = next(iter(rf.check_all(rf.read_model(path), prop)))
        return type(built.model)

    wide = network(14)
    assert kind(wide) is rf.LatticeMDP
    assert kind(network(6)) is rf.FactoredMDP
    down = wide.replace("init 1", "init 0").replace("'=1)", "'=0)")  # one reachable state
    assert kind(down) is rf.FactoredMDP
    assert kind(network(8), "Pmaxmin=? [ F m0=0 ]") is rf.FactoredMDP


def test_the_command_line_solves_by_factors_and_proves_it_again(tmp_path, capsys):
    """From the PRISM file by the ordinary command: order of factors, policy file, verdict."""
    (tmp_path / "ring.prism").write_text(network(13))
    ring, result, policy = (str(tmp_path / n) for n in ("ring.prism", "r.rfmdp", "p.csv"))
    question = ["--prop", 'R{"running"}maxmin=? [ C<=2 ]', "--radius", "0.05"]
    files = ["-o", result, "--export-policy", policy]
    assert run(["solve", ring, *question, *files, "--verbose"]) == 0
    assert "factors   contracted in the order machine" in capsys.readouterr().out
    assert run(["verify", result]) == 0
    assert run(["solve", ring, *question[:2], "--set", "l1:0.1", "--verbose"]) == 0
    assert "factors   contracted" in capsys.readouterr().out
    lines = Path(policy).read_text().splitlines()
    assert len(lines) == 1 + 2 * 2**13
    assert {line.rsplit(",", 1)[1] for line in lines[1:]} <= {
        "noop", *(f"repair_{k}" for k in range(13))
    }  # fmt: skip
    assert run(["explain", result]) == 0
    page = tmp_path / "page.html"
    assert run(["report", result, "-o", str(page)]) == 0
    assert page.stat().st_size > 1000


@given(texts(), OBJECTIVES, st.sampled_from([0.0, 0.2]))
def test_written_solutions_are_proven_again(text, objective, radius):
    """A solution of a network is one of the model with its transitions, bound by bound."""
    lattice, written = both(text, radius)
    solution = rf.solve(lattice, rf.Spec(objective))
    explicit = solution.explicit()
    assert explicit.model.rows == written.rows
    assert explicit.model.transitions == written.transitions
    order = same_order(lattice, written)
    assert np.array_equal(explicit.model.valuations[order], written.valuations)
    assert np.array_equal(explicit.lower, solution.lower)
    assert rf.verify(explicit).valid, str(rf.verify(explicit))


def test_what_needs_transitions_says_so():
    """One line, not an AttributeError."""
    model = rf.parse_lattice(network(4)).with_radius(0.1)
    solution = rf.solve(model, 'R{"running"}maxmin=? [ C<=2 ]')
    for act in (
        lambda s: rf.explain(s, 0),
        rf.collect_next,
        lambda s: s.to_frame(),
        lambda s: s.nature(),
    ):
        with pytest.raises(rf.UnsupportedError, match="written out"):
            act(solution)
    with pytest.raises(rf.UnsupportedError, match="exact method"):
        rf.solve(model, 'R{"running"}maxmin=? [ C<=2 ]', inner=rf.Sequential())


def test_saved_solutions_are_verified_and_forged_ones_are_not(tmp_path):
    """The checker contracts by itself: bounds that claim too much, or another policy, fail."""
    model = rf.parse_lattice(network(5)).with_radius(0.1)
    solution = rf.solve(model, 'R{"running"}maxmin=? [ C<=4 ]')
    path = tmp_path / "ring.rfmdp"
    rf.save(solution, path)
    again = rf.load(path)
    assert again.at_initial() == solution.at_initial()
    assert rf.verify(path).valid
    assert np.array_equal(rf.solve(again.model, again.spec).lower, solution.lower)
    better = solution.lower + 1e-6
    wide = np.maximum(solution.upper, better)
    worst = rf.solve(model, 'R{"running"}minmin=? [ C<=4 ]').policy
    for forged in (
        replace(solution, lower=better, upper=wide, value=better),
        replace(solution, upper=solution.upper - 1e-6, lower=solution.lower - 1e-6,
                value=solution.upper - 1e-6),
        replace(solution, policy=worst),
    ):  # fmt: skip
        assert not rf.verify(forged).valid


def test_rows_whose_sets_are_of_several_kinds():
    """Rows that are written out together have sets of one kind: a box is no known distribution."""
    model = rf.parse_lattice("""mdp
    module m0 x : [0..1];
      [go] x=0 -> 0.3 : (x'=0) + 0.7 : (x'=1);
      [go] x=1 -> 0.4 : (x'=0) + 0.6 : (x'=1);
    endmodule
    module m1 y : [0..1]; [go] true -> 0.45 : (y'=0) + 0.55 : (y'=1); endmodule
    module m2 z : [0..1]; [go] true -> 0.5 : (z'=0) + 0.5 : (z'=1); endmodule
    label "same" = x=0 ? y=z : y!=z;""")
    known, *others = (model.marginals[j].nominal for j in range(len(model.marginals)))
    boxes = [rf.Interval(p - 0.3, p + 0.3) for p in others]
    model = model.with_marginals(rf.Marginals.from_sets([rf.Singleton(known), *boxes]))
    solution = rf.solve(model, rf.Spec(rf.Next("same")))
    assert rf.verify(solution).valid
    more = np.where(solution.lower < 0.34, solution.lower + 0.1, solution.lower)
    forged = replace(solution, lower=more, upper=np.maximum(more, solution.upper), value=more)
    assert not rf.verify(forged).valid
