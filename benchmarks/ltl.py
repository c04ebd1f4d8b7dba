"""Path formulas beside Storm's own LTL checker, on models of `shapes` with known probabilities.

    python benchmarks/ltl.py [--shapes crowds,consensus] [--large] [--repeat 3] [--json FILE]

Both tools build the model from its text, which is not counted, and answer in one process, in turn.
The least processor seconds of some runs count; automata are made anew in each. Storm runs its sound
environment to a relative precision of 1e-6, and we certify as much. General formulas need Spot, on
both sides: ours runs in a process of its own, whose seconds are shown by themselves, as most of
them are the start of a process. The last lines are the geometric mean and the worst of the ratios;
the aim is 2, and no more than 5.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import sys
import tempfile
import time
from pathlib import Path

import stormpy

import rfmdp

sys.path.insert(0, str(Path(__file__).parent / "shapes"))

from models import SHAPES, crowds

FLOOR = 1e-3  # seconds: below, a ratio is noise
QUESTIONS = {
    "retransmission": ['P=? [ F ("late" & (X "over")) ]', 'P=? [ (F "over") & (G !"lost") ]'],
    "consensus": [
        'Pmax=? [ F ("finished" & (X "heads")) ]',
        'Pmin=? [ (F "finished") & (G !"disagree") ]',
        'Pmin=? [ F (G "heads") ]',
        'Pmax=? [ G (F "disagree") ]',
    ],
    "philosophers": ['Pmin=? [ G (!"hungry" | (F "eats")) ]', 'Pmax=? [ G (F "eats") ]'],
    "stabilisation": ['Pmin=? [ F (G "stable") ]', 'Pmin=? [ F ("stable" & (X "stable")) ]'],
    "address": ['Pmax=? [ F (G "wrong") ]', 'Pmin=? [ (F "uses") & (G !"wrong") ]'],
    "backoff": ['Pmin=? [ (F "over") & (G !"failed") ]', 'Pmax=? [ F (G "failed") ]'],
    "exclusion": ['Pmax=? [ (G (F "first")) & (G (F "other")) ]', 'Pmax=? [ F (G "idle") ]'],
    "crowds": ['P=? [ F ("seen" & (X "over")) ]', 'P=? [ F (G "seen") ]'],
}


def storm_answer(model, question: str) -> float:
    """Return Storm's value in the initial state."""
    environment = stormpy.environments.sound()
    environment.solver().min_max().precision = stormpy.Rational("1/1000000")
    formula = stormpy.parse_property(question)
    result = stormpy.model_checking(
        model, formula, only_initial_states=True, environment=environment
    )
    return float(result.get_value(model.initial_states[0]))


def seconds() -> float:
    """Return the processor seconds of this process and of those that it waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def least(run, repeat: int):
    """Return the answer of a run, its least seconds, and those spent in other processes."""
    best, elsewhere = math.inf, 0.0
    for _ in range(repeat):
        begin, own = seconds(), time.process_time()
        answer = run()
        took = seconds() - begin
        if took < best:
            best, elsewhere = took, took - (time.process_time() - own)
    return answer, best, elsewhere


def compare(name: str, text: str, questions: list[str], repeat: int) -> list[dict]:
    """Return a record per question."""
    model = rfmdp.parse_prism(text)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "model.prism")
        file.write_text(text)
        written = stormpy.build_model(stormpy.parse_prism_program(str(file)))
    records = []
    for question in questions:
        value, theirs, _ = least(lambda q=question: storm_answer(written, q), repeat)
        answer, ours, spot = least(lambda q=question: rfmdp.check(model, q), repeat)
        slack = 2e-6 * abs(value) + 1e-12  # both are precise to 1e-6
        assert answer.lower - slack <= value <= answer.upper + slack, (question, value, answer)
        inside = ours - spot
        records.append({
            "shape": name, "states": model.states, "question": question, "value": value,
            "status": answer.status.name, "seconds": ours, "spot_seconds": spot,
            "storm_seconds": theirs, "ratio": max(ours, FLOOR) / max(theirs, FLOOR),
            "ratio_without_spot": max(inside, FLOOR) / max(theirs, FLOOR),
        })  # fmt: skip
        print(
            f"{name:15} {model.states:8,d} states  {question:48} {value:.6f}  "
            f"{answer.status.name.lower():10} {inside:7.3f} s + Spot {spot:5.3f} s  "
            f"Storm {theirs:7.3f} s  ratio {records[-1]['ratio_without_spot']:.2f} "
            f"(with Spot {records[-1]['ratio']:.2f})",
            flush=True,
        )
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shapes", default=",".join(QUESTIONS))
    parser.add_argument("--large", action="store_true", help="the larger size of every shape")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    compare("warm-up", crowds(2, 2), QUESTIONS["crowds"], 1)
    records = []
    for name in options.shapes.split(","):
        sizes = SHAPES[name].sizes[1 if options.large else 0]
        records += compare(name, SHAPES[name].text(**sizes), QUESTIONS[name], options.repeat)
    for field in ("ratio_without_spot", "ratio"):
        ratios = [record[field] for record in records]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{field:20} geometric mean {mean:.2f}, worst {max(ratios):.2f}")
    if options.json:
        options.json.write_text(json.dumps(records, indent=1))


if __name__ == "__main__":
    main()
