"""When a story was published, and when a source is asked again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from news.ingest.dating import published_at, read_time
from news.ingest.schedule import pause

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


def ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def test_a_date_is_kept() -> None:
    at = NOON - timedelta(hours=3, milliseconds=250)
    assert published_at(ms(at), NOON) == at


def test_without_a_date_it_is_new_now() -> None:
    assert published_at(None, NOON) == NOON


@pytest.mark.parametrize("ahead", [timedelta(seconds=1), timedelta(days=1), timedelta(days=365_000)])
def test_a_date_to_come_is_brought_back(ahead: timedelta) -> None:
    assert published_at(ms(NOON + ahead), NOON) == NOON


def test_what_is_too_old_is_no_news() -> None:
    assert published_at(ms(NOON - timedelta(days=7)), NOON) == NOON - timedelta(days=7)
    assert published_at(ms(NOON - timedelta(days=7, milliseconds=1)), NOON) is None
    assert published_at(0, NOON) is None


@pytest.mark.parametrize("fields", [(99999, 1, 1), (10_000, 1, 1), (0, 1, 1), (2026, 13, 1), (2026, 11, 99)])
def test_a_date_that_cannot_be_is_none_or_some_day(fields: tuple[int, int, int]) -> None:
    at_ms = read_time((*fields, 0, 0, 0, 0, 1, 0))
    assert at_ms is None or published_at(at_ms, NOON) in (NOON, None)


def test_a_source_is_asked_at_its_interval() -> None:
    assert pause(300, failures=0) == timedelta(minutes=5)


@pytest.mark.parametrize(
    ("failures", "minutes"), [(1, 10), (2, 20), (3, 40), (8, 1280), (9, 1440), (1_000_000, 1440)]
)
def test_each_failure_doubles_the_pause_up_to_a_day(failures: int, minutes: int) -> None:
    assert pause(300, failures) == timedelta(minutes=minutes)


def test_a_source_of_once_a_day_is_not_asked_more_often_for_failing() -> None:
    assert pause(86_400, failures=5) == timedelta(days=1)


@pytest.mark.parametrize(("retry_after_s", "hours"), [(7200, 2), (60, 1 / 6), (10**9, 24)])
def test_what_the_server_asks_for_is_granted_up_to_a_day(retry_after_s: int, hours: float) -> None:
    assert pause(300, 1, retry_after_s) == timedelta(hours=hours)
