"""The public page of a publisher: the same numbers as /api/publishers, with a picture."""

from collections.abc import Mapping

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from signals_feed.models import Signal
from signals_feed.publishers import equity
from signals_feed.publishers.lookup import find, scorecards
from signals_feed.publishers.scorecards import ENOUGH

LATEST = 20
statements: Mapping[str, str] = {}
"""The rules of the demo's publishers, by their name."""


@require_safe
def publisher_page(request: HttpRequest, user: str) -> HttpResponse:
    publisher = find(user)
    if publisher is None:
        raise Http404
    card = scorecards.read(publisher)
    points = card.equity.points
    latest = Signal.objects.filter(user_id=publisher.user_id).for_feed().select_related("instrument")
    context = {
        "publisher": publisher,
        "statement": statements.get(user, "") if publisher.is_demo else "",
        "latest": latest[:LATEST],
        "enough": ENOUGH,
        "card": card,
        "closed_by": [(reason.label, card.by_reason[reason.value]) for reason in Signal.CloseReason],
        "picture": equity.draw(points) if points else None,
        "width": equity.WIDTH,
        "height": equity.HEIGHT,
        "points": points,
        "rows": equity.table_rows(points),
    }
    return render(request, "signals/publishers/publisher.html", context)
