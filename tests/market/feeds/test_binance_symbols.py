"""Binance takes a subscription to any name, so it is asked first which names it has."""

from __future__ import annotations

import logging

import pytest

from .fake_binance import FakeBinance
from .inlets import RecordingInlet, Waits, running
from .venue import NOON_MS

SYMBOLS = {f"S{number}": f"S{number}USDT" for number in range(9)}


async def test_only_names_that_it_has_are_subscribed_to_and_the_others_told() -> None:
    async with FakeBinance() as venue:
        inlet = RecordingInlet()
        venue.unknown = {"S3USDT", "S7USDT"}
        async with running(venue.make_feed(SYMBOLS), inlet):
            visit = await venue.visited(names=7)
            await venue.send(venue.quote("S1USDT", 1.0, 1.1, NOON_MS))
            await inlet.until_ticks(1)

    assert visit.asked == set(SYMBOLS.values()) - venue.unknown
    assert sorted(inlet.complaints) == [
        f"{name} is not served: the answer was 400: Invalid symbol; an instrument's source can name another"
        " symbol, like binance:BTCUSDT"
        for name in ("S3USDT", "S7USDT")
    ]
    assert inlet.refused == {"unknown_symbol": 2}


async def test_a_name_with_other_letters_is_told_too() -> None:
    async with FakeBinance() as venue:
        inlet = RecordingInlet()
        async with running(venue.make_feed({"BTCUSD": "BTC/USDT", "EURUSD": "EURUSDT"}), inlet):
            visit = await venue.visited(names=1)

    assert visit.asked == {"EURUSDT"}
    assert inlet.complaints[0].startswith("BTC/USDT is not served: the answer was 400: Illegal characters")


async def test_a_symbol_that_rests_is_told_and_followed_for_when_it_trades_again() -> None:
    async with FakeBinance() as venue:
        inlet = RecordingInlet()
        venue.statuses = {"PAXGUSDT": "BREAK"}
        async with running(venue.make_feed(), inlet):
            visit = await venue.visited(names=2)

    assert visit.asked == {"EURUSDT", "PAXGUSDT"}
    assert inlet.complaints == ["PAXGUSDT is listed, but not traded there now: its status is BREAK"]


async def test_where_none_is_known_nothing_is_subscribed_to_and_the_loss_says_so() -> None:
    async with FakeBinance() as venue:
        inlet, waits = RecordingInlet(), Waits()
        venue.unknown = {"EURUSDT", "PAXGUSDT"}
        async with running(venue.make_feed(sleep=waits), inlet):
            (why,) = await inlet.until_lost()

    assert why == "Binance has none of the instruments; see their sources"
    assert venue.visit.asked == set()


async def test_where_it_cannot_be_asked_all_are_followed(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeBinance() as venue:
        inlet = RecordingInlet()
        venue.has_broken_history = True
        with caplog.at_level(logging.WARNING):
            async with running(venue.make_feed(), inlet):
                visit = await venue.visited(names=2)

    assert visit.asked == {"EURUSDT", "PAXGUSDT"}
    assert "nobody knows whether it has all instruments" in caplog.text


async def test_hundreds_of_names_are_asked_for_in_few_requests() -> None:
    symbols = {f"S{number}": f"S{number}USDT" for number in range(250)}
    async with FakeBinance() as venue:
        venue.unknown = {"S77USDT"}
        async with running(venue.make_feed(symbols), RecordingInlet()):
            await venue.visited(names=249)

    assert len(venue.looked_up) <= 3 + 2 * 7
