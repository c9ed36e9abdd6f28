"""Kraken's messages; the samples are Kraken's own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from market.engine.venues.kraken import PER_MESSAGE, KrakenReader, venue_symbol
from market.engine.venues.venue_feed import FeedLost
from market.prices.records import StandingQuote, Tick

STATUS = (
    b'{"channel":"status","type":"update","data":[{"version":"2.0.x","system":"online","api_version":"v2",'
    b'"connection_id":12345678901234567890}]}'
)
HEARTBEAT = b'{"channel":"heartbeat"}'
PONG = (
    b'{"method":"pong","req_id":101,"time_in":"2023-11-14T22:13:19.742599Z",'
    b'"time_out":"2023-11-14T22:13:19.742648Z"}'
)
ACCEPTED = (
    b'{"method":"subscribe","result":{"channel":"ticker","symbol":"BTC/USD","snapshot":true},"success":true,'
    b'"time_in":"2023-09-25T09:04:31.742599Z","time_out":"2023-09-25T09:04:31.742648Z","req_id":1}'
)
REFUSED = (
    b'{"error":"Currency pair not supported XYZ/USD","method":"subscribe","success":false,"symbol":"XYZ/USD",'
    b'"time_in":"2023-09-25T09:04:31.742599Z","time_out":"2023-09-25T09:04:31.742648Z"}'
)
TICKER = (
    b'{"channel":"ticker","type":"snapshot","data":[{"symbol":"BTC/USD","bid":105944.20,"bid_qty":2.5,'
    b'"ask":105944.30,"ask_qty":3.2,"last":105899.40,"volume":163.28908096,"vwap":105904.39279,'
    b'"low":104711.00,"high":106613.10,"change":250.00,"change_pct":0.24,'
    b'"timestamp":"2022-12-25T09:30:59.123456Z"}]}'
)
TRADE = (
    b'{"channel":"trade","type":"update","data":[{"symbol":"BTC/USD","side":"buy","price":105944.20,'
    b'"qty":0.00027625,"ord_type":"limit","trade_id":10218208,"timestamp":"2023-10-06T17:35:55.440295Z"}]}'
)
QUOTED_MS, TRADED_MS, RECEIVED_MS = 1_671_960_659_123, 1_696_613_755_440, 1_700_000_000_000


class Kraken:
    """The venue's end of a reader."""

    def __init__(self, symbols: dict[str, str] | None = None) -> None:
        self.said: list[dict[str, Any]] = []
        self.refused: list[tuple[str, str]] = []
        self.reader = KrakenReader(
            symbols or {"BTCUSD": "BTC/USD"},
            lambda reason, what, name="": self.refused.append((reason, what)),
            lambda text: self.said.append(json.loads(text)),
        )

    def sends(self, *messages: bytes) -> list[Tick]:
        return [tick for raw in messages for tick in self.reader.read(raw, RECEIVED_MS)]


def test_ticker_becomes_a_quote_with_its_time_or_that_of_the_venues_clock() -> None:
    old = TICKER.replace(b',"timestamp":"2022-12-25T09:30:59.123456Z"', b"")
    made = [StandingQuote("BTCUSD", 105944.2, 105944.3, QUOTED_MS)]
    assert Kraken().sends(TICKER, PONG) == made
    assert Kraken().sends(old, PONG) == [Tick("BTCUSD", 105944.2, 105944.3, RECEIVED_MS - 258)]


@pytest.mark.parametrize(("side", "bought"), [(b'"buy"', 1), (b'"sell"', -1)])
def test_trade_has_its_takers_side(side: bytes, bought: int) -> None:
    trade = TRADE.replace(b'"buy"', side)
    assert Kraken().sends(TICKER, trade)[1:] == [
        Tick("BTCUSD", 105944.2, 105944.3, TRADED_MS, 0.00027625, bought, 105944.2, 10218208)
    ]


def test_all_trades_of_a_message_are_taken_but_the_one_that_makes_no_sense() -> None:
    kraken = Kraken()
    message = json.loads(TRADE)
    first = message["data"][0]
    message["data"] = [first, first | {"trade_id": 10218209, "side": "up"}, first | {"trade_id": 10218209}]
    ticks = kraken.sends(TICKER, json.dumps(message).encode())
    assert [tick.source_seq for tick in ticks[1:]] == [10218208, 10218209]
    assert [reason for reason, _ in kraken.refused] == ["malformed"]


def test_other_messages_are_but_signs_of_life() -> None:
    kraken = Kraken()
    again = REFUSED.replace(b"Currency pair not supported", b"Already subscribed to")
    assert kraken.sends(STATUS, HEARTBEAT, PONG, ACCEPTED, again) == []
    assert kraken.refused == []
    kraken.reader.probe()
    assert kraken.said == [{"method": "ping"}]


def test_best_bid_and_ask_are_asked_for_at_every_change_and_the_last_trades_with_those_to_come() -> None:
    kraken = Kraken({"BTCUSD": "BTC/USD", "EURUSD": "EUR/USD"})
    kraken.reader.subscribe()
    names = {"symbol": ["BTC/USD", "EUR/USD"]}
    ticker = {"channel": "ticker", **names, "event_trigger": "bbo", "snapshot": True}
    trades = {"channel": "trade", **names, "snapshot": True}
    assert kraken.said == [{"method": "subscribe", "params": params} for params in (ticker, trades)]


def test_many_symbols_are_asked_for_in_batches() -> None:
    kraken = Kraken({f"S{number:03}": f"S{number:03}/USD" for number in range(PER_MESSAGE + 1)})
    kraken.reader.subscribe()
    asked = [(said["params"]["channel"], len(said["params"]["symbol"])) for said in kraken.said]
    assert asked == [("ticker", PER_MESSAGE), ("trade", PER_MESSAGE), ("ticker", 1), ("trade", 1)]


def test_symbol_refused_on_both_channels_is_told_once_with_the_way_out() -> None:
    kraken = Kraken()
    kraken.sends(REFUSED, REFUSED)
    reason = "XYZ/USD is not served: Currency pair not supported XYZ/USD"
    way_out = "an instrument's source can name another symbol, like kraken:BTC/USD"
    assert kraken.refused == [("unknown_symbol", f"{reason}; {way_out}")]


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b'{"Error":"Exceeded msg rate"}', "Kraken refused: Exceeded msg rate"),
        (b'{"method":"subscribe","success":false,"error":"Malformed request"}', "Kraken refused: Malformed"),
        (b'{"method":"subscribe","success":false}', "Kraken refused: no reason"),
        (STATUS.replace(b"online", b"maintenance"), "not open, its status is maintenance"),
        (STATUS.replace(b"online", b"cancel_only"), "not open, its status is cancel_only"),
    ],
)
def test_request_that_is_refused_as_a_whole_or_a_halt_loses_the_connection(message: bytes, why: str) -> None:
    with pytest.raises(FeedLost, match=why):
        Kraken().sends(message)


def test_usual_name_of_a_symbol() -> None:
    names = {"EURUSD": "EUR/USD", "BTCUSDT": "BTC/USDT", "DOGEUSD": "DOGE/USD", "SOLUSDC": "SOL/USDC"}
    assert {name: venue_symbol(name) for name in (*names, "BTC")} == names | {"BTC": "BTC"}
