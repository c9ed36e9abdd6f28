"""The terminal: the browser draws the market, signals and news from the public interface."""

from collections.abc import Callable
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.templatetags.static import static
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from instruments.catalogue import InstrumentFacts, catalogue
from instruments.facts import TEST_SYMBOL
from market import runtime as market
from market.prices import TIMEFRAMES

from .page_facts import page_facts

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
ComingPast = Callable[[], dict[str, Any] | None]


class WatchlistRow(NamedTuple):
    """A row of the watchlist before the first tick."""

    facts: InstrumentFacts
    state: str
    bid: str
    ask: str
    spread: str
    day_open: float | None
    change: float | None


def watchlist() -> list[WatchlistRow]:
    """Closed instruments come last."""
    rows = [row_of(facts) for facts in catalogue.offered()]
    return sorted(rows, key=lambda row: (row.state == "closed", row.facts.symbol))


def row_of(facts: InstrumentFacts) -> WatchlistRow:
    quote, state = market.quote(facts.symbol), market.state(facts)
    if quote is None:
        return WatchlistRow(facts, state, "", "", "", None, None)
    today = market.prices.candles(facts).builder.latest("1d")
    opened = today.open if today else None
    change = 100 * (quote.bid - opened) / opened if opened else None
    bid, ask, spread = (f"{price:.{facts.digits}f}" for price in (quote.bid, quote.ask, quote.spread))
    return WatchlistRow(facts, state, bid, ask, spread, opened, change)


def first_choice(rows: list[WatchlistRow], wanted: str) -> str:
    """Prefers what the address asks for, then what is open, quoted and not meant for tests."""
    if any(row.facts.symbol == wanted for row in rows):
        return wanted
    best = min(
        rows,
        key=lambda row: (row.state != "open", not row.bid, row.facts.symbol == TEST_SYMBOL),
        default=None,
    )
    return best.facts.symbol if best else ""


@never_cache
@require_safe
def terminal(request: HttpRequest, coming_past: ComingPast = lambda: None) -> HttpResponse:
    """Outside the demo for those who are logged in. `coming_past` tells what the demo is still making."""
    if not (settings.DEMO or request.user.is_authenticated):
        return redirect_to_login(request.get_full_path())
    rows = watchlist()
    config = {
        "csrf": get_token(request),
        "worker": static("terminal/streams/worker.js"),
        "candlePrice": settings.CANDLE_PRICE,
        "timeframes": list(TIMEFRAMES),
        "symbol": first_choice(rows, request.GET.get("symbol", "").upper()),
        "instruments": {row.facts.symbol: page_facts(row.facts) for row in rows},
    }
    page = {"rows": rows, "config": config, "timeframes": TIMEFRAMES, "zones": ZONES, "past": coming_past()}
    return render(request, "terminal/terminal.html" if rows else "terminal/empty.html", page)
