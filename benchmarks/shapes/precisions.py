"""Are the questions of `models.py` certified at every precision, from 1e-3 to 1e-9? Lists others.

    python benchmarks/shapes/precisions.py [--shapes crowds,consensus] [--radii 0,0.02]

The smallest size of every shape, without and with a radius. Prints every answer that stays open,
and how many there are.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from models import SHAPES
from run import opposed

import rfmdp

PRECISIONS = tuple(10.0**-digits for digits in range(3, 10))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--radii", default="0,0.02")
    options = parser.parse_args()
    answers = still_open = 0
    for name in options.shapes.split(","):
        shape = SHAPES[name]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}.prism"
            path.write_text(shape.text(**shape.sizes[0]))
            nominal = rfmdp.load_prism(path)
        for radius in map(float, options.radii.split(",")):
            model = nominal.with_radius(radius) if radius else nominal
            for question in shape.questions:
                text = opposed(question) if radius else question
                for precision in PRECISIONS:
                    found = rfmdp.check(model, text, limits=rfmdp.Limits(precision=precision))
                    answers += 1
                    if found.status.name != "CERTIFIED":
                        still_open += 1
                        print(
                            f"{name}, radius {radius}, {text} at {precision:.0e}: "
                            f"{found.status.name}, [{found.lower!r}, {found.upper!r}]",
                            flush=True,
                        )
        print(f"{name}: done", flush=True)
    print(f"{answers - still_open} of {answers} answers are certified")


if __name__ == "__main__":
    main()
