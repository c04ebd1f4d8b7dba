"""Static semantics of a model, and the checked form from which state spaces are built.

Expressions of a checked model have values in its states: in many at once by the machine, in a
single one by plain evaluation. The machine only notices that a value does not exist; plain
evaluation of that state then finds the message and the place.

`scope` is a built model as the checks of properties see it. Labels stand for themselves there, so
properties fit models from anywhere (explicit files, Python), not only those that have a text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import starmap

import numpy as np

from rfmdp.kernels import machine
from rfmdp.kernels.decorator import expect
from rfmdp.language import ast as tree
from rfmdp.language.ast import Expr, Label, Literal, Type
from rfmdp.language.evaluate import Value, evaluate, simplify
from rfmdp.language.expressions import fold, node_type, require
from rfmdp.language.names import Constants, meanings, modules_of, refuse_open, substitute, texts_of
from rfmdp.language.program import Expressions, Program
from rfmdp.language.source import Position, PrismSourceError, SourceText
from rfmdp.model.arrays import Variable
from rfmdp.model.lattice import AnyModel
from rfmdp.types import AnyArray, IntArray

BUILT_IN_LABELS = ("init", "deadlock")
CHAINS = (tree.ModelType.DTMC, tree.ModelType.IDTMC)
DTYPE = {Type.BOOL: np.bool_, Type.INT: np.int64, Type.DOUBLE: np.float64}


@dataclass(frozen=True, slots=True)
class CheckedModel:
    """A model ready for building.

    Formulas, labels inside expressions and renamed modules are expanded, constants are values, and
    parts without variables are evaluated. The only names left in expressions are those of
    variables. A command that was copied by renaming keeps its `position`: errors name that place.

    type : never None; an interval anywhere turns DTMC into IDTMC and MDP into IMDP
    variables : globals first, then module by module, in the order of the text (as PRISM does)
    actions : all action names in order of first appearance
    init : the initial value of every variable, or the condition of `init ... endinit`
    constants : the value of every constant of the model
    """

    type: tree.ModelType
    variables: tuple[Variable, ...]
    modules: tuple[tree.Module, ...]
    labels: Mapping[str, Expr]
    rewards: tuple[tree.RewardStructure, ...]
    init: tuple[int, ...] | Expr
    constants: Mapping[str, bool | int | float]
    formulas: Mapping[str, Expr]  # expanded, constants not replaced: for properties
    actions: tuple[str, ...]
    source: SourceText = field(repr=False)
    undefined: tuple[str, ...] = ()  # constants that the model does not need, and have no value

    def variable_types(self) -> dict[str, Type]:
        """Return the type of every variable by name."""
        return {v.name: Type.BOOL if v.boolean else Type.INT for v in self.variables}


def check_model(
    model: tree.ModelFile, constants: Constants | None = None, also_known: Collection[str] = ()
) -> CheckedModel:
    """Return the model resolved, or raise its first mistake.

    constants : values of constants that the model leaves open; a string is read as an expression
    also_known : names that may be in `constants` although only a property file has them
    """
    source = model.source
    if not model.modules:
        raise source.error(Position(1, 1), "a model must have at least one module")
    check_unique([("module", m.name, m.position) for m in model.modules], source)
    texts = {d.key: d for d in model.definitions if d.kind == "formula"}
    formulas = meanings(texts, {}, source)
    modules = modules_of(model, formulas)
    declared = [(variable, "") for variable in model.globals]
    declared += [(variable, module.name) for module in modules for variable in module.variables]
    kinds = {"": "global variable", **{m.name: f"variable of module '{m.name}'" for m in modules}}
    named = [(d.kind, d.key, d.position) for d in model.definitions]
    named += [(kinds[module], variable.name, variable.position) for variable, module in declared]
    check_unique(named, source)
    named = [("reward structure", r.name, r.position) for r in model.rewards if r.name is not None]
    check_unique(named, source)
    texts = texts_of(model, constants, also_known)
    types = {d.name: d.type for d in model.definitions if d.type is not None}
    types |= {v.name: Type.BOOL if v.lower is None else Type.INT for v, _ in declared}
    resolver = Resolver(meanings(texts, types, source), types, source)
    numbers = {d.name: resolver.meanings.get(d.name) for d in model.definitions if d.type}
    values = {name: n.value for name, n in numbers.items() if isinstance(n, Literal)}
    labels = tuple(d for d in model.definitions if d.kind == "label")
    expanded = replace(model, definitions=labels, modules=tuple(modules)).children()
    refuse_open((substitute(e, resolver.meanings) for e in expanded), texts, source)
    ranges = [_variable(variable, model, resolver) for variable, _ in declared]
    owners = {variable.name: module for variable, module in declared}
    checked = tuple(
        replace(m, commands=tuple(_command(c, m.name, owners, resolver) for c in m.commands))
        for m in modules
    )
    actions = tuple(dict.fromkeys(action for module in checked for action in module.alphabet))
    init: tuple[int, ...] | Expr = tuple(value for _, value in ranges)
    if model.init is not None:
        init = resolver.resolve(model.init, Type.BOOL, "the condition of 'init'")
    type_ = model.type or tree.ModelType.MDP
    if any(command.has_intervals for module in modules for command in module.commands):
        type_ = tree.ModelType("i" + type_.value.removeprefix("i"))
    return CheckedModel(
        type=type_,
        variables=tuple(variable for variable, _ in ranges),
        modules=checked,
        labels={
            d.name: resolver.resolve(resolver.meanings[d.key], Type.BOOL, f"label {d.key}")
            for d in labels
        },
        rewards=tuple(_rewards(rewards, actions, resolver) for rewards in model.rewards),
        init=init,
        constants=values,
        formulas=formulas,
        actions=actions,
        source=source,
        undefined=tuple(name for name in numbers if name not in values),
    )


@dataclass(frozen=True, slots=True)
class Resolver:
    """Turns expressions of the text into checked ones: no formulas, constants or labels left."""

    meanings: Mapping[str, Expr]  # of formulas, constants and labels
    types: Mapping[str, Type]
    source: SourceText

    def resolve(self, expr: Expr, type_: Type, what: str) -> Expr:
        """Return the expression resolved and evaluated as far as possible, of a type."""
        expr = substitute(expr, self.meanings)
        require(expr, type_, fold(expr, self._type), what, self.source)
        return simplify(expr)

    def _type(self, node: Expr, below: tuple[Type, ...]) -> Type:
        if isinstance(node, Label):
            reason = f'unknown label "{node.name}"; define it'
            if node.name in BUILT_IN_LABELS:
                reason = f'label "{node.name}" must be used in properties only'
            raise self.source.error(node.position, reason)
        return node_type(node, below, self.types, self.source)


def check_unique(named: Iterable[tuple[str, str, Position]], source: SourceText) -> None:
    """Raise if two definitions (kind, key, place) have one key, at the later one."""
    by_key: dict[str, tuple[str, int]] = {}
    for kind, key, position in sorted(named, key=lambda entry: entry[2]):
        name = key.strip('"')
        if kind == "label" and name in BUILT_IN_LABELS:
            reason = f'label "{name}" is built in and must not be defined'
            raise source.error(position, reason)
        if key in by_key:
            first, line = by_key[key]
            found = f"found a {kind} and a {first} in line {line}"
            raise source.error(position, f"'{name}' must be defined only once, {found}")
        by_key[key] = kind, position.line


def _variable(
    variable: tree.VariableDeclaration, model: tree.ModelFile, resolver: Resolver
) -> tuple[Variable, int]:
    name, source = variable.name, resolver.source

    def value(expr: Expr, type_: Type, what: str) -> int:
        return int(evaluate(resolver.resolve(expr, type_, f"{what} of '{name}'"), {}, source))

    low, high = variable.lower or Literal(0), variable.upper or Literal(1)
    lower, upper = value(low, Type.INT, "a bound"), value(high, Type.INT, "a bound")
    if lower > upper:
        reason = f"the range of '{name}' must not be empty, found [{lower}..{upper}]"
        raise source.error(low.position, reason)
    init = lower
    if variable.init is not None:
        if model.init is not None:
            reason = f"'{name}' must have no initial value, as the model has 'init ... endinit'"
            raise source.error(variable.init.position, reason)
        init = value(variable.init, resolver.types[name], "the initial value")
        if not lower <= init <= upper:
            reason = f"the initial value of '{name}' must be in [{lower}..{upper}], found {init}"
            raise source.error(variable.init.position, reason)
    return Variable(name, lower, upper, variable.lower is None), init


def _command(
    command: tree.Command, module: str, owners: Mapping[str, str], resolver: Resolver
) -> tree.Command:
    """Resolve a command; `owners` of variables are modules, "" of global ones."""
    parts = [(command.guard, Type.BOOL, "a guard")]
    for update in command.updates:
        parts += [(end, Type.DOUBLE, "a probability") for end in update.ends]
        targets: set[str] = set()
        for assignment in update.assignments:
            name, reason = assignment.variable, ""
            if name not in owners:
                reason = "an assigned variable must be declared"
            elif not owners[name] and command.action is not None:
                reason = "a command with an action must not assign a global variable; use []"
            elif owners[name] not in ("", module):
                reason = f"module '{module}' must assign its own variables only"
            elif name in targets:
                reason = "a variable must be assigned only once in an update"
            if reason:
                raise resolver.source.error(assignment.position, f"{reason}, found '{name}'")
            targets.add(name)
            parts.append((assignment.value, resolver.types[name], f"the new value of '{name}'"))
    return command.rebuilt(starmap(resolver.resolve, parts))


def _rewards(
    rewards: tree.RewardStructure, actions: tuple[str, ...], resolver: Resolver
) -> tree.RewardStructure:
    parts = []
    for item in rewards.items:
        if item.action and item.action not in actions:
            reason = f"unknown action '{item.action}'; it must be the action of a command"
            raise resolver.source.error(item.position, reason)
        parts.append((item.guard, Type.BOOL, "the condition of a reward"))
        parts.append((item.value, Type.DOUBLE, "a reward"))
    return rewards.rebuilt(starmap(resolver.resolve, parts))


@dataclass(frozen=True, slots=True)
class Work:
    """What questions ask of a model: backward steps, or plays that go on until they end."""

    steps: int = 0
    ends: tuple[Expr, ...] = ()  # where plays end, of questions without a number of steps


def model_type(model: AnyModel) -> tree.ModelType:
    """Return the PRISM type that a model amounts to; one row per state is a chain."""
    if model.rows == model.states:
        return tree.ModelType.IDTMC if model.uncertain else tree.ModelType.DTMC
    return tree.ModelType.IMDP if model.uncertain else tree.ModelType.MDP


def scope(model: AnyModel | None, source: SourceText) -> CheckedModel:
    """Return the names that properties of a model may use; errors show `source`."""
    if model is None:
        return CheckedModel(tree.ModelType.MDP, (), (), {}, (), (), {}, {}, (), source)
    constants = {k: v for k, v in model.formulas.items() if not isinstance(v, Expr)}
    return CheckedModel(
        model_type(model),
        model.variables,
        (),
        {name: Label(name) for name in model.labels if name not in BUILT_IN_LABELS},
        tuple(tree.RewardStructure(name or None, ()) for name in model.rewards),
        (),
        constants,
        {k: v for k, v in model.formulas.items() if isinstance(v, Expr)},
        model.actions,
        source,
    )


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """One state of a text, and messages that name it: `(x=2, up=true)`."""

    model: CheckedModel
    values: AnyArray  # (vars,)

    def __str__(self) -> str:
        texts = (f"{k}={str(v).lower()}" for k, v in self.names().items())
        return f"({', '.join(texts)})"

    def names(self) -> dict[str, Value]:
        """Return the value of every variable by name."""
        pairs = zip(self.model.variables, self.values, strict=True)
        return {v.name: bool(x) if v.boolean else int(x) for v, x in pairs}

    def value(self, expr: Expr) -> Value:
        """Return an expression in this state, or raise the error that names the state."""
        try:
            return evaluate(expr, self.names(), self.model.source)
        except PrismSourceError as error:
            place = Position(error.line, error.column)
            raise self.error(place, error.reason) from None

    def error(self, position: Position, reason: str) -> PrismSourceError:
        """Return (not raise) an error that names the state."""
        return self.model.source.error(position, f"{reason} in state {self}")


def evaluate_states(
    expr: Expr, model: CheckedModel, valuations: AnyArray, states: IntArray | None = None
) -> AnyArray:
    """Return a checked expression in many states, (N,) of bool, int64 or float64.

    An error names the first state in which it has no value.

    valuations : (S, vars), columns in the order of `model.variables`
    states : (N,) which of them, None for all
    """
    expressions = Expressions(model.variables, model.source)
    number = expressions.add(expr)
    program = Program(expressions)
    type_ = expressions.steps[number].type
    place, cell = (program.condition(number), -1) if type_ is Type.BOOL else program.value(number)
    code, ints, floats = program.code(), program.ints(), program.floats()
    memory = ints, floats, floats.view(np.int64) if type_ is Type.DOUBLE else ints
    used = [step.column for step in expressions.steps if step.column >= 0]
    columns = np.array(used, dtype=np.int64)
    cells = np.array(program.variables, dtype=np.int64)[columns]
    valuations = np.ascontiguousarray(valuations, dtype=np.int32).view()
    valuations.flags.writeable = False  # frozen or not: the same machine code for both
    states = np.array(np.arange(len(valuations)) if states is None else states, dtype=np.int64)
    expect(len(states) * len(code))
    out: AnyArray = np.empty(len(states), dtype=np.int64)
    where = cells, columns, valuations
    done = machine.evaluate((code, place, cell), memory, where, states, out)
    if done < len(states):
        state = State(model, valuations[states[done]])
        state.value(expr)
        raise state.error(expr.position, "the expression must have a value, found none")
    return out.view(np.float64) if type_ is Type.DOUBLE else out.astype(DTYPE[type_], copy=False)
