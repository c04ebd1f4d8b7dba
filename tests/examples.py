"""How many examples costly tests try, as a share of the number in `conftest.py`."""

from hypothesis import settings

half = settings(max_examples=settings().max_examples // 2)
quarter = settings(max_examples=settings().max_examples // 4)
