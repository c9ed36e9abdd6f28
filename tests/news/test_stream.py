"""What is announced of news, by whatever way it enters the feed, and in which order it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from core.events.event_feed import EventFeed
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from core.threads import in_thread
from instruments.models import Instrument
from market.streams.announced_stream import LATEST, Announced
from market.streams.hub.subscribers import Subscriber
from market.streams.protocol.messages import CATEGORIES
from news.entering import enter_feed
from news.models import NewsAnnouncement, NewsItem, Outcome, Source
from news.newsroom.decisions import publish, take_back
from news.stream import NewsStream, is_chosen, position_of, read
from tests.core.events.following import follow
from tests.factories import make_instrument, make_news
from tests.market.streams.hub.hubs import RecordedConnection
from tests.news.ingest.made_feeds import make_source
from tests.news.ingest.test_intake import poll
from tests.patience import until

EVERYTHING = "crypto,forex,gold,macro/*"
pytestmark = [pytest.mark.usefixtures("transactional_db"), pytest.mark.services]


def published(*symbols: str, **fields: Any) -> NewsItem:
    item = make_news(**({"status": "draft"} | fields))
    item.symbols.set(Instrument.objects.filter(symbol__in=symbols))
    publish(item, by="curator")
    return item


def announced() -> list[tuple[int, int]]:
    return list(NewsAnnouncement.objects.order_by("position").values_list("position", "item_id"))


def test_categories_of_the_stream_are_those_of_the_feed() -> None:
    assert list(CATEGORIES) == NewsItem.Category.values


def test_item_is_announced_with_its_event() -> None:
    item = published()
    event = ControlEvent.objects.get(kind=EventKind.NEWS_PUBLISHED)
    assert event.facts == {"item": item.pk}
    assert announced() == [(event.position, item.pk)]


def test_what_is_rolled_back_is_not_announced() -> None:
    with suppress(ZeroDivisionError), transaction.atomic():
        published()
        raise ZeroDivisionError
    assert not announced()
    assert not ControlEvent.objects.filter(kind=EventKind.NEWS_PUBLISHED).exists()


def test_item_that_enters_again_is_announced_once() -> None:
    item = published()
    take_back(item)
    publish(item, by="curator")
    assert len(announced()) == 1
    assert ControlEvent.objects.filter(kind=EventKind.NEWS_PUBLISHED).count() == 1


def test_database_refuses_a_second_announcement() -> None:
    item = published()
    with pytest.raises(IntegrityError):
        NewsAnnouncement.objects.create(position=LATEST, item=item)


def test_deleted_item_takes_its_announcement_along() -> None:
    published().delete()
    assert not announced()


def test_trusted_source_announces_what_it_publishes_the_oldest_first() -> None:
    make_instrument("XAUUSD")
    source = make_source(trust=Source.Trust.PUBLISH)
    poll(source, "Gold rises", "Gold steadies near a record", "Gold slips on oil")
    items = NewsItem.objects.filter(status="published").order_by("published_at", "pk")
    assert [pk for _, pk in announced()] == [item.pk for item in items]
    assert len(announced()) == 3
    assert Outcome.objects.values("item").distinct().count() == 3


def test_drafts_of_a_source_are_announced_when_staff_publish_them() -> None:
    make_instrument("XAUUSD")
    poll(make_source(), "Gold rises")
    assert not announced()
    publish(NewsItem.objects.get(), by="curator")
    assert len(announced()) == 1


def test_many_cost_as_few_queries_as_one(django_assert_num_queries: Callable[..., Any]) -> None:
    items = [make_news(f"n {number}") for number in range(20)]
    # The symbols, the outcomes, what is known, the events, the announcements; and the turn on PostgreSQL.
    with transaction.atomic(), django_assert_num_queries(5 + (connection.vendor == "postgresql")):
        enter_feed(items, timezone.now())
    assert [pk for _, pk in announced()] == [item.pk for item in items]


# What is read.
def test_frame_has_the_topics_of_its_category_and_symbols() -> None:
    for symbol in ("XAUUSD", "US500"):
        make_instrument(symbol)
    published("XAUUSD", "US500", category="gold")
    [found] = read(0, LATEST, 10)
    assert found.topics == {"gold/XAUUSD", "gold/US500", "gold/*"}


@pytest.mark.parametrize(
    ("choice", "is_of_it"),
    [
        ("gold/XAUUSD", True),
        ("forex,gold/EURUSD,XAUUSD,XAUUSDM", True),
        ("gold/*", True),
        ("forex/XAUUSD", False),
        ("gold/XAUUSDM,MXAUUSD,XAU", False),
        ("gold/XAUUSD.R", False),
    ],
)
def test_choice_is_of_whole_names(choice: str, is_of_it: bool) -> None:
    found = Announced(1, frozenset(("gold/XAUUSD", "gold/*")), b"{}")
    assert is_chosen(found, choice) is is_of_it


def test_withdrawn_item_has_no_topics_and_its_place_is_passed() -> None:
    first, second = published(), published()
    take_back(second)
    NewsItem.objects.filter(pk=second.pk).update(sentiment_score=None, model="")
    found = read(0, LATEST, 10)
    assert [bool(each.topics) for each in found] == [True, False]
    assert [each.position for each in found] == [position for position, _ in announced()]
    assert json.loads(found[0].frame)["id"] == first.pk


def test_each_portion_of_a_replay_and_each_place_is_one_query(
    django_assert_num_queries: Callable[..., Any],
) -> None:
    make_instrument("XAUUSD")
    items = [published("XAUUSD") for _ in range(5)]
    with django_assert_num_queries(1):
        assert len(read(0, LATEST, 3)) == 3
    with django_assert_num_queries(1):
        position_of(str(items[0].pk))


def test_item_that_was_never_announced_has_no_place() -> None:
    assert position_of(str(make_news().pk)) is None


def test_place_before_a_restored_database_is_lost() -> None:
    position = NewsAnnouncement.objects.get(item=published()).position
    assert position_of(f"after:{position}") == position
    facts = {"after": position - 1}
    ControlEvent.objects.create(position=position + 10, kind=EventKind.DATABASE_RESTORED, facts=facts)
    assert position_of(f"after:{position}") is None


# How it comes to the hub.
@pytest.fixture
async def stream() -> AsyncIterator[NewsStream]:
    events, running = EventFeed(), NewsStream()
    follow(events, running)
    await events.start()
    await running.start()
    yield running
    await running.stop()
    await events.stop()


def join(stream: NewsStream, *topics: str) -> tuple[Subscriber, RecordedConnection]:
    line = RecordedConnection()
    subscriber = stream.hub.join(line, lambda: None)
    stream.hub.subscribe(subscriber, topics)
    return subscriber, line


async def test_items_of_many_writers_are_heard_once_and_in_commit_order(stream: NewsStream) -> None:
    _, line = join(stream, EVERYTHING)

    def write() -> None:
        for _ in range(10):
            published()
        connection.close()

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    await until(lambda: len(line.heard) == 40)
    for thread in threads:
        await in_thread(thread.join)
    order = await in_thread(announced)
    assert [json.loads(text)["id"] for text in line.heard] == [pk for _, pk in order]


async def test_item_withdrawn_before_it_is_read_is_not_told_late_either(stream: NewsStream) -> None:
    _, line = join(stream, EVERYTHING)

    def write() -> tuple[NewsItem, NewsItem]:
        with transaction.atomic():
            gone, kept = published(), published()
            take_back(gone)
        return gone, kept

    gone, kept = await in_thread(write)
    await until(lambda: len(line.heard) == 1)
    await in_thread(publish, gone, by="curator")
    last = await in_thread(published)
    await until(lambda: len(line.heard) == 2)
    assert [json.loads(text)["id"] for text in line.heard] == [kept.pk, last.pk]
