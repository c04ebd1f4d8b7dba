"""No method reports a guarantee whose assumptions it does not state."""

import pytest

from rfmdp import load_prism
from rfmdp.learning.confidence import DRAWS, FIXED_SIZE, SUPPORT, Validity
from rfmdp.learning.identifiers import Granularity
from rfmdp.learning.learn import learn
from rfmdp.learning.methods import METHODS, StopWhen
from rfmdp.learning.setup import ASSUMPTION
from rfmdp.objective import Reach, Spec
from rfmdp.record import Assumption

from .tiny import AtTrajectories

TEXT = """mdp
module left
  x : [0..2];
  [a] x<2 -> 0.6 : (x'=x+1) + 0.4 : (x'=x);
  [b] x<2 -> 0.3 : (x'=2) + 0.3 : (x'=0) + 0.4 : (x'=1);
  [stay] x=2 -> true;
endmodule
module right
  y : [0..1];
  [a] true -> 0.6 : (y'=1) + 0.4 : (y'=0);
  [b] true -> 0.9 : (y'=y) + 0.1 : (y'=1-y);
  [stay] true -> true;
endmodule
label "goal" = x=2 & y=1;
"""
REACH = Spec(Reach("goal"))


@pytest.fixture
def model(tmp_path):
    """Two modules of two variables, one of them with a wall."""
    (tmp_path / "m.prism").write_text(TEXT)
    return load_prism(tmp_path / "m.prism")


def expected(method):
    """Return every sentence that the parts of a method need."""
    lines = {
        DRAWS,
        SUPPORT,
        ASSUMPTION,
        Assumption("shared"),
        Assumption("product"),
        Assumption("structure"),
        Assumption("rewards"),
    }
    if method.confidence.validity is Validity.SINGLE_LOOK:
        lines.add(FIXED_SIZE)
    if method.granularity is Granularity.TIED:
        lines.add(Assumption("tied"))
    return lines


@pytest.mark.parametrize("name", METHODS)
def test_every_method_states_its_assumptions(model, name):
    """The statement names validity, probability and every assumption."""
    method = METHODS[name]
    points = AtTrajectories((250, 500))
    run = learn(model, REACH, method, stop=StopWhen(500), length=6, beta=1e-3, points=points)
    text = run.statement()
    assert text.startswith(f"Learned: {run.question} of a model with ")
    assert expected(method) <= set(run.assumptions)
    assert all(line in text for line in run.assumptions)
    assert f"({run.validity})" in text
    assert "at least 0.999" in text
    assert (FIXED_SIZE in text) == ("single look" in run.validity)
    assert run.ledger.spent_on_model() <= run.ledger.shares.model <= run.beta <= 1e-3


def test_named_assumptions_of_options_are_stated(model):
    """A floor and declared ties are assumptions too."""
    run = learn(model, REACH, p_min=0.01, ties=[(0, 1)], stop=StopWhen(200), length=6)
    text = run.statement()
    assert text.startswith(f"Learned: {run.question} of a model with ")
    assert "every declared outcome of a marginal has probability at least p_min = 0.01" in text
    assert "tied marginals are the same distribution, as declared" in text


def test_ties_save_samples(model):
    """Tied identifiers pool their counts: the guarantee of the same trajectories is better."""
    runs = [
        learn(model, REACH, METHODS[name], stop=StopWhen(2000), length=6, seed=4)
        for name in ("anytime", "tied")
    ]
    assert len(runs[1].model.marginals) < len(runs[0].model.marginals)
    assert runs[0].guarantee < runs[1].guarantee <= runs[1].history[-1].performance
