"""The public page of a publisher: the same numbers as /api/publishers, with a picture."""

from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from signals_feed.models import Signal

from . import equity
from .lookup import find, scorecards
from .scorecards import ENOUGH, Scorecard

LATEST = 20


def no_statement(user: str) -> str:
    return ""


statement_of: Callable[[str], str] = no_statement
"""What a publisher of the demo does, by their name."""


@require_safe
def publisher_page(request: HttpRequest, user: str) -> HttpResponse:
    publisher = find(user)
    if publisher is None:
        raise Http404
    latest = Signal.objects.filter(user_id=publisher.user_id).for_feed().select_related("instrument")
    context = {
        "publisher": publisher,
        "statement": statement_of(user) if publisher.is_demo else "",
        "latest": latest[:LATEST],
        "enough": ENOUGH,
        **scorecards.read(publisher, scorecard_context),
    }
    return render(request, "signals/publisher.html", context)


def scorecard_context(card: Scorecard) -> dict[str, Any]:
    """Values instead of the scorecard, which the next request may change."""
    points = list(card.equity.points)
    return {
        "signals": card.all.signals,
        "wins": card.all.wins,
        "win_percent": None if card.all.win_rate is None else 100 * card.all.win_rate,
        "expectancy_r": card.all.expectancy_r,
        "total_r": card.all.total_r,
        "too_few": card.too_few,
        "best_r": card.best_r,
        "worst_r": card.worst_r,
        "max_drawdown_r": card.drawdown.deepest_r,
        "max_drawdown_signals": card.drawdown.longest,
        "closed_by": [(reason.label, card.by_reason[reason.value]) for reason in Signal.CloseReason],
        "by_symbol": [
            (symbol, record.signals, 100 * (record.win_rate or 0), record.expectancy_r, record.total_r)
            for symbol, record in sorted(card.by_symbol.items())
        ],
        "picture": equity.draw(points) if points else None,
        "width": equity.WIDTH,
        "height": equity.HEIGHT,
        "first": points[0] if points else None,
        "last": points[-1] if points else None,
        "rows": equity.table_rows(points),
    }
