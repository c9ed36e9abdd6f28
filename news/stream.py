"""The stream /ws/news: items as they enter the feed, in commit order, to all that listen or were away."""

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated

import msgspec
from django.db.models import Subquery
from django.utils import timezone
from msgspec import UNSET, Meta
from msgspec.structs import asdict, replace

from core.fault_log import LastingFault
from core.plain_json import encode
from core.times import epoch_ms_before, iso_time
from market.streams.announced_stream import (
    AFTER_POSITION,
    CHUNK,
    Announced,
    AnnouncedStream,
    Read,
    read_in_thread,
    whole_number,
)
from market.streams.asyncapi import Channel
from market.streams.consumer import Following
from market.streams.protocol.messages import ALL, CATEGORIES, NEWS, Milliseconds, Subscribe
from market.streams.protocol.subscriptions import Subscriptions

from .feed import FACTORIES, GOLD, NewsFacts, joined_symbols
from .labels import sentiment_label
from .models import NewsAnnouncement, NewsItem

REPLAYED_FOR = timedelta(days=7)
COLUMNS = ("title", "category", "sentiment_score", "published_at", "status")


class PublishedNews(NewsFacts):
    id: Annotated[int, Meta(description="Send it as a string in `since` to continue after this item.")]
    time: Annotated[Milliseconds, Meta(description="The same time as `timestamp`.")]


CHANNEL = Channel(
    NEWS,
    "News",
    "Every news item, once, when it enters the feed. With `symbols`, you receive only items about one of"
    " them; with `categories`, only items of one of them.",
    (PublishedNews,),
    {
        PublishedNews: {
            "About gold": msgspec.convert(
                {**asdict(GOLD), "id": 3172, "time": 1_795_182_900_000}, PublishedNews
            ),
            "About stocks": msgspec.convert(
                {**asdict(FACTORIES), "id": 3171, "time": 1_795_168_800_000}, PublishedNews
            ),
        }
    },
)


def read(after: int, upto: int, limit: int) -> list[Announced]:
    """Announcements after the first position up to the last, in commit order, of items as they are now."""
    announcements = NewsAnnouncement.objects.filter(position__gt=after, position__lte=upto)
    named = announcements.annotate(joined=Subquery(joined_symbols("item_id")))
    columns = ("position", "item_id", "joined", *(f"item__{name}" for name in COLUMNS))
    return [announced(*row) for row in named.order_by("position").values_list(*columns)[:limit]]


def announced(
    position: int,
    item_id: int,
    joined: str | None,
    title: str,
    category: str,
    score: float,
    published_at: datetime,
    status: str,
) -> Announced:
    if status != NewsItem.Status.PUBLISHED:
        # Staff took it back. It is passed over here, so that its place is passed too.
        return Announced(position, frozenset(), b"")
    symbols = joined.split(",") if joined else []
    item = PublishedNews(
        title,
        category,
        sentiment_label(score),
        score,
        iso_time(published_at),
        item_id,
        epoch_ms_before(published_at),
    )
    topics = frozenset(f"{category}/{symbol}" for symbol in (*symbols, ALL))
    return Announced(position, topics, encode(item))


def position_of(since: str) -> int | None:
    """The position of what a client had last, an item or a position; None if it is unknown."""
    announcements, replayed_since = NewsAnnouncement.objects, timezone.now() - REPLAYED_FOR
    number = whole_number(since.removeprefix(AFTER_POSITION))
    if number is None:
        return None
    if since.startswith(AFTER_POSITION):
        return number if announcements.can_replay_after(number, replayed_since) else None
    return announcements.position_of(number, replayed_since)


def is_chosen(announced: Announced, choice: str) -> bool:
    """Whether what a client chose is of its category and about one of its symbols."""
    # Searched and not taken apart: of a replay each item is compared with what may be hundreds of symbols.
    categories, _, symbols = choice.partition("/")
    chosen, named = f",{categories},", f",{symbols},"
    pairs = (topic.split("/", 1) for topic in announced.topics)
    return any(f",{category}," in chosen and f",{symbol}," in named for category, symbol in pairs)


read_announced = read_in_thread(read)
logger = logging.getLogger(__name__)
announcements_wait = LastingFault(logger, "Announced news wait for the database")


class NewsStream(AnnouncedStream):
    def __init__(self, read: Read = read_announced, chunk: int = CHUNK) -> None:
        super().__init__(NEWS, read, announcements_wait, chunk)

    async def subscribe(self, client: Following, message: Subscribe) -> None:
        if message.categories is UNSET:
            message = replace(message, categories=frozenset(CATEGORIES))
        await super().subscribe(client, message)

    def topics_of(self, subscribed: Subscriptions) -> set[str]:
        """One, all that the client chose: an item may be about several of its symbols, and comes once."""
        if not subscribed.symbols:
            return set()
        return {f"{','.join(sorted(subscribed.categories))}/{','.join(subscribed.symbols)}"}

    def symbols_of(self, topics: frozenset[str]) -> set[str]:
        return {symbol for topic in topics for symbol in topic.partition("/")[2].split(",")}

    def concerns(self, topics: frozenset[str] | set[str], announced: Announced) -> bool:
        return any(is_chosen(announced, choice) for choice in topics)

    def recipients(self, announced: Announced) -> Iterable[str]:
        return [choice for choice in self.topics if is_chosen(announced, choice)]

    def last_position(self) -> int:
        return NewsAnnouncement.objects.last_position()

    def position_of(self, since: str) -> int | None:
        return position_of(since)


news = NewsStream()
