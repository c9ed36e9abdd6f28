"""Every score that an item was ever given."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone


class ItemScore(models.Model):
    """One judgement of one title. Rows are added, never changed: the database refuses."""

    item = models.ForeignKey("news.NewsItem", on_delete=models.CASCADE, related_name="scores")
    title = models.CharField(max_length=300, help_text="As it read when it was scored.")
    score = models.FloatField()
    model = models.CharField(max_length=60)
    version = models.CharField(max_length=40, blank=True)
    by = models.CharField(max_length=150, blank=True, help_text="Who asked for it; empty for the ingest.")
    is_taken = models.BooleanField(
        "taken", default=True, help_text="Whether the item took it; published items keep theirs."
    )
    scored_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = "score"
        ordering = ("-scored_at", "-pk")
        constraints = (
            models.CheckConstraint(
                name="news_item_score_is_within_one", condition=Q(score__gte=-1, score__lte=1)
            ),
            models.CheckConstraint(name="news_item_score_has_model", condition=~Q(model="")),
        )

    def __str__(self) -> str:
        return f"{self.score:+.2f} by {self.model}"
