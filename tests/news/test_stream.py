"""What is announced of news, by whatever way it enters the feed, and in which order it is told."""

from __future__ import annotations

import json
from collections.abc import Callable
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
from market.streams.protocol.messages import CATEGORIES
from news.entering import enter_feed
from news.models import NewsAnnouncement, NewsItem, Outcome, Source
from news.newsroom import publish, take_back
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


def test_item_is_announced_once_with_its_event_and_goes_with_it() -> None:
    item = published()
    event = ControlEvent.objects.get(kind=EventKind.NEWS_PUBLISHED)
    assert event.facts == {"item": item.pk}
    take_back(item)
    publish(item, by="curator")
    assert announced() == [(event.position, item.pk)]
    assert ControlEvent.objects.filter(kind=EventKind.NEWS_PUBLISHED).count() == 1
    item.delete()
    assert not announced()
    assert position_of(str(make_news().pk)) is None


def test_what_is_rolled_back_is_not_announced() -> None:
    with suppress(ZeroDivisionError), transaction.atomic():
        published()
        raise ZeroDivisionError
    assert not announced()
    assert not ControlEvent.objects.filter(kind=EventKind.NEWS_PUBLISHED).exists()


def test_database_refuses_a_second_announcement() -> None:
    item = published()
    with pytest.raises(IntegrityError):
        NewsAnnouncement.objects.create(position=LATEST, item=item)


def test_trusted_source_announces_what_it_publishes_the_oldest_first() -> None:
    make_instrument("XAUUSD")
    source = make_source(trust=Source.Trust.PUBLISH)
    poll(source, "Gold rises", "Gold steadies near a record", "Gold slips on oil")
    items = NewsItem.objects.filter(status="published").order_by("published_at", "pk")
    assert [pk for _, pk in announced()] == [item.pk for item in items]
    assert len(announced()) == 3
    assert Outcome.objects.values("item").distinct().count() == 3


def test_many_cost_as_few_queries_as_one(django_assert_num_queries: Callable[..., Any]) -> None:
    items = [make_news(f"n {number}") for number in range(20)]
    # The symbols, the outcomes, what is known, the events, the announcements; and the turn on PostgreSQL.
    with transaction.atomic(), django_assert_num_queries(5 + (connection.vendor == "postgresql")):
        enter_feed(items, timezone.now())
    assert [pk for _, pk in announced()] == [item.pk for item in items]


# What is read.
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


def test_each_portion_of_a_replay_and_each_place_is_one_query(
    django_assert_num_queries: Callable[..., Any],
) -> None:
    make_instrument("XAUUSD")
    items = [published("XAUUSD") for _ in range(5)]
    with django_assert_num_queries(1):
        assert len(read(0, LATEST, 3)) == 3
    with django_assert_num_queries(1):
        position_of(str(items[0].pk))


def test_place_before_a_restored_database_is_lost() -> None:
    position = NewsAnnouncement.objects.get(item=published()).position
    assert position_of(f"after:{position}") == position
    facts = {"after": position - 1}
    ControlEvent.objects.create(position=position + 10, kind=EventKind.DATABASE_RESTORED, facts=facts)
    assert position_of(f"after:{position}") is None


# How it comes to the hub.
async def test_item_withdrawn_before_it_is_read_is_not_told_late_either() -> None:
    events, stream, line = EventFeed(), NewsStream(), RecordedConnection()
    follow(events, stream)
    await events.start()
    await stream.start()
    stream.hub.subscribe(stream.hub.join(line, lambda: None), [EVERYTHING])

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
    await stream.stop()
    await events.stop()
