"""What a watcher has seen and not yet acted upon, kept with the engine's own checkpoint."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Hit(models.Model):
    """A tick that closes a signal. It is in the database no later than the tick itself, so that whoever
    goes on from there closes the signal by the same tick and at the same price."""

    signal = models.OneToOneField(
        "signals_feed.Signal", on_delete=models.CASCADE, primary_key=True, related_name="hit"
    )
    closing = models.JSONField()

    def __str__(self) -> str:
        return f"{self.signal_id} is hit"


class WatchMark(models.Model):
    """Up to where the prices in the database have been judged. One row."""

    watched_until = models.DateTimeField()

    class Meta:
        constraints = (models.CheckConstraint(name="watch_mark_is_one_row", condition=Q(pk=1)),)

    def __str__(self) -> str:
        return f"watched until {self.watched_until:%Y-%m-%d %H:%M}"
