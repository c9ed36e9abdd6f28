"""Django's cache as a table: attempts to log in and codes that are spent, the same for all processes."""

from __future__ import annotations

from django.db import models


class Attempt(models.Model):
    """A table as `createcachetable` makes it; here, so that it is migrated like any other."""

    cache_key = models.CharField(max_length=255, primary_key=True)
    value = models.TextField()
    expires = models.DateTimeField(db_index=True)

    class Meta:
        app_label = "accounts"

    def __str__(self) -> str:
        return self.cache_key
