"""Numbers for people, as the pages of all campaigns have them."""

from __future__ import annotations


def shown(value: float | None, digits: int = 6) -> str:
    """Return a value for people; what nobody proved is a dash.

    >>> shown(331.34029033567003), shown(None)
    ('331.340290', '–')
    """
    return "–" if value is None else f"{value:.{digits}f}"


def seconds(value: float) -> str:
    """Return seconds with two or three digits.

    >>> seconds(0.0123), seconds(2535.8)
    ('0.012', '2536')
    """
    if value < 0.1:
        return f"{value:.3f}"
    if value < 10.0:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 100.0 else f"{value:.0f}"
