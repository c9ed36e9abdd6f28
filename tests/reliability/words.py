"""Counts and lists as people write them."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping

PAIRS = {"{": "}", "[": "]"}


def in_words(text: str) -> str:
    """`closed with {1012: 3}` is `closed with 3 × 1012`. What is no value of Python stays."""
    return "".join(_parts(text))


def _parts(text: str) -> Iterator[str]:
    place = 0
    for start in (found.start() for found in re.finditer(r"[{[]", text)):
        end = _end(text, start)
        if start < place or end is None:
            continue
        try:
            value = ast.literal_eval(text[start:end])
        except (SyntaxError, ValueError):
            continue
        yield text[place:start] + words_of(value)
        place = end
    yield text[place:]


def _end(text: str, start: int) -> int | None:
    """Behind the bracket that closes this one."""
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == text[start]) - (text[place] == PAIRS[text[start]])
        if not depth:
            return place + 1
    return None


def words_of(value: object, between: str = ", ") -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if value >= 10_000 else str(value)
    if isinstance(value, Mapping):
        return between.join(_item(*item) for item in value.items()) or "none"
    if isinstance(value, Collection) and not isinstance(value, str):
        return between.join(words_of(each, " and ") for each in value if each != "") or "none"
    return str(value)


def _item(key: object, value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and str(key).isdigit():
        return f"{words_of(value)} × {key}"
    # 60.0 is 60.
    name = f"{key:g}" if isinstance(key, float) else words_of(key, " ")
    return f"{name}: {words_of(value, ' and ')}"
