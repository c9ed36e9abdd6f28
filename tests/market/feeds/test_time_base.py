"""A venue whose quotes have no times, beside a clock that is wrong, on a line that stalls: volumes, sides and
windows are those of the trades, reckoned from the recording alone."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from statistics import fmean, stdev
from typing import Any, NamedTuple

import msgspec
import pytest
import time_machine

from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from market.engine.engine import Engine
from market.engine.feeds.supervisor import EngineReceiver
from market.engine.feeds.venues.binance import CLOCK, BinanceFeed, BinanceReader
from market.engine.feeds.venues.venue_feed import Refuse, VenueLine
from market.engine.feeds.venues.venue_history import MinutesRequest
from market.prices.candles import PriceBar
from market.prices.order_flow import WINDOW_MS, WINDOWS
from market.prices.quotes import Prices
from market.prices.records import AbsorptionFound
from tests.factories import make_instrument
from tests.patience import PATIENCE_S

from .venues.fakes.binance import message
from .venues.fakes.venue import NOON_MS, make_pace

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("transactional_db")]
MINUTES, HOUR_MS, LOOK_MS = 7, 3_600_000, 250
ENDS_MS = NOON_MS + MINUTES * MINUTE_MS
# Before the end of each minute.
QUOTED_MS, TRADED_MS = 40, 10
STALLS_MS = NOON_MS + 3 * MINUTE_MS - QUOTED_MS


class Frame(NamedTuple):
    sent_ms: int
    kind: str
    data: dict[str, Any]

    @property
    def raw(self) -> bytes:
        if self.kind == "clock":
            return msgspec.json.encode({"stream": CLOCK, "data": self.data})
        return message("BTCUSDT", self.kind, self.data)


@cache
def recording() -> list[Frame]:
    """As Binance's frames are, with bursts and pauses, and something at the end of each minute; then only its
    clock goes on."""
    chance, at_ms, cents, number = random.Random(38), NOON_MS + 540, 9_184_260, 0
    frames = [Frame(ms, "clock", {"E": ms}) for ms in range(NOON_MS + 500, ENDS_MS + 2 * MINUTE_MS, 1_000)]
    while at_ms < ENDS_MS:
        number, cents = number + 1, cents + chance.choice((-1, 0, 0, 1))
        left_ms = MINUTE_MS - at_ms % MINUTE_MS
        bid, ask = f"{cents / 100:.8f}", f"{(cents + 10) / 100:.8f}"
        if number == 1 or left_ms == QUOTED_MS or (left_ms != TRADED_MS and chance.random() < 0.5):
            frames.append(Frame(at_ms, "bookTicker", {"u": number, "s": "BTCUSDT", "b": bid, "a": ask}))
        else:
            is_sale, size = chance.random() < 0.5, chance.randrange(1, 200_000) / 1e5
            # Some come a moment after they were made.
            made_ms = at_ms - chance.choice((0, 0, 1, 9))
            trade = {"p": bid if is_sale else ask, "q": f"{size:.8f}", "T": made_ms}
            frames.append(Frame(at_ms, "aggTrade", {"E": at_ms, "s": "BTCUSDT", "m": is_sale} | trade))
        pause_ms = chance.randrange(60) if chance.random() < 0.8 else chance.randrange(1_500)
        at_ms += next(
            (left_ms - at for at in (QUOTED_MS, TRADED_MS, 0) if at < left_ms <= at + pause_ms), pause_ms
        )
    trades = [frame for frame in frames if frame.kind == "aggTrade"]
    for number, frame in enumerate(trades):
        frame.data["a"] = number
    return sorted(frames, key=lambda frame: frame.sent_ms)


class Volumes(NamedTuple):
    sold: float
    bought: float


def folded(span_ms: int) -> dict[int, Volumes]:
    """What was sold and bought in each interval, in time, by the trades' own times."""
    units: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for frame in recording():
        if frame.kind == "aggTrade":
            made_ms, size = frame.data["T"], round(float(frame.data["q"]) * 1e8)
            units[made_ms - made_ms % span_ms][not frame.data["m"]] += size
    return {
        opened_ms: Volumes(sold / 1e8, bought / 1e8) for opened_ms, (sold, bought) in sorted(units.items())
    }


def absorbed() -> list[tuple[str, float, int]]:
    """Side, volume and end of each window in which one side traded two deviations more than usual."""
    windows, found = list(folded(WINDOW_MS).items()), list[tuple[str, float, int]]()
    for number, (opened_ms, now) in enumerate(windows[WINDOWS:], WINDOWS):
        for place, side in enumerate(("bid", "ask")):
            usual = [volumes[place] for _, volumes in windows[number - WINDOWS : number]]
            if now[place] >= fmean(usual) + 2 * stdev(usual):
                found.append((side, now[place], opened_ms + WINDOW_MS))
    return found


class PlayedFeed(BinanceFeed):
    """Reads a recording instead of a socket."""

    def __init__(self, received: Callable[[Frame], int], reach: Callable[[int], None], now_ms: Any) -> None:
        super().__init__({"BTCUSD": "BTCUSDT"}, "ws://venue.test", "http://venue.test", make_pace(), now_ms)
        self._frames, self._received, self._reach = iter(recording()), received, reach
        self.is_over = asyncio.Event()

    @asynccontextmanager
    async def open(self, refuse: Refuse) -> AsyncIterator[VenueLine]:
        reader = BinanceReader(self.symbols, refuse, lambda text: None)
        yield VenueLine(self._next, reader.read, reader.base)

    def client(self) -> Any:
        return None

    async def history(self, wanted: MinutesRequest) -> list[PriceBar]:
        return []

    async def _next(self) -> bytes:
        await asyncio.sleep(0)
        frame = next(self._frames, None)
        if frame is None:
            self.is_over.set()
            await asyncio.Event().wait()
        assert frame is not None
        self._reach(self._received(frame))
        return frame.raw


class Played:
    """What an engine makes of the recording, beside a clock so far ahead, on a line that stalls once."""

    def __init__(self, clock: time_machine.Traveller, ahead_ms: int, stalled_ms: int) -> None:
        self._clock, self._ahead_ms, self._stalled_ms = clock, ahead_ms, stalled_ms
        make_instrument(
            "BTCUSD",
            source="binance",
            digits=2,
            pip_size=1000,
            volume_kind="traded",
            order_flow_source="trades",
        )
        self.engine, self._now_ms = Engine(Prices("bid")), NOON_MS + ahead_ms
        self._chance, self._came_ms = random.Random(7), 0
        self.absorptions: list[tuple[str, float, int]] = []
        self.engine.feed_state("binance").told_ms = 0

    async def play(self) -> None:
        receiver = EngineReceiver(self.engine, "binance", ["BTCUSD"], self._publish)
        feed = PlayedFeed(self._receipt, self._reach, lambda: self._now_ms)
        feeding = asyncio.create_task(feed.run(receiver))
        async with asyncio.timeout(PATIENCE_S):
            await feed.is_over.wait()
        feeding.cancel()
        await asyncio.wait([feeding])

    def _receipt(self, frame: Frame) -> int:
        came_ms = frame.sent_ms + self._chance.randrange(5, 80)
        if STALLS_MS <= came_ms < STALLS_MS + self._stalled_ms:
            came_ms = STALLS_MS + self._stalled_ms
        # They come in the order in which they were sent.
        self._came_ms = max(self._came_ms, came_ms)
        return self._came_ms + self._ahead_ms

    def _reach(self, at_ms: int) -> None:
        """The engine looks at the clock meanwhile."""
        while self._now_ms < at_ms:
            self._now_ms = min(at_ms, self._now_ms - self._now_ms % LOOK_MS + LOOK_MS)
            self._clock.move_to(self._now_ms / 1000)
            self.engine.keep_time(self._now_ms)
            self._publish()

    def _publish(self) -> None:
        records, self.engine.records = self.engine.records, []
        self.absorptions += [
            (each.side, each.volume, each.time_ms) for each in records if isinstance(each, AbsorptionFound)
        ]


def test_recording_is_worth_its_name() -> None:
    assert len([frame for frame in recording() if frame.kind == "aggTrade"]) > 800
    assert absorbed()


@pytest.mark.parametrize(
    ("ahead_ms", "stalled_s"),
    [
        (0, 0),
        (1_500, 1),
        (3_000, 0),
        (6_000, 2),
        (6_000, 7),
        (0, 10),
        (0, 20),
        (-6_000, 60),
        (HOUR_MS, 60),
        (-HOUR_MS, 7),
    ],
)
async def test_volumes_sides_and_windows_are_those_of_the_trades(
    ahead_ms: int, stalled_s: int, clock: time_machine.Traveller
) -> None:
    played = await asyncio.to_thread(Played, clock, ahead_ms, stalled_s * 1000)
    await played.play()

    engine, trades = played.engine, folded(MINUTE_MS)
    state = engine.instruments["BTCUSD"]
    assert engine.feed_state("binance").refused == {}
    minutes = {
        candle.opened_ms: candle.volume
        for _, timeframe, candle, _ in engine.rows
        if timeframe == "1m" and candle.opened_ms < ENDS_MS
    }
    sums = {opened_ms: round(volumes.sold + volumes.bought, 8) for opened_ms, volumes in trades.items()}
    assert minutes == sums
    flows = {each.minute.opened_ms: each.minute for each in engine.minute_flows}
    assert {ms: (flows[ms].bid_volume, flows[ms].ask_volume) for ms in trades} == trades
    assert played.absorptions == absorbed()
    assert catalogue.get("BTCUSD") is state.facts
