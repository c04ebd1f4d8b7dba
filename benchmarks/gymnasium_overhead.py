"""What learning costs beside the environment's own steps.

    python benchmarks/gymnasium_overhead.py [--trajectories 20000]

The environment's share is measured by replaying the very episodes that the learner ran, with the
same seeds and actions, in a bare loop. `sample` is what sampling and counting cost on top of it,
`plan` what planning and evaluating cost (about as much for every 10 % more trajectories, so its
share falls). All are processor seconds of one process.
"""

import argparse
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

    def sampler(self, counted, stop=None):
        """Return a sampler whose time is added up."""
        walker = super().sampler(counted, stop)
        plain = walker.run_until

        def run_until(*words):
            began = time.process_time()
            done = plain(*words)
            self.seconds += time.process_time() - began
            return done

        walker.run_until = run_until
        return walker


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
    parser.add_argument("--only", choices=CASES, help="one environment")
    asked = parser.parse_args()
    print(f"{'environment':16} {'steps':>9} {'env s':>7} {'sample':>7} {'plan':>7} guarantee")
    for name, (env_name, options, goal) in CASES.items():
        if asked.only not in (None, name):
            continue
        length = int(goal.split("<=")[1].split()[0])
        log = Log(gymnasium.make(env_name, **options))
        learned(log, goal, asked.trajectories, length)  # warm, and the list of calls
        spent, sampling, run = learned(
            gymnasium.make(env_name, **options), goal, asked.trajectories, length
        )
        bare = replayed(gymnasium.make(env_name, **options), log.calls)
        steps = sum(len(actions) for _, actions in log.calls)
        print(
            f"{name:16} {steps:9d} {bare:7.2f} {sampling / bare - 1.0:7.1%} "
            f"{(spent - sampling) / bare:7.1%} {run.guarantee:.4f}"
        )


if __name__ == "__main__":
    main()
