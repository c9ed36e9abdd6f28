"""What Redis holds of a market that is open, and of which no tick comes for 48 hours of the test's clock."""

from __future__ import annotations

from pathlib import Path

import pytest
from redis import Redis

from core.times import MINUTE_MS
from market.engine.bus.redis_bus import RedisBus
from market.engine.status import EngineStatus, sign_of_life
from market.prices.records import AnyRecord, ClosedCandle, EmptyMinute
from market.store.lease import own_name
from tests.market.bus.buses import NOWHERE, JournalWriter
from tests.market.engine_status import make_instrument_status
from tests.market.ticking import NOON_MS
from tests.nightly.figures import note
from tests.programs.services import redis

HOURS, MEGABYTE = 48, 1_000_000


def flat_minutes(symbols: list[str]) -> list[AnyRecord]:
    """As all instruments close them at once."""
    numbers = HOURS * 60, NOON_MS + MINUTE_MS, NOON_MS
    candle = ClosedCandle("1m", *numbers, 1.08, 1.08, 1.08, 1.08, 0.0)
    return [EmptyMinute(symbol, NOON_MS, "kraken", [candle]) for symbol in symbols]


@pytest.mark.parametrize(("instruments", "most_mb"), [(100, 64), (5_000, 256)])
async def test_redis_stays_small_over_a_quiet_weekend(tmp_path: Path, instruments: int, most_mb: int) -> None:
    symbols, now_s = [f"SYMBOL{number}" for number in range(instruments)], 0.0
    statuses = [make_instrument_status(symbol) for symbol in symbols]
    status = EngineStatus(NOON_MS, own_name(), "epoch", instruments=statuses)
    # Of later minutes only the times differ, and each record takes as many bytes.
    alive: list[AnyRecord] = [sign_of_life(status)]
    flat = flat_minutes(symbols)
    with redis(tmp_path) as url, Redis.from_url(url) as client:
        bus = RedisBus(url, clock=lambda: now_s)
        await bus.open(JournalWriter(), NOWHERE)
        bus.written(bus.journal_position)
        for minute in range(HOURS * 60):
            # It is overwritten: how often changes nothing.
            if minute % 60 == 0:
                bus.tell(status)
            for _ in range(60):
                bus.publish(alive)
                bus.seal()
            bus.publish(flat)
            now_s += 60
            await bus.settle()
            bus.written(bus.journal_position)
        memory = client.info("memory")
        await bus.close()
    peak = memory["used_memory_peak"]
    figure = f"Redis over a quiet weekend, {instruments} instruments"
    held = peak < most_mb * MEGABYTE
    note(figure, f"below {most_mb} MB", f"at most {peak / MEGABYTE:.1f} MB", held=held)
    assert held
