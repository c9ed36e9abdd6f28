"""The drivers of an analysis: each weighs one kind of data."""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import expm1, log, tanh

from analysis.answer import (
    Finding,
    NewsEvidence,
    OrderFlowEvidence,
    SignalsEvidence,
    TimeframeTrend,
    TrendEvidence,
    VolatilityEvidence,
    WeighedItem,
    WindowDelta,
)
from analysis.facts import AnalysedBar, Facts, FlowFact, FlowWindow, NewsFact, QuoteFact, SignalFact
from core.times import MINUTE_MS, iso_ms
from market.prices import TIMEFRAMES, AnyRecord, SeriesBegan, TickAccepted, interval_start
from news.labels import sentiment_label
from signals_feed.exits import exit_price

# The trend and the volatility, both from candles. Averages and ranges are computed on logarithms, so that
# an instrument and its inverse are mirror images.
ATR_LENGTH = 14


def ema(values: Sequence[float], length: int) -> list[float]:
    """Starts with the mean of the first `length` values; empty if there are fewer."""
    if len(values) < length:
        return []
    share = 2 / (length + 1)
    average = [sum(values[:length]) / length]
    for value in values[length:]:
        average.append(average[-1] + share * (value - average[-1]))
    return average


def atr(bars: Sequence[AnalysedBar]) -> list[float]:
    """Wilder's average true range, as a share of the price; empty if there are too few bars."""
    ranges = [_true_range(before, bar) for before, bar in pairwise(bars)]
    if len(ranges) < ATR_LENGTH:
        return []
    average = [sum(ranges[:ATR_LENGTH]) / ATR_LENGTH]
    for each in ranges[ATR_LENGTH:]:
        average.append(average[-1] + (each - average[-1]) / ATR_LENGTH)
    return average


def percentile(values: Sequence[float], value: float) -> float:
    """The share of smaller values, with equal ones counted half, so 0.5 if all are equal."""
    ordered = sorted(values)
    return (bisect_left(ordered, value) + bisect_right(ordered, value)) / (2 * len(ordered))


def _true_range(before: AnalysedBar, bar: AnalysedBar) -> float:
    return log(max(bar.high, before.close)) - log(min(bar.low, before.close))


TREND_WEIGHTS = {"15m": 0.2, "1h": 0.3, "4h": 0.3, "1d": 0.2}
FAST, SLOW, SLOPE_OVER = 20, 50, 5

# An average needs some values to settle after its start.
FEWEST = SLOW + 10


def weigh_trend(facts: Facts) -> Finding:
    """A timeframe without enough candles counts as neutral."""
    price = facts.price
    if price is None:
        return Finding("There are no candles yet to see a trend in.")
    found = [
        trend_of(timeframe, weight, bars, price)
        for timeframe, weight in TREND_WEIGHTS.items()
        if len(bars := facts.bars.get(timeframe, ())) >= FEWEST
    ]
    if not found:
        return Finding(f"A trend needs {FEWEST} closed candles, and no timeframe has them yet.")
    score = sum(each.weight * each.score for each in found)
    return Finding(describe_trend(found), score, TrendEvidence(found))


def trend_of(timeframe: str, weight: float, bars: Sequence[AnalysedBar], price: float) -> TimeframeTrend:
    values = [log(bar.close) for bar in bars]
    fast, slow, unit = ema(values, FAST), ema(values, SLOW), atr(bars)[-1]
    if not unit:
        return TimeframeTrend(timeframe, weight, 0.0, 0.0, 0.0, 0.0)
    spread = (fast[-1] - slow[-1]) / unit
    slope = (fast[-1] - fast[-1 - SLOPE_OVER]) / unit
    position = (log(price) - fast[-1]) / unit
    score = tanh(0.5 * spread + 0.3 * slope + 0.2 * position)
    rounded = (round(number, 3) for number in (score, spread, slope, position))
    return TimeframeTrend(timeframe, weight, *rounded)


def describe_trend(found: list[TimeframeTrend]) -> str:
    words = {"bullish": "up", "bearish": "down", "neutral": "sideways"}
    by_word = {
        word: [each.timeframe for each in found if sentiment_label(each.score) == label]
        for label, word in words.items()
    }
    parts = [f"{word} on {listed(timeframes)}" for word, timeframes in by_word.items() if timeframes]
    return f"The trend is {', '.join(parts)}."


def listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


TIMEFRAME = "1h"
FEWEST_VALUES, LOOKED_BACK = 30, 240
FACTOR_WHERE_UNKNOWN = 0.8
LOST_AT_MOST = 0.4


def weigh_volatility(facts: Facts) -> Finding:
    values = atr(facts.bars.get(TIMEFRAME, ()))[-LOOKED_BACK:]
    if len(values) < FEWEST_VALUES:
        return Finding("There are too few hourly candles to judge the volatility by.")
    rank = percentile(values, values[-1])
    percent = round(100 * expm1(values[-1]), 3)
    text = (
        f"The average hourly range is {percent}%, which is {describe_volatility(rank)} (percentile"
        f" {round(100 * rank)})."
    )
    return Finding(
        text, 0.0, VolatilityEvidence(TIMEFRAME, percent, round(rank, 3), round(confidence_factor(rank), 3))
    )


def confidence_factor(rank: float) -> float:
    """Volatility above the median reduces the confidence, by up to 40%."""
    return 1 - LOST_AT_MOST * max(0.0, 2 * rank - 1)


def describe_volatility(rank: float) -> str:
    if rank >= 0.8:
        return "unusually wide"
    return "unusually narrow" if rank <= 0.2 else "typical"


# The order flow of the last hour, minute by minute, and whether buyers or sellers pressed harder in it.
WINDOWS = (5, 15, 60)


class FlowMinute:
    __slots__ = ("ask_volume", "bid_volume", "count", "opened_ms")

    def __init__(self, opened_ms: int) -> None:
        self.opened_ms = opened_ms
        self.bid_volume = self.ask_volume = 0.0
        self.count = 0


class Flow:
    """The order flow of one instrument."""

    __slots__ = ("cumulative_delta", "last_ms", "minutes", "since_ms")

    def __init__(self, since_ms: int) -> None:
        self.minutes: deque[FlowMinute] = deque(maxlen=max(WINDOWS))
        self.cumulative_delta = 0.0
        self.since_ms = self.last_ms = since_ms

    def take(self, record: TickAccepted) -> None:
        minute = self.minutes[-1] if self.minutes else None
        if minute is None or record.time_ms >= minute.opened_ms + MINUTE_MS:
            minute = FlowMinute(interval_start(record.time_ms, MINUTE_MS))
            self.minutes.append(minute)
        minute.bid_volume += record.bid_volume
        minute.ask_volume += record.ask_volume
        minute.count += 1
        self.cumulative_delta, self.last_ms = record.cumulative_delta, record.time_ms

    def fact(self, now_ms: int, *, has_sides: bool) -> FlowFact:
        windows = tuple(self._window(minutes, now_ms) for minutes in WINDOWS)
        is_todays = self.last_ms >= interval_start(now_ms, TIMEFRAMES["1d"])
        cumulative_delta = self.cumulative_delta if is_todays else None
        # A tick that was heard counts, even if its source's clock runs a little ahead of ours.
        since_ms, last_ms = min(self.since_ms, now_ms), min(self.last_ms, now_ms)
        return FlowFact(windows, cumulative_delta, has_sides, since_ms, last_ms)

    def _window(self, minutes: int, now_ms: int) -> FlowWindow:
        """Sums whole minutes, including the present one."""
        since_ms = interval_start(now_ms, MINUTE_MS) - (minutes - 1) * MINUTE_MS
        inside = [minute for minute in self.minutes if minute.opened_ms >= since_ms]
        return FlowWindow(
            minutes,
            sum(minute.bid_volume for minute in inside),
            sum(minute.ask_volume for minute in inside),
            sum(minute.count for minute in inside),
        )


class Flows:
    """The order flow of all instruments, as this process heard it."""

    def __init__(self) -> None:
        self._flows: dict[str, Flow] = {}

    def hear(self, records: Iterable[AnyRecord]) -> None:
        """Called for every tick, so it only adds up."""
        for record in records:
            if type(record) is TickAccepted and record.flow_seq:
                flow = self._flows.get(record.symbol)
                if flow is None:
                    flow = self._flows[record.symbol] = Flow(record.time_ms)
                flow.take(record)
            elif type(record) is SeriesBegan:
                # Earlier trades belong to a series of another kind.
                self._flows.pop(record.symbol, None)

    def keep(self, symbol: str, records: Iterable[AnyRecord], came_ms: object) -> None:
        """What was not wanted when it came."""
        self.hear(records)

    def begin(self, epoch: str, checkpoints: Mapping[str, object]) -> None:
        """Starts again: records may have been missed, and part of an hour would look like a whole one."""
        self.clear()

    def clear(self) -> None:
        self._flows.clear()

    def of(self, symbol: str, now_ms: int, *, has_sides: bool) -> FlowFact | None:
        flow = self._flows.get(symbol)
        return None if flow is None else flow.fact(now_ms, has_sides=has_sides)


WINDOW_WEIGHTS = {5: 0.2, 15: 0.3, 60: 0.5}
"""By the length of the window in minutes."""

# A window with this many ticks counts half: with few ticks, a single one could change the sign.
COUNTS_HALF_AT = 20

# The tick rule guesses sides from price moves, so it says less and partly repeats the trend.
TRUST_IN_TICK_RULE = 0.7
DECIMALS = 8


def weigh_order_flow(facts: Facts) -> Finding:
    flow = facts.flow
    if flow is None or not any(window.count for window in flow.windows):
        return Finding("No order flow in the last hour.")
    trust = 1.0 if flow.has_sides else TRUST_IN_TICK_RULE
    score = trust * sum(WINDOW_WEIGHTS.get(window.minutes, 0.0) * pressure(window) for window in flow.windows)
    windows = [
        WindowDelta(
            each.minutes,
            round(each.bid_volume, DECIMALS),
            round(each.ask_volume, DECIMALS),
            round(each.ask_volume - each.bid_volume, DECIMALS),
            each.count,
        )
        for each in flow.windows
    ]
    evidence = OrderFlowEvidence(
        "trades" if flow.has_sides else "tick_rule",
        flow.cumulative_delta,
        iso_ms(flow.since_ms),
        windows,
    )
    return Finding(describe_order_flow(flow, windows[-1], facts.at_ms), score, evidence)


def pressure(window: FlowWindow) -> float:
    """From -1 (only sellers) to 1 (only buyers)."""
    total = window.ask_volume + window.bid_volume
    if total <= 0:
        return 0.0
    share = (window.ask_volume - window.bid_volume) / total
    return share * window.count / (window.count + COUNTS_HALF_AT)


def describe_order_flow(flow: FlowFact, longest: WindowDelta, at_ms: int) -> str:
    heard = min(longest.minutes, 1 + (at_ms - flow.since_ms) // MINUTE_MS)
    span = "minute" if heard == 1 else f"{heard} minutes"
    if longest.delta == 0:
        lead = "Buyers and sellers were balanced"
    else:
        lead = f"{'Buyers' if longest.delta > 0 else 'Sellers'} dominated"
    estimated = "" if flow.has_sides else ", estimated by the tick rule"
    delta = f"{longest.delta:+g}".replace("-", "\N{MINUS SIGN}")
    return f"{lead} over the last {span} (delta {delta}{estimated})."


# Recent publications: news about the instrument and its category, and active signals on it.
HOUR_MS = TIMEFRAMES["1h"]
LOOKED_BACK_MS = 72 * HOUR_MS
HALVES_AFTER_MS = 12 * HOUR_MS
OF_CATEGORY = 0.5

# Doubt worth half a fresh item: old or single items move the score less.
DOUBT = 0.5
SHOWN = 8


def weigh_news(facts: Facts) -> Finding:
    weighed = [
        (weight_of(item, facts), item)
        for item in facts.news
        if facts.at_ms - item.published_ms <= LOOKED_BACK_MS
    ]
    if not weighed:
        return Finding("No news of the last three days concerns it.")
    total = DOUBT + sum(weight for weight, _ in weighed)
    score = sum(weight * item.side * item.score for weight, item in weighed) / total
    weighed.sort(key=lambda each: (-each[0], -each[1].published_ms, -each[1].id))
    shown = [shown_item(item, weight / total) for weight, item in weighed[:SHOWN]]
    return Finding(describe_news(len(weighed), score, shown[0]), score, NewsEvidence(len(weighed), shown))


def weight_of(item: NewsFact, facts: Facts) -> float:
    relevance = 1.0 if item.names_symbol else OF_CATEGORY
    return relevance * float(0.5 ** ((facts.at_ms - item.published_ms) / HALVES_AFTER_MS))


def shown_item(item: NewsFact, share: float) -> WeighedItem:
    return WeighedItem(
        item.id,
        item.title,
        sentiment_label(item.score),
        item.score,
        iso_ms(item.published_ms),
        "symbol" if item.names_symbol else "category",
        1 if item.side > 0 else -1,
        round(share, 4),
    )


def describe_news(number: int, score: float, first: WeighedItem) -> str:
    label, items = sentiment_label(score), counted(number, "item")
    return f"The news of the last three days is {label} ({items}), led by “{first.title}”."


# As if this many neutral signals were active, so that one or two signals decide little.
DOUBTS = 2


def weigh_signals(facts: Facts) -> Finding:
    signals = facts.signals
    if not signals:
        return Finding("No signals are active.")
    buys = sum(signal.side > 0 for signal in signals)
    sells = len(signals) - buys
    at_risk = round(sum(r_at_risk(signal, facts.quote) for signal in signals), 2)
    text = describe_signals(buys, sells, at_risk)
    return Finding(text, (buys - sells) / (len(signals) + DOUBTS), SignalsEvidence(buys, sells, at_risk))


def describe_signals(buys: int, sells: int, at_risk: float) -> str:
    sides = [
        counted(number, side) for number, side in ((buys, "buy signal"), (sells, "sell signal")) if number
    ]
    return f"{' and '.join(sides)} {'is' if buys + sells == 1 else 'are'} active, with {at_risk} R at risk."


def r_at_risk(signal: SignalFact, quote: QuoteFact | None) -> float:
    """The loss from the current price to the stop, in units of the initial risk."""
    if quote is None:
        return 1.0
    price = exit_price("buy" if signal.side > 0 else "sell", quote.bid, quote.ask)
    risked = abs(signal.entry - signal.stop_loss)
    return max(0.0, signal.side * (price - signal.stop_loss) / risked)


def counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
