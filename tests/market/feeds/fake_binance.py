from __future__ import annotations

from typing import Any

import msgspec

from market.engine.feeds.binance import BinanceFeed

from .fake_websocket import FakeWebSocketVenue
from .venue import Visit


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

    def quote(self, name: str, bid: float, ask: float, time_ms: int, seq: int = 1) -> bytes:
        data = {"u": seq, "s": name, "b": f"{bid:.8f}", "B": "672.00", "a": f"{ask:.8f}", "A": "3199.00"}
        return message(name, "bookTicker", data)

    def trade(self, name: str, price: float, size: float, side: int, time_ms: int, seq: int) -> bytes:
        ids = {"a": seq, "f": seq, "l": seq}
        data = {"e": "aggTrade", "E": time_ms, "s": name, **ids, "p": f"{price:.8f}", "q": f"{size:.8f}"}
        return message(name, "aggTrade", {**data, "T": time_ms, "m": side < 0, "M": True})

    def heartbeat(self) -> bytes:
        """It has none: the answer to a probe is its sign of life."""
        return b'{"result":["eurusdt@bookTicker"],"id":0}'

    def answers(self, request: dict[str, Any], visit: Visit) -> list[bytes]:
        if request["method"] == "LIST_SUBSCRIPTIONS":
            return [msgspec.json.encode({"result": sorted(visit.asked), "id": request["id"]})]
        names = {stream.partition("@")[0].upper() for stream in request["params"]}
        if names & self.unknown:
            refusal = {"code": 2, "msg": "Invalid request: unknown stream", "id": request["id"]}
            return [msgspec.json.encode(refusal)]
        visit.asked |= names
        return [msgspec.json.encode({"result": None, "id": request["id"]})]

    def history(self, path: str) -> bytes:
        name = path.partition("symbol=")[2].partition("&")[0]
        bars = self.bars.get(name, [])
        rows = [[ms, *[str(price)] * 4, "2.5", ms + 59_999, "2.5", 3, "1", "1", "0"] for ms, price in bars]
        return msgspec.json.encode(rows)
