from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from market.engine.venues.binance import CLOCK, BinanceFeed

from .venue import Visit
from .websocket_venue import FakeWebSocketVenue

NAME = re.compile(r"[A-Z0-9-_.]{1,50}")


def message(name: str, kind: str, data: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"stream": f"{name.lower()}@{kind}", "data": data})


class FakeBinance(FakeWebSocketVenue):
    feed_class = BinanceFeed
    symbols = {"EURUSD": "EURUSDT", "XAUUSD": "PAXGUSDT"}
    gives_quote_times = False
    numbers_quotes = True
    malformed = [
        b'{"stream":"eurusdt@bookTicker","data":{"u":1,"s":"EURUSDT","b":null,"a":"1.1"}}',
        b'{"stream":"eurusdt@bookTicker","data":{"u":1,"s":"EURUSDT","b":"NaN","a":"1.1"}}',
        b'{"stream":"eurusdt@bookTicker","data":{"u":1,"s":"EURUSDT","b":"-1.0","a":"1.1"}}',
        b'{"stream":"eurusdt@bookTicker","data":{"u":1,"s":"EURUSDT","b":1.0,"a":"1.1"}}',
        b'{"stream":"eurusdt@bookTicker","data":{"u":-1,"s":"EURUSDT","b":"1.0","a":"1.1"}}',
        b'{"stream":"eurusdt@bookTicker","data":[]}',
        b'{"stream":"eurusdt@aggTrade","data":{"a":1,"s":"EURUSDT","p":"1","q":"1","T":1,"m":null}}',
    ]

    def __init__(self) -> None:
        super().__init__()
        self.looked_up: list[list[str]] = []
        """The names of each request for the exchange's information."""
        self.statuses: dict[str, str] = {}

    def quote(self, name: str, bid: float, ask: float, time_ms: int, seq: int = 1) -> bytes:
        data = {"u": seq, "s": name, "b": f"{bid:.8f}", "B": "672.00", "a": f"{ask:.8f}", "A": "3199.00"}
        return message(name, "bookTicker", data)

    def trade(self, name: str, price: float, size: float, side: int, time_ms: int, seq: int) -> bytes:
        ids = {"a": seq, "f": seq, "l": seq}
        data = {"e": "aggTrade", "E": time_ms, "s": name, **ids, "p": f"{price:.8f}", "q": f"{size:.8f}"}
        return message(name, "aggTrade", {**data, "T": time_ms, "m": side < 0, "M": True})

    def clock(self) -> bytes:
        event = {"e": "24hrMiniTicker", "E": self.now_ms(), "s": "BTCUSDT", "c": "91842.61"}
        return msgspec.json.encode({"stream": CLOCK, "data": event})

    def heartbeat(self) -> bytes:
        """It has none: the answer to a probe is its sign of life."""
        return b'{"result":["eurusdt@bookTicker"],"id":0}'

    def answers(self, request: dict[str, Any], visit: Visit) -> list[bytes]:
        if request["method"] == "LIST_SUBSCRIPTIONS":
            return [msgspec.json.encode({"result": sorted(visit.asked), "id": request["id"]})]
        if request["params"] == [CLOCK]:
            return [msgspec.json.encode({"result": None, "id": request["id"]}), self.clock()]
        # A name that nobody knows is acknowledged like any other, and nothing ever comes of it.
        visit.asked |= {stream.partition("@")[0].upper() for stream in request["params"]}
        return [msgspec.json.encode({"result": None, "id": request["id"]})]

    async def answer(self, path: str) -> tuple[HTTPStatus, bytes]:
        if not path.startswith("/api/v3/exchangeInfo"):
            return await super().answer(path)
        names: list[str] = msgspec.json.decode(parse_qs(urlsplit(path).query)["symbols"][0])
        self.looked_up.append(names)
        if self.has_broken_history:
            return HTTPStatus.SERVICE_UNAVAILABLE, b"{}"
        if not all(NAME.fullmatch(name) for name in names):
            return HTTPStatus.BAD_REQUEST, b'{"code":-1100,"msg":"Illegal characters found in a parameter."}'
        if self.unknown.intersection(names):
            return HTTPStatus.BAD_REQUEST, b'{"code":-1121,"msg":"Invalid symbol."}'
        symbols = [{"symbol": name, "status": self.statuses.get(name, "TRADING")} for name in names]
        return HTTPStatus.OK, msgspec.json.encode({"timezone": "UTC", "rateLimits": [], "symbols": symbols})

    def history(self, path: str) -> bytes:
        name = path.partition("symbol=")[2].partition("&")[0]
        if path.startswith("/api/v3/aggTrades"):
            return msgspec.json.encode(
                [
                    {
                        "a": each.number,
                        "p": str(each.price),
                        "q": str(each.size),
                        "T": each.time_ms,
                        "m": each.side < 0,
                    }
                    for each in self.trades.get(name, [])
                ]
            )
        bars = self.bars.get(name, [])
        rows = [[ms, *[str(price)] * 4, "2.5", ms + 59_999, "2.5", 3, "1", "1", "0"] for ms, price in bars]
        return msgspec.json.encode(rows)
