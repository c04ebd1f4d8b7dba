import pytest

MODEL = """mdp
const int N;
module m
  x : [0..N];
  [up] x<N -> 0.5 : (x'=x+1) + 0.5 : (x'=0);
  [jump] x=0 -> 0.25 : (x'=N) + 0.75 : (x'=1);
  [stay] x=N -> true;
endmodule
label "top" = x=N;
rewards "moves" [up] true : 1; [jump] true : 2; endrewards
"""

PROPS = """const int k;
"reach": Pmax=? [ F<=k "top" ];
"cost": R{"moves"}min=? [ F "top" ];
"sure": P>=1 [ F "top" ];
"""


def results(text):
    """Return what stands behind `Result:` in an output."""
    return [line.removeprefix("Result: ") for line in text.splitlines() if "Result: " in line]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a folder with models and properties the working directory."""
    (tmp_path / "m.prism").write_text(MODEL)
    (tmp_path / "m.props").write_text(PROPS)
    (tmp_path / "bad.prism").write_text(
        "mdp\nmodule m\n  x : [0..1];\n  [] x=0 - (x'=1);\nendmodule"
    )
    (tmp_path / "dead.prism").write_text("mdp module m x:[0..1]; [] x=0 -> (x'=1); endmodule")
    (tmp_path / "interval.prism").write_text(
        "imdp module m x:[0..2]; [a] x=0 -> [0.2,0.4]:(x'=1) + [0.6,0.8]:(x'=2); "
        '[b] x>0 -> true; endmodule label "goal" = x=1;'
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path
