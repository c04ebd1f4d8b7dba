"""Averages in the long run beside Storm, on models with known probabilities.

    python benchmarks/averages.py [--large] [--repeat 3]

Both tools build the model from its text, which is not counted, and answer in turn. The least
processor seconds of some runs count. Storm runs its sound environment; its values must lie within
our certified bounds, widened by its precision of 1e-6.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import stormpy
import stormpy.examples.files as files

import rfmdp as rf

QUEUE = """mdp
module queue
  x : [0..{n}];
  [slow] true -> 0.3 : (x'=min(x+1,{n})) + 0.35 : (x'=max(x-1,0)) + 0.35 : true;
  [fast] true -> 0.3 : (x'=min(x+1,{n})) + 0.6 : (x'=max(x-1,0)) + 0.1 : true;
endmodule
rewards "cost" true : x; [fast] true : 5; endrewards
"""
TANDEM = """mdp
module first x : [0..{n}]; [] true -> 0.4:(x'=min(x+1,{n})) + 0.6:(x'=max(x-1,0)); endmodule
module second y : [0..{n}]; [] true -> 0.5:(y'=min(y+1,{n})) + 0.5:(y'=max(y-1,0)); endmodule
rewards "cost" true : x+y; endrewards
"""
GRID = """mdp
module robot
  x : [0..{n}]; y : [0..{n}];
  [e] true -> 0.7:(x'=min(x+1,{n})) + 0.3:true;
  [w] true -> 0.7:(x'=max(x-1,0)) + 0.3:(y'=max(y-1,0));
  [n] true -> 0.7:(y'=min(y+1,{n})) + 0.3:(x'=max(x-1,0));
  [s] true -> 0.7:(y'=max(y-1,0)) + 0.3:true;
endmodule
rewards "paid" x={n} & y={n} : 10; x=0 & y=0 : 3; [e] true : 1; endrewards
"""
DIE, DICE = (Path(path).read_text() for path in (files.prism_dtmc_die, files.prism_mdp_coin_2_2))
CASES = {  # text, question
    "die": (DIE, 'LRA=? [ "one" ]'),
    "shared coin": (DICE, 'LRAmax=? [ "all_coins_equal_1" ]'),
    "queue 300": (QUEUE.format(n=300), 'R{"cost"}min=? [ LRA ]'),
    "queue 3000": (QUEUE.format(n=3000), 'R{"cost"}min=? [ LRA ]'),
    "tandem 20": (TANDEM.format(n=20), 'R{"cost"}min=? [ LRA ]'),
    "tandem 60": (TANDEM.format(n=60), 'R{"cost"}min=? [ LRA ]'),
    "grid 30": (GRID.format(n=30), 'R{"paid"}max=? [ LRA ]'),
}
LARGE = {"grid 120": (GRID.format(n=120), 'R{"paid"}max=? [ LRA ]')}


def storm_model(text: str, question: str):
    """Return Storm's model and formula."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.prism")
        path.write_text(text)
        program = stormpy.parse_prism_program(str(path))
    formula = stormpy.parse_properties(question, program)[0]
    return stormpy.build_model(program, [formula]), formula


def seconds(repeat: int, answer) -> tuple[float, object]:
    """Return the least processor seconds of some calls, and the last result."""
    least, result = float("inf"), None
    for _ in range(repeat):
        begin = time.process_time()
        result = answer()
        least = min(least, time.process_time() - begin)
    return least, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--large", action="store_true", help="add a grid of 14,641 states")
    parser.add_argument("--repeat", type=int, default=3)
    words = parser.parse_args()
    environment = stormpy.environments.sound()
    print(f"{'model':12} {'states':>7} {'ours, ms':>9} {'Storm, ms':>9} {'ratio':>6}  bounds")
    for name, (text, question) in (CASES | (LARGE if words.large else {})).items():
        model = rf.parse_prism(text)
        ours, answer = seconds(words.repeat, lambda m=model, q=question: rf.check(m, q))
        storm, formula = storm_model(text, question)
        theirs, result = seconds(
            words.repeat,
            lambda m=storm, f=formula: stormpy.model_checking(m, f, environment=environment),
        )
        value = float(result.get_value(storm.initial_states[0]))
        slack = 1e-6 * max(abs(value), 1e-3)
        assert answer.lower - slack <= value <= answer.upper + slack, (name, value, answer)
        print(
            f"{name:12} {model.states:7,} {1e3 * ours:9.1f} {1e3 * theirs:9.1f} "
            f"{ours / theirs:6.2f}  [{answer.lower:.9g}, {answer.upper:.9g}] {answer.status.name}",
            flush=True,
        )


if __name__ == "__main__":
    main()
