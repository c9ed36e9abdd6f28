"""The simulated market as a feed: the ticks of every open instrument, as time goes by."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from operator import attrgetter

from core.clock import now_ms
from instruments.facts import InstrumentFacts
from instruments.hours import Span, TradingHours
from market.prices.records import Tick
from market.simulated.profiles import profile_for
from market.simulated.simulated_market import RapidMarket, SimulatedMarket, simulated

from .feed import FeedReceiver

# Ticks are made that long before their time comes, so that none waits until it is made.
AHEAD_MS, LEAST_AHEAD_MS = 400, 200

# The pause between two looks, at least; where a second has thousands of ticks, more of them go together.
LEAST_S, RAPID_LEAST_S = 0.001, 0.01

# After a longer pause (a laptop asleep) the feed continues from here instead of making every tick it missed.
CATCH_UP_MS = 600_000

# What was missed comes in pieces, so that others have their turn in between.
PIECE_MS = 1_000

# The same for load tests, where a second has 50,000 ticks.
RAPID_CATCH_UP_MS, RAPID_PIECE_MS = 1_000, 50


class DemoFeed:
    """Prices are a function of the time, so every process and every restart sees the same market."""

    def __init__(
        self,
        seed: int,
        instruments: Callable[[], Iterable[InstrumentFacts]],
        since_ms: int,
        known_ms: Mapping[str, int],
        rate: float = 0.0,
        clock: Callable[[], int] = now_ms,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`known_ms` has the time of each symbol's last kept tick; `rate` is in ticks a second of all
        instruments together, 0 for what their profiles say."""
        self._clock, self._sleep = clock, sleep
        self._seed = seed
        self._instruments = instruments
        self._since_ms = since_ms
        self._known_ms = known_ms
        self._rate = rate
        self._markets: dict[tuple[object, ...], SimulatedMarket | RapidMarket] = {}

    async def run(self, receiver: FeedReceiver) -> None:
        """Each tick when its time comes."""
        least_s = RAPID_LEAST_S if self._rate else LEAST_S
        ahead = deque[Tick]()
        while True:
            begun_ms = self._clock()
            if self._since_ms < begun_ms + LEAST_AHEAD_MS:
                for ticks in self.ticks_until(begun_ms + AHEAD_MS):
                    ahead.extend(ticks)
                    receiver.take(_due(ahead, self._clock()))
                    await self._sleep(0)
            now_ms = self._clock()
            # Also without a due tick: a quiet symbol is not lost.
            receiver.take(_due(ahead, now_ms))
            next_ms = self._since_ms - LEAST_AHEAD_MS
            if ahead:
                next_ms = min(next_ms, ahead[0].time_ms)
            await self._sleep(max(least_s, (next_ms - now_ms) / 1000))

    def ticks_until(self, now_ms: int) -> Iterator[list[Tick]]:
        """What has come since the last time, a piece after the other; empty if all markets are closed."""
        catch_up_ms = RAPID_CATCH_UP_MS if self._rate else CATCH_UP_MS
        piece_ms = RAPID_PIECE_MS if self._rate else PIECE_MS
        self._since_ms = max(self._since_ms, now_ms - catch_up_ms)
        while self._since_ms < now_ms:
            start_ms, self._since_ms = self._since_ms, min(now_ms, self._since_ms + piece_ms)
            yield self._ticks_between(start_ms, self._since_ms)

    def _ticks_between(self, start_ms: int, end_ms: int) -> list[Tick]:
        ticks: list[Tick] = []
        instruments = list(self._instruments())
        rate = self._rate / max(1, len(instruments))
        for facts in instruments:
            for opens_ms, closes_ms in open_parts(facts.hours, start_ms, end_ms):
                unknown_ms = max(opens_ms, self._known_ms.get(facts.symbol, 0) + 1)
                ticks += self._market(facts, rate).ticks_between(unknown_ms, closes_ms)
        ticks.sort(key=attrgetter("time_ms"))
        return ticks

    def _market(self, facts: InstrumentFacts, rate: float) -> SimulatedMarket | RapidMarket:
        # The key has everything that the ticks depend on, because staff may change an instrument while the
        # feed runs.
        key = facts.symbol, facts.digits, facts.pip_size, facts.type, facts.volume_kind, rate
        market = self._markets.get(key)
        if market is None:
            market = self._markets[key] = self._make_market(facts, rate)
        return market

    def _make_market(self, facts: InstrumentFacts, rate: float) -> SimulatedMarket | RapidMarket:
        if not rate:
            return simulated(facts, self._seed)
        profile = profile_for(facts.symbol, facts.digits, facts.pip_size, facts.type)
        return RapidMarket(self._seed, facts.symbol, facts.digits, profile, facts.volume_kind, rate)


def _due(ahead: deque[Tick], now_ms: int) -> list[Tick]:
    due = []
    while ahead and ahead[0].time_ms <= now_ms:
        due.append(ahead.popleft())
    return due


def open_parts(hours: TradingHours, start_ms: int, end_ms: int) -> Iterable[Span]:
    """The sessions within a second or less; none is shorter than a minute. `is_open` costs a hundredth of
    `sessions_between`."""
    is_open = hours.is_open(start_ms)
    if is_open == hours.is_open(end_ms - 1):
        return [(start_ms, end_ms)] if is_open else []
    return hours.sessions_between(start_ms, end_ms)
