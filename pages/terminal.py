"""The terminal: the browser draws the market, signals and news from the public interface."""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.urls import reverse
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from core.cached import Cached, shared_work
from core.plain_json import encode
from instruments.catalogue import catalogue
from instruments.facts import TEST_SYMBOL, InstrumentFacts, counted_in
from market import runtime as market
from market.prices import TIMEFRAMES
from news.models import NewsItem
from signals_feed.models import Signal
from status.models import Incident

from .watchlist import HOURS_DRAWN, Seen, WatchlistRow, grouped, place_of, row_of

# Which modules the scripts of a page import: the browser fetches them at once, and not level by level.
# Not `import("…")`: what is fetched when it is wanted may wait.
IMPORTED = re.compile(r"""^(?:import|export)\b[^;("']*?["'](\.[^"']+)["'];""", re.MULTILINE)


@cache
def modules_of(*scripts: str) -> tuple[str, ...]:
    """The names of static files: each script's own, and then all that it imports."""
    found: dict[str, None] = {}
    for script in scripts:
        waiting = [script]
        while waiting:
            name = waiting.pop(0)
            if name not in found:
                found[name] = None
                waiting += imports_of(name)
    return tuple(found)


def imports_of(name: str) -> Iterator[str]:
    path = finders.find(name)
    assert path is not None, f"{name} is no static file"  # noqa: S101 - a module names it
    for target in IMPORTED.findall(Path(path).read_text()):
        yield posixpath.normpath(posixpath.join(posixpath.dirname(name), target))


# What the scripts of the terminal know of an instrument before they ask for anything.
# Longer than any market is closed: Christmas, then a weekend.
COMING_MS = 8 * 86_400_000


def page_facts(facts: InstrumentFacts) -> dict[str, Any]:
    return {
        "name": facts.name,
        "digits": facts.digits,
        "zone": facts.timezone,
        "unit": counted_in(facts.symbol, facts.type),
        "pipSize": facts.pip_size,
        "hasTrades": facts.order_flow_source == "trades",
        "sessions": coming_sessions(facts, market.now_ms()),
        "staleAfterS": facts.stale_after_s,
    }


def coming_sessions(facts: InstrumentFacts, now_ms: int) -> list[tuple[int, int]] | None:
    """Those of today and the next days. None if the market never closes."""
    if facts.hours.next_open(now_ms) is None:
        return None
    return list(facts.hours.sessions_between(now_ms, now_ms + COMING_MS))


ZONES = (
    ("UTC", "UTC"),
    ("exchange", "Exchange"),
    ("local", "Local time"),
    ("America/New_York", "New York"),
    ("America/Chicago", "Chicago"),
    ("Europe/London", "London"),
    ("Europe/Berlin", "Frankfurt"),
    ("Asia/Singapore", "Singapore"),
    ("Asia/Tokyo", "Tokyo"),
    ("Australia/Sydney", "Sydney"),
)
HEADLINES = 10
# Of a symbol that does not exist.
MOST_SHOWN = 20
ComingPast = Callable[[], dict[str, Any] | None]


class DrawnWatchlist(NamedTuple):
    """The same for all."""

    rows: list[WatchlistRow]
    table: SafeString
    instruments: dict[str, dict[str, Any]]


# Thousands of rows take seconds. From then on the page updates the prices over its stream.
FRESH_S_OF_ROW = 0.001
kept_watchlist: Cached[DrawnWatchlist] = Cached()


def recent_watchlist() -> DrawnWatchlist:
    with shared_work():
        return kept_watchlist.get(FRESH_S_OF_ROW * len(catalogue.offered()), lambda _: draw_watchlist())


def draw_watchlist() -> DrawnWatchlist:
    rows = watchlist()
    table = render_to_string("terminal/_groups.html", {"groups": grouped(rows)})
    return DrawnWatchlist(rows, table, {row.symbol: {**page_facts(row.facts), **row.drawn} for row in rows})


def watchlist() -> list[WatchlistRow]:
    now_ms = market.now_ms()
    return [row_of(facts, seen_of(facts), now_ms) for facts in catalogue.offered()]


def seen_of(facts: InstrumentFacts) -> Seen:
    quote, history = market.quote(facts.symbol), market.prices.candles(facts)
    bid, ask, quoted_ms = (None,) * 3 if quote is None else (quote.bid, quote.ask, quote.time_ms)
    hours, day = history.rows("1h", HOURS_DRAWN, closed_only=False), history.builder.latest("1d")
    days = [] if day is None else history.rows("1d", 2, closed_only=False)
    before = [row.close for row in days if day is not None and row.opened_ms < day.opened_ms]
    return Seen(market.state(facts), bid, ask, day, before[-1] if before else None, hours, quoted_ms)


def open_incidents() -> list[dict[str, str]]:
    return [
        {"title": incident.title, "impact": incident.impact, "kind": incident.get_impact_display().lower()}
        for incident in Incident.objects.open()
    ]


def headlines() -> Iterable[Mapping[str, object]]:
    """To read while the rest of the news is on its way."""
    return NewsItem.objects.for_feed().values("title", "url")[:HEADLINES]


def first_choice(rows: list[WatchlistRow], wanted: str = "") -> str:
    """What the address asks for, or else what has prices, trades, is fresh and is not meant for tests."""
    if any(row.symbol == wanted for row in rows):
        return wanted
    best = min(
        rows,
        key=lambda row: (
            not row.bid,
            row.state == "closed",
            row.state != "open",
            row.symbol == TEST_SYMBOL,
            place_of(row.group),
        ),
        default=None,
    )
    return best.symbol if best else ""


@never_cache
@require_safe
def terminal(request: HttpRequest, coming_past: ComingPast = lambda: None) -> HttpResponse:
    """For accounts, unless it is public. `coming_past` tells what the demo is still making."""
    if not may_look(request):
        return redirect_to_login(request.get_full_path())
    (rows, table, instruments), asked = recent_watchlist(), request.GET.get("symbol", "").upper()
    timeframe = request.GET.get("tf", "").lower()
    wanted = asked.replace("/", "")
    symbol = first_choice(rows, wanted)
    config = {
        "csrf": get_token(request),
        "worker": static("terminal/streams/worker.js"),
        "watchlist": reverse("watchlist"),
        "candlePrice": settings.CANDLE_PRICE,
        "timeframes": list(TIMEFRAMES),
        "symbol": symbol,
        "instruments": instruments,
    }
    page = {
        "table": table,
        "config": config,
        "timeframes": TIMEFRAMES,
        "zones": ZONES,
        "incidents": open_incidents(),
        "headlines": headlines(),
        "chosen": next((row for row in rows if row.symbol == symbol), None),
        "unknown": "" if wanted == symbol else asked[:MOST_SHOWN],
        "unknown_timeframe": "" if timeframe in TIMEFRAMES else timeframe[:MOST_SHOWN],
        "past": coming_past(),
        "demo": settings.DEMO,
        "endings": encode(dict(Signal.CloseReason.choices)).decode(),
        "modules": modules_of("terminal/terminal.js", "terminal/panes.js"),
    }
    return render(request, "terminal/terminal.html" if rows else "terminal/empty.html", page)


@never_cache
@require_safe
def watchlist_json(request: HttpRequest) -> HttpResponse:
    """What no tick tells the open page: states, openings, days that began, incidents."""
    if not may_look(request):
        return HttpResponse("{}", status=403, content_type="application/json")
    found = {"instruments": {row.symbol: row.drawn for row in watchlist()}, "incidents": open_incidents()}
    return HttpResponse(encode(found), content_type="application/json")


def may_look(request: HttpRequest) -> bool:
    return settings.PUBLIC_TERMINAL or request.user.is_authenticated
