"""The rows of the watchlist, of what memory holds: nothing here asks the database or the clock."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from core.times import moment
from instruments.facts import TEST_SYMBOL, InstrumentFacts
from market.prices import CandleRow, PriceBar

HOURS_DRAWN = 24
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
GROUPS = {"forex": "Forex", "crypto": "Crypto", "index": "Indices", "stock": "Stocks"}
IN_ORDER = ("Forex", "Metals", "Commodities", "Crypto", "Indices", "Stocks")
METALS = ("XAU", "XAG", "XPT", "XPD")
STATES = ("open", "stale", "closed")
MINUS = "\N{MINUS SIGN}"
NO_BREAK = "\N{NO-BREAK SPACE}"


class Seen(NamedTuple):
    """What the market knows of an instrument."""

    state: str
    bid: float | None = None
    ask: float | None = None
    day: PriceBar | None = None
    """The last day with prices, over or not."""
    previous_close: float | None = None
    """Of the day with prices before that one."""
    hours: Sequence[CandleRow] = ()
    quoted_ms: int | None = None


class WatchlistRow(NamedTuple):
    """A row before the first tick."""

    facts: InstrumentFacts
    group: str
    state: str
    bid: str
    ask: str
    change: float | None
    """In percent, from the close before the day that `trading_day` names: as the daily chart counts it."""
    trading_day: str
    low: str
    high: str
    about: str
    drawn: dict[str, Any]
    """What the browser draws from, and goes on with."""

    @property
    def symbol(self) -> str:
        return self.facts.symbol

    @property
    def change_text(self) -> str:
        return "" if self.change is None else percent(self.change)

    @property
    def direction(self) -> str:
        """As the change is written: 0.00% has none."""
        shown = round(self.change or 0, 2)
        return "" if not shown else "up" if shown > 0 else "down"


class WatchlistGroup(NamedTuple):
    title: str
    rows: list[WatchlistRow]


def row_of(facts: InstrumentFacts, seen: Seen, now_ms: int) -> WatchlistRow:
    opens_ms = facts.hours.next_open(now_ms) if seen.state == "closed" else None
    day = seen.day
    low, high = (None, None) if day is None else (day.low, day.high)
    return WatchlistRow(
        facts,
        group_of(facts),
        seen.state,
        price(seen.bid, facts.digits),
        price(seen.ask, facts.digits),
        change_of(seen),
        "" if day is None else trading_day_of(day.opened_ms, now_ms),
        price(low, facts.digits),
        price(high, facts.digits),
        about(facts, seen, opens_ms, now_ms),
        drawn_of(facts, seen, opens_ms),
    )


def change_of(seen: Seen) -> float | None:
    if seen.day is None or not seen.previous_close:
        return None
    return 100 * (seen.day.close - seen.previous_close) / seen.previous_close


def drawn_of(facts: InstrumentFacts, seen: Seen, opens_ms: int | None) -> dict[str, Any]:
    drawn: dict[str, Any] = {
        "group": group_of(facts),
        "state": seen.state,
        "opensMs": opens_ms,
        "bid": seen.bid,
        "last": seen.bid,
        "quotedMs": seen.quoted_ms,
        "dayMs": None,
        "previousClose": seen.previous_close,
        "low": None,
        "high": None,
        "hourMs": seen.hours[-1].opened_ms if seen.hours else None,
        "closes": [row.close for row in seen.hours],
    }
    if seen.day is not None:
        drawn["dayMs"] = seen.day.opened_ms
        for name, value in (("last", seen.day.close), ("low", seen.day.low), ("high", seen.day.high)):
            drawn[name] = round(value, facts.digits)
    return drawn


def group_of(facts: InstrumentFacts) -> str:
    if facts.symbol == TEST_SYMBOL:
        return "Test"
    if facts.type == "commodity":
        return "Metals" if facts.symbol.startswith(METALS) else "Commodities"
    return GROUPS.get(facts.type, facts.type.capitalize())


def grouped(rows: Iterable[WatchlistRow]) -> list[WatchlistGroup]:
    """What trades comes first, both among the groups and within each."""
    groups: dict[str, list[WatchlistRow]] = {}
    for row in sorted(rows, key=lambda row: (STATES.index(row.state), row.symbol)):
        groups.setdefault(row.group, []).append(row)
    titles = sorted(groups, key=lambda title: (groups[title][0].state == "closed", place_of(title), title))
    return [WatchlistGroup(title, groups[title]) for title in titles]


def place_of(title: str) -> int:
    return IN_ORDER.index(title) if title in IN_ORDER else len(IN_ORDER)


def price(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def percent(value: float) -> str:
    text = f"{value:+.2f}%".replace("-", MINUS)
    return "0.00%" if text[1:] == "0.00%" else text


def trading_day_of(day_ms: int, now_ms: int) -> str:
    """The name of a UTC day, as near as it is."""
    days = now_ms // DAY_MS - day_ms // DAY_MS
    if days <= 0:
        return "today"
    day = moment(day_ms)
    return f"{day:%a}" if days < 7 else day_of_month(day)


def about(facts: InstrumentFacts, seen: Seen, opens_ms: int | None, now_ms: int) -> str:
    """What a reader should know of a market before its name."""
    if opens_ms is not None:
        return opening(opens_ms, now_ms)
    if seen.state == "stale" and seen.quoted_ms is not None:
        return f"last price {moment(seen.quoted_ms):%H:%M:%S} UTC".replace(" ", NO_BREAK)
    return facts.name


def opening(opens_ms: int | None, now_ms: int) -> str:
    """opens Sun 22:00, in 1 d 3 h: a line may end after the comma and nowhere else."""
    if opens_ms is None:
        return ""
    at, ahead_ms = moment(opens_ms), opens_ms - now_ms
    if ahead_ms < DAY_MS:
        phrases = f"opens {at:%H:%M}", f"in {span(ahead_ms)}"
    elif ahead_ms < 7 * DAY_MS:
        phrases = f"opens {at:%a %H:%M}", f"in {span(ahead_ms)}"
    else:
        phrases = f"opens {day_of_month(at)}", f"in {ahead_ms // DAY_MS} d"
    return ", ".join(phrase.replace(" ", NO_BREAK) for phrase in phrases)


def span(ms: int) -> str:
    minutes = max(1, -(-ms // 60_000))
    hours, days = minutes // 60, minutes // 1440
    if days:
        return f"{days} d {hours % 24} h" if hours % 24 else f"{days} d"
    if hours:
        return f"{hours} h {minutes % 60} min" if minutes % 60 else f"{hours} h"
    return f"{minutes} min"


def day_of_month(at: datetime) -> str:
    return f"{at.day} {at:%b}"
