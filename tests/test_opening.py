"""Models by name: every format that the command line reads, domains, and what is refused."""

from __future__ import annotations

import pytest

import rfmdp as rf
from rfmdp.errors import FileError, ModelError, PrismError

TEXT = """
mdp
const double p;
module m
  x : [0..2];
  [go] x=0 -> p:(x'=1) + (1-p):(x'=2);
  [] x=1 -> true;
endmodule
label "goal" = x=1;
"""


@pytest.fixture
def made(tmp_path):
    """Return a PRISM file, and the same model in all other formats."""
    (tmp_path / "m.prism").write_text(TEXT)
    with pytest.warns(UserWarning, match="deadlock"):
        model = rf.load_prism(tmp_path / "m.prism", {"p": 0.25})
    rf.save(model, tmp_path / "m.rfmdp")
    rf.write_umb(model, tmp_path / "m.umb")
    rf.write_prism_explicit(model, tmp_path / "m.tra")
    return tmp_path


@pytest.mark.parametrize("read", [rf.open_model, rf.load])
@pytest.mark.parametrize("name", ["m.rfmdp", "m.umb", "m.tra"])
def test_every_format_is_the_same_model(made, name, read):
    """All formats are read; the value is the same in each."""
    bounds = rf.solve(read(made / name), 'Pmax=? [ F "goal" ]').at_initial()
    assert bounds.lower <= 0.25 <= bounds.upper
    assert bounds.width < 1e-6


@pytest.mark.filterwarnings("ignore:.*deadlock")
def test_prism_texts_and_domains(made):
    """Constants reach PRISM files, whatever their ending, and domains."""
    assert rf.open_model(made / "m.prism", {"p": "1/4"}).states == 3
    assert rf.open_model(made / "m.prism", {"p": 0.5, "k": 3}, also_known=["k"]).states == 3
    assert rf.open_model("chain", {"M": 4}).states == 16
    (made / "n.pm").write_text(TEXT.replace("double p;", "double p = 0.5;"))
    assert rf.open_model(made / "n.pm").states == 3


def test_constants_named_like_arguments():
    """A constant with the name of a parameter of `domain` is an unknown constant."""
    with pytest.raises(PrismError, match="name"):
        rf.open_model("aircraft", {"name": "3"})


def test_what_is_refused(made):
    """Unknown names, constants of built models, and files that hold no model."""
    with pytest.raises(FileError, match="no such file, and no such domain"):
        rf.open_model("airplane")
    with pytest.raises(ModelError, match="a built model has no constants; got p"):
        rf.open_model(made / "m.umb", {"p": 1})
    solution = rf.solve(rf.open_model(made / "m.umb"), 'Pmax=? [ F "goal" ]')
    rf.save(solution, made / "s.rfmdp")
    with pytest.raises(FileError, match="must hold a model, holds a solution"):
        rf.open_model(made / "s.rfmdp")
    (made / "u.rfmdp").write_bytes((made / "m.umb").read_bytes())
    with pytest.raises(FileError, match=r"not a file of rfmdp.*`open_model` reads"):
        rf.load(made / "u.rfmdp")
