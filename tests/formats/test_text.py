"""The reader of large texts against Python's own."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rfmdp.formats.text import Text
from rfmdp.kernels import text as kernels

finite = st.floats(allow_nan=False, allow_infinity=False)
spellings = st.one_of(
    finite.map(repr),
    finite.map(lambda x: f"{x:.20e}"),
    st.decimals(allow_nan=False, allow_infinity=False, places=8).map(str),
    st.from_regex(r"\A[+-]?[0-9]{1,25}(\.[0-9]{0,25})?([eE][+-]?[0-9]{1,2})?\Z"),
    st.from_regex(r"\A[+-]?\.[0-9]{1,20}\Z"),
)


def text_of(content, path="m.txt"):
    """Return a text as if it had been read from a file."""
    from pathlib import Path

    return Text(Path(path), np.frombuffer(content.encode(), dtype=np.uint8))


@given(st.lists(spellings, min_size=1, max_size=20))
def test_numbers_are_those_of_python(words):
    """Every decimal number is rounded as Python rounds it."""
    lower, upper = text_of("\n".join(words)).words().values("number")
    assert lower.tolist() == [float(word) for word in words]
    assert upper.tolist() == lower.tolist()


@given(st.lists(st.tuples(spellings, spellings), min_size=1, max_size=10))
def test_intervals_and_fractions(pairs):
    """Intervals are read as pairs, with and without a blank; fractions exactly."""
    for gap in ("", " "):
        words = text_of("\n".join(f"[{a},{gap}{b}]" for a, b in pairs)).words()
        lower, upper = words.values("number")
        assert lower.tolist() == [float(a) for a, _ in pairs]
        assert upper.tolist() == [float(b) for _, b in pairs]


@given(st.integers(0, 10**20), st.integers(1, 10**20))
def test_fractions_are_rounded_once(a, b):
    """A fraction is the double nearest to it."""
    assert text_of(f"{a}/{b}").words().numbers("number")[0] == float(Fraction(a, b))


@given(st.text(alphabet='ab1:.-"[], \t\r\n#', max_size=60))
def test_words_are_those_of_a_pattern(content):
    """Words, their lines and the protection of blanks agree with a regular expression."""
    word = re.compile(r"[^ \t\r\n]+")
    expected = []
    for number, line in enumerate(content.split("\n"), 1):
        if line.lstrip(" \t\r").startswith("#"):
            continue
        if '"' in line or "[" in line or "]" in line:
            continue
        expected += [(number, found) for found in word.findall(line)]
    words = text_of(content).words(comment="#")
    plain = [
        (int(words.line[i]), words.word(i))
        for i in range(len(words))
        if not re.search(r'["\[\]]', words.text.line(int(words.line[i])))
    ]
    assert plain == expected


def test_protected_words():
    """Blanks inside brackets and quotes belong to the word, up to the end of the line."""
    words = text_of('a [1, [2 3]] "b c" x"y z"\n[open end\nnext').words()
    found = [words.word(i) for i in range(len(words))]
    assert found == ["a", "[1, [2 3]]", '"b c"', 'x"y z"', "[open end", "next"]
    assert words.line.tolist() == [1, 1, 1, 1, 2, 3]


@given(st.lists(st.text(alphabet="abc", min_size=1, max_size=3), max_size=40))
def test_distinct_words_by_first_appearance(given_words):
    """Equal words get equal numbers, in the order in which they appear."""
    ids, names = text_of("\n".join(given_words)).words().distinct()
    assert names == list(dict.fromkeys(given_words))
    assert [names[i] for i in ids] == given_words


@pytest.mark.parametrize(
    "word", ["1", "-12.5e3", "1e400", "x", "", "1.2.3", "1e+", "--1", "9" * 30]
)
def test_compiled_and_plain_kernels_agree(word):
    """A number is read alike by the compiled kernel and its Python function."""
    data = np.frombuffer(word.encode() + b"\n", dtype=np.uint8)
    ends = np.array([0]), np.array([len(word)])
    found = [(np.zeros(1), np.zeros(1), np.zeros(1, np.int8)) for _ in range(2)]
    kernels.read_values(data, *ends, *found[0])
    kernels.read_values.py_func(data, *ends, *found[1])
    assert found[0] == found[1]


def test_integers_have_bounds():
    """Too many digits, points and letters are no integers; true and false are booleans."""
    words = text_of("12 -7 1.0 x - 1234567890123456789 true false truer").words()
    value, kind = words.integers_and_kinds()
    assert kind.tolist() == [0, 0, 2, 2, 2, 2, 1, 1, 2]
    assert value[[0, 1, 6, 7]].tolist() == [12, -7, 1, 0]
