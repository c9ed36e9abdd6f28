"""Each minute served is a row, and old ones go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from status.models import Minute
from status.recorder import Recorder

NOON = datetime(2026, 11, 20, 12, 1, 1, tzinfo=UTC)
pytestmark = pytest.mark.django_db


def write(at: datetime) -> None:
    Recorder().write(int(at.timestamp() * 1000))


def test_minute_before_is_written_down_though_nobody_listened() -> None:
    write(NOON)
    (minute,) = Minute.objects.all()
    assert minute.at == datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
    assert minute.p99_ms is None


def test_same_minute_is_written_once_a_process() -> None:
    recorder = Recorder()
    for _ in range(2):
        recorder.write(int(NOON.timestamp() * 1000))
    write(NOON)
    assert Minute.objects.count() == 2


def test_minutes_of_over_a_month_ago_go() -> None:
    Minute.objects.create(at=NOON - timedelta(days=32), process="old")
    Minute.objects.create(at=NOON - timedelta(days=30), process="old")
    write(NOON)
    assert [minute.at.day for minute in Minute.objects.order_by("at")] == [21, 20]
