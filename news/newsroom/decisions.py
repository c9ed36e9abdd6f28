"""Decisions about items. A draft is decided once: the row count tells who was first."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from news.calibration.outcomes import open_outcomes
from news.models import ItemScore, NewsItem
from news.scoring import Scorer
from news.sentiment import Score

STAFF = "staff"
Status = NewsItem.Status


class Unscored(Exception):
    """Only what has a score can be in the feed."""


class AlreadyDecided(Exception):
    """Somebody else was first: the item is no draft any more."""


class Reworded(Exception):
    """The draft is not what was read before it was decided."""


@transaction.atomic
def publish(item: NewsItem, *, seen: str | None = None) -> None:
    """Put an item into the feed, with the time at which its source published it.

    `seen` is the mark of a draft as it was read: if it reads differently now, nothing is done. Below too."""
    found = _locked(item, seen)
    if found.sentiment_score is None or not found.model:
        raise Unscored(f"“{found.title}” has no sentiment score yet. Give it one, then publish it.")
    NewsItem.objects.filter(pk=found.pk).update(status=Status.PUBLISHED)
    open_outcomes([found], timezone.now())


@transaction.atomic
def reject(item: NewsItem, *, seen: str | None = None) -> None:
    found = _locked(item, seen)
    NewsItem.objects.filter(pk=found.pk).update(status=Status.REJECTED)


@transaction.atomic
def take_back(item: NewsItem) -> None:
    """To the drafts again, out of the feed. What was promised when it entered stays on record."""
    NewsItem.objects.filter(pk=item.pk).update(status=Status.DRAFT)


@transaction.atomic
def choose_category(item: NewsItem, category: str, scored: Score | None, *, by: str, seen: str) -> None:
    """Of a draft, from the queue; with what the model says of its title for that category."""
    found = _locked(item, seen)
    NewsItem.objects.filter(pk=found.pk).update(category=category)
    replace_model_score(found, scored, by=by)


def replace_model_score(item: NewsItem, scored: Score | None, *, by: str) -> None:
    """A score is about the category's asset and says nothing of another. Staff knew what theirs is about."""
    if item.model in ("", STAFF):
        return
    if scored is not None:
        give_score(item, scored, by=by)
    else:
        _clear_score(item)


@transaction.atomic
def override_score(item: NewsItem, score: float | None, *, by: str, seen: str | None = None) -> None:
    """Staff know better than the model, or take their own score back."""
    found = _locked(item, seen)
    if score is None:
        if found.status == Status.PUBLISHED:
            raise Unscored("A published item keeps a score. Reject it first.")
        _clear_score(item)
    else:
        give_score(item, Score(score, STAFF, ""), by=by)


def ask_again(item: NewsItem, scorer: Scorer) -> Score:
    """Outside of any transaction: a model takes its time, and writes down that it was asked."""
    scored = scorer(item.title, item.category)
    if scored is None:
        raise Unscored(f"“{item.title}” cannot be scored by the model. Give it a score of your own.")
    return scored


@transaction.atomic
def take_answer(item: NewsItem, scored: Score, *, by: str, replace_published: bool = False) -> bool:
    """Every answer is kept; a published item takes it only if staff say so."""
    is_taken = replace_published or _locked(item).status != Status.PUBLISHED
    give_score(item, scored, by=by, is_taken=is_taken)
    return is_taken


def _clear_score(item: NewsItem) -> None:
    item.sentiment_score, item.model = None, ""
    item.save(update_fields=("sentiment_score", "model"))


def give_score(item: NewsItem, scored: Score, *, by: str, is_taken: bool = True) -> None:
    ItemScore.objects.create(
        item=item,
        title=item.title,
        score=scored.score,
        model=scored.model,
        version=scored.version,
        by=by,
        is_taken=is_taken,
    )
    if is_taken:
        item.sentiment_score, item.model = scored.score, scored.model
        item.save(update_fields=("sentiment_score", "model"))


def _locked(item: NewsItem, seen: str | None = None) -> NewsItem:
    found = NewsItem.objects.select_for_update().get(pk=item.pk)
    if seen is None:
        return found
    if found.status != Status.DRAFT:
        raise AlreadyDecided(f"“{found.title}” is {found.status} already. Nothing was changed.")
    _be_as_read(found, seen)
    return found


def lock_as_read(item: NewsItem, seen: str) -> None:
    """Within a transaction, before an act upon an item in whatever state."""
    _be_as_read(_locked(item), seen)


def _be_as_read(found: NewsItem, seen: str) -> None:
    if found.mark != seen:
        raise Reworded(f"“{found.title}” has changed since you read it. Nothing was done: read it again.")
