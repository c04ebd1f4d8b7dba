"""Reading logs: rows per second, and memory, for files of any size.

    python benchmarks/logs.py                        # 5 million rows, all formats, two models
    python benchmarks/logs.py --rows 1e8 --formats parquet --models machines

A log of a simulation (uniform choices) of a million rows is written again and again, with other
numbers of episodes. Reading decodes every column, checks every row and its order, and counts. Times
are those of the second reading: processor seconds of all threads, and by the wall. Memory is the
largest resident size of the process minus that before reading.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

import rfmdp as rf
from rfmdp.sources.log.source import table_of
from rfmdp.sources.trajectories import record

BLOCK = 1_000_000
MACHINES = """mdp
module first
  m1 : [0..2];
  [run] m1<2 -> 0.2 : (m1'=m1+1) + 0.8 : (m1'=m1);
  [run] m1=2 -> true;
  [service1] true -> 0.9 : (m1'=0) + 0.1 : (m1'=m1);
  [service2] true -> true;
endmodule
module second = first [m1=m2, service1=service2, service2=service1] endmodule
"""
MODELS = {
    "machines": lambda: rf.parse_prism(MACHINES),
    "aircraft": lambda: rf.domain("aircraft", instance="learning"),
}


def write(model, rows, path):
    """Write a log of a model with that many rows."""
    steps = 100
    block = table_of(model, record(model, None, steps, min(BLOCK, rows) // steps))
    episodes = block["episode"].to_numpy()
    writer = None
    for number in range(max(1, rows // BLOCK)):
        own = pa.array(episodes + number * (BLOCK // steps))
        table = block.set_column(0, "episode", own)
        if writer is None:
            makers = {
                ".parquet": lambda schema: pa.parquet.ParquetWriter(path, schema),
                ".csv": lambda schema: pa.csv.CSVWriter(path, schema),
                ".arrow": lambda schema: pa.ipc.new_file(str(path), schema),
            }
            writer = makers[path.suffix](table.schema)
        writer.write_table(table)
    writer.close()


def peak():
    """Return the largest resident size so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def measure(model, path):
    """Return rows, seconds by the wall, processor seconds and MB of reading a log."""
    before = peak()
    for _ in range(2):
        wall, busy = time.perf_counter(), time.process_time()
        log = rf.read_log(model, path, selection="none")
        took = time.perf_counter() - wall, time.process_time() - busy
    return log.steps, *took, peak() - before


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=5e6)
    parser.add_argument("--formats", default="parquet,arrow,csv")
    parser.add_argument("--models", default=",".join(MODELS))
    asked = parser.parse_args()
    print("model      format         rows      MB  million rows/s  of one core  memory MB")
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.models.split(","):
            model = MODELS[name]()
            for word in asked.formats.split(","):
                path = Path(folder) / f"{name}.{word}"
                write(model, int(asked.rows), path)
                rows, wall, busy, memory = measure(model, path)
                size = path.stat().st_size / 1e6
                print(f"{name:10} {word:8} {rows:10d} {size:7.0f} {rows / wall / 1e6:15.2f} "
                      f"{rows / busy / 1e6:12.2f} {memory:10.0f}", flush=True)  # fmt: skip
                path.unlink()


if __name__ == "__main__":
    main()
