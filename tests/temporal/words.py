"""Path formulas by their definition, on words that repeat: the slow twin of all automata."""

from hypothesis import strategies as st

ATOMS = 2


def holds(tree, word, loop):
    """Return where a formula holds in word[0], word[1], ..., which goes on at `loop` again.

    One truth value per place; what follows the last place is place `loop`.
    """
    size = len(word)
    after = [*range(1, size), loop]
    match tree:
        case ("true",):
            return [True] * size
        case ("atom", k):
            return [letter[k] for letter in word]
        case ("!", f):
            return [not x for x in holds(f, word, loop)]
        case ("&", f, g):
            return [x and y for x, y in both(f, g, word, loop)]
        case ("|", f, g):
            return [x or y for x, y in both(f, g, word, loop)]
        case ("X", f):
            inner = holds(f, word, loop)
            return [inner[after[n]] for n in range(size)]
        case ("U", f, g, i, j):
            stay, goal = holds(f, word, loop), holds(g, word, loop)
            return [until(stay, goal, n, after, i, j) for n in range(size)]
    raise AssertionError(tree)


def both(f, g, word, loop):
    return zip(holds(f, word, loop), holds(g, word, loop), strict=True)


def until(stay, goal, place, after, i, j):
    """Return whether goal holds at some step of i..j, and stay at all steps before."""
    last = i + 2 * len(after) if j is None else j  # twice around shows all that comes for ever
    for step in range(last + 1):
        if step >= i and goal[place]:
            return True
        if not stay[place]:
            return False
        place = after[place]
    return False


@st.composite
def words(draw):
    """Draw a word and the place where it begins again."""
    letter = st.tuples(*[st.booleans()] * ATOMS)
    word = draw(st.lists(letter, min_size=1, max_size=6))
    return word, draw(st.integers(0, len(word) - 1))


def trees(leaves=7):
    """Return a strategy of formulas."""
    atom = st.integers(0, ATOMS - 1).map(lambda k: ("atom", k))

    def more(below):
        steps = st.tuples(st.integers(0, 2), st.one_of(st.none(), st.integers(0, 2)))
        until = st.tuples(below, below, steps).map(
            lambda x: ("U", x[0], x[1], x[2][0], None if x[2][1] is None else sum(x[2]))
        )
        join = st.tuples(st.sampled_from("&|"), below, below)
        return st.one_of(st.tuples(st.sampled_from("!X"), below), join, until)

    return st.recursive(st.one_of(atom, st.just(("true",))), more, max_leaves=leaves)


@st.composite
def recurrent(draw):
    """Draw G (b | f U g), F (b & f U g) and the like: one operator inside, also negated."""
    atom = st.integers(0, ATOMS - 1).map(lambda k: ("atom", k))
    literal = st.one_of(atom, atom.map(lambda a: ("!", a)), st.just(("true",)))
    state = st.one_of(literal, st.tuples(st.sampled_from("&|"), literal, literal))
    until = ("U", draw(state), draw(state), 0, None)
    outer, inner = draw(st.sampled_from([("", "!"), ("!", "")]))
    body = ("!", until) if inner else until
    for sign in draw(st.lists(st.sampled_from("&|"), max_size=2)):
        body = (sign, draw(state), body)
    eventually = ("U", ("true",), ("!", body) if outer else body, 0, None)
    return ("!", eventually) if outer else eventually


def verdict(automaton, word, loop):
    """Return whether an automaton accepts a word: the largest priority for ever is even."""
    state, place, seen, trail = 0, 0, {}, []
    while (state, place) not in seen:
        seen[state, place] = len(trail)
        state = automaton.step(state, word[place])
        trail.append(automaton.priority(state))
        place = place + 1 if place + 1 < len(word) else loop
    return max(trail[seen[state, place] :]) % 2 == 0
