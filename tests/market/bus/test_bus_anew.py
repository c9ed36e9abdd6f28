"""A web process whose bus began anew, and engines that ended before they had written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError
from redis import Redis

from market.engine.bus.redis_bus import MAX_WAITING, RedisBus
from market.models import EngineState
from market.prices.records import JournalPosition
from tests.databases.queries import around_statements
from tests.patience import until

from .test_bus import (
    Following,
    JournalWriter,
    client,
    follow,
    number_of_entries,
    publish,
    taken,
    url,
    write_position,
)

__all__ = ["client", "url"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("transactional_db")]


def two_before(position: JournalPosition) -> JournalPosition:
    return JournalPosition(position.epoch, position.number - 2)


async def begin_anew(bus: RedisBus, following: Following, client: Redis) -> JournalPosition:
    """Two ticks of the first numbering are heard; 4 and 5, which nobody has written, are of a second one."""
    await publish(bus, 1, 2)
    await until(lambda: len(following.heard) == 2)
    before = bus.journal_position
    # More than may wait for Redis: they are given up.
    bus.publish([taken(3)] * (MAX_WAITING + 1))
    await until(lambda: bus.journal_position.epoch != before.epoch)
    await publish(bus, 4, 5)
    await until(lambda: number_of_entries(client) == 2)
    return before


def test_reader_begins_anew_with_the_numbering_once_that_is_written(url: str, client: Redis) -> None:
    async def act(bus: RedisBus, following: Following) -> None:
        await begin_anew(bus, following, client)
        await asyncio.to_thread(write_position, two_before(bus.journal_position))
        await until(lambda: 5 in following.heard)

    following = follow(url, act)

    assert following.heard == [1, 2, 4, 5]
    assert len(following.missed) == 1


def test_numbering_whose_engine_never_wrote_is_not_waited_for_once_another_has_written(
    url: str, client: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    positions: list[JournalPosition] = []

    async def act(bus: RedisBus, following: Following) -> None:
        before = await begin_anew(bus, following, client)
        await until(lambda: bus.journal_position.epoch in caplog.text)
        await bus.close()
        successor = RedisBus(url)
        # What it finds in the database is of the first numbering.
        assert await successor.open(JournalWriter("second"), before) == []
        await asyncio.to_thread(write_position, successor.journal_position)
        positions.extend((before, bus.journal_position, successor.journal_position))
        await publish(successor, 6, 7)
        await until(lambda: 7 in following.heard)
        await successor.close()

    following = follow(url, act)

    assert len({position.epoch for position in positions}) == 3
    assert following.heard == [1, 2, 6, 7]
    assert following.missed == [positions[2].epoch]


def test_numbering_that_is_not_written_yet_is_waited_for(
    url: str, client: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    looks = 0

    def note(sql: str, execute: Callable[[], Any]) -> Any:
        nonlocal looks
        looks += f'FROM "{EngineState._meta.db_table}"' in sql
        return execute()

    async def act(bus: RedisBus, following: Following) -> None:
        await begin_anew(bus, following, client)
        await until(lambda: bus.journal_position.epoch in caplog.text)
        with around_statements(note):
            # The third look begins once two that found nothing have come to their end.
            await until(lambda: looks >= 3)
        assert following.missed == []
        await asyncio.to_thread(write_position, two_before(bus.journal_position))
        await until(lambda: 5 in following.heard)

    assert follow(url, act).heard == [1, 2, 4, 5]


class NoPrices(OperationalError):
    """A cause of its own: each is told once a minute."""


def test_database_that_is_away_meanwhile_is_told_once_and_so_is_its_return(
    url: str, client: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    tries = 0

    def refuse(sql: str, _: Callable[[], Any]) -> Any:
        nonlocal tries
        tries += 1
        raise NoPrices("the database is away")

    async def act(bus: RedisBus, following: Following) -> None:
        with around_statements(refuse):
            await begin_anew(bus, following, client)
            await until(lambda: tries >= 5)
        await asyncio.to_thread(write_position, two_before(bus.journal_position))
        await until(lambda: 5 in following.heard)

    follow(url, act)

    told = [record.message for record in caplog.records if "wait for the database" in record.message]
    assert len(told) == 2
    assert told[0] == "The prices wait for the database: the database is away"
    assert ": over after " in told[1]
