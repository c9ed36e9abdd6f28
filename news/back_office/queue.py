"""The queue: one draft after another is published, rejected or put right, with the keyboard if you like."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from news.models import NewsItem
from news.models.categories import Category

from .acts import act_on

SHOWN = 30
PERMISSION = "news.change_newsitem"


def may_see(request: HttpRequest) -> bool:
    return request.user.is_authenticated and request.user.has_perm(PERMISSION)


@require_http_methods(["GET", "HEAD", "POST"])
def queue_page(request: HttpRequest) -> HttpResponse:
    if not may_see(request):
        raise PermissionDenied
    return act(request) if request.method == "POST" else show(request)


def show(request: HttpRequest) -> HttpResponse:
    drafts = NewsItem.objects.filter(status=NewsItem.Status.DRAFT)
    items = list(drafts.order_by("-arrived_at", "-pk").prefetch_related("symbols")[:SHOWN])
    current = whole_number(request.GET.get("at", ""))
    shown = [item.pk for item in items]
    context: dict[str, Any] = {
        **admin.site.each_context(request),
        "title": "Drafts",
        "items": items,
        "drafts": list(zip_longest(items, items[1:])),
        "current": current if current in shown else next(iter(shown), 0),
        "total": len(items) if len(items) < SHOWN else drafts.count(),
        "categories": list(enumerate(Category.values, start=1)),
    }
    request.current_app = admin.site.name
    return TemplateResponse(request, "admin/news_queue.html", context)


def act(request: HttpRequest) -> HttpResponse:
    """`act` says what, `item` on which: one, or several ticked ones, each with the mark of what was read."""
    sent = (text.partition(":") for text in request.POST.getlist("item"))
    chosen = {pk: mark for number, _, mark in sent if (pk := whole_number(number))}
    if not chosen:
        messages.warning(request, "Choose at least one draft.")
    for item in NewsItem.objects.filter(pk__in=list(chosen)[:SHOWN]):
        wanted, score = request.POST.get("act", ""), request.POST.get("score", "")
        act_on(request, item, wanted, score, seen=chosen[item.pk])
    # On to the next, unless the one at hand is still to be decided.
    first = next(iter(chosen), 0)
    waits = NewsItem.objects.filter(pk=first, status=NewsItem.Status.DRAFT).exists()
    at = first if waits else whole_number(request.POST.get("next", ""))
    return redirect(f"{reverse('news_queue')}?at={at}")


def whole_number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
