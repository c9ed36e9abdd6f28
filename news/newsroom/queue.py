"""The queue, where staff publish, reject or correct one draft after another, by keyboard if they like."""

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import NamedTuple

from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from accounts.back_office import staff_page
from core.times import age_text
from news.models import NewsItem
from news.models.items import NewsCategory
from news.scoring import score_title
from news.sentiment import Score

from .decisions import AlreadyDecided, Reworded, Unscored, choose_category, override_score, publish, reject
from .item_form import ScoreField

SHOWN = 30
PERMISSION = "news.change_newsitem"


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(PERMISSION, raise_exception=True)
def queue_page(request: HttpRequest) -> HttpResponse:
    return act(request) if request.method == "POST" else show(request)


class RefusedScore(NamedTuple):
    """What was typed for a draft, and what is wrong with it."""

    typed: str
    fault: str


NOTHING_REFUSED: Mapping[int, RefusedScore] = {}


def show(
    request: HttpRequest, at: str = "", refused: Mapping[int, RefusedScore] = NOTHING_REFUSED
) -> HttpResponse:
    drafts = NewsItem.objects.filter(status=NewsItem.Status.DRAFT)
    items = list(drafts.order_by("-arrived_at", "-pk").prefetch_related("symbols")[:SHOWN])
    current = whole_number(at or request.GET.get("at", ""))
    shown, now = [item.pk for item in items], timezone.now()
    for pk in refused.keys() - shown:
        messages.error(request, refused[pk].fault)
    return staff_page(
        request,
        "admin/news/queue.html",
        "Drafts",
        items=items,
        drafts=[
            (item, following, age_text((now - item.published_at).total_seconds()), refused.get(item.pk))
            for item, following in zip_longest(items, items[1:])
        ],
        current=current if current in shown else next(iter(shown), 0),
        total=len(items) if len(items) < SHOWN else drafts.count(),
        categories=list(enumerate(NewsCategory.values, start=1)),
    )


def act(request: HttpRequest) -> HttpResponse:
    """`act` says what to do, and each `item` names a draft with the mark of what was read."""
    chosen = marks_of(request.POST.getlist("item"))
    name, score = request.POST.get("act", ""), request.POST.get("score", "")
    if not chosen:
        messages.warning(request, "Choose at least one draft.")
    refused = {}
    for item in NewsItem.objects.filter(pk__in=list(chosen)[:SHOWN]):
        try:
            act_on(request, item, name, score, seen=chosen[item.pk])
        except ValidationError as error:
            refused[item.pk] = RefusedScore(score, error.messages[0])
    # Go on to the next draft, unless the current one is still undecided.
    first = next(iter(chosen), 0)
    if refused:
        return show(request, str(first), refused)
    waits = NewsItem.objects.filter(pk=first, status=NewsItem.Status.DRAFT).exists()
    at = first if waits else whole_number(request.POST.get("next", ""))
    return redirect(f"{reverse('news_queue')}?at={at}")


def marks_of(sent: Iterable[str]) -> dict[int, str]:
    """The mark of each item as the page showed it, sent as `number:mark`."""
    parts = (text.partition(":") for text in sent)
    return {pk: mark for number, _, mark in parts if (pk := whole_number(number))}


def whole_number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


class UnknownAct(Exception):
    """No button of the page sends this."""


def act_on(request: HttpRequest, item: NewsItem, act: str, score: str, *, seen: str) -> None:
    """`seen` is the mark of the draft as the page showed it. A score that is none is a ValidationError."""
    name, _, value = act.partition(":")
    try:
        # Before the transaction, because a model may be slow.
        scored = (
            score_title(item.title, value) if name == "category" and value in NewsCategory.values else None
        )
        with transaction.atomic():
            done = perform(item, act, score, scored, by=request.user.get_username(), seen=seen)
            LogEntry.objects.log_actions(
                int(str(request.user.pk)), [item], CHANGE, f"{done}.", single_object=True
            )
    except (Unscored, AlreadyDecided, Reworded, UnknownAct) as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"{done}: “{item.title}”.")


def perform(item: NewsItem, act: str, score: str, scored: Score | None, *, by: str, seen: str) -> str:
    """Carries out the act, and returns in words what was done."""
    name, _, value = act.partition(":")
    if act == "publish":
        publish(item, by=by, seen=seen)
        return "Published"
    if act == "reject":
        reject(item, seen=seen)
        return "Rejected"
    if name == "category" and value in NewsCategory.values:
        choose_category(item, value, scored, by=by, seen=seen)
        return f"Category {value}"
    if act == "score":
        number = ScoreField().clean(score)
        override_score(item, number, by=by, seen=seen)
        return f"Score {number:+.2f}"
    raise UnknownAct("This page cannot do that. Reload it.")
