"""Four markets on days that are difficult for a calendar, and an engine that runs through them."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from hypothesis import strategies as st

from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from instruments.hours import TradingHours
from market.engine.engine import Engine
from market.prices.candles import PriceBar
from market.prices.quotes import Prices
from market.prices.records import Tick
from tests.factories import make_calendar, make_instrument

from .ticking import HOUR_MS, Rows, ms

# Time zone, sessions and holidays.
MARKETS = {
    "CRYPTO": ("UTC", "24/7", ""),
    "FOREX": ("America/New_York", "Sun 17:00-Fri 17:00", "2026-11-11"),
    "METAL": ("America/New_York", "Sun-Thu 18:00-17:00", "2026-12-25"),
    "STOCK": ("Europe/London", "Mon-Fri 08:00-16:30", "2026-12-24@12:30"),
}
# Ten minutes or less before something happens.
STARTS = {
    "a pause of an hour": "2026-11-18T21:58",
    "the end of a week": "2026-11-20T21:58",
    "the first opening in summer time in America": "2026-03-08T20:58",
    "the last opening in summer time in America": "2026-10-25T20:58",
    "the first opening in winter time in America": "2026-11-01T21:58",
    "the first opening in summer time in Europe": "2026-03-30T06:58",
    "the first opening in winter time in Europe": "2026-10-26T07:58",
    "a holiday": "2026-11-10T21:58",
    "the end of a holiday": "2026-11-11T21:58",
    "an early close": "2026-12-24T12:28",
    "the end of a year": "2026-12-31T23:58",
}
ENDED_MS = 24 * HOUR_MS


class Step(NamedTuple):
    """Time goes by, heard of or in silence, and a tick comes that was under way for a while."""

    gap_ms: int
    heard: bool
    symbol: str
    bid: float
    ask: float
    volume: float
    late_ms: int

    def tick(self, at_ms: int) -> Tick:
        return Tick(self.symbol, self.bid, self.ask, at_ms - self.late_ms, self.volume)


class TradingDays(NamedTuple):
    start_ms: int
    clock_ms: int
    """The engine looks at the clock this often."""
    steps: list[Step]

    def moments(self) -> list[int]:
        """When each step's tick comes."""
        at_ms, moments = self.start_ms, []
        for step in self.steps:
            at_ms += step.gap_ms
            moments.append(at_ms)
        return moments


# A tick of the second minute comes when the third is closed already, which chance alone seldom finds.
OVERTAKEN = TradingDays(
    ms("2026-11-18T12:00"),
    15_000,
    [
        Step(1_000, True, "CRYPTO", 1.08, 1.0801, 1.0, 0),
        Step(4 * MINUTE_MS, True, "FOREX", 1.08, 1.0801, 1.0, 0),
        Step(1_000, True, "CRYPTO", 1.09, 1.0901, 2.0, 150_000),
    ],
)
points = st.tuples(st.integers(107_900, 108_100), st.integers(0, 30), st.integers(0, 10**9))
pauses = (
    st.tuples(st.integers(0, 20_000), st.booleans())
    | st.tuples(st.integers(20_000, 100_000), st.booleans())
    | st.tuples(st.integers(100_000, 12 * MINUTE_MS), st.just(True))
    # Until a market has opened or closed, and nobody was there to see it.
    | st.tuples(st.integers(HOUR_MS, 16 * HOUR_MS), st.just(False))
)


@st.composite
def trading_days(draw: st.DrawFn, *, late: bool = False) -> TradingDays:
    start_ms = ms(STARTS[draw(st.sampled_from(sorted(STARTS)))]) - draw(st.integers(0, 10 * MINUTE_MS))
    # Few at a time, so that what comes late meets what its own market did.
    markets = st.sampled_from(draw(st.lists(st.sampled_from(sorted(MARKETS)), min_size=1, max_size=2)))
    delays = st.just(0) | st.integers(0, 5_000) | st.integers(0, 5 * MINUTE_MS) if late else st.just(0)
    steps = []
    for gap_ms, heard in draw(st.lists(pauses, min_size=8, max_size=24)):
        bid, spread, lots = draw(points)
        prices = bid / 1e5, (bid + spread) / 1e5
        steps.append(Step(gap_ms, heard, draw(markets), *prices, lots / 1e8, draw(delays)))
    return TradingDays(start_ms, draw(st.sampled_from([15_000, 25_000, 59_000])), steps)


def make_markets() -> None:
    for symbol, (zone, sessions, holidays) in MARKETS.items():
        calendar = make_calendar(symbol, sessions, timezone=zone, holidays=holidays)
        make_instrument(symbol, calendar=calendar, volume_kind="traded", stale_after_s=10**6)


def hours_of(symbol: str) -> TradingHours:
    return catalogue.get(symbol).hours


class EngineRun(NamedTuple):
    """What an engine made of these days."""

    engine: Engine
    taken: dict[str, list[Tick]]
    reasons: list[str | None]
    """Why each tick that came was refused."""

    ended_ms: int
    """When the last tick came."""

    def rows(self, symbol: str) -> Rows:
        """As the database keeps them: a candle that is written again replaces the one before."""
        own = [row for row in self.engine.rows if row[0] == catalogue.get(symbol).id]
        return {(timeframe, candle.opened_ms): candle for _, timeframe, candle, _ in own}

    def candles(self, symbol: str, timeframe: str = "1m") -> list[PriceBar]:
        """Without their source, which is the same throughout."""
        rows = self.rows(symbol)
        found = [rows[key] for key in sorted(rows) if key[0] == timeframe]
        assert {candle.source for candle in found} <= {"push"}
        return [msgspec.structs.replace(candle, source="") for candle in found]


def run_engine(days: TradingDays) -> EngineRun:
    run = EngineRun(Engine(Prices("bid")), {symbol: [] for symbol in MARKETS}, [], days.moments()[-1])
    engine, at_ms = run.engine, days.start_ms
    for step, next_ms in zip(days.steps, days.moments(), strict=True):
        _pass_time(engine, step, at_ms, next_ms, days.clock_ms)
        at_ms = next_ms
        tick = step.tick(at_ms)
        (reason,) = engine.take("push", [tick], at_ms)
        run.reasons.append(reason)
        run.taken[step.symbol] += [tick] * (reason is None)
    engine.keep_time(at_ms + ENDED_MS)
    return run


def _pass_time(engine: Engine, step: Step, start_ms: int, end_ms: int, clock_ms: int) -> None:
    for now_ms in range(start_ms, end_ms, clock_ms if step.heard else 3 * HOUR_MS):
        if step.heard:
            engine.take("push", [], now_ms)
        engine.keep_time(now_ms)
    if step.heard:
        engine.take("push", [], end_ms)
