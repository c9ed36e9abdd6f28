"""The marks of results, for lists: checked against evidence and ledger a short while before, at most."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from core.plain_json import encode
from signals_feed.api.signals import uuid_of
from signals_feed.checked import FRESH_S, checked_marks, checked_results
from signals_feed.models import Signal, SignalQuerySet
from signals_feed.publishers.lookup import find

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
