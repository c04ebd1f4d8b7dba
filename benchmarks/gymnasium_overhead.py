"""What learning costs beside the environment's own steps.

    python benchmarks/gymnasium_overhead.py [--trajectories 20000]

The environment's share is measured by replaying the very episodes that the learner ran, with the
same seeds and actions, in a bare loop. `sample` is what sampling and counting cost on top of it,
`plan` what planning and evaluating cost (about as much for every 10 % more trajectories, so its
share falls), `all` is both. All are processor seconds of one process; learning and replaying take
turns, and every figure is the median of the turns.
"""

import argparse
import statistics
import time

import gymnasium

import rfmdp as rf

CASES = {
    "FrozenLake 4x4": ("FrozenLake-v1", {}, 'Pmaxmin=? [ F<=100 "goal" ]'),
    "FrozenLake 8x8": ("FrozenLake-v1", {"map_name": "8x8"}, 'Pmaxmin=? [ F<=200 "goal" ]'),
    "Taxi, rainy": ("Taxi-v4", {"is_rainy": True}, 'Pmaxmin=? [ F<=60 "terminal" ]'),
}


class Log(gymnasium.Wrapper):
    """Writes down what an environment is asked for."""

    def __init__(self, env):
        super().__init__(env)
        self.calls = []

    def reset(self, **words):
        """Note the words."""
        self.calls.append((words, []))
        return self.env.reset(**words)

    def step(self, action):
        """Note the action."""
        self.calls[-1][1].append(action)
        return self.env.step(action)


class Timed(rf.GymSource):
    """Measures what its samplers take."""

    seconds = 0.0

    def sampler(self, counted, evidence=None):
        """Return a sampler whose time is added up."""
        run_until = super().sampler(counted, evidence)

        def timed(*words):
            began = time.process_time()
            done = run_until(*words)
            self.seconds += time.process_time() - began
            return done

        return timed


def learned(env, goal, trajectories, length):
    source = Timed(env, rf.gym_model(env))
    began = time.process_time()
    run = rf.learn(source, goal, stop=rf.StopWhen(trajectories=trajectories), length=length)
    return time.process_time() - began, source.seconds, run


def replayed(env, calls):
    began = time.process_time()
    for words, actions in calls:
        env.reset(**words)
        for action in actions:
            env.step(action)
    return time.process_time() - began


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trajectories", type=int, default=5000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--only", choices=CASES, help="one environment")
    asked = parser.parse_args()
    heads = ("steps", "env s", "sample", "plan", "all")
    print(f"{'environment':16} " + " ".join(f"{head:>8}" for head in heads), "guarantee")
    for name, (env_name, options, goal) in CASES.items():
        if asked.only not in (None, name):
            continue
        length = int(goal.split("<=")[1].split()[0])
        log = Log(gymnasium.make(env_name, **options))
        learned(log, goal, asked.trajectories, length)  # warm, and the list of calls
        turns = []
        for _ in range(asked.turns):
            bare = replayed(gymnasium.make(env_name, **options), log.calls)
            again = gymnasium.make(env_name, **options)
            spent, sampling, run = learned(again, goal, asked.trajectories, length)
            turns.append((bare, sampling, spent - sampling))
        bare, sampling, planning = (statistics.median(part) for part in zip(*turns, strict=True))
        steps = sum(len(actions) for _, actions in log.calls)
        print(
            f"{name:16} {steps:8d} {bare:8.2f} {sampling / bare - 1.0:8.1%} {planning / bare:8.1%} "
            f"{(sampling + planning) / bare - 1.0:8.1%} {run.guarantee:.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
