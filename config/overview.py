"""The back office's first page: what needs somebody now, as numbers that lead there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from django.http import HttpRequest
from django.utils import timezone

from accounts.models import TierRequest
from accounts.near_limits import near_limits
from market.overview import overview
from news.admin.sources import BROKEN_FROM
from news.models import NewsItem, Source
from status.models import Incident

from .navigation import link_to, may_see


class Need(NamedTuple):
    title: str
    number: int
    link: str
    icon: str


def drafts() -> int:
    return NewsItem.objects.filter(status=NewsItem.Status.DRAFT).count()


def stale_instruments() -> int:
    return sum(instrument.state == "stale" for instrument in overview().instruments)


def broken_sources() -> int:
    return Source.objects.filter(is_active=True, failures__gte=BROKEN_FROM).count()


def accounts_near_limits() -> int:
    return len(near_limits(timezone.now()))


def tier_requests() -> int:
    return TierRequest.objects.open().count()


def open_incidents() -> int:
    return Incident.objects.open().count()


# Title, the page it leads to and what is chosen there, icon, and how it is counted: one query each or none,
# but three for the accounts near their limits. Whoever may not see the page does not get the number.
NEEDS: tuple[tuple[str, str, str, str, Callable[[], int]], ...] = (
    ("Open incidents", "status.incident", "", "report", open_incidents),
    ("Stale instruments", "market_status", "", "heart_broken", stale_instruments),
    ("Drafts waiting", "news_queue", "", "inbox", drafts),
    (
        "Broken news sources",
        "news.source",
        f"?is_active__exact=1&failures__gte={BROKEN_FROM}",
        "rss_feed",
        broken_sources,
    ),
    ("Tier requests waiting", "accounts.tierrequest", "?state__exact=open", "upgrade", tier_requests),
    ("Accounts near their limits", "accounts.account", "?limits=near", "speed", accounts_near_limits),
)


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    needs = [
        Need(title, count(), link_to(page) + chosen, icon)
        for title, page, chosen, icon, count in NEEDS
        if may_see(page, request)
    ]
    return {**context, "needs": needs}
