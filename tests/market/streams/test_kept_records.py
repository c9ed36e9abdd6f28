"""Records that nobody wanted when they came: whoever subscribes later is sent what all others were."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import count
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from core.clock import now_ms
from instruments.catalogue import catalogue
from market.engine.bus.journal import KEEP_MS
from market.prices.records import AbsorptionFound, AnyRecord, CandlesEnded, ClosedCandle, TickAccepted
from market.streams import market_streams
from market.streams.hub.hub import AT_ONCE
from market.streams.hub.subscribers import ignore_end
from market.streams.protocol.messages import Resume, Subscribe
from market.streams.protocol.subscriptions import Subscriptions
from market.streams.resume import CANDLES_KEPT_MS, ReplayAllowance
from market.streams.stream import NumberedStream
from market.streams.wire import SEQ
from serving.websocket.connection import WebSocketConnection
from tests.factories import make_instrument
from tests.patience import until

from .hub.hubs import RecordedConnection

pytestmark = pytest.mark.django_db
EPOCH = "of this test"
kinds = st.lists(
    st.sampled_from(["quote", "trade", "absorption", "end", "close", "close by a tick"]),
    min_size=1,
    max_size=30,
)


@pytest.fixture(autouse=True)
def _numbered() -> Iterator[None]:
    make_instrument("EURUSD")
    catalogue.load_now()
    yield
    market_streams.stop()


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


def opening(stream: NumberedStream, position: int | None) -> tuple[dict[str, int], list[str], list[bytes]]:
    """Its positions, what is unrecovered and the frames after them."""
    subscribed, has_timeframes = Subscriptions(), stream.kind.has_timeframes
    key = "EURUSD/1m" if has_timeframes else "EURUSD"
    resume = None if position is None else Resume(EPOCH, {key: position})
    message = Subscribe(
        symbols=["EURUSD"],
        timeframes=frozenset({"1m"}) if has_timeframes else UNSET,
        features=frozenset({"seq", "snapshot"}),
    )
    change = subscribed.subscribe(message, lambda _: True)
    found = stream.recent.open(subscribed, change, resume, now_ms(), ReplayAllowance())
    return found.positions, found.unrecovered, [frame for _, frame in found.frames]


def all_openings(last: int) -> list[object]:
    positions = [None, *range(last + 2)]
    return [opening(stream, position) for stream in market_streams.STREAMS for position in positions]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kinds, st.data())
def test_kept_and_published_records_open_alike(kinds: list[str], data: st.DataObject) -> None:
    records = records_of(kinds)
    market_streams.begin_numbering(EPOCH, {})
    market_streams.publish(records)
    published = all_openings(len(records))

    market_streams.begin_numbering(EPOCH, {})
    begun = 0
    while begun < len(records):
        end = data.draw(st.integers(begun + 1, len(records)))
        if data.draw(st.booleans()):
            market_streams.publish(records[begun:end])
        else:
            market_streams.keep("EURUSD", records[begun:end], [now_ms()] * (end - begun))
        begun = end

    assert all_openings(len(records)) == published


def test_what_came_too_long_ago_is_not_sent_again() -> None:
    market_streams.begin_numbering(EPOCH, {})
    old_ms = now_ms() - KEEP_MS - 1
    market_streams.keep("EURUSD", records_of(["quote"] * 3), [old_ms, old_ms, now_ms()])

    assert opening(market_streams.prices, 1)[1] == ["EURUSD"]
    assert opening(market_streams.prices, 2)[1] == []


def test_nobody_goes_on_over_a_hole_in_what_was_kept() -> None:
    market_streams.begin_numbering(EPOCH, {})
    first, _, third, fourth = records_of(["quote"] * 4)
    market_streams.keep("EURUSD", [first, third, fourth], [now_ms()] * 3)

    assert opening(market_streams.prices, 1)[1] == ["EURUSD"]
    assert opening(market_streams.prices, 2)[1] == []


def test_what_is_kept_while_a_crowd_is_told_of_a_change_goes_to_those_who_come_meanwhile() -> None:
    async def run() -> tuple[dict[str, int], list[str]]:
        hub = market_streams.prices.hub
        for _ in range(AT_ONCE + 1):
            hub.subscribe(
                hub.join(cast(WebSocketConnection, RecordedConnection()), ignore_end), ["GBPUSD"], SEQ
            )
        market_streams.begin_numbering(EPOCH, {})
        market_streams.keep("EURUSD", records_of(["quote"]), [now_ms()])
        known, late = market_streams.prices.recent.positions(["EURUSD"]), RecordedConnection()
        hub.subscribe(hub.join(cast(WebSocketConnection, late), ignore_end), ["EURUSD"])
        await until(lambda: bool(late.writes))
        market_streams.stop()
        return known, late.heard

    known, heard = asyncio.run(run())

    assert known == {"EURUSD": 0}
    assert ['"bid":1.101' in frame for frame in heard] == [True]


def test_candles_are_sent_again_for_an_hour() -> None:
    market_streams.begin_numbering(EPOCH, {})
    old_ms = now_ms() - 10 * KEEP_MS
    market_streams.keep("EURUSD", records_of(["close"] * 3), [old_ms, old_ms, now_ms()])

    assert opening(market_streams.candles, 1)[1] == []
    too_old_ms = now_ms() - CANDLES_KEPT_MS - 1
    market_streams.begin_numbering(EPOCH, {})
    market_streams.keep("EURUSD", records_of(["close"] * 3), [too_old_ms, too_old_ms, now_ms()])
    assert opening(market_streams.candles, 1)[1] == ["EURUSD/1m"]
