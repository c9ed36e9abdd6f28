"""Decisions about items. A draft is decided once, under a lock on its row."""

from django.db import transaction
from django.utils import timezone

from news.entering import enter_feed
from news.models import NewsItem
from news.scoring import STAFF, Scorer, give_score
from news.sentiment import Score

Status = NewsItem.Status


class Unscored(Exception):
    """Only what has a score can be in the feed."""


class AlreadyDecided(Exception):
    """Somebody else was faster: the item is no longer a draft."""


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
