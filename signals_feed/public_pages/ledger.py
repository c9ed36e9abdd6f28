"""/ledger: what the ledger is, its entries, and a check that the visitor's own browser makes."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.views.decorators.http import require_safe

from signals_feed.figures import in_r, price
from signals_feed.ledger.ledger import LedgerEntry, LedgerHead
from signals_feed.ledger.proof import PROVEN_TERMS
from signals_feed.models import Signal
from signals_feed.record import AT_LAST
from transparency.models import Cosignature, SignedCheckpoint

SHOWN = 20
INSTRUMENT = ("instrument__symbol", "instrument__digits")
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
    asked = read_position(request.GET.get("at", ""))
    wanted = asked if asked <= head.position else 0
    last = min(head.position, wanted + AFTER) if wanted else head.position
    entries = list(LedgerEntry.objects.filter(position__lte=last).order_by("-position")[:SHOWN])
    signals = Signal.objects.filter(pk__in={each.signal for each in entries})
    instruments = {pk: about for pk, *about in signals.values_list("pk", *INSTRUMENT)}
    first = entries[-1].position if entries else 1
    context = {
        "head": head,
        "rows": [row_of(each, *instruments.get(each.signal, ("", None))) for each in entries],
        "wanted": wanted,
        "missing": asked if asked > head.position else 0,
        "newer": min(head.position, last + SHOWN) - AFTER if last < head.position else 0,
        "older": max(1, first - 1 - AFTER) if first > 1 else 0,
        "csrf": get_token(request),
        "signed": SignedCheckpoint.objects.newest(),
        "witnesses": [(key.name, Cosignature.objects.last_of(str(key))) for key, _ in settings.WITNESSES],
    }
    return render(request, "signals/proof/ledger.html", context)


def read_position(text: str) -> int:
    """0 for what is no position."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def row_of(entry: LedgerEntry, symbol: str, digits: int | None) -> LedgerRow:
    return LedgerRow(entry, words_of(entry, digits), symbol)


def words_of(entry: LedgerEntry, digits: int | None = None) -> str:
    """What it records, in a sentence; an entry that cannot be read says at least of which kind it is. Without
    the instrument's digits, prices have those that they were written with."""
    try:
        written = json.loads(entry.payload)
        return SENTENCES[entry.kind](written, digits)
    except (ValueError, KeyError, TypeError, ArithmeticError):
        return f"{entry.get_kind_display().capitalize()}."


def price_text(text: str, digits: int | None) -> str:
    value = Decimal(text)
    return f"{value:,f}" if digits is None else price(value, digits)


def publication(written: dict[str, Any], digits: int | None) -> str:
    entry, stop, target = (price_text(written[name], digits) for name in PROVEN_TERMS)
    action = f"{written['direction']} {written['symbol']}"
    return f"{written['user']} published: {action} at {entry}, stop {stop}, target {target}."


def closure(written: dict[str, Any], digits: int | None) -> str:
    ending = Signal.CloseReason(written["close_reason"]).label
    at = price_text(written["close_price"], digits)
    return f"{ending}: closed at {at}, {in_r(Decimal(written['pnl_r']))}."


def cancellation(written: dict[str, Any], digits: int | None) -> str:
    return f"It was cancelled: {written['cancel_reason']}"


LOOKED_FOR = {
    "fill": "it is filled",
    "close_request": "it closes as asked",
    "cancel": "its cancellation holds",
}


def arm(written: dict[str, Any], digits: int | None) -> str:
    if (asked := written["for"]) in AT_LAST:
        return "It ends at once, at the last price that may be shown."
    return f"The engine looks for the tick at which {LOOKED_FOR[asked]}."


def fill(written: dict[str, Any], digits: int | None) -> str:
    return f"It was filled at {price_text(written['fill_price'], digits)}."


def close_request(written: dict[str, Any], digits: int | None) -> str:
    return "Its publisher asked to close it."


def archive(written: dict[str, Any], digits: int | None) -> str:
    return f"The archive of {written['day']} was sealed."


def removal(written: dict[str, Any], digits: int | None) -> str:
    return "Removed together with the demo that published it."


SENTENCES: dict[str, Callable[[dict[str, Any], int | None], str]] = {
    LedgerEntry.Kind.PUBLISH: publication,
    LedgerEntry.Kind.ARM: arm,
    LedgerEntry.Kind.FILL: fill,
    LedgerEntry.Kind.CLOSE_REQUEST: close_request,
    LedgerEntry.Kind.CLOSE: closure,
    LedgerEntry.Kind.CANCEL: cancellation,
    LedgerEntry.Kind.REMOVE: removal,
    LedgerEntry.Kind.ARCHIVE: archive,
}
