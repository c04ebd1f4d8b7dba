"""A slow, obvious twin of the builder, and one form in which both can be compared."""

from collections import Counter, deque
from itertools import product

from rfmdp.language.ast import ModelType, ProbabilityInterval
from rfmdp.language.evaluate import evaluate

CHAINS = (ModelType.DTMC, ModelType.IDTMC)


class Twin:
    """A checked model explored state by state, with dictionaries."""

    def __init__(self, checked):
        self.checked = checked
        self.names = [v.name for v in checked.variables]
        self.bools = [v.boolean for v in checked.variables]

    def value(self, expr, state):
        env = {
            name: bool(x) if is_bool else x
            for name, is_bool, x in zip(self.names, self.bools, state, strict=True)
        }
        return evaluate(expr, env, self.checked.source)

    def initial(self):
        if isinstance(self.checked.init, tuple):
            return [self.checked.init]
        ranges = [range(v.low, v.high + 1) for v in self.checked.variables]
        return [s for s in product(*ranges) if self.value(self.checked.init, s)]

    def branches(self, command, state):
        """All (lower, upper, changes) of a command that can happen."""
        found = []
        for update in command.updates:
            chance = update.probability
            if isinstance(chance, ProbabilityInterval):
                low, high = self.value(chance.lower, state), self.value(chance.upper, state)
            else:
                low = high = self.value(chance, state)
            if high > 0:
                changes = {a.variable: int(self.value(a.value, state)) for a in update.assignments}
                found.append((low, high, changes))
        return tightened(found)

    def choices(self, state):
        """All (action, branches) of a state; a branch is (lower, upper, successor)."""
        found = []
        enabled = [
            [c for c in m.commands if self.value(c.guard, state)] for m in self.checked.modules
        ]
        for commands in enabled:
            found += [("", (c,)) for c in commands if c.action is None]
        for action in self.checked.actions:
            lists = [
                [c for c in commands if c.action == action]
                for module, commands in zip(self.checked.modules, enabled, strict=True)
                if action in module.alphabet
            ]
            found += [(action, combination) for combination in product(*lists)]
        return [(action, self.joint(commands, state)) for action, commands in found]

    def joint(self, commands, state):
        rows = []
        for parts in product(*(self.branches(c, state) for c in commands)):
            low = high = 1.0
            values = dict(zip(self.names, state, strict=True))
            for part_low, part_high, changes in parts:
                low, high = low * part_low, high * part_high
                values |= changes
            rows.append((low, high, tuple(values[name] for name in self.names)))
        return rows

    def explore(self):
        """Return state -> list of (action, branches)."""
        todo, found = deque(self.initial()), {}
        while todo:
            state = todo.popleft()
            if state in found:
                continue
            choices = self.choices(state)
            if not choices:
                choices = [("", [(1.0, 1.0, state)])]
            if self.checked.type in CHAINS and len(choices) > 1:
                share = 1 / len(choices)
                actions = {action for action, _ in choices}
                mixed = [
                    (low * share, high * share, successor)
                    for _, branches in choices
                    for low, high, successor in branches
                ]
                choices = [(actions.pop() if len(actions) == 1 else "", mixed)]
            found[state] = choices
            todo.extend(successor for _, branches in choices for _, _, successor in branches)
        return found

    def canonical(self):
        return {
            state: Counter((action, _sorted(branches)) for action, branches in choices)
            for state, choices in self.explore().items()
        }


def tightened(branches):
    """Make bounds attainable: what the others leave at least, and at most."""
    least, most = sum(low for low, _, _ in branches), sum(high for _, high, _ in branches)
    return [
        (max(low, 1 - (most - high)), min(high, 1 - (least - low)), changes)
        for low, high, changes in branches
    ]


def _sorted(branches):
    return tuple(sorted((s, round(low, 10), round(high, 10)) for low, high, s in branches))


def canonical(model):
    """Return a built model as state -> multiset of (action, sorted branches)."""
    states = [tuple(map(int, row)) for row in model.valuations]
    found = {}
    for number, state in enumerate(states):
        rows = Counter()
        for r in range(model.row_ptr[number], model.row_ptr[number + 1]):
            rows[model.actions[model.row_actions[r]], _sorted(branches_of(model, r, states))] += 1
        found[state] = rows
    return found


def branches_of(model, row, states):
    """Return all (lower, upper, successor) of a row."""
    low, high = [1.0], [1.0]
    sets = model.marginals
    for j in model.row_marginals[model.marginal_ptr[row] : model.marginal_ptr[row + 1]]:
        part = slice(sets.outcome_ptr[j], sets.outcome_ptr[j + 1])
        low = [a * b for a in low for b in sets.lower[part]]
        high = [a * b for a in high for b in sets.upper[part]]
    successors = model.successors[model.successor_ptr[row] : model.successor_ptr[row + 1]]
    return [(a, b, states[s]) for a, b, s in zip(low, high, successors, strict=True)]


def merged(branches):
    """Add up the branches that meet in one state."""
    total = {}
    for low, _, successor in branches:
        total[successor] = total.get(successor, 0.0) + low
    return tuple(sorted((s, round(p, 9)) for s, p in total.items()))
