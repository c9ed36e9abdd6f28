"""An instrument that is not offered any more: its streams say so, and it is in no list of subscriptions."""

from __future__ import annotations

import pytest

from instruments.catalogue import catalogue
from instruments.models import Instrument
from instruments.saving import save
from tests.contract.streams.client import MARKET, ORDERFLOW, Socket
from tests.contract.streams.conftest import Open
from tests.contract.streams.ticker import Ticker
from tests.factories import make_instrument
from tests.patience import wait_until

SIGNALS = "/ws/signals"


@pytest.fixture
def other(symbol: str) -> str:
    return str(make_instrument(f"OTHER{symbol}").symbol)


def offer(symbol: str, *, is_offered: bool) -> None:
    instrument = Instrument.objects.get(symbol=symbol)
    instrument.active = is_offered
    save(instrument, by="test")


def ended(socket: Socket) -> list[str]:
    frame = socket.hear_until("notice")
    assert frame.keys() == {"type", "code", "symbols", "time"}
    assert frame["code"] == "deactivated"
    symbols: list[str] = frame["symbols"]
    return symbols


def test_it_is_told_and_leaves_the_subscriptions(
    opened: Open, ticker: Ticker, key: str, path: str, symbol: str, other: str
) -> None:
    socket = opened(path, key=key)
    socket.subscribe(symbol, other)
    offer(symbol, is_offered=False)
    assert ended(socket) == [symbol]
    assert socket.ask({"action": "list"})["symbols"] == [other]
    again = socket.subscribe(symbol, other)
    assert (again["symbols"], [each["symbol"] for each in again["rejected"]]) == ([other], [symbol])
    ticker.past_a_minute(other)
    assert socket.hear()["symbol"] == other


def test_who_has_others_hears_nothing_of_it(
    opened: Open, key: str, path: str, symbol: str, other: str
) -> None:
    concerned, unconcerned = opened(path, key=key), opened(path, key=key)
    concerned.subscribe(symbol)
    unconcerned.subscribe(other)
    offer(symbol, is_offered=False)
    assert ended(concerned) == [symbol]
    assert unconcerned.is_open


def test_who_asked_for_all_is_told_and_keeps_the_others(
    opened: Open, ticker: Ticker, key: str, symbol: str, other: str
) -> None:
    socket = opened(ORDERFLOW, key=key)
    assert socket.subscribe()["symbols"] == ["*"]
    offer(symbol, is_offered=False)
    assert symbol in ended(socket)
    assert socket.ask({"action": "list"})["symbols"] == ["*"]


def test_on_signals_it_stays_for_what_still_closes_and_is_not_rejected(
    opened: Open, key: str, symbol: str
) -> None:
    socket = opened(SIGNALS, key=key)
    socket.subscribe(symbol, events=["signal.closed"])
    offer(symbol, is_offered=False)
    assert ended(socket) == [symbol]
    again = socket.subscribe(symbol)
    assert (again["symbols"], again["rejected"]) == ([symbol], [])


def test_once_it_is_offered_again_it_can_be_subscribed_to_without_a_hole_in_the_numbers(
    opened: Open, ticker: Ticker, key: str, symbol: str
) -> None:
    ticker(symbol, 3)
    socket = opened(MARKET, key=key)
    socket.subscribe(symbol, features=["seq"])
    offer(symbol, is_offered=False)
    assert ended(socket) == [symbol]
    offer(symbol, is_offered=True)
    wait_until(lambda: catalogue.find(symbol) is not None)
    reply = socket.subscribe(symbol)
    assert reply["positions"] == {symbol: 3}
    ticker(symbol)
    assert socket.hear()["seq"] == 4


def test_control_a_change_of_another_kind_is_no_end(
    opened: Open, ticker: Ticker, key: str, symbol: str
) -> None:
    socket = opened(MARKET, key=key)
    socket.subscribe(symbol)
    instrument = Instrument.objects.get(symbol=symbol)
    instrument.name = "Another name"
    save(instrument, by="test")
    ticker(symbol)
    assert socket.hear()["symbol"] == symbol
