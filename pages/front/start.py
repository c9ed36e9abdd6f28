"""The first page: what the service is, and why to trust it."""

from collections.abc import Iterable
from itertools import chain, zip_longest
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from instruments.facts import TEST_SYMBOL
from pages.terminal import ComingPast, terminal, watchlist
from pages.watchlist import WatchlistGroup, WatchlistRow, grouped
from signals_feed.ledger_days import position_now
from status.views import seen_now

MOST_ROWS = 8
LEAST_DAYS = 7


@never_cache
@require_safe
def start(request: HttpRequest, coming_past: ComingPast = lambda: None) -> HttpResponse:
    """In the demo, and for those who are logged in, the terminal itself."""
    if settings.DEMO or request.user.is_authenticated:
        return terminal(request, coming_past)
    return about(request)


@never_cache
@require_safe
def about(request: HttpRequest) -> HttpResponse:
    page = {
        "entries": position_now().position,
        "uptime": uptime_of_days(),
        "base": f"{request.scheme}://{request.get_host()}",
        "demo": settings.DEMO,
    }
    if settings.PUBLIC_TERMINAL or request.user.is_authenticated:
        page |= live(request, some_of(grouped(watchlist())))
    return render(request, "front/start.html", page)


def uptime_of_days() -> float | None:
    """None for a service that is too young to speak of days."""
    seen = seen_now()
    return seen.uptime_percent if len(seen.days) > LEAST_DAYS else None


def some_of(groups: Iterable[WatchlistGroup]) -> list[WatchlistRow]:
    """What has a price, of each group in turn, so that the board shows what there is."""
    in_turn = zip_longest(*(group.rows for group in groups))
    shown = (row for row in chain.from_iterable(in_turn) if row and row.bid and row.symbol != TEST_SYMBOL)
    return sorted(list(shown)[:MOST_ROWS], key=lambda row: row.state == "closed")


def live(request: HttpRequest, rows: list[WatchlistRow]) -> dict[str, Any]:
    instruments = {
        row.symbol: {"name": row.facts.name, "digits": row.facts.digits, **row.drawn} for row in rows
    }
    config = {
        "csrf": get_token(request),
        "candlePrice": settings.CANDLE_PRICE,
        "instruments": instruments,
    }
    return {"rows": [on_board(row) for row in rows], "config": config}


def on_board(row: WatchlistRow) -> WatchlistRow:
    """In its short line: when a market opens, and not how long that is from now."""
    if row.drawn["opensMs"] is None:
        return row
    return row._replace(about=row.about.partition(", ")[0])
