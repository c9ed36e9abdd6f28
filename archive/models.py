"""Which installation this is, to its archive."""

from __future__ import annotations

from secrets import token_hex

from django.db import models
from django.db.models import Q
from django.utils import timezone


def new_name() -> str:
    return token_hex(16)


class InstallationQuerySet(models.QuerySet["Installation"]):
    def known(self) -> Installation | None:
        return self.first()

    def begun(self) -> Installation:
        """The one row, made now if there is none."""
        return self.get_or_create(pk=1)[0]


class Installation(models.Model):
    """One row, or none before anything is archived. A backup contains it, so that a restored installation
    continues with the same archive."""

    name = models.CharField(max_length=32, default=new_name)
    began_at = models.DateTimeField(default=timezone.now)
    is_in_archive = models.BooleanField(default=False)
    """Whether the archive contains this name: from then on, an archive without it is another one."""

    objects = InstallationQuerySet.as_manager()

    class Meta:
        constraints = (models.CheckConstraint(name="installation_is_one_row", condition=Q(pk=1)),)

    def __str__(self) -> str:
        return self.name
