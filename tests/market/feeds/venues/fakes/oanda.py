"""OANDA v20: an answer that never ends, a message a line, and the history beside it."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import msgspec

from core.times import iso_s
from market.engine.venues.oanda import OandaFeed
from tests.local_http import Request

from .http_venue import HttpVenue, Reply
from .venue import FakeVenue, Visit, make_pace

TOKEN, ACCOUNT = "a-token-of-the-tests", "101-004-1-001"
APART = {"bid": 0.0, "mid": 0.5, "ask": 1.0}
NOWHERE = b'{"errorMessage":"The resource does not exist"}'
BAD_NAMES = b'{"errorMessage":"Invalid value specified for \'instruments\'"}'


def nanoseconds(time_ms: int) -> str:
    at = datetime.fromtimestamp(time_ms / 1000, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03}613867Z"


class FakeOanda(FakeVenue):
    feed_class = OandaFeed
    symbols = {"EURUSD": "EUR_USD", "XAUUSD": "XAU_USD"}
    has_trades = False
    malformed = [
        b'{"type":"PRICE","instrument":"EUR_USD","time":"2026-11-18T12:00:00Z","bids":null,"asks":[]}',
        b'{"type":"PRICE","instrument":"EUR_USD","time":"2026-11-18T12:00:00Z","bids":[{"price":"NaN"}],'
        b'"asks":[{"price":"1.1"}]}',
        b'{"type":"PRICE","instrument":"EUR_USD","time":"2026-11-18T12:00:00Z","bids":[{"price":"-1"}],'
        b'"asks":[{"price":"1.1"}]}',
        b'{"type":"PRICE","instrument":"EUR_USD","time":"2026-11-18T12:00:00Z","bids":[{"price":"1,0"}],'
        b'"asks":[{"price":"1.1"}]}',
        b'{"type":"PRICE","instrument":"EUR_USD","time":"yesterday","bids":[{"price":"1.0"}],'
        b'"asks":[{"price":"1.1"}]}',
        b'{"type":"PRICE","instrument":"EUR_USD","bids":[{"price":"1.0"}],"asks":[{"price":"1.1"}]}',
        b'{"errorMessage":"something broke"}',
    ]

    def __init__(self) -> None:
        super().__init__()
        self.http = HttpVenue(self._answer)
        self._streams: list[Reply] = []
        self._is_hushed = False
        self.late_ms = 0
        """How slow its stream is."""

    def make_feed(
        self, symbols: dict[str, str] | None = None, candle_price: str = "bid", **pace: Any
    ) -> OandaFeed:
        wanted, url = self.symbols if symbols is None else symbols, self.http.url
        made = OandaFeed(wanted, TOKEN, ACCOUNT, url, url, make_pace(**pace), candle_price=candle_price)
        return self.follow(made)

    @property
    def settings(self) -> dict[str, str]:
        addresses = dict.fromkeys(("OANDA_STREAM_URL", "OANDA_REST_URL"), self.http.url)
        return {"OANDA_TOKEN": TOKEN, "OANDA_ACCOUNT": ACCOUNT, **addresses}

    def quote(self, name: str, bid: float, ask: float, time_ms: int, seq: int = 1) -> bytes:
        price = {
            "type": "PRICE",
            "instrument": name,
            "time": nanoseconds(time_ms),
            "status": "tradeable",
            "tradeable": True,
            "bids": [{"price": f"{bid:.5f}", "liquidity": 10_000_000}, {"price": "0.5", "liquidity": 1}],
            "asks": [{"price": f"{ask:.5f}", "liquidity": 10_000_000}, {"price": "9999", "liquidity": 1}],
            "closeoutBid": f"{bid:.5f}",
            "closeoutAsk": f"{ask:.5f}",
        }
        return msgspec.json.encode(price)

    def standing(self, ours: str, bid: float, ask: float, time_ms: int) -> list[bytes]:
        return [self.quote(self.symbols[ours], bid, ask, time_ms)]

    def trade(self, name: str, price: float, size: float, side: int, time_ms: int, seq: int) -> bytes:
        raise NotImplementedError("OANDA tells no trades")

    def heartbeat(self) -> bytes:
        return msgspec.json.encode({"type": "HEARTBEAT", "time": nanoseconds(self.now_ms() - self.late_ms)})

    async def start(self) -> None:
        await self.http.__aenter__()

    async def stop(self) -> None:
        await self.http.__aexit__(None, None, None)

    async def send(self, *messages: bytes) -> None:
        for message in messages:
            await self.write(message + b"\n")

    async def write(self, chunk: bytes) -> None:
        await self._streams[-1].chunk(chunk)

    async def close(self) -> None:
        await self._streams[-1].end()

    async def reset(self) -> None:
        self._streams[-1].cut()

    def hush(self) -> None:
        self._is_hushed = True

    async def _answer(self, request: Request, reply: Reply) -> None:
        if self._is_hushed:
            await reply.left()
        elif request.headers.get("authorization") != f"Bearer {TOKEN}":
            await reply.whole(b'{"errorMessage":"Insufficient authorization"}', "401 Unauthorized")
        elif request.path == f"/v3/accounts/{ACCOUNT}/pricing/stream":
            await self._stream(set(request.query["instruments"].split(",")), reply)
        elif request.path == f"/v3/accounts/{ACCOUNT}/instruments":
            known = sorted({*self.symbols.values()} - self.unknown)
            await reply.whole(msgspec.json.encode({"instruments": [{"name": name} for name in known]}))
        elif request.path.endswith("/candles"):
            await self._candles(request, reply)
        else:
            await reply.whole(NOWHERE, "404 Not Found")

    async def _stream(self, names: set[str], reply: Reply) -> None:
        if names & self.unknown:
            await reply.whole(BAD_NAMES, "400 Bad Request")
            return
        now = datetime.fromtimestamp(self.now_ms() / 1000, UTC)
        await reply.begin(Date=format_datetime(now, usegmt=True))
        visit = Visit(asked=names)
        self.visits.append(visit)
        self._streams.append(reply)
        self.note()
        await self.send(self.heartbeat(), *self.sent_after_asking)
        try:
            await reply.left()
            visit.is_closed_well = True
        finally:
            visit.is_over = True
            self.note()

    async def _candles(self, request: Request, reply: Reply) -> None:
        self.history_asked.append(request.target)
        self.note()
        await self.may_tell_history.wait()
        if self.has_broken_history:
            await reply.whole(b"", "503 Service Unavailable")
            return
        sides = [side for side in ("bid", "mid", "ask") if side[0].upper() in request.query["price"]]
        # Half a unit apart, as the middle of a price is from its ends.
        bars = [
            {"complete": True, "volume": 3, "time": iso_s(ms)}
            | {side: dict.fromkeys("ohlc", str(price + APART[side])) for side in sides}
            for ms, price in self.bars.get(request.path.split("/")[3], [])
        ]
        await reply.whole(msgspec.json.encode({"candles": bars}))
