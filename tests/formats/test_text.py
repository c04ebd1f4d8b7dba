"""The reader of large texts against Python's own."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from rfmdp.errors import FileError
from rfmdp.formats.text import Text

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

    return Text(Path(path), content.encode())


@given(st.lists(spellings, min_size=1, max_size=20))
def test_numbers_are_those_of_python(words):
    """Every decimal number is rounded as Python rounds it."""
    lower, upper = text_of("\n".join(words)).words(comment=b"#").values("number")
    assert lower.tolist() == [float(word) for word in words]
    assert upper.tolist() == lower.tolist()


@given(st.lists(st.tuples(spellings, spellings), min_size=1, max_size=10))
def test_intervals_and_fractions(pairs):
    """Intervals are read as pairs, with and without a blank; fractions exactly."""
    for gap in ("", " "):
        words = text_of("\n".join(f"[{a},{gap}{b}]" for a, b in pairs)).words(comment=b"#")
        lower, upper = words.values("number")
        assert lower.tolist() == [float(a) for a, _ in pairs]
        assert upper.tolist() == [float(b) for _, b in pairs]


@given(st.integers(0, 10**20), st.integers(1, 10**20))
def test_fractions_are_rounded_once(a, b):
    """A fraction is the double nearest to it."""
    assert text_of(f"{a}/{b}").words(comment=b"#").numbers("number")[0] == float(Fraction(a, b))


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
    words = text_of(content).words(comment=b"#")
    plain = [
        (int(words.line[i]), words.word(i))
        for i in range(len(words))
        if not re.search(r'["\[\]]', words.text.line(int(words.line[i])))
    ]
    assert plain == expected


def test_protected_words():
    """Blanks inside quotes, and beside brackets and commas, belong to the word."""
    words = text_of('a [ 1, [2 ,3] ] "b, c" x"y z"\n"open end\nnext').words(comment=b"#")
    listed = [words.word(i) for i in range(len(words))]
    assert listed == ["a", "[1,[2,3]]", '"b, c"', 'x"y z"', '"open', "end", "next"]
    assert words.line.tolist() == [1, 1, 1, 1, 2, 2, 3]


@given(st.lists(st.text(alphabet="abc", min_size=1, max_size=3), max_size=40))
def test_distinct_words_by_first_appearance(given_words):
    """Equal words get equal numbers, in the order in which they appear."""
    ids, names = text_of("\n".join(given_words)).words(comment=b"#").distinct()
    assert names == list(dict.fromkeys(given_words))
    assert [names[i] for i in ids] == given_words


@pytest.mark.parametrize("word", ["1.0", "x", "-", "1_0", "9" * 30, "9" * 5000, "true"])
def test_what_is_no_integer(word):
    """Points, letters, underscores and too many digits are told with the line."""
    with pytest.raises(FileError, match=r"m\.txt:3: The state must be an integer, found "):
        text_of(f"12 -7\n\n{word}").words(comment=b"#").integers("state")


@pytest.mark.parametrize(
    "word",
    ["x", "1e", "1.2.3", "--1", "1_0", "[1,2", "[1]", "[1,2,3]", "1,2]", "[[1,2]", "[1],[2]", "1/0",
     "1/", "0x1"],
)  # fmt: skip
@pytest.mark.parametrize("others", [["0.5"], ["[0,1]"], ["[0,1]", "0.5"]])
def test_what_is_no_number(word, others):
    """Beside numbers and beside intervals, the first word that is neither is told."""
    words = text_of("\n".join([*others, word, word])).words(comment=b"#")
    line = len(others) + 1
    with pytest.raises(FileError, match=rf"m\.txt:{line}: The p must be a number or "):
        words.values("p")


def test_control_characters_are_no_text():
    """Words could not be told from blanks."""
    with pytest.raises(FileError, match="control characters"):
        text_of("0 1\x002").words(comment=b"#")
