"""What accounts use is counted in memory, and added up in the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import OperationalError

from accounts import usage
from accounts.models import Account, ApiKey, Minute, Usage, UsageCounts
from accounts.panel.usage import BARS_HEIGHT, bars
from accounts.usage import LastUse, UsageBuffer, UseRecorder
from core.threads import in_thread
from tests.databases.queries import around_statements, count_queries
from tests.factories import NOON, make_account, make_key

pytestmark = pytest.mark.services

NOON_S = int(NOON.timestamp())
MIDNIGHT = NOON - timedelta(hours=12)


@pytest.fixture
def account(transactional_db: None) -> Account:
    return make_account()


def rows(account: Account) -> list[tuple[str, datetime, int, int]]:
    found = account.usage.order_by("-span", "starts_at")
    return list(found.values_list("span", "starts_at", "requests", "streams"))


def add(account: Account, at: int, *spent: int) -> None:
    Usage.objects.add({(account.pk, at): UsageCounts(*spent)})


def test_minutes_add_up_and_so_do_their_days(account: Account) -> None:
    add(account, NOON_S, 3, 1)
    add(account, NOON_S, 4)
    Usage.objects.add(
        {(account.pk, NOON_S + 60): UsageCounts(5), (account.pk, NOON_S + 120): UsageCounts(0, 2)}
    )
    assert rows(account) == [
        ("minute", NOON, 7, 1),
        ("minute", NOON + timedelta(minutes=1), 5, 0),
        ("minute", NOON + timedelta(minutes=2), 0, 2),
        ("day", MIDNIGHT, 12, 3),
    ]
    # Many are one write.
    many: dict[Minute, UsageCounts] = {
        (account.pk, NOON_S + 60 * place): UsageCounts(1) for place in range(200)
    }
    with count_queries() as asked:
        Usage.objects.add(many)
    assert len([sql for sql in asked if "accounts_" in sql]) <= 2
    assert account.usage.get(span="day").requests == 212


def test_account_that_has_gone_is_left_out(account: Account) -> None:
    gone = make_account()
    both = {(gone.pk, NOON_S): UsageCounts(1), (account.pk, NOON_S): UsageCounts(2)}
    gone.user.delete()
    Usage.objects.add(both)
    assert [row.requests for row in Usage.objects.all()] == [2, 2]


def test_minutes_are_kept_for_2_days_and_days_for_400(account: Account) -> None:
    for days in (0, 1, 3, 399, 401):
        add(account, NOON_S - days * 86_400, 1)
    Usage.objects.prune(NOON)
    assert [account.usage.filter(span=span).count() for span in ("minute", "day")] == [2, 4]


@time_machine.travel(NOON, tick=False)
def test_what_is_noted_is_written_once(account: Account) -> None:
    tally = UsageBuffer()
    for _ in range(3):
        tally.note_request(account.pk)
    tally.note_stream(account.pk)

    async def record() -> None:
        await tally.record()
        await tally.record()

    asyncio.run(record())
    day = account.usage.get(span="day")
    assert (day.requests, day.streams, day.starts_at) == (3, 1, MIDNIGHT)


async def test_what_is_noted_is_written_as_the_service_stops(account: Account) -> None:
    await in_thread(make_key, account)
    used = LastUse(ApiKey)
    recorder = UseRecorder(used)
    await recorder.start()
    used.at[await in_thread(lambda: ApiKey.objects.get().pk)] = NOON_S
    usage.usage_buffer.note_stream(account.pk)
    await recorder.stop()
    assert await in_thread(lambda: ApiKey.objects.get().last_used_at) == NOON
    assert await in_thread(lambda: account.usage.get(span="day").streams) == 1


@contextmanager
def away(meanwhile: Callable[[], None]) -> Iterator[None]:
    """A database that answers nothing, and what happens before it says so."""

    def refuse(sql: str, run: Callable[[], Any]) -> Any:
        meanwhile()
        raise OperationalError("the database is away")

    with around_statements(refuse):
        yield


def record_in_vain(tally: UsageBuffer, account: Account) -> None:
    """Something is noted before and meanwhile."""
    tally.note_request(account.pk)
    with away(lambda: tally.note_request(account.pk)), pytest.raises(OperationalError):
        asyncio.run(tally.record())


@pytest.mark.parametrize(("most", "kept"), [(usage.MOST_WAITING, 2), (0, 1)], ids=["few", "too many"])
def test_nothing_is_lost_while_the_database_is_away_but_told_where_too_much_waits(
    account: Account, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, most: int, kept: int
) -> None:
    monkeypatch.setattr(usage, "MOST_WAITING", most)
    tally = UsageBuffer()
    record_in_vain(tally, account)
    asyncio.run(tally.record())
    assert account.usage.get(span="day").requests == kept
    assert [record.levelname for record in caplog.records] == ["ERROR"] * (kept == 1)


def test_highest_bar_is_as_high_as_the_drawing_and_none_stands_for_nothing() -> None:
    drawn = bars([0, 1, 4, 2])
    assert drawn == (4, f"M1.5 {BARS_HEIGHT}V75.0M2.5 {BARS_HEIGHT}V0.0M3.5 {BARS_HEIGHT}V50.0", 4, 7)
    assert bars([]) == (0, "", 0, 0)
    assert bars([0, 0]) == (2, "", 0, 0)
