"""The input of an analysis: plain values, all as of one moment."""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from market.prices import TIMEFRAMES

# The range of prices that can be stored; anything beyond is a fault.
LOWEST, HIGHEST = 1e-8, 1e10


class AnalysedBar(msgspec.Struct, frozen=True):
    """A candle."""

    opened_ms: int
    high: float
    low: float
    close: float

    @property
    def is_sound(self) -> bool:
        return LOWEST <= self.low <= self.close <= self.high <= HIGHEST


class QuoteFact(msgspec.Struct, frozen=True):
    bid: float
    ask: float
    time_ms: int

    @property
    def mid(self) -> float:
        # The geometric mean, because its inverse is the mid of the inverse pair.
        return float((self.bid * self.ask) ** 0.5)


class FlowWindow(msgspec.Struct, frozen=True):
    minutes: int
    bid_volume: float
    ask_volume: float
    count: int
    """The number of ticks or trades."""


class FlowFact(msgspec.Struct, frozen=True):
    windows: tuple[FlowWindow, ...]
    cumulative_delta: float | None
    """Since 00:00 UTC; None if nothing came today."""
    has_sides: bool
    """Whether the sides of trades are known; otherwise the tick rule estimates them."""
    since_ms: int
    """When this process began to listen: at its start, or after a gap."""
    last_ms: int


class NewsFact(msgspec.Struct, frozen=True):
    id: int
    title: str
    score: float
    published_ms: int
    names_symbol: bool
    """Whether it names the instrument, and not only its category."""
    side: int = 1
    """-1 if its score is about the quote currency: what is good for the yen is bad for USDJPY."""


class SignalFact(msgspec.Struct, frozen=True):
    side: int
    """1 for a buy, -1 for a sell."""
    entry: float
    stop_loss: float
    published_ms: int


class Facts(msgspec.Struct, frozen=True):
    symbol: str
    digits: int
    category: str
    """The category of news that concern it."""
    at_ms: int
    state: str
    """One of open, closed and stale."""
    quote: QuoteFact | None = None
    bars: Mapping[str, tuple[AnalysedBar, ...]] = {}
    """Closed candles by timeframe, oldest first."""
    day: AnalysedBar | None = None
    """The current UTC day so far."""
    flow: FlowFact | None = None
    news: tuple[NewsFact, ...] = ()
    signals: tuple[SignalFact, ...] = ()

    @property
    def price(self) -> float | None:
        """The current price, or else the last known one."""
        if self.quote is not None:
            return self.quote.mid
        bars = self.bars.get("1h") or next((bars for bars in self.bars.values() if bars), None)
        return bars[-1].close if bars else None


def known_by_then(facts: Facts) -> Facts:
    """Drops everything later than the moment of the facts, and values that are not sound."""
    at_ms, quote, flow, day = facts.at_ms, facts.quote, facts.flow, facts.day
    is_quoted = quote is not None and LOWEST <= quote.bid <= quote.ask <= HIGHEST and quote.time_ms <= at_ms
    return replace(
        facts,
        quote=quote if is_quoted else None,
        bars={
            timeframe: tuple(
                bar for bar in bars if bar.opened_ms + TIMEFRAMES[timeframe] <= at_ms and bar.is_sound
            )
            for timeframe, bars in facts.bars.items()
        },
        day=day if day is not None and day.opened_ms <= at_ms and day.is_sound else None,
        flow=flow if flow is not None and flow.last_ms <= at_ms else None,
        news=tuple(item for item in facts.news if item.published_ms <= at_ms and -1 <= item.score <= 1),
        signals=tuple(
            signal for signal in facts.signals if signal.published_ms <= at_ms and _has_risk(signal)
        ),
    )


def _has_risk(signal: SignalFact) -> bool:
    entry, stop = signal.entry, signal.stop_loss
    return LOWEST <= min(entry, stop) <= max(entry, stop) <= HIGHEST and signal.side * (entry - stop) > 0
