"""The admin's page "Market status", on which whatever is wrong comes first."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from accounts.back_office import staff_page
from core.times import age_text, moment
from market.engine.admission import is_of
from market.engine.status import FeedStatus
from market.overview import InstrumentOverview, Overview, overview

PERMISSIONS = ("instruments.view_instrument", "market.view_candle")


@require_safe
@permission_required(PERMISSIONS, raise_exception=True)
def market_status(request: HttpRequest) -> HttpResponse:
    return staff_page(request, "admin/market/status.html", "Market status", **shown(overview()))


def shown(seen: Overview) -> dict[str, Any]:
    instruments = sorted(seen.instruments, key=lambda each: (each.state != "stale", each.facts.symbol))
    feeds = [feed_row(feed, seen) for feed in seen.feeds]
    feeds.sort(key=lambda row: (row["state"]["word"] != "lost", row["name"]))
    whys = {feed.name: feed.why for feed in seen.feeds if feed.why}
    return {
        "at": moment(seen.at_ms),
        "engine": seen.engine,
        "is_running": seen.is_running,
        "engine_age": as_span(seen.engine_age_ms) if seen.engine.at_ms else "",
        "clock_off": as_span(abs(seen.engine.clock_off_ms)) if seen.engine.clock_off_ms else "",
        "is_separate": bool(settings.REDIS_URL),
        "instruments": [instrument_row(each, whys) for each in instruments],
        "feeds": feeds,
        "states": Counter(each.state for each in instruments),
        "live": sum(row["state"]["word"] == "live" for row in feeds),
        "lost": [row["name"] for row in feeds if row["state"]["word"] == "lost"],
        "ticks": sum(feed.ticks for feed in seen.feeds),
        "refused": sum(sum(feed.refused.values()) for feed in seen.feeds),
    }


# The icon and colour of each state. The word itself is shown beside them.
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


def labelled(word: str) -> dict[str, str]:
    icon, tone = STATES[word]
    return {"word": word, "icon": icon, "tone": tone}


def instrument_row(seen: InstrumentOverview, whys: Mapping[str, str]) -> dict[str, Any]:
    """`whys`: of the feeds that are lost."""
    facts, quote, status = seen.facts, seen.quote, seen.status
    row = {
        "id": facts.id,
        "symbol": facts.symbol,
        "name": facts.name,
        "state": labelled(seen.state),
        "bid": as_price(quote.bid if quote else None, facts.digits),
        "ask": as_price(quote.ask if quote else None, facts.digits),
        "doubts": seen.doubts,
        "age": as_span(seen.age_ms),
        "quoted_at": moment(quote.time_ms) if quote else None,
        "day": day_row(seen),
        "source": NONE,
        "delta": NONE,
    }
    if status is not None:
        row |= {
            "source": status.feed,
            "whys": [f"{feed}: {whys[feed]}" for feed in status.feeds if feed in whys],
            "is_fallback": seen.is_on_fallback,
            "switched_at": moment(status.switched_ms) if status.switched_ms else None,
            "switches": status.switches,
            "ticks": status.ticks,
            "delta": as_delta(status.cumulative_delta),
            "outliers": status.outliers,
            "outlier": as_price(status.outlier_price, facts.digits),
            "outlier_at": moment(status.outlier_ms) if status.outlier_ms else None,
        }
    return row


def day_row(seen: InstrumentOverview) -> dict[str, Any] | None:
    day, digits = seen.day, seen.facts.digits
    if day is None:
        return None
    reach, shown = day.high - day.low, round(day.change_percent, 2)
    return {
        "change": as_change(day.change_percent),
        "direction": "up" if shown > 0 else "down" if shown < 0 else "flat",
        "high": as_price(day.high, digits),
        "low": as_price(day.low, digits),
        "volume": as_size(day.volume),
        # Where the last price lies between low and high, in percent.
        "place": round(100 * (day.last - day.low) / reach) if reach else 50,
    }


def feed_row(feed: FeedStatus, seen: Overview) -> dict[str, Any]:
    word = "unknown" if not seen.is_running else feed.state if feed.heard_ms or feed.why else "unheard"
    return {
        "name": feed.name,
        "state": labelled(word),
        "since": moment(feed.since_ms) if feed.since_ms else None,
        "why": feed.why,
        "age": as_span(max(0, seen.at_ms - feed.heard_ms) if feed.heard_ms else None),
        "lag": as_span(feed.lag_ms if feed.ticks else None),
        "ticks": feed.ticks,
        "serves": sum(is_of(feed.name, each.status.feed) for each in seen.instruments if each.status),
        "refused": sorted(feed.refused.items(), key=lambda counted: (-counted[1], counted[0])),
        "complaints": feed.complaints,
    }


MINUS = "\N{MINUS SIGN}"
NONE = "\N{EN DASH}"
SIZES = ((1e9, "B"), (1e6, "M"), (1e3, "k"))


def as_span(ms: int | None) -> str:
    """As every age, but to a tenth below ten seconds: 0.4 s, 12 s, 3 min, 38 h."""
    if ms is None:
        return NONE
    if ms >= 10_000:
        return age_text(ms / 1000)
    return f"{ms / 1000:.1f} s".replace("-", MINUS)


def as_price(value: float | None, digits: int) -> str:
    return NONE if value is None else f"{value:,.{digits}f}"


def as_size(value: float) -> str:
    """12, 3.5, 48.2 k, 1.3 M."""
    for unit, letter in SIZES:
        if abs(value) >= unit:
            return f"{value / unit:.1f} {letter}".replace("-", MINUS)
    return f"{value:.4g}".replace("-", MINUS)


def as_delta(value: float) -> str:
    """+1.53, −246.60, +2,204.00: a column of sizes of one day, so with the same decimals."""
    return with_sign(f"{round(value, 2) + 0.0:,.2f}".replace("-", MINUS))


def with_sign(text: str) -> str:
    """Changes are shown with their sign."""
    return text if text.startswith(MINUS) or not any(digit in text for digit in "123456789") else f"+{text}"


def as_change(percent: float) -> str:
    # Adding 0.0 turns -0.0 into 0.0.
    return f"{with_sign(f'{round(percent, 2) + 0.0:.2f}'.replace('-', MINUS))}%"
