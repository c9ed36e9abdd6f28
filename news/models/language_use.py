"""How often endpoints were asked: they cost money, and processes come and go."""

from __future__ import annotations

from datetime import date

from django.db import models
from django.db.models import F


class LanguageUse(models.Model):
    """Calls of one language model on one UTC day, over all processes."""

    identifier = models.CharField(max_length=60)
    day = models.DateField()
    used = models.PositiveIntegerField(default=0)

    class Meta:
        app_label = "news"
        verbose_name_plural = "language use"
        constraints = (
            models.UniqueConstraint(fields=("identifier", "day"), name="language_use_one_row_a_day"),
        )

    def __str__(self) -> str:
        return f"{self.identifier}: {self.used} on {self.day}"

    @classmethod
    def spend(cls, identifier: str, day: date, limit: int) -> bool:
        """Count one call if the day's budget has room; the row count decides, so races cannot."""
        cls.objects.get_or_create(identifier=identifier, day=day)
        free = cls.objects.filter(identifier=identifier, day=day, used__lt=limit)
        return free.update(used=F("used") + 1) == 1
