"""What was said about an item when it entered the feed, and how prices moved afterwards."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models import Q

from .items import NewsCategory

HORIZONS_H = {"1h": 1, "24h": 24}
INVERSE = "-"
"""Prefix of a symbol whose quote currency the score is about, such as the yen in USDJPY."""


class OutcomeQuerySet(models.QuerySet["Outcome"]):
    def due(self, now: datetime) -> OutcomeQuerySet:
        return self.filter(settled_at=None, due_at__lte=now).order_by("pk")


class Outcome(models.Model):
    """Made when an item first enters the feed, with the score of that moment, and settled after the horizon.
    Nothing that is said later, when the move is known, changes what is judged."""

    item = models.ForeignKey("news.NewsItem", on_delete=models.CASCADE, related_name="outcomes")
    horizon = models.CharField(max_length=3, choices=[(name, name) for name in HORIZONS_H])
    category = models.CharField(max_length=6, choices=NewsCategory)
    score = models.FloatField()
    label = models.CharField(max_length=7)
    symbols = models.CharField(
        max_length=200, help_text="What is looked at, with spaces between; -USDJPY where the inverse is."
    )
    entered_at = models.DateTimeField()
    due_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True)
    move_percent = models.FloatField(null=True, help_text="Empty where there was no price at either end.")

    objects = OutcomeQuerySet.as_manager()

    class Meta:
        indexes = (models.Index(fields=("due_at",), condition=Q(settled_at=None), name="news_outcome_due"),)
        constraints = (
            models.UniqueConstraint(fields=("item", "horizon"), name="news_outcome_once"),
            models.CheckConstraint(
                name="news_outcome_not_before_due",
                condition=Q(settled_at=None, move_percent=None) | Q(settled_at__gte=models.F("due_at")),
            ),
        )

    def __str__(self) -> str:
        return f"{self.label} after {self.horizon}: {self.move_percent}"
