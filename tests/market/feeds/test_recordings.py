"""Recordings of venues, as `record_feed --raw` makes them, and what must become of each: ticks, minutes with
their volumes, order flow, the last quote, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import time_machine

from core.threads import in_thread
from market.engine.engine import Engine
from market.engine.feeds.supervisor import EngineReceiver
from market.engine.venues.binance import BinanceFeed
from market.engine.venues.kraken import KrakenFeed
from market.engine.venues.oanda import OandaFeed
from market.prices.quotes import Prices
from tests.factories import make_instrument

from .playing import Ended, PlayedFeed
from .venues.fakes.venue import NOON_MS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("transactional_db")]
FOLDER = Path(__file__).parent / "recordings"
LOOK_MS = 250
TRADED = {"volume_kind": "traded", "order_flow_source": "trades", "digits": 1}


class PlayedKraken(PlayedFeed, KrakenFeed): ...


class PlayedBinance(PlayedFeed, BinanceFeed): ...


class PlayedOanda(PlayedFeed, OandaFeed): ...


MADE: dict[str, tuple[str, dict[str, Any], Any]] = {
    "kraken": ("BTCUSD", TRADED, lambda now: PlayedKraken({"BTCUSD": "BTC/USD"}, "", "", now_ms=now)),
    "binance": ("BTCUSD", TRADED, lambda now: PlayedBinance({"BTCUSD": "BTCUSDT"}, "", "", now_ms=now)),
    "oanda": ("EURUSD", {}, lambda now: PlayedOanda({"EURUSD": "EUR_USD"}, "t", "a", "", "", now_ms=now)),
}


class Host:
    """An engine, and its clock, which is so far ahead of the recording's."""

    def __init__(self, name: str, clock: time_machine.Traveller, ahead_ms: int) -> None:
        self.name, self.clock, self.ahead_ms = name, clock, ahead_ms
        self.engine, self.now_ms = Engine(Prices("bid")), NOON_MS + ahead_ms
        self.symbol, fields, make = MADE[name]
        make_instrument(self.symbol, source=name, stale_after_s=600, **fields)
        self.engine.feed_state(name).source_ms = 0
        self.feed: PlayedFeed = make(lambda: self.now_ms)
        self.lines = self._lines()
        self.feed.next_message = self._next

    async def play(self) -> dict[str, Any]:
        receiver = EngineReceiver(self.engine, self.name, [self.symbol], self.engine.records.clear)
        await self.feed.play(receiver)
        return {
            "ticks": self.engine.feed_state(self.name).ticks,
            "refused": dict(sorted(self.engine.feed_state(self.name).refused.items())),
            "minutes": [
                [(bar.opened_ms - NOON_MS) / 1000, bar.open, bar.high, bar.low, bar.close, bar.volume]
                for _, timeframe, bar, _ in self.engine.rows
                if timeframe == "1m"
            ],
            "flow": [
                [(flow.opened_ms - NOON_MS) / 1000, flow.bid_volume, flow.ask_volume]
                for flow in (each.minute for each in self.engine.minute_flows)
                if flow.bid_volume or flow.ask_volume
            ],
            "quote": self._quote(),
        }

    def _quote(self) -> list[float]:
        quote = self.engine.prices.quotes[self.symbol]
        return [quote.bid, quote.ask, (quote.time_ms - NOON_MS) / 1000]

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        for line in (FOLDER / f"{self.name}.txt").read_bytes().splitlines():
            came_ms, _, message = line.partition(b" ")
            yield int(came_ms), message

    async def _next(self) -> bytes:
        came_ms, message = next(self.lines, (0, b""))
        if not came_ms:
            raise Ended
        while self.now_ms < came_ms + self.ahead_ms:
            step_ms = self.now_ms - self.now_ms % LOOK_MS + LOOK_MS
            self.now_ms = min(came_ms + self.ahead_ms, step_ms)
            self.clock.move_to(self.now_ms / 1000)
            self.engine.keep_time(self.now_ms)
        return message


@pytest.mark.parametrize("ahead_ms", [0, 3_600_000, -3_600_000])
@pytest.mark.parametrize("name", MADE)
async def test_recording_makes_what_is_expected_of_it_whatever_our_clock_says(
    name: str, ahead_ms: int, clock: time_machine.Traveller
) -> None:
    host = await in_thread(Host, name, clock, ahead_ms)
    expected = json.loads((FOLDER / f"{name}.json").read_bytes())
    assert await host.play() == expected
