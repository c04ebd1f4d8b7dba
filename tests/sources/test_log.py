"""Logs: every container, and everything that may be wrong with rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

import rfmdp as rf
from examples import half
from learning.tiny import identified
from rfmdp.errors import DataError, FileError, UnsupportedError
from rfmdp.learning.identifiers import Granularity
from rfmdp.sources.checks import Evidence
from rfmdp.sources.log import source as log_source
from rfmdp.sources.log.source import read_log, table_of, write_log
from rfmdp.sources.trajectories import Tally, record

from .logs import changed, log_table, machines

pa = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def model():
    return machines({})


@pytest.fixture(scope="module")
def table():
    return log_table()


@pytest.mark.parametrize("granularity", [Granularity.EFFECT, Granularity.FLAT])
def test_counts_are_those_of_the_transitions(granularity, monkeypatch):
    """A log of a simulation gives the counts of its transitions, one by one, in any batches."""
    monkeypatch.setattr(log_source, "BATCH", 7)
    truth = machines()
    data = record(truth, None, 9, 50, seed=4)
    counted = identified(truth, granularity).model
    expected = Tally.empty(counted)
    expected.add(counted, data.rows, data.successors)
    log = read_log(truth, table_of(truth, data), selection="none")
    tally, evidence = log.tally(counted)
    assert (tally.counts == expected.counts).all()
    assert (tally.totals == expected.totals).all()
    assert (log.steps, log.trajectories) == (450, 50)
    ages = np.tile(np.arange(9), 50)
    again = Evidence(counted)
    again.add(data.rows, data.successors, np.where(ages > 0, np.roll(data.rows, 1), -1), ages)
    assert evidence.checks(0.01) == again.checks(0.01)


def test_all_containers_mean_the_same(model, table, tmp_path):
    """Files, tables in memory and streams are read to the same transitions."""
    import polars

    pa.parquet.write_table(table, tmp_path / "log.parquet", row_group_size=100)
    pa.feather.write_feather(table, str(tmp_path / "log.arrow"))
    pa.csv.write_csv(table, tmp_path / "log.csv")
    with pa.CompressedOutputStream(str(tmp_path / "log.csv.gz"), "gzip") as out:
        pa.csv.write_csv(table, out)
    (tmp_path / "log.tsv").write_text((tmp_path / "log.csv").read_text().replace(",", "\t"))
    expected = read_log(model, table).digest
    for name in ("log.parquet", "log.arrow", "log.csv", "log.csv.gz", "log.tsv"):
        assert read_log(model, tmp_path / name).digest == expected, name
    content = table.to_pydict()
    for given_ in (table.to_pandas(), polars.from_arrow(table), content, table.to_reader(50)):
        assert read_log(model, given_).digest == expected, type(given_)


def test_a_folder_is_its_files(model, table, tmp_path):
    """Files of a folder are read by name, and several tables one after the other."""
    halves = table.slice(0, 240), table.slice(240)
    for i, part in enumerate(halves):
        pa.parquet.write_table(part, tmp_path / f"{i}.parquet")
    folder = read_log(model, tmp_path)
    assert folder.steps == table.num_rows
    assert folder.digest == read_log(model, *halves).digest
    assert folder.trajectories == read_log(model, table).trajectories == 40


@given(st.integers(1, 40), st.integers(1, 13))
@half
def test_batches_do_not_matter(size, width):
    """Every cut into batches finds the same transitions, problems and rows."""
    model, table = machines({}), log_table(12, 7, seed=1)
    wrong = pa.table(changed(changed_table(table, "m", [3, 40], 9), "t", [20], 99))
    found = []
    for batch in (size, width):
        stream = pa.RecordBatchReader.from_batches(wrong.schema, wrong.to_batches(batch))
        with pytest.raises(DataError) as caught:
            read_log(model, stream)
        found.append(str(caught.value))
    assert found[0] == found[1]


def changed_table(table, column, rows, value):
    return pa.table(changed(table, column, rows, value))


BROKEN = [
    # column, rows, value, words of the message
    ("m", [5, 30], None, "2 row(s) that have no value in column 'm' (row 5, 30)"),
    ("m", [5], 7, "have no value of m in 0..2 in column 'm' (row 5: 7)"),
    ("m", [5], -1, "have no value of m in 0..2 in column 'm' (row 5: -1)"),
    ("next_m", [5], 3, "have no value of m in 0..2 in column 'next_m' (row 5: 3)"),
    ("action", [7], "wait", "have no action of run, fix in column 'action' (row 7: 'wait')"),
    ("action", [7], None, "have no value in column 'action' (row 7)"),
    ("t", [14], 1, "have the time of the row before: doubled rows (row 14: 1)"),
    (
        "t",
        [14],
        0,
        "come earlier than the row before of their episode: shuffled or doubled",
    ),
    ("t", [14], 5, "come more than one step after the row before: missing rows (row 14: 5)"),
    ("t", [14], None, "have no value in column 't' (row 14)"),
    ("episode", [24, 25], 0, "begin an episode that was there before: shuffled or doubled"),
    ("episode", [9], None, "have no value in column 'episode' (row 9)"),
]


@pytest.mark.parametrize(("column", "rows", "value", "message"), BROKEN)
def test_what_is_wrong_is_told_with_its_row(model, table, column, rows, value, message):
    """One line that names the table, the fault and the rows."""
    with pytest.raises(DataError) as caught:
        read_log(model, changed(table, column, rows, value))
    text = str(caught.value)
    assert message in text
    assert text.startswith("table 1, ")
    assert "\n" not in text


def test_shuffled_and_doubled_rows(model, table, tmp_path):
    """A shuffled table, a doubled row, a doubled episode and a file given twice are refused."""
    order = np.random.default_rng(0).permutation(table.num_rows)
    with pytest.raises(DataError, match="shuffled"):
        read_log(model, table.take(pa.array(order)))
    rows = np.insert(np.arange(table.num_rows), 17, 16)
    with pytest.raises(DataError, match=r"doubled rows \(row 17: 4\)"):
        read_log(model, table.take(pa.array(rows)))
    twice = pa.concat_tables([table, table.slice(0, 24)])
    for again in (twice, twice.drop_columns(["t"])):
        with pytest.raises(DataError, match=r"2 row\(s\) that begin an .* \(row 480, 492: 0\)"):
            read_log(model, again)
    write_log(machines(), record(machines(), None, 12, 40), tmp_path / "log.csv")
    loose = table.drop_columns(["episode", "t"])
    for again in ((tmp_path / "log.csv",) * 2, (table, table), (loose, loose)):
        with pytest.raises(DataError, match="must not have the same transitions as"):
            read_log(model, *again)
    with pytest.raises(DataError, match=r"table 2, 20 row\(s\) that begin an episode that was"):
        read_log(model, table, table.slice(240))
    assert read_log(model, table.slice(0, 245), table.slice(245)).steps == table.num_rows
    # without the columns that say so, a shuffled table is only a table
    bare = table.drop_columns(["episode", "t"]).take(pa.array(order))
    log = read_log(model, bare)
    assert log.steps == table.num_rows
    assert "no transition stands twice in the data" in log.assumptions[-1]
    assert "stands twice" in read_log(model, table.drop_columns(["t"])).assumptions[-1]
    assert "stands twice" in read_log(model, table.slice(0, 12), bare).assumptions[-1]
    assert len(read_log(model, table).assumptions) == 1


def test_a_table_is_checked_in_full_behind_one_with_fewer_columns(model, table):
    """Times and ends of a table are looked at even if the table before has none."""
    rest = pa.array(np.insert(np.arange(240, table.num_rows), 7, 246))
    for first in (table.slice(0, 240).drop_columns(["t"]), table.slice(0, 245).drop_columns(["t"])):
        with pytest.raises(DataError, match=r"table 2, 1 row\(s\) that have the time"):
            read_log(model, first, table.take(rest).slice(first.num_rows - 240))
    ends = pa.array(np.arange(240) == 3)
    over = table.slice(240).append_column("terminated", ends)
    with pytest.raises(DataError, match=r"come after the end of their episode .* \(row 4\)"):
        read_log(model, table.slice(0, 240), over)


def test_two_columns_of_one_name_are_refused(model, table, tmp_path):
    """In memory and in a file: which of them is meant, nobody can tell."""
    doubled = table.append_column(table.column_names[0], table.column(0))
    with pytest.raises(DataError, match=f"found {table.column_names[0]} twice"):
        read_log(model, doubled)
    pytest.importorskip("pyarrow.csv").write_csv(doubled, tmp_path / "log.csv")
    with pytest.raises(FileError, match=f"multiple columns named {table.column_names[0]}"):
        read_log(model, tmp_path / "log.csv")


def test_recorded_rewards_are_compared(model, table):
    """What the model declares and a log contradicts is told with its rows."""
    paid = [float(action == "fix") for action in table["action"].to_pylist()]
    goal = 'R{"cost"}minmax=? [ C<=5 ]'
    named = {"selection": "none", "columns": {"reward": "paid"}}
    right = table.append_column("paid", pa.array(paid, pa.float32()))
    plain = rf.learn(read_log(model, table, selection="none"), goal)
    assert rf.learn(read_log(model, right, **named), goal).guarantee == plain.guarantee
    wrong = changed(table.append_column("paid", pa.array(paid)), "paid", [3, 77, 78], 2.5)
    log = read_log(model, wrong, **named)
    declared = paid[3]
    message = rf"3 row\(s\) that pay another .* \(row 3, 77, 78: 2.5 instead of {declared:g}\)"
    with pytest.raises(DataError, match=message):
        rf.learn(log, goal)
    assert rf.learn(log, 'Pmaxmin=? [ G<=5 !"down" ]').history  # nobody asks for rewards
    learned = rf.RewardRange(0.0, 3.0)
    assert rf.learn(log, goal, rewards=learned).history


def test_a_column_of_rewards_is_compared_whether_it_is_named_or_not(model, table):
    """It was ignored unless named: a declared cost of 1 was believed where the data say 2.5."""
    goal, cost = (
        'R{"cost"}minmax=? [ C<=5 ]',
        [float(a == "fix") for a in table["action"].to_pylist()],
    )
    wrong = table.append_column("reward", pa.array([2.5 * x for x in cost]))
    with pytest.raises(DataError, match=r"pay another reward .*: 2.5 instead of 1\)"):
        rf.learn(read_log(model, wrong, selection="none"), goal)
    holes = table.append_column("reward", pa.array([None, *cost[1:]]))
    log = read_log(model, holes, selection="none")
    with pytest.raises(DataError, match=rf"\(row 0: no number instead of {cost[0]:g}\)"):
        rf.learn(log, goal)
    assert rf.learn(log, 'Pmaxmin=? [ G<=5 !"down" ]').history  # nobody asks for rewards
    log = read_log(model, wrong, selection="none", columns={"reward": None})
    run = rf.learn(log, goal)
    assert any("column of rewards, which was not read" in line for line in run.assumptions)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"level": 5}, "level: must be a number above 0 and below 1, found 5"),
        ({"level": 0}, "level: must be .* found 0"),
        ({"level": True}, "level: must be .* found True"),
        ({"level": "0.1"}, "level: must be .* found '0.1'"),
        ({"level": float("nan")}, "level: must be .* found nan"),
    ],
)
def test_words_that_mean_nothing(model, table, words, message):
    """Any level was taken."""
    with pytest.raises(DataError, match=message):
        read_log(model, table, **words)


def test_a_filtered_table_is_noticed(model, table):
    """Rows that were dropped leave gaps in time; merged ones begin where the last did not end."""
    kept = np.flatnonzero(np.arange(table.num_rows) % 12 != 5)
    with pytest.raises(
        DataError, match=r"40 row\(s\) that come more than one step after .* missing"
    ):
        read_log(model, table.take(pa.array(kept)))
    renumbered = table.take(pa.array(kept)).drop_columns(["t"])
    with pytest.raises(DataError, match="do not begin in the next state of the row before"):
        read_log(model, renumbered)


def test_a_successor_that_the_model_excludes(model):
    """What the declared outcomes exclude is never left out: it voids every guarantee."""
    jump = {"m": [0, 0], "b": [False, False], "action": ["run", "run"],
            "next_m": [1, 2], "next_b": [True, False]}  # fmt: skip
    message = r"lead where the model says they cannot \(row 1: \(m=0, b=0\), action run to \(m=2"
    with pytest.raises(DataError, match=message):
        read_log(model, jump)


def test_an_action_that_the_state_does_not_have(model):
    """It is told with its state."""
    idle = {"m": [0], "b": [0], "action": ["fix"], "next_m": [0], "next_b": [0]}
    with pytest.raises(DataError, match=r"does not have \(row 0: 'fix' in \(m=0, b=0\)\)"):
        read_log(model, idle)


def broken_for_ever():
    """Return a machine that runs until it breaks, which is the end."""
    lines = "m:[0..1]; [run] m=0 -> [0,1]:(m'=0) + [0,1]:(m'=1); [run] m=1 -> true;"
    text = f'mdp module a {lines} endmodule rewards "r" true : 1; endrewards'
    return rf.parse_prism(text)


RUNS = {"episode": [0, 0, 1], "t": [0, 1, 0], "m": [0, 0, 0], "next_m": [0, 1, 0],
        "terminated": [False, True, False]}  # fmt: skip


def test_an_end_where_the_structure_goes_on(model, table):
    """Terminated where a row leaves the state: its value would be counted on for ever."""
    over = [t == 11 for t in table["t"].to_pylist()]
    with pytest.raises(DataError, match=r"`terminated` in a state .* left.*\(row 11, 23, .*: \(m="):
        read_log(model, table.append_column("terminated", pa.array(over)))
    with pytest.raises(DataError, match=r"`terminated` in a state .* \(row 2: \(m=0\)\)"):
        read_log(broken_for_ever(), RUNS | {"terminated": [0, 1, 1]})
    cut = table.append_column("truncated", pa.array(over))
    assert read_log(model, cut).steps == table.num_rows
    log = read_log(broken_for_ever(), RUNS, selection="none")
    assert (log.steps, log.last.tolist()) == (3, [1])


def test_an_episode_that_goes_on_after_its_end():
    """The rows after it would be those of another episode."""
    again = RUNS | {"m": [0, 0, 1], "next_m": [0, 1, 1], "episode": [0] * 3, "t": [0, 1, 2]}
    fault = r"come after the end of their episode \(`terminated`\) \(row 2\)"
    with pytest.raises(DataError, match=fault):
        read_log(broken_for_ever(), again)


def test_nothing_is_paid_after_the_end():
    """A structure that pays where episodes are over, for ever, is wrong."""
    log = read_log(broken_for_ever(), RUNS, selection="none")
    with pytest.raises(DataError, match=r"terminated in \(m=1\).*pay 1 for ever"):
        rf.learn(log, 'R{"r"}maxmin=? [ C<=5 ]')
    paid = {"selection": "none", "columns": {"reward": "paid"}}
    log = read_log(broken_for_ever(), RUNS | {"paid": [1.0] * 3}, **paid)
    learned = rf.RewardRange(0.5, 1.0)
    with pytest.raises(rf.ModelError, match=r"over in \(m=1\).*must contain 0, found \[0\.5, 1\]"):
        rf.learn(log, 'R{"r"}maxmin=? [ C<=5 ]', rewards=learned)
    learned = rf.RewardRange(0.0, 1.0)
    assert rf.learn(log, 'R{"r"}maxmin=? [ C<=5 ]', rewards=learned).guarantee < 1.0


@pytest.mark.parametrize("selection", ["unknown", "outcome"])
def test_selected_data_guarantee_nothing(model, table, selection):
    """Only `none` is learned from; coverage is reported all the same."""
    log = read_log(model, table, selection=selection)
    with pytest.raises(DataError, match="their selection is"):
        rf.learn(log, 'Pmaxmin=? [ G<=5 !"down" ]')
    assert log.steps == table.num_rows


def test_names_of_columns(model, table):
    """`columns` says what stands where."""
    renamed = table.rename_columns(
        ["trip", "step", "wear", "flag", "wear_after", "flag_after", "what"]
    )
    columns = {"m": "wear", "b": "flag", "m'": "wear_after", "b'": "flag_after",
               "action": "what", "episode": "trip", "time": "step"}  # fmt: skip
    log = read_log(model, renamed, selection="none", columns=columns)
    assert log.digest == read_log(model, table).digest
    assert log.selection == "none"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"selection": "some"}, "selection: must be one of none, unknown, outcome"),
        ({"selection": ["none"]}, "selection: must be one of none, unknown, outcome"),
        ({"columns": {"z": "m"}}, "columns: 'z' must be one of m, b, m', b', action"),
        ({"columns": {"m": "z"}}, "must have a column for m .'z'., has episode, t, m"),
        ({"columns": {"m": 3}}, "must have a column for m .3., has episode, t, m"),
    ],
)
def test_words_about_data_that_mean_nothing(model, table, words, message):
    """They are told before any row is read."""
    with pytest.raises(DataError, match=message):
        read_log(model, table, **words)


def test_files_that_are_none(model, tmp_path):
    """Missing, damaged and unknown files are one line each."""
    (tmp_path / "log.parquet").write_bytes(b"no parquet")
    (tmp_path / "log.xls").write_bytes(b"")
    (tmp_path / "empty").mkdir()
    for name, message in (
        ("none.csv", "there is no such file"), ("log.parquet", "cannot be read"),
        ("log.xls", "data must end in"), ("empty", "holds none"),
    ):  # fmt: skip
        with pytest.raises(FileError, match=message):
            read_log(model, tmp_path / name)
    with pytest.raises(UnsupportedError, match="found int"):
        read_log(model, 5)
    with pytest.raises(DataError, match="there must be a table"):
        read_log(model)


def test_texts_that_are_no_tables(model, tmp_path):
    """Short lines and odd entries of a text file are told with their rows."""
    head = "m,b,action,next_m,next_b\n0,0,run,1,1\n"
    (tmp_path / "a.csv").write_text(head + "1,0,run,2\n")
    with pytest.raises(FileError, match="Row #3: Expected 5 columns, got 4"):
        read_log(model, tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text(head + "\n1.0,x,run,2,true\n")
    with pytest.raises(DataError) as caught:
        read_log(model, tmp_path / "b.csv")
    assert "have no value in column 'm' (row 1)" in str(caught.value)
    assert "have no value of b in 0..1 in column 'b' (row 2: 'x')" in str(caught.value)


@pytest.mark.parametrize("name", ["log.parquet", "log.arrow", "log.csv", "log.csv.gz"])
def test_damaged_files_end_in_a_log_or_one_line(model, table, tmp_path, name):
    """Cut and flipped files never end in anything else; every cut of a binary file is noticed."""
    path, rng = tmp_path / name, np.random.default_rng(0)
    if name == "log.csv.gz":
        with pa.CompressedOutputStream(str(path), "gzip") as out:
            pa.csv.write_csv(table, out)
    else:
        write_log(machines(), record(machines(), None, 12, 40), path)
    data, lines = path.read_bytes(), []
    for i in range(40):
        changed_bytes = bytearray(data[: rng.integers(len(data))] if i % 2 else data)
        if changed_bytes and i % 2 == 0:
            changed_bytes[rng.integers(len(changed_bytes))] ^= 1 << rng.integers(8)
        path.write_bytes(changed_bytes)
        try:
            read_log(model, path)
        except rf.RfmdpError as error:
            lines.append(str(error))
    assert len(lines) >= 15
    assert all(line.startswith(str(path)) and "\n" not in line for line in lines)


def test_numbers_as_actions_need_names(model):
    """The order of actions in a model is no one's contract."""
    rows = {"m": [0], "b": [0], "action": [0], "next_m": [0], "next_b": [0]}
    with pytest.raises(DataError, match="must be names, found int64; write the names of the model"):
        read_log(model, rows)


def test_a_model_without_variables_has_no_logs():
    """States must be told by something."""
    chain = rf.FactoredMDP.from_rows([[([], [0])]], [])
    with pytest.raises(rf.ModelError, match="must have variables"):
        read_log(chain, {"x": [1]})


def test_an_empty_table_says_nothing(model, table):
    """No rows: no steps, and nothing to learn from."""
    log = read_log(model, table.slice(0, 0), selection="none")
    assert (log.steps, log.trajectories) == (0, 1)
    with pytest.raises(DataError, match=r"a transition to learn from, the tables are empty"):
        rf.learn(log, 'Pmaxmin=? [ F<=6 "down" ]')
    both = read_log(model, table.slice(0, 0), table, selection="none")
    assert rf.learn(both, 'Pmaxmin=? [ F<=6 "down" ]').guarantee > 0.0


@pytest.mark.parametrize("kind", ["string", "category", "float", "int8", "nullable", "large"])
def test_columns_of_every_type(model, table, kind):
    """Texts, categories, floats, narrow and nullable numbers mean what they say."""
    import polars

    frame = table.to_pandas()
    frame["action"] = frame["action"].astype(str)
    names = ["m", "b", "next_m", "next_b"]
    if kind == "large":
        given_ = polars.from_pandas(frame)
    else:
        words = {"string": str, "category": "category", "float": float, "int8": "int8",
                 "nullable": "Int64"}  # fmt: skip
        numbers = frame[names].astype("int64")
        given_ = frame.assign(**{n: numbers[n].astype(words[kind]) for n in names})
    assert read_log(model, given_).digest == read_log(model, table).digest


@pytest.mark.parametrize(
    "column",
    [
        lambda n: pa.nulls(n), lambda n: pa.array([[1]] * n), lambda n: pa.array([b"x"] * n),
        lambda n: pa.array(np.full(n, np.inf)), lambda n: pa.array(np.full(n, 1 << 63, np.uint64)),
        lambda n: pa.array(np.full(n, "NaT", "M8[s]")), lambda n: pa.array(np.full(n, 0.5)),
    ],
)  # fmt: skip
def test_columns_that_are_no_numbers(model, table, column):
    """Nothing, lists, bytes, times, infinities and halves are told, row by row."""
    at = table.schema.get_field_index("m")
    with pytest.raises(DataError, match=r"table 1, 480 row\(s\) that have no value .* 'm' \(row 0"):
        read_log(model, table.set_column(at, "m", column(table.num_rows)))
