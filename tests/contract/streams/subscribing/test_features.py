"""What a client gets on request beyond the specification's fields."""

from __future__ import annotations

import asyncio

import pytest

from core.clock import now_ms
from market.prices.records import AbsorptionFound
from market.streams import market_streams as streams
from market.streams.sessions.authenticated import authenticated_sessions
from market.streams.sessions.session import StreamSession
from tests.client import Server
from tests.contract.streams.client import MARKET, ORDERFLOW, shortened
from tests.contract.streams.conftest import Open
from tests.contract.streams.ticker import Ticker


def test_seq_numbers_the_frames_of_a_symbol_without_holes(
    opened: Open, ticker: Ticker, key: str, tick_path: str, symbol: str
) -> None:
    ticker(symbol, 3)
    socket = opened(tick_path, key=key)
    reply = socket.subscribe(symbol, features=["seq"])
    last = reply["positions"][symbol]
    ticker(symbol, 3)
    assert socket.hear_of(3, "seq") == [last + 1, last + 2, last + 3]


def test_reply_without_seq_tells_no_numbering(opened: Open, key: str, path: str, symbol: str) -> None:
    assert not {"epoch", "positions"} & opened(path, key=key).subscribe(symbol, features=["lag"]).keys()


def test_epoch_is_of_the_numbering(opened: Open, ticker: Ticker, key: str, symbol: str) -> None:
    reply = opened(key=key).subscribe(symbol, features=["seq"])
    assert reply["epoch"] == ticker.runner.bus.journal_position.epoch


def test_seq_may_be_asked_for_later(opened: Open, ticker: Ticker, key: str, symbol: str) -> None:
    socket = opened(key=key)
    socket.subscribe(symbol)
    ticker(symbol)
    assert "seq" not in socket.hear()
    socket.subscribe(symbol, features=["seq"])
    ticker(symbol)
    assert socket.hear()["seq"] == 2


def test_each_client_gets_its_own_variant(opened: Open, ticker: Ticker, key: str, symbol: str) -> None:
    plain, numbered = opened(key=key), opened(key=key)
    plain.subscribe(symbol)
    numbered.subscribe(symbol, features=["seq"])
    ticker(symbol)
    assert numbered.hear() == {**plain.hear(), "seq": 1}


def test_lag_tells_when_a_frame_was_sent(opened: Open, ticker: Ticker, key: str, symbol: str) -> None:
    socket = opened(key=key)
    socket.subscribe(symbol, features=["lag"])
    tick = ticker(symbol)[0]
    assert tick.time_ms <= socket.hear()["sent"] <= now_ms()


def test_snapshot_is_the_last_tick_with_its_own_time(
    opened: Open, ticker: Ticker, key: str, symbol: str
) -> None:
    last = ticker(symbol, 3)[-1]
    socket = opened(key=key)
    assert socket.subscribe(symbol, features=["snapshot", "seq"])["positions"] == {symbol: 3}
    heard = socket.hear()
    assert (heard["bid"], heard["time"], heard["seq"]) == (last.bid, last.time_ms, 3)
    assert socket.is_open


def test_snapshot_of_the_order_flow_is_its_last_tick(
    opened: Open, ticker: Ticker, key: str, symbol: str
) -> None:
    ticker(symbol, 4)
    socket = opened(ORDERFLOW, key=key)
    socket.subscribe(symbol, features=["snapshot"])
    assert socket.hear()["cumulative_delta"] == 3


def test_absorption_signal_is_numbered_among_the_ticks_and_is_no_snapshot(
    opened: Open, ticker: Ticker, key: str, symbol: str
) -> None:
    first, later = opened(ORDERFLOW, key=key), opened(ORDERFLOW, key=key)
    first.subscribe(symbol, features=["seq"])
    ticker(symbol, 3)
    ticker.publish(AbsorptionFound(symbol, 3, "bid", 1.0841, 250.0, -180.0, 0.00002, 2.61, now_ms()))
    assert first.hear_of(3, "seq") == [1, 2, 3]
    assert later.subscribe(symbol, features=["snapshot", "seq"])["positions"] == {symbol: 3}
    assert later.hear()["seq"] == 2


def test_no_snapshot_comes_unasked_or_of_nothing(
    opened: Open, ticker: Ticker, key: str, path: str, symbol: str
) -> None:
    silent = opened(path, key=key)
    silent.subscribe(symbol, features=["snapshot"])
    assert silent.is_open
    ticker(symbol, 2)
    plain = opened(path, key=key)
    plain.subscribe(symbol)
    assert plain.is_open


def test_heartbeat_breaks_the_silence_of_who_asked_for_it(
    opened: Open, service: Server, ticker: Ticker, key: str, symbol: str
) -> None:
    async def look_in(seconds: float) -> None:
        for session in authenticated_sessions.all():
            session.check_time(asyncio.get_running_loop().time() + seconds)

    asked, plain = opened(key=key), opened(key=key)
    plain.subscribe(symbol)
    with shortened(StreamSession, "HEARTBEAT_AFTER_S", 36_000.0):
        asked.subscribe(symbol, features=["heartbeat"])
        service.run(look_in(18_000))
        ticker(symbol)
        service.run(look_in(37_000))
        assert asked.hear()["symbol"] == symbol
        beat = asked.hear()
    assert (beat["type"], set(beat)) == ("heartbeat", {"type", "time"})
    assert plain.hear()["symbol"] == symbol
    assert plain.is_open


@pytest.mark.parametrize(("path", "is_so"), [(MARKET, True), (ORDERFLOW, False)])
def test_only_prices_are_conflated(opened: Open, key: str, symbol: str, path: str, is_so: bool) -> None:
    opened(path, key=key).subscribe(symbol, features=["latest"])
    stream = streams.prices if path == MARKET else streams.order_flow
    listeners = [listener for listener in stream.listeners if listener.identity.key == key]  # type: ignore[attr-defined]
    assert [listener.subscriber.wants_latest for listener in listeners] == [is_so]  # type: ignore[attr-defined]
