"""Path formulas on known probabilities: the values are those of Storm's own LTL checker."""

import runpy
from pathlib import Path

import pytest

from oracles.storm import storm_value
from rfmdp.answers.answer import check
from rfmdp.language.build import parse_prism

ROOT = Path(__file__).parents[2]
SIZES = {
    "retransmission": {"chunks": 4, "tries": 2},
    "consensus": {"processes": 2, "bound": 2},
    "philosophers": {"count": 3},
    "stabilisation": {"processes": 5},
    "address": {"probes": 2, "wait": 2, "others": 1},
    "backoff": {"stations": 2, "slots": 2, "messages": 2},
    "exclusion": {"processes": 3, "draws": 2},
    "crowds": {"members": 3, "runs": 2},
}


@pytest.mark.parametrize("name", SIZES)
def test_shapes_have_storms_values(name):
    """All questions of the benchmark, on small sizes; Storm is precise to 1e-10."""
    pytest.importorskip("stormpy")
    pytest.importorskip("spot")
    benchmark = runpy.run_path(str(ROOT / "benchmarks" / "ltl.py"))
    model = parse_prism(benchmark["SHAPES"][name].text(**SIZES[name]))
    for question in benchmark["QUESTIONS"][name]:
        answer = check(model, question)
        expected = storm_value(model, question.replace("P=?", "Pmax=?"), initial=True)[0]
        assert answer.certified
        assert answer.lower - 1e-9 <= expected <= answer.upper + 1e-9, question
