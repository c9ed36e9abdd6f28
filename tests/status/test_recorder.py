"""Each minute served is a row, and old ones go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from status.models import Minute
from status.recorder import MinuteRecorder

NOON = datetime(2026, 11, 20, 12, 1, 1, tzinfo=UTC)
pytestmark = pytest.mark.django_db


def write(at: datetime, **seen: float) -> None:
    recorder, at_ms = MinuteRecorder(), int(at.timestamp() * 1000)
    if seen:
        recorder.looks.add(at_ms - 61_000, dict(seen))
    recorder.write(at_ms)


def test_minute_is_written_once_a_process_and_only_if_it_saw_an_engine() -> None:
    # A process that was not there, or heard no engine.
    write(NOON)
    write(NOON, market=0.0)
    assert not Minute.objects.exists()
    write(NOON, market=1 / 12)
    # The minute before, though nobody listened.
    minute = Minute.objects.get()
    assert (minute.at, minute.p99_ms) == (datetime(2026, 11, 20, 12, 0, tzinfo=UTC), None)
    write(NOON, market=1.0)
    assert Minute.objects.count() == 2


@pytest.mark.parametrize("market", [1.0, 0.0])
def test_minutes_of_over_a_month_ago_go_but_for_the_first(market: float) -> None:
    for days in (40, 35, 32, 30):
        Minute.objects.create(at=NOON - timedelta(days=days), process="old")
    write(NOON, market=market)
    ages = [(NOON - minute.at).days for minute in Minute.objects.order_by("at")]
    assert ages == [40, 30, 0][: 2 + int(market)]
