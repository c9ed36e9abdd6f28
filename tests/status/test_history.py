"""The uptime of each component by day, and what of it nobody knows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from status.models import NAMES, ComponentMinute, Minute
from status.summary import DAYS, ComponentDay, ComponentHistory, component_histories, past_days, uptime_text

NOW = datetime(2026, 11, 20, 12, 30, 20, tzinfo=UTC)
MIDNIGHT = NOW.replace(hour=0, minute=0, second=0)
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _fresh() -> None:
    past_days.forget()


def put(first: datetime, count: int, **given: float | None) -> None:
    shares: dict[str, Any] = dict.fromkeys(NAMES, 1.0) | given
    at = (first + timedelta(minutes=n) for n in range(count))
    ComponentMinute.objects.bulk_create([ComponentMinute(at=each, day=each.date(), **shares) for each in at])


def history(name: str = "rest", now: datetime = NOW) -> ComponentHistory:
    return component_histories(now).components[name]


def percents(name: str = "rest") -> list[float | None]:
    """Of the days that are known."""
    return [day.up_percent for day in history(name).days if day.up_percent is not None]


def test_minute_that_nobody_wrote_down_was_down_for_all() -> None:
    assert history().uptime_percent is None
    assert {day.level for day in history().days} == {"none"}
    put(MIDNIGHT, 700)
    assert history().days[-1].down_minutes == 49
    assert percents("rest") == percents("sources") == [round(100 * 700 / 749, 3)]


def test_minute_that_worked_in_part_counts_in_part() -> None:
    put(MIDNIGHT, 749, feeds=0.5)
    assert (percents("feeds"), percents("rest")) == ([50.0], [100.0])
    assert history("feeds").days[-1].down == "6 h 14 min"
    # As the mean of four processes.
    ComponentMinute.objects.update(reports=4, rest=3.0)
    assert percents("rest") == [75.0]


def test_what_could_not_be_judged_is_neither_up_nor_down() -> None:
    put(MIDNIGHT - timedelta(days=1), 1440, feeds=None)
    put(MIDNIGHT, 349, feeds=None)
    put(MIDNIGHT + timedelta(minutes=349), 400)
    days = history("feeds").days
    assert [day.up_percent for day in days[-2:]] == [None, 100.0]
    assert history("feeds").uptime_percent == 100.0
    # Missing minutes count by the share of the day that was measured.
    ComponentMinute.objects.filter(at__gte=MIDNIGHT + timedelta(minutes=600)).delete()
    assert history("feeds").days[-1].down_minutes == round(149 * 251 / 600)


def test_what_was_never_measured_is_not_down_in_an_outage() -> None:
    """News sources of an installation that has none, while nobody serves for a night."""
    put(MIDNIGHT - timedelta(days=2), 1440, sources=None)
    put(MIDNIGHT + timedelta(minutes=600), 149, sources=None)
    days = history("sources").days[-3:]
    assert [(day.level, day.uptime) for day in days] == [("none", "not measured")] * 3
    assert history("sources").uptime_percent is None
    assert [day.level for day in history("rest").days[-3:]] == ["good", "bad", "bad"]


def test_part_of_a_minute_is_told_as_down() -> None:
    put(MIDNIGHT, 748)
    put(MIDNIGHT + timedelta(minutes=748), 1, rest=0.77)
    day = history("rest").days[-1]
    assert (day.down_minutes, day.down) == (0.23, "14 s")
    assert day.up_percent == round(100 * 748.77 / 749, 3)


@pytest.mark.parametrize(
    ("percent", "words"),
    [
        (None, "not measured"),
        (100.0, "100%"),
        (99.999, "99.99%"),
        (66.667, "66.66%"),
        (0.29, "0.29%"),
        (0, "0%"),
    ],
)
def test_uptime_is_never_rounded_up(percent: float | None, words: str) -> None:
    assert ComponentDay("2026-11-20", percent).uptime == words


@pytest.mark.served
def test_moment_of_outage_in_three_months_is_not_rounded_away() -> None:
    put(MIDNIGHT - timedelta(days=89), 89 * 1440)
    put(MIDNIGHT, 1, rest=0.9)
    put(MIDNIGHT + timedelta(minutes=1), 748)
    assert uptime_text(history().uptime_percent) == "99.99%"
    assert history("news").uptime_percent == 100.0


def test_outage_of_days_is_red_between_days_that_worked() -> None:
    put(MIDNIGHT - timedelta(days=3), 1440)
    put(MIDNIGHT, 749)
    assert [day.level for day in history().days[-4:]] == ["good", "bad", "bad", "good"]
    assert history().days[-2].down == "24 h"


@pytest.mark.parametrize(("down", "level"), [(1, "good"), (2, "fair"), (14, "fair"), (15, "bad")])
def test_colour_of_a_day(down: int, level: str) -> None:
    put(MIDNIGHT - timedelta(days=1), 1440 - down)
    put(MIDNIGHT - timedelta(minutes=down), down, rest=0.0)
    assert history().days[-2].level == level


def test_outage_stays_while_the_edge_of_the_window_passes_it() -> None:
    put(MIDNIGHT - timedelta(days=400), 1)
    put(MIDNIGHT, 749)
    assert [day.level for day in history().days] == ["bad"] * (DAYS - 1) + ["good"]


def test_day_that_is_over_moves_on_at_midnight() -> None:
    put(MIDNIGHT, 1440)
    assert percents() == [100.0]
    ComponentMinute.objects.filter(at__gte=MIDNIGHT + timedelta(minutes=720)).update(rest=0.0)
    tomorrow = history(now=NOW + timedelta(days=1, hours=-12))
    assert [day.up_percent for day in tomorrow.days[-2:]] == [50.0, 0.0]


def test_minutes_before_components_were_looked_at_tell_of_the_price_stream() -> None:
    at = [MIDNIGHT - timedelta(days=1) + timedelta(minutes=n) for n in range(1440 + 700)]
    Minute.objects.bulk_create([Minute(at=each, process="one") for each in at if each.minute])
    put(MIDNIGHT + timedelta(minutes=600), 149, market=0.5)
    assert [day.level for day in history("rest").days[-2:]] == ["none", "good"]
    assert history("market").days[-2].up_percent == round(100 * 1416 / 1439, 3)
    # Whatever such minutes say of the time since.
    assert history("market").days[-1].down_minutes == 10 + 149 / 2
