"""The reader of texts against Python's own reading of words and numbers."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from rfmdp.errors import FileError
from rfmdp.formats.table import Text

finite = st.floats(allow_nan=False, allow_infinity=False)
spellings = st.one_of(
    finite.map(repr),
    finite.map(lambda x: f"{x:.20e}"),
    st.decimals(allow_nan=False, allow_infinity=False, places=8).map(str),
    st.from_regex(r"\A[+-]?[0-9]{1,25}(\.[0-9]{0,25})?([eE][+-]?[0-9]{1,2})?\Z"),
    st.from_regex(r"\A[+-]?\.[0-9]{1,20}\Z"),
)


@pytest.fixture(scope="module")
def text_of(tmp_path_factory):
    """Return what makes a text of some content."""
    path = tmp_path_factory.mktemp("texts") / "m.txt"

    def make(content):
        path.write_bytes(content.encode())
        return Text(path)

    return make


def words_of(text):
    """Return all words with their lines."""
    return [(n, word) for n, line in enumerate(text.lines, 1) for word in text.words(line)]


@given(pair=st.tuples(spellings, spellings))
def test_numbers_and_intervals_are_those_of_python(text_of, pair):
    """Every decimal number is rounded as Python rounds it, also in intervals."""
    low, high = map(float, pair)
    (bounds,) = text_of(f"head\n{pair[0]}\n").columns([("number", "bounds")])
    assert bounds.tolist() == [[low, low]]
    (bounds,) = text_of(f"head\n[{pair[0]},{pair[1]}]\n").columns([("number", "bounds")])
    assert bounds.tolist() == [[low, high]]


@given(a=st.integers(0, 10**20), b=st.integers(1, 10**20))
def test_fractions_are_rounded_once(text_of, a, b):
    """A fraction is the double nearest to it."""
    (bounds,) = text_of(f"head\n{a}/{b}\n").columns([("number", "bounds")])
    assert bounds.tolist() == [[float(Fraction(a, b))] * 2]


@given(content=st.text(alphabet="ab1:.- \t\r\n#", max_size=60))
def test_words_are_those_of_a_pattern(text_of, content):
    """Words and their lines agree with a regular expression; comments are left out."""
    expected = []
    for number, line in enumerate(content.split("\n"), 1):
        if not line.lstrip(" \t\r").startswith("#"):
            expected += [(number, word) for word in re.findall(r"[^ \t\r\n]+", line)]
    assert words_of(text_of(content)) == expected


@pytest.mark.parametrize("word", ["1.0", "x", "-", "1_0", "9" * 30, "9" * 5000, "true"])
def test_what_is_no_integer(text_of, word):
    """Points, letters, underscores and too many digits are told with the line."""
    text = text_of(f"head\n12\n{word}")
    with pytest.raises(FileError, match=r"m\.txt:3: The state must be an integer, found "):
        text.columns([("state", "integer")])


@pytest.mark.parametrize(
    "word",
    ["x", "1e", "1.2.3", "--1", "1_0", "[1,2", "[1]", "[1,2,3]", "1,2]", "[[1,2]", "[1],[2]", "1/0",
     "1/", "0x1"],
)  # fmt: skip
def test_what_is_no_number(text_of, word):
    """What is neither a number nor an interval is told with its line."""
    text = text_of(f"head\n[0,1]\n{word}")
    with pytest.raises(FileError, match=r"m\.txt:3: The p must be a number or "):
        text.columns([("p", "bounds")])
