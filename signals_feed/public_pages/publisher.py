"""The public pages of publishers: the leaderboard, and for each the same numbers as /api/publishers, with a
picture."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect
from html import escape
from itertools import accumulate, chain
from typing import Any, NamedTuple

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.cache import get_conditional_response
from django.views.decorators.http import require_safe

from core.contract.errors import Overloaded, page_or_body
from signals_feed.marks import Mark
from signals_feed.models import Signal
from signals_feed.publisher_checks import MOST_CHECKED, CheckedResults, checked_results
from signals_feed.publishers import record
from signals_feed.publishers.lookup import Publisher, find, read_page, scorecards
from signals_feed.publishers.purses import PROVEN, STANDS
from signals_feed.publishers.record import ENOUGH, ListName, Scorecard
from signals_feed.publishers.standings import (
    FIRST_ORDER,
    ORDERS,
    QUIET,
    PublisherStanding,
    is_quiet,
    may_publish,
    rank,
    recent_standings,
)
from signals_feed.publishers.stored_events import DEMONSTRATION, PUSHED, VENUE
from signals_feed.result_checks import check_signals

# /publishers/{name}/scorecard.svg: a publisher's figures as a picture that other sites may show.
KEPT_S = 300
ROOM_FOR_NAME = 300
# Pixels; what does not fit in the smallest is cut.
NAME_SIZES = (18, 14)
# Widths of letters are those of Inter in bold, rounded up.
WIDE, NARROW = "MW@mw", "fijlrtI.,-"
MOST_POINTS = 60
# Those of static/site/tokens.css, which an image on another site does not have.
COLOURS = {
    "light": {
        **{"surface": "#fff", "text": "#16202a", "soft": "#52606f", "line": "#dde3e9", "edge": "#788697"},
        **{"accent": "#0a6c74", "good": "#12663a", "danger": "#b3261e"},
    },
    "dark": {
        **{"surface": "#151c23", "text": "#e6ebf0", "soft": "#a0aebc", "line": "#27323c", "edge": "#74838f"},
        **{"accent": "#55c7d0", "good": "#7fd8a4", "danger": "#ff9389"},
    },
}
# XML has no such characters, not even escaped.
NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@require_safe
def publisher_scorecard(request: HttpRequest, user: str) -> HttpResponse:
    publisher = find(user)
    if publisher is None:
        raise Http404
    theme = "dark" if request.GET.get("theme") == "dark" else "light"
    card = scorecards.read(publisher)
    body = draw_scorecard(publisher, card, checked_results.of(publisher), COLOURS[theme]).encode()
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {
        "Cache-Control": f"public, max-age={0 if card.unjudged else KEPT_S}",
        "ETag": etag,
        # The pages themselves stay where they are; this alone is meant for others.
        "Cross-Origin-Resource-Policy": "cross-origin",
    }
    whole = HttpResponse(body, content_type="image/svg+xml; charset=utf-8", headers=headers)
    answer: HttpResponse = get_conditional_response(request, etag=etag, response=whole) or whole
    for name, value in headers.items():
        answer[name] = value
    return answer


def draw_scorecard(
    publisher: Publisher, card: Scorecard, found: CheckedResults, colours: dict[str, str]
) -> str:
    points = record.thinned(card.figures.equity.points, MOST_POINTS)
    name = NOT_IN_XML.sub("\ufffd", publisher.name)
    context: dict[str, Any] = {
        "name": name,
        "short_name": fitting(name, NAME_SIZES[-1]),
        "name_size": size_of(name),
        "card": card,
        "figures": card.figures,
        "rank": card.standings.get(VENUE),
        "counts": found.counts,
        "enough": ENOUGH,
        "colours": colours,
        "as_of": points[-1].at if points else None,
        "picture": record.draw(points) if points else None,
        "width": record.WIDTH,
        "height": record.HEIGHT,
    }
    return render_to_string("signals/publishers/scorecard.svg", context)


def size_of(name: str) -> int:
    """The largest in which it fits."""
    width = sum(map(em_of, name))
    return next((size for size in NAME_SIZES if size * width <= ROOM_FOR_NAME), NAME_SIZES[-1])


def fitting(name: str, size: int) -> str:
    """As much of the name as there is room for."""
    taken = list(accumulate(size * em_of(letter) for letter in name))
    if not taken or taken[-1] <= ROOM_FOR_NAME:
        return name
    return name[: bisect(taken, ROOM_FOR_NAME - size * em_of("…"))] + "…"


def em_of(letter: str) -> float:
    if letter in WIDE:
        return 1.0
    if letter in NARROW:
        return 0.45
    # Of other scripts the browser has a font of its own.
    return 0.75 if letter.isupper() else 0.65 if letter.isascii() else 1.0


# /publishers: everybody who ever published, by how sure it is that it was not luck.
# A line of the table is about a hundred pixels wide.
MOST_LISTED_POINTS = 40


class SortHeading(NamedTuple):
    title: str
    query: str
    """Orders by this column; by the other end of it if it is the order already."""
    sorted: str
    """As `aria-sort` has it; empty for every other column."""


TITLES: dict[ListName, str] = {
    VENUE: "Filled at a venue’s prices",
    PUSHED: "Filled at prices recorded here",
    DEMONSTRATION: "Demonstration, at made-up or replayed prices",
}


class LeaderboardRow(NamedTuple):
    place: int | None
    """None for publishers whose record may be luck, or who are not ranked."""
    standing: PublisherStanding
    picture: record.EquityPicture | None


class Board(NamedTuple):
    name: ListName
    title: str
    ranked: list[LeaderboardRow]
    luck: list[LeaderboardRow]
    unranked: list[LeaderboardRow]


@require_safe
def leaderboard(request: HttpRequest) -> HttpResponse:
    order, is_reversed = read_order(request.GET.get("sort", ""))
    try:
        found = recent_standings()
    except Overloaded as refusal:
        return page_or_body(request, refusal)
    context = {
        "headings": {name: heading(name, order, is_reversed=is_reversed) for name in ORDERS},
        "boards": [
            board(name, standings, order, is_reversed=is_reversed)
            for name, standings in found.items()
            if standings
        ],
        "unjudged": sum(each.card.unjudged for each in chain.from_iterable(found.values())),
        "enough": ENOUGH,
        "proven": PROVEN,
        "stands": STANDS,
        "quiet_days": QUIET.days,
        "most_checked": MOST_CHECKED,
        "marks": list(Mark),
        "width": record.WIDTH,
        "height": record.HEIGHT,
    }
    return render(request, "signals/publishers/leaderboard.html", context)


def board(name: ListName, standings: list[PublisherStanding], order: str, *, is_reversed: bool) -> Board:
    # However the table is sorted, the first place is that of the best.
    best_first = rank(standings, FIRST_ORDER).ranked
    places = {each.publisher.user_id: place for place, each in enumerate(best_first, start=1)}
    groups = rank(standings, order, reverse=is_reversed)
    return Board(name, TITLES[name], *([row(places, each) for each in group] for group in groups))


def read_order(wanted: str) -> tuple[str, bool]:
    """`-` before the name turns the order round; anything unknown is the first order."""
    name = wanted.removeprefix("-")
    return (name, wanted.startswith("-")) if name in ORDERS else (FIRST_ORDER, False)


def heading(name: str, order: str, *, is_reversed: bool) -> SortHeading:
    title, _, is_highest_first = ORDERS[name]
    if name != order:
        return SortHeading(title, f"?sort={name}", "")
    is_descending = is_highest_first != is_reversed
    query = f"?sort={name}" if is_reversed else f"?sort=-{name}"
    return SortHeading(title, query, "descending" if is_descending else "ascending")


def row(places: dict[int, int], standing: PublisherStanding) -> LeaderboardRow:
    points = record.thinned(standing.card.figures.equity.points, MOST_LISTED_POINTS)
    place = places.get(standing.publisher.user_id)
    return LeaderboardRow(place, standing, record.draw(points) if points else None)


demo_statements: dict[str, str] = {}
"""The rules of the demo's publishers, by their name; the demo adds them in the `ready` of its app."""


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
        "statement": demo_statements.get(user, "") if publisher.is_demo else "",
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
        "picture": record.draw(points) if points else None,
        "width": record.WIDTH,
        "height": record.HEIGHT,
        "points": points,
        "rows": record.table_rows(points),
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
    """What another site takes to show the scorecard: text to copy, no element of the page."""
    page, picture = (
        request.build_absolute_uri(reverse(name, args=[user]))
        for name in ("publisher_page", "publisher_scorecard")
    )
    alt = escape(f"Results of {user} on Tickwire")
    image = f'<img src="{escape(picture)}" width="480" height="160" alt="{alt}">'
    return f'<a href="{escape(page)}">{image}</a>'
