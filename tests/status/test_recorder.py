"""Each minute served is a row, and old ones go."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from core.threads import in_thread
from market.runtime import LOOK_S, SILENT_S, market
from status.models import Minute
from status.recorder import MinuteRecorder

NOON = datetime(2026, 11, 20, 12, 1, 1, tzinfo=UTC)
pytestmark = pytest.mark.django_db


def write(at: datetime, *, is_heard: bool = True) -> None:
    MinuteRecorder().write(int(at.timestamp() * 1000), is_heard=is_heard)


@pytest.mark.django_db(transaction=True)
async def test_minute_counts_where_the_engine_was_heard_to_its_end() -> None:
    hearing = market.liveness
    hearing.start()
    await MinuteRecorder().note()
    assert await in_thread(Minute.objects.count) == 1
    began_s, looks = time.monotonic(), int(SILENT_S / LOOK_S) + 2
    for look in range(1, looks + 1):
        hearing.look(began_s + look * LOOK_S)
    await MinuteRecorder().note()
    hearing.heard(began_s + looks * LOOK_S)
    hearing.stop()
    assert await in_thread(Minute.objects.count) == 1


def test_minute_is_written_once_a_process_and_only_with_an_engine() -> None:
    write(NOON, is_heard=False)
    assert not Minute.objects.exists()
    recorder = MinuteRecorder()
    for _ in range(2):
        recorder.write(int(NOON.timestamp() * 1000), is_heard=True)
    # The minute before, though nobody listened.
    minute = Minute.objects.get()
    assert (minute.at, minute.p99_ms) == (datetime(2026, 11, 20, 12, 0, tzinfo=UTC), None)
    write(NOON)
    assert Minute.objects.count() == 2


@pytest.mark.parametrize("is_heard", [True, False])
def test_minutes_of_over_a_month_ago_go_but_for_the_first(is_heard: bool) -> None:
    for days in (40, 35, 32, 30):
        Minute.objects.create(at=NOON - timedelta(days=days), process="old")
    write(NOON, is_heard=is_heard)
    ages = [(NOON - minute.at).days for minute in Minute.objects.order_by("at")]
    assert ages == [40, 30, 0][: 2 + is_heard]
