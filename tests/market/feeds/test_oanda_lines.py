"""OANDA's lines; the samples are OANDA's own."""

from __future__ import annotations

from collections import Counter

import pytest

from market.engine.feeds.oanda import venue_symbol
from market.engine.feeds.oanda_lines import LONGEST_LINE, Lines, LineTooLong, OandaReader
from market.engine.feeds.rfc3339 import to_ms
from market.prices.ticks import Tick

PRICE = (
    b'{"type":"PRICE","instrument":"EUR_USD","time":"2016-10-27T08:38:45.664613867Z","status":"tradeable",'
    b'"bids":[{"price":"1.09177","liquidity":10000000},{"price":"1.09175","liquidity":10000000}],'
    b'"asks":[{"price":"1.09188","liquidity":10000000},{"price":"1.09190","liquidity":10000000}],'
    b'"closeoutBid":"1.09173","closeoutAsk":"1.09192"}'
)
HEARTBEAT = b'{"type":"HEARTBEAT","time":"2016-10-27T08:38:44.327443673Z"}'
BIDS = b'[{"price":"1.09177","liquidity":10000000},{"price":"1.09175","liquidity":10000000}]'
ASKS = b'[{"price":"1.09188","liquidity":10000000},{"price":"1.09190","liquidity":10000000}]'


def read(line: bytes, refused: Counter[str] | None = None) -> list[Tick]:
    def refuse(reason: str, what: str, name: str = "") -> None:
        assert refused is not None, reason
        refused[reason] += 1

    return OandaReader({"EURUSD": "EUR_USD"}, refuse).read(line, received_ms=0)


def test_price_becomes_a_tick_of_the_best_bid_and_ask() -> None:
    assert read(PRICE) == [Tick("EURUSD", 1.09177, 1.09188, 1_477_557_525_664)]


@pytest.mark.parametrize(
    ("part", "instead"),
    [
        (BIDS, b"[]"),
        (ASKS, b"[]"),
        (b'"status":"tradeable"', b'"status":"non-tradeable"'),
        (b'"status":"tradeable"', b'"status":"invalid"'),
        (b'"status":"tradeable"', b'"tradeable":false'),
        (b'"type":"PRICE"', b'"type":"SOMETHING_NEW"'),
    ],
)
def test_price_nobody_can_trade_at_is_but_a_sign_of_life(part: bytes, instead: bytes) -> None:
    assert part in PRICE
    assert read(PRICE.replace(part, instead)) == []


def test_heartbeat_is_but_a_sign_of_life() -> None:
    assert read(HEARTBEAT) == []


def test_price_that_says_tradeable_the_new_way_is_a_tick() -> None:
    assert len(read(PRICE.replace(b'"status":"tradeable"', b'"tradeable":true'))) == 1


def test_instrument_nobody_asked_for_is_refused() -> None:
    refused = Counter[str]()

    assert read(PRICE.replace(b"EUR_USD", b"XAU_USD"), refused) == []
    assert refused == {"unknown_symbol": 1}


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2016-10-27T08:38:45.999999999Z", 1_477_557_525_999),
        ("2016-10-27T08:38:45Z", 1_477_557_525_000),
        ("2016-10-27T10:38:45.5+02:00", 1_477_557_525_500),
    ],
)
def test_time_is_truncated_to_milliseconds(text: str, time_ms: int) -> None:
    assert to_ms(text) == time_ms


@pytest.mark.parametrize("text", ["", "2016-10-27T08:38:45", "soon", "1477557525"])
def test_time_that_is_none_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="."):
        to_ms(text)


@pytest.mark.parametrize("size", [1, 2, 7, 61, 62, 63, 500])
def test_lines_are_the_same_wherever_chunks_end(size: int) -> None:
    stream, lines = b"\n".join([HEARTBEAT, PRICE, HEARTBEAT, b""]), Lines()

    cut = [line for at in range(0, len(stream), size) for line in lines.add(stream[at : at + size])]

    assert cut == [HEARTBEAT, PRICE, HEARTBEAT]


def test_empty_lines_are_none() -> None:
    assert Lines().add(b"\n\r\n \nx\n") == [b"x"]


def test_line_without_end_is_not_waited_for() -> None:
    lines = Lines()
    lines.add(b"x" * LONGEST_LINE)

    with pytest.raises(LineTooLong):
        lines.add(b"x")


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("EURUSD", "EUR_USD"),
        ("XAUUSD", "XAU_USD"),
        ("US30", "US30"),
        ("DE30_EUR", "DE30_EUR"),
        ("NAS100", "NAS100"),
    ],
)
def test_two_currencies_are_joined_by_an_underscore(symbol: str, name: str) -> None:
    assert venue_symbol(symbol) == name
