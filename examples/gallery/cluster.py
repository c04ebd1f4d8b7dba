"""Learning stopped on your laptop. Does a cluster go on, and end with the same result?

Each run is saved after every evaluation. A Dask cluster, here two workers in this process, goes
on with the files, and ends as if nothing had happened.
"""

from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
from distributed import LocalCluster

import rfmdp as rf


def learn(word, trajectories, seed):
    """Return a run that is saved in (`output`), or goes on from (`resume`), the file of a seed."""
    model, spec = rf.domain("aircraft", instance="learning"), rf.domain_spec("aircraft")
    file = {word: f"seed-{seed}.rfmdp"} if word else {}
    stop = rf.StopWhen(trajectories=trajectories)
    return rf.learn(model, spec, stop=stop, length=15, seed=seed, **file)


if __name__ == "__main__":  # workers may import the main script
    for seed in (1, 2):
        Path(f"seed-{seed}.rfmdp").unlink(missing_ok=True)
        learn("output", 300, seed)  # and now the laptop is closed
    with LocalCluster(n_workers=2, processes=False, protocol="tcp://") as cluster:
        work = partial(learn, "resume", 3_000)
        results = rf.run_many(work, (1, 2), scheduler=cluster.scheduler_address)
    runs = [result.require() for result in results]
    for run, seed in zip(runs, (1, 2), strict=True):
        plt.semilogx(run.column("trajectories"), run.column("guarantee"), label=f"seed {seed}")
    plt.axvline(300, color="grey", linestyle=":")
    plt.gca().set(title="On the right: the cluster", xlabel="trajectories", ylabel="guarantee")
    plt.legend()
    plt.savefig("cluster.png")
    same = runs[0].guarantee == learn("", 3_000, 1).guarantee
    print(f"The guarantee {runs[0].guaranteed} is that of an uninterrupted run: {same}.")
