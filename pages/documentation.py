"""/docs: the quick start, how figures are computed, the changelog, and a summary for language models."""

import re
from functools import cache
from typing import NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe

from accounts.models import TIER_LIMITS, Tier
from market.streams.protocol.messages import KINDS

from .streams_page import scheme_of


class Release(NamedTuple):
    title: str
    items: list[SafeString]


class Changes(NamedTuple):
    about: str
    releases: list[Release]


def read_changelog(text: str) -> Changes:
    about, *releases = re.split(r"^## ", text, flags=re.MULTILINE)
    return Changes(" ".join(about.split("\n", 1)[1].split()), [read_release(each) for each in releases])


def read_release(text: str) -> Release:
    title, rest = text.split("\n", 1)
    items = re.split(r"^- ", rest, flags=re.MULTILINE)[1:]
    return Release(title.strip(), [with_marks(" ".join(item.split())) for item in items])


def with_marks(text: str) -> SafeString:
    html = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
    return mark_safe(re.sub(r"\*([^*]+)\*", r"<em>\1</em>", html))  # noqa: S308 - escaped above


@cache
def shown_changes() -> Changes:
    return read_changelog((settings.BASE_DIR / "CHANGELOG.md").read_text())


def page_addresses(request: HttpRequest) -> dict[str, str]:
    host = request.get_host()
    ws = f"{scheme_of(request)}://{host}"
    return {"base": f"{request.scheme}://{host}", "ws": ws, "url": f"{ws}/ws/market"}


@require_safe
def start_page(request: HttpRequest) -> HttpResponse:
    tiers = {"tiers": Tier.objects.all(), "limits": TIER_LIMITS.values()}
    return render(request, "docs/start.html", {**page_addresses(request), **tiers, "demo": settings.DEMO})


@require_safe
def data_page(request: HttpRequest) -> HttpResponse:
    return render(request, "docs/data.html", {"candle_price": settings.CANDLE_PRICE})


@require_safe
def changelog_page(request: HttpRequest) -> HttpResponse:
    return render(request, "docs/changelog.html", {"changes": shown_changes()})


@require_safe
def llms(request: HttpRequest) -> HttpResponse:
    addresses = page_addresses(request)
    streams = [f"{addresses['ws']}{kind.path}" for kind in KINDS]
    words = {**addresses, "streams": streams}
    return render(request, "docs/llms.txt", words, content_type="text/plain; charset=utf-8")
