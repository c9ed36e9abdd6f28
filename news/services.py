"""Acts of the newsroom."""

from __future__ import annotations

from .models import NewsItem

STAFF = "staff"


class Unscored(Exception):
    """Only what has a score can be in the feed."""


def publish(item: NewsItem) -> None:
    """Put an item into the feed, with the time at which its source published it."""
    scored = NewsItem.objects.filter(pk=item.pk, sentiment_score__isnull=False).exclude(model="")
    if not scored.update(status=NewsItem.Status.PUBLISHED):
        raise Unscored(f"“{item.title}” has no sentiment score yet. Give it one, then publish it.")


def override_score(item: NewsItem, score: float | None) -> None:
    """Staff know better than the model, or take their own score back."""
    if score is None and item.status == NewsItem.Status.PUBLISHED:
        raise Unscored("A published item keeps a score. Reject it first.")
    item.sentiment_score = score
    item.model = "" if score is None else STAFF
    item.save(update_fields=("sentiment_score", "model"))
