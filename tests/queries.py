"""Counting what a request asks the database, in whichever thread it asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db.backends.utils import CursorWrapper

# What the running service asks by itself, whether or not anybody comes.
BACKGROUND = (
    "accounts_controlevent",
    "market_lastquote",
    '"cancel_reason" =',
    "news_source",
    "signals_feed_announcement",
    'settled_at" IS NULL',
    # The watcher's, for the minutes of a signal that it has just heard of.
    'SELECT "market_candle"."basis" AS "basis"',
)


@contextmanager
def count_queries() -> Iterator[list[str]]:
    """The statements of all threads while the block runs."""
    asked: list[str] = []
    execute = CursorWrapper.execute

    def counted(self: CursorWrapper, sql: Any, params: Any = None) -> Any:
        if not any(name in str(sql) for name in BACKGROUND):
            asked.append(str(sql))
        return execute(self, sql, params)

    CursorWrapper.execute = counted  # type: ignore[method-assign]
    try:
        yield asked
    finally:
        CursorWrapper.execute = execute  # type: ignore[method-assign]
