"""How each component does: seen by a process, written down by all of them, told by the page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db.models import F, Value
from django.utils import timezone

from core.threads import in_thread
from core.times import MINUTE_MS
from market import runtime
from market.streams.consumer import all_streams
from market.streams.market_streams import prices
from market.streams.protocol.messages import KINDS
from news.models import Source
from serving.draining import draining
from serving.findings import component_shares
from serving.metrics.http_requests import http_requests
from serving.readiness import monitor
from status.models import NAMES, ComponentMinute, ProcessReport
from status.recorder import (
    MOST_WAITING,
    ComponentWatch,
    MinuteLooks,
    MinuteRecorder,
    component_watch,
    fresh_share,
)

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ALL_WELL = dict.fromkeys(NAMES, 1.0)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[ComponentWatch]:
    """In a process that has started, with the price stream alone."""
    monkeypatch.setattr(monitor, "is_started", True)
    monkeypatch.setattr(runtime.market.liveness, "is_heard", True)
    watching = ComponentWatch((prices,))
    watching.look()
    yield watching
    prices.hub.closed.clear()


def share(watching: ComponentWatch, name: str) -> float | None:
    shares = watching.look()
    assert shares is not None
    return shares[name]


def test_every_component_has_a_column_and_every_stream_is_watched() -> None:
    columns = {field.name for field in ComponentMinute._meta.fields}
    assert columns == {"id", "at", "day", "reports", *NAMES}
    watched = [stream.kind.name for stream in all_streams]
    assert watched == [kind.name for kind in KINDS]
    assert set(watched) < set(NAMES)


def test_faults_of_ours_are_a_share_of_the_answers(seen: ComponentWatch) -> None:
    # All is in order where nobody asks.
    assert seen.look() == {"rest": 1.0, "market": 1.0}
    for status in (200, 404, 503, 500):
        http_requests.note("/api/symbols", "GET", status, 0.01)
    http_requests.note("/status", "GET", 500, 0.01)
    assert share(seen, "rest") == 0.75
    assert share(seen, "rest") == 1.0


def test_price_stream_is_down_without_an_engine_and_rest_without_the_database(
    seen: ComponentWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime.market.liveness, "is_heard", False)
    assert seen.look() == {"rest": 1.0, "market": 0.0}
    monkeypatch.setattr(runtime.market.liveness, "is_heard", True)
    found = SimpleNamespace(reasons=[], checks={"database": "away"})
    monkeypatch.setattr(monitor, "verdict", lambda: found)
    assert seen.look() == {"rest": 0.0, "market": 1.0}


def test_sockets_that_end_by_our_fault_are_a_share(
    seen: ComponentWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(prices.hub), "members", 3)
    prices.hub.closed[4500] += 1
    prices.hub.closed[4401] += 5
    assert share(seen, "market") == 0.75
    assert share(seen, "market") == 1.0
    # A process that stops says nothing.
    monkeypatch.setattr(draining, "is_on", True)
    assert seen.look() is None


@pytest.mark.parametrize(
    ("states", "share_of_fresh"),
    [(["open", "stale", "closed", "open", "open"], 0.75), (["closed"], None), ([], None), (["stale"], 0.0)],
)
def test_feeds_are_judged_by_open_markets(states: list[str], share_of_fresh: float | None) -> None:
    assert fresh_share(states) == share_of_fresh


def test_minute_is_the_mean_of_its_looks() -> None:
    looks = MinuteLooks()
    for value in (1.0, 0.5, None):
        looks.add(60_000, {"rest": value})
    looks.add(0, {"rest": 0.0})
    looks.add(120_000, {"rest": 0.25})
    assert looks.take(60_000)["rest"] == 0.75
    assert looks.take(60_000) == {}
    assert looks.take(120_000)["rest"] == 0.25


@pytest.mark.parametrize(
    ("gap_s", "shares"),
    # Looks are five seconds apart: one that comes a little late has missed none.
    [(5, (1.0, 1.0)), (9, (1.0, 1.0)), (40, (7 / 12, 10 / 12))],
)
async def test_process_that_stood_still_served_nobody(
    monkeypatch: pytest.MonkeyPatch, gap_s: int, shares: tuple[float, float]
) -> None:
    recorder, began_s = MinuteRecorder(), 600
    monkeypatch.setattr(component_watch, "look", lambda: {"rest": 1.0, "feeds": 1.0})
    for after_s in (*range(0, 31, 5), *range(30 + gap_s, 120, 5)):
        monkeypatch.setattr("status.recorder.monotonic", lambda after_s=after_s: 1000.0 + after_s)
        monkeypatch.setattr("status.recorder.now_ms", lambda after_s=after_s: 1000 * (began_s + after_s))
        await recorder.look()
    minutes = [recorder.looks.take(1000 * (began_s + minute_s)) for minute_s in (0, 60)]
    assert [minute["rest"] for minute in minutes] == [pytest.approx(share) for share in shares]
    assert [minute["feeds"] for minute in minutes] == [1.0, 1.0]


def make_source(name: str, **given: Any) -> None:
    Source.objects.create(name=name, address=f"https://news.example/{name}", **given)


@pytest.mark.django_db
def test_sources_that_cannot_be_read_or_that_nobody_polls_are_a_share() -> None:
    now = timezone.now()
    assert Source.objects.share_in_order() is None
    make_source("good")
    make_source("hiccup", failures=1)
    make_source("broken", failures=2)
    make_source("forgotten", next_poll_at=now - timedelta(minutes=11))
    make_source("off", failures=9, is_active=False)
    assert Source.objects.share_in_order() == 0.5


@pytest.mark.django_db
def test_processes_add_to_the_same_minute() -> None:
    for rest in (1.0, 0.5):
        ComponentMinute.objects.add({AT: ALL_WELL | {"rest": rest}})
    (minute,) = ComponentMinute.objects.all()
    assert (minute.day, minute.reports, minute.rest, minute.market) == (AT.date(), 2, 1.5, 2.0)
    (day,) = ComponentMinute.objects.by_day()
    assert (day["minutes"], day["rest_seen"], day["rest_up"]) == (1, 1, 0.75)
    # What could not be judged is not counted.
    ComponentMinute.objects.update(feeds=None)
    (day,) = ComponentMinute.objects.by_day()
    assert (day["minutes"], day["feeds_seen"], day["feeds_up"], day["rest_seen"]) == (1, 0, None, 1)


@pytest.mark.django_db
def test_feeds_and_sources_are_looked_at_as_a_minute_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(component_watch, "look_at_feeds", lambda: 0.25)
    monkeypatch.setattr(component_watch, "look_at_sources", lambda: 0.5)
    MinuteRecorder().write_components(AT, {"rest": 1.0})
    assert ComponentMinute.objects.values_list("rest", "feeds", "sources").get() == (1.0, 0.25, 0.5)


@pytest.mark.django_db
def test_reports_of_processes_go_some_time_after_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("status.models.REPORTS_KEPT", timedelta(minutes=60))
    for process, minutes_ago in (("ended", 61), ("slow", 50), ("here", 0)):
        ProcessReport.objects.put(process, {})
        ProcessReport.objects.filter(process=process).update(at=F("at") - timedelta(minutes=minutes_ago))
    ProcessReport.objects.prune()
    assert set(ProcessReport.objects.values_list("process", flat=True)) == {"slow", "here"}


@pytest.mark.django_db
def test_minutes_wait_for_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(component_shares, "sources", lambda: None)
    recorder, away = MinuteRecorder(), pytest.MonkeyPatch()
    away.setattr(ComponentMinute.objects, "add", refuse)
    with pytest.raises(ConnectionError):
        recorder.write_components(AT, dict(ALL_WELL))
    away.undo()
    recorder.write_components(AT + timedelta(minutes=1), dict(ALL_WELL))
    recorder.write_components(AT + timedelta(minutes=2), {})
    assert list(ComponentMinute.objects.order_by("at").values_list("at", flat=True)) == [
        AT,
        AT + timedelta(minutes=1),
    ]


def refuse(*_: object) -> None:
    raise ConnectionError


def test_a_day_of_minutes_waits_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(component_shares, "sources", lambda: None)
    monkeypatch.setattr(ComponentMinute.objects, "add", refuse)
    recorder = MinuteRecorder()
    for n in range(MOST_WAITING + 5):
        with pytest.raises(ConnectionError):
            recorder.write_components(AT + timedelta(minutes=n), dict(ALL_WELL))
    assert len(recorder.waiting) == MOST_WAITING
    assert min(recorder.waiting) == AT + timedelta(minutes=5)


@pytest.mark.django_db
def test_minutes_of_three_months_ago_go_but_for_the_first() -> None:
    days = (100, 95, 92, 90)
    ComponentMinute.objects.add({AT - timedelta(days=ago): ALL_WELL for ago in days})
    ComponentMinute.objects.all().prune(AT - timedelta(days=91))
    ages = [(AT - minute.at).days for minute in ComponentMinute.objects.order_by("at")]
    assert ages == [100, 90]


@pytest.mark.parametrize(
    ("silent_s", "until_s", "share"),
    # As long as it starts, nobody is there either.
    [(4, 45, 1.0), (24, 45, 0.5), (24, 55, 5 / 12), (None, 45, 1.0)],
)
@pytest.mark.django_db(transaction=True)
async def test_minute_in_which_no_process_was_there_is_not_whole(
    monkeypatch: pytest.MonkeyPatch, silent_s: int | None, until_s: int, share: float
) -> None:
    """Killed, and started again within the minute: what the one before saw of it is gone."""
    # The clock of the database stands.
    monkeypatch.setattr("status.models.Now", lambda: Value(AT))
    minute_ms = MINUTE_MS * 1_000
    if silent_s is not None:
        await in_thread(ProcessReport.objects.put, "before", {})
        await in_thread(lambda: ProcessReport.objects.update(at=F("at") - timedelta(seconds=silent_s)))
    recorder = MinuteRecorder()
    with monkeypatch.context() as patched:
        patched.setattr("status.recorder.now_ms", lambda: minute_ms + 40_000)
        await recorder.start()
        await recorder.stop()
        for after_s in range(45, until_s + 1, 5):
            patched.setattr("status.recorder.now_ms", lambda after_s=after_s: minute_ms + 1000 * after_s)
            seen = {"rest": 1.0} if after_s == until_s else None
            patched.setattr(component_watch, "look", lambda seen=seen: seen)
            await recorder.look()
    assert recorder.looks.take(minute_ms)["rest"] == pytest.approx(share, abs=0.03)
