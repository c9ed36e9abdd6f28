"""The admin's page "Market status"."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from market.overview import Overview, overview

from . import words
from .rows import feed_rows, instrument_rows, moment

PERMISSIONS = ("instruments.view_instrument", "market.view_candle")


def may_see(request: HttpRequest) -> bool:
    return request.user.is_authenticated and request.user.has_perms(PERMISSIONS)


@require_safe
def market_status(request: HttpRequest) -> HttpResponse:
    if not may_see(request):
        raise PermissionDenied
    context = {**admin.site.each_context(request), "title": "Market status", **shown(overview())}
    request.current_app = admin.site.name
    return TemplateResponse(request, "admin/market_status.html", context)


def shown(seen: Overview) -> dict[str, Any]:
    instruments, feeds = instrument_rows(seen), feed_rows(seen)
    return {
        "at": moment(seen.at_ms),
        "engine": seen.engine,
        "is_running": seen.is_running,
        "engine_age": words.span(seen.engine_age_ms) if seen.engine.at_ms else "",
        "clock_off": words.span(abs(seen.engine.clock_off_ms)) if seen.engine.clock_off_ms else "",
        "is_separate": bool(settings.REDIS_URL),
        "instruments": instruments,
        "feeds": feeds,
        "states": Counter(row.state.word for row in instruments),
        "live": sum(row.state.word == "live" for row in feeds),
        "lost": [row.name for row in feeds if row.state.word == "lost"],
        "ticks": sum(row.ticks for row in feeds),
        "refused": sum(count for row in feeds for _, count in row.refused),
    }
