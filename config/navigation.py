"""The back office's sidebar: what staff may see of it, in the order of their work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

from market.back_office import page as market_page
from news.back_office import calibration, queue

# Title, model (or page of its own) and icon; who may see a page is asked of its own rules.
GROUPS = (
    (
        "Editorial",
        (
            ("Drafts", "news_queue", "inbox"),
            ("News", "news.newsitem", "newspaper"),
            ("News sources", "news.source", "rss_feed"),
            ("Calibration", "news_calibration_page", "analytics"),
            ("Signals", "signals_feed.signal", "ads_click"),
            ("Ledger", "signals_feed.ledgerentry", "receipt_long"),
        ),
    ),
    (
        "Customers",
        (
            ("API keys", "accounts.apikey", "key"),
            ("Accounts", "accounts.account", "badge"),
            ("Tier requests", "accounts.tierrequest", "upgrade"),
            ("Users", "accounts.user", "person"),
            ("E-mail addresses", "account.emailaddress", "alternate_email"),
            ("Second factors", "mfa.authenticator", "lock"),
            ("Tiers", "accounts.tier", "stacks"),
            ("AI usage", "accounts.aiusage", "smart_toy"),
        ),
    ),
    (
        "Market",
        (
            ("Market status", "market_status", "monitor_heart"),
            ("Incidents", "status.incident", "report"),
            ("Instruments", "instruments.instrument", "currency_exchange"),
            ("Trading calendars", "instruments.tradingcalendar", "calendar_month"),
            ("Candles", "market.candle", "candlestick_chart"),
            ("Ingest keys", "market.ingestkey", "input"),
        ),
    ),
    (
        "Records",
        (
            ("Staff actions", "admin.logentry", "history"),
            ("Control events", "accounts.controlevent", "campaign"),
            ("Staff groups", "auth.group", "group"),
        ),
    ),
)


PAGES: dict[str, Callable[[HttpRequest], bool]] = {
    "market_status": market_page.may_see,
    "news_queue": queue.may_see,
    "news_calibration_page": calibration.may_see,
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
        for group, entries in GROUPS
    ]


def may_see(page: str, request: HttpRequest) -> bool:
    if page in PAGES:
        return PAGES[page](request)
    registered = {model._meta.label_lower: lists for model, lists in admin.site._registry.items()}
    return page in registered and registered[page].has_view_permission(request)


def link_to(page: str) -> str:
    return reverse(page if page in PAGES else f"admin:{page.replace('.', '_')}_changelist")
