"""Counts and lists as people write them."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping

PAIRS = {"{": "}", "[": "]"}
# As names of tests cannot write them.
PROPER = {
    **{"ai": "AI", "api": "API", "ctrl c": "Ctrl+C", "http": "HTTP", "json": "JSON", "sighup": "SIGHUP"},
    **{"logged in staff": "logged-in staff"},
    **{
        "mann": "Mann",
        "node": "Node",
        "whitney": "Whitney",
        "url": "URL",
        "tls": "TLS",
        "pgbouncer": "PgBouncer",
    },
    **{"postgresql": "PostgreSQL", "redis": "Redis", "sqlite": "SQLite", "read only": "read-only"},
}
PROPER_WORDS = re.compile(rf"\b({'|'.join(PROPER)})\b")
# As pytest numbers parameters for which it has no words, and patterns.
RAW = re.compile(r"[a-z_]\d+$|^[\d. ]*$|[\\*+^$(]")


def in_words(text: str) -> str:
    """`closed with {1012: 3}` is `closed with 3 × 1012`. What is no value of Python stays."""
    return "".join(_parts(text))


def sentence(name: str) -> str:
    """`redis_is_full` is `Redis is full`."""
    words = PROPER_WORDS.sub(lambda found: PROPER[found[0]], name.replace("_", " "))
    return words[:1].upper() + words[1:]


def variant(parameters: str) -> str:
    """The parameters of a test, without those that are no words."""
    parts = [part for part in parameters.split("-") if not RAW.search(part)]
    return ", ".join(part.replace("_", " ") for part in parts)


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
        # Of statuses and codes, 0 stands for an answer that did not come.
        return f"{words_of(value)} × {key if str(key) != '0' else 'no answer'}"
    # 60.0 is 60.
    name = f"{key:g}" if isinstance(key, float) else words_of(key, " ")
    return f"{name}: {words_of(value, ' and ')}"
