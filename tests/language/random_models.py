"""Random small models as texts: every construct that the builder knows, always well formed."""

from hypothesis import strategies as st

NAMES = ["a", "b"]


@st.composite
def model_texts(draw, kinds=("mdp", "dtmc", "imdp")):
    """Draw a model with one to three modules; updates are clamped by `mod`."""
    kind = draw(st.sampled_from(kinds))
    count = draw(st.integers(1, 3))
    ints = {f"x{i}": draw(st.integers(1, 2)) for i in range(count)}
    bools = {f"b{i}" for i in range(count) if draw(st.booleans())}
    use_global = draw(st.booleans())
    if use_global:
        ints["g"] = 1
    lines = [kind, "const int K = 2;", "formula total = " + "+".join(ints) + ";"]
    if use_global:
        lines.append("global g : [0..1];")
    for i in range(count):
        own = {f"x{i}": ints[f"x{i}"]}
        lines.append(f"module m{i}")
        lines.append(f"  x{i} : [0..{own[f'x{i}']}];")
        flags = [f"b{i}"] if f"b{i}" in bools else []
        lines += [
            f"  {flag} : bool init {draw(st.sampled_from(['true', 'false']))};" for flag in flags
        ]
        for _ in range(draw(st.integers(1, 3))):
            lines.append("  " + _command(draw, kind, own, flags, ints, bools, use_global))
        if i == 0:
            lines.append("  [a] x0=0 -> true;")
        lines.append("endmodule")
    lines.append('label "top" = total >= K;')
    lines.append(
        f"rewards {_bool(draw, ints, bools)} : total; [a] true : x0+1; [] x0=0 : 0.5; endrewards"
    )
    return "\n".join(lines)


def _command(draw, kind, own, flags, ints, bools, use_global):
    action = draw(st.sampled_from([*NAMES, ""]))
    guard = _bool(draw, ints, bools)
    targets = dict(own)
    if use_global and not action:
        targets["g"] = 1
    updates = []
    for chance in _chances(draw, kind, ints):
        parts = []
        for name, high in targets.items():
            if draw(st.booleans()):
                parts.append(f"({name}'=mod({_int(draw, ints)}, {high + 1}))")
        parts += [f"({flag}'={_bool(draw, ints, bools)})" for flag in flags if draw(st.booleans())]
        updates.append(f"{chance} : {' & '.join(parts) or 'true'}")
    return f"[{action}] {guard} -> {' + '.join(updates)};"


def _chances(draw, kind, ints):
    name = draw(st.sampled_from(sorted(ints)))
    choices = [["1"], ["0.25", "0.75"], ["0.5", "0.3", "0.2"], [f"{name}/2", f"1-{name}/2"]]
    if kind == "imdp":
        choices += [["[0.2,0.6]", "[0.3,0.9]"], [f"[0.1,0.5+{name}/10]", "0.2", "[0.4,0.8]"]]
    return draw(st.sampled_from(choices))


def _int(draw, ints, depth=0):
    leaf = st.sampled_from([*sorted(ints), "0", "1", "K", "total"])
    if depth > 1 or draw(st.booleans()):
        return draw(leaf)
    left, right = _int(draw, ints, depth + 1), _int(draw, ints, depth + 1)
    forms = [
        f"({left}+{right})",
        f"({left}-{right})",
        f"{left}*{right}",
        f"min({left},{right})",
        f"max({left},{right},1)",
        f"floor({left}/2)",
        f"ceil(({left}+{right})/3)",
        f"({left}>{right}?{left}:{right})",
        f"pow({left},2)",
        f"({right}>0?mod({left},{right}):0)",
    ]
    return draw(st.sampled_from(forms))


def _bool(draw, ints, bools, depth=0):
    sign = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
    leaf = f"{_int(draw, ints, 1)}{sign}{_int(draw, ints, 1)}"
    if bools and draw(st.integers(0, 3)) == 0:
        leaf = draw(st.sampled_from(sorted(bools)))
    if depth > 1 or draw(st.booleans()):
        return draw(st.sampled_from([leaf, leaf, "true"]))
    left, right = _bool(draw, ints, bools, depth + 1), _bool(draw, ints, bools, depth + 1)
    forms = [f"({left} & {right})", f"({left} | {right})", f"({left} => {right})", f"!({left})"]
    return draw(st.sampled_from([*forms, f"(({left}) <=> ({right}))"]))
