"""Simulated prices give way to real ones, or the other way round, while nobody serves: who heard all of the
one kind does not go on with the other as if nothing had happened."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from django.conf import LazySettings

from core.clock import now_ms
from core.threads import in_thread
from instruments.catalogue import catalogue
from instruments.models import Instrument
from market import runtime as market
from market.engine.bus.journal import RecentRecords
from market.prices.records import ClosedCandle, SeriesBegan, Tick, TickAccepted
from market.store.checkpoints import Checkpoint
from market.streams import market_streams
from tests.factories import make_instrument, put_candles

from .returning import goes_on

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("transactional_db")]
BEGAN_MS, EPOCH = 1_795_000_000_000, "e1"


def checkpoint(quoted_ms: int | None, began_ms: int | None) -> Checkpoint:
    last = None if quoted_ms is None else Tick("EURUSD", 1.1, 1.2, quoted_ms)
    return Checkpoint(last, None, 7, 3, kind_since_ms=began_ms)


@pytest.mark.parametrize(
    ("quoted_ms", "began_ms", "is_so"),
    [
        (BEGAN_MS - 1, BEGAN_MS, False),
        (None, BEGAN_MS, False),
        (BEGAN_MS, BEGAN_MS, True),
        (BEGAN_MS, None, True),
        (None, None, True),
    ],
)
def test_nobody_goes_on_into_a_series_that_has_no_price_yet(
    quoted_ms: int | None, began_ms: int | None, is_so: bool
) -> None:
    make_instrument("EURUSD")
    catalogue.load_now()

    market_streams.begin_numbering(EPOCH, {"EURUSD": checkpoint(quoted_ms, began_ms)})

    assert goes_on(market_streams.prices, EPOCH, 7) is is_so
    assert goes_on(market_streams.order_flow, EPOCH, 3) is is_so


def test_nobody_goes_on_over_a_beginning_that_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    make_instrument("EURUSD")
    catalogue.load_now()
    past, at_ms = RecentRecords(), now_ms()
    ticks = [TickAccepted("EURUSD", 1.1, 1.2, at_ms, 1.0, seq, seq - 4, 1.0) for seq in (6, 7)]
    for tick in ticks:
        tick.closed = [ClosedCandle("1m", tick.seq - 3, at_ms, at_ms - 60_000, *(1.1,) * 4, 1.0)]
    past.add(at_ms, [ticks[0], SeriesBegan("EURUSD", False, at_ms, 6), ticks[1]])
    monkeypatch.setattr(market, "take_recent", lambda: past)

    made = checkpoint(at_ms, at_ms - 60_000)._replace(candle_seqs={"1m": 4})
    put_candles("EURUSD", "1m", [at_ms - 60_000])
    market_streams.begin_numbering(EPOCH, {"EURUSD": made})

    assert [goes_on(market_streams.prices, EPOCH, seq) for seq in (6, 7)] == [False, True]
    assert [goes_on(market_streams.order_flow, EPOCH, seq) for seq in (2, 3)] == [False, True]
    assert [goes_on(market_streams.candles, EPOCH, seq) for seq in (3, 4)] == [False, True]


@pytest.mark.parametrize(("closed_ms", "is_so"), [(None, False), (BEGAN_MS, False), (BEGAN_MS + 1, True)])
def test_nobody_goes_on_into_a_series_of_which_nothing_was_closed(closed_ms: int | None, is_so: bool) -> None:
    make_instrument("EURUSD")
    catalogue.load_now()
    market.prices.clear()
    if closed_ms is not None:
        put_candles("EURUSD", "1m", [closed_ms - 60_000])
    made = checkpoint(BEGAN_MS + 5, BEGAN_MS)._replace(candle_seqs={"1m": 9})

    market_streams.begin_numbering(EPOCH, {"EURUSD": made})

    assert goes_on(market_streams.candles, EPOCH, 9) is is_so


@pytest.mark.parametrize("source", ["demo", "push"])
def test_source_that_changes_between_two_runs_is_told(
    settings: LazySettings, tmp_path: Path, source: str
) -> None:
    settings.VAR_DIR, settings.REDIS_URL, settings.DEMO = tmp_path, "", True
    make_instrument("EURUSD", source="push")
    catalogue.load_now()

    async def serve_twice() -> tuple[bool, bool]:
        await market.start()
        assert await market.push("push", [Tick("EURUSD", 1.1, 1.2, now_ms(), 1.0)]) == [None]
        epoch, position = market.market.epoch, market_streams.prices.recent.positions(["EURUSD"])["EURUSD"]
        before = goes_on(market_streams.prices, epoch, position)
        await market.stop()
        await in_thread(Instrument.objects.filter(symbol="EURUSD").update, source=source)
        await catalogue.load()
        await market.start()
        try:
            assert market.market.epoch == epoch
            return before, goes_on(market_streams.prices, epoch, position)
        finally:
            await market.stop()

    assert asyncio.run(serve_twice()) == (True, source == "push")
