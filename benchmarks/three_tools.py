"""The table of the README: three small questions, answered by Storm and by rfmdp.

python benchmarks/three_tools.py    # needs stormpy: pip install 'rfmdp[storm]'

- *product*: two coins that fall independently. Storm gets the model as interval tools write it out,
  with multiplied intervals; `IntervalArithmetic` is the same rule here, and the one of PRISM.
- *3/7*: from Storm's own tests (`imdp/tiny-04.drn`), in exact arithmetic. Nature gives the target
  as much as it can, so x = 0.3 x + 0.3, which is 3/7.
- *negative*: Storm's issue 1061, by sound value iteration. Ten steps on average at -10 each.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import rfmdp as rf

PRODUCT = """mdp
module one x : [0..2]; [toss] x=0 -> [0.4,0.6] : (x'=1) + [0.4,0.6] : (x'=2); [end] x>0 -> true; endmodule
module two y : [0..2]; [toss] y=0 -> [0.4,0.6] : (y'=1) + [0.4,0.6] : (y'=2); [end] y>0 -> true; endmodule
label "goal" = x=1 & y=1 | x=2 & y=2;
"""  # noqa: E501
TINY = """mdp
module m
  s : [0..4];
  [] s=0 -> [0.4,0.4] : (s'=1) + [0.3,0.3] : (s'=2) + [0.1,0.6] : (s'=3);
  [] s=1 -> true;
  [] s=1 -> (s'=2);
  [] s=2 -> [0.4,0.9] : (s'=3) + [0.5,0.8] : (s'=4);
  [] s=2 -> (s'=0);
  [] s>2 -> true;
endmodule
label "goal" = s=3;
"""
NEGATIVE = """dtmc
module m
  s : [0..2];
  [] s=0 -> 0.9 : (s'=1) + 0.1 : (s'=2);
  [] s=1 -> 0.9 : (s'=0) + 0.1 : (s'=2);
  [] s=2 -> true;
endmodule
label "goal" = s=2;
rewards "pay" [] true : -10; endrewards
"""


def storm(model: Any, formula: str, **settings: Any) -> Any:
    """Return Storm's value in the first state."""
    import stormpy

    answer = stormpy.model_checking(model, stormpy.parse_property(formula), **settings)
    return answer.get_value(0)


def interval_model(text: str, numbers: Any) -> Any:
    """Return the interval model as Storm reads it, with its intervals multiplied out."""
    import stormpy

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.drn")
        stormpy.io.export_to_drn(rf.to_stormpy(rf.parse_prism(text)), path)
        return stormpy.build_model_from_drn[numbers](str(path))


def chain(text: str) -> Any:
    """Return the model that Storm itself builds from a text in the PRISM language."""
    import stormpy

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.prism")
        path.write_text(text)
        return stormpy.build_model(stormpy.parse_prism_program(str(path)))


def rows() -> list[tuple[str, str, str]]:
    """Return the lines of the table: question, Storm's answer, our answer."""
    import stormpy

    robust = {"uncertainty_resolution_mode": stormpy.UncertaintyResolutionMode.ROBUST}
    product, tiny, negative = map(rf.parse_prism, (PRODUCT, TINY, NEGATIVE))
    question = 'Pmaxmin=? [ F "goal" ]'
    loose = rf.check(product, question, inner=rf.IntervalArithmetic()).lower
    answers = [
        storm(interval_model(PRODUCT, stormpy.Interval), 'Pmax=? [F "goal"]', **robust),
        storm(interval_model(TINY, stormpy.RationalInterval), 'Pmin=? [F "goal"]', **robust),
        storm(chain(NEGATIVE), 'R{"pay"}=? [F "goal"]', environment=stormpy.environments.sound()),
    ]
    exact = [
        rf.check(product, question),
        rf.check(tiny, 'Pminmax=? [ F "goal" ]'),
        rf.check(negative, 'R{"pay"}=? [ F "goal" ]'),
    ]
    assert all(answer.status is rf.Status.CERTIFIED for answer in exact)
    met = all(
        rf.check(tiny, f'Pminmax{sign}3/7 [ F "goal" ]', inner=rf.Exact()).value
        for sign in ("<=", ">=")
    )
    return [
        (
            "two coins, heads with [0.4, 0.6] each: how likely do they agree, at least?",
            f"{answers[0]:.4g} (interval arithmetic; PRISM's rule: {loose:.4g})",
            f"{exact[0].value:.4g}",
        ),
        (
            "Storm's test model `tiny-04`: the least probability that nature allows",
            f'{answers[1]} ("exact")',
            "3/7, proven in fractions" if met else "open",
        ),
        (
            "-10 per step, ten steps on average: the expected sum (Storm's issue 1061)",
            f'{answers[2]:.4g} ("sound")',
            f"{exact[2].value:.4g}",
        ),
    ]


def table() -> str:
    """Return the table in Markdown."""
    lines = [("question", "Storm (stormpy 2.0)", "rfmdp"), ("---", "---", "---"), *rows()]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    print(table(), end="")
