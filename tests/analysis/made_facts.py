"""Facts for analyses: a plain rising market unless a test says otherwise, and mirror images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from analysis.drivers import TREND_WEIGHTS
from analysis.facts import AnalysedBar, Facts, FlowFact, FlowWindow, NewsFact, QuoteFact, SignalFact
from market.prices.candles import TIMEFRAMES

NOW_MS = 1_795_183_200_000
HOUR_MS = TIMEFRAMES["1h"]


def make_bars(timeframe: str, closes: Sequence[float], width: float = 0.001) -> tuple[AnalysedBar, ...]:
    """The last of them has just ended."""
    span_ms = TIMEFRAMES[timeframe]
    first_ms = NOW_MS - NOW_MS % span_ms - len(closes) * span_ms
    return tuple(
        AnalysedBar(first_ms + number * span_ms, close * (1 + width), close / (1 + width), close)
        for number, close in enumerate(closes)
    )


def rising(count: int = 120, step: float = 0.0005, end: float = 1.08) -> list[float]:
    return [end * (1 + step) ** (number - count + 1) for number in range(count)]


def make_all_bars(closes: Sequence[float]) -> dict[str, tuple[AnalysedBar, ...]]:
    return {timeframe: make_bars(timeframe, closes) for timeframe in TREND_WEIGHTS}


def make_news_fact(score: float = 0.6, age_h: float = 1, **fields: Any) -> NewsFact:
    defaults: dict[str, Any] = {"id": 1, "title": "Euro climbs", "names_symbol": True}
    return NewsFact(score=score, published_ms=int(NOW_MS - age_h * HOUR_MS), **(defaults | fields))


def make_signal_fact(side: int = 1, entry: float = 1.08, risk: float = 0.004) -> SignalFact:
    return SignalFact(side, entry, entry - side * risk, NOW_MS - HOUR_MS)


def make_flow(ask: float = 80, bid: float = 20, count: int = 100, **fields: Any) -> FlowFact:
    windows = tuple(FlowWindow(minutes, bid, ask, count) for minutes in (5, 15, 60))
    defaults: dict[str, Any] = {
        "cumulative_delta": ask - bid,
        "has_sides": True,
        "since_ms": NOW_MS - 5 * HOUR_MS,
        "last_ms": NOW_MS - 500,
    }
    return FlowFact(windows, **(defaults | fields))


def make_facts(**fields: Any) -> Facts:
    """All kinds of data, and all of them bullish."""
    defaults: dict[str, Any] = {
        "symbol": "EURUSD",
        "digits": 5,
        "category": "forex",
        "at_ms": NOW_MS,
        "state": "open",
        "quote": QuoteFact(1.0800, 1.0802, NOW_MS - 500),
        "bars": make_all_bars(rising()),
        "day": AnalysedBar(NOW_MS - NOW_MS % TIMEFRAMES["1d"], 1.083, 1.077, 1.08),
        "flow": make_flow(),
        "news": (make_news_fact(),),
        "signals": (make_signal_fact(),),
    }
    return Facts(**(defaults | fields))


def mirrored(facts: Facts) -> Facts:
    """The same market seen from the other side: 1/price, sold for bought, good news for bad."""
    flow, quote, day = facts.flow, facts.quote, facts.day
    return replace(
        facts,
        quote=quote and replace(quote, bid=1 / quote.ask, ask=1 / quote.bid),
        bars={name: tuple(inverse(bar) for bar in bars) for name, bars in facts.bars.items()},
        day=day and inverse(day),
        flow=flow and replace(flow, windows=tuple(turned(window) for window in flow.windows)),
        news=tuple(replace(item, score=-item.score) for item in facts.news),
        signals=tuple(
            replace(each, side=-each.side, entry=1 / each.entry, stop_loss=1 / each.stop_loss)
            for each in facts.signals
        ),
    )


def inverse(bar: AnalysedBar) -> AnalysedBar:
    return AnalysedBar(bar.opened_ms, 1 / bar.low, 1 / bar.high, 1 / bar.close)


def turned(window: FlowWindow) -> FlowWindow:
    return replace(window, bid_volume=window.ask_volume, ask_volume=window.bid_volume)
