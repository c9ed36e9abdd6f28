from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from market.engine.venues.kraken import KrakenFeed

from .venue import NOON_MS, Visit
from .websocket_venue import FakeWebSocketVenue

STATUS = (
    b'{"channel":"status","type":"update","data":[{"version":"2.0.x","system":"online",'
    b'"api_version":"v2","connection_id":12345678901234567890}]}'
)

AT_FIRST = 50


def timestamp(time_ms: int) -> str:
    return (
        datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    )


def message(channel: str, item: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"channel": channel, "type": "update", "data": [item]})


class FakeKraken(FakeWebSocketVenue):
    feed_class = KrakenFeed
    symbols = {"EURUSD": "EUR/USD", "XAUUSD": "PAXG/USD"}
    malformed = [
        b'{"channel":"ticker","data":[{"symbol":"EUR/USD","bid":null,"ask":1.1}]}',
        b'{"channel":"ticker","data":[{"symbol":"EUR/USD","bid":NaN,"ask":1.1}]}',
        b'{"channel":"ticker","data":[{"symbol":"EUR/USD","bid":-1.0,"ask":1.1}]}',
        b'{"channel":"ticker","data":[{"symbol":"EUR/USD","bid":"1.0","ask":1.1}]}',
        b'{"channel":"ticker","data":[{"symbol":"EUR/USD","bid":1,"ask":1.1,"timestamp":"yesterday"}]}',
        b'{"channel":"ticker","data":{"symbol":"EUR/USD"}}',
        b'{"channel":"trade","data":[{"symbol":"EUR/USD","side":"up","price":1,"qty":1,"trade_id":1}]}',
    ]

    def __init__(self) -> None:
        super().__init__()
        self.sent_at_once = [STATUS]

    def quote(self, name: str, bid: float, ask: float, time_ms: int, seq: int = 1) -> bytes:
        sizes = {"bid_qty": 2.5, "ask_qty": 3.2, "last": bid, "volume": 163.28908096}
        item = {"symbol": name, "bid": bid, "ask": ask, **sizes, "timestamp": timestamp(time_ms)}
        return message("ticker", item)

    def standing(self, ours: str, bid: float, ask: float, time_ms: int) -> list[bytes]:
        return [self.quote(self.symbols[ours], bid, ask, time_ms).replace(b'"update"', b'"snapshot"')]

    def trade(self, name: str, price: float, size: float, side: int, time_ms: int, seq: int) -> bytes:
        item = {"symbol": name, "side": "buy" if side > 0 else "sell", "price": price, "qty": size}
        return message(
            "trade", {**item, "ord_type": "limit", "trade_id": seq, "timestamp": timestamp(time_ms)}
        )

    def heartbeat(self) -> bytes:
        return b'{"channel":"heartbeat"}'

    def answers(self, request: dict[str, Any], visit: Visit) -> list[bytes]:
        if request["method"] == "ping":
            return [msgspec.json.encode({"method": "pong", **self._times()})]
        params = request["params"]
        told = [self._acknowledge(name, params["channel"], visit) for name in params["symbol"]]
        if params["channel"] == "trade" and params["snapshot"]:
            told += [self._last_trades(name) for name in params["symbol"] if name in self.trades]
        return told

    def _last_trades(self, name: str) -> bytes:
        last = [
            self.trade(name, each.price, each.size, each.side, each.time_ms, each.number)
            for each in self.trades[name][-AT_FIRST:]
        ]
        items = [item for raw in last for item in msgspec.json.decode(raw)["data"]]
        return msgspec.json.encode({"channel": "trade", "type": "snapshot", "data": items})

    def _times(self) -> dict[str, str]:
        return dict.fromkeys(("time_in", "time_out"), timestamp(self.now_ms()))

    def _acknowledge(self, name: str, channel: str, visit: Visit) -> bytes:
        if name in self.unknown:
            error = {"error": "Currency pair not supported", "symbol": name}
            return msgspec.json.encode({"method": "subscribe", "success": False, **error, **self._times()})
        if channel == "trade":
            visit.asked.add(name)
        result = {"channel": channel, "symbol": name, "snapshot": True}
        return msgspec.json.encode(
            {"method": "subscribe", "result": result, "success": True, **self._times()}
        )

    def history(self, path: str) -> bytes:
        # The REST side names a pair without the slash.
        name = path.partition("pair=")[2].partition("&")[0]
        if path.startswith("/0/public/Trades"):
            told = next((told for pair, told in self.trades.items() if pair.replace("/", "") == name), [])
            rows = [
                [
                    str(each.price),
                    str(each.size),
                    each.time_ms / 1000,
                    "b" if each.side > 0 else "s",
                    "m",
                    "",
                    each.number,
                ]
                for each in told
            ]
            return msgspec.json.encode({"error": [], "result": {name: rows, "last": "1"}})
        bars = next((bars for pair, bars in self.bars.items() if pair.replace("/", "") == name), [])
        minutes = [[ms // 1000, *[str(price)] * 5, "2.5", 3] for ms, price in bars]
        forming = [NOON_MS // 1000, *["9.9"] * 5, "1.0", 1]
        return msgspec.json.encode({"error": [], "result": {name: [*minutes, forming], "last": 1}})
