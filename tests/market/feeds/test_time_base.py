"""A venue whose quotes have no times, beside a clock that is wrong, on a line that stalls: volumes, sides and
windows are those of the trades, reckoned from the recording alone."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable, Container
from functools import cache
from statistics import fmean, stdev
from typing import Any, NamedTuple

import msgspec
import pytest
import time_machine

from core.threads import in_thread
from core.times import MINUTE_MS, epoch_ms
from market.engine.engine import Engine
from market.engine.feeds.supervisor import EngineReceiver
from market.engine.venues.binance import CLOCK, BinanceFeed
from market.engine.venues.venue_feed import FeedLost
from market.engine.venues.venue_history import MinutesRequest, TooManyTrades, TradesRequest, VenueTrade
from market.prices.candles import PriceBar
from market.prices.order_flow import WINDOW_MS, WINDOWS
from market.prices.quotes import Prices
from market.prices.records import AbsorptionFound
from signals_feed.closing import quoted_minutes
from tests.factories import make_instrument
from tests.market.running import flush_once

from .playing import Ended, PlayedFeed
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
    for number, frame in enumerate(trades, 1):
        frame.data["a"] = number
    return sorted(frames, key=lambda frame: frame.sent_ms)


class Volumes(NamedTuple):
    sold: float
    bought: float


def folded(span_ms: int, of: Container[int] | None = None) -> dict[int, Volumes]:
    """What was sold and bought in each interval, in time, by the own times of all trades, or of some."""
    units: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for frame in recording():
        if frame.kind == "aggTrade" and (of is None or frame.data["a"] in of):
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


class PlayedBinance(PlayedFeed, BinanceFeed):
    """Whatever is sent while it is cut off never comes, and is in the venue's history."""

    def __init__(
        self, frames: list[Frame], received: Callable[[Frame], int], reach: Callable[[int], None], now_ms: Any
    ) -> None:
        pace = make_pace(sleep=lambda seconds: asyncio.sleep(0))
        super().__init__({"BTCUSD": "BTCUSDT"}, "ws://venue.test", "http://venue.test", pace, now_ms)
        self._frames, self._received, self._reach = iter(frames), received, reach
        self.next_message = self._next
        self.asked: list[TradesRequest] = []
        self._sent_ms, self.has_too_many, self.has_bars = 0, False, False

    async def trades(self, wanted: TradesRequest) -> list[VenueTrade]:
        self.asked.append(wanted)
        if self.has_too_many:
            raise TooManyTrades("more than anybody asks for")
        known = [
            frame for frame in recording() if frame.kind == "aggTrade" and frame.sent_ms <= self._sent_ms
        ]
        return [
            VenueTrade(at["a"], at["T"], float(at["p"]), float(at["q"]), -1 if at["m"] else 1)
            for at in (frame.data for frame in known)
        ]

    async def history(self, wanted: MinutesRequest) -> list[PriceBar]:
        return [
            PriceBar(ms, 91_842.0, 91_850.0, 91_840.0, 91_849.0, round(sum(each), 8), 91_850.0, 91_840.0)
            for ms, each in folded(MINUTE_MS).items()
            if self.has_bars and wanted.start_ms <= ms < wanted.end_ms
        ]

    async def _next(self) -> bytes:
        frame = next(self._frames, None)
        if frame is None:
            raise Ended
        self._reach(self._received(frame))
        if frame.kind == "cut":
            raise FeedLost("cut")
        self._sent_ms = frame.sent_ms
        return frame.raw


class Played:
    """What an engine makes of the recording, beside a clock so far ahead, on a line that stalls once."""

    def __init__(self, clock: time_machine.Traveller, ahead_ms: int = 0, stalled_ms: int = 0) -> None:
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
        self.engine.feed_state("binance").source_ms = 0

    async def play(
        self, frames: list[Frame], *, has_too_many: bool = False, has_bars: bool = False
    ) -> PlayedBinance:
        receiver = EngineReceiver(self.engine, "binance", ["BTCUSD"], self._publish)
        feed = PlayedBinance(frames, self._receipt, self._reach, lambda: self._now_ms)
        feed.has_too_many, feed.has_bars = has_too_many, has_bars
        await feed.play(receiver)
        return feed

    @property
    def minutes(self) -> dict[int, tuple[float, str]]:
        """The volume and the basis of each closed minute."""
        rows = [(bar, basis) for _, timeframe, bar, basis in self.engine.rows if timeframe == "1m"]
        return {bar.opened_ms: (bar.volume, basis) for bar, basis in rows if bar.opened_ms < ENDS_MS}

    @property
    def partial(self) -> dict[str, list[int]]:
        """The minutes after noon at which the partial candles opened."""
        found: dict[str, list[int]] = {"1m": [], "5m": []}
        for _, timeframe, bar, _ in self.engine.rows:
            if bar.partial and timeframe in found:
                found[timeframe].append((bar.opened_ms - NOON_MS) // MINUTE_MS)
        return found

    @property
    def flows(self) -> dict[int, Volumes]:
        flows = [each.minute for each in self.engine.minute_flows if each.minute.opened_ms < ENDS_MS]
        return {flow.opened_ms: Volumes(flow.bid_volume, flow.ask_volume) for flow in flows}

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


@pytest.mark.served
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
    await played.play(recording())

    trades = folded(MINUTE_MS)
    # Those of the first moment may come twice: asked for, and as they are made.
    assert played.engine.feed_state("binance").refused.keys() <= {"duplicate"}
    volumes = {opened_ms: volume for opened_ms, (volume, _) in played.minutes.items()}
    assert volumes == {opened_ms: round(sum(each), 8) for opened_ms, each in trades.items()}
    assert played.flows == trades
    assert played.absorptions == absorbed()


def cut(cut_s: int, back_s: int) -> list[Frame]:
    """What is heard of the recording, and the cut."""
    cut_ms, back_ms = NOON_MS + cut_s * 1000, NOON_MS + back_s * 1000
    frames = [frame for frame in recording() if not cut_ms <= frame.sent_ms < back_ms]
    frames += [Frame(cut_ms, "cut", {})] if cut_s else []
    return sorted(frames, key=lambda frame: frame.sent_ms)


@pytest.mark.parametrize(
    ("cut_s", "back_s", "broken"),
    [(0, 25, [0]), (70, 95, [1]), (110, 133, [1, 2]), (110, 175, [1, 2])],
    ids=["at the start", "within a minute", "over its end", "for more than a minute"],
)
async def test_trades_that_a_cut_swallowed_are_asked_for_and_count_in_their_minutes(
    cut_s: int, back_s: int, broken: list[int], clock: time_machine.Traveller
) -> None:
    played = await asyncio.to_thread(Played, clock)
    feed = await played.play(cut(cut_s, back_s))

    trades = folded(MINUTE_MS)
    basis = {NOON_MS + minute * MINUTE_MS: "trades" for minute in broken}
    assert played.minutes == {ms: (round(sum(each), 8), basis.get(ms, "bid")) for ms, each in trades.items()}
    assert played.flows == trades
    assert len(feed.asked) == 1 + (cut_s > 0)
    assert played.partial == {"1m": [], "5m": []}


async def test_minute_that_a_cut_broke_closes_as_the_venue_s_own_if_that_is_there_while_it_is_open(
    clock: time_machine.Traveller,
) -> None:
    played = await asyncio.to_thread(Played, clock)
    await played.play(cut(110, 133), has_too_many=True, has_bars=True)

    opened_ms = NOON_MS + MINUTE_MS
    assert played.minutes[opened_ms] == (round(sum(folded(MINUTE_MS)[opened_ms]), 8), "trades")
    assert played.partial == {"1m": [0, 2], "5m": [0]}
    # What was seen of its order flow is not all.
    assert opened_ms not in played.flows


def minutes_that_judge(instrument_id: int) -> list[int]:
    """Those by which signals may end, counted from noon."""
    stored = quoted_minutes(instrument_id, ENDS_MS).order_by("opened_at")
    return [(epoch_ms(row.opened_at) - NOON_MS) // MINUTE_MS for row in stored]


@pytest.mark.parametrize(
    ("back_s", "has_too_many", "partial"),
    [(133, True, [0, 1, 2]), (205, False, [1])],
    ids=["too many", "too late"],
)
async def test_minute_whose_trades_do_not_come_in_time_closes_as_it_was_seen_and_is_partial_for_ever(
    back_s: int, has_too_many: bool, partial: list[int], clock: time_machine.Traveller
) -> None:
    frames = cut(110, back_s)
    played = await asyncio.to_thread(Played, clock)
    await played.play(frames, has_too_many=has_too_many)

    heard = {frame.data["a"] for frame in frames if frame.kind == "aggTrade"}
    assert played.partial == {"1m": partial, "5m": [0]}
    for minute in partial:
        opened_ms = NOON_MS + minute * MINUTE_MS
        assert played.minutes[opened_ms] == (round(sum(folded(MINUTE_MS, heard)[opened_ms]), 8), "bid")
    instrument_id = played.engine.instruments["BTCUSD"].facts.id
    await flush_once(played.engine)
    judged = await in_thread(minutes_that_judge, instrument_id)
    assert not set(judged) & set(partial)
    assert judged[-1] == MINUTES - 1
