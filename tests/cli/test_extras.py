"""Without extras every command that needs one says which, before any work."""

import sys

import pytest

from rfmdp.cli.main import run

N3, TOP = ["--const", "N=3"], ["--prop", 'Pmaxmin=? [ F<=3 "top" ]']
# two sets in one row, which the programme is for
PRODUCT = """imdp
module a x : [0..1]; [t] x=0 -> [0.2,0.4] : (x'=1) + [0.6,0.8] : true; [t] x=1 -> true; endmodule
module b y : [0..1]; [t] y=0 -> [0.2,0.4] : (y'=1) + [0.6,0.8] : true; [t] y=1 -> true; endmodule
"""
COMMANDS = {
    "mccormick": ("highspy", ["solve", "p.prism", "--prop", "Pmaxmin=? [ F<=3 x=1&y=1 ]",
                              "--inner", "mccormick"]),
    "data": ("pyarrow", ["learn", "m.prism", *N3, *TOP, "--data", "log.csv"]),
    "gym": ("gymnasium", ["learn", "m.prism", *N3, *TOP, "--env", "Taxi-v3"]),
    "cluster": ("distributed", ["solve", "m.prism", *N3, *TOP, "--scheduler", "tcp://localhost:1"]),
}  # fmt: skip


@pytest.mark.parametrize("extra", COMMANDS)
def test_a_command_names_the_extra_that_is_missing(extra, folder, capsys, monkeypatch):
    """One line with the words to install it, exit code 1, and nothing is written."""
    (folder / "p.prism").write_text(PRODUCT)
    (folder / "log.csv").write_text("episode,step,x,action,next_x\n0,0,0,up,1\n")
    files = set(folder.iterdir())
    package, command = COMMANDS[extra]
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    assert run(command) == 1
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert f"pip install 'rfmdp[{extra}]'" in captured.err
    assert set(folder.iterdir()) == files
