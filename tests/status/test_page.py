"""/status in its three forms: what people, programs and readers of feeds are told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import OperationalError, connection
from django.test import Client
from django.utils import timezone

from core.clock import now_ms
from instruments.catalogue import catalogue
from instruments.models import WithheldSource
from status.models import NAMES, ComponentMinute, Incident, Minute
from status.recorder import component_watch
from status.summary import InstrumentFreshness, past_days
from status.views import summary_cache
from tests.factories import make_instrument, put_quote

NOW = datetime(2026, 11, 20, 12, 30, 20, tzinfo=UTC)
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Nothing of what other tests showed in this process."""
    component_watch.latest = {}
    past_days.forget()
    catalogue.load_now()


def put_components(first: datetime, count: int, **given: float) -> None:
    shares: dict[str, Any] = dict.fromkeys(NAMES, 1.0) | given
    at = (first + timedelta(minutes=n) for n in range(count))
    ComponentMinute.objects.bulk_create([ComponentMinute(at=each, day=each.date(), **shares) for each in at])


def component(name: str) -> dict[str, Any]:
    (found,) = (each for each in status_now()["components"] if each["name"] == name)
    return dict(found)


def make_incident(title: str = "Slow prices", **given: Any) -> Incident:
    return Incident.objects.create(**{"title": title, "started_at": timezone.now(), **given})


def make_minutes(first: datetime, count: int, **given: Any) -> None:
    steps = (first + timedelta(minutes=n) for n in range(count))
    Minute.objects.bulk_create([Minute(at=at, **{"process": "one", **given}) for at in steps])


def status_now() -> dict[str, Any]:
    answer: dict[str, Any] = Client().get("/status.json").json()
    return answer


def test_stale_instrument_degrades_and_is_named() -> None:
    make_instrument("BTCUSD")
    put_quote("BTCUSD", at_ms=now_ms() - 300_000)
    seen = status_now()
    assert (seen["status"], seen["message"]) == ("degraded", "No fresh prices of BTCUSD.")


def test_what_is_withheld_is_not_named() -> None:
    make_instrument("BTCUSD", source="kraken")
    put_quote("BTCUSD", at_ms=now_ms() - 300_000)
    WithheldSource.objects.create(name="kraken", why="Its terms.")
    catalogue.load_now()
    assert (status_now()["message"], status_now()["feeds"]) == ("Everything works.", [])


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "never"),
        (0.4, "0 s ago"),
        (119.9, "119 s ago"),
        (120, "2 min ago"),
        (7199, "119 min ago"),
        (64_751, "17 h ago"),
        (172_800, "2 d ago"),
    ],
)
def test_page_says_an_age_as_people_do(seconds: float | None, words: str) -> None:
    assert InstrumentFreshness("BTCUSD", "open", seconds).age == words


@pytest.mark.parametrize(
    ("impact", "status"), [("major", "outage"), ("minor", "degraded"), ("maintenance", "maintenance")]
)
def test_open_incident_speaks_for_the_service(impact: str, status: str) -> None:
    make_incident("Database moved", impact=impact)
    assert (status_now()["status"], status_now()["message"]) == (status, "Database moved")


@pytest.mark.parametrize(
    ("share", "status", "message"),
    [
        (0.0, "outage", "Down: signal stream."),
        (0.6, "degraded", "Partly available: signal stream."),
        (1.0, "operational", "Everything works."),
    ],
)
def test_worst_component_speaks_for_the_service(share: float, status: str, message: str) -> None:
    component_watch.latest = {"rest": 1.0, "signals": share}
    assert (status_now()["status"], status_now()["message"]) == (status, message)
    assert (component("signals")["state"], component("rest")["state"]) == (status, "operational")
    assert component("news")["state"] == "unknown"


def test_all_that_is_down_or_works_in_part_is_named() -> None:
    make_instrument("BTCUSD")
    put_quote("BTCUSD", at_ms=now_ms() - 300_000)
    component_watch.latest = {"rest": 0.9, "market": 0.0, "orderflow": 0.1, "candles": 0.0}
    assert status_now()["message"] == (
        "Down: price stream, order flow stream and candle stream. Partly available: REST API. "
        "No fresh prices of BTCUSD."
    )
    assert component("feeds")["state"] == "degraded"


@pytest.mark.parametrize(
    ("impact", "share", "said"),
    [
        ("minor", 0.0, "Down: news stream."),
        ("major", 0.0, "Ours"),
        ("maintenance", 0.6, "Partly available: news stream."),
    ],
)
def test_what_is_worse_speaks_and_of_two_as_bad_the_incident(impact: str, share: float, said: str) -> None:
    make_incident("Ours", impact=impact)
    component_watch.latest = {"news": share}
    assert status_now()["message"] == said


def test_trouble_earlier_today_is_told_though_all_is_well_now() -> None:
    put_components(NOW.replace(hour=12, minute=0, second=0), 25)
    put_components(NOW.replace(hour=12, minute=25, second=0), 5, signals=0.0)
    with time_machine.travel(NOW, tick=False):
        seen = status_now()
    assert seen["status"] == "operational"
    assert (
        seen["message"]
        == "Everything works now. Earlier today there were problems with the signal stream for 4 min."
    )


def test_what_cannot_be_measured_is_no_trouble() -> None:
    at = NOW.replace(hour=12, minute=0, second=0)
    put_components(at, 20)
    ComponentMinute.objects.update(sources=None, feeds=None)
    with time_machine.travel(NOW, tick=False):
        seen, page, sources = status_now(), Client().get("/status").text, component("sources")
        ComponentMinute.objects.update(sources=1.0, feeds=1.0)
        summary_cache.made_at = float("-inf")
        assert status_now()["message"].endswith("there were problems with all components for up to 9 min.")
    # As many as the page lists.
    assert seen["message"].endswith("there were problems with 6 of the 8 components for up to 9 min.")
    assert sources["days"][-1]["up_percent"] is None
    assert "0%, down" not in page


def test_components_have_ninety_days_and_an_uptime() -> None:
    put_components(NOW.replace(hour=12, minute=0, second=0), 29)
    with time_machine.travel(NOW, tick=False):
        rest, page = component("rest"), Client().get("/status").text
    assert (rest["title"], rest["uptime_percent"], len(rest["days"])) == ("REST API", 100.0, 90)
    assert rest["days"][0] == {"day": "2026-08-23", "up_percent": None, "down_minutes": None}
    assert rest["days"][-1] == {"day": "2026-11-20", "up_percent": 100.0, "down_minutes": 0}
    assert page.count('<li class="none"') == 89 * len(NAMES)
    assert "23 Aug 2026: not measured" in page
    assert "20 Nov 2026: 100%" in page


def test_incident_that_is_over_is_told_and_one_that_is_planned_changes_nothing_either() -> None:
    make_incident(ended_at=timezone.now() + timedelta(seconds=1))
    make_incident("Planned", started_at=timezone.now() + timedelta(days=1), impact="maintenance")
    seen = status_now()
    assert seen["status"] == "operational"
    assert "Slow prices" in [each["title"] for each in seen["incidents"]]


def test_uptime_counts_the_minutes_that_were_served() -> None:
    put_components(NOW.replace(hour=12, minute=0, second=0), 20)
    put_components(NOW.replace(hour=12, minute=28, second=0), 2)
    with time_machine.travel(NOW, tick=False):
        seen = status_now()
    # From 12:00 to 12:29: 29 minutes, of which eight are missing; the newest makes up for none.
    assert seen["days"] == [{"day": "2026-11-20", "up_percent": round(100 * 21 / 29, 3)}]


def test_day_without_a_minute_was_down() -> None:
    put_components(NOW.replace(day=18, hour=23, minute=59, second=0), 1)
    put_components(NOW.replace(hour=0, minute=0, second=0), 749)
    with time_machine.travel(NOW, tick=False):
        seen = status_now()
    assert [day["up_percent"] for day in seen["days"]] == [100.0, 0.0, 100.0]
    # Of minutes, not of days: the one minute of the 18th and the 749 of the 20th weigh what they are.
    assert seen["uptime_percent"] == round(100 * 750 / (1 + 1440 + 749), 3)


@pytest.mark.parametrize("earlier", [timedelta(days=30), timedelta(days=400)])
def test_outage_stays_while_the_edge_of_the_window_passes_it(earlier: timedelta) -> None:
    put_components(NOW.replace(second=0) - earlier, 1)
    put_components(NOW.replace(hour=0, minute=0, second=0), 749)
    with time_machine.travel(NOW, tick=False):
        seen = status_now()
    assert [day["up_percent"] for day in seen["days"]] == [0.0] * 29 + [100.0]
    assert seen["uptime_percent"] == round(100 * 749 / (29 * 1440 + 749), 3)


def test_day_that_has_just_begun_weighs_nothing() -> None:
    put_components(NOW.replace(hour=23, minute=0, second=0), 30)
    with time_machine.travel(NOW.replace(day=21, hour=0, minute=0), tick=False):
        assert status_now()["uptime_percent"] == round(100 * 30 / 59, 3)


def test_page_shows_each_feed_and_outlives_its_database() -> None:
    make_instrument("BTCUSD")
    put_quote("BTCUSD")
    (feed,) = status_now()["feeds"]
    assert (feed["symbol"], feed["state"]) == ("BTCUSD", "open")
    assert 0 <= feed["age_seconds"] < 30
    summary_cache.made_at = float("-inf")
    with connection.execute_wrapper(refuse):
        seen = status_now()
    assert (seen["status"], [feed["symbol"] for feed in seen["feeds"]]) == ("outage", ["BTCUSD"])
    assert "database is not responding" in seen["message"]
    down = [each["name"] for each in seen["components"] if each["state"] == "outage"]
    assert down == ["rest", "signals", "news"]


def refuse(*_: object) -> None:
    raise OperationalError("The server closed the connection.")


def test_latency_is_that_of_the_slowest_process_and_the_page_draws_it() -> None:
    at = timezone.now().replace(second=0, microsecond=0) - timedelta(minutes=3)
    make_minutes(at, 1, p50_ms=1, p95_ms=3, p99_ms=9)
    make_minutes(at, 1, p50_ms=2, p95_ms=2, p99_ms=40, age_p99_ms=900, process="two")
    (minute,) = status_now()["latency"]
    assert (minute["p50"], minute["p95"], minute["p99"], minute["age_p99"]) == (2, 3, 40, 900)
    page = Client().get("/status").text
    assert page.count('<path class="line') == 3
    assert "50 ms" in page
    assert "<dd>within 40 ms, 900 ms by their own time</dd>" in page
    # Many visitors cost one look.
    make_incident("Later")
    assert status_now()["incidents"] == []


def test_page_shows_incident_with_its_notes_as_text_and_the_feed_leads_there() -> None:
    incident = make_incident("<script>alert(1)</script>")
    incident.notes.create(text="We look into it.")
    page, feed = Client().get("/status").text, Client().get("/status.rss")
    assert "&lt;script&gt;alert" in page
    assert "<script>alert" not in page
    assert feed["Content-Type"].startswith("application/rss+xml")
    assert f"/status#incident-{incident.pk}" in feed.text
    assert "We look into it." in page
    assert "ongoing" in page


@pytest.mark.parametrize("path", ["/status", "/status.json"])
def test_only_reading_is_possible_and_programs_of_any_page_may(path: str) -> None:
    assert Client().post(path).status_code == 405
    assert (Client().get(path).get("Access-Control-Allow-Origin") == "*") is path.endswith(".json")
