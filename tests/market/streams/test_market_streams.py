"""What clients that come back are told when a numbering or a series begins, changes or ends, and of records
that nobody wanted when they came."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import cast

import pytest
from django.conf import LazySettings
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType
from time_machine import Traveller

from core.clock import now_ms
from core.threads import in_thread
from instruments.catalogue import catalogue
from instruments.models import Instrument
from market import runtime as market
from market.engine.bus.journal import KEEP_MS, RecentRecords
from market.prices.records import (
    AbsorptionFound,
    AnyRecord,
    CandlesEnded,
    ClosedCandle,
    SeriesBegan,
    Tick,
    TickAccepted,
)
from market.store.checkpoints import Checkpoint
from market.streams import market_streams
from market.streams.hub.hub import AT_ONCE
from market.streams.hub.subscribers import ignore_end
from market.streams.market_streams import NumberedStream
from market.streams.protocol.messages import KINDS, Resume, Subscribe
from market.streams.protocol.subscriptions import Subscriptions
from market.streams.resume import CANDLES_KEPT_MS, ReplayAllowance
from market.streams.wire import SEQ
from serving.websocket.connection import WebSocketConnection
from tests.factories import make_instrument, put_candles
from tests.patience import until

from .hub.hubs import RecordedConnection

pytestmark = pytest.mark.django_db
EPOCH, BEGAN_MS, LAST = "of this test", 1_795_000_000_000, 7
Opened = tuple[dict[str, int] | UnsetType, list[str] | UnsetType, list[bytes]]


@pytest.fixture(autouse=True)
def _instrument(own_market: None) -> Iterator[None]:
    make_instrument("EURUSD", source="push")
    catalogue.load_now()
    yield
    market_streams.stop()


def key_of(stream: NumberedStream) -> str:
    return "EURUSD/1m" if stream.kind.has_timeframes else "EURUSD"


def opening(stream: NumberedStream, position: int | None, epoch: str = EPOCH) -> Opened:
    """Its positions, what is unrecovered and the frames after them."""
    subscribed = Subscriptions()
    message = Subscribe(
        symbols=["EURUSD"],
        timeframes=frozenset({"1m"}) if stream.kind.has_timeframes else UNSET,
        features=frozenset({"seq", "snapshot"}),
        resume=UNSET if position is None else Resume(epoch, {key_of(stream): position}),
    )
    change = subscribed.subscribe(message, lambda _: True)
    reply, frames = stream.open(message, subscribed, change, now_ms(), ReplayAllowance())
    return reply.positions, reply.unrecovered, list(frames)


def goes_on(stream: NumberedStream, position: int, epoch: str = EPOCH) -> bool:
    """Whether a client that had this frame last is told that it missed nothing."""
    return opening(stream, position, epoch)[1] is UNSET


def test_streams_are_all_kinds_with_numbers() -> None:
    assert [stream.kind for stream in market_streams.STREAMS] == [kind for kind in KINDS if kind.is_numbered]


async def test_write_is_timed_from_the_acceptance_of_a_tick_and_from_its_own_time(clock: Traveller) -> None:
    hub, at_ms = market_streams.prices.hub, now_ms()
    hub.subscribe(hub.join(RecordedConnection(), lambda: None), ["EURUSD"])
    market_streams.publish([TickAccepted("EURUSD", 1.1, 1.2, at_ms - 900, 1.0, 1, accepted_ms=at_ms - 20)])
    hub.flush()
    assert [(each.count, each.sum_ms) for each in (hub.latency, hub.ages)] == [(1, 20), (1, 900)]


@pytest.mark.parametrize("stream", market_streams.STREAMS, ids=lambda stream: stream.kind.name)
def test_stream_begins_with_the_epoch_and_the_numbers_and_ends_with_its_series(
    stream: NumberedStream,
) -> None:
    quoted = Tick("EURUSD", 1.1, 1.2, now_ms())
    checkpoint = Checkpoint(quoted, None, LAST, LAST, candle_seqs={"1m": LAST})
    market_streams.begin_numbering(EPOCH, {"EURUSD": checkpoint})

    assert opening(stream, LAST)[0] == {key_of(stream): LAST}
    assert goes_on(stream, LAST)
    market_streams.publish([SeriesBegan("EURUSD", False, now_ms(), LAST, 1.1, 1.2)])
    assert not goes_on(stream, LAST)
    market_streams.stop()
    assert stream.recent.epoch == ""


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
def test_no_client_goes_on_into_a_series_that_has_no_price_yet(
    quoted_ms: int | None, began_ms: int | None, is_so: bool
) -> None:
    last = None if quoted_ms is None else Tick("EURUSD", 1.1, 1.2, quoted_ms)
    checkpoint = Checkpoint(last, None, LAST, 3, kind_since_ms=began_ms)

    market_streams.begin_numbering(EPOCH, {"EURUSD": checkpoint})

    assert goes_on(market_streams.prices, LAST) is goes_on(market_streams.order_flow, 3) is is_so


@pytest.mark.parametrize(("closed_ms", "is_so"), [(None, False), (BEGAN_MS, False), (BEGAN_MS + 1, True)])
def test_no_client_goes_on_into_a_series_of_which_nothing_was_closed(
    closed_ms: int | None, is_so: bool
) -> None:
    market.prices.clear()
    if closed_ms is not None:
        put_candles("EURUSD", "1m", [closed_ms - 60_000])
    quoted = Tick("EURUSD", 1.1, 1.2, BEGAN_MS + 5)
    checkpoint = Checkpoint(quoted, None, LAST, 3, kind_since_ms=BEGAN_MS, candle_seqs={"1m": 9})

    market_streams.begin_numbering(EPOCH, {"EURUSD": checkpoint})

    assert goes_on(market_streams.candles, 9) is is_so


def test_no_client_goes_on_over_a_beginning_that_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    past, at_ms = RecentRecords(), now_ms()
    ticks = [TickAccepted("EURUSD", 1.1, 1.2, at_ms, 1.0, seq, seq - 4, 1.0) for seq in (6, 7)]
    for tick in ticks:
        tick.closed = [ClosedCandle("1m", tick.seq - 3, at_ms, at_ms - 60_000, *(1.1,) * 4, 1.0)]
    past.add(at_ms, [ticks[0], SeriesBegan("EURUSD", False, at_ms, 6), ticks[1]])
    monkeypatch.setattr(market, "take_recent", lambda: past)
    quoted, began_ms = Tick("EURUSD", 1.1, 1.2, at_ms), at_ms - 60_000
    checkpoint = Checkpoint(quoted, None, LAST, 3, kind_since_ms=began_ms, candle_seqs={"1m": 4})
    put_candles("EURUSD", "1m", [began_ms])

    market_streams.begin_numbering(EPOCH, {"EURUSD": checkpoint})

    for stream, last in zip(market_streams.STREAMS, (7, 3, 4), strict=True):
        assert [goes_on(stream, seq) for seq in (last - 1, last)] == [False, True]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("source", ["demo", "push"])
def test_source_that_changes_between_two_runs_is_told(
    settings: LazySettings, tmp_path: Path, source: str
) -> None:
    settings.VAR_DIR, settings.REDIS_URL, settings.DEMO = tmp_path, "", True
    prices = market_streams.prices

    async def serve_twice() -> tuple[bool, bool]:
        await market.start()
        assert await market.push("push", [Tick("EURUSD", 1.1, 1.2, now_ms(), 1.0)]) == [None]
        epoch, position = market.market.epoch, prices.recent.positions(["EURUSD"])["EURUSD"]
        before = goes_on(prices, position, epoch)
        await market.stop()
        await in_thread(Instrument.objects.filter(symbol="EURUSD").update, source=source)
        await catalogue.load()
        await market.start()
        try:
            assert market.market.epoch == epoch
            return before, goes_on(prices, position, epoch)
        finally:
            await market.stop()

    assert asyncio.run(serve_twice()) == (True, source == "push")


def records_of(kinds: Sequence[str]) -> list[AnyRecord]:
    records, seq, flow_seq, candles = list[AnyRecord](), 0, 0, count(1)
    for kind in kinds:
        at_ms = now_ms()
        if kind == "absorption":
            flow_seq += 1
            records.append(AbsorptionFound("EURUSD", flow_seq, "buy", 1.1, 5.0, 1.0, 0.1, 3.0, at_ms))
        elif kind == "end":
            records.append(CandlesEnded("EURUSD", at_ms))
        elif kind == "close":
            records.append(CandlesEnded("EURUSD", at_ms, [candle(next(candles))]))
        else:
            seq, is_trade = seq + 1, kind == "trade"
            flow_seq += is_trade
            flow = (flow_seq, 1.0, 2.0, 3.0, 1.1) if is_trade else ()
            tick = TickAccepted("EURUSD", 1.1 + seq / 1_000, 1.2, at_ms, 1.0, seq, *flow)
            tick.closed = [candle(next(candles))] if kind == "close by a tick" else None
            records.append(tick)
    return records


def candle(seq: int) -> ClosedCandle:
    return ClosedCandle("1m", seq, seq * 60_000, (seq - 1) * 60_000, 1.1, 1.2, 1.0, 1.15, 3.0)


kinds = st.lists(
    st.sampled_from(["quote", "trade", "absorption", "end", "close", "close by a tick"]),
    min_size=1,
    max_size=30,
)


@hypothesis_settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(kinds, st.data())
def test_kept_and_published_records_open_alike(kinds: list[str], data: st.DataObject) -> None:
    def openings() -> list[Opened]:
        positions = [None, *range(len(records) + 2)]
        return [opening(stream, position) for stream in market_streams.STREAMS for position in positions]

    records = records_of(kinds)
    market_streams.begin_numbering(EPOCH, {})
    market_streams.publish(records)
    published = openings()

    market_streams.begin_numbering(EPOCH, {})
    begun = 0
    while begun < len(records):
        end = data.draw(st.integers(begun + 1, len(records)))
        if data.draw(st.booleans()):
            market_streams.publish(records[begun:end])
        else:
            market_streams.keep("EURUSD", records[begun:end], [now_ms()] * (end - begun))
        begun = end

    assert openings() == published


@pytest.mark.parametrize(
    ("stream", "kind", "age_ms", "is_kept"),
    [
        (market_streams.prices, "quote", KEEP_MS - 60_000, True),
        (market_streams.prices, "quote", KEEP_MS + 1, False),
        (market_streams.candles, "close", 10 * KEEP_MS, True),
        (market_streams.candles, "close", CANDLES_KEPT_MS + 1, False),
    ],
)
def test_records_are_sent_again_for_two_minutes_and_candles_for_an_hour(
    stream: NumberedStream, kind: str, age_ms: int, is_kept: bool
) -> None:
    market_streams.begin_numbering(EPOCH, {})
    came_ms = [now_ms() - age_ms] * 2 + [now_ms()]
    market_streams.keep("EURUSD", records_of([kind] * 3), came_ms)

    assert [goes_on(stream, position) for position in (1, 2)] == [is_kept, True]


def test_no_client_goes_on_over_a_hole_in_what_was_kept() -> None:
    market_streams.begin_numbering(EPOCH, {})
    first, _, third, fourth = records_of(["quote"] * 4)
    market_streams.keep("EURUSD", [first, third, fourth], [now_ms()] * 3)

    assert [goes_on(market_streams.prices, position) for position in (1, 2)] == [False, True]


def test_what_is_kept_while_a_crowd_is_told_of_a_change_goes_to_those_who_come_meanwhile() -> None:
    def join(symbol: str, variant: int) -> RecordedConnection:
        connection, hub = RecordedConnection(), market_streams.prices.hub
        hub.subscribe(hub.join(cast(WebSocketConnection, connection), ignore_end), [symbol], variant)
        return connection

    async def run() -> tuple[dict[str, int], list[str]]:
        for _ in range(AT_ONCE + 1):
            join("GBPUSD", SEQ)
        market_streams.begin_numbering(EPOCH, {})
        market_streams.keep("EURUSD", records_of(["quote"]), [now_ms()])
        known, late = market_streams.prices.recent.positions(["EURUSD"]), join("EURUSD", 0)
        await until(lambda: bool(late.writes))
        market_streams.stop()
        return known, late.heard

    known, heard = asyncio.run(run())

    assert known == {"EURUSD": 0}
    assert ['"bid":1.101' in frame for frame in heard] == [True]
