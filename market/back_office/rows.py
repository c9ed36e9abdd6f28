"""The market status as its page shows it: what is wrong stands first, and says so in words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from market.engine.status import FeedStatus
from market.overview import Instrument, Overview, is_of

from . import words

# Icon and colour of a state; the word itself stands beside them.
STATES = {
    "open": ("check_circle", "good"),
    "live": ("check_circle", "good"),
    "closed": ("bedtime", "calm"),
    "silent": ("hourglass_empty", "calm"),
    "unheard": ("hourglass_empty", "calm"),
    "unknown": ("help", "calm"),
    "stale": ("error", "bad"),
    "lost": ("error", "bad"),
}


@dataclass
class State:
    word: str

    @property
    def icon(self) -> str:
        return STATES[self.word][0]

    @property
    def tone(self) -> str:
        return STATES[self.word][1]


@dataclass
class InstrumentRow:
    id: int
    symbol: str
    name: str
    state: State
    bid: str
    ask: str
    age: str
    quoted_at: datetime | None
    source: str
    is_fallback: bool
    switched_at: datetime | None
    switches: int
    ticks: int | None
    delta: str
    day: DayRow | None
    outliers: int
    outlier: str
    """The last price that was refused as too far from the one before."""
    outlier_at: datetime | None


@dataclass
class DayRow:
    change: str
    direction: str
    high: str
    low: str
    volume: str
    place: int
    """Of the last price between low and high, in percent."""


@dataclass
class FeedRow:
    name: str
    state: State
    since: datetime | None
    why: str
    age: str
    lag: str
    ticks: int
    serves: int
    refused: list[tuple[str, int]]
    complaints: tuple[str, ...]


def instrument_rows(seen: Overview) -> list[InstrumentRow]:
    rows = [_instrument(each) for each in seen.instruments]
    return sorted(rows, key=lambda row: (row.state.word != "stale", row.symbol))


def feed_rows(seen: Overview) -> list[FeedRow]:
    rows = [_feed(feed, seen) for feed in seen.feeds]
    return sorted(rows, key=lambda row: (row.state.word != "lost", row.name))


def _instrument(seen: Instrument) -> InstrumentRow:
    facts, quote, told = seen.facts, seen.quote, seen.told
    return InstrumentRow(
        id=facts.id,
        symbol=facts.symbol,
        name=facts.name,
        state=State(seen.state),
        bid=words.price(quote.bid if quote else None, facts.digits),
        ask=words.price(quote.ask if quote else None, facts.digits),
        age=words.span(seen.age_ms),
        quoted_at=moment(quote.time_ms) if quote else None,
        source=told.feed if told else words.NONE,
        is_fallback=told is not None and told.feed != told.feeds[0],
        switched_at=moment(told.switched_ms) if told and told.switched_ms else None,
        switches=told.switches if told else 0,
        ticks=told.ticks if told else None,
        delta=words.signed(words.size(told.cumulative_delta)) if told else words.NONE,
        day=_day(seen),
        outliers=told.outliers if told else 0,
        outlier=words.price(told.outlier_price if told else None, facts.digits),
        outlier_at=moment(told.outlier_ms) if told and told.outlier_ms else None,
    )


def _day(seen: Instrument) -> DayRow | None:
    day, digits = seen.day, seen.facts.digits
    if day is None:
        return None
    reach = day.high - day.low
    return DayRow(
        change=words.change(day.change_percent),
        direction="up" if day.change > 0 else "down" if day.change < 0 else "flat",
        high=words.price(day.high, digits),
        low=words.price(day.low, digits),
        volume=words.size(day.volume),
        place=round(100 * (day.last - day.low) / reach) if reach else 50,
    )


def _feed(feed: FeedStatus, seen: Overview) -> FeedRow:
    word = "unknown" if not seen.is_running else feed.state if feed.heard_ms or feed.why else "unheard"
    told = [each.told for each in seen.instruments if each.told]
    return FeedRow(
        name=feed.name,
        state=State(word),
        since=moment(feed.since_ms) if feed.since_ms else None,
        why=feed.why,
        age=words.span(max(0, seen.at_ms - feed.heard_ms) if feed.heard_ms else None),
        lag=words.span(feed.lag_ms if feed.ticks else None),
        ticks=feed.ticks,
        serves=sum(is_of(feed.name, one.feed) for one in told),
        refused=sorted(feed.refused.items(), key=lambda counted: (-counted[1], counted[0])),
        complaints=feed.complaints,
    )


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
