"""What the stream says of news, in the order in which it entered the feed."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.utils import timezone

from core.events.outbox import ControlEvent


class NewsAnnouncementQuerySet(models.QuerySet["NewsAnnouncement"]):
    def last_position(self) -> int:
        return self.aggregate(last=models.Max("position"))["last"] or 0

    def position_of(self, item_id: int, since: datetime) -> int | None:
        """Where an item was announced; None if that was before `since`, or never."""
        announced = self.filter(item=item_id, announced_at__gte=since)
        return announced.values_list("position", flat=True).first()

    def can_replay_after(self, position: int, since: datetime) -> bool:
        """Whether the position was ever reached and everything announced after it is of `since` or later."""
        if ControlEvent.objects.is_lost(position):
            return False
        later = self.filter(position__gt=position).order_by("position")
        first_at = later.values_list("announced_at", flat=True).first()
        # A restored database may end before it.
        return position <= self.last_position() if first_at is None else first_at >= since


class NewsAnnouncement(models.Model):
    """That an item entered the feed, at its position in commit order. The row stays as long as the item, so
    that one which staff take back and publish again is not announced twice."""

    position = models.BigIntegerField(primary_key=True, help_text="That of its control event.")
    # Without a constraint, so that a version that does not know this table can still delete items.
    item = models.OneToOneField(
        "news.NewsItem", on_delete=models.CASCADE, db_constraint=False, related_name="announcement"
    )
    announced_at = models.DateTimeField(default=timezone.now)

    objects = NewsAnnouncementQuerySet.as_manager()

    class Meta:
        app_label = "news"

    def __str__(self) -> str:
        return f"{self.position} of {self.item_id}"
