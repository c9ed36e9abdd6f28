"""Sources, feeds and scorers for tests of the newsroom."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from news.ingest.addresses import digest
from news.ingest.parsing import FeedEntry, ParsedFeed
from news.models import NewsItem, Source
from news.sentiment.scoring import Scored

POLLED_AT = datetime(2026, 11, 18, 12, tzinfo=UTC)
NOON_MS = round(POLLED_AT.timestamp() * 1000)


def make_source(name: str = "Example Wire", **fields: Any) -> Source:
    defaults = {"address": f"https://{name.lower().replace(' ', '-')}.example/rss"}
    return Source.objects.create(name=name, **(defaults | fields))


def make_entry(title: str, guid: str = "", link: str = "", at_ms: int | None = NOON_MS) -> FeedEntry:
    return FeedEntry(digest(guid or link or title), title, "", link, at_ms)


def feed_of(*entries: FeedEntry | str) -> ParsedFeed:
    return ParsedFeed([make_entry(entry) if isinstance(entry, str) else entry for entry in entries])


def half_up(title: str, category: str) -> Scored:
    """A model that likes everything."""
    return Scored(0.5, "test", "1")


def no_model(title: str, category: str) -> None:
    """There is none that can tell."""


def titles(**filters: Any) -> list[str]:
    return sorted(NewsItem.objects.filter(**filters).values_list("title", flat=True))
