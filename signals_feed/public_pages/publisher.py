"""The public page of a publisher: the same numbers as /api/publishers, with a picture."""

from collections.abc import Mapping
from html import escape

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from signals_feed.checked import MOST_CHECKED, checked_results
from signals_feed.checking import check_signals
from signals_feed.models import Signal
from signals_feed.publishers import equity
from signals_feed.publishers.episodes import ENOUGH
from signals_feed.publishers.lookup import find, scorecards
from signals_feed.publishers.paging import read_page
from signals_feed.publishers.standings import QUIET, is_quiet, may_publish

from .leaderboard import TITLES

statements: Mapping[str, str] = {}
"""The rules of the demo's publishers, by their name."""


@require_safe
def publisher_page(request: HttpRequest, user: str) -> HttpResponse:
    publisher = find(user)
    if publisher is None:
        raise Http404
    if publisher.name != user:
        return at_present_name(request, publisher.name)
    card = scorecards.read(publisher)
    points = card.figures.equity.points
    page = read_page(request.GET.get("page", ""), publisher.active + publisher.closed)
    own = Signal.objects.filter(user_id=publisher.user_id).for_feed().select_related("instrument")
    listed = list(own[page.first - 1 : page.last])
    checks = check_signals(listed)
    context = {
        "publisher": publisher,
        "may_publish": may_publish().filter(pk=publisher.user_id).exists(),
        "statement": statements.get(user, "") if publisher.is_demo else "",
        "page": page,
        "listed": [(signal, checks[signal.pk]) for signal in listed],
        "enough": ENOUGH,
        "quiet_days": QUIET.days if is_quiet(publisher) else 0,
        "card": card,
        "figures": card.figures,
        "ranks": [(TITLES[name], rank) for name, rank in card.standings.items()],
        "found": checked_results.of(publisher),
        "most_checked": MOST_CHECKED,
        "is_witnessed": bool(settings.WITNESSES),
        "closed_by": [(reason.label, card.by_reason[reason.value]) for reason in Signal.CloseReason],
        "picture": equity.draw(points) if points else None,
        "width": equity.WIDTH,
        "height": equity.HEIGHT,
        "points": points,
        "rows": equity.table_rows(points),
        "snippet": snippet(request, user),
        "bundle": request.build_absolute_uri(reverse("publisher_bundle", args=[user])),
    }
    return render(request, "signals/publishers/publisher.html", context)


def at_present_name(request: HttpRequest, name: str) -> HttpResponse:
    """Browsers ask again each time, because the publisher may take the former name back."""
    address, query = reverse("publisher_page", args=[name]), request.META.get("QUERY_STRING", "")
    moved = HttpResponsePermanentRedirect(f"{address}?{query}" if query else address)
    moved["Cache-Control"] = "no-cache"
    return moved


def snippet(request: HttpRequest, user: str) -> str:
    """What another site takes to show the scorecard: text for whoever copies it, no element of the page."""
    page, picture = (
        request.build_absolute_uri(reverse(name, args=[user]))
        for name in ("publisher_page", "publisher_scorecard")
    )
    alt = escape(f"Results of {user} on Tickwire")
    image = f'<img src="{escape(picture)}" width="480" height="160" alt="{alt}">'
    return f'<a href="{escape(page)}">{image}</a>'
