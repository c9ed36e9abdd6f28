"""/ledger: what the ledger is, its entries, the checks that a visitor's own browser makes, and the bundles
that prove a publisher's record elsewhere."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from decimal import Decimal
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.utils.cache import get_conditional_response
from django.views.decorators.http import require_safe

from core.contract.errors import Overloaded, page_or_body
from core.plain_json import encode
from signals_feed.api.signals import uuid_of
from signals_feed.bundle.building import open_bundle
from signals_feed.figures import in_r, price
from signals_feed.ledger.ledger import LedgerEntry, LedgerHead
from signals_feed.ledger.proof import PROVEN_TERMS
from signals_feed.models import Signal, SignalQuerySet
from signals_feed.publisher_checks import FRESH_S, checked_marks, checked_results
from signals_feed.publishers.lookup import find
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
    """Empty if its signal is not in the feed any more: that of a demo goes with it."""


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


# /publishers/{name}/bundle.zip: everything of a publisher, to be verified without this service.
BLOCK_BYTES = 256 * 1024


class FileBlocks:
    """Read as fast as the client takes them."""

    def __init__(self, file: BufferedReader) -> None:
        self._file, self.close = file, file.close

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while block := await asyncio.to_thread(self._file.read, BLOCK_BYTES):
            yield block


@require_safe
def publisher_bundle(request: HttpRequest, user: str) -> HttpResponseBase:
    publisher = find(user)
    if publisher is None:
        raise Http404
    try:
        file = open_bundle(publisher.user_id)
    except Overloaded as refusal:
        return page_or_body(request, refusal)
    etag = f'"{Path(file.name).stem}"'
    headers = {
        "Content-Length": str(os.fstat(file.fileno()).st_size),
        "Content-Disposition": 'attachment; filename="bundle.zip"',
        "Cache-Control": "no-cache",
        "ETag": etag,
    }
    unchanged = get_conditional_response(request, etag=etag)
    if unchanged is None and request.method == "GET":
        return StreamingHttpResponse(FileBlocks(file), headers=headers, content_type="application/zip")
    file.close()
    return unchanged or HttpResponse(headers=headers, content_type="application/zip")


# The marks of results, for lists: checked against evidence and ledger a short while before, at most.
MOST_ASKED = 100


@require_safe
def checked_signals(request: HttpRequest) -> HttpResponse:
    """The marks of those that are asked for. What waits for its fill has none yet."""
    signals = list(asked_for(request))
    found, active = checked_marks.of(signals), {each.pk for each in signals if each.closed_at is None}
    marks = {
        str(pk): ["", "Unfilled"] if mark is None else [mark, mark.label]
        for pk, mark in found.items()
        if mark is not None or pk not in active
    }
    return answer({"marks": marks}, "no-store" if active else f"private, max-age={FRESH_S}")


@require_safe
def filled_signals(request: HttpRequest) -> HttpResponse:
    """Null while a signal waits for its fill; what was filled as it was published is left out."""
    asked = [each for each in asked_for(request) if each.rules > 1]
    fills = {str(each.pk): shown_fill(each) for each in asked if not each.is_unfilled}
    return answer(
        {"fills": fills, "unfilled": [str(each.pk) for each in asked if each.is_unfilled]}, "no-store"
    )


def shown_fill(signal: Signal) -> float | None:
    return None if signal.fill_price is None else round(float(signal.fill_price), signal.instrument.digits)


def asked_for(request: HttpRequest) -> SignalQuerySet:
    wanted = request.GET.get("ids", "").split(",")[:MOST_ASKED]
    known = [pk for text in wanted if (pk := uuid_of(text))]
    return Signal.objects.select_related("instrument").filter(pk__in=known)


@require_safe
def publisher_marks(request: HttpRequest, user: str) -> HttpResponse:
    """How many of a publisher's newest results have which mark."""
    publisher = find(user)
    if publisher is None:
        raise Http404
    counts = checked_results.of(publisher).counts
    marks = [[mark, mark.label, count] for mark, count in counts]
    # They were found some minutes ago already.
    return answer({"marks": marks}, "no-store")


def answer(found: dict[str, object], kept: str) -> HttpResponse:
    return HttpResponse(encode(found), content_type="application/json", headers={"Cache-Control": kept})
