"""What operators' commands leave in the database for the service."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models import Q
from django.utils import timezone


class LastBackupQuerySet(models.QuerySet["LastBackup"]):
    def note(self) -> None:
        self.update_or_create(pk=1, defaults={"finished_at": timezone.now()})

    def finished_at(self) -> datetime | None:
        return self.values_list("finished_at", flat=True).first()


class LastBackup(models.Model):
    """When this database was last backed up. One row, or none before the first time."""

    finished_at = models.DateTimeField()

    objects = LastBackupQuerySet.as_manager()

    class Meta:
        constraints = (models.CheckConstraint(name="last_backup_is_one_row", condition=Q(pk=1)),)

    def __str__(self) -> str:
        return f"{self.finished_at:%Y-%m-%d %H:%M:%S} UTC"
