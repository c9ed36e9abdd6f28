"""The work of staff: they decide about drafts, run the sources and read what the scores were worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from django import forms
from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe
from msgspec.structs import asdict
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.back_office import staff_page
from accounts.form_fields import FloatNumberField
from core.times import age_text
from news.calibration import ENOUGH, MAIN_SYMBOLS, Figures, add_up
from news.entering import enter_feed
from news.models import NewsCategory, NewsItem
from news.scoring import STAFF, Scorer, give_score, score_title
from news.sentiment import Score

# The calibration for staff: the figures of GET /api/news/calibration, read as a table.
VIEW_PERMISSION = "news.view_newsitem"


@require_safe
@permission_required(VIEW_PERMISSION, raise_exception=True)
def calibration_page(request: HttpRequest) -> HttpResponse:
    own = {"at": timezone.now(), "enough": ENOUGH, "tables": tables(add_up())}
    return staff_page(request, "admin/news/calibration.html", "Calibration", **own)


def tables(figures: list[Figures]) -> list[dict[str, Any]]:
    """One table for each category, with a row for each label and horizon."""
    return [
        {"category": category, "symbol": MAIN_SYMBOLS[category], "rows": list(map(texts_of, rows))}
        for category, rows in groupby(figures, key=lambda row: row.category)
    ]


def texts_of(row: Figures) -> dict[str, Any]:
    return {
        **asdict(row),
        "mean": percent(row.mean_move_percent),
        "median": percent(row.median_move_percent),
        "hits": "–" if row.hit_rate is None else f"{row.hit_rate:.0%}",
    }


def percent(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}%".replace("-", "−")


# Decisions about items. A draft is decided once, under a lock on its row.
Status = NewsItem.Status


class Unscored(Exception):
    """Only what has a score can be in the feed."""


class AlreadyDecided(Exception):
    """Another member of staff was faster: the item is no longer a draft."""


class Reworded(Exception):
    """The draft has changed since staff read it."""


@transaction.atomic
def publish(item: NewsItem, *, by: str, seen: str | None = None) -> None:
    """Puts an item into the feed, with the time at which its source published it. Here and below, `seen` is
    the mark of the draft as staff read it: if it has changed, nothing is done."""
    found = locked(item, seen)
    if found.sentiment_score is None or not found.model:
        raise Unscored(f"“{found.title}” has no sentiment score yet. Give it one, then publish it.")
    NewsItem.objects.filter(pk=found.pk).update(status=Status.PUBLISHED)
    enter_feed([found], timezone.now(), by=by)


@transaction.atomic
def reject(item: NewsItem, *, seen: str | None = None) -> None:
    found = locked(item, seen)
    NewsItem.objects.filter(pk=found.pk).update(status=Status.REJECTED)


def take_back(item: NewsItem) -> None:
    """Move an item from the feed back to the drafts. Its outcomes stay on record."""
    NewsItem.objects.filter(pk=item.pk).update(status=Status.DRAFT)


@transaction.atomic
def choose_category(item: NewsItem, category: str, scored: Score | None, *, by: str, seen: str) -> None:
    """Change the category of a draft, with the model's score of its title for that category."""
    found = locked(item, seen)
    NewsItem.objects.filter(pk=found.pk).update(category=category)
    replace_model_score(found, scored, by=by)


def replace_model_score(item: NewsItem, scored: Score | None, *, by: str) -> None:
    """A score is about the category's asset and says nothing about another one. A score by staff stays."""
    if item.model in ("", STAFF):
        return
    if scored is not None:
        give_score(item, scored, by=by)
    else:
        _clear_score(item)


@transaction.atomic
def override_score(item: NewsItem, score: float | None, *, by: str, seen: str | None = None) -> None:
    """Staff replace the model's score, or withdraw their own."""
    found = locked(item, seen)
    if score is None:
        if found.status == Status.PUBLISHED:
            raise Unscored("A published item keeps a score. Reject it first.")
        _clear_score(item)
    else:
        give_score(item, Score(score, STAFF, ""), by=by)


def ask_again(item: NewsItem, scorer: Scorer) -> Score:
    """Not to be called in a transaction: a model is slow, and the call is counted in the database."""
    scored = scorer(item.title, item.category)
    if scored is None:
        raise Unscored(f"“{item.title}” cannot be scored by the model. Give it a score of your own.")
    return scored


@transaction.atomic
def take_answer(item: NewsItem, scored: Score, *, by: str, replace_published: bool = False) -> bool:
    """Every answer is recorded; a published item takes it only if staff say so."""
    is_taken = replace_published or locked(item).status != Status.PUBLISHED
    give_score(item, scored, by=by, is_taken=is_taken)
    return is_taken


def _clear_score(item: NewsItem) -> None:
    item.sentiment_score, item.model = None, ""
    item.save(update_fields=("sentiment_score", "model"))


def locked(item: NewsItem, seen: str | None = None, *, in_any_state: bool = False) -> NewsItem:
    """The row, until the transaction ends; with `seen`, only a draft that is still as staff read it."""
    found = NewsItem.objects.select_for_update().get(pk=item.pk)
    if seen is not None and found.status != Status.DRAFT and not in_any_state:
        raise AlreadyDecided(f"“{found.title}” is {found.status} already. Nothing was changed.")
    if seen is not None and found.mark != seen:
        raise Reworded(f"“{found.title}” has changed since you read it. Nothing was done: read it again.")
    return found


# The form of one item.
if TYPE_CHECKING:
    ModelForm = forms.ModelForm[NewsItem]
else:
    ModelForm = forms.ModelForm


HttpsURLField = partial(forms.URLField, assume_scheme="https")
NO_SCORE = "A score is a number from −1 to 1, such as 0.4."
ScoreField = partial(
    FloatNumberField,
    min_value=-1,
    max_value=1,
    error_messages=dict.fromkeys(("required", "invalid", "min_value", "max_value"), NO_SCORE),
)
# The clock of a curator may be ahead of ours.
MOST_AHEAD = timedelta(minutes=5)


class NewsItemForm(ModelForm):
    sentiment_score = ScoreField(
        required=False,
        label="Sentiment score",
        help_text="−1 (bearish) to 1 (bullish) for the category's asset: in forex the currency named first, "
        "in macro stocks. A score of yours replaces the model's.",
        widget=UnfoldAdminTextInputWidget(attrs={"inputmode": "decimal"}),
    )

    class Meta:
        # The back office adds the model, and the fields that its `fieldsets` name.
        field_classes = {"url": HttpsURLField}

    def clean_published_at(self) -> datetime:
        at: datetime = self.cleaned_data["published_at"]
        if at > timezone.now() + MOST_AHEAD:
            raise forms.ValidationError(
                "This is in the future. Enter the time at which the source published it."
            )
        return at

    def clean_sentiment_score(self) -> float | None:
        score: float | None = self.cleaned_data["sentiment_score"]
        if score is None and self.instance.status == NewsItem.Status.PUBLISHED:
            raise forms.ValidationError("A published item keeps a score. Reject it first.")
        return score


# The queue, where staff publish, reject or correct one draft after another, by keyboard if they like.
SHOWN = 30
CHANGE_PERMISSION = "news.change_newsitem"


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(CHANGE_PERMISSION, raise_exception=True)
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
