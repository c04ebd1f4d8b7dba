"""Words and numbers of a large text, read from its bytes.

A word is a run of bytes without separators. Blanks inside `[...]` and `"..."` belong to the word,
up to the end of the line. Numbers with at most 53 bits of digits and a small exponent are one
exactly rounded operation; longer ones are only checked and left to a slower, exact reader.
"""

import numpy as np

from rfmdp.kernels.decorator import inline_kernel, kernel, step_kernel

NEWLINE, OPEN, CLOSE, COMMA = 10, 91, 93, 44
PLUS, MINUS, POINT, ZERO, NINE, UPPER_E, LOWER_E = 43, 45, 46, 48, 57, 69, 101
LETTER, BLANK, ENDS, QUOTES, OPENS, CLOSES = 0, 1, 2, 3, 4, 5  # kinds of bytes
EXACT, LONG, OTHER = 0, 1, 2  # how a number was read
INTEGER, BOOLEAN, NEITHER = 0, 1, 2
TRUE = np.frombuffer(b"true", dtype=np.uint8)
FALSE = np.frombuffer(b"false", dtype=np.uint8)
LARGEST = 1 << 53
TEN_TO = 10.0 ** np.arange(23)


@step_kernel
def protected_end(data, at, kind):
    """Return the end of a word that has a quote or bracket at `at`."""
    depth, quoted = 0, False
    while at < data.shape[0] and data[at] != NEWLINE:
        k = kind[data[at]]
        if k == QUOTES:
            quoted = not quoted
        elif not quoted:
            if depth == 0 and k == BLANK:
                break
            if k == OPENS:
                depth += 1
            elif k == CLOSES:
                depth -= 1
        at += 1
    return at


@kernel
def split_words(data, begin, first_line, kind, comment, fill, start, end, line):
    """Return the number of words from `begin` on; with `fill` also write where they are.

    A line whose first word starts with the byte `comment` is skipped (0: no comments).

    kind : (256,) what a byte is, one of LETTER, BLANK, ENDS, QUOTES, OPENS, CLOSES
    """
    size = data.shape[0]
    count, at, number, fresh = 0, begin, first_line, True
    while at < size:
        k = kind[data[at]]
        if k == BLANK:
            at += 1
        elif k == ENDS:
            number += 1
            fresh = True
            at += 1
        elif fresh and data[at] == comment:
            while at < size and data[at] != NEWLINE:
                at += 1
        else:
            fresh = False
            stop = at
            while stop < size and kind[data[stop]] == LETTER:
                stop += 1
            if stop < size and kind[data[stop]] >= QUOTES:
                stop = protected_end(data, stop, kind)
            if fill:
                start[count], end[count], line[count] = at, stop, number
            count += 1
            at = stop
    return count


@step_kernel
def read_number(data, at, end):
    """Return (value, status) of the decimal number data[at : end]."""
    sign = 1.0
    if at < end and (data[at] == MINUS or data[at] == PLUS):
        sign = -1.0 if data[at] == MINUS else 1.0
        at += 1
    digits = 0
    mantissa = np.int64(0)
    exponent = 0
    long = False
    point = False
    while at < end:
        c = data[at]
        if ZERO <= c <= NINE:
            digits += 1
            if mantissa > (LARGEST - 9) // 10:
                long = True
            else:
                mantissa = mantissa * 10 + (c - ZERO)
                exponent -= 1 if point else 0
        elif c == POINT and not point:
            point = True
        else:
            break
        at += 1
    if digits == 0:
        return 0.0, OTHER
    if at < end and (data[at] == LOWER_E or data[at] == UPPER_E):
        power, stop = read_exponent(data, at + 1, end)
        if stop != end:
            return 0.0, OTHER
        exponent += power
        at = end
    if at != end:
        return 0.0, OTHER
    if long or exponent < -22 or exponent > 22:
        return 0.0, LONG
    if exponent < 0:
        return sign * (mantissa / TEN_TO[-exponent]), EXACT
    return sign * (mantissa * TEN_TO[exponent]), EXACT


@inline_kernel
def read_exponent(data, at, end):
    """Return (value, end) of a signed integer; end is -1 if there is none."""
    negative = at < end and data[at] == MINUS
    if at < end and (data[at] == MINUS or data[at] == PLUS):
        at += 1
    if at == end:
        return 0, -1
    value = 0
    while at < end and ZERO <= data[at] <= NINE:
        value = min(value * 10 + (np.int64(data[at]) - ZERO), 9999)
        at += 1
    return (-value if negative else value), at


@kernel
def read_values(data, start, end, lower, upper, status):
    """Read words that are numbers or intervals `[l,u]`; a number is both bounds of itself."""
    for i in range(start.shape[0]):
        a, b = start[i], end[i]
        if data[a] != OPEN:
            lower[i], status[i] = read_number(data, a, b)
            upper[i] = lower[i]
            continue
        comma = a
        while comma < b and data[comma] != COMMA:
            comma += 1
        if comma == b or data[b - 1] != CLOSE:
            status[i] = OTHER
            continue
        second = comma + 1
        while second < b and data[second] == 32:
            second += 1
        lower[i], first_status = read_number(data, a + 1, comma)
        upper[i], status[i] = read_number(data, second, b - 1)
        status[i] = max(status[i], first_status)


@kernel
def read_integers(data, start, end, value, kind):
    """Read integers of at most 18 digits, and `true` and `false` as 1 and 0."""
    for i in range(start.shape[0]):
        a, b = start[i], end[i]
        negative = data[a] == MINUS
        at = a + 1 if negative else a
        total = np.int64(0)
        good = at < b and b - at <= 18
        for k in range(at, b):
            c = data[k]
            if c < ZERO or c > NINE:
                good = False
                break
            if good:
                total = total * 10 + (c - ZERO)
        value[i] = -total if negative else total
        kind[i] = INTEGER if good else NEITHER
        if same_bytes(data, a, b, TRUE):
            value[i], kind[i] = 1, BOOLEAN
        elif same_bytes(data, a, b, FALSE):
            value[i], kind[i] = 0, BOOLEAN


@inline_kernel
def same_bytes(data, begin, end, word):
    """Return whether data[begin : end] is the word."""
    same = end - begin == word.shape[0]
    k = 0
    while same and k < word.shape[0]:
        same = data[begin + k] == word[k]
        k += 1
    return same


@kernel
def copy_words(data, start, end, width, out):
    """Copy word i to out[i * width :], padded with zeros."""
    for i in range(start.shape[0]):
        for k in range(end[i] - start[i]):
            out[i * width + k] = data[start[i] + k]


@kernel
def join_lines(data, start, end, out):
    """Copy words one per line, without brackets around them; returns the length."""
    at = 0
    for i in range(start.shape[0]):
        for k in range(start[i] + 1, end[i] - 1):
            out[at] = data[k]
            at += 1
        out[at] = NEWLINE
        at += 1
    return at
