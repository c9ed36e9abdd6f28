"""/docs: the quick start, how figures are computed, what changes, and the same for language models."""

from __future__ import annotations

from functools import cache

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.models import Tier

from . import changelog
from .asyncapi import scheme_of


@cache
def changes() -> changelog.Changes:
    return changelog.read((settings.BASE_DIR / "CHANGELOG.md").read_text())


def addresses(request: HttpRequest) -> dict[str, str]:
    host = request.get_host()
    ws = f"{scheme_of(request)}://{host}"
    return {"base": f"{request.scheme}://{host}", "ws": ws, "url": f"{ws}/ws/market"}


@require_safe
def start_page(request: HttpRequest) -> HttpResponse:
    page = {**addresses(request), "tiers": Tier.objects.all(), "demo": settings.DEMO}
    return render(request, "docs/start.html", page)


@require_safe
def data_page(request: HttpRequest) -> HttpResponse:
    return render(request, "docs/data.html", {"candle_price": settings.CANDLE_PRICE})


@require_safe
def changelog_page(request: HttpRequest) -> HttpResponse:
    return render(request, "docs/changelog.html", {"changes": changes()})


@require_safe
def llms(request: HttpRequest) -> HttpResponse:
    return render(request, "docs/llms.txt", addresses(request), content_type="text/plain; charset=utf-8")
