"""What the queue can do with a draft, each told to the reader and kept in the admin's log."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest

from accounts.back_office.pages import actor
from news.admin.forms import ScoreField
from news.models import NewsItem
from news.models.categories import Category
from news.scoring import Scored, score_title
from news.services import Decided, Reworded, Unscored, choose_category, override_score, publish, reject


class UnknownAct(Exception):
    """No button of the page sends this."""


def act_on(request: HttpRequest, item: NewsItem, act: str, score: str, *, seen: str) -> None:
    """`seen` is the mark of the draft as the page showed it."""
    name, _, value = act.partition(":")
    try:
        # Before the database is held up: a model may take its time.
        scored = score_title(item.title, value) if name == "category" and value in Category.values else None
        with transaction.atomic():
            done = perform(item, act, score, scored, by=actor(request), seen=seen)
            LogEntry.objects.log_actions(
                int(str(request.user.pk)), [item], CHANGE, f"{done}.", single_object=True
            )
    except (Unscored, Decided, Reworded, UnknownAct) as error:
        messages.error(request, str(error))
    except ValidationError as error:
        messages.error(request, f"“{item.title}”: {error.messages[0]}")
    else:
        messages.success(request, f"{done}: “{item.title}”.")


def perform(item: NewsItem, act: str, score: str, scored: Scored | None, *, by: str, seen: str) -> str:
    """Do it, and say what was done."""
    name, _, value = act.partition(":")
    simple: dict[str, tuple[Callable[..., None], str]] = {
        "publish": (publish, "Published"),
        "reject": (reject, "Rejected"),
    }
    if act in simple:
        perform_one, done = simple[act]
        perform_one(item, seen=seen)
        return done
    if name == "category" and value in Category.values:
        choose_category(item, value, scored, by=by, seen=seen)
        return f"Category {value}"
    if act == "score":
        wanted = ScoreField().clean(score)
        override_score(item, wanted, by=by, seen=seen)
        return f"Score {wanted:+.2f}"
    raise UnknownAct("This page cannot do that. Reload it.")
