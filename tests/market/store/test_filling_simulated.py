"""Simulated minutes that are made at the start: whoever judges by prices is told of them, whatever fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.conf import LazySettings
from django.db import OperationalError

from core.threads import in_thread
from instruments.catalogue import catalogue
from instruments.sources import DEMO
from market.engine.engine import Engine
from market.engine.runner import Runner
from market.prices.quotes import Prices
from market.prices.records import Tick
from market.store.loading import load
from tests.databases.queries import around_statements
from tests.factories import NOON, make_instrument
from tests.market.running import IdleListener, make_runner
from tests.market.ticking import NOON_MS

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("transactional_db"),
    pytest.mark.services,
]
SYMBOLS = ("EURUSD", "GBPUSD")


class StoredMinutes(IdleListener):
    def __init__(self) -> None:
        self.heard: list[str] = []

    async def stored(self, symbols: Collection[str]) -> None:
        self.heard += sorted(symbols)

    def notes(self, *, is_behind: bool) -> Callable[[], None]:
        self.heard.append("notes, behind" if is_behind else "notes")
        return super().notes(is_behind=is_behind)


async def started(*listeners: StoredMinutes) -> Runner:
    runner = make_runner(Engine(Prices("bid"), DEMO), listeners=listeners)
    assert await runner.writer.try_lease()
    loaded = await in_thread(load, runner.engine.prices, DEMO)
    runner.engine.resume(loaded.checkpoints, NOON_MS)
    runner.writer.is_behind = True
    return runner


async def filled(clock: time_machine.Traveller, listener: StoredMinutes, fails_at: int) -> None:
    """Five minutes after the last tick of two instruments; reading minutes fails at one of the times."""
    await in_thread(catalogue.load_now)
    before = await started()
    for symbol in SYMBOLS:
        tick = Tick(symbol, 1.5, 1.5002, NOON_MS - 70_000, 1.0)
        assert before.engine.accept(tick, tick.time_ms, DEMO) is None
    await before.writer.flush()
    await in_thread(before.writer.lease.leave)
    clock.shift(timedelta(minutes=5))
    after, reads = await started(listener), 0

    def fail(sql: str, run: Callable[[], Any]) -> Any:
        nonlocal reads
        reads += "AND opened_at >= " in sql
        if reads == fails_at and "AND opened_at >= " in sql:
            raise OperationalError("the database went away")
        return run()

    with around_statements(fail):
        await after.series.fill_simulated()
    await in_thread(after.writer.lease.leave)


@pytest.mark.parametrize(("fails_at", "told"), [(0, SYMBOLS), (2, SYMBOLS[:1]), (3, SYMBOLS), (4, SYMBOLS)])
def test_minutes_that_are_written_are_told_whatever_fails_then(
    settings: LazySettings, fails_at: int, told: tuple[str, ...]
) -> None:
    settings.DEMO = True
    for symbol in SYMBOLS:
        make_instrument(symbol)
    listener = StoredMinutes()
    with time_machine.travel(NOON + timedelta(seconds=20), tick=False) as clock:
        asyncio.run(filled(clock, listener, fails_at))

    # What is noted for a successor is behind until then.
    assert listener.heard == ["notes, behind", *told, "notes"]
