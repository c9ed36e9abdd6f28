"""Sources, feeds and scorers for tests of the newsroom."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from news.addresses import digest
from news.ingest.intake import IntakeTally, judge, read, store
from news.ingest.parsing import FeedEntry, ParsedFeed
from news.models import NewsItem, Source
from news.scoring import Scorer
from news.sentiment import Score

POLLED_AT = datetime(2026, 11, 18, 12, tzinfo=UTC)


def make_source(name: str = "Example Wire", **fields: Any) -> Source:
    defaults = {"address": f"https://{name.lower().replace(' ', '-')}.example/rss"}
    return Source.objects.create(name=name, **(defaults | fields))


def make_entry(title: str, guid: str = "", link: str = "", at: datetime | None = POLLED_AT) -> FeedEntry:
    return FeedEntry(digest(guid or link or title), title, "", link, at)


def feed_of(*entries: FeedEntry | str) -> ParsedFeed:
    return ParsedFeed([make_entry(entry) if isinstance(entry, str) else entry for entry in entries])


def take(source: Source, feed: ParsedFeed, polled_at: datetime, scorer: Scorer) -> IntakeTally:
    """The three steps in one; a poll takes each in a thread of its kind."""
    reading = read(source, feed, polled_at)
    return store(source, reading, judge(source, reading, scorer))


def half_up(title: str, category: str) -> Score:
    """A model that likes everything."""
    return Score(0.5, "test", "1")


def no_model(title: str, category: str) -> None:
    """There is none that can tell."""


def titles(**filters: Any) -> list[str]:
    return sorted(NewsItem.objects.filter(**filters).values_list("title", flat=True))
