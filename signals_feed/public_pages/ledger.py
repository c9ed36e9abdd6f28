"""/ledger: what the ledger is, its entries, and a check that the visitor's own browser makes."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.views.decorators.http import require_safe

from signals_feed.figures import in_r
from signals_feed.ledger.ledger import LedgerEntry, LedgerHead
from signals_feed.models import Signal

SHOWN = 20
# Those after a wanted entry, so that it does not stand at the edge.
AFTER = 3


class LedgerRow(NamedTuple):
    entry: LedgerEntry
    words: str
    symbol: str
    """Empty where its signal is not in the feed any more: that of a demo goes with it."""


@require_safe
def ledger_page(request: HttpRequest) -> HttpResponse:
    head = LedgerHead.objects.now()
    wanted = read_position(request.GET.get("at", ""))
    last = min(head.position, wanted + AFTER) if wanted else head.position
    entries = list(LedgerEntry.objects.filter(position__lte=last).order_by("-position")[:SHOWN])
    signals = Signal.objects.filter(pk__in={each.signal for each in entries})
    symbols = dict(signals.values_list("pk", "instrument__symbol"))
    first = entries[-1].position if entries else 1
    context = {
        "head": head,
        "rows": [LedgerRow(each, words_of(each), symbols.get(each.signal, "")) for each in entries],
        "wanted": wanted,
        "newer": min(head.position, last + SHOWN) - AFTER if last < head.position else 0,
        "older": max(1, first - 1 - AFTER) if first > 1 else 0,
        "csrf": get_token(request),
    }
    return render(request, "signals/proof/ledger.html", context)


def read_position(text: str) -> int:
    """0 for what is no position."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def words_of(entry: LedgerEntry) -> str:
    """What it records, in a sentence; an entry that cannot be read says at least of which kind it is."""
    try:
        written = json.loads(entry.payload)
        return SENTENCES[entry.kind](written)
    except (ValueError, KeyError, TypeError, ArithmeticError):
        return f"{entry.get_kind_display().capitalize()}."


def publication(written: dict[str, Any]) -> str:
    terms = f"at {written['entry']}, stop {written['stop_loss']}, target {written['take_profit']}"
    return f"{written['user']} published: {written['direction']} {written['symbol']} {terms}."


def closure(written: dict[str, Any]) -> str:
    reason = Signal.CloseReason(written["close_reason"]).label.lower()
    return f"Closed at {written['close_price']}, {in_r(Decimal(written['pnl_r']))}: {reason}."


def cancellation(written: dict[str, Any]) -> str:
    return f"Staff cancelled it: {written['cancel_reason']}"


def removal(written: dict[str, Any]) -> str:
    return "Removed together with the demo that published it."


SENTENCES: dict[str, Callable[[dict[str, Any]], str]] = {
    LedgerEntry.Kind.PUBLISH: publication,
    LedgerEntry.Kind.CLOSE: closure,
    LedgerEntry.Kind.CANCEL: cancellation,
    LedgerEntry.Kind.REMOVE: removal,
}
