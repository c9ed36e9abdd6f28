"""/status: for people, for programs and as a feed. No key is needed to see whether the service is up."""

import logging
from collections import Counter

from django.contrib.syndication.views import Feed
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from core.cached import Cached
from core.plain_json import encode

from . import summary as summaries
from .models import COMPONENTS, Incident
from .picture import latency_picture

logger = logging.getLogger(__name__)

WORST_FIRST = ("stale", "open", "closed")


def look(before: summaries.Summary | None) -> summaries.Summary:
    try:
        return summaries.summary()
    except DatabaseError as error:
        if before is None:
            raise
        logger.warning("The status is that of %s: %s", before.at, error)
        return summaries.without_database(before)


# The database is queried at most once in this time.
FRESH_S = 5.0
summary_cache: Cached[summaries.Summary] = Cached()


def seen_now() -> summaries.Summary:
    return summary_cache.get(FRESH_S, look)


@require_safe
def status_page(request: HttpRequest) -> HttpResponse:
    seen = seen_now()
    incidents = seen.incidents
    page = {
        "seen": seen,
        "components": COMPONENTS,
        "picture": latency_picture(seen.latency, seen.at),
        "last": next((each for each in reversed(seen.latency) if each.p50 is not None), None),
        "current": [each for each in incidents if each.ended_at is None and each.started_at <= seen.at],
        "planned": [each for each in incidents if each.ended_at is None and each.started_at > seen.at],
        "past": [each for each in incidents if each.ended_at is not None],
        "feeds": sorted(seen.feeds, key=lambda feed: (WORST_FIRST.index(feed.state), feed.symbol)),
        "counts": Counter(feed.state for feed in seen.feeds),
    }
    return render(request, "status/status.html", page)


@require_safe
def status_json(request: HttpRequest) -> HttpResponse:
    answer = HttpResponse(encode(seen_now()), content_type="application/json")
    answer["Access-Control-Allow-Origin"] = "*"
    answer["Cache-Control"] = f"max-age={FRESH_S:.0f}"
    return answer


class IncidentFeed(Feed):  # type: ignore[type-arg]
    title = "Tickwire status"
    description = "Incidents and maintenance of this service."

    def link(self) -> str:
        return reverse("status")

    def items(self) -> list[Incident]:
        return list(Incident.objects.newest()[:30])

    def item_title(self, item: Incident) -> str:
        return f"{item.title} ({item.get_impact_display().lower()}{', over' if item.ended_at else ''})"

    def item_description(self, item: Incident) -> str:
        return "\n\n".join(f"{note.at:%Y-%m-%d %H:%M} UTC: {note.text}" for note in item.notes.all())

    def item_link(self, item: Incident) -> str:
        return f"{reverse('status')}#incident-{item.pk}"

    def item_pubdate(self, item: Incident) -> object:
        return item.started_at
