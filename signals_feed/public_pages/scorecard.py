"""/publishers/{name}/scorecard.svg: a publisher's figures as a picture that other sites may show."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect
from itertools import accumulate
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.cache import get_conditional_response
from django.views.decorators.http import require_safe

from signals_feed.checked import CheckedResults, checked_results
from signals_feed.publishers import equity
from signals_feed.publishers.episodes import ENOUGH
from signals_feed.publishers.lookup import Publisher, find, scorecards
from signals_feed.publishers.record import Scorecard
from signals_feed.publishers.stored_events import VENUE

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
    points = equity.thinned(card.figures.equity.points, MOST_POINTS)
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
        "picture": equity.draw(points) if points else None,
        "width": equity.WIDTH,
        "height": equity.HEIGHT,
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
