"""The demo's test instrument misbehaves for the socket that asks, and for no other."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from instruments.facts import TEST_SYMBOL
from instruments.models import Instrument
from market.streams.authenticated import AuthenticatedSockets
from market.streams.consumer import StreamConsumer
from market.streams.protocol.messages import CHAOS
from tests.client import Server
from tests.contract.streams.client import MARKET, Socket, code_of, shortened
from tests.contract.streams.conftest import Open
from tests.contract.streams.ticker import Ticker
from tests.factories import make_instrument

SIGNALS = "/ws/signals"


@pytest.fixture
def unruly(service: Server, settings: Settings) -> str:
    settings.DEMO = True
    if not Instrument.objects.filter(symbol=TEST_SYMBOL).exists():
        make_instrument(TEST_SYMBOL)
    return TEST_SYMBOL


def ticked_to(ticker: Ticker, socket: Socket, symbol: str, *features: str) -> int:
    """Subscribe where the last two digits of the number are 00."""
    ticker(symbol)
    last: int = socket.subscribe(symbol, features=["seq"])["positions"][symbol]
    if missing := -last % 100:
        ticker(symbol, missing)
        socket.hear_of(missing, "seq")
    socket.subscribe(symbol, features=["seq", *features])
    return last + missing


def test_gap_is_a_hole_for_the_one_who_asked_alone(
    opened: Open, ticker: Ticker, key: str, tick_path: str, unruly: str
) -> None:
    asked, plain = opened(tick_path, key=key), opened(tick_path, key=key)
    start = ticked_to(ticker, asked, unruly, "chaos:gap")
    plain.subscribe(unruly, features=["seq"])
    ticker(unruly, 12)
    wanted = [start + number for number in range(1, 13)]
    assert plain.hear_of(12, "seq") == wanted
    assert asked.hear_of(11, "seq") == [seq for seq in wanted if seq != start + 10]
    assert asked.is_open
    # It is recovered by resuming.
    place = {"epoch": ticker.runner.bus.journal_position.epoch, "positions": {unruly: start + 9}}
    assert asked.ask({"action": "unsubscribe"})["symbols"] == []
    assert asked.subscribe(unruly, features=["seq", "chaos:gap"], resume=place)["recovered"]
    assert asked.hear_of(3, "seq") == wanted[-3:]


def test_duplicate_comes_twice_until_it_is_left_and_of_no_other_symbol(
    opened: Open, ticker: Ticker, key: str, symbol: str, unruly: str
) -> None:
    socket = opened(key=key)
    start = ticked_to(ticker, socket, unruly, "chaos:duplicate")
    ticker(unruly, 6)
    assert socket.hear_of(7, "seq") == [start + number for number in (1, 2, 3, 4, 5, 5, 6)]
    socket.subscribe(symbol, features=["seq", *CHAOS])
    ticker(symbol, 21)
    assert socket.hear_of(21, "seq") == list(range(1, 22))
    assert socket.ask({"action": "unsubscribe", "symbols": [unruly]})["symbols"] == [symbol]
    ticker(unruly, 3)
    assert socket.is_open


def test_burst_waits_for_20(opened: Open, ticker: Ticker, key: str, unruly: str) -> None:
    socket = opened(key=key)
    start = ticked_to(ticker, socket, unruly, "chaos:burst")
    ticker(unruly, 19)
    assert socket.is_open
    ticker(unruly, 2)
    assert socket.hear_of(20, "seq") == [start + number for number in range(1, 21)]
    assert socket.is_open


def test_stale_sends_heartbeats_alone(
    opened: Open, ticker: Ticker, key: str, unruly: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("market.streams.chaos.STALE_AFTER_MS", 0)
    asked, plain = opened(key=key), opened(key=key)
    with (
        shortened(AuthenticatedSockets, "LOOK_EVERY_S", 0.02),
        shortened(StreamConsumer, "HEARTBEAT_AFTER_S", 0.05),
    ):
        asked.subscribe(unruly, features=["heartbeat", "chaos:stale"])
        plain.subscribe(unruly)
        ticker(unruly, 3)
        assert plain.hear_of(3, "symbol") == [unruly] * 3
        assert asked.hear_of(2, "type") == ["heartbeat"] * 2


@pytest.mark.parametrize(("path", "is_demo"), [(MARKET, False), (SIGNALS, True)])
def test_chaos_is_unknown_elsewhere(
    opened: Open, key: str, unruly: str, settings: Settings, path: str, is_demo: bool
) -> None:
    settings.DEMO = is_demo
    socket = opened(path, key=key)
    wish = {"action": "subscribe", "symbols": [unruly], "features": ["chaos:gap"]}
    unknown = socket.refused({**wish, "features": ["chaos"]})
    assert code_of(unknown) == ("invalid_message", False, False)
    assert socket.refused(wish) == unknown
