"""The rest of the demo's past: who makes what of it, and what is said of it meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
import time_machine
from django.test import Client, override_settings
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from demo import past, seeding
from demo.market import seed_recent
from demo.people import seed_people
from instruments.catalogue import catalogue
from instruments.models import Instrument
from market.models import Candle, LastQuote, UnfinishedPast
from market.prices.candles import DAY_MS
from market.store.lease import name_of
from signals_feed.models import Signal
from tests.databases.emptying import empty_database
from tests.factories import NOON, make_calendar, make_candle, make_instrument
from tests.market.ticking import NOON_MS

pytestmark = [pytest.mark.django_db, pytest.mark.services]
GONE_PROCESS = name_of(2**22 + 1)
OF_ANOTHER_MACHINE = "elsewhere:1:0.0"


def quietly(text: str) -> None:
    """Progress that nobody watches."""


@pytest.fixture(scope="module")
def recent(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Two instruments whose recent past is there."""
    with django_db_blocker.unblock():
        with override_settings(DEMO=True), time_machine.travel(NOON, tick=False):
            make_instrument("EURUSD", calendar=make_calendar("day", "Mon-Fri 09:00-14:00"))
            make_instrument("GBPUSD", calendar=make_calendar("night", "Mon-Sun 22:30-03:30"))
            seed_people()
            seed_recent(NOON_MS, quietly)
        yield
        empty_database()


@pytest.fixture(autouse=True)
def begun(recent: None, settings: Any) -> Iterator[None]:
    settings.DEMO = settings.PUBLIC_TERMINAL = True
    with time_machine.travel(NOON, tick=False):
        yield


def symbols() -> list[str]:
    return sorted(UnfinishedPast.objects.values_list("instrument__symbol", flat=True))


def going_on() -> bool:
    reached = past.past_progress()
    assert reached is not None
    return reached.is_going_on


def claimed() -> str:
    row = past.claim(UnfinishedPast.objects.filter(made_at=None))
    return row.instrument.symbol if row else ""


def test_the_recent_past_begins_at_midnight_and_leads_to_a_quote_once() -> None:
    minutes = Candle.objects.filter(instrument__symbol="EURUSD", timeframe="1m")
    assert symbols() == ["EURUSD", "GBPUSD"]
    assert minutes.count() == 180
    assert LastQuote.objects.get(instrument__symbol="EURUSD").source == "demo"
    assert {row.until_at for row in UnfinishedPast.objects.all()} == {NOON.replace(hour=0)}
    before = list(Candle.objects.order_by("pk").values()), list(UnfinishedPast.objects.values())
    seed_recent(NOON_MS + 600_000, quietly)
    assert (list(Candle.objects.order_by("pk").values()), list(UnfinishedPast.objects.values())) == before


def test_one_that_was_closed_since_midnight_is_begun_anew_at_the_next_start() -> None:
    late = make_instrument("XAUUSD", calendar=make_calendar("late", "Mon-Fri 18:00-19:00"))
    seed_recent(NOON_MS, quietly)
    minutes = Candle.objects.filter(instrument=late, timeframe="1m")
    assert not minutes.exists()
    seed_recent(NOON_MS + DAY_MS, quietly)
    assert UnfinishedPast.objects.get(pk=late.pk).until_at == NOON.replace(hour=0) + timedelta(days=1)
    past.make_pasts(quietly, lambda: True)
    assert minutes.filter(opened_at__gte=NOON).count() == 60


def test_each_is_given_to_one_and_to_another_if_that_one_died() -> None:
    assert [claimed(), claimed(), claimed()] == ["EURUSD", "GBPUSD", ""]
    UnfinishedPast.objects.filter(instrument__symbol="EURUSD").update(maker=GONE_PROCESS)
    assert claimed() == "EURUSD"


def test_another_machine_is_waited_for_a_minute() -> None:
    UnfinishedPast.objects.update(maker=OF_ANOTHER_MACHINE, begun_at=timezone.now() - timedelta(seconds=50))
    assert claimed() == ""
    UnfinishedPast.objects.update(begun_at=timezone.now() - timedelta(seconds=70))
    assert claimed() == "EURUSD"


def test_one_that_lives_here_may_take_its_time() -> None:
    UnfinishedPast.objects.update(maker=name_of(os.getppid()), begun_at=timezone.now() - timedelta(minutes=4))
    assert claimed() == ""
    assert going_on()
    UnfinishedPast.objects.update(begun_at=timezone.now() - timedelta(minutes=6))
    assert not going_on()
    assert claimed() == "EURUSD"


def test_who_makes_them_tells_every_process_of_each_and_leaves_the_recent_past_alone() -> None:
    recent = list(Candle.objects.filter(opened_at__gte=NOON.replace(hour=0)).order_by("pk").values())
    assert past.make_pasts(quietly, lambda: True)
    told = ControlEvent.objects.filter(kind=EventKind.CANDLES_IMPORTED).order_by("pk")
    assert [event.facts["symbol"] for event in told] == ["EURUSD", "GBPUSD"]
    for symbol in ("EURUSD", "GBPUSD"):
        for timeframe in ("1m", "5m", "15m", "1h", "4h"):
            stored = Candle.objects.filter(instrument__symbol=symbol, timeframe=timeframe)
            assert stored.count() >= 500, timeframe
    assert list(Candle.objects.filter(opened_at__gte=NOON.replace(hour=0)).order_by("pk").values()) == recent


def test_who_died_does_not_go_on() -> None:
    assert not going_on()
    past.announce_makers()
    assert going_on()
    UnfinishedPast.objects.update(begun_at=None)
    claimed()
    assert going_on()
    UnfinishedPast.objects.exclude(maker="").update(maker=GONE_PROCESS)
    assert not going_on()


def test_what_was_removed_meanwhile_is_not_written() -> None:
    instrument = Instrument.objects.get(symbol="EURUSD")
    facts, row = catalogue.get("EURUSD"), past.claim(UnfinishedPast.objects.filter(pk=instrument.pk))
    assert row is not None
    # It stays, because somebody has imported prices of it.
    imported = make_candle(instrument, source="import")
    seeding.remove(quietly)
    assert not past.make_past(facts, row)
    assert list(Candle.objects.all()) == [imported]
    assert not UnfinishedPast.objects.exists()


@pytest.mark.served
def test_signals_and_news_come_when_all_of_it_is_there_and_then_nothing_is_left() -> None:
    said: list[str] = []
    answers = iter([True, False])
    # It stops where it is told to.
    seeding.finish(quietly, lambda: next(answers))
    assert [row.made_at is None for row in UnfinishedPast.objects.order_by("pk")] == [False, True]
    assert not Signal.objects.exists()
    assert seeding.makers_needed() == 2
    UnfinishedPast.objects.update(maker=GONE_PROCESS)
    seeding.finish(said.append)
    assert Signal.objects.filter(status="closed").exists()
    assert not UnfinishedPast.objects.exists()
    assert seeding.makers_needed() == 0
    assert said[-1] == "The demo's past is complete"


def test_who_comes_while_another_ends_it_leaves_that_to_it() -> None:
    past.make_pasts(quietly, lambda: True)
    first = UnfinishedPast.objects.order_by("pk")[:1]
    UnfinishedPast.objects.filter(pk__in=first.values("pk")).update(
        maker=OF_ANOTHER_MACHINE, begun_at=timezone.now()
    )
    answers = iter([True, True, False])
    seeding.finish(quietly, lambda: next(answers))
    assert not Signal.objects.exists()
    assert UnfinishedPast.objects.count() == 2


def test_the_page_says_how_far_it_is(client: Client, settings: Any) -> None:
    def told() -> Any:
        return client.get("/demo-past.json").json()

    assert told() == {
        "text": f"The demo's past is not complete: 0 of 2 instruments. {past.LATER}",
        "unmade": ["EURUSD", "GBPUSD"],
        "url": "/demo-past.json",
    }
    assert client.get("/demo-past.json")["Cache-Control"].startswith("max-age=0")
    answers = iter([True, False])
    past.make_pasts(quietly, lambda: next(answers))
    text = "The demo's past is being made: 1 of 2 instruments"
    assert told()["text"] == text
    assert text in unescape(client.get("/").content.decode())
    past.make_pasts(quietly, lambda: True)
    assert told()["text"] == "The demo's signals and news are being made."
    UnfinishedPast.objects.all().delete()
    assert told() is None
    assert "coming" not in client.get("/").content.decode()
    settings.DEMO = False
    assert client.get("/demo-past.json").status_code == 404
