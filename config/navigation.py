"""The back office's sidebar: what staff may see of it, in the order of their work."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

# Title, model and icon; who may see a page is asked of its own rules.
GROUPS = (
    (
        "Editorial",
        (
            ("News", "news.newsitem", "newspaper"),
            ("Signals", "signals_feed.signal", "ads_click"),
        ),
    ),
    (
        "Customers",
        (
            ("API keys", "accounts.apikey", "key"),
            ("Accounts", "accounts.account", "badge"),
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


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    pages = {model._meta.label_lower: page for model, page in admin.site._registry.items()}
    return [
        {
            "title": group,
            "items": [
                {"title": title, "icon": icon, "link": list_url(model)}
                for title, model, icon in entries
                if model in pages and pages[model].has_view_permission(request)
            ],
        }
        for group, entries in GROUPS
    ]


def list_url(model: str) -> str:
    return reverse(f"admin:{model.replace('.', '_')}_changelist")
