"""The admin's page "Market status": what is wrong stands first, and says so in words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from market.engine.status import FeedStatus
from market.overview import InstrumentOverview, Overview, is_of, overview

PERMISSIONS = ("instruments.view_instrument", "market.view_candle")


@require_safe
@permission_required(PERMISSIONS, raise_exception=True)
def market_status(request: HttpRequest) -> HttpResponse:
    context = {**admin.site.each_context(request), "title": "Market status", **shown(overview())}
    request.current_app = admin.site.name
    return TemplateResponse(request, "admin/market_status.html", context)


def shown(seen: Overview) -> dict[str, Any]:
    instruments, feeds = instrument_rows(seen), feed_rows(seen)
    return {
        "at": moment(seen.at_ms),
        "engine": seen.engine,
        "is_running": seen.is_running,
        "engine_age": as_span(seen.engine_age_ms) if seen.engine.at_ms else "",
        "clock_off": as_span(abs(seen.engine.clock_off_ms)) if seen.engine.clock_off_ms else "",
        "is_separate": bool(settings.REDIS_URL),
        "instruments": instruments,
        "feeds": feeds,
        "states": Counter(row.state.word for row in instruments),
        "live": sum(row.state.word == "live" for row in feeds),
        "lost": [row.name for row in feeds if row.state.word == "lost"],
        "ticks": sum(row.ticks for row in feeds),
        "refused": sum(count for row in feeds for _, count in row.refused),
    }


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
class StateLabel:
    word: str

    @property
    def icon(self) -> str:
        return STATES[self.word][0]

    @property
    def tone(self) -> str:
        return STATES[self.word][1]


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
class InstrumentRow:
    id: int
    symbol: str
    name: str
    state: StateLabel
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
class FeedRow:
    name: str
    state: StateLabel
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


def _instrument(seen: InstrumentOverview) -> InstrumentRow:
    facts, quote, status = seen.facts, seen.quote, seen.status
    return InstrumentRow(
        id=facts.id,
        symbol=facts.symbol,
        name=facts.name,
        state=StateLabel(seen.state),
        bid=as_price(quote.bid if quote else None, facts.digits),
        ask=as_price(quote.ask if quote else None, facts.digits),
        age=as_span(seen.age_ms),
        quoted_at=moment(quote.time_ms) if quote else None,
        source=status.feed if status else NONE,
        is_fallback=status is not None and status.feed != status.feeds[0],
        switched_at=moment(status.switched_ms) if status and status.switched_ms else None,
        switches=status.switches if status else 0,
        ticks=status.ticks if status else None,
        delta=with_sign(as_size(status.cumulative_delta)) if status else NONE,
        day=_day(seen),
        outliers=status.outliers if status else 0,
        outlier=as_price(status.outlier_price if status else None, facts.digits),
        outlier_at=moment(status.outlier_ms) if status and status.outlier_ms else None,
    )


def _day(seen: InstrumentOverview) -> DayRow | None:
    day, digits = seen.day, seen.facts.digits
    if day is None:
        return None
    reach = day.high - day.low
    return DayRow(
        change=as_change(day.change_percent),
        direction="up" if day.change > 0 else "down" if day.change < 0 else "flat",
        high=as_price(day.high, digits),
        low=as_price(day.low, digits),
        volume=as_size(day.volume),
        place=round(100 * (day.last - day.low) / reach) if reach else 50,
    )


def _feed(feed: FeedStatus, seen: Overview) -> FeedRow:
    word = "unknown" if not seen.is_running else feed.state if feed.heard_ms or feed.why else "unheard"
    statuses = [each.status for each in seen.instruments if each.status]
    return FeedRow(
        name=feed.name,
        state=StateLabel(word),
        since=moment(feed.since_ms) if feed.since_ms else None,
        why=feed.why,
        age=as_span(max(0, seen.at_ms - feed.heard_ms) if feed.heard_ms else None),
        lag=as_span(feed.lag_ms if feed.ticks else None),
        ticks=feed.ticks,
        serves=sum(is_of(feed.name, one.feed) for one in statuses),
        refused=sorted(feed.refused.items(), key=lambda counted: (-counted[1], counted[0])),
        complaints=feed.complaints,
    )


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


MINUS = "\N{MINUS SIGN}"
NONE = "\N{EN DASH}"
SPANS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
SIZES = ((1e9, "B"), (1e6, "M"), (1e3, "k"))


def as_span(ms: int | None) -> str:
    """0.4 s, 12 s, 3 min, 2 h, 4 d."""
    if ms is None:
        return NONE
    for unit_ms, unit in SPANS:
        if ms >= unit_ms and ms >= 10_000:
            return f"{ms // unit_ms} {unit}"
    return f"{ms / 1000:.1f} s".replace("-", MINUS)


def as_price(value: float | None, digits: int) -> str:
    return NONE if value is None else f"{value:,.{digits}f}"


def as_size(value: float) -> str:
    """12, 3.5, 48.2 k, 1.3 M."""
    for unit, letter in SIZES:
        if abs(value) >= unit:
            return f"{value / unit:.1f} {letter}".replace("-", MINUS)
    return f"{value:.4g}".replace("-", MINUS)


def with_sign(text: str) -> str:
    """With the sign of a change."""
    return text if text.startswith(MINUS) or not any(digit in text for digit in "123456789") else f"+{text}"


def as_change(percent: float) -> str:
    # With 0.0 added there is no minus before a change of nothing.
    return f"{with_sign(f'{round(percent, 2) + 0.0:.2f}'.replace('-', MINUS))} %"
