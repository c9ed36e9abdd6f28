"""Counts and lists as people write them."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping

# As names of tests cannot write them.
PROPER = {
    **{"ai": "AI", "api": "API", "ctrl c": "Ctrl+C", "http": "HTTP", "json": "JSON", "sighup": "SIGHUP"},
    **{"logged in staff": "logged-in staff", "mann": "Mann", "node": "Node", "whitney": "Whitney"},
    **{"url": "URL", "tls": "TLS", "pgbouncer": "PgBouncer", "read only": "read-only"},
    **{"postgresql": "PostgreSQL", "redis": "Redis", "sqlite": "SQLite"},
}
PROPER_WORDS = re.compile(rf"\b({'|'.join(PROPER)})\b")
# As pytest numbers parameters for which it has no words, and patterns.
RAW = re.compile(r"[a-z_]\d+$|^[\d. ]*$|[\\*+^$(]")
VALUE = re.compile(r"\{[^{}]*\}|\[[^][{}]*\]")


def in_words(text: str) -> str:
    """`closed with {1012: 3}` is `closed with 3 × 1012`. What is no value of Python stays."""
    return VALUE.sub(_words, text)


def sentence(name: str) -> str:
    """`redis_is_full` is `Redis is full`."""
    words = PROPER_WORDS.sub(lambda found: PROPER[found[0]], name.replace("_", " "))
    return words[:1].upper() + words[1:]


def variant(parameters: str) -> str:
    """The parameters of a test, without those that are no words."""
    parts = [part for part in parameters.split("-") if not RAW.search(part)]
    return ", ".join(part.replace("_", " ") for part in parts)


def _words(found: re.Match[str]) -> str:
    try:
        return words_of(ast.literal_eval(found[0]))
    except (SyntaxError, ValueError):
        return found[0]


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
