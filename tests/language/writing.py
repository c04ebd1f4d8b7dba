"""Models and property files back to text, for round trips through the parser."""

from rfmdp.language import ast
from rfmdp.language.expressions import write_expression


def write_model(model):
    """Return the text of a model, each kind of definition together."""
    lines = [model.type.value, ""] if model.type is not None else []
    lines += map(_definition, model.definitions)
    lines += [f"global {_variable(variable)}" for variable in model.globals]
    for module in model.modules:
        lines += ["", *_module(module)]
    if model.init is not None:
        lines += ["", f"init {write_expression(model.init)} endinit"]
    for rewards in model.rewards:
        lines += ["", *_rewards(rewards)]
    return "\n".join(lines) + "\n"


def write_properties(file):
    """Return the text of a property file."""
    lines = [*map(_definition, file.definitions)]
    lines += [f"{write_property(prop)};" for prop in file.properties]
    return "\n".join(lines) + "\n"


def write_property(prop):
    """Return the text of one property with its name."""
    text = write_expression(prop.expression)
    return text if prop.name is None else f'"{prop.name}": {text}'


def _definition(definition):
    word = definition.kind if definition.type is None else f"const {definition.type.value}"
    value = "" if definition.value is None else f" = {write_expression(definition.value)}"
    return f"{word} {definition.key}{value};"


def _module(module):
    if isinstance(module, ast.RenamedModule):
        renamings = ", ".join(f"{renaming.old}={renaming.new}" for renaming in module.renamings)
        return [f"module {module.name} = {module.base} [{renamings}] endmodule"]
    lines = [f"module {module.name}"]
    lines += [f"  {_variable(variable)}" for variable in module.variables]
    lines += [f"  {_command(command)}" for command in module.commands]
    return [*lines, "endmodule"]


def _variable(variable):
    domain = "bool"
    if variable.lower is not None and variable.upper is not None:
        domain = f"[{write_expression(variable.lower)} .. {write_expression(variable.upper)}]"
    init = "" if variable.init is None else f" init {write_expression(variable.init)}"
    return f"{variable.name} : {domain}{init};"


def _command(command):
    updates = " + ".join(_update(update) for update in command.updates)
    return f"[{command.action or ''}] {write_expression(command.guard)} -> {updates};"


def _update(update):
    assignments = " & ".join(
        f"({a.variable}'={write_expression(a.value)})" for a in update.assignments
    )
    match update.probability:
        case ast.ProbabilityInterval(lower, upper):
            chance = f"[{write_expression(lower)}, {write_expression(upper)}] : "
        case expr:
            chance = f"{write_expression(expr)} : "
    return chance + (assignments or "true")


def _rewards(rewards):
    name = "" if rewards.name is None else f' "{rewards.name}"'
    lines = [f"rewards{name}"]
    for item in rewards.items:
        action = "" if item.action is None else f"[{item.action}] "
        # a leading '-' would continue the name, a leading label would become it
        guard = f"({write_expression(item.guard)})"
        lines.append(f"  {action}{guard} : {write_expression(item.value)};")
    return [*lines, "endrewards"]
