"""The sidebar and the first page of the back office: what staff may see, in the order of their work, and what
needs attention now."""

from collections.abc import Callable
from typing import Any

from django import template
from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.text import capfirst

from accounts.models import TierRequest
from accounts.usage import near_limits
from market import admin as market_page
from market.overview import overview
from news import newsroom
from news.admin import BROKEN_FROM
from news.models import NewsItem, Source
from signals_feed.publishers.requests import PublisherRequest
from status.models import Incident

# Title, model (or page of our own) and icon. Each model or page decides who may see it.
GROUPS = {
    "Editorial": (
        ("Drafts", "news_queue", "inbox"),
        ("News items", "news.newsitem", "newspaper"),
        ("News sources", "news.source", "rss_feed"),
        ("Calibration", "news_calibration_page", "analytics"),
        ("Signals", "signals_feed.signal", "ads_click"),
        ("Ledger entries", "signals_feed.ledgerentry", "receipt_long"),
        ("Site texts", "pages.sitetext", "gavel"),
    ),
    "Customers": (
        ("API keys", "accounts.apikey", "key"),
        ("Accounts", "accounts.account", "badge"),
        ("Tier requests", "accounts.tierrequest", "upgrade"),
        ("Publisher requests", "signals_feed.publisherrequest", "how_to_reg"),
        ("Users", "accounts.user", "person"),
        ("Email addresses", "account.emailaddress", "alternate_email"),
        ("Second factors", "mfa.authenticator", "lock"),
        ("Tiers", "accounts.tier", "stacks"),
        ("AI usage", "accounts.aiusage", "smart_toy"),
    ),
    "Market": (
        ("Market status", "market_status", "monitor_heart"),
        ("Incidents", "status.incident", "report"),
        ("Instruments", "instruments.instrument", "currency_exchange"),
        ("Withheld sources", "instruments.withheldsource", "block"),
        ("Trading calendars", "instruments.tradingcalendar", "calendar_month"),
        ("Candles", "market.candle", "candlestick_chart"),
        ("Ingest keys", "market.ingestkey", "input"),
    ),
    "Records": (
        ("Staff actions", "admin.logentry", "history"),
        ("Control events", "accounts.controlevent", "campaign"),
        ("Roles", "auth.group", "group"),
    ),
}
OWN_PAGES = {
    "market_status": market_page.PERMISSIONS,
    "news_queue": (newsroom.CHANGE_PERMISSION,),
    "news_calibration_page": (newsroom.VIEW_PERMISSION,),
}


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    return [
        {
            "title": group,
            "items": [
                {"title": title, "icon": icon, "link": link_to(page)}
                for title, page, icon in entries
                if may_see(page, request)
            ],
        }
        for group, entries in GROUPS.items()
    ]


def may_see(page: str, request: HttpRequest) -> bool:
    if page in OWN_PAGES:
        return request.user.has_perms(OWN_PAGES[page])
    registered = {model._meta.label_lower: lists for model, lists in admin.site._registry.items()}
    return page in registered and registered[page].has_view_permission(request)


def link_to(page: str) -> str:
    return reverse(page if page in OWN_PAGES else f"admin:{page.replace('.', '_')}_changelist")


# Title, the page with its filter, icon, and how it is counted: with one query at most, but three for the
# accounts near their limits.
NEEDS: tuple[tuple[str, str, str, Callable[[], int]], ...] = (
    ("Open incidents", "status.incident", "report", lambda: Incident.objects.open().count()),
    (
        "Stale instruments",
        "market_status",
        "heart_broken",
        lambda: sum(instrument.state == "stale" for instrument in overview().instruments),
    ),
    ("Drafts waiting", "news_queue", "inbox", lambda: NewsItem.objects.filter(status="draft").count()),
    (
        "Broken news sources",
        f"news.source?is_active__exact=1&failures__gte={BROKEN_FROM}",
        "rss_feed",
        lambda: Source.objects.filter(is_active=True, failures__gte=BROKEN_FROM).count(),
    ),
    (
        "Tier requests waiting",
        "accounts.tierrequest?state__exact=open",
        "upgrade",
        lambda: TierRequest.objects.open().count(),
    ),
    (
        "Publisher requests waiting",
        "signals_feed.publisherrequest?state__exact=open",
        "how_to_reg",
        lambda: PublisherRequest.objects.open().count(),
    ),
    (
        "Accounts near their limits",
        "accounts.account?limits=near",
        "speed",
        lambda: len(near_limits(timezone.now())),
    ),
)


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Staff without access to a page do not see its number either."""
    needs = []
    for title, target, icon, count in NEEDS:
        page, mark, chosen = target.partition("?")
        if may_see(page, request):
            link = link_to(page) + mark + chosen
            needs.append({"title": title, "number": count(), "link": link, "icon": icon})
    return {**context, "needs": needs}


# The breadcrumbs of a page: lists are called as in the sidebar.
register = template.Library()


@register.filter
def as_in_sidebar(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = {link_to(page): (group, title) for group, entries in GROUPS.items() for title, page, _ in entries}
    place = next((index for index, part in enumerate(parts) if str(part.get("link")) in names), None)
    if place is None:
        return [{**part, "title": capfirst(str(part["title"]))} for part in parts]
    group, title = names[str(parts[place]["link"])]
    return [{"title": group}, {**parts[place], "title": title}, *parts[place + 1 :]]
